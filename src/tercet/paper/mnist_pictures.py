"""The pictures of MNIST's digits in phi's space, and of what its neighbourhoods have in common."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tercet.checks import Vector
from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.paper.style import NORMAL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NEIGHBOURS = 10
SHOWN = 400  # digits in a panel
CLOSE = 0.09  # of a panel's width: median labels nearer than this would cover each other
COLOURS = (*style.COLOURS, style.GREY, style.WINE, style.OLIVE)  # one a digit


def draw(tables: Tables, titles: Mapping[str, str], dims: Mapping[str, int]) -> list[Picture]:
    """Draw the embedded digits, and the scores; titles and dimensions are of every phi, in their order."""
    return [_scatter(tables, titles, dims), _scores(tables["scores"], titles)]


def _scatter(tables: Tables, titles: Mapping[str, str], dims: Mapping[str, int]) -> Picture:
    points, scored = tables["points"], tables["scores"]
    figure, axes = style.panels(2, 3, height=5.6)
    for panel, (key, dim) in zip(axes.T.flat, dims.items(), strict=True):
        _panel(panel, points[points["variant"] == key])
        values = {
            (stage, score): scored[(scored["variant"] == key) & (scored["stage"] == stage)][score].mean()
            for stage in ("untrained", "trained")
            for score in ("purity", "auc")
        }
        panel.set_title(
            f"{titles[key]}\npurity {values['trained', 'purity']:.2f} "
            f"({values['untrained', 'purity']:.2f} untrained)\nAUC {values['trained', 'auc']:.2f}"
        )
        axis = "coordinate {} of phi (in σ)" if dim == 2 else "coordinate {} of t-SNE"
        panel.set(xlabel=axis.format(1), ylabel=axis.format(2))
        if dim > 2:
            panel.set(xticks=[], yticks=[])  # its units mean nothing
    caption = (
        "MNIST digits that phi was not trained on, embedded with their right arms. Top: phi of 2 dimensions; "
        f"bottom: another of 8, by t-SNE. Markers are digits, {SHOWN} of seed 0; large ones stand at medians "
        "that are not too close. Left is as the paper's text has it, the middle has the larger history of "
        "its authors' experiments, ours (right) is not in the paper. Purity: share of the "
        f"{NEIGHBOURS} nearest neighbours that are the same digit; AUC: how well the kernel estimate tells "
        "right arms from wrong ones (means over seeds). All points have reward 1, so a perfect phi might put "
        "them all in one place: clusters by digit are no proof of quality."
    )
    return Picture(name="mnist", figure=figure, caption=caption)


def _panel(panel: "Axes", points: "pd.DataFrame") -> None:
    from matplotlib.patheffects import withStroke

    spots = points[["x", "y"]].to_numpy()
    span = np.ptp(spots, axis=0)
    placed: list[Vector] = []
    for digit, group in points.groupby("digit"):
        number = int(str(digit))
        colour, x, y = COLOURS[number], group["x"], group["y"]
        panel.scatter(x, y, s=14, marker=f"${number}$", color=colour, linewidths=0, alpha=0.85)
        middle = np.array([x.median(), y.median()])
        if all(np.linalg.norm((middle - other) / span) > CLOSE for other in placed):
            placed.append(middle)
            panel.text(
                middle[0],
                middle[1],
                str(number),
                color=colour,
                fontsize=11,
                fontweight="bold",
                ha="center",
                va="center",
                path_effects=[withStroke(linewidth=2.5, foreground="white")],
            )


def _scores(scored: "pd.DataFrame", titles: Mapping[str, str]) -> Picture:
    measures = {
        "purity": ("neighbours of the same digit", 0.1),
        "reward_purity": ("neighbours of equal reward,\nright and wrong arms", 0.5),
        "auc": ("AUC of the kernel estimate,\nright against wrong arms", 0.5),
    }
    figure, axes = style.panels(1, 3, height=2.9, sharey=True)
    for panel, (score, (title, chance)) in zip(axes, measures.items(), strict=True):
        panel.axvline(chance, color=style.GREY, linestyle=style.DOT, label="chance")
        if score == "purity":
            seen = scored["pixel_purity"].mean()
            panel.axvline(seen, color=style.BLUE, linestyle=style.DASH, label="pixels, without any phi")
        _dots(panel, scored, score, list(titles))
        panel.set(title=title, xlim=(0, 1.03))
    axes[0].set_yticks(range(len(titles)), list(titles.values()))
    axes[0].set_ylim(len(titles) - 0.5, -0.5)
    style.legend_below(figure)
    counts = scored[scored["stage"] == "trained"].groupby("variant")["seed"].nunique()
    caption = (
        f"Scores of the phi of the scatterplots, before and after training, over {counts.max()} seeds "
        f"({counts.min()} for the larger history); bars are 1.96 standard errors of the mean. Left: digits "
        "with right arms, of which phi knows the digit from the arm. Middle and right: each digit with its "
        "right arm and with a wrong one, which is what phi is trained to tell apart. Not in the paper."
    )
    return Picture(name="mnist-scores", figure=figure, caption=caption)


def _dots(panel: "Axes", scored: "pd.DataFrame", score: str, keys: list[str]) -> None:
    for stage, colour, marker, shift in (
        ("untrained", style.GREY, "o", 0.12),
        ("trained", style.VERMILION, "D", -0.12),
    ):
        rows = scored[scored["stage"] == stage]
        groups = [rows.loc[rows["variant"] == key, score].to_numpy() for key in keys]
        panel.errorbar(
            [values.mean() for values in groups],
            np.arange(len(groups)) + shift,
            xerr=[
                NORMAL * values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0
                for values in groups
            ],
            color=colour,
            marker=marker,
            markerfacecolor="white" if stage == "untrained" else colour,
            linestyle="none",
            label=stage,
        )
