"""Which references carry an estimate, and what it would be without them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet import checks, iwkr
from tercet.checks import Vector
from tercet.reference.exact import Estimate, ReferenceSet
from tercet.reference.leaves import Leaves
from tercet.types import Ids


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """The references that weigh most in one estimate, heaviest first.

    `weights` are shares of the regression (all references together: 1, and less where trees know of outcomes
    that are only implied). `without` is the estimate that the other references would give: exact, their
    densities corrected too; what is implied stays.
    """

    estimate: Estimate
    ids: Ids
    weights: Vector
    rewards: Vector
    times: Vector
    without: Estimate


def explain(
    views: Sequence[tuple[float, ReferenceSet | Leaves, Vector]], *, time: float | None = None, most: int = 5
) -> Evidence:
    """Return the `most` heaviest references of an estimate.

    Each view has a weight, a memory (of the same outcomes in the same order), and the query as it sees it.
    """
    parts = [
        _Grown(references, query) if isinstance(references, Leaves) else _Part(references, query)
        for _, references, query in views
    ]
    memories, weights = [references for _, references, _ in views], [weight for weight, _, _ in views]
    whole = [references.estimate(query[None], time) for _, references, query in views]
    shares = _weights(weights, memories, whole) @ [part.shares() for part in parts]
    top = np.argsort(-shares, kind="stable")[:most]
    rest = [part.without(top, time) for part in parts]
    first = memories[0]
    return Evidence(
        estimate=_mean(_weights(weights, memories, whole), whole),
        ids=first.ids[top],
        weights=shares[top],
        rewards=first.rewards[top],
        times=first.times[top],
        without=_mean(_weights(weights, memories, rest), rest),
    )


def _weights(
    weights: Sequence[float], memories: Sequence[ReferenceSet | Leaves], found: Sequence[Estimate]
) -> Vector:
    """Return what each view has to say: trees without evidence say nothing."""
    silent = [
        isinstance(memory, Leaves) and not one.mass[0] for memory, one in zip(memories, found, strict=True)
    ]
    said = np.where(silent, 0.0, weights)
    return said / said.sum() if any(silent) and said.any() else said


def _mean(weights: Vector, estimates: list[Estimate]) -> Estimate:
    return Estimate(
        mass=weights @ [estimate.mass for estimate in estimates],
        mean=weights @ [estimate.mean for estimate in estimates],
    )


class _Grown:
    """The memory of a grove and what it sees at one query."""

    def __init__(self, references: Leaves, query: Any) -> None:
        self.references, self.query = references, checks.vector("query", query, length=references.dim)

    def shares(self) -> Vector:
        (shares,) = self.references.shares(self.query[None])
        return shares

    def without(self, top: Ids, time: float | None) -> Estimate:  # noqa: ARG002 - nothing fades
        return self.references.without(top, self.query)


class _Part:
    """One memory and what it sees near one query."""

    def __init__(self, references: ReferenceSet, query: Any) -> None:
        query = checks.vector("query", query, length=references.dim)
        self.references = references
        self.points, self.rewards, times = references.points, references.rewards, references.times
        self.kernel = iwkr.truncated_rbf if references.truncated else iwkr.rbf
        self.kappa = self.kernel(query[None], self.points, references.bandwidth)[0]
        # As of the newest time, like `densities`; the mean is the same at any other.
        self.g = np.ones(len(references))
        if references.half_life is not None:
            self.g = np.exp2((times - references.newest) / references.half_life)

    def shares(self, densities: Vector | None = None) -> Vector:
        weights = self.kappa * self.g
        if self.references.importance:
            weights /= np.maximum(self.references.densities if densities is None else densities, 1e-300)
        return weights / max(float(weights.sum()), 1e-300)

    def without(self, top: Ids, time: float | None) -> Estimate:
        references = self.references
        lost = self.g[top] @ self.kernel(self.points[top], self.points, references.bandwidth)
        others = np.ones(len(references), bool)
        others[top] = False
        rest = self.shares(np.maximum(references.densities - lost, self.g)) * others
        fade = 1.0
        if references.half_life is not None and time is not None:
            fade = float(np.exp2(min(references.newest - time, 0.0) / references.half_life))
        total = float(rest.sum())
        return Estimate(
            mass=np.asarray([self.kappa[others] @ self.g[others] * fade]),
            mean=np.asarray([rest @ self.rewards / total if total > 0 else 0.5]),
        )
