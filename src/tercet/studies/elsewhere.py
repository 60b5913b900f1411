"""Worlds that nobody tuned on: other tables, other speeds of drift, few rows, many arms, many features."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from tercet.environments.base import Scenario
from tercet.environments.classification import Classification, ClassWorld
from tercet.environments.drift import HEIGHT, INTEREST, Drift, Nature
from tercet.experiment import Experiment
from tercet.paper.base import Claim, Item, Order, Picture, Tables
from tercet.paper.openml_pictures import seeds_words
from tercet.roster import roster
from tercet.studies import drift_pictures
from tercet.studies.catalogue import STUDIES
from tercet.studies.expectations import at_most, by_seed, lowest, scaled
from tercet.studies.regret import by_world

if TYPE_CHECKING:
    import pandas as pd

OURS, GREEDY, UNIT = "C3", "C3, greedy", "uniform"
LINEAR = ("LinUCB", "LinTS", "SquareCB")
NAMES = (OURS, GREEDY, *LINEAR, "LightGBM, refitted", "Vowpal Wabbit squarecb", "kNN-UCB", UNIT)
QUICK = (OURS, GREEDY, "LinTS", UNIT)
QUICK_WORLDS = ("wine", "short log")
WIDE = "800 features"
LOGGED, FEW, STEPS, STILL_STEPS, QUICK_STEPS = 3000, 300, 2000, 1000, 200
USUAL = 4  # context features, for which `INTEREST` was picked
NEAR = 10.0  # per cent


@final
@dataclass(frozen=True, kw_only=True)
class Small:
    """A table of few rows as a bandit: `logged` of them are the history, of even draws; the others come once.

    >>> world = Small(data="wine", logged=100).draw(np.random.default_rng(0))
    >>> len(world.logged), len(world.evaluated)
    (100, 78)
    """

    data: str
    logged: int

    def draw(self, rng: np.random.Generator) -> ClassWorld:
        """Draw the logged rows and arms, and the order of the others."""
        world = Classification(data=self.data, logging="uniform", history=self.logged).draw(rng)
        others = np.setdiff1d(np.arange(len(world.table)), world.logged)
        return replace(world, evaluated=rng.permutation(others))


def small() -> dict[str, Small]:
    """Return the tables, all of which come with scikit-learn."""
    return {
        "digits": Small(data="digits", logged=300),
        "breast cancer": Small(data="breast_cancer", logged=100),
        "wine": Small(data="wine", logged=100),
    }


def drifts() -> dict[str, Drift]:
    """Return the other worlds: four change at speeds that the study of drift has not, one after its log."""
    return {
        "fast waves": Drift(kind="seasonal", period=500, logged=LOGGED, steps=STEPS),
        "slow waves": Drift(kind="seasonal", period=8000, logged=LOGGED, steps=STEPS),
        "frequent changes": Drift(kind="abrupt", interval=150, logged=LOGGED, steps=STEPS),
        "rare changes": Drift(kind="abrupt", interval=2000, logged=LOGGED, steps=STEPS),
        "late changes": Drift(kind="abrupt", logged=LOGGED, still=LOGGED, steps=STEPS),
        "short log": Drift(kind="stationary", logged=FEW, steps=STILL_STEPS),
        "500 arms": Drift(
            kind="stationary", alive=500, groups=50, offered=100, logged=LOGGED, steps=STILL_STEPS
        ),
        "2 features": _featured(1),
        WIDE: _featured(400),
    }


def _featured(count: int) -> Drift:
    """Return a world with so many features of contexts and as many of arms, whose chances spread as usual."""
    nature = Nature(height=HEIGHT, interest=INTEREST * (USUAL / count) ** 0.5)
    return Drift(kind=nature, context_features=count, arm_features=count, logged=LOGGED, steps=STILL_STEPS)


def worlds() -> dict[str, Scenario]:
    """Return all worlds."""
    return {**small(), **drifts()}


def experiments(*, seeds: int, quick: bool = False) -> dict[str, Experiment]:
    """Return who plays where; no linear model has room for all products of 800 features."""
    narrow = drifts()
    wide = {WIDE: narrow.pop(WIDE)}
    names = QUICK if quick else NAMES
    fewer = tuple(name for name in names if name not in LINEAR)
    found = {
        "tables": _experiment(small(), names, seeds, quick, one_hot=True),
        "drift": _experiment(narrow, names, seeds, quick, one_hot=False),
    }
    return found if quick else found | {"wide": _experiment(wide, fewer, seeds, quick, one_hot=False)}


def _experiment(
    stages: Mapping[str, Scenario], names: tuple[str, ...], seeds: int, quick: bool, *, one_hot: bool
) -> Experiment:
    everybody = roster(one_hot=one_hot)
    return Experiment(
        policies={name: everybody[name] for name in names},
        environments={name: stages[name] for name in stages if not quick or name in QUICK_WORLDS},
        seeds=seeds,
        steps=QUICK_STEPS if quick else None,
    )


def measure(order: Order) -> Tables:
    """Play every world; keep the regret of each run, and curves of regret."""
    parts = experiments(seeds=order.seeds, quick=order.quick)
    return by_world(order.play(name, part) for name, part in parts.items())


def claims(tables: Tables) -> list[Claim]:
    """Judge the mean of all worlds, each with the same weight, then each; greedy C3 is no rival."""
    rivals = tables["final"][tables["final"]["policy"] != GREEDY]
    relative = scaled(rivals, by=UNIT) if set(worlds()) == set(rivals["world"]) else rivals[:0]
    everywhere = relative[~relative["policy"].isin(LINEAR)]
    elsewhere = relative[relative["world"] != WIDE]
    best = "C3 has the lowest regret of all but its own variants, or ties with the best."
    return [
        lowest(
            f"In the mean of all worlds, linear rivals aside, {best}", by_seed(everywhere, ["world"]), OURS
        ),
        lowest(f"In the mean of all worlds but that of {WIDE} {best}", by_seed(elsewhere, ["world"]), OURS),
        *(_near(rivals[rivals["world"] == world], world) for world in worlds()),
    ]


def _near(rows: "pd.DataFrame", world: str) -> Claim:
    says = (
        f"{world.capitalize()}: C3 has at most {NEAR:g} % more regret than the best that is no variant of it."
    )
    return at_most(says, by_seed(rows, ["world"]), OURS, over=None, per_cent=NEAR)


def draw(tables: Tables) -> list[Picture]:
    """Draw the worlds that were played."""
    counts = tables["final"].groupby(["world", "policy"])["seed"].nunique()
    caption = (
        f"Cumulative dynamic regret in worlds that nobody tuned on, {seeds_words(counts)}; bands are 1.96 "
        "standard errors of the mean. Of the tables 300 (digits) or 100 rows are logged, and all others "
        "come once each. Waves have periods of 500 and 8,000 steps; all is redrawn every 150 (frequent) or "
        "2,000 steps (rare), or every 500, but for the first time 500 steps after the log (late). The other "
        f"worlds stand still. Logs have {LOGGED:,} rows, the short one {FEW}; logged arms are drawn evenly. "
        "Of 500 arms 100 are on offer. With 800 features linear models, which take every product of two, do "
        "not play. Nobody is tuned."
    )
    return [
        Picture(name="elsewhere", figure=drift_pictures.panels(tables["curves"], "world"), caption=caption)
    ]


ITEM = Item(
    name="elsewhere",
    title="Worlds that nobody tuned on",
    where="docs/studies.md",
    says="Where no setting was ever picked, C3 has the least regret in the mean of all worlds, and in each "
    "of them it is near the best.",
    seeds=5,
    quick_seeds=1,
    measure=measure,
    draw=draw,
    claims=claims,
    catalogue=STUDIES,
    deviations=(
        "In the means every world has the same weight: regret counts as a share of uniform choice's there.",
        "The tables come with scikit-learn and are small. All that is not logged is played, once: 1,497 rows "
        "of digits, 469 of breast cancer and 78 of wine, which are few to tell policies apart on.",
        "Linear rivals take every product of a context and an arm feature. With 800 features they do not "
        "play: a matrix of 160,801 columns would take 200 GB.",
        "The weight of a context feature shrinks with the number of features, so that chances spread as in "
        "the study of drift.",
        "Late changes came in with the look for drift after fit, which was tried on such worlds with other "
        "seeds and logs of 2,000 rows.",
        "What is no table is the simulation of the study of drift, at other speeds and of other sizes.",
        "Nobody is tuned.",
    ),
)
