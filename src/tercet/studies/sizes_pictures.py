"""The picture of regret against the size of the history: a column a data set, a row a way of logging."""

from typing import TYPE_CHECKING

import numpy as np

from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.paper.openml_pictures import TITLES, means, present, seeds_words, size_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ROWS = {"label-aware": "label-aware log", "uniform": "uniform log"}


def draw(tables: Tables) -> list[Picture]:
    """Draw what was played; a data set or a way of logging without rows is left out."""
    final = tables["final"].assign(history=tables["final"]["history"].astype(float))
    datasets, loggings = present(final, "data"), present(final, "logging")
    sizes = sorted(set(final["history"]), key=lambda size: (size % 1, size))  # a share is last
    stats = means(final, ["data", "logging", "history", "policy"])
    figure, axes = style.panels(
        len(loggings),
        len(datasets),
        height=1.1 + 2.1 * len(loggings),
        squeeze=False,
        sharex=True,
        sharey="col",
    )
    for row, logging in enumerate(loggings):
        for column, data in enumerate(datasets):
            place = axes[row, column]
            _lines(place, stats[(stats["data"] == data) & (stats["logging"] == logging)], sizes)
            if row == 0:
                place.set_title(TITLES.get(data, data))
            if row == len(loggings) - 1:
                place.set_xlabel("logged rows")
        axes[row, 0].set_ylabel(f"{ROWS[logging]}\nregret (rewards)")
    style.legend_below(figure)
    counts = final.groupby(["data", "logging", "history", "policy"])["seed"].nunique()
    caption = (
        f"Regret after {int(final['steps'].max()):,} steps on {len(datasets)} classification bandits against "
        f"the number of logged rows, {seeds_words(counts)}; bands are 1.96 standard errors of the mean, and "
        "the axis of regret is logarithmic. Inputs are scaled by the history for everybody, which all "
        "remember from the start. In a label-aware log the shown arm was the right one with probability 1/2; "
        "in a uniform log any arm was. 'supervised' has seen all labels of the longest history."
    )
    return [Picture(name="sizes", figure=figure, caption=caption)]


def _lines(place: "Axes", stats: "pd.DataFrame", sizes: list[float]) -> None:
    for policy in style.in_order(stats["policy"]):
        line = stats[stats["policy"] == policy].set_index("history").reindex(sizes)
        # On a logarithmic axis nothing is at 0: half a reward stands for none.
        mean = np.maximum(line["mean"].to_numpy(), 0.5)
        half = np.minimum(line["half"].to_numpy(), mean - 0.4)
        style.curve(place, np.arange(len(sizes), dtype=float), mean, half, policy)
    place.set_yscale("log")
    place.set_xticks(range(len(sizes)), [size_words(size) for size in sizes])
