"""What travels between the parts: outcomes (Feedback), decisions (Choice, Posterior) and steps (Round)."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import Any, Self

import numpy as np
from jaxtyping import Int64

from tercet import checks
from tercet.checks import Array, Matrix, Vector

Ids = Int64[np.ndarray, "_"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Feedback:
    """Outcomes, one a row: who came (contexts), what was shown (arms), what it earned (rewards).

    Times are numbers in a unit of your own, or dates (kept as seconds since 1970, UTC). They may arrive
    unsorted, because rewards are late in real life. `propensities` are those of the logged arm. The
    columns are checked and copied once, here, and move together from then on.

    >>> day = Feedback.one(context=[0.2, 1.0], arm=[1.0, 0.0, 0.0], reward=1.0, time=7.0)
    >>> len(Feedback.concat([day, day]))
    2
    """

    contexts: Matrix
    arms: Matrix
    rewards: Vector
    times: Vector | None = None
    ids: Ids | None = None
    arm_ids: Array | None = None
    propensities: Vector | None = None

    def __post_init__(self) -> None:
        contexts = checks.matrix("contexts", self.contexts)
        n = len(contexts)
        arms = checks.matrix("arms", self.arms)
        if len(arms) != n:
            raise ValueError(f"contexts and arms must have equal lengths; got {n} and {len(arms)}")
        self._set("contexts", contexts)
        self._set("arms", arms)
        self._set("rewards", checks.unit("rewards", self.rewards, length=n))
        if self.times is not None:
            self._set("times", checks.vector("times", _seconds(np.asarray(self.times)), length=n))
        if self.ids is not None:
            self._set("ids", checks.integers("ids", self.ids, length=n))
        if self.arm_ids is not None:
            arm_ids = np.asarray(self.arm_ids)
            if arm_ids.shape != (n,):
                raise ValueError(f"arm_ids must have length {n}; got an array of shape {arm_ids.shape}")
            self._set("arm_ids", arm_ids)
        if self.propensities is not None:
            self._set("propensities", checks.unit("propensities", self.propensities, length=n))

    @classmethod
    def trusted(cls, **columns: Array) -> Self:
        """Return outcomes without checks or copies: columns that are right already and nobody else's."""
        feedback = object.__new__(cls)
        for name in cls.__dataclass_fields__:
            column = columns.get(name)
            if column is not None:
                column.flags.writeable = False
            object.__setattr__(feedback, name, column)
        return feedback

    def _set(self, name: str, value: Array) -> None:
        # The dataclass is frozen for everybody else, and so is the copy: policies share histories.
        copy = value.copy()
        copy.flags.writeable = False
        object.__setattr__(self, name, copy)

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, rows: slice | Array | Sequence[int]) -> Self:
        """Return the chosen rows of every column: a slice, a mask or several numbers."""
        if np.ndim(np.empty(0) if isinstance(rows, slice) else rows) != 1:
            raise TypeError("rows come as a slice, a mask or several numbers; for one row take [i : i + 1]")
        return self.trusted(**{name: column[rows] for name, column in self._columns().items()})

    def _columns(self) -> dict[str, Any]:
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: column for name, column in columns.items() if column is not None}

    def joint(self) -> Matrix:
        """Contexts and arms side by side."""
        return np.hstack([self.contexts, self.arms])

    @classmethod
    def one(
        cls,
        *,
        context: Any,
        arm: Any,
        reward: float,
        time: float | None = None,
        id: int | None = None,  # noqa: A002 - the column is called ids
        arm_id: Any = None,
        propensity: float | None = None,
    ) -> Self:
        """Return a single outcome."""
        optional = {"times": time, "ids": id, "arm_ids": arm_id, "propensities": propensity}
        given = {name: np.asarray([value]) for name, value in optional.items() if value is not None}
        return cls(
            contexts=np.asarray([context]), arms=np.asarray([arm]), rewards=np.asarray([reward]), **given
        )

    @classmethod
    def concat(cls, parts: Sequence["Feedback"]) -> Self:
        """Join outcomes; all parts must have the same columns."""
        if not parts:
            raise ValueError("Feedback.concat needs at least one part; got none")
        columns = [part._columns() for part in parts]
        for other in columns[1:]:
            if other.keys() != columns[0].keys():
                raise ValueError(
                    f"all parts must have the same columns; got {sorted(columns[0])} and {sorted(other)}"
                )
        for name in ("contexts", "arms"):
            widths = {column[name].shape[1] for column in columns}
            if len(widths) > 1:
                raise ValueError(f"{name} must have the same width in all parts; got {sorted(widths)}")
        return cls(**{name: np.concatenate([column[name] for column in columns]) for name in columns[0]})

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        context: Sequence[str],
        arm: Sequence[str],
        reward: str,
        time: str | None = None,
        id: str | None = None,  # noqa: A002
        arm_id: str | None = None,
        propensity: str | None = None,
    ) -> Self:
        """Read the named columns of a pandas or polars frame.

        Context and arm columns must be numeric; `tercet.Encoder` makes numbers of anything else.
        A time column may be numbers or dates (then seconds since 1970, UTC); string ids are hashed by
        `stable_ids`.
        """
        import narwhals as nw

        table = nw.from_native(frame, eager_only=True)
        optional = [name for name in (time, id, arm_id, propensity) if name is not None]
        missing = sorted({*context, *arm, reward, *optional} - set(table.columns))
        if missing:
            raise ValueError(f"the frame has no column {missing}; it has {list(table.columns)}")

        def column(name: str) -> Array:
            return np.asarray(table[name].to_numpy())

        def together(names: Sequence[str]) -> Array:
            return np.column_stack([column(name) for name in names]) if names else np.empty((len(table), 0))

        return cls(
            contexts=together(context),
            arms=together(arm),
            rewards=column(reward).astype(np.float64),
            times=None if time is None else column(time),
            ids=None if id is None else stable_ids(column(id)),
            arm_ids=None if arm_id is None else column(arm_id),
            propensities=None if propensity is None else column(propensity),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """The Beta posterior of each arm: mean reward, kernel mass (evidence), and its two parameters."""

    mean: Vector
    mass: Vector
    alpha: Vector
    beta: Vector


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """What any policy returns: the index of the chosen arm and every arm's probability of being chosen.

    `means` are the rewards that the policy expects of the arms, where it predicts any.
    """

    arm: int
    propensities: Vector
    means: Vector | None = None
    posterior: Posterior | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """One step of an environment; `rewards` (realised) and `means` (expected) are hidden from policies.

    `logged` are outcomes of others that arrive before this step; `changed` says that the world has just
    changed abruptly (for measuring the recovery, hidden too).
    """

    context: Vector
    arms: Matrix
    time: float
    rewards: Vector
    means: Vector | None = None
    arm_ids: Array | None = None
    logged: Feedback | None = None
    changed: bool = False


def stable_ids(values: Iterable[Any]) -> Ids:
    """Return 64-bit ids of strings, the same on every machine; integers pass unchanged.

    >>> stable_ids(["event-1", "event-2"])
    array([ 2123818840965202205, -7018772965150590063])
    """
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values))
    if array.dtype.kind == "O" and all(isinstance(value, int | np.integer) for value in array):
        array = array.astype(np.int64)  # a column of integers by another type has the same ids
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        raise ValueError("ids must be integers or strings; got floats, which have no one spelling")
    digests = [hashlib.blake2b(str(value).encode(), digest_size=8).digest() for value in array]
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


def _seconds(times: Array) -> Array:
    """Return dates as seconds since 1970; numbers pass unchanged."""
    if times.dtype.kind == "O" and all(isinstance(time, date | np.datetime64) for time in times.flat):
        times = np.asarray([_utc(time) for time in times.flat], dtype="datetime64[us]").reshape(times.shape)
    if times.dtype.kind != "M":
        return times
    if np.isnat(times).any():
        raise ValueError(f"times must not be missing; row {int(np.flatnonzero(np.isnat(times))[0])} is")
    return times.astype("datetime64[us]").astype(np.int64) / 1e6


def _utc(time: date | np.datetime64) -> date | np.datetime64:
    if isinstance(time, datetime) and time.tzinfo is not None:
        return time.astimezone(UTC).replace(tzinfo=None)
    return time
