"""How well a phi's memory foretells outcomes that phi has not learned from."""

from dataclasses import dataclass, replace

import numpy as np

from tercet import iwkr
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.grove import Grove
from tercet.embedding.inference import Phi
from tercet.embedding.rivals import Implied
from tercet.reference.exact import Estimate, ReferenceSet
from tercet.reference.leaves import Leaves
from tercet.types import Feedback, Ids

QUERIES = 2_048  # held-out rows that are asked for, at most
NEWEST = 10_000  # rows of a history with times that are replayed, at most
REFERENCES = 8_192  # rows that serve the choice of a bandwidth and the measure of luck, at most
MANY_REFERENCES = 20_000  # rows that serve the measure of a chosen bandwidth, at most
SAMPLED = 512  # queries that luck is measured at
SAMPLED_LEAVES = 128  # the same in a grove, where all rows are seen
LITTLE = 0.05  # kernel mass: less says nothing of luck
BLOCKS = 40  # in a replay, rows of a block are asked for at once, then remembered


@dataclass(frozen=True, kw_only=True, eq=False)
class Sight:
    """Where a phi puts the outcomes of a history, and for which of them it is asked."""

    history: Feedback
    points: Matrix
    seen: Ids
    asked: Ids
    rivals: Matrix  # where it puts what the rows that are asked for imply of other arms
    implied: Vector  # the rewards of that
    held: int  # rows that phi has not learned from
    importance: bool

    @classmethod
    def of(
        cls, embed: Phi, history: Feedback, held: Ids, implied: Implied | None = None, *, importance: bool
    ) -> "Sight":
        """Return what a phi sees that has not learned from the held rows, nor from what they imply."""
        points, asked = embed(history.contexts, history.arms), held[:QUERIES]
        rivals, rewards = _rivals(embed, asked, implied, points.shape[1])
        return cls(
            history=history,
            points=points,
            seen=np.delete(np.arange(len(history)), held),
            asked=asked,
            rivals=rivals,
            implied=rewards,
            held=len(held),
            importance=importance,
        )

    @property
    def queries(self) -> Matrix:
        """Where phi puts all that is asked for."""
        return np.concatenate([self.points[self.asked], self.rivals])

    @property
    def rewards(self) -> Vector:
        """What all that is asked for earned."""
        return np.concatenate([self.history.rewards[self.asked], self.implied])

    @property
    def real(self) -> Array:
        """Which of it somebody saw, and nothing only implied."""
        return np.arange(len(self.rewards)) < len(self.asked)

    def late(self) -> "Sight":
        """Return the same, asked only for the newer half of a history with times."""
        times = self.times
        # The rows that are asked for stay out of memory: each would pull its neighbours' estimates to its own
        # luck, and hide what they err together.
        newest = self.seen[np.argsort(times[self.seen], kind="stable")][-NEWEST:]
        middle = times[newest[len(newest) // 2]]
        asked = self.asked[times[self.asked] >= middle]
        asked = asked[np.argsort(times[asked], kind="stable")]
        return replace(self, seen=newest, asked=asked, rivals=self.rivals[:0], implied=self.implied[:0])

    def estimate(self, bandwidth: float, *, most: int) -> Estimate:
        """Return the estimates from the rows that phi has learned from, at most so many of them.

        Masses are scaled to the whole history, with which decisions begin.
        """
        some = self._some(most)
        memory = self._memory(bandwidth, None)
        memory.append(self.points[some], self.history.rewards[some])
        found = memory.estimate(self.queries)
        return Estimate(mass=found.mass * (len(self.history) / len(some)), mean=found.mean)

    def thinned(self, most: int) -> float:
        """Return the share of the rows that phi has learned from which estimates come from."""
        return len(self._some(most)) / len(self.seen)

    def replay(self, bandwidth: float, half_life: float | None) -> Estimate:
        """Return the estimates in the order of time, each from what was known before (of a `late` sight)."""
        times, memory = self.times, self._memory(bandwidth, half_life)
        when, remembered = times[self.seen], 0
        found = []
        for block in np.array_split(self.asked, min(BLOCKS, max(len(self.asked), 1))):
            known = int(np.searchsorted(when, times[block[0]])) if len(block) else 0
            rows = self.seen[remembered:known]
            memory.append(self.points[rows], self.history.rewards[rows], times[rows])
            remembered = max(remembered, known)
            found.append(
                memory.estimate(self.points[block], float(times[block].mean()) if len(block) else None)
            )
        whole = len(self.history) / max(len(self.history) - self.held, 1)
        return Estimate(
            mass=whole * np.concatenate([estimate.mass for estimate in found]),
            mean=np.concatenate([estimate.mean for estimate in found]),
        )

    def sharpest(self, bandwidth: float, half_life: float | None) -> float:
        """Return outcomes per kernel mass: the sharpness that makes the posterior as wide as luck alone.

        A weighted mean of outcomes varies like one of (Σv)² / Σv² of them, with v their weights.
        """
        some = self._some(REFERENCES)
        memory = self._memory(bandwidth, half_life)
        memory.append(
            self.points[some], self.history.rewards[some], None if half_life is None else self.times[some]
        )
        asked = self.asked[-SAMPLED:]
        weights = iwkr.rbf(self.points[asked], self.points[some], bandwidth)
        if half_life is not None:
            weights *= np.exp2((self.times[some] - memory.newest) / half_life)
        masses = weights.sum(axis=1)
        if self.importance:
            weights /= memory.densities
        return _outcomes_per_mass(weights, masses)

    def near(self, bandwidth: float, half_life: float | None) -> Matrix:
        """Return the kernel between the rows that are asked for, rivals apart."""
        points = self.points[self.asked]
        kernel = iwkr.rbf(points, points, bandwidth)
        if half_life is not None:
            times = self.times[self.asked]
            kernel *= np.exp2(-np.abs(times[:, None] - times) / half_life)
        return kernel

    def _some(self, most: int) -> Ids:
        return self.seen[:: -(-len(self.seen) // most)]

    def _memory(self, bandwidth: float, half_life: float | None) -> ReferenceSet:
        return ReferenceSet(
            dim=self.points.shape[1], bandwidth=bandwidth, half_life=half_life, importance=self.importance
        )

    @property
    def times(self) -> Vector:
        """The history's times."""
        assert self.history.times is not None
        return self.history.times


@dataclass(frozen=True, kw_only=True, eq=False)
class Glade:
    """The same of a grove: how well its leaves foretell rows that its trees have not learned from."""

    history: Feedback
    seen: Leaves  # the rows that the trees have learned from
    queries: Matrix  # where all that is asked for falls
    rewards: Vector  # what that earned
    real: Array  # which of it somebody saw, and nothing only implied

    @classmethod
    def of(
        cls,
        grove: Grove,
        history: Feedback,
        held: Ids,
        implied: Implied | None = None,
        learned: Implied | None = None,
    ) -> "Glade":
        """Return what a grove sees that has not learned from the held rows, nor from what they imply.

        It is asked for what is `implied`, but knows only what of that was `learned`.
        """
        seen = np.delete(np.arange(len(history)), held)
        points, asked = grove(history.contexts, history.arms), held[:QUERIES]
        memory = Leaves(trees=grove.trees, leaves=grove.leaves)
        memory.append(points[seen], history.rewards[seen])
        if learned is not None:
            more = learned.outcomes
            memory.suppose(grove(more.contexts, more.arms), more.rewards)
        rivals, rewards = _rivals(grove, asked, implied, grove.trees)
        return cls(
            history=history,
            seen=memory,
            queries=np.concatenate([points[asked], rivals]),
            rewards=np.concatenate([history.rewards[asked], rewards]),
            real=np.arange(len(asked) + len(rivals)) < len(asked),
        )

    def estimate(self) -> Estimate:
        """Return the estimates from the rows that the trees have learned from, as `Sight.estimate`."""
        found = self.seen.estimate(self.queries)
        return Estimate(mass=found.mass * (len(self.history) / len(self.seen)), mean=found.mean)

    def sharpest(self) -> float:
        """Return outcomes per mass, as `Sight.sharpest`."""
        asked = self.queries[-SAMPLED_LEAVES:]
        return _outcomes_per_mass(self.seen.shares(asked), self.seen.estimate(asked).mass)

    def near(self) -> Matrix:
        """Return the kernel between the rows that are asked for: the share of trees with both in a leaf."""
        rows = self.queries[self.real]
        return self.seen.kernel(rows, rows)


def _rivals(embed: Phi, asked: Ids, implied: Implied | None, dim: int) -> tuple[Matrix, Vector]:
    if implied is None:
        return np.empty((0, dim)), np.empty(0)
    more = implied.by(asked, most=QUERIES).outcomes
    return embed(more.contexts, more.arms), more.rewards


def _outcomes_per_mass(weights: Array, masses: Vector) -> float:
    effective = weights.sum(axis=1) ** 2 / np.maximum((weights**2).sum(axis=1), 1e-300)
    known = masses > LITTLE
    return float(np.median(effective[known] / masses[known])) if known.any() else 1.0
