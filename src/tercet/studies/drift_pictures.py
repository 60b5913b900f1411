"""The picture of regret under drift: a panel a kind."""

from typing import TYPE_CHECKING

import numpy as np

from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.paper.openml_pictures import present, seeds_words
from tercet.paper.style import NORMAL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = 3


def draw(tables: Tables) -> list[Picture]:
    """Draw the kinds that were played."""
    kinds = present(tables["curves"], "kind")
    counts = tables["final"].groupby(["kind", "policy"])["seed"].nunique()
    caption = (
        f"Cumulative dynamic regret (the best arm's expected reward less the played one's, then and there) "
        f"under {len(kinds)} kinds of drift, {seeds_words(counts)}; bands are 1.96 standard errors of the "
        "mean. All know the same log of evenly drawn arms. Tuned policies chose their settings on it, "
        "half-lives among them; C3 does so by itself. Uncoupled, lying and stationary worlds are controls, "
        "in which coupling, or following drift, can not pay."
    )
    return [Picture(name="drift", figure=panels(tables["curves"], "kind"), caption=caption)]


def panels(curves: "pd.DataFrame", by: str) -> "Figure":
    """Draw dynamic regret over steps, a panel for each value of a column."""
    values = present(curves, by)
    rows = -(-len(values) // COLUMNS)
    figure, axes = style.panels(rows, COLUMNS, height=1.2 + 1.9 * rows, squeeze=False)
    for number, place in enumerate(axes.flat):
        if number >= len(values):
            place.set_axis_off()
            continue
        part = curves[curves[by] == values[number]]
        for policy in style.in_order(part["policy"]):
            line = part[part["policy"] == policy].sort_values("step")
            half = NORMAL * line["sd"] / np.sqrt(line["seeds"])
            style.curve(place, line["step"].to_numpy(), line["mean"].to_numpy(), half.to_numpy(), policy)
        place.set_title(values[number])
        place.set_xlim(0, part["step"].max())  # worlds may be of different lengths
        place.set_ylim(0)
        if number + COLUMNS >= len(values):
            place.set_xlabel("steps")
        if number % COLUMNS == 0:
            place.set_ylabel("dynamic regret (rewards)")
    style.legend_below(figure)
    return figure
