"""The pictures of the ingredients: what each measure is without them, as a multiple of what it is for C3."""

from typing import TYPE_CHECKING

from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.paper.openml_pictures import TITLES, present

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = 4
HONESTY = {"intervals": "90 % intervals", "calibration": "calibration"}
LOWEST = 0.3  # multiple that a bar reaches down to, at most: the axis is logarithmic


def draw(tables: Tables) -> list[Picture]:
    """Draw regret in every world and in the mean of all; then what posteriors are worth."""
    costs = tables["costs"]
    names = present(costs, "policy")
    regrets = costs[costs["measure"] == "regret"]
    return [_regrets(regrets, names), _honesty(costs.drop(regrets.index), names)]


def _regrets(costs: "pd.DataFrame", names: list[str]) -> Picture:
    worlds = present(costs, "world")
    rows = -(-len(worlds) // COLUMNS)
    figure, axes = style.panels(
        rows, COLUMNS, height=0.8 + rows * (0.5 + 0.16 * len(names)), squeeze=False, sharey=True, sharex=True
    )
    for number, place in enumerate(axes.flat):
        if number >= len(worlds):
            place.set_axis_off()
            continue
        _panel(place, costs[costs["world"] == worlds[number]], names)
        place.set_title(TITLES.get(worlds[number], worlds[number]))
        place.tick_params(labelbottom=True)
    figure.supxlabel("regret as a multiple of C3's", fontsize="medium")
    caption = (
        "Regret of C3 with one ingredient taken back, as a multiple of the regret of C3 as it is (line), "
        f"with 95 % intervals of paired differences (Student's t, {_seeds(costs)} seeds). Right of the line "
        "the ingredient pays. Greedy choice, coupled draws and no recalibration are not taken back but "
        "chosen otherwise. In the mean of all, every world has the same weight."
    )
    return Picture(name="ingredients", figure=figure, caption=caption)


def _honesty(costs: "pd.DataFrame", names: list[str]) -> Picture:
    figure, axes = style.panels(1, 2, height=1.3 + 0.16 * len(names), squeeze=False, sharey=True, sharex=True)
    for place, (measure, title) in zip(axes.flat, HONESTY.items(), strict=True):
        _panel(place, costs[costs["measure"] == measure], names)
        place.set_title(title)
    figure.supxlabel("error as a multiple of C3's", fontsize="medium")
    caption = (
        "How honest posteriors are with one ingredient taken back. Left: how far from .9 the share of "
        "expected rewards is that lie in 90 % intervals, in the mean of the kinds of drift. Right: expected "
        "calibration error of the played arm's mean, in the mean of all worlds (of a single run it is never "
        "0: luck is in it). Both as a multiple of C3's as it is (line), with 95 % intervals of paired "
        f"differences (Student's t, {_seeds(costs)} seeds). Right of the line the ingredient pays."
    )
    return Picture(name="honesty", figure=figure, caption=caption)


def _seeds(costs: "pd.DataFrame") -> str:
    return " or ".join(map(str, sorted(set(costs["seeds"]))))


def _panel(axes: "Axes", costs: "pd.DataFrame", names: list[str]) -> None:
    for row in costs.to_dict("records"):
        middle, half = 1 + row["cost"] / 100, row["half"] / 100
        axes.errorbar(
            max(middle, LOWEST),
            names.index(row["policy"]),
            xerr=[[min(half, max(middle - LOWEST, 0.0))], [half]],
            color=style.BLACK,
            marker="o",
            markersize=3,
        )
    axes.axvline(1, color=style.GREY, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 4], ["½", "1", "2", "4"])
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
