"""The study of long histories: the worlds of the study of sizes, and verdicts by pairs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.executors import Serial
from tercet.paper.base import Order
from tercet.studies import long, sizes
from tercet.studies.long import OURS, WITHOUT, WORLDS


def table(means: dict[str, float], *, worlds: tuple[str, ...] = WORLDS) -> pd.DataFrame:
    """Regret with little luck, ten times as much in each world as in the one before."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "world": world,
            "policy": name,
            "seed": seed,
            "steps": 1000,
            "regret": mean * 10**number * rng.normal(1, 0.01),
        }
        for number, world in enumerate(worlds)
        for seed in range(4)
        for name, mean in means.items()
    )


def verdicts(final: pd.DataFrame) -> list[str]:
    return [claim.verdict for claim in long.claims({"final": final})]


def test_what_is_left_out_pays_if_without_it_there_is_surely_more_regret() -> None:
    trees, rivals, *others = WITHOUT
    assert verdicts(table({OURS: 2.0} | dict.fromkeys(WITHOUT, 2.4))) == ["reached"] * 5 * len(WITHOUT)
    mixed = verdicts(table({OURS: 2.0, trees: 1.6, rivals: 2.0} | dict.fromkeys(others, 2.4)))
    assert mixed == ["not reached"] * 5 + ["undecided"] * 5 + ["reached"] * 5 * len(others)


def test_with_a_world_missing_there_is_no_mean_of_all() -> None:
    found = verdicts(table({OURS: 2.0} | dict.fromkeys(WITHOUT, 2.4), worlds=WORLDS[:2]))
    assert found == ["not testable", "reached", "reached", "not testable", "not testable"] * len(WITHOUT)


def test_runs_of_the_study_of_sizes_serve_here() -> None:
    theirs = sizes.experiments(seeds=2)
    for name, experiment in long.experiments(seeds=2).items():
        mine = [experiment.describe(job) for job in experiment.jobs() if job.policy == OURS]
        them = [theirs[name].describe(job) for job in theirs[name].jobs() if job.policy == OURS]
        assert len(mine) == 2
        assert all(one in them for one in mine)


@pytest.mark.slow
def test_a_quick_look_is_played_drawn_and_judged(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(4000) % 3
    np.savez(tmp_path / "shuttle.npz", X=labels[:, None] + rng.normal(0, 0.1, (4000, 2)), y=labels)
    order = Order(folder=tmp_path / "out", seeds=1, quick=True, executor=Serial())
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TERCET_DATA", str(tmp_path))
        tables = long.measure(order)
    assert sorted(tables["final"]["policy"]) == sorted([OURS, *WITHOUT])
    (picture,) = long.draw(tables)
    assert "1 seed" in picture.caption
    assert verdicts(tables["final"]) == ["not testable", "undecided", *["not testable"] * 3] * len(WITHOUT)
