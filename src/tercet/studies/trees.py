"""What random trees add to networks where the history is long."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.environments.classification import Classification
from tercet.experiment import Contender, Experiment
from tercet.paper import openml, style
from tercet.paper.base import Claim, Item, Order, Picture, Tables
from tercet.paper.openml_pictures import TITLES, seeds_words
from tercet.policies.c3 import C3
from tercet.statistics import interval
from tercet.studies.catalogue import STUDIES
from tercet.studies.expectations import complete, pays, scaled
from tercet.studies.sizes_claims import LIMITS, MOST

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

OURS, WITHOUT = "C3", "C3, no trees"
WORLDS = tuple(LIMITS)
QUICK_WORLDS, QUICK_HISTORY = ("shuttle",), 1_000
APART = 0.12  # of a world's place in the picture, to either side


def experiments(*, seeds: int, quick: bool = False) -> dict[str, Experiment]:
    """Return who plays where, by name; runs of the study of sizes can serve here."""
    size = QUICK_HISTORY if quick else MOST
    return {
        f"label-aware-{data}": Experiment(
            policies={
                OURS: openml.contenders(data)[OURS],
                WITHOUT: Contender(policy=C3(trees=0, progress=False)),
            },
            environments={str(size): Classification(data=data, protocol="scripts", history=size)},
            seeds=seeds,
            steps=openml.QUICK_STEPS if quick else openml.STEPS,
        )
        for data in (QUICK_WORLDS if quick else WORLDS)
    }


def measure(order: Order) -> Tables:
    """Play everything; keep the regret of each run."""
    import pandas as pd

    finals: list[dict[str, Any]] = []
    for name, experiment in experiments(seeds=order.seeds, quick=order.quick).items():
        results = order.play(name, experiment)
        (scenario,) = experiment.environments.values()
        finals += [
            {"world": scenario.data, "policy": summary["policy"], "seed": summary["seed"]}
            | {"steps": len(steps), "regret": steps["regret"].sum()}
            for summary, steps in (results.runs() if results.started else ())
        ]
    return {"final": pd.DataFrame(finals)}


def claims(tables: Tables) -> list[Claim]:
    """Judge the mean of all data sets, each with the same weight, then each."""
    final = tables["final"]
    everywhere = complete(scaled(final, by=OURS), WORLDS)
    return [
        pays(everywhere, "In the mean of all data sets", OURS, than=WITHOUT),
        *(
            pays(final[final["world"] == data], f"On {TITLES.get(data, data)}", OURS, than=WITHOUT)
            for data in WORLDS
        ),
    ]


def draw(tables: Tables) -> list[Picture]:
    """Draw both, and the levels that are asked of C3."""
    final = tables["final"]
    figure, axes = style.panels(1, 1, height=2.6)
    worlds = [data for data in WORLDS if (final["world"] == data).any()]
    for policy, shift, colour in ((OURS, -APART, style.BLACK), (WITHOUT, APART, style.GREY)):
        _points(axes, final[final["policy"] == policy], worlds, shift, label=policy, color=colour)
    for place, data in enumerate(worlds):
        axes.hlines(LIMITS[data], place - 3 * APART, place + 3 * APART, linestyle="dotted", linewidth=1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xticks(range(len(worlds)), [TITLES.get(data, data) for data in worlds])
    axes.set_ylabel("regret in 1,000 steps")
    axes.legend()
    counts = final.groupby(["world", "policy"])["seed"].nunique()
    caption = (
        f"Regret with and without trees beside the networks, {seeds_words(counts)}, 40 % of the rows logged "
        "label-aware; bars are 95 % intervals of the mean (Student's t). Dotted: what the upper end is asked "
        "to be at most. The axis is logarithmic from 1 on."
    )
    return [Picture(name="trees", figure=figure, caption=caption)]


def _points(axes: "Axes", rows: "pd.DataFrame", worlds: list[str], shift: float, **look: Any) -> None:
    found = [interval(rows.loc[rows["world"] == data, "regret"].to_numpy(np.float64)) for data in worlds]
    means, halves = [one.mean for one in found], [0.0 if np.isnan(one.half) else one.half for one in found]
    axes.errorbar(np.arange(len(worlds)) + shift, means, yerr=halves, fmt="o", markersize=4, **look)


ITEM = Item(
    name="trees",
    title="What random trees add to networks",
    where="docs/studies.md",
    says="With a long history, C3 that sees it through random trees too has less regret.",
    seeds=10,
    quick_seeds=1,
    needs="four data sets, from --data or OpenML",
    check=openml.check,
    measure=measure,
    draw=draw,
    claims=claims,
    catalogue=STUDIES,
    deviations=(
        "Where there is a GPU, networks are wider and more of them, and trees may add less.",
        "A draw of covertype was among the trials by which trees were shaped; the other three were not.",
    ),
)
