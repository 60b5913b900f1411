"""Forgetting rules as values: what the memory drops, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tercet.checks import Array, Vector, positive
from tercet.types import Ids

VANISHED = 40  # halvings: evidence worth 2^-40 of its first day no longer moves any posterior


@runtime_checkable
class Memory(Protocol):
    """What a rule may look at."""

    def __len__(self) -> int: ...
    @property
    def times(self) -> Vector: ...
    @property
    def ids(self) -> Ids: ...
    @property
    def oldest(self) -> float: ...
    @property
    def newest(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class RandomDrop:
    """Drop a random fraction of the memory in every round of so many outcomes (the paper: 20 % in 100).

    Whether and when a row leaves in a round is a hash of its id and the round's number, so a replay drops
    the same rows whatever their order in memory. They leave one by one in the course of the round, because
    a memory of thousands that drops its share `at_once`, at the round's end as in the paper, makes one
    visitor wait for a hundred; after the round the same rows are gone either way.
    """

    fraction: float = 0.2
    every: int = 100
    at_once: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.fraction < 1:
            raise ValueError(f"fraction must lie between 0 and 1; got {self.fraction}")
        if self.every < 1:
            raise ValueError(f"every must be at least 1; got {self.every}")

    def until_next(self, learned: int) -> int | None:
        """Outcomes left before the memory must be looked at."""
        # One by one, too, a look at the end is enough for a batch: who is due early is still due late.
        return self.every - learned % self.every

    def stale(self, memory: Memory, learned: int) -> Array | None:
        """Return the rows to drop when so many outcomes have been learned."""
        outcome = (learned - 1) % self.every + 1  # of this round
        if learned == 0 or (self.at_once and outcome < self.every):
            return None
        due = self.fraction * outcome / self.every
        return _uniform(memory.ids, -(-learned // self.every)) < due


@dataclass(frozen=True, kw_only=True)
class Window:
    """Keep the newest `count` outcomes, or those of the last `duration` units of time.

    Time is counted back from the newest ever seen: one wrong date in the future empties the window.
    """

    count: int | None = None
    duration: float | None = None

    def __post_init__(self) -> None:
        if (self.count is None) == (self.duration is None):
            raise ValueError("a Window takes either count or duration")
        if self.count is not None and self.count < 1:
            raise ValueError(f"count must be at least 1; got {self.count}")
        if self.duration is not None:
            positive("duration", self.duration)

    def until_next(self, learned: int) -> int | None:  # noqa: ARG002
        """Outcomes left before the memory must be looked at: after each batch is enough."""
        return None

    def stale(self, memory: Memory, learned: int) -> Array | None:  # noqa: ARG002
        """Return the rows that have left the window."""
        if self.duration is not None:
            return _before(memory, memory.newest - self.duration)
        assert self.count is not None
        excess = len(memory) - self.count
        if excess <= 0:
            return None
        times = memory.times
        last_out = np.partition(times, excess - 1)[excess - 1]
        gone = times < last_out
        ties = np.flatnonzero(times == last_out)  # of equal times, the smallest ids go first
        gone[ties[np.argsort(memory.ids[ties])][: excess - gone.sum()]] = True
        return gone


@dataclass(frozen=True, kw_only=True)
class Decay:
    """Let evidence fade by half every `half_life` units of time; rows leave when it has vanished."""

    half_life: float

    def __post_init__(self) -> None:
        positive("half_life", self.half_life)

    def until_next(self, learned: int) -> int | None:  # noqa: ARG002
        """Outcomes left before the memory must be looked at: after each batch is enough."""
        return None

    def stale(self, memory: Memory, learned: int) -> Array | None:  # noqa: ARG002
        """Return the rows whose evidence has vanished."""
        return _before(memory, memory.newest - VANISHED * self.half_life)


Forgetting = RandomDrop | Window | Decay


def to_spec(rule: Forgetting | None) -> dict[str, Any] | None:
    """Return a rule as JSON-able values."""
    return None if rule is None else {"rule": type(rule).__name__} | vars(rule)


def from_spec(spec: Mapping[str, Any] | None) -> Forgetting | None:
    """Return the rule that `to_spec` wrote."""
    if spec is None:
        return None
    rules = {rule.__name__: rule for rule in (RandomDrop, Window, Decay)}
    if spec.get("rule") not in rules:
        raise ValueError(f"the forgetting rule must be one of {sorted(rules)}; got {spec.get('rule')!r}")
    return rules[spec["rule"]](**{name: value for name, value in spec.items() if name != "rule"})


def _before(memory: Memory, cut: float) -> Array | None:
    return memory.times < cut if memory.oldest < cut else None


def _uniform(ids: Ids, round_number: int) -> Vector:
    """Hash ids and round to [0, 1): the mixing steps of splitmix64, in which every input bit matters."""
    key = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 * round_number % 2**64)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (key ^ (key >> np.uint64(31))).astype(np.float64) / 2.0**64
