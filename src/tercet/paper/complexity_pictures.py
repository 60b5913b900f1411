"""The picture of what algorithms cost: time over n."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.paper.complexity_subjects import ARMS, FACTS, KEPT, STEPS, SUBJECTS, WHOLE, WIDTH

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Variants look like the policy that they are made of.
VARIANTS: Mapping[str, style.Look] = {
    f"C3, last {KEPT:,}": style.look("C3")._replace(line=style.DASH, marker="^"),
    WHOLE: style.look("NeuralUCB")._replace(line=style.DOT, marker="o"),
}


def draw(tables: Tables) -> list[Picture]:
    """Draw the time of a decision and of an update over n."""
    times = tables["times"]
    figure, axes = style.panels(1, 2, height=3.4, sharey=True)
    for panel, what, title in zip(
        axes, ("inference", "update"), (f"(a) inference, {ARMS} arms", "(b) update, one outcome"), strict=True
    ):
        _draw_times(panel, times[times["what"] == what])
        panel.set_title(title)
    axes[0].set_ylabel("time (ms)")
    style.legend_below(figure, columns=4)
    caption = (
        f"Time of a decision among {ARMS} arms and of learning one outcome after n outcomes, where context "
        f"and arm have {WIDTH} features each (C3: an embedding of {2 * WIDTH} dimensions without training). "
        "Each point is the shortest of many times (of the processor, one thread), one policy after another "
        f"in one process, up to n = {times['n'].max():,}. Neural policies train at every update here, with "
        f"at most {STEPS} gradient steps or with one for each outcome so far; they and KernelUCB are timed "
        "at small n only. The paper has a table of orders in place of this figure, with three more columns: "
        f"{_abilities(tables['table'])}."
    )
    return [Picture(name="complexity", figure=figure, caption=caption)]


def _abilities(table: "pd.DataFrame") -> str:
    """Say what the rows of the paper's table can do: declared by the paper and of our code, not measured."""
    told = []
    for family, rows in table[table["family"].notna() & (table["family"] != "")].groupby(
        "family", sort=False
    ):
        row = rows.iloc[0]
        can = [f"{row[fact]} ({row[f'{fact}_paper']})" for fact in FACTS]
        told.append(f"{family} {', '.join(can)}")
    return f"non-linear rewards, non-stationary tasks and arm features, ours (the paper's): {'; '.join(told)}"


def _draw_times(axes: "Axes", times: "pd.DataFrame") -> None:
    for name in SUBJECTS:
        colour, line, marker, _ = VARIANTS.get(name) or style.look(name)
        mine = times[times["policy"] == name]
        axes.plot(mine["n"], 1e3 * mine["seconds"], color=colour, linestyle=line, marker=marker, label=name)
    axes.set(xscale="log", yscale="log", xlabel="outcomes n")
