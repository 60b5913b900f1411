"""What outcomes say of arms that were not played: where one arm paid, its rivals might not have.

In many problems a context has one right arm: a ticket its team, a picture its label. Whoever knows that
learns from a reward of 1 about all other arms too, and of two arms from a reward of 0. Nobody tells C3 that
it is so; it tries, and keeps to it where outcomes that it has not learned from are foretold better so
(`c3_fit`).
"""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from tercet.checks import Matrix, Vector
from tercet.types import Feedback, Ids

MOST = 100  # arms: where there are more, a few of them per outcome would say little
SEEN = 20  # outcomes of an arm, at least: nothing is held against one that hardly had its chance
SHARE = 2  # implied outcomes for each that was seen of an arm, at most


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Implied:
    """Outcomes that a history implies: the arms and rewards, and which of its outcomes implies each."""

    history: Feedback
    sources: Ids
    arms: Matrix
    rewards: Vector

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def outcomes(self) -> Feedback:
        """Implied outcomes, with a copy of the context of each: of many it is large."""
        contexts = self.history.contexts[self.sources]
        return Feedback.trusted(contexts=contexts, arms=self.arms, rewards=self.rewards)

    def by(self, rows: Ids, *, most: int) -> Self:
        """Return what these outcomes imply, at most so much of it."""
        found = np.flatnonzero(np.isin(self.sources, rows))
        return self._of(found[:: max(1, -(-len(found) // most))])

    def without(self, rows: Ids) -> Self:
        """Return what all but these outcomes imply."""
        return self._of(np.flatnonzero(~np.isin(self.sources, rows)))

    def some(self, most: int, rng: np.random.Generator) -> Self:
        """Return at most so many."""
        return self if len(self) <= most else self._of(rng.permutation(len(self))[:most])

    def _of(self, rows: Ids) -> Self:
        return replace(self, sources=self.sources[rows], arms=self.arms[rows], rewards=self.rewards[rows])


def implied(history: Feedback, rng: np.random.Generator) -> Implied | None:
    """Return an outcome of 0 for rivals of each arm that paid 1, or None: nothing is implied.

    Of two arms one always pays: where it was not the one that was played, it was the other. Of more, so much
    is implied that among all outcomes arms pay as often as by chance: where the log shows the right arm no
    more often than that, failures of others are no news.
    """
    arms, played, seen = np.unique(history.arms, axis=0, return_inverse=True, return_counts=True)
    count, played = len(arms), played.reshape(-1)
    telling = np.flatnonzero(history.rewards == 1 if count > 2 else np.isin(history.rewards, (0, 1)))
    failures = len(history) if count == 2 else count * len(telling) - len(history)  # that are news, at most
    if not 2 <= count <= MOST or not len(telling) or failures <= 0:
        return None
    each = min(count - 1, -(-SHARE * len(history) // len(telling)))
    steps = np.argsort(rng.random((len(telling), count - 1)), axis=1)[:, :each] + 1  # from an arm to rivals
    rivals = ((played[telling, None] + steps) % count).ravel()
    sources = np.repeat(telling, each)
    chosen = _at_most(np.where(seen < SEEN, 0, SHARE * seen), rivals, rng)
    if not len(chosen):
        return None
    rivals, sources = rivals[chosen], sources[chosen]
    rewards = 1.0 - history.rewards[sources]
    found = Implied(history=history, sources=sources, arms=arms[rivals], rewards=rewards)
    return found.some(failures, rng)


def _at_most(limits: Ids, values: Ids, rng: np.random.Generator) -> Ids:
    """Return the places of so many of each value, drawn evenly, in their order."""
    order = rng.permutation(len(values))
    order = order[np.argsort(values[order], kind="stable")]
    among = values[order]
    rank = np.arange(len(values)) - np.searchsorted(among, among)  # among those of the same value
    return np.sort(order[rank < limits[among]])
