"""Past outcomes in columns that grow, for policies that refit: appended one by one, read as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import arm_keys
from tercet.types import Feedback, Ids

COLUMNS = ("contexts", "arms", "rewards", "times", "keys")


@dataclass(kw_only=True, eq=False)
class Outcomes:
    """The newest `limit` outcomes (None: all) in the order of arrival.

    Outcomes without times get their number of arrival. Columns are views that the next `append` may
    write to: copy what must last.
    """

    limit: int | None = None
    seen: int = 0  # ever, forgotten ones included
    _rows: dict[str, Array] | None = None
    _first: int = 0
    _count: int = 0

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit must be at least 1 outcome; got {self.limit}")

    def __len__(self) -> int:
        return self._count

    def append(self, feedback: Feedback) -> None:
        """Remember outcomes and forget the oldest beyond the limit."""
        if not len(feedback):
            return
        self.check(feedback)
        arrived = np.arange(self.seen, self.seen + len(feedback), dtype=np.float64)
        new = {
            "contexts": feedback.contexts,
            "arms": feedback.arms,
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
        dims = (feedback.contexts.shape[1], feedback.arms.shape[1])
        if self.dims not in (None, dims):
            raise ValueError(f"contexts and arms must have {self.dims} features, as before; got {dims}")

    @property
    def dims(self) -> tuple[int, int] | None:
        """Features of a context and of an arm; None before the first outcome."""
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

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        columns = {} if self._rows is None else {name: self._column(name).copy() for name in COLUMNS}
        return columns | {"seen": np.array(self.seen)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], *, limit: int | None = None) -> Self:
        """Return the memory that `to_arrays` described."""
        memory = cls(limit=limit, seen=int(arrays["seen"]))
        if "rewards" in arrays:
            memory._rows = {name: arrays[name].copy() for name in COLUMNS}
            memory._count = len(arrays["rewards"])
        return memory

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
