"""The picture of the ablations: what each change costs, a panel each."""

from typing import TYPE_CHECKING, Any

from tercet.paper import style
from tercet.paper.ablation_worlds import DRIFTING, HALF_LIFE, OURS, PAPER, PAPERS_WEIGHT
from tercet.paper.base import Picture, Tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

TITLES = {
    "weights": "NWKR, not IWKR",
    "intervals": "one time interval, not many",
    "calibration": f"calibration loss: λ, not {PAPERS_WEIGHT:g}",
    "forgetting": "not random drop",
    "logging": "a poor or an old log",
    "reuse": "φ of another season",
    "cold start": "counts by arm, no features",
}
SERIES = {
    "C3, as in the paper": (style.VERMILION, "o"),
    "C3": (style.BLACK, "s"),
    "C3, as in the paper: calibration error": (style.BLUE, "D"),
}


def draw(tables: Tables) -> list[Picture]:
    """Draw what each change costs, a panel an ablation."""
    table = tables["differences"].fillna({"what": ""})
    shown = [name for name in TITLES if (table["ablation"] == name).any()]
    heights = [3 if name in ("weights", "intervals", "cold start", "reuse") else 5 for name in shown[::2]]
    figure, grid = style.panels(
        len(heights), 2, height=0.6 + 0.42 * sum(heights), height_ratios=heights, squeeze=False
    )
    for axes, name in zip(grid.flat, shown, strict=False):
        _panel(axes, table[table["ablation"] == name], TITLES[name])
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes in grid.flat[max(len(shown) - 2, 0) : len(shown)]:  # the lowest of each column
        axes.set_xlabel("cost of the change (regret a step)")
    style.legend_below(figure, columns=3)
    seeds = sorted(set(table["seeds"]))
    return [
        Picture(
            name="ablations",
            figure=figure,
            caption="What it costs to change one part of C3: regret a step with the change less that without "
            f"it, paired by seed ({' or '.join(map(str, seeds))} seeds), with 95 % intervals (Student's t). "
            "Right of the line the change costs, left of it it pays. Diamonds: the same for the expected "
            f"calibration error. In the worlds {', '.join(DRIFTING)} and stationary “{PAPER}” is C3 as in "
            f"the paper but fading, with a half-life of {HALF_LIFE:.0f} steps in place of random drops. The "
            "paper has no such figure: it asserts these things in words.",
        )
    ]


def _panel(axes: "Axes", rows: "pd.DataFrame", title: str) -> None:
    records = rows.to_dict("records")
    lines = [label(record | {"kept": "", "measure": ""}) for record in records]
    labels, several = list(dict.fromkeys(lines)), len(set(lines)) < len(lines)
    for record, line in zip(records, lines, strict=True):
        series = OURS if record["kept"] == OURS else PAPER
        series += ": calibration error" if record["measure"] == "calibration_error" else ""
        colour, marker = SERIES[series]
        # Two points of one line stand a little apart.
        place = labels.index(line) + several * (-0.16 if series == PAPER else 0.16)
        bar = axes.errorbar(
            record["cost"], place, xerr=record["half"], color=colour, marker=marker, linestyle=""
        )
        if series not in axes.get_legend_handles_labels()[1]:
            bar.set_label(series)
    axes.axvline(0, color=style.GREY, linewidth=0.8)
    axes.locator_params(axis="x", nbins=5)  # labels of small numbers are long
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_title(title)


def label(row: Any) -> str:
    """Return what a row is about, less what goes without saying."""
    who = f", {row['kept']}" if row["kept"] == OURS else ""
    figure = ", calibration error" if row["measure"] == "calibration_error" else ""
    return row["world"] + (f", {row['what']}" if row["what"] else "") + who + figure
