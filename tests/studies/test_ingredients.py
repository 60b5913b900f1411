"""The study of ingredients: one is taken back at a time, and judged in pairs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.executors import Serial
from tercet.paper import press
from tercet.paper.base import Order
from tercet.policies.c3 import C3
from tercet.studies import ingredients
from tercet.studies.ingredients import AIMS, DRIFTS, INSTEAD, MEAN, OURS, TABLES, WITHOUT
from tercet.words import words

WORLDS = (*DRIFTS, *TABLES)


def table(ratios: dict[str, float], *, seeds: int = 4, worlds: tuple[str, ...] = WORLDS) -> pd.DataFrame:
    """Regret of every policy as a multiple of C3's, which has another level in every world."""
    rng, other = np.random.default_rng(0), np.random.default_rng(1)
    return pd.DataFrame(
        {
            "world": world,
            "policy": name,
            "seed": seed,
            "regret": 10.0 ** (1 + number % 3) * ratio * rng.normal(1, 0.01),
            "covered": 0.9 - 0.1 * ratio * other.normal(1, 0.01),
            "error": 0.02 * ratio * other.normal(1, 0.01),
        }
        for number, world in enumerate(worlds)
        for seed in range(seeds)
        for name, ratio in ({OURS: 1.0} | ratios).items()
    )


def test_every_ingredient_is_an_option_that_differs_from_the_default() -> None:
    for experiment in ingredients.experiments(seeds=1).values():
        told = {name: words(experiment.contender(name).policy) for name in experiment.policies}
        assert list(told) == [OURS, *WITHOUT, *INSTEAD]
        assert told[OURS] == words(C3(progress=False))
        assert len(set(told.values())) == len(told)


def test_the_mean_of_all_gives_every_world_the_same_weight() -> None:
    final = table({"NWKR": 1.0})
    final.loc[(final["world"] == "seasonal") & (final["policy"] == "NWKR"), "regret"] *= 2
    costs = ingredients.costs(final).query("measure == 'regret'").set_index(["world", "policy"])["cost"]
    assert costs["seasonal", "NWKR"] == pytest.approx(100, abs=4)
    assert costs["conditional", "NWKR"] == pytest.approx(0, abs=4)
    assert costs[MEAN, "NWKR"] == pytest.approx(100 / len(WORLDS), abs=2)


def test_an_ingredient_is_worth_its_place_if_regret_is_surely_higher_without() -> None:
    final = table({"NWKR": 1.2, "bandwidth 1": 0.8, "no trees": 1.0})
    by_name = {claim.paper.split(":")[0]: claim for claim in ingredients.claims({"final": final})}
    assert by_name["NWKR"].verdict == "reached"
    assert "+20" in by_name["NWKR"].ours
    assert by_name["Bandwidth 1"].verdict == "not reached"
    assert by_name["No trees"].verdict == "undecided"
    assert by_name["One perceptron"].verdict == "not testable"


def test_an_ingredient_may_be_for_intervals_or_calibration_instead() -> None:
    final = table(dict.fromkeys(AIMS, 1.0))
    told = {claim.paper: claim.verdict for claim in ingredients.claims({"final": final})}
    assert told["Sharpness 1: taken back so, C3 has more regret in the mean of all worlds."] == "undecided"
    final.loc[final["policy"] == "sharpness 1", "covered"] = 0.99  # too wide is as wrong as too narrow
    final.loc[final["policy"] == "no recalibration", "error"] *= 2
    verdicts = [
        claim.verdict
        for claim in ingredients.claims({"final": final})
        if " has more regret" not in claim.paper
    ]
    assert verdicts == ["not reached", "undecided", "reached"]
    final.loc[final["policy"] == "sharpness 1", "covered"] = 0.5
    verdicts = [claim.verdict for claim in ingredients.claims({"final": final})]
    assert verdicts[-3:] == ["reached", "undecided", "reached"]


def test_two_seeds_or_a_missing_world_decide_nothing() -> None:
    few = ingredients.claims({"final": table({"NWKR": 1.2}, seeds=2)})
    part = ingredients.claims({"final": table({"NWKR": 1.2}, worlds=DRIFTS)})
    assert {claim.verdict for claim in few} == {"undecided", "not testable"}
    assert {claim.verdict for claim in part} == {"not testable"}


def test_costs_are_drawn_in_every_world() -> None:
    final = table(dict.fromkeys(WITHOUT | INSTEAD, 1.1) | {"NWKR": 30.0, "no trees": 0.01})
    picture, honesty = ingredients.ITEM.draw({"final": final, "costs": ingredients.costs(final)})
    assert len([axes for axes in honesty.figure.axes if axes.has_data()]) == 2
    panels = [axes for axes in picture.figure.axes if axes.has_data()]
    assert len(panels) == len(WORLDS) + 1
    assert [label.get_text() for label in panels[0].get_yticklabels()] == [*WITHOUT, *INSTEAD]


def test_before_the_first_run_there_is_nothing_to_pair(tmp_path: Path) -> None:
    tables = ingredients.measure(Order(folder=tmp_path, seeds=1, finished=True))
    assert all(table.empty for table in tables.values())


@pytest.mark.slow
def test_a_quick_look_runs_from_worlds_to_verdicts(tmp_path: Path) -> None:
    item = replace(ingredients.ITEM, check=lambda: None)  # a quick look needs no data sets
    press.run(item, Order(folder=tmp_path, seeds=1, quick=True, executor=Serial()))
    claims = press.claims(item, tmp_path)
    assert len(claims) == len(WITHOUT) + len(AIMS)
    assert {claim.verdict for claim in claims} == {"not testable"}
