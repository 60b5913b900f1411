"""The protocol that every policy keeps, and the few things that most do alike."""

import hashlib
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from os import PathLike
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from tercet import checks
from tercet.checks import Matrix, Vector
from tercet.types import Choice, Feedback, Ids, stable_ids


@runtime_checkable
class Policy(Protocol):
    """Learn from a log, decide, learn from each outcome.

    Law: `choose` never changes the policy; the same state and the same rng give the same choice.
    """

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Learn from logged outcomes, slowly; `remember=False` leaves the online memory empty."""

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Pick one of the rows of `arms` for this context; `arm_ids` are for those who count by name."""

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn from outcomes, fast."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on deciding."""

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""


@runtime_checkable
class Oracle(Protocol):
    """A policy that is shown every arm's reward of the history: no rival, but the best one could hope for."""

    def reveal(self, revealed: Any, rng: np.random.Generator) -> None:
        """Learn from a history with all rewards, in place of `fit`."""


def offered(context: Any, arms: Any) -> tuple[Vector, Matrix]:
    """Return a decision's context and its arms, of which there is at least one."""
    features, matrix = checks.vector("context", context), checks.matrix("arms", arms)
    if not len(matrix):
        raise ValueError("arms must have at least one row to choose from; got none")
    return features, matrix


def highest(scores: Vector, rng: np.random.Generator, *, means: Vector | None = None) -> Choice:
    """Pick the highest score; ties share the probability evenly."""
    best = np.flatnonzero(scores == scores.max())
    propensities = np.zeros(len(scores))
    propensities[best] = 1 / len(best)
    arm = int(best[0] if len(best) == 1 else rng.choice(best))
    return Choice(arm=arm, propensities=propensities, means=means)


def drawn(propensities: Vector, rng: np.random.Generator, *, means: Vector | None = None) -> Choice:
    """Pick an arm with these probabilities."""
    return Choice(
        arm=int(rng.choice(len(propensities), p=propensities)), propensities=propensities, means=means
    )


def check_widths(known: tuple[int, int] | None, widths: tuple[int, int]) -> None:
    """Refuse contexts and arms of other widths than those known, if any are."""
    if known not in (None, widths):
        raise ValueError(f"contexts and arms must have {known} features, as before; got {widths}")


def arm_keys(arms: Matrix, arm_ids: Any = None) -> Ids:
    """Return a number for each arm: made of its id where ids are given, else of its features.

    Two arms with equal features and no ids are one.
    """
    if arm_ids is not None:
        return stable_ids(arm_ids)
    rows = np.ascontiguousarray(arms + 0.0)  # -0.0 and 0.0 are one arm
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, dtype="<i8").astype(np.int64)


def one_hot(arms: Matrix) -> Ids:
    """Return the number of each arm that is told by a one-hot row, for policies with a model an arm."""
    if arms.shape[1] == 0 or not (((arms == 0) | (arms == 1)).all() and (arms.sum(1) == 1).all()):
        raise ValueError(
            "a policy that keeps one model an arm needs one-hot arms (each row a single 1, else 0); "
            "for arms with features take a shared model"
        )
    return arms.argmax(1)


def fresh(policy: Any) -> Any:
    """Return a policy with the same options that has learned nothing."""
    if not is_dataclass(policy) or isinstance(policy, type):
        raise ValueError(
            f"a policy must be an instance of a dataclass, its options being fields; got {policy!r}"
        )
    return replace(policy, **deepcopy(options(policy)))  # options such as networks are not shared


def options(policy: Any) -> dict[str, Any]:
    """Return the options that a policy was made with (not what it learned)."""
    return {option.name: getattr(policy, option.name) for option in fields(policy) if option.init}
