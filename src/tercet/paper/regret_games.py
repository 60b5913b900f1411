"""The games of Theorem 3: C3 with the proof's kernel and with its own, a lock-out, and Beta tails."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet import posterior, statistics
from tercet.checks import Matrix, Vector
from tercet.reference.exact import ReferenceSet

if TYPE_CHECKING:
    import pandas as pd

ARMS = 5
HORIZONS = (250, 500, 1_000, 2_000, 4_000)
QUICK_HORIZONS = (250, 500, 1_000)
WIDE, NARROW = 0.5, 0.1  # fixed bandwidths
CHANCES = (0.6, 0.4)  # of the two arms of the lock-out
LOCK_OUT_STEPS = (75, 150, 300, 600)
REPLICAS = 200  # games a seed
LEMMA_GRID = (0.01, 0.1, 0.3, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0)


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
THEOREM, WIDE_KERNEL, PLAIN = KERNELS


def schedule(horizon: int, dim: int) -> float:
    """Return h = (log T / L²T)^(1 / (d + 2)) with L = 1 (appendix A.3)."""
    return float((np.log(horizon) / horizon) ** (1 / (dim + 2)))


def bound(dim: int, horizon: Any) -> Any:
    """Return the theorem's bound, T^((d+1)/(d+2)) (log T)^(1/(d+2)), but for its constant."""
    return np.asarray(horizon) ** ((dim + 1) / (dim + 2)) * np.log(horizon) ** (1 / (dim + 2))


def bound_slope(dim: int, horizons: Vector) -> float:
    """Return the slope of the log of the bound in log T over these horizons: its log factor counts there."""
    return slope(horizons, bound(dim, horizons)[None])


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


def table_of(rows: "pd.DataFrame") -> tuple[Vector, Matrix]:
    """Return horizons, and the regret of each seed (rows) at each of them."""
    table = rows.pivot_table(index="seed", columns="horizon", values="regret")
    return table.columns.to_numpy(float), table.to_numpy()


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
