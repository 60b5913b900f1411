"""Where exploration matters: logs that hardly showed half of the arms, short ones, and none at all."""

from typing import Any

from tercet.environments.drift import HEIGHT, Drift, Nature
from tercet.experiment import Experiment
from tercet.paper.base import Claim, Item, Order, Picture, Tables
from tercet.paper.openml_pictures import seeds_words
from tercet.roster import Group, roster
from tercet.studies import drift_pictures
from tercet.studies.catalogue import STUDIES
from tercet.studies.expectations import by_seed, complete, lowest, pays
from tercet.studies.regret import by_world

OURS, GREEDY = "C3", "C3, greedy"
NAMES = (
    OURS,
    GREEDY,
    "LinUCB",
    "LinTS",
    "SquareCB",
    "LightGBM, refitted",
    "Vowpal Wabbit squarecb",
    "kNN-UCB",
    "Thompson per arm",
    "uniform",
)
QUICK = (OURS, GREEDY, "LinTS", "uniform")
QUICK_WORLDS = ("biased", "cold")
LOGGED, FEW, STEPS, QUICK_STEPS = 1500, 100, 1500, 200
SELDOM, NEVER = 0.01, 1e-6
FOREVER = 10**9


def worlds(*, steps: int = STEPS) -> dict[str, Drift]:
    """Return the worlds: all but one are stationary, and logs neglect half of the groups in four.

    Ten of thirty arms are offered in turn, so that anybody tries some; a fixed menu has the same six always.
    """
    own = Nature(height=HEIGHT, coupling="none")
    biased: dict[str, Any] = {"logged": LOGGED, "steps": steps, "neglected": 3}
    menu: dict[str, Any] = {"kind": Nature(height=HEIGHT, lifetime=FOREVER), "alive": 6, "offered": 6}
    return {
        "biased": Drift(kind="stationary", seldom=SELDOM, **biased),
        "biased, uncoupled": Drift(kind=own, seldom=SELDOM, **biased),
        "new kinds": Drift(kind="stationary", seldom=NEVER, **biased),
        "short log": Drift(kind="stationary", logged=FEW, steps=steps),
        "cold": Drift(kind="stationary", logged=0, steps=steps),
        "short log, changes": Drift(kind="abrupt", logged=FEW, steps=steps),
        "fixed menu, biased": Drift(seldom=SELDOM, **menu, **biased),
        "fixed menu, cold": Drift(logged=0, steps=steps, **menu),
    }


def experiment(*, seeds: int, quick: bool = False) -> Experiment:
    """Return who plays where."""
    everybody: Group = roster(one_hot=False)
    stages = worlds(steps=QUICK_STEPS if quick else STEPS)
    return Experiment(
        policies={name: everybody[name] for name in (QUICK if quick else NAMES)},
        environments={name: stages[name] for name in (QUICK_WORLDS if quick else stages)},
        seeds=seeds,
    )


def measure(order: Order) -> Tables:
    """Play every world; keep the regret of each run, and curves of regret."""
    return by_world([order.play("worlds", experiment(seeds=order.seeds, quick=order.quick))])


def claims(tables: Tables) -> list[Claim]:
    """Judge the mean of all worlds, then each."""
    final = tables["final"]
    everywhere = complete(final, worlds())
    greedy: Any = {"than": GREEDY, "called": "greedy C3"}
    rank = "In the mean of all worlds C3 has the lowest regret of all, or ties with the best."
    return [
        pays(everywhere, "In the mean of all worlds", OURS, **greedy),
        lowest(rank, by_seed(everywhere, ["world"]), OURS),
        *(
            pays(final[final["world"] == world], f"{world.capitalize()}:", OURS, **greedy)
            for world in worlds()
        ),
    ]


def draw(tables: Tables) -> list[Picture]:
    """Draw the worlds that were played."""
    counts = tables["final"].groupby(["world", "policy"])["seed"].nunique()
    caption = (
        f"Cumulative dynamic regret where much is unknown, {seeds_words(counts)}; bands are 1.96 standard "
        f"errors of the mean. Biased: of {LOGGED:,} logged rows about one in a hundred shows an arm of half "
        "of the groups; uncoupled: arms of a group have nothing in common but their features. New kinds: "
        f"none does. Short logs have {FEW} rows, of evenly drawn arms; a cold start has none. With changes, "
        "all is redrawn every 500 steps. On a fixed menu all arms, one a group, are offered at every step, "
        "elsewhere ten of thirty in turn. Nobody is tuned."
    )
    return [
        Picture(name="exploring", figure=drift_pictures.panels(tables["curves"], "world"), caption=caption)
    ]


ITEM = Item(
    name="exploring",
    title="Where exploration matters",
    where="docs/studies.md",
    says="Where a log is short, biased or missing, C3's draws pay: it has less regret than greedy C3, and "
    "than all others.",
    seeds=30,  # what exploration prevents is rare, and dear
    quick_seeds=1,
    measure=measure,
    draw=draw,
    claims=claims,
    catalogue=STUDIES,
    deviations=(
        "The worlds are simulations of ours: those of the drift study with other logs.",
        "Nobody is tuned: of so little history there is nothing to choose settings on.",
        "C3 as in the paper does not play: it can not start without a history to train on.",
    ),
)
