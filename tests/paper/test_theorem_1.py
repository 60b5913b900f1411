from pathlib import Path

import numpy as np
import pandas as pd

from tercet.paper import theorem_1
from tercet.paper.base import Tables
from tercet.paper.theorem_1_precision import COARSE, HALF, OURS, SINGLE, WEIGHTS


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
    drift, pattern = (
        [
            {"seed": seed, over: count, "references": 500, "arithmetic": name, "error": error * (1 + seed)}
            for seed in range(2)
            for count in counts
            for name, error in errors.items()
        ]
        for over, counts in (("visitors", (200, 20_000)), ("rounds", (5, 50)))
    )
    exact = [{"seed": 0, "n": 100, "error": 1e-14}]
    tables = {"growth": growth, "pattern": pattern, "drift": drift, "exact": exact}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def verdicts(tables: Tables) -> list[str]:
    return [claim.verdict for claim in theorem_1.claims(tables)]


def test_densities_equal_a_recompute_after_appends_and_removals() -> None:
    assert theorem_1.brute_force((0, 300)) < 1e-10


def test_claims_hold_for_a_linear_update_and_drifting_sums() -> None:
    assert verdicts(made_up())[:4] == ["reproduced"] * 4


def test_claims_fall_with_the_rows_that_bear_them() -> None:
    assert verdicts(made_up(append=2.0))[0] == "not reproduced"
    assert verdicts(made_up(append=1.4))[0] == "undecided"
    assert verdicts(made_up(recompute=1.0))[1] == "not reproduced"
    assert verdicts(made_up(single=1e-4))[3] == "not reproduced"
    assert verdicts(made_up(single=0.008))[3] == "undecided"  # seeds have .8 % and 1.6 %
    assert verdicts(made_up(points=1e-4))[4] == "not reproduced"
    assert verdicts(made_up(points=0.5))[4] == "reproduced"


def test_instability_is_judged_by_the_papers_pattern_and_not_by_the_extreme() -> None:
    tables = made_up(single=1e-4) | {"drift": made_up(single=0.5)["drift"]}
    claim = theorem_1.claims(tables)[3]
    assert claim.verdict == "not reproduced"
    assert "75.0%" in claim.note  # the extreme's median of 50 % and 100 %


def test_tables_are_drawn_as_read_from_files(tmp_path: Path) -> None:
    tables = made_up()
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    (picture,) = theorem_1.draw({name: pd.read_csv(tmp_path / name) for name in tables})
    assert picture.name == "theorem-1"
    assert "2 seeds" in picture.caption
