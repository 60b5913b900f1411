"""Arms that share nothing: the textbook's case, in which only exploration finds the best one."""

from typing import Any

from tercet.environments.separate import Separate
from tercet.experiment import Contender, Experiment
from tercet.paper.base import Claim, Item, Order, Picture, Tables
from tercet.paper.openml_pictures import seeds_words
from tercet.policies.simple import ArmThompson
from tercet.roster import roster
from tercet.studies import drift_pictures
from tercet.studies.catalogue import STUDIES
from tercet.studies.expectations import by_seed, complete, lowest, pays
from tercet.studies.regret import by_world

OURS, GREEDY = "C3", "C3, greedy"
COUNTER, GREEDY_COUNTER = "Thompson per arm", "greedy per arm"
NAMES = (OURS, GREEDY, COUNTER, GREEDY_COUNTER, "LinUCB", "LinTS", "SquareCB", "uniform")
QUICK = (OURS, GREEDY, COUNTER, GREEDY_COUNTER, "uniform")
QUICK_WORLDS = ("biased log", "cold")
LOGGED, USUAL, MANY, ARRIVING, INTERVAL = 300, 3, 20, 200, 400
STEPS, LONGER, QUICK_STEPS = 1000, 1200, 200


def worlds() -> dict[str, Separate]:
    """Return the worlds: five arms, or many, are always on offer, and no features tell of them."""
    biased: dict[str, Any] = {"logged": LOGGED, "usual": USUAL, "steps": STEPS}
    return {
        "biased log": Separate(**biased),
        f"biased log, {MANY} arms": Separate(arms=MANY, **biased),
        "new arms": Separate(logged=LOGGED, arriving=ARRIVING, steps=STEPS),
        "changes": Separate(logged=LOGGED, interval=INTERVAL, steps=LONGER),
        "cold": Separate(logged=0, steps=STEPS),
        f"cold, {MANY} arms": Separate(arms=MANY, logged=0, steps=STEPS),
    }


def experiment(*, seeds: int, quick: bool = False) -> Experiment:
    """Return who plays where."""
    everybody = roster(one_hot=True) | {GREEDY_COUNTER: Contender(policy=ArmThompson(explore="greedy"))}
    stages = worlds()
    return Experiment(
        policies={name: everybody[name] for name in (QUICK if quick else NAMES)},
        environments={name: stages[name] for name in (QUICK_WORLDS if quick else stages)},
        seeds=seeds,
        steps=QUICK_STEPS if quick else None,
    )


def measure(order: Order) -> Tables:
    """Play every world; keep the regret of each run, and curves of regret."""
    return by_world([order.play("worlds", experiment(seeds=order.seeds, quick=order.quick))])


def claims(tables: Tables) -> list[Claim]:
    """Judge the mean of all worlds, then each; who is told that nothing is shared is no rival."""
    final = tables["final"]
    everywhere, mean = complete(final, worlds()), "In the mean of all worlds"
    rivals = everywhere[everywhere["policy"] != COUNTER]
    greedy: Any = {"than": GREEDY, "called": "greedy C3"}
    rank = f"{mean} C3 has the lowest regret of all but {COUNTER}, or ties with the best."
    return [
        pays(everywhere, mean, COUNTER, than=GREEDY_COUNTER),
        pays(everywhere, mean, OURS, **greedy),
        lowest(rank, by_seed(rivals, ["world"]), OURS),
        *(
            pays(final[final["world"] == world], f"{world.capitalize()}:", OURS, **greedy)
            for world in worlds()
        ),
    ]


def draw(tables: Tables) -> list[Picture]:
    """Draw the worlds that were played."""
    counts = tables["final"].groupby(["world", "policy"])["seed"].nunique()
    caption = (
        f"Cumulative dynamic regret where arms have nothing in common, {seeds_words(counts)}; bands are 1.96 "
        f"standard errors of the mean. Five arms, or {MANY}, are on offer at every step, without features or "
        f"context. A biased log has {LOGGED} rows and shows each arm but one {USUAL} times; a cold start has "
        f"none. The other logs have {LOGGED} rows of evenly drawn arms. Then the oldest arm is replaced "
        f"every {ARRIVING} steps (new arms), or all chances are redrawn every {INTERVAL} (changes). "
        "Nobody is tuned."
    )
    return [Picture(name="alone", figure=drift_pictures.panels(tables["curves"], "world"), caption=caption)]


ITEM = Item(
    name="alone",
    title="Where nothing is shared",
    where="docs/studies.md",
    says="Where arms have nothing in common and all are always on offer, C3's draws pay: it has less regret "
    "than greedy C3, and than all that are not made for such arms.",
    seeds=20,
    quick_seeds=1,
    measure=measure,
    draw=draw,
    claims=claims,
    catalogue=STUDIES,
    deviations=(
        "The worlds are simulations of ours, of arms without features: that nothing is shared is all that "
        "there is to know of them.",
        "Thompson per arm is given that nothing is shared, which C3 has to find out: it is the yardstick, "
        "and no rival.",
        "Linear policies keep one model an arm, which without a context is a mean an arm: they are given it "
        "too, but count as rivals.",
        "Nobody is tuned.",
    ),
)
