"""The study of arms that share nothing: its worlds, who plays, and verdicts by pairs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.executors import Serial
from tercet.loop import play
from tercet.paper import press
from tercet.paper.base import Order
from tercet.policies.base import fresh
from tercet.studies import alone
from tercet.studies.alone import COUNTER, GREEDY, GREEDY_COUNTER, NAMES, OURS, worlds

WORLDS = tuple(worlds())
MEANS = {OURS: 100.0, GREEDY: 120.0, COUNTER: 80.0, GREEDY_COUNTER: 150.0, "LinTS": 110.0}


def table(
    means: dict[str, float],
    *,
    names: tuple[str, ...] = WORLDS,
    twice: dict[str, str] | None = None,
    luck: float = 0.01,
) -> pd.DataFrame:
    """Regret of every policy in every world; `twice` as much where a world says so."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "world": world,
            "policy": name,
            "seed": seed,
            "steps": alone.STEPS,
            "regret": mean * rng.normal(1, luck) * (2 if (twice or {}).get(world) == name else 1),
        }
        for world in names
        for seed in range(4)
        for name, mean in means.items()
    )


def verdicts(final: pd.DataFrame) -> list[str]:
    return [claim.verdict for claim in alone.claims({"final": final})]


def test_worlds_are_what_their_names_say() -> None:
    shown = {}
    for name, recipe in worlds().items():
        history = recipe.draw(np.random.default_rng(0)).history(np.random.default_rng(1))
        shown[name] = np.bincount(np.asarray(history.arm_ids), minlength=recipe.arms).tolist()
    assert shown["biased log"] == [288, 3, 3, 3, 3]
    assert shown["biased log, 20 arms"] == [243] + [3] * 19
    assert min(shown["new arms"] + shown["changes"]) > 30
    assert shown["cold"] == [0] * 5
    assert shown["cold, 20 arms"] == [0] * 20


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (OURS, GREEDY)])
def test_rivals_play_arms_without_context(name: str) -> None:
    policy = alone.experiment(seeds=1).contender(name).policy
    for recipe in worlds().values():
        world = recipe.draw(np.random.default_rng(0))
        assert len(play(fresh(policy), world, np.random.default_rng(1), steps=5)) == 5


def test_only_exploration_tells_the_counters_apart() -> None:
    contenders = alone.experiment(seeds=1).policies
    drawing, greedy = contenders[COUNTER].policy, contenders[GREEDY_COUNTER].policy
    assert (drawing.explore, greedy.explore) == ("thompson", "greedy")
    assert (drawing.half_life, drawing.prior, drawing.floor) == (greedy.half_life, greedy.prior, greedy.floor)


def test_exploring_pays_if_greedy_choice_surely_costs_more() -> None:
    assert verdicts(table(MEANS)) == ["reached"] * (3 + len(WORLDS))
    found = alone.claims({"final": table(MEANS)})
    assert "Thompson per arm has surely less regret than greedy per arm" in found[0].paper
    assert "+86.7" in found[0].ours
    assert "+20" in found[1].ours
    assert "of LinTS" in found[2].ours  # the yardstick, which is lower, is no rival


def test_a_world_in_which_it_does_not_pay_is_told_apart() -> None:
    found = alone.claims({"final": table(MEANS, twice={"cold": OURS})})
    by_name = {claim.paper.split(":")[0]: claim.verdict for claim in found}
    assert by_name["Cold"] == "not reached"
    assert by_name["Biased log"] == "reached"


def test_a_better_rival_or_no_difference_is_said() -> None:
    found = verdicts(table(MEANS | {GREEDY: 100.0, "LinTS": 50.0, GREEDY_COUNTER: 60.0}, luck=0.0))
    assert found[:3] == ["not reached", "undecided", "not reached"]


def test_with_a_world_missing_there_is_no_mean_of_all() -> None:
    found = verdicts(table(MEANS, names=WORLDS[:3]))
    assert found == ["not testable"] * 3 + ["reached"] * 3 + ["not testable"] * (len(WORLDS) - 3)


def test_before_the_first_run_there_is_nothing_to_show(tmp_path: Path) -> None:
    tables = alone.measure(Order(folder=tmp_path, seeds=1, finished=True))
    assert all(table.empty for table in tables.values())


@pytest.mark.slow
def test_a_quick_look_runs_from_worlds_to_verdicts(tmp_path: Path) -> None:
    press.run(alone.ITEM, Order(folder=tmp_path, seeds=1, quick=True, executor=Serial()))
    assert (tmp_path / "alone.png").exists()
    found = press.claims(alone.ITEM, tmp_path)
    assert {claim.verdict for claim in found} == {"not testable", "undecided"}
