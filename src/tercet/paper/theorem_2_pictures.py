"""The picture of Theorem 2: bias over the bandwidth, and error over n."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tercet import statistics
from tercet.checks import Vector
from tercet.paper import style
from tercet.paper.base import Picture, Tables
from tercet.paper.theorem_2_world import (
    BANDWIDTHS,
    FIXED,
    QUERIES,
    QUERY,
    SAMPLINGS,
    SCHEDULE,
    STEEP,
    formulas,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LOOKS: Mapping[str, tuple[str, str]] = {"IWKR": (style.BLACK, "o"), "NWKR": (style.VERMILION, "s")}


def draw(tables: Tables) -> list[Picture]:
    """Draw the bias over the bandwidth, and the error over n for each kind of sampling."""
    figure, axes = style.panels(2, 2, height=4.6)
    _draw_bias(axes[0, 0], tables["limit"], tables["bias"])
    errors = tables["errors"]
    low, high = _span(errors)
    for number, kind in enumerate(SAMPLINGS):
        panel = axes.flat[number + 1]
        _draw_errors(panel, errors[errors["sampling"] == kind])
        panel.set_title(f"({'bcd'[number]}) {kind} sampling")
        panel.set_ylim(low, high)
    axes[0, 1].legend(loc="upper right")
    seeds, most = errors["seed"].nunique(), tables["bias"]["n"].max()
    caption = (
        f"(a) Absolute bias at s = {QUERY:g} of IWKR (Eq. 5) and NWKR (Eq. 3) for mu(s) = "
        f"sigmoid({STEEP:g}s) and standard normal samples: lines are the leading terms, filled marks the "
        f"limit of infinitely many samples by quadrature, open marks simulations with {most:,} samples "
        f"without noise in the rewards (bars: 95 % intervals, {seeds} seeds). (b-d) Root mean squared error "
        f"over {len(QUERIES)} queries in [{QUERIES[0]:g}, {QUERIES[-1]:g}] with rewards of 0 and 1, "
        f"mean of {seeds} seeds with 95 % intervals; solid: bandwidth {FIXED:g}, dashed: "
        f"{SCHEDULE:g}·n^(-1/5). The paper has no figure for this theorem."
    )
    return [Picture(name="theorem-2", figure=figure, caption=caption)]


def _draw_bias(axes: "Axes", limit: "pd.DataFrame", simulated: "pd.DataFrame") -> None:
    grid = np.geomspace(min(BANDWIDTHS), max(BANDWIDTHS), 50)
    terms = {"IWKR": "½σ²μ″", "NWKR": "σ²(½μ″ + μ′p′/p)"}
    for name, (colour, marker) in LOOKS.items():
        line = "-" if name == "IWKR" else style.DASH
        axes.plot(
            grid, np.abs(formulas(grid)[name]), color=colour, linestyle=line, label=f"{name}: {terms[name]}"
        )
        mine = limit[limit["estimator"] == name]
        axes.plot(
            mine["bandwidth"],
            mine["bias"].abs(),
            color=colour,
            linestyle="",
            marker=marker,
            label=f"{name}, n → ∞",
        )
        found = simulated[simulated["estimator"] == name].groupby("bandwidth")["bias"]
        spans = [statistics.interval(values.to_numpy()) for _, values in found]
        axes.errorbar(
            np.array(list(found.groups), float),
            [abs(span.mean) for span in spans],
            yerr=[span.half for span in spans],
            color=colour,
            linestyle="",
            marker=marker,
            markersize=7,
            markerfacecolor="none",
            label=f"{name}, simulated",
        )
    axes.set(xscale="log", yscale="log", xlabel="bandwidth σ", ylabel="|bias|", title="(a) bias")
    ticks = list(BANDWIDTHS)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(top=30)
    axes.legend(loc="upper left", ncols=2, columnspacing=1.0)


def _rmse(errors: "pd.DataFrame") -> tuple[Vector, Vector, Vector]:
    """Return n, the root of the mean squared error, and half its 95 % interval (by the delta method)."""
    spans = {n: statistics.interval(values.to_numpy()) for n, values in errors.groupby("n")["squared_error"]}
    middle = np.sqrt([span.mean for span in spans.values()])
    return np.array(list(spans), float), middle, np.array([s.half for s in spans.values()]) / (2 * middle)


def _span(errors: "pd.DataFrame") -> tuple[float, float]:
    roots = np.sqrt(errors.groupby(["sampling", "n", "rule", "estimator"])["squared_error"].mean())
    return float(roots.min()) / 1.4, float(roots.max()) * 1.8


def _draw_errors(axes: "Axes", errors: "pd.DataFrame") -> None:
    for name, (colour, marker) in LOOKS.items():
        for rule, line in (("fixed", "-"), ("decreasing", style.DASH)):
            aside = 0.95 if name == "IWKR" else 1.05  # bars beside each other
            n, middle, half = _rmse(errors[(errors["estimator"] == name) & (errors["rule"] == rule)])
            axes.errorbar(
                aside * n,
                middle,
                yerr=half,
                color=colour,
                linestyle=line,
                marker=marker,
                label=f"{name}, {rule} σ",
            )
    axes.set(xscale="log", yscale="log", xlabel="samples n", ylabel="root mean squared error")
