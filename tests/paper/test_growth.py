import numpy as np
import pytest

from tercet import ReferenceSet
from tercet.paper import growth


def test_a_memory_made_at_once_equals_one_that_was_appended() -> None:
    made = growth.filled(1500, np.random.default_rng(0), dim=3)
    appended = ReferenceSet(dim=3, bandwidth=growth.BANDWIDTH)
    appended.append(made.points, made.rewards)
    np.testing.assert_allclose(made.densities, appended.densities, rtol=1e-12)
    point = np.zeros((1, 3))
    made.append(point, [1.0])
    appended.append(point, [1.0])
    np.testing.assert_allclose(made.densities, appended.densities, rtol=1e-12)
    assert made.estimate(point).mass == pytest.approx(appended.estimate(point).mass)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_is_found_behind_a_fixed_cost(power: float) -> None:
    n = 2.0 ** np.arange(10, 18)
    seconds = 5e-5 + 2e-9 * n**power
    assert growth.exponent(n, seconds) == pytest.approx(power, abs=0.02)


def test_the_exponent_of_a_constant_is_zero() -> None:
    assert growth.exponent(2.0 ** np.arange(10, 18), np.full(8, 1e-4)) == pytest.approx(0, abs=1e-9)


def test_work_is_done_once_more_than_it_is_timed() -> None:
    done: list[int] = []
    assert growth.shortest(lambda: done.append(0), repeats=4) >= 0
    assert len(done) == 5


@pytest.mark.parametrize(
    ("found", "verdict"), [(1.2, "reproduced"), (0.6, "undecided"), (1.6, "not reproduced")]
)
def test_an_order_is_borne_out_by_a_near_exponent_and_refuted_by_one_near_another(
    found: float, verdict: str
) -> None:
    assert growth.of_order(found, 1) == verdict


def test_less_than_an_order_is_within_a_bound() -> None:
    assert growth.at_most_of_order(0.2, 1) == "reproduced"
    assert growth.at_most_of_order(1.4, 1) == "undecided"
    assert growth.at_most_of_order(2.0, 1) == "not reproduced"
