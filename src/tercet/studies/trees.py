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
    """Draw every seed with and without trees, and the level that is asked of C3."""
    final = tables["final"]
    worlds = [data for data in WORLDS if (final["world"] == data).any()]
    figure, axes = style.panels(1, len(worlds), height=2.4, squeeze=False)
    for place, data in zip(axes.flat, worlds, strict=True):
        _panel(place, final[final["world"] == data], LIMITS[data])
        place.set_title(TITLES.get(data, data))
    axes[0, 0].set_ylabel("regret in 1,000 steps")
    figure.tight_layout()
    counts = final.groupby(["world", "policy"])["seed"].nunique()
    caption = (
        f"Regret with and without trees beside the networks, {seeds_words(counts)} (a thin line each), 40 % "
        "of the rows logged label-aware; bars are 95 % intervals of the mean (Student's t). Dotted: what the "
        "upper end of C3's is asked to be at most."
    )
    return [Picture(name="trees", figure=figure, caption=caption)]


def _panel(axes: "Axes", rows: "pd.DataFrame", limit: float) -> None:
    pairs = rows.pivot_table(index="seed", columns="policy", values="regret").reindex(columns=[OURS, WITHOUT])
    axes.plot([0, 1], pairs.to_numpy().T, color=style.GREY, linewidth=0.5)
    for place, policy in enumerate(pairs):
        mean, half = interval(pairs[policy].dropna().to_numpy(dtype=np.float64))
        bar = 0.0 if np.isnan(half) else half
        axes.errorbar(place, mean, yerr=bar, fmt="o", markersize=5, color=style.BLACK)
    axes.axhline(limit, linestyle="dotted", color=style.BLACK, linewidth=1)
    axes.set_xlim(-0.5, 1.5)
    axes.set_ylim(bottom=0)
    axes.set_xticks([0, 1], ["C3", "no trees"])


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
