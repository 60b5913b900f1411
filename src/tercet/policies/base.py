"""The protocol that every policy keeps, and the two things that most do alike."""

from os import PathLike
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from tercet import checks
from tercet.checks import Matrix, Vector
from tercet.types import Choice, Feedback


@runtime_checkable
class Policy(Protocol):
    """Learn from a log, decide, learn from each outcome.

    Law: `choose` never changes the policy; the same state and the same rng give the same choice.
    """

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Learn from logged outcomes, slowly; `remember=False` leaves the online memory empty."""

    def choose(
        self, context: Any, arms: Any, rng: np.random.Generator, *, time: float | None = None
    ) -> Choice:
        """Pick one of the rows of `arms` for this context."""

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn from outcomes, fast."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on deciding."""

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""


def offered(context: Any, arms: Any) -> tuple[Vector, Matrix]:
    """Return a decision's context and its arms, of which there is at least one."""
    features, matrix = checks.vector("context", context), checks.matrix("arms", arms)
    if not len(matrix):
        raise ValueError("arms must have at least one row to choose from; got none")
    return features, matrix


def highest(scores: Vector, rng: np.random.Generator) -> Choice:
    """Pick the highest score; ties share the probability evenly."""
    best = np.flatnonzero(scores == scores.max())
    propensities = np.zeros(len(scores))
    propensities[best] = 1 / len(best)
    return Choice(arm=int(best[0] if len(best) == 1 else rng.choice(best)), propensities=propensities)
