from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from tercet.paper import theorem_1_precision as precision
from tercet.paper.theorem_1_precision import COARSE, HALF, NAMES, OURS, SINGLE, WEIGHTS


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.DataFrame(precision.pattern((0, 400)))


def last_errors(rows: pd.DataFrame) -> Mapping[str, float]:
    return rows.groupby("arithmetic")["error"].max().to_dict()


def test_densities_stay_exact_in_float64_and_drift_in_float32_after_visits() -> None:
    errors = precision.after_visits((0, 2_000))
    assert errors[OURS] < 1e-9 < errors[SINGLE]
    assert errors[OURS] < errors[COARSE] < errors[HALF]


def test_the_pattern_has_a_row_for_each_arithmetic_and_number_of_rounds(rows: pd.DataFrame) -> None:
    assert set(rows["arithmetic"]) == set(NAMES)
    assert rows.groupby("arithmetic")["rounds"].apply(list).to_list() == [list(precision.ROUNDS)] * len(NAMES)


def test_the_pattern_ends_with_as_many_references_as_it_drops_and_appends_in_balance(
    rows: pd.DataFrame,
) -> None:
    balance = precision.APPENDED / precision.DROPPED
    # The count is a sum of survivals: its standard deviation is below √balance; five of them.
    assert rows.loc[rows["rounds"] == 50, "references"].iloc[0] == pytest.approx(
        balance, abs=5 * balance**0.5
    )


def test_fewer_digits_err_more_in_the_pattern(rows: pd.DataFrame) -> None:
    errors = last_errors(rows)
    assert errors[OURS] < 1e-11
    assert errors[OURS] < errors[SINGLE] < errors[HALF]
    assert errors[OURS] < errors[WEIGHTS] < errors[HALF]


@pytest.mark.parametrize("weights", [False, True])
def test_kept_densities_equal_a_recompute_in_float64(weights: bool) -> None:
    rng = np.random.default_rng(3)
    points = precision.crowd(40, rng)
    plan = list(precision.rounds(rng, 40, max(precision.ROUNDS)))
    way = precision.Arithmetic(kind=np.float64, weights=weights)
    found = precision._rounds(points, plan, way)[0]
    for one in plan[: precision.ROUNDS[0]]:
        points = np.vstack([points[~one.gone], one.new])
    np.testing.assert_allclose(found, precision.recomputed(points), rtol=1e-12)
