"""Theorem 3: how regret grows with time, as a hypothesis checked by experiment (its proof has gaps)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet import posterior, statistics
from tercet.checks import Matrix, Vector
from tercet.paper import style
from tercet.paper.base import Claim, Item, Order, Picture, Tables
from tercet.reference.exact import ReferenceSet

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ARMS = 5
HORIZONS = (250, 500, 1_000, 2_000, 4_000)
QUICK_HORIZONS = (250, 500, 1_000)
WIDE, NARROW = 0.5, 0.1  # fixed bandwidths
CHANCES = (0.6, 0.4)  # of the two arms of the lock-out
LOCK_OUT_STEPS = (75, 150, 300, 600)
REPLICAS = 200  # games a seed
LEMMA_GRID = (0.01, 0.1, 0.3, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0)
LINEAR = 0.85  # a slope that is as good as 1 at these horizons


@dataclass(frozen=True)
class Kernel:
    """How C3 weighs its references: the schedule of the theorem where no bandwidth is given."""

    truncated: bool
    bandwidth: float | None = None


KERNELS: Mapping[str, Kernel] = {
    "truncated, h(T)": Kernel(truncated=True),
    f"truncated, h = {WIDE:g}": Kernel(truncated=True, bandwidth=WIDE),
    f"plain RBF, σ = {NARROW:g}": Kernel(truncated=False, bandwidth=NARROW),
}
LOOKS = (style.BLACK, "-", "o"), (style.BLUE, style.DASH, "s"), (style.VERMILION, style.DASHDOT, "^")
THEOREM, WIDE_KERNEL, PLAIN = KERNELS


def schedule(horizon: int, dim: int) -> float:
    """Return h = (log T / L²T)^(1 / (d + 2)) with L = 1 (appendix A.3)."""
    return float((np.log(horizon) / horizon) ** (1 / (dim + 2)))


def bound(dim: int) -> float:
    """Return the theorem's exponent of T."""
    return (dim + 1) / (dim + 2)


def regrets(horizon: int, dim: int, bandwidth: float, seed: int, *, truncated: bool = True) -> Vector:
    """Return the regret after each step of C3 with a prior of +1: fresh uniform arms, mu 1-Lipschitz."""
    rng = np.random.default_rng(seed)
    references = ReferenceSet(dim=dim, bandwidth=bandwidth, truncated=truncated)
    peak = rng.uniform(size=dim)
    lost = np.zeros(horizon)
    for step in range(horizon):
        arms = rng.uniform(size=(ARMS, dim))
        mu = 0.9 - np.linalg.norm(arms - peak, axis=1) / dim**0.5 * 0.8
        estimate = references.estimate(arms)
        beliefs = posterior.posterior(estimate.mass, estimate.mean, prior=(1.0, 1.0))
        chosen = int(np.argmax(posterior.draw(beliefs.alpha, beliefs.beta, rng)))
        lost[step] = mu.max() - mu[chosen]
        references.append(arms[chosen : chosen + 1], [float(rng.random() < mu[chosen])])
    return np.cumsum(lost)


def slope(horizons: Vector, table: Matrix) -> float:
    """Return the slope of the log of the mean regret in log T; rows are seeds, columns horizons."""
    return float(np.polyfit(np.log(horizons), np.log(table.mean(0)), 1)[0])


def slope_interval(horizons: Vector, table: Matrix) -> tuple[float, float, float]:
    """Return the slope with its 95 % interval by a bootstrap of seeds."""
    draws = np.random.default_rng(0).integers(len(table), size=(statistics.RESAMPLES, len(table)))
    found = np.polyfit(np.log(horizons), np.log(table[draws].mean(1)).T, 1)[0]
    low, high = np.quantile(found, [0.025, 0.975])
    return slope(horizons, table), float(low), float(high)


def games(task: tuple[str, int, int, tuple[int, ...]]) -> list[dict[str, Any]]:
    """Return the regret of one kernel at every horizon; a schedule needs a game of its own for each."""
    name, dim, seed, horizons = task
    kernel = KERNELS[name]
    row = {"kernel": name, "dim": dim, "seed": seed}
    if kernel.bandwidth is not None:
        path = regrets(max(horizons), dim, kernel.bandwidth, seed, truncated=kernel.truncated)
        return [row | {"horizon": t, "regret": float(path[t - 1])} for t in horizons]
    return [
        row | {"horizon": t, "regret": float(regrets(t, dim, schedule(t, dim), seed)[-1])} for t in horizons
    ]


