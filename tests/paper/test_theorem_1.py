from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet import ReferenceSet
from tercet.paper import theorem_1
from tercet.paper.base import Tables
from tercet.paper.theorem_1 import COARSE, HALF, OURS, SINGLE, WEIGHTS


def made_up(
    *, append: float = 1.0, recompute: float = 2.0, single: float = 0.05, points: float = 1e-4
) -> Tables:
    """Tables with these exponents and errors."""
    sizes = 2.0 ** np.arange(10, 17)
    growth = [
        {"n": int(n), "what": what, "seconds": 6e-5 + 1e-9 * n**power}
        for what, power in {"append": append, "forget": append, "recompute": recompute}.items()
        for n in sizes
    ]
    errors = {OURS: 1e-12, SINGLE: single, WEIGHTS: single, HALF: 3.0, COARSE: points}
    drift = [
        {"seed": seed, "visitors": m, "arithmetic": name, "error": error * (1 + seed)}
        for seed in range(2)
        for m in (200, 20_000)
        for name, error in errors.items()
    ]
    exact = [{"seed": 0, "n": 100, "error": 1e-14}]
    tables = {"growth": growth, "drift": drift, "exact": exact}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def verdicts(tables: Tables) -> list[str]:
    return [claim.verdict for claim in theorem_1.claims(tables)]


def test_a_memory_made_at_once_equals_one_that_was_appended() -> None:
    made = theorem_1.filled(1500, np.random.default_rng(0), dim=3)
    appended = ReferenceSet(dim=3, bandwidth=theorem_1.BANDWIDTH)
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
    assert theorem_1.exponent(n, seconds) == pytest.approx(power, abs=0.02)


def test_the_exponent_of_a_constant_is_zero() -> None:
    assert theorem_1.exponent(2.0 ** np.arange(10, 18), np.full(8, 1e-4)) == pytest.approx(0, abs=1e-9)


def test_densities_stay_exact_in_float64_and_drift_in_float32() -> None:
    errors = theorem_1.after_visits((0, 2_000))
    assert errors[OURS] < 1e-9 < errors[SINGLE]
    assert errors[OURS] < errors[COARSE] < errors[HALF]


def test_densities_equal_a_recompute_after_appends_and_removals() -> None:
    assert theorem_1.brute_force((0, 300)) < 1e-10


def test_claims_hold_for_a_linear_update_and_drifting_sums() -> None:
    assert verdicts(made_up())[:4] == ["reproduced"] * 4


def test_claims_fall_with_the_rows_that_bear_them() -> None:
    assert verdicts(made_up(append=2.0))[0] == "not reproduced"
    assert verdicts(made_up(recompute=1.0))[1] == "not reproduced"
    assert verdicts(made_up(single=1e-4))[3] == "not reproduced"
    assert verdicts(made_up(points=1e-4))[4] == "not reproduced"
    assert verdicts(made_up(points=0.5))[4] == "reproduced"


def test_tables_are_drawn_as_read_from_files(tmp_path: Path) -> None:
    tables = made_up()
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    (picture,) = theorem_1.draw({name: pd.read_csv(tmp_path / name) for name in tables})
    assert picture.name == "theorem-1"
    assert "2 seeds" in picture.caption
