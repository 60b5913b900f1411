"""The world in which Theorem 2 is tested: mean rewards, ways to sample, and the bias of both estimators."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tercet.checks import Vector
from tercet.reference.exact import ReferenceSet

STEEP = 2.0  # mu(s) = sigmoid(STEEP·s)
QUERY = 1.0  # where the bias is looked at, samples being standard normal
BANDWIDTHS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
SIMULATED = (0.2, 0.3, 0.5)  # at smaller ones luck outweighs the bias
SMALL = 0.1  # bandwidth at which bias and formulas are compared in the claims
QUERIES = np.linspace(-1.5, 1.5, 31)
FIXED = 0.3
SCHEDULE = 0.75  # the decreasing bandwidth is SCHEDULE·n^(-1/5), the best order in one dimension
WEIGHT_BANDWIDTH = 0.5
HALF = 3.0  # samples of the uniform and the skewed kind lie within [-HALF, HALF]
NODES = 24_001  # of the quadrature, over [-REACH, REACH]: 1/1500 apart
REACH = 8.0

ESTIMATORS = {"IWKR": True, "NWKR": False}
# How samples are spread; u is a sample's place in time, from 0 to 1.
SAMPLINGS: Mapping[str, Callable[[Vector, np.random.Generator], Vector]] = {
    "uniform": lambda u, rng: rng.uniform(-HALF, HALF, len(u)),
    "skewed": lambda u, rng: 2 * HALF * rng.beta(2, 4, len(u)) - HALF,
    # The centre walks to the right, ever more slowly: most samples are of the end of the walk.
    "drifting": lambda u, rng: -2 + 4 * np.sqrt(u) + rng.normal(scale=0.7, size=len(u)),
}


def mu(s: Any) -> Any:
    """Return the mean reward."""
    return 1 / (1 + np.exp(-STEEP * np.asarray(s)))


def slopes(s: float) -> tuple[float, float]:
    """Return mu' and mu'' at a point."""
    value = float(mu(s))
    first = STEEP * value * (1 - value)
    return first, STEEP * first * (1 - 2 * value)


def formulas(bandwidth: Any) -> dict[str, Any]:
    """Return the leading terms of both biases at `QUERY`, where (log p)' = -QUERY."""
    first, second = slopes(QUERY)
    square = np.asarray(bandwidth) ** 2
    return {"IWKR": square * second / 2, "NWKR": square * (second / 2 - first * QUERY)}


def limit_bias(bandwidth: float, query: float = QUERY) -> dict[str, float]:
    """Return both biases for infinitely many standard normal samples, by quadrature.

    The density that the weights divide by is the one smoothed by the kernel, N(0, 1 + σ²), not p itself.
    """
    s = np.linspace(-REACH, REACH, NODES)
    kappa = np.exp(-((s - query) ** 2) / (2 * bandwidth**2))
    p = np.exp(-(s**2) / 2)
    smoothed = np.exp(-(s**2) / (2 * (1 + bandwidth**2)))
    weights = {"IWKR": kappa * p / smoothed, "NWKR": kappa * p}
    return {name: float(w @ (mu(s) - mu(query)) / w.sum()) for name, w in weights.items()}


def estimates(points: Vector, rewards: Vector, queries: Vector, bandwidth: float) -> dict[str, Vector]:
    """Return what both estimators say at the queries."""
    memory = ReferenceSet(dim=1, bandwidth=bandwidth)
    memory.append(points[:, None], rewards)
    arrays, spec = memory.to_arrays()
    plain = ReferenceSet.from_arrays(arrays, dict(spec) | {"importance": False})
    return {
        name: (memory if importance else plain).estimate(queries[:, None]).mean
        for name, importance in ESTIMATORS.items()
    }


def sampled(kind: str, n: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Return n samples of a kind with their rewards of 0 and 1."""
    points = SAMPLINGS[kind]((np.arange(n) + 0.5) / n, rng)
    return points, (rng.random(n) < mu(points)).astype(np.float64)


def squared_errors(task: tuple[int, str, int]) -> list[dict[str, Any]]:
    """Return the mean squared error over the queries, of one draw of samples."""
    seed, kind, n = task
    points, rewards = sampled(kind, n, np.random.default_rng(seed))
    rows = []
    for rule, bandwidth in (("fixed", FIXED), ("decreasing", SCHEDULE * n**-0.2)):
        for name, mean in estimates(points, rewards, QUERIES, bandwidth).items():
            error = float(np.mean((mean - mu(QUERIES)) ** 2))
            row = {"sampling": kind, "n": n, "rule": rule, "estimator": name, "seed": seed}
            rows.append(row | {"squared_error": error})
    return rows


def biases(task: tuple[int, int]) -> list[dict[str, Any]]:
    """Return what both estimators are off at `QUERY`, for n normal samples whose rewards are their means."""
    seed, n = task
    rng = np.random.default_rng(seed)
    points = rng.normal(size=n)
    return [
        {"bandwidth": bandwidth, "n": n, "seed": seed, "estimator": name, "bias": float(mean[0] - mu(QUERY))}
        for bandwidth in SIMULATED
        # Without the noise of rewards: their luck is no part of the bias.
        for name, mean in estimates(points, mu(points), np.array([QUERY]), bandwidth).items()
    ]


def weights(task: tuple[int, int]) -> list[dict[str, Any]]:
    """Return how far n·w is from 1/p and from 1/(kappa * p), on average over normal samples within ±2."""
    seed, n = task
    points = np.random.default_rng(seed).normal(size=n)
    memory = ReferenceSet(dim=1, bandwidth=WEIGHT_BANDWIDTH)
    memory.append(points[:, None], np.zeros(n))
    near = np.abs(points) <= 2
    # 1/(n w) is the mean kernel: √(2π)σ times a density.
    found = memory.densities[near] / (n * np.sqrt(2 * np.pi) * WEIGHT_BANDWIDTH)
    distances = {}
    for name, variance in (("density", 1.0), ("smoothed", 1 + WEIGHT_BANDWIDTH**2)):
        truth = np.exp(-(points[near] ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
        distances[name] = float(np.mean(np.abs(truth / found - 1)))
    return [{"seed": seed, "n": n} | distances]


def simulate(task: tuple[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of one simulation, given its table and its options."""
    parts: dict[str, Callable[[Any], list[dict[str, Any]]]]
    parts = {"errors": squared_errors, "bias": biases, "weights": weights}
    return parts[task[0]](task[1])
