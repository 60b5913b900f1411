"""What random trees, rivals and the training of networks add where the history is long."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.embedding.options import LeaveOneOut
from tercet.environments.classification import Classification
from tercet.experiment import Contender, Experiment
from tercet.paper import openml, style
from tercet.paper.base import Claim, Item, Order, Picture, Tables
from tercet.paper.openml_pictures import TITLES, seeds_words
from tercet.policies.c3 import C3
from tercet.statistics import interval
from tercet.studies import ingredients
from tercet.studies.catalogue import STUDIES
from tercet.studies.expectations import complete, pays, scaled
from tercet.studies.sizes_claims import LIMITS, MOST

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

OURS = "C3"
WITHOUT: dict[str, dict[str, Any]] = {
    f"C3, {name}": ingredients.WITHOUT[name] for name in ("no trees", "no rivals", "AdamW alone")
} | {"C3, nine epochs": {"training": LeaveOneOut(epochs=9)}}
WORLDS = tuple(LIMITS)
QUICK_WORLDS, QUICK_HISTORY = ("shuttle",), 1_000


def experiments(*, seeds: int, quick: bool = False) -> dict[str, Experiment]:
    """Return who plays where, by name; runs of the study of sizes can serve here."""
    size = QUICK_HISTORY if quick else MOST
    return {
        f"label-aware-{data}": Experiment(
            policies={OURS: openml.contenders(data)[OURS]}
            | {name: Contender(policy=C3(progress=False, **options)) for name, options in WITHOUT.items()},
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
    return [claim for name in WITHOUT for claim in _claims(tables["final"], name)]


def _claims(final: "pd.DataFrame", name: str) -> list[Claim]:
    final = final[final["policy"].isin((OURS, name))]
    everywhere = complete(scaled(final, by=OURS), WORLDS)
    return [
        pays(everywhere, "In the mean of all data sets", OURS, than=name),
        *(
            pays(final[final["world"] == data], f"On {TITLES.get(data, data)}", OURS, than=name)
            for data in WORLDS
        ),
    ]


def draw(tables: Tables) -> list[Picture]:
    """Draw every seed with and without each, and the level that is asked of C3."""
    final = tables["final"]
    worlds = [data for data in WORLDS if (final["world"] == data).any()]
    figure, axes = style.panels(1, len(worlds), height=2.4, squeeze=False, sharey=True)
    for place, data in zip(axes.flat, worlds, strict=True):
        _panel(place, final[final["world"] == data], LIMITS[data])
        place.set_title(TITLES.get(data, data))
    figure.supxlabel("regret in 1,000 steps", fontsize="medium")
    counts = final.groupby(["world", "policy"])["seed"].nunique()
    caption = (
        "Regret of C3, of C3 without trees beside the networks, without what rewards say of other arms, and "
        "with networks that are trained otherwise (by AdamW alone, for nine epochs), "
        f"{seeds_words(counts)} (a thin line each), 40 % of the rows logged label-aware; bars are 95 % "
        "intervals of the mean (Student's t). Dotted: what the upper end of C3's is asked to be at most."
    )
    return [Picture(name="long", figure=figure, caption=caption)]


def _panel(axes: "Axes", rows: "pd.DataFrame", limit: float) -> None:
    names = [OURS, *WITHOUT]
    pairs = rows.pivot_table(index="seed", columns="policy", values="regret").reindex(columns=names)
    axes.plot(pairs.to_numpy().T, range(len(names)), color=style.GREY, linewidth=0.5)
    for place, policy in enumerate(names):
        mean, half = interval(pairs[policy].dropna().to_numpy(dtype=np.float64))
        bar = 0.0 if np.isnan(half) else half
        axes.errorbar(mean, place, xerr=bar, fmt="o", markersize=5, color=style.BLACK)
    axes.axvline(limit, linestyle="dotted", color=style.BLACK, linewidth=1)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_yticks(range(len(names)), [name.removeprefix("C3, ") for name in names])


ITEM = Item(
    name="long",
    title="What trees, rivals and the training of networks add where the history is long",
    where="docs/studies.md",
    says="With a long history, C3 that sees it through random trees too has less regret; and so has C3 that "
    "learns from a reward what other arms would not have earned, or whose networks are trained as they are.",
    seeds=10,
    quick_seeds=1,
    needs="four data sets, from --data or OpenML",
    check=openml.check,
    measure=measure,
    draw=draw,
    claims=claims,
    catalogue=STUDIES,
    deviations=(
        "Nine epochs are a quarter of the usual ones, but 300 steps at least: a quarter of the steps on "
        "covertype, about two fifths on MNIST and shuttle, and no fewer on MagicTelescope.",
        "Where there is a GPU, networks are wider and more of them, and each may add less.",
        "A draw of covertype was among the trials by which trees were shaped; the other three were not.",
    ),
)
