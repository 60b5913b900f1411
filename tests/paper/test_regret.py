from pathlib import Path

import pandas as pd

from tercet.paper import regret
from tercet.paper.base import Tables
from tercet.paper.regret_games import LOCK_OUT_STEPS, PLAIN, THEOREM, WIDE_KERNEL


def made_up(
    *, theorem: float = 0.5, wide: float = 1.0, plain: float = 0.5, bare: float = 1.0, noise: float = 0.0
) -> Tables:
    """Tables in which regret grows with these powers of T, which differ by the noise from seed to seed."""
    powers = {THEOREM: theorem, WIDE_KERNEL: wide, PLAIN: plain}
    games = [
        {
            "kernel": name,
            "dim": dim,
            "seed": seed,
            "horizon": t,
            "regret": (1 + 0.1 * seed) * t ** (power + noise * (seed - 1)),
        }
        for name, power in powers.items()
        for dim in (1, 2)
        for seed in range(3)
        for t in (250, 500, 1000)
    ]
    lock_out = [
        {
            "prior": prior,
            "seed": seed,
            "horizon": t,
            "regret": (1 + 0.1 * seed) * t ** (power + noise * (seed - 1)),
        }
        for prior, power in ((0.0, bare), (1.0, 0.3))
        for seed in range(3)
        for t in LOCK_OUT_STEPS
    ]
    lemma = [{"alpha": 1.0, "beta": 2.0, "lemma": 0.6, "stronger": 0.9}]
    tables = {"regret": games, "lock-out": lock_out, "lemma": lemma}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def verdicts(tables: Tables) -> list[str]:
    return [claim.verdict for claim in regret.claims(tables)]


def test_claims_hold_for_slopes_below_the_bound() -> None:
    held = ["reproduced", "reproduced", "reproduced", "reproduced", "not reproduced", "reproduced"]
    assert verdicts(made_up()) == held


def test_claims_fall_with_the_rows_that_bear_them() -> None:
    # Bounds, with their log factors over these T, have slopes of .72 and .79.
    assert verdicts(made_up(theorem=0.76))[:2] == ["not reproduced", "reproduced"]
    assert verdicts(made_up(wide=0.6))[2] == "not reproduced"
    assert verdicts(made_up(plain=0.9))[3] == "not reproduced"
    assert verdicts(made_up(bare=0.5))[4] == "reproduced"


def test_slopes_that_straddle_a_bound_decide_nothing() -> None:
    found = verdicts(made_up(theorem=0.75, wide=0.75, plain=0.75, bare=0.85, noise=0.2))
    assert found[:5] == ["undecided"] * 5


def test_what_the_paper_only_implies_says_so() -> None:
    papers = [claim.paper.startswith("Implied: ") for claim in regret.claims(made_up())]
    assert papers == [False, False, True, True, True, False]


def test_tables_are_drawn_as_read_from_files(tmp_path: Path) -> None:
    tables = made_up()
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    (picture,) = regret.draw({name: pd.read_csv(tmp_path / name) for name in tables})
    assert picture.name == "regret"
    assert "3 seeds" in picture.caption
