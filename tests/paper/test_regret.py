from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.paper import regret
from tercet.paper.base import Tables
from tercet.paper.regret import PLAIN, THEOREM, WIDE_KERNEL


def made_up(*, theorem: float = 0.5, wide: float = 1.0, plain: float = 0.5, bare: float = 1.0) -> Tables:
    """Tables in which regret grows with these powers of T."""
    powers = {THEOREM: theorem, WIDE_KERNEL: wide, PLAIN: plain}
    games = [
        {"kernel": name, "dim": dim, "seed": seed, "horizon": t, "regret": (1 + 0.1 * seed) * t**power}
        for name, power in powers.items()
        for dim in (1, 2)
        for seed in range(3)
        for t in (250, 500, 1000)
    ]
    lock_out = [
        {"prior": prior, "seed": seed, "horizon": t, "regret": (1 + 0.1 * seed) * t**power}
        for prior, power in ((0.0, bare), (1.0, 0.3))
        for seed in range(3)
        for t in regret.LOCK_OUT_STEPS
    ]
    lemma = [{"alpha": 1.0, "beta": 2.0, "lemma": 0.6, "stronger": 0.9}]
    tables = {"regret": games, "lock-out": lock_out, "lemma": lemma}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def verdicts(tables: Tables) -> list[str]:
    return [claim.verdict for claim in regret.claims(tables)]


def test_the_slope_of_a_power_is_its_exponent() -> None:
    horizons = np.array([100.0, 200.0, 400.0])
    table = np.outer([1.0, 2.0, 4.0], horizons**0.6)
    found = regret.slope_interval(horizons, table)
    np.testing.assert_allclose(found, 0.6)


def test_bounds_are_those_of_the_theorem() -> None:
    assert regret.bound(1) == pytest.approx(2 / 3)
    assert regret.bound(2) == pytest.approx(3 / 4)


def test_regret_grows_with_every_step_and_is_the_same_twice() -> None:
    path = regret.regrets(60, 2, 0.3, seed=1)
    assert (np.diff(path) >= 0).all()
    np.testing.assert_array_equal(path, regret.regrets(60, 2, 0.3, seed=1))


def test_a_fixed_kernel_reports_one_game_at_every_horizon() -> None:
    rows = regret.games((PLAIN, 1, 0, (20, 40)))
    path = regret.regrets(40, 1, regret.NARROW, 0, truncated=False)
    assert [row["regret"] for row in rows] == [path[19], path[39]]


def test_without_a_prior_regret_is_nearly_linear() -> None:
    bare, prior = ([row["regret"] for row in regret.lock_out((count, 0))] for count in (0.0, 1.0))
    # A third or so of the games are locked out, so that late regret goes on at a steady pace.
    assert bare[-1] / bare[-2] > 1.7 > prior[-1] / prior[-2]


def test_beta_tails_keep_below_both_bounds() -> None:
    grid = pd.DataFrame(regret.lemma())
    large = grid[(grid["alpha"] >= 1) & (grid["beta"] >= 1)]
    assert large["lemma"].max() <= 1
    assert grid["stronger"].max() <= 1


def test_claims_hold_for_slopes_below_the_bound() -> None:
    held = ["reproduced", "reproduced", "reproduced", "reproduced", "not reproduced", "reproduced"]
    assert verdicts(made_up()) == held


def test_claims_fall_with_the_rows_that_bear_them() -> None:
    assert verdicts(made_up(theorem=0.7))[:2] == ["not reproduced", "reproduced"]  # bounds: .67 and .75
    assert verdicts(made_up(wide=0.6))[2] == "not reproduced"
    assert verdicts(made_up(plain=0.9))[3] == "not reproduced"
    assert verdicts(made_up(bare=0.5))[4] == "reproduced"


def test_tables_are_drawn_as_read_from_files(tmp_path: Path) -> None:
    tables = made_up()
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    (picture,) = regret.draw({name: pd.read_csv(tmp_path / name) for name in tables})
    assert picture.name == "regret"
    assert "3 seeds" in picture.caption
