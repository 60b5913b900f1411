"""The study of exploration: worlds of which the log tells little, and verdicts by pairs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.executors import Serial
from tercet.paper import press
from tercet.paper.base import Order
from tercet.studies import exploring
from tercet.studies.exploring import GREEDY, OURS, worlds

WORLDS = tuple(worlds())


def table(
    means: dict[str, float], *, names: tuple[str, ...] = WORLDS, twice: dict[str, str] | None = None
) -> pd.DataFrame:
    """Regret of every policy in every world, with little luck; `twice` as much where a world says so."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "world": world,
            "policy": name,
            "seed": seed,
            "steps": exploring.STEPS,
            "regret": mean * rng.normal(1, 0.01) * (2 if (twice or {}).get(world) == name else 1),
        }
        for world in names
        for seed in range(4)
        for name, mean in means.items()
    )


def verdicts(final: pd.DataFrame) -> list[str]:
    return [claim.verdict for claim in exploring.claims({"final": final})]


def test_half_of_the_groups_are_hardly_or_never_in_the_biased_logs() -> None:
    share = {}
    for name, recipe in worlds().items():
        world = recipe.draw(np.random.default_rng(0))
        history = world.history(np.random.default_rng(1))
        assert history.arm_ids is not None
        share[name] = (world.groups[history.arm_ids] < 3).mean() if len(history) else np.nan
    assert 0 < share["biased"] < 0.03
    assert 0 < share["biased, uncoupled"] < 0.03
    assert 0 < share["fixed menu, biased"] < 0.03
    assert share["new kinds"] < 0.002
    assert 0.3 < share["short log"] < 0.7
    assert np.isnan(share["cold"])


def test_exploring_pays_if_greedy_choice_surely_costs_more() -> None:
    final = table({OURS: 100.0, GREEDY: 120.0, "LinTS": 110.0})
    assert verdicts(final) == ["reached"] * (2 + len(WORLDS))
    assert "+20" in exploring.claims({"final": final})[0].ours


def test_a_world_in_which_it_does_not_pay_is_told_apart() -> None:
    final = table({OURS: 100.0, GREEDY: 120.0}, twice={"cold": OURS})
    by_name = {claim.paper.split(":")[0]: claim.verdict for claim in exploring.claims({"final": final})}
    assert by_name["Cold"] == "not reached"
    assert by_name["Biased"] == "reached"


def test_a_better_rival_or_no_difference_is_said() -> None:
    found = verdicts(table({OURS: 100.0, GREEDY: 100.0, "LinTS": 50.0}))
    assert found[0] == "undecided"
    assert found[1] == "not reached"


def test_with_a_world_missing_there_is_no_mean_of_all() -> None:
    found = verdicts(table({OURS: 100.0, GREEDY: 120.0}, names=WORLDS[:3]))
    assert found == ["not testable"] * 2 + ["reached"] * 3 + ["not testable"] * (len(WORLDS) - 3)


def test_before_the_first_run_there_is_nothing_to_show(tmp_path: Path) -> None:
    tables = exploring.measure(Order(folder=tmp_path, seeds=1, finished=True))
    assert all(table.empty for table in tables.values())


@pytest.mark.slow
def test_a_quick_look_runs_from_worlds_to_verdicts(tmp_path: Path) -> None:
    press.run(exploring.ITEM, Order(folder=tmp_path, seeds=1, quick=True, executor=Serial()))
    assert (tmp_path / "exploring.png").exists()
    found = press.claims(exploring.ITEM, tmp_path)
    assert {claim.verdict for claim in found} == {"not testable", "undecided"}
