import numpy as np
import pytest

from tercet.paper import theorem_2_world


def test_the_limit_has_the_bias_of_the_formulas() -> None:
    found, terms = theorem_2_world.limit_bias(0.1), theorem_2_world.formulas(0.1)
    assert found["NWKR"] == pytest.approx(-3.69e-3, abs=5e-6)
    assert found["IWKR"] == pytest.approx(-1.62e-3, abs=5e-6)
    for name, bias in found.items():
        assert bias == pytest.approx(terms[name], rel=0.02)  # the next term is of order σ²


def test_slopes_are_derivatives() -> None:
    step = 1e-4
    up, here, down = (float(theorem_2_world.mu(1 + shift)) for shift in (step, 0, -step))
    first, second = theorem_2_world.slopes(1.0)
    assert first == pytest.approx((up - down) / (2 * step), rel=1e-6)
    assert second == pytest.approx((up - 2 * here + down) / step**2, rel=1e-4)


def test_many_samples_come_near_the_limit() -> None:
    rows = theorem_2_world.biases((0, 4_000))
    for row in rows:
        limit = theorem_2_world.limit_bias(row["bandwidth"])[row["estimator"]]
        assert row["bias"] == pytest.approx(limit, abs=0.02)


def test_weights_tend_to_the_inverse_of_the_smoothed_density() -> None:
    (few,), (many,) = theorem_2_world.weights((0, 100)), theorem_2_world.weights((0, 4_000))
    assert many["smoothed"] < few["smoothed"] / 2
    assert many["density"] > 0.05


@pytest.mark.parametrize("kind", list(theorem_2_world.SAMPLINGS))
def test_every_kind_of_sampling_reaches_all_queries(kind: str) -> None:
    points, rewards = theorem_2_world.sampled(kind, 2_000, np.random.default_rng(0))
    assert np.abs(points[:, None] - theorem_2_world.QUERIES).min(0).max() < 0.1
    assert set(rewards) == {0.0, 1.0}
