from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.executors import Serial
from tercet.paper import theorem_2
from tercet.paper.base import Order, Tables


def made_up(*, iwkr: float = -0.4, gain: float = 2.0, left: float = 0.01, weights: float = 0.0) -> Tables:
    """Tables in which IWKR's error falls with this power, NWKR's is `gain` times as large, and so on."""
    terms = theorem_2.formulas(theorem_2.PAPER_BANDWIDTH)
    apart = abs(terms["NWKR"] - terms["IWKR"])
    limit = [
        {
            "bandwidth": bandwidth,
            "estimator": name,
            "bias": terms[name] + (left * apart if name == "IWKR" else 0),
        }
        for bandwidth in theorem_2.BANDWIDTHS
        for name in theorem_2.ESTIMATORS
    ]
    bias = [row | {"n": 400, "seed": seed} for row in limit for seed in range(3)]
    errors = [
        {
            "sampling": kind, "n": n, "rule": rule, "estimator": name, "seed": seed,
            "squared_error": (1 + 0.01 * seed) * ((1 if name == "IWKR" else gain) * 0.1 * n**iwkr) ** 2,
        }
        for kind in theorem_2.SAMPLINGS
        for n in (100, 400, 1600)
        for rule in ("fixed", "decreasing")
        for name in theorem_2.ESTIMATORS
        for seed in range(4)
    ]  # fmt: skip
    weighed = [
        {"seed": 0, "n": n, "density": 0.1 * n**weights, "smoothed": n**-0.5} for n in (100, 400, 1600)
    ]
    tables = {"limit": limit, "bias": bias, "errors": errors, "weights": weighed}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def verdicts(tables: Tables) -> list[str]:
    return [claim.verdict for claim in theorem_2.claims(tables)]


def test_the_limit_has_the_bias_of_the_formulas() -> None:
    found, terms = theorem_2.limit_bias(0.1), theorem_2.formulas(0.1)
    assert found["NWKR"] == pytest.approx(-3.69e-3, abs=5e-6)
    assert found["IWKR"] == pytest.approx(-1.62e-3, abs=5e-6)
    for name, bias in found.items():
        assert bias == pytest.approx(terms[name], rel=0.02)  # the next term is of order σ²


def test_slopes_are_derivatives() -> None:
    step = 1e-4
    up, here, down = (float(theorem_2.mu(1 + shift)) for shift in (step, 0, -step))
    first, second = theorem_2.slopes(1.0)
    assert first == pytest.approx((up - down) / (2 * step), rel=1e-6)
    assert second == pytest.approx((up - 2 * here + down) / step**2, rel=1e-4)


def test_many_samples_come_near_the_limit() -> None:
    rows = theorem_2.biases((0, 4_000))
    for row in rows:
        limit = theorem_2.limit_bias(row["bandwidth"])[row["estimator"]]
        assert row["bias"] == pytest.approx(limit, abs=0.02)


def test_weights_tend_to_the_inverse_of_the_smoothed_density() -> None:
    (few,), (many,) = theorem_2.weights((0, 100)), theorem_2.weights((0, 4_000))
    assert many["smoothed"] < few["smoothed"] / 2
    assert many["density"] > 0.05


@pytest.mark.parametrize("kind", list(theorem_2.SAMPLINGS))
def test_every_kind_of_sampling_reaches_all_queries(kind: str) -> None:
    points, rewards = theorem_2.sampled(kind, 2_000, np.random.default_rng(0))
    assert np.abs(points[:, None] - theorem_2.QUERIES).min(0).max() < 0.1
    assert set(rewards) == {0.0, 1.0}


def test_claims_hold_where_the_weights_work() -> None:
    assert verdicts(made_up()) == ["reproduced", "reproduced", "reproduced", "not reproduced"]


def test_claims_fall_with_the_rows_that_bear_them() -> None:
    assert verdicts(made_up(iwkr=0.0))[0] == "not reproduced"
    assert verdicts(made_up(left=0.5))[1] == "not reproduced"
    assert verdicts(made_up(gain=0.9))[2] == "not reproduced"
    assert verdicts(made_up(weights=-0.4))[3] == "reproduced"


def test_tables_are_drawn_as_read_from_files(tmp_path: Path) -> None:
    tables = made_up()
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    (picture,) = theorem_2.draw({name: pd.read_csv(tmp_path / name) for name in tables})
    assert picture.name == "theorem-2"
    assert "4 seeds" in picture.caption


@pytest.mark.slow
def test_a_quick_measurement_has_all_tables(tmp_path: Path) -> None:
    order = Order(folder=tmp_path, seeds=2, quick=True, executor=Serial())
    tables = theorem_2.measure(order)
    assert set(tables) == {"limit", "bias", "errors", "weights"}
    assert tables["errors"]["seed"].nunique() == 2
    assert len(theorem_2.claims(tables)) == 4
