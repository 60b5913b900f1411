"""Which references carry an estimate, and what it would be without them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet import checks, iwkr
from tercet.checks import Vector
from tercet.reference.exact import Estimate, ReferenceSet
from tercet.types import Ids


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """The references that weigh most in one estimate, heaviest first.

    `weights` are shares of the regression (all references together: 1). `without` is the estimate that
    the other references would give: exact, their densities corrected too.
    """

    estimate: Estimate
    ids: Ids
    weights: Vector
    rewards: Vector
    times: Vector
    without: Estimate


def explain(references: ReferenceSet, query: Any, *, time: float | None = None, most: int = 5) -> Evidence:
    """Return the `most` heaviest references of the estimate at one query."""
    query = checks.vector("query", query, length=references.dim)
    points, rewards, times = references.points, references.rewards, references.times
    kernel = iwkr.truncated_rbf if references.truncated else iwkr.rbf
    kappa = kernel(query[None], points, references.bandwidth)
    # As of the newest time, like `densities`; the mean is the same at any other.
    g = np.ones(len(references))
    if references.half_life is not None:
        g = np.exp2((times - references.newest) / references.half_life)

    def shares(densities: Vector) -> Vector:
        weights = kappa[0] * g / np.maximum(densities, 1e-300) if references.importance else kappa[0] * g
        return weights / max(float(weights.sum()), 1e-300)

    weights = shares(references.densities)
    top = np.argsort(-weights, kind="stable")[:most]
    lost = g[top] @ kernel(points[top], points, references.bandwidth)
    others = np.ones(len(references), bool)
    others[top] = False
    rest = shares(np.maximum(references.densities - lost, g)) * others
    fade = 1.0
    if references.half_life is not None and time is not None:
        fade = float(np.exp2((references.newest - time) / references.half_life))
    total = float(rest.sum())
    without = Estimate(
        mass=np.asarray([kappa[0, others] @ g[others] * fade]),
        mean=np.asarray([rest @ rewards / total if total > 0 else 0.5]),
    )
    return Evidence(
        estimate=references.estimate(query[None], time),
        ids=references.ids[top],
        weights=weights[top],
        rewards=rewards[top],
        times=times[top],
        without=without,
    )
