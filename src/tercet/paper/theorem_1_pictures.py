"""The picture of Theorem 1: how exact densities stay, and what an update costs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.paper.growth import exponent
from tercet.paper.theorem_1_precision import (
    APPENDED,
    COARSE,
    DROPPED,
    HALF,
    OURS,
    PAPER_ROUNDS,
    REFERENCES,
    SINGLE,
    STAYERS,
    WEIGHTS,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS: Mapping[str, tuple[str, Any, str]] = {
    OURS: (style.BLACK, "-", "o"),
    SINGLE: (style.BLUE, style.DASH, "s"),
    WEIGHTS: (style.VERMILION, style.DOT, "x"),
    HALF: (style.PURPLE, style.DASHDOT, "D"),
    COARSE: (style.GREEN, style.LONG, "^"),
}
LINES = {"append": "append one", "forget": "forget one", "recompute": "recompute all"}


def draw(tables: Tables) -> list[Picture]:
    """Draw the error of running sums and the time of an update."""
    figure, (left, middle, right) = style.panels(1, 3, height=3.1)
    pattern, drift, growth = (tables[name] for name in ("pattern", "drift", "growth"))
    _draw_errors(left, pattern, "rounds")
    left.set(xlabel="rounds", ylabel="relative error", title="(a) the paper's pattern")
    _draw_errors(middle, drift, "visitors")
    middle.set(xlabel="references that came and left", title="(b) the extreme: a crowd leaves")
    errors = [table["error"] for table in (pattern, drift)]
    for panel in (left, middle):
        panel.set_ylim(min(map(min, errors)) / 5, max(map(max, errors)) * 5)
    _draw_growth(right, growth)
    _legend(figure, left)
    return [Picture(name="theorem-1", figure=figure, caption=_caption(tables))]


def _caption(tables: Tables) -> str:
    pattern, growth = tables["pattern"], tables["growth"]
    last = pattern[pattern["rounds"] == pattern["rounds"].max()]["references"].median()
    return (
        "Largest relative error of the densities 1/w, updated in place, against a recompute, in a busy "
        f"neighbourhood of the plane (median of {pattern['seed'].nunique()} seeds; bars reach from the "
        f"smallest to the largest). (a) {REFERENCES:,} references, of which a round drops {DROPPED:.0%} and "
        f"appends {APPENDED}, so that about {last:.0f} are left at the end; the paper's news experiment has "
        f"{PAPER_ROUNDS} rounds. (b) {STAYERS} references stay while others are appended and then all "
        "removed again. Only what the legend names is rounded; weights follow the proof's recursion, run "
        "backwards to remove. (c) The shortest time (of the processor, one thread) of an update with n "
        f"references, up to {growth['n'].max():,}, measured one after another in one process; exponents are "
        "of fixed + c·n^k. The paper has no figure for this theorem."
    )


def _draw_errors(axes: "Axes", rows: "pd.DataFrame", over: str) -> None:
    for name, (colour, line, marker) in LOOKS.items():
        mine = rows[rows["arithmetic"] == name].groupby(over)["error"]
        middle, low, high = mine.median(), mine.min(), mine.max()
        reach = [middle - low, high - middle]
        axes.errorbar(
            middle.index, middle, yerr=reach, color=colour, linestyle=line, marker=marker, label=name
        )
    axes.set(xscale="log", yscale="log")
    places = sorted(rows[over].unique())
    axes.set_xticks(places, [f"{place:,}" for place in places])
    axes.set_xticks([], minor=True)


def _draw_growth(axes: "Axes", times: "pd.DataFrame") -> None:
    for number, (what, label) in enumerate(LINES.items()):
        mine = times[times["what"] == what]
        k = exponent(mine["n"].to_numpy(float), mine["seconds"].to_numpy(float))
        axes.plot(
            mine["n"],
            1e3 * mine["seconds"],
            color=style.COLOURS[number],
            linestyle=("-", style.DASH, style.DASHDOT)[number],
            marker="os^"[number],
            label=f"{label}: n^{k:.2f}",
        )
    axes.set(xscale="log", yscale="log", xlabel="references n", ylabel="time (ms)")
    axes.set_title("(c) time of an update")
    axes.legend(loc="upper left", handlelength=2.4)
    axes.set_ylim(top=1e3 * times["seconds"].max() * 60)  # room for the legend


def _legend(figure: "Figure", axes: "Axes") -> None:
    """Name the arithmetics, which two panels share, below the figure."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=2.8)
