"""The pictures of news recommendation: regret relative to the best policy, and hits on whole days."""

from typing import TYPE_CHECKING

import numpy as np

from tercet.checks import Vector
from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.statistics import Interval, interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MIND, SUBSTITUTE = "MIND", "EB-NeRD, not MIND"
OURS, KEPT = "C3, as in the paper", "C3, as in the paper, nothing dropped"
TOWERS = ("two towers, small", "two towers, large")
BASELINES = (
    *TOWERS,
    "Bayesian linear regression",
    "D-LinUCB",
    "restless, simplified",
    "SW-LinUCB",
    "NeuralUCB, window",
    "NeuralTS, window",
    "Gaussian process",
)
# Beside the paper's own: policies that a reader would ask for.
OTHERS = ("C3", "C3, greedy", "C3, NWKR", "LinUCB", "LightGBM, refitted", "Vowpal Wabbit squarecb")
COUNTING = ("Thompson per arm", "click counter", "uniform")


def draw(tables: Tables) -> list[Picture]:
    """Draw the paper's figure, and how often the choice was right on whole days."""
    return [_figure(tables["curves"]), *([_hit_rates(tables["hits"])] if "hits" in tables else [])]


def _figure(curves: "pd.DataFrame") -> Picture:
    world, lines = str(curves["world"].iloc[0]), relative(curves)
    figure, (left, right) = style.panels(1, 2, height=4.3, sharex=True, sharey=True)
    sides = {"the paper's policies": [OURS, *BASELINES], "C3 and others": [OURS, KEPT, *OTHERS, *COUNTING]}
    for axes, (title, names) in zip((left, right), sides.items(), strict=True):
        shown = [name for name in names if name in lines]
        for place, name in enumerate(shown):
            _line(axes, lines[name], place / len(shown), name)
        axes.set(title=f"{world}: {title}", xlabel="evaluated impressions")
    left.set_ylabel("cumulative regret relative to the best")
    style.legend_below(figure, columns=3)
    seeds = curves.groupby("policy")["seed"].nunique()
    few = [f"{name} ({count})" for name, count in seeds.items() if count < seeds.max()]
    return Picture(
        name="mind",
        figure=figure,
        caption=f"News recommendation on {world}: cumulative regret relative to the best policy at each "
        f"step, which has 0; mean of {seeds.max()} seeds, each with its own draw of the impressions. Bars "
        "are one standard deviation of a policy's regret over seeds, each at its own steps so that they can "
        "be told apart. "
        + (f"Fewer seeds: {'; '.join(few)}: they are compared on the seeds they have played. " if few else "")
        + ("" if world == MIND else "Deviations: other data, no drift made by hand, a week of history. ")
        + "The right panel has what the paper does not show.",
    )


def relative(curves: "pd.DataFrame") -> "dict[str, pd.DataFrame]":
    """Return each policy's regret less the best one's by step, and its spread over seeds."""
    import pandas as pd

    regrets = curves.pivot_table(index=["step", "seed"], columns="policy", values="regret")
    # By differences to a policy that has played all seeds: few seeds may be easy ones.
    behind = regrets.sub(regrets[OURS], axis=0).groupby("step").mean()
    behind = behind.sub(behind.min(axis=1), axis=0)
    spread = regrets.groupby("step").std()
    parts = {str(name): {"mean": behind[name], "spread": spread[name]} for name in behind}
    return {name: pd.DataFrame(columns) for name, columns in parts.items()}


def _line(axes: "Axes", rows: "pd.DataFrame", shift: float, name: str) -> None:
    # The same policy with one thing changed has its colour, and a line of its own.
    look = style.look(OURS)._replace(line=style.DOT, marker="") if name == KEPT else style.look(name)
    steps = rows.index.to_numpy(dtype=np.float64)
    every, gap = max(len(rows) // 4, 1), steps[-1] / max(len(rows) - 1, 1)
    style_of = {"color": look.colour, "linestyle": look.line, "linewidth": look.width}
    start = min(1 + int(shift * every), len(rows) - 1)
    axes.plot(steps, rows["mean"], marker=look.marker, markevery=(start, every), label=name, **style_of)
    at, low, high = steps[start::every], rows["mean"] - rows["spread"], rows["mean"] + rows["spread"]
    nudge = gap * (shift - 0.5) * 0.6
    axes.vlines(
        at + nudge, low.iloc[start::every], high.iloc[start::every], color=look.colour, lw=0.6, alpha=0.7
    )


def _hit_rates(hits: "pd.DataFrame") -> Picture:
    world, rates = str(hits["world"].iloc[0]), {}
    for name, rows in hits.groupby("policy"):
        blocks = rows.groupby("block")[["hits", "steps"]].mean()
        rates[str(name)] = rate(blocks["hits"].to_numpy(), blocks["steps"].to_numpy())
    names = sorted(rates, key=lambda name: rates[name].mean)
    figure, axes = style.panels(width=style.PAGE * 0.75, height=0.9 + 0.22 * len(names))
    for place, name in enumerate(names):
        colour, _, marker, _ = style.look(name)
        axes.errorbar(
            rates[name].mean, place, xerr=rates[name].half, color=colour, marker=marker, linestyle=""
        )
    axes.set_yticks(range(len(names)), names)
    steps = int(hits.groupby(["policy", "seed"])["steps"].sum().max())
    axes.set(
        title=f"{world}: {steps:,} impressions after the history", xlabel="share of choices that were clicked"
    )
    seeds = hits.groupby("policy")["seed"].nunique()
    several = [str(name) for name in seeds.index[seeds > 1]]
    return Picture(
        name="mind-hits",
        figure=figure,
        caption=f"How often the chosen article was clicked, over {steps:,} impressions of {world}, each "
        f"once and in order. Bars are 95 % intervals over {hits['block'].nunique()} stretches of time "
        "(Student's t), since all seeds meet the same log. "
        + (f"Mean of {seeds.max()} runs with other luck: {'; '.join(several)}. " if several else "")
        + "One run of every other policy. The paper has no such figure.",
    )


def rate(hits: Vector, steps: Vector) -> Interval:
    """Return the share of hits with its interval over blocks; a busy block counts for more than a night."""
    rate = hits.sum() / steps.sum()
    return interval(rate + (hits - rate * steps) / steps.mean())
