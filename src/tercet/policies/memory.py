"""Past outcomes: columns that grow, read as arrays, and the scale to compare them on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import REACH, scaling
from tercet.policies.base import arm_keys, check_widths
from tercet.types import Feedback, Ids

# `scaling` leaves every value of a history within this, so nothing is cut but what would tear a network's
# weights apart in one step.
STANDARD_REACH = 10.0
COLUMNS = ("contexts", "arms", "rewards", "times", "keys")


@dataclass(frozen=True, kw_only=True, eq=False)
class Scale:
    """Features in units of a history's spread, and cut where they go beyond `reach`."""

    centre: Vector  # contexts first, then arms
    spread: Vector
    context_dim: int
    reach: float = REACH

    @classmethod
    def of(cls, history: Feedback) -> Self:
        """Measure a history, and divide all features by the root of their number as well.

        The distance of two scaled pairs is then the root mean square of their differences: about √2 for two
        random rows of the history, however many features they have.
        """
        centre, spread = _measured(history)
        return cls(
            centre=centre, spread=spread * np.sqrt(max(len(spread), 1)), context_dim=history.contexts.shape[1]
        )

    @classmethod
    def standard(cls, history: Feedback, *, arms: bool = True) -> Self:
        """Measure a history for networks; without `arms`, those stay as they are."""
        centre, spread = _measured(history)
        width = history.contexts.shape[1]
        if not arms:
            centre[width:], spread[width:] = 0, 1
        return cls(centre=centre, spread=spread, context_dim=width, reach=STANDARD_REACH)

    @property
    def dims(self) -> tuple[int, int]:
        """Features of a context and of an arm."""
        return self.context_dim, len(self.centre) - self.context_dim

    def apply(self, contexts: Matrix, arms: Matrix) -> tuple[Matrix, Matrix]:
        """Return scaled contexts and scaled arms; they need not be equally many."""
        first, last = slice(None, self.context_dim), slice(self.context_dim, None)
        scaled = (
            (inputs - self.centre[part]) / self.spread[part]
            for inputs, part in ((contexts, first), (arms, last))
        )
        one, other = (np.clip(inputs, -self.reach, self.reach) for inputs in scaled)
        return one, other

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        numbers = {"context_dim": np.array(self.context_dim), "reach": np.array(self.reach)}
        return {"centre": self.centre, "spread": self.spread} | numbers

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Return the scale that `to_arrays` described."""
        numbers = {name: arrays[name].item() for name in ("context_dim", "reach")}
        return cls(centre=arrays["centre"], spread=arrays["spread"], **numbers)


@dataclass(kw_only=True, eq=False)
class Outcomes:
    """The newest `limit` outcomes (None: all) in the order of arrival.

    Outcomes without times get their number of arrival. With a `scale`, contexts and arms are kept scaled.
    Columns are views that the next `append` may write to: copy what must last.
    """

    limit: int | None = None
    scale: Scale | None = None
    seen: int = 0  # ever, forgotten ones included
    _rows: dict[str, Array] | None = None
    _first: int = 0
    _count: int = 0

    def __post_init__(self) -> None:
        if self.limit is not None:
            checks.whole("limit", self.limit)

    def __len__(self) -> int:
        return self._count

    def append(self, feedback: Feedback) -> None:
        """Remember outcomes and forget the oldest beyond the limit."""
        if not len(feedback):
            return
        arrived = np.arange(self.seen, self.seen + len(feedback), dtype=np.float64)
        contexts, arms = self.scaled(feedback.contexts, feedback.arms)
        new = {
            "contexts": contexts,
            "arms": arms,
            "rewards": feedback.rewards,
            "times": arrived if feedback.times is None else feedback.times,
            "keys": arm_keys(feedback.arms, feedback.arm_ids),
        }
        if self.limit is not None:
            new = {name: column[-self.limit :] for name, column in new.items()}
        count = len(new["rewards"])
        if self.limit is not None:
            excess = max(self._count + count - self.limit, 0)
            self._first, self._count = self._first + excess, self._count - excess
        rows = self._room(new, count)
        for name, column in new.items():
            rows[name][self._first + self._count : self._first + self._count + count] = column
        self._count, self.seen = self._count + count, self.seen + len(feedback)

    def check(self, feedback: Feedback) -> None:
        """Refuse outcomes of another width than those remembered."""
        self._check(feedback.contexts, feedback.arms)

    def scaled(self, contexts: Matrix, arms: Matrix) -> tuple[Matrix, Matrix]:
        """Return contexts and arms as the memory keeps them; they need not be equally many."""
        self._check(contexts, arms)
        return (contexts, arms) if self.scale is None else self.scale.apply(contexts, arms)

    @property
    def dims(self) -> tuple[int, int] | None:
        """Features of a context and of an arm; None before the first outcome, unless the scale knows."""
        if self.scale is not None:
            return self.scale.dims
        return None if self._rows is None else (self.contexts.shape[1], self.arms.shape[1])

    @property
    def contexts(self) -> Matrix:
        return self._column("contexts")

    @property
    def arms(self) -> Matrix:
        return self._column("arms")

    @property
    def rewards(self) -> Vector:
        return self._column("rewards")

    @property
    def times(self) -> Vector:
        return self._column("times")

    @property
    def keys(self) -> Ids:
        """The arms' numbers (`arm_keys`)."""
        return self._column("keys")

    def joint(self) -> Matrix:
        """Contexts and arms side by side."""
        return np.hstack([self.contexts, self.arms])

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        columns = {} if self._rows is None else {name: self._column(name).copy() for name in COLUMNS}
        scale = {} if self.scale is None else self.scale.to_arrays()
        return columns | scale | {"seen": np.array(self.seen)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], *, limit: int | None = None) -> Self:
        """Return the memory that `to_arrays` described."""
        scale = Scale.from_arrays(arrays) if "centre" in arrays else None
        memory = cls(limit=limit, scale=scale, seen=int(arrays["seen"].item()))
        if "rewards" in arrays:
            memory._rows = {name: arrays[name].copy() for name in COLUMNS}
            memory._count = len(arrays["rewards"])
        return memory

    def _check(self, contexts: Matrix, arms: Matrix) -> None:
        check_widths(self.dims, (contexts.shape[1], arms.shape[1]))

    def _column(self, name: str) -> Array:
        if self._rows is None:
            raise ValueError("there are no outcomes yet")
        return self._rows[name][self._first : self._first + self._count]

    def _room(self, new: Mapping[str, Array], count: int) -> dict[str, Array]:
        """Return columns with space for `count` more rows; moves happen seldom enough to cost nothing."""
        needed = self._count + count
        if self._rows is None or self._first + needed > len(self._rows["rewards"]):
            old, size = self._rows, max(2 * needed, 64)
            self._rows = {
                name: np.empty((size, *column.shape[1:]), column.dtype) for name, column in new.items()
            }
            if old is not None:
                for name, column in old.items():
                    self._rows[name][: self._count] = column[self._first : self._first + self._count]
            self._first = 0
        return self._rows


def _measured(history: Feedback) -> tuple[Vector, Vector]:
    """Return centre and spread of each feature; those of an empty history stay as they are."""
    joint = history.joint()
    width = joint.shape[1]
    return scaling(joint) if len(joint) else (np.zeros(width), np.ones(width))


def in_time(history: Feedback) -> Feedback:
    """Return outcomes in the order of their times, or as they came where they have none."""
    return history if history.times is None else history[np.argsort(history.times, kind="stable")]


def offered_keys(arms: Matrix, arm_ids: Any) -> Ids:
    """Return the keys of a decision's arms (`arm_keys`)."""
    keys = arm_keys(arms, arm_ids)
    if len(keys) != len(arms):
        raise ValueError(f"arm_ids must have length {len(arms)}, one for each arm; got {len(keys)}")
    return keys
