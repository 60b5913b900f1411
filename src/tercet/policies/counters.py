"""Click counters that fade: what a team knows of an article before it has any model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Float

from tercet import checks
from tercet.checks import Array, Vector
from tercet.types import Ids

PRIOR_SHOWS = 2.0  # an arm nobody has seen counts as two looks at the average arm
Counts = Float[np.ndarray, "arms 3"]  # clicks, shows, smoothed rate


class Tally(NamedTuple):
    """Clicks and shows, faded to the time of the latest outcome (`clock`)."""

    clicks: float = 0.0
    shows: float = 0.0
    clock: float = -np.inf


@dataclass(kw_only=True, eq=False)
class ClickCounters:
    """Clicks and shows of each arm (by its key) and of all together, halved every `half_life`.

    The smoothed rate of an arm starts from that of all arms: (clicks + 2·overall) / (shows + 2).

    >>> counters = ClickCounters(half_life=10.0)
    >>> counters.watch(np.array([7, 7]), np.array([1.0, 0.0]), np.array([0.0, 10.0])).round(2)
    array([[0.  , 0.  , 0.5 ],
           [0.5 , 0.5 , 0.73]])
    """

    half_life: float
    _tallies: dict[int, Tally] = field(default_factory=dict, init=False, repr=False)
    _overall: Tally = field(default=Tally(), init=False, repr=False)

    def __post_init__(self) -> None:
        checks.positive("half_life", self.half_life)

    def read(self, keys: Ids, time: float) -> Counts:
        """Return clicks, shows and smoothed rate of each arm at this time."""
        overall = self._faded(self._overall, time)
        average = (overall.clicks + 0.5) / (overall.shows + 1)
        tallies = [self._faded(self._tallies.get(key, Tally()), time) for key in keys.tolist()]
        rows = [
            (tally.clicks, tally.shows, (tally.clicks + PRIOR_SHOWS * average) / (tally.shows + PRIOR_SHOWS))
            for tally in tallies
        ]
        return np.array(rows).reshape(len(keys), 3)

    def watch(self, keys: Ids, rewards: Vector, times: Vector) -> Counts:
        """Count outcomes in the order given; return what was known of each one's arm just before it."""
        before = np.empty((len(keys), 3))
        for row, (reward, time) in enumerate(zip(rewards.tolist(), times.tolist(), strict=True)):
            key = int(keys[row])
            before[row] = self.read(keys[row : row + 1], time)
            self._tallies[key] = self._counted(self._tallies.get(key, Tally()), reward, time)
            self._overall = self._counted(self._overall, reward, time)
        return before

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        tallies = [*self._tallies.values(), self._overall]
        return {"counted": np.array(list(self._tallies), dtype=np.int64), "tallies": np.array(tallies)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], *, half_life: float) -> Self:
        """Return the counters that `to_arrays` described."""
        counters = cls(half_life=half_life)
        *tallies, overall = (Tally(*row) for row in arrays["tallies"].tolist())
        counters._tallies = dict(zip(arrays["counted"].tolist(), tallies, strict=True))
        counters._overall = overall
        return counters

    def _faded(self, tally: Tally, time: float) -> Tally:
        # A question that looks back in time gets the counts as they are, never inflated ones.
        left = 2.0 ** (-max(time - tally.clock, 0.0) / self.half_life)
        return Tally(left * tally.clicks, left * tally.shows, max(time, tally.clock))

    def _counted(self, tally: Tally, reward: float, time: float) -> Tally:
        faded = self._faded(tally, time)
        worth = 2.0 ** (-(faded.clock - time) / self.half_life)  # below 1 where the outcome comes late
        return Tally(faded.clicks + worth * reward, faded.shows + worth, faded.clock)
