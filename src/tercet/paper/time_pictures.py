"""The pictures of time: curves with the cost of forgetting, and the times of all policies."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.reference.forgetting import RandomDrop

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Those of the paper's figure; the others are in the tables and in the second picture.
PAPER = (
    "C3, as in the paper",
    "two towers, small",
    "two towers, large",
    "Gaussian process",
    "Bayesian linear regression",
    "SW-LinUCB",
    "D-LinUCB",
    "NeuralUCB, window",
    "NeuralTS, window",
    "restless, simplified",
)
AT_ONCE, DROP, DECAY, KEEP = "drop at once", "drop one by one", "decay", "no forgetting"
FORGETTING_LOOKS: Mapping[str, tuple[str, str]] = {
    AT_ONCE: (style.VERMILION, "o"),
    DROP: (style.GREEN, "D"),
    DECAY: (style.BLUE, "^"),
    KEEP: (style.BLACK, "s"),
}
WIDTH = 128  # of the paper's embedding in its news experiment


def draw(tables: Tables) -> list[Picture]:
    """Draw the curves with the cost of forgetting, and the times of all policies."""
    return [_curves_picture(tables), _all_picture(tables["policies"])]


def _curves_picture(tables: Tables) -> Picture:
    from matplotlib.ticker import NullFormatter

    curves = tables["curves"]
    figure, (left, right) = style.panels(1, 2, height=3.4)
    for name in style.in_order(name for name in curves["policy"] if name in PAPER):
        mine = curves[curves["policy"] == name].groupby("step")["seconds"].mean()
        style.curve(left, mine.index.to_numpy(float), mine.to_numpy(), None, name)
    left.set(yscale="log", xlabel="step", ylabel="time so far (s)", title="(a) time with warm-up")
    left.yaxis.set_minor_formatter(NullFormatter())
    _draw_forgetting(right, tables["forgetting"])
    style.legend_below(figure, columns=4)
    rows = tables["policies"]
    caption = (
        f"(a) Time against steps in {rows['world'].iloc[0]} ({rows['steps'].max()} steps, mean of "
        f"{rows['seed'].nunique()} seed(s)); curves begin with the time of the fit. The paper's figure is on "
        "MIND and has a linear axis. (b) Time of the processor to learn each outcome for C3 of the paper's "
        f"news experiment, with an untrained embedding of {WIDTH} dimensions (points: first seed): "
        f"{RandomDrop().fraction:.0%} dropped at once every {RandomDrop().every} steps as in the paper, the "
        "same rows dropped one by one (as in C3's curve on the left), decay, and no forgetting. Policies ran "
        "one after another in one process, without a GPU."
    )
    return Picture(name="time", figure=figure, caption=caption)


def _draw_forgetting(axes: "Axes", rows: "pd.DataFrame") -> None:
    first = rows[rows["seed"] == rows["seed"].min()]
    for name, (colour, marker) in FORGETTING_LOOKS.items():
        mine = first[first["rule"] == name]
        axes.plot(
            mine["step"],
            mine["learn_ms"],
            color=colour,
            linestyle="",
            marker=marker,
            markersize=2,
            label=f"C3: {name}",
        )
    axes.set(yscale="log", xlabel="step", ylabel="time to learn (ms)", title="(b) the cost of forgetting")


def _all_picture(rows: "pd.DataFrame") -> Picture:
    names = rows.groupby("policy")["mean_step_ms"].mean().sort_values().index
    figure, (left, right) = style.panels(1, 2, height=0.9 + 0.16 * len(names), sharey=True)
    parts = (left, "warm_up_seconds", "warm-up (s)"), (right, "mean_step_ms", "time of a step (ms)")
    for axes, column, label in parts:
        values = rows.groupby("policy")[column].mean()[names].clip(lower=1e-3)
        for place, name in enumerate(names):
            axes.plot([1e-3, values[name]], [place, place], color=style.GREY, linewidth=0.6)
            axes.plot(values[name], place, color=style.look(name).colour, marker=style.look(name).marker)
        axes.set(xscale="log", xlabel=label)
        axes.set_yticks(range(len(names)), list(names))
    caption = (
        f"Warm-up (fit on the history) and mean time of a step (decide and learn) of all policies in "
        f"{rows['world'].iloc[0]}, sorted by the latter; mean of {rows['seed'].nunique()} seed(s) of "
        f"{rows['steps'].max()} steps, one policy after another in one process. Less than a millisecond of "
        "warm-up is drawn as one. The paper shows only curves, of fewer policies."
    )
    return Picture(name="time-policies", figure=figure, caption=caption)
