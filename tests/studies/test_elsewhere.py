"""The study of worlds that nobody tuned on: what they are, who can play, and verdicts by world."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.drift import INTEREST
from tercet.executors import Serial
from tercet.paper import press
from tercet.paper.base import Order
from tercet.studies import elsewhere
from tercet.studies.elsewhere import GREEDY, LINEAR, NAMES, OURS, UNIT, USUAL, WIDE, Small, worlds

WORLDS = tuple(worlds())
MEANS = {OURS: 10.0, GREEDY: 5.0, "LinTS": 12.0, "kNN-UCB": 12.0, UNIT: 40.0}


def table(
    means: dict[str, float], *, names: tuple[str, ...] = WORLDS, twice: dict[str, str] | None = None
) -> pd.DataFrame:
    """Regret in every world, ten times as much from one to the next; `twice` as much where a world says so."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "world": world,
            "policy": name,
            "seed": seed,
            "steps": elsewhere.STEPS,
            "regret": 10.0**number * mean * rng.normal(1, 0.01) * (1 + ((twice or {}).get(world) == name)),
        }
        for number, world in enumerate(names)
        for seed in range(4)
        for name, mean in means.items()
        if name not in LINEAR or world != WIDE
    )


def verdicts(final: pd.DataFrame) -> list[str]:
    return [claim.verdict for claim in elsewhere.claims({"final": final})]


@pytest.mark.parametrize(("data", "rows", "classes"), [("digits", 1797, 10), ("breast_cancer", 569, 2)])
def test_rows_of_a_small_table_are_logged_evenly_or_come_once(data: str, rows: int, classes: int) -> None:
    world = Small(data=data, logged=300).draw(np.random.default_rng(0))
    assert sorted([*world.logged, *world.evaluated]) == list(range(rows))
    history = world.history(np.random.default_rng(1))
    assert history.propensities is not None
    np.testing.assert_allclose(history.propensities, 1 / classes)
    assert len(list(world.rounds(np.random.default_rng(2)))) == rows - 300


def test_seeds_differ_and_are_the_same_twice() -> None:
    first, again, other = (
        Small(data="wine", logged=100).draw(np.random.default_rng(seed)).evaluated.tolist()
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_interests_spread_as_usual_whatever_the_number_of_features() -> None:
    recipes = elsewhere.drifts().values()
    spreads = {recipe.nature.interest * recipe.context_features**0.5 for recipe in recipes}
    assert list(spreads) == pytest.approx([INTEREST * USUAL**0.5] * len(spreads))


def test_everybody_plays_everywhere_but_linear_models_of_many_features() -> None:
    found = elsewhere.experiments(seeds=5)
    players = {world: set(part.policies) for part in found.values() for world in part.environments}
    assert tuple(players) == WORLDS
    assert players.pop(WIDE) == set(NAMES) - set(LINEAR)
    assert all(names == set(NAMES) for names in players.values())
    assert found["tables"].contender("LinTS").policy.features == "disjoint"
    assert found["drift"].contender("LinTS").policy.features == "shared"


def test_greedy_c3_is_no_rival() -> None:
    assert verdicts(table(MEANS)) == ["reached"] * (2 + len(WORLDS))


def test_every_world_has_the_same_weight() -> None:
    # In rewards the last world would outweigh all others.
    assert verdicts(table(MEANS, twice={WORLDS[-1]: OURS}))[:2] == ["reached"] * 2
    linear = elsewhere.claims({"final": table(MEANS | {"LinTS": 8.0})})
    assert [claim.verdict for claim in linear[:2]] == ["reached", "not reached"]
    assert "LinTS" in linear[1].ours


def test_a_world_in_which_a_rival_is_far_ahead_is_told_apart() -> None:
    final = table(MEANS, twice={"wine": OURS})
    by_name = {claim.paper.split(":")[0]: claim.verdict for claim in elsewhere.claims({"final": final})}
    assert by_name["Wine"] == "not reached"
    assert by_name["Digits"] == "reached"


def test_with_a_world_missing_there_is_no_mean_of_all() -> None:
    found = verdicts(table(MEANS, names=WORLDS[:3]))
    assert found == ["not testable"] * 2 + ["reached"] * 3 + ["not testable"] * (len(WORLDS) - 3)


def test_before_the_first_run_there_is_nothing_to_show(tmp_path: Path) -> None:
    tables = elsewhere.measure(Order(folder=tmp_path, seeds=1, finished=True))
    assert all(table.empty for table in tables.values())


@pytest.mark.slow
def test_a_quick_look_runs_from_worlds_to_verdicts(tmp_path: Path) -> None:
    press.run(elsewhere.ITEM, Order(folder=tmp_path, seeds=1, quick=True, executor=Serial()))
    assert (tmp_path / "elsewhere.png").exists()
    found = press.claims(elsewhere.ITEM, tmp_path)
    assert {claim.verdict for claim in found} == {"not testable", "undecided"}