def lock_out(task: tuple[float, int]) -> list[dict[str, Any]]:
    """Return the mean regret of many games with two arms that share nothing: kernel mass is a count."""
    prior, seed = task
    rng = np.random.default_rng(seed)
    counts, wins, lost = np.zeros((2, REPLICAS)), np.zeros((2, REPLICAS)), np.zeros(REPLICAS)
    games_ = np.arange(REPLICAS)
    rows = []
    for step in range(1, max(LOCK_OUT_STEPS) + 1):
        means = np.divide(wins, counts, out=np.full_like(wins, 0.5), where=counts > 0)
        beliefs = posterior.posterior(counts.ravel(), means.ravel(), prior=(prior, prior))
        drawn = posterior.draw(beliefs.alpha, beliefs.beta, rng).reshape(2, REPLICAS)
        coin = rng.random(REPLICAS) < 0.5
        chosen = np.where(drawn[0] == drawn[1], coin, drawn[1] > drawn[0]).astype(int)
        counts[chosen, games_] += 1
        wins[chosen, games_] += rng.random(REPLICAS) < np.array(CHANCES)[chosen]
        lost += CHANCES[0] - np.array(CHANCES)[chosen]
        if step in LOCK_OUT_STEPS:
            rows.append({"prior": prior, "seed": seed, "horizon": step, "regret": float(lost.mean())})
    return rows


def lemma() -> list[dict[str, float]]:
    """Return the largest ratio of a Beta tail to both bounds, over ε and both sides, on a grid."""
    from scipy.stats import beta as beta_law

    rows = []
    for alpha in LEMMA_GRID:
        for beta in LEMMA_GRID:
            p, total = alpha / (alpha + beta), alpha + beta
            up, down = np.linspace(0, 1 - p, 202)[1:-1], np.linspace(0, p, 202)[1:-1]
            tails = np.concatenate(
                [beta_law.logsf(p + up, alpha, beta), beta_law.logcdf(p - down, alpha, beta)]
            )
            squares = np.concatenate([up, down]) ** 2
            ratios = {
                "lemma": np.max(tails + 2 * (total - 1) * squares),
                "stronger": np.max(tails + 2 * (total + 1) * squares),
            }
            named = {name: float(np.exp(ratio)) for name, ratio in ratios.items()}
            rows.append({"alpha": alpha, "beta": beta} | named)
    return rows


