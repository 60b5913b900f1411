from pathlib import Path

import pandas as pd
import pytest

from tercet.executors import Serial
from tercet.paper import theorem_2
from tercet.paper import theorem_2_world as world
from tercet.paper.base import Order, Tables


def made_up(
    *,
    iwkr: float = -0.4,
    gain: float = 2.0,
    falling: float = 1.0,
    left: float = 0.01,
    weights: float = 0.0,
    seeds: int = 4,
) -> Tables:
    """Tables in which IWKR's error falls with this power, NWKR's is `gain` times as large, and so on.

    With a bandwidth that falls NWKR's error is `falling` times as large.
    """
    worse = {("NWKR", "fixed"): gain, ("NWKR", "decreasing"): falling}
    terms = world.formulas(world.SMALL)
    apart = abs(terms["NWKR"] - terms["IWKR"])
    limit = [
        {
            "bandwidth": bandwidth,
            "estimator": name,
            "bias": terms[name] + (left * apart if name == "IWKR" else 0),
        }
        for bandwidth in world.BANDWIDTHS
        for name in world.ESTIMATORS
    ]
    bias = [row | {"n": 400, "seed": seed} for row in limit for seed in range(3)]
    errors = [
        {
            "sampling": kind, "n": n, "rule": rule, "estimator": name, "seed": seed,
            "squared_error": (1 + 0.01 * seed) * (worse.get((name, rule), 1) * 0.1 * n**iwkr) ** 2,
        }
        for kind in world.SAMPLINGS
        for n in (100, 400, 1600)
        for rule in ("fixed", "decreasing")
        for name in world.ESTIMATORS
        for seed in range(seeds)
    ]  # fmt: skip
    weighed = [
        {"seed": seed, "n": n, "density": 0.1 * n ** (weights + 0.01 * seed), "smoothed": n**-0.5}
        for n in (100, 400, 1600)
        for seed in range(seeds)
    ]
    tables = {"limit": limit, "bias": bias, "errors": errors, "weights": weighed}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def verdicts(tables: Tables) -> list[str]:
    return [claim.verdict for claim in theorem_2.claims(tables)]


def test_claims_hold_where_the_weights_work() -> None:
    assert verdicts(made_up()) == ["reproduced", "reproduced", "reproduced", "not reproduced"]


def test_claims_fall_with_the_rows_that_bear_them() -> None:
    assert verdicts(made_up(iwkr=0.0))[0] == "not reproduced"
    assert verdicts(made_up(left=0.5))[1] == "not reproduced"
    assert verdicts(made_up(gain=0.9))[2] == "not reproduced"
    assert verdicts(made_up(gain=1.0))[2] == "not reproduced"  # no gain at all
    assert verdicts(made_up(weights=-0.4))[3] == "reproduced"


def test_one_seed_decides_nothing_about_weights() -> None:
    assert verdicts(made_up(seeds=1))[2:] == ["undecided", "undecided"]


@pytest.mark.parametrize(("falling", "told"), [(1.02, True), (1.5, False)])
def test_both_rules_of_the_bandwidth_are_told(falling: float, told: bool) -> None:
    claim = theorem_2.claims(made_up(falling=falling))[2]
    assert "skewed 0.50" in claim.ours
    assert f"skewed {1 / falling:.2f}" in claim.ours
    assert ("hardly a difference" in claim.ours) == told


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
