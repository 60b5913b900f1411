"""The picture of Theorem 3: regret over time, and the lock-out."""

from typing import TYPE_CHECKING, Any

from tercet import statistics
from tercet.checks import Matrix, Vector
from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.paper.regret_games import (
    ARMS,
    CHANCES,
    KERNELS,
    REPLICAS,
    THEOREM,
    bound,
    bound_slope,
    slope,
    table_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LOOKS = (style.BLACK, "-", "o"), (style.BLUE, style.DASH, "s"), (style.VERMILION, style.DASHDOT, "^")


def draw(tables: Tables) -> list[Picture]:
    """Draw regret over T in one and two dimensions, and the lock-out."""
    figure, axes = style.panels(1, 3, height=2.9)
    for panel, dim in zip(axes, (1, 2), strict=False):
        _draw_regret(panel, tables["regret"], dim)
    _draw_lock_out(axes[2], tables["lock-out"])
    seeds = tables["regret"]["seed"].nunique()
    caption = (
        f"(a, b) Regret of C3 with a prior of +1 and {ARMS} fresh uniform arms a step, in one and two "
        "dimensions; k is the slope on these axes, and the grey line has the shape of the theorem's "
        "bound, T^((d+1)/(d+2)) (log T)^(1/(d+2)). With the schedule h(T) each point is a game of its own. "
        f"(c) Two arms of chances {CHANCES[0]:g} and {CHANCES[1]:g}: without a prior an arm whose first "
        f"rewards are 0 is drawn as 0 for ever. Means over {seeds} seeds ((c): of {REPLICAS} games each) "
        "with 95 % intervals. The paper has no figure for this theorem."
    )
    return [Picture(name="regret", figure=figure, caption=caption)]


def _line(axes: "Axes", horizons: Vector, table: Matrix, look: tuple[str, Any, str], label: str) -> None:
    colour, line, marker = look
    spans = [statistics.interval(column) for column in table.T]
    axes.errorbar(
        horizons,
        [span.mean for span in spans],
        yerr=[span.half for span in spans],
        color=colour,
        linestyle=line,
        marker=marker,
        label=label,
    )


def _draw_regret(axes: "Axes", rows: "pd.DataFrame", dim: int) -> None:
    for name, look in zip(KERNELS, LOOKS, strict=True):
        horizons, table = table_of(rows[(rows["kernel"] == name) & (rows["dim"] == dim)])
        _line(axes, horizons, table, look, f"{name}: k = {slope(horizons, table):.2f}")
        if name == THEOREM:
            guide = table.mean(0)[0] * 1.15 * bound(dim, horizons) / bound(dim, horizons[0])
            axes.plot(
                horizons,
                guide,
                color=style.GREY,
                linewidth=2.5,
                alpha=0.5,
                label=f"bound: k = {bound_slope(dim, horizons):.2f}",
            )
    axes.set(xscale="log", yscale="log", xlabel="steps T", ylabel="regret")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 14)  # room for the legend
    axes.set_title(f"({'ab'[dim - 1]}) d = {dim}")
    _plain_ticks(axes, horizons)
    axes.legend(loc="upper left", handlelength=2.2)


def _draw_lock_out(axes: "Axes", rows: "pd.DataFrame") -> None:
    for prior, look, label in ((0.0, LOOKS[2], "no prior (Eq. 7, 8)"), (1.0, LOOKS[0], "prior +1")):
        horizons, table = table_of(rows[rows["prior"] == prior])
        _line(axes, horizons, table, look, label)
    axes.set(xlabel="steps T", ylabel="regret", ylim=(0, None), xlim=(0, None))
    axes.set_title("(c) lock-out")
    axes.legend(loc="upper left")


def _plain_ticks(axes: "Axes", horizons: Vector) -> None:
    axes.set_xticks(horizons, [f"{int(horizon):,}" for horizon in horizons])
    axes.set_xticks([], minor=True)