def play(task: tuple[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of one part, given its table and its options."""
    return games(task[1]) if task[0] == "regret" else lock_out(task[1])


def measure(order: Order) -> Tables:
    """Play, and tabulate the lemma."""
    import pandas as pd

    horizons = QUICK_HORIZONS if order.quick else HORIZONS
    seeds = range(order.seeds)
    tasks: list[tuple[str, Any]] = [
        *(("regret", (name, dim, seed, horizons)) for name in KERNELS for dim in (1, 2) for seed in seeds),
        *(("lock-out", (prior, seed)) for prior in (0.0, 1.0) for seed in seeds),
    ]
    tables: dict[str, list[Any]] = {"lemma": lemma()}
    for (part, _), rows in zip(tasks, order.map("games", play, tasks), strict=True):
        tables.setdefault(part, []).extend(rows)
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def draw(tables: Tables) -> list[Picture]:
    """Draw regret over T in one and two dimensions, and the lock-out."""
    figure, axes = style.panels(1, 3, height=2.9)
    for panel, dim in zip(axes, (1, 2), strict=False):
        _draw_regret(panel, tables["regret"], dim)
    _draw_lock_out(axes[2], tables["lock-out"])
    seeds = tables["regret"]["seed"].nunique()
    caption = (
        f"(a, b) Regret of C3 with a prior of +1 and {ARMS} fresh uniform arms a step, in one and two "
        "dimensions; k is the slope on these axes and the grey line has that of the theorem's bound, "
        "(d+1)/(d+2). With the schedule h(T) each point is a game of its own. (c) Two arms of chances "
        f"{CHANCES[0]:g} and {CHANCES[1]:g}: without a prior an arm whose first rewards are 0 is drawn as 0 "
        f"for ever. Means over {seeds} seeds ((c): of {REPLICAS} games each) with 95 % intervals. The "
        "paper has no figure for this theorem."
    )
    return [Picture(name="regret", figure=figure, caption=caption)]


def _table(rows: "pd.DataFrame") -> tuple[Vector, Matrix]:
    table = rows.pivot_table(index="seed", columns="horizon", values="regret")
    return table.columns.to_numpy(float), table.to_numpy()


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
        horizons, table = _table(rows[(rows["kernel"] == name) & (rows["dim"] == dim)])
        _line(axes, horizons, table, look, f"{name}: k = {slope(horizons, table):.2f}")
        if name == THEOREM:
            guide = table.mean(0)[0] * 1.15 * (horizons / horizons[0]) ** bound(dim)
            axes.plot(
                horizons,
                guide,
                color=style.GREY,
                linewidth=2.5,
                alpha=0.5,
                label=f"bound: k = {bound(dim):.2f}",
            )
    axes.set(xscale="log", yscale="log", xlabel="steps T", ylabel="regret")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 14)  # room for the legend
    axes.set_title(f"({'ab'[dim - 1]}) d = {dim}")
    _plain_ticks(axes, horizons)
    axes.legend(loc="upper left", handlelength=2.2)


def _draw_lock_out(axes: "Axes", rows: "pd.DataFrame") -> None:
    for prior, look, label in ((0.0, LOOKS[2], "no prior (Eq. 7, 8)"), (1.0, LOOKS[0], "prior +1")):
        horizons, table = _table(rows[rows["prior"] == prior])
        _line(axes, horizons, table, look, label)
    axes.set(xlabel="steps T", ylabel="regret", ylim=(0, None), xlim=(0, None))
    axes.set_title("(c) lock-out")
    axes.legend(loc="upper left")


def _plain_ticks(axes: "Axes", horizons: Vector) -> None:
    axes.set_xticks(horizons, [f"{int(horizon):,}" for horizon in horizons])
    axes.set_xticks([], minor=True)


def claims(tables: Tables) -> list[Claim]:
    """Judge the rate, what C3 itself does, the lock-out and the lemma."""
    rows = tables["regret"]
    return [
        *(_rate(rows, dim) for dim in (1, 2)),
        _needs_schedule(rows),
        _plain(rows),
        _locked_out(tables["lock-out"]),
        *_tail(tables["lemma"]),
    ]


def _slope_of(rows: "pd.DataFrame", name: str, dim: int) -> tuple[float, float, float]:
    return slope_interval(*_table(rows[(rows["kernel"] == name) & (rows["dim"] == dim)]))


def _told(found: tuple[float, float, float]) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*found)


def _rate(rows: "pd.DataFrame", dim: int) -> Claim:
    found = _slope_of(rows, THEOREM, dim)
    return Claim(
        paper=f"Regret is O(T^((d+1)/(d+2)) (log T)^(1/(d+2))) (Theorem 3); for d = {dim}: "
        f"T^{bound(dim):.2f}.",
        ours=f"The slope of log regret in log T is {_told(found)}, T from {rows['horizon'].min():,} to "
        f"{rows['horizon'].max():,}.",
        verdict="reproduced" if found[0] <= bound(dim) else "not reproduced",
        note="Reproduced if the slope is at most the bound's exponent. With the proof's truncated "
        "kernel and schedule, a prior of +1, and one family of rewards: an experiment, no proof. The "
        'proof has gaps: a "+3" in a bound of a probability is dropped later, the kernel is cut at h, '
        "below the diameter of a cell, and the comparator is one cell for all steps although arms change.",
    )


def _at_the_end(rows: "pd.DataFrame", name: str) -> dict[int, tuple[float, float, float]]:
    """Return the slope over the last doubling of T: what is left of the beginning tells less there."""
    found = {}
    for dim in (1, 2):
        horizons, table = _table(rows[(rows["kernel"] == name) & (rows["dim"] == dim)])
        found[dim] = slope_interval(horizons[-2:], table[:, -2:])
    return found


def _slopes_told(found: dict[int, tuple[float, float, float]]) -> str:
    return " and ".join(f"{_told(found[dim])} for d = {dim} (bound {bound(dim):.2f})" for dim in found)


def _needs_schedule(rows: "pd.DataFrame") -> Claim:
    found = _at_the_end(rows, WIDE_KERNEL)
    faster = all(value[1] > bound(dim) for dim, value in found.items())
    return Claim(
        paper="The bandwidth must follow a schedule h(T) to obtain a useful bound (appendix A.3).",
        ours=f"With h = {WIDE:g} at every T the slope over the last doubling of T is {_slopes_told(found)}.",
        verdict="reproduced" if faster else "not reproduced",
        note="Reproduced if without a schedule regret grows faster than the bound at the end (95 % intervals "
        "above its exponent).",
    )


def _plain(rows: "pd.DataFrame") -> Claim:
    found = _at_the_end(rows, PLAIN)
    below = all(value[0] <= bound(dim) for dim, value in found.items())
    return Claim(
        paper="C3 itself, with a plain RBF kernel of fixed bandwidth, has the regret of Theorem 3.",
        ours=f"With σ = {NARROW:g} the slope over the last doubling of T is {_slopes_told(found)}.",
        verdict="reproduced" if below else "not reproduced",
        note="Reproduced if the slopes are at most the bound's exponents. The theorem is stated for C3, its "
        "proof is for another kernel. A fixed bandwidth keeps a bias, so that regret must become linear "
        "at horizons long enough, whatever the slope is here.",
    )


def _locked_out(rows: "pd.DataFrame") -> Claim:
    told, found = [], {}
    half, whole = LOCK_OUT_STEPS[-2:]
    for prior, name in ((0.0, "without a prior"), (1.0, "with +1")):
        horizons, table = _table(rows[rows["prior"] == prior])
        last = table[:, -2:]
        found[prior] = slope_interval(horizons[-2:], last)
        told.append(f"{name} {last[:, 0].mean():.1f} to {last[:, 1].mean():.1f}")
    return Claim(
        paper="With Eq. 7 and 8 as written (no prior) C3's regret is sublinear in a stationary bandit.",
        ours=f"Two arms, from T = {half} to {whole}: {'; '.join(told)} (slopes {_told(found[0.0])} and "
        f"{_told(found[1.0])}).",
        verdict="reproduced" if found[0.0][0] < LINEAR else "not reproduced",
        note=f"Not reproduced where the slope without a prior is at least {LINEAR:g}. An arm with Beta(0, b) "
        "is never played again; a prior of +1, which the equations lack, prevents it.",
    )


def _tail(grid: "pd.DataFrame") -> list[Claim]:
    inside = grid[(grid["alpha"] >= 1) & (grid["beta"] >= 1)]
    worst, beyond = inside["lemma"].max(), grid["stronger"].max()
    rounding = 1 + 1e-9
    return [
        Claim(
            paper="Beta tails: Pr(X ≥ p + ε) ≤ exp(-2(α+β-1)ε²), and below likewise, for α, β ≥ 1 (lemma).",
            ours=f"The largest ratio of tail to bound on a grid of {len(inside)} pairs is {worst:.3f}; "
            f"with exp(-2(α+β+1)ε²), for all {len(grid)} pairs of α, β > 0, it is {beyond:.3f}.",
            verdict="reproduced" if worst <= rounding else "not reproduced",
            note="Reproduced if no ratio is above 1. The second, stronger form needs no α, β ≥ 1.",
        )
    ]


ITEM = Item(
    name="regret",
    title="How regret grows with time",
    where="Theorem 3 and appendix A.3",
    says="In a stationary bandit C3 has an expected regret of "
    "O(L^(d/(d+2)) T^((d+1)/(d+2)) (log T)^(1/(d+2))).",
    seeds=12,
    quick_seeds=6,
    measure=measure,
    draw=draw,
    claims=claims,
    deviations=(
        "The paper proves the theorem and measures nothing; the world is ours: mu falls linearly with the "
        "distance from a peak drawn for each seed.",
        "A prior of +1 on both counts, without which arms are locked out.",
    ),
)
