"""C-TS and C-UCB: what one arm has earned bounds what another can earn, so some need no exploring."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal, Self, final

import numpy as np
from jaxtyping import Bool, Float

from tercet import checkpoint, checks, gaussian
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import arm_keys, highest, offered, options
from tercet.policies.memory import in_time, offered_keys
from tercet.policies.simple import Tallies
from tercet.types import Choice, Feedback, Ids

Table = Float[np.ndarray, "arms others bins"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PseudoRewards:
    """Upper bounds s(l, k, r) of what arm l earns where arm k has earned r, for the pairs a log tells of.

    `cells` are the numbers (l · arms + k) · bins + r of the known ones, in rising order.
    """

    arms: Ids
    cells: Ids
    bounds: Vector
    bins: int

    @classmethod
    def of(cls, history: Feedback, *, reach: int, bins: int, confidence: float) -> Self:
        """Estimate them from outcomes at most `reach` places apart in time.

        The bound is the mean of arm l's outcomes that have an outcome r of arm k in reach, each counted
        once, plus Hoeffding's √(ln(1 / (1 - confidence)) / 2n).
        """
        arms, arm = np.unique(arm_keys(history.arms, history.arm_ids), return_inverse=True)
        levels, rows = level(history.rewards, bins), np.arange(len(history))
        pairs = []
        for lag in range(1, reach + 1):
            late = rows[lag:]
            early = rows[: len(late)]
            pairs += [np.stack([early, late]), np.stack([late, early])]
        earned, given = np.concatenate(pairs, axis=1)
        apart = arm[earned] != arm[given]
        earned, given = earned[apart], given[apart]
        cell = (arm[earned] * len(arms) + arm[given]) * bins + levels[given]
        cell, earned = np.divmod(np.unique(cell * len(history) + earned), max(len(history), 1))
        cells, place = np.unique(cell, return_inverse=True)
        count = np.bincount(place)
        mean = np.bincount(place, history.rewards[earned]) / count
        radius = np.sqrt(np.log(1 / (1 - confidence)) / (2 * count))
        return cls(arms=arms, cells=cells, bounds=np.minimum(mean + radius, 1.0), bins=bins)

    def between(self, keys: Ids, others: Ids) -> Table:
        """Return the bounds of arms `keys` given `others`; 1, which says nothing, where they are unknown."""
        (left, known), (right, met) = _find(self.arms, keys), _find(self.arms, others)
        pairs = left[:, None] * len(self.arms) + right
        places, found = _find(self.cells, pairs[:, :, None] * self.bins + np.arange(self.bins))
        found &= (known[:, None] & met)[:, :, None]
        bounds = np.ones(found.shape)
        bounds[found] = self.bounds[places[found]]
        return bounds


@final
@dataclass(kw_only=True, eq=False)
class CorrelatedArms:
    """C-TS and C-UCB (Gupta, Chaudhari, Joshi & Yağan, 2021): explore only arms that could be the best.

    Take the offered arms with at least their even share of the outcomes, and the best of them by mean. An
    arm whose pseudo-rewards, averaged over the outcomes of one of the others, stay below that mean is not
    competitive. Among the competitive arms (and the best) play Thompson sampling, N(mean, width²/(n + 1)),
    or UCB1, mean + width·√(2 ln t / n). The visitor is ignored; an arm goes by its id, or else by its
    features. An arm without outcomes has the history's mean reward.

    The paper is given its table of pseudo-rewards: bounds of E[reward of l | k earned r], for the same
    visitor. A log shows one arm to a visitor, so here the table is made of outcomes of l and k at most
    `reach` places apart in the history. That tells how arms rise and fall together in time; it is a bound
    in the paper's sense only where this, rather than each visitor's taste, is what couples them. Pairs
    never seen have the bound 1; with no pairs the policy is plain Thompson sampling or UCB1. The table is
    not learned on: set a `half_life` for the counts, but a table that has become wrong stays wrong.

    `bins` levels of reward are told apart when conditioning. `confidence` is that of each bound alone.
    """

    explore: Literal["thompson", "ucb"] = "thompson"
    width: float = 1.0
    reach: int = 5
    bins: int = 2
    confidence: float = 0.95
    half_life: float | None = None
    _table: PseudoRewards | None = field(default=None, init=False, repr=False)
    _tallies: Tallies = field(init=False, repr=False)  # outcomes by level, and the rewards' sum
    _average: float = field(default=0.5, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.explore not in ("thompson", "ucb"):
            raise ValueError(f'explore must be "thompson" or "ucb"; got {self.explore!r}')
        if checks.number("width", self.width) < 0:
            raise ValueError(f"width must be a number of at least 0; got {self.width}")
        checks.whole("reach", self.reach)
        if checks.whole("bins", self.bins) < 2:
            raise ValueError(f"bins must be at least 2, for rewards of 0 and 1; got {self.bins}")
        if not 0 <= checks.number("confidence", self.confidence) < 1:
            raise ValueError(f"confidence must lie in [0, 1), 1 left out; got {self.confidence}")
        if self.half_life is not None:
            checks.positive("half_life", self.half_life)
        self._tallies = Tallies(columns=self.bins + 1, half_life=self.half_life)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, make the table from the history, and count its outcomes."""
        self._average = float(history.rewards.mean()) if len(history) else 0.5
        self._table = PseudoRewards.of(
            in_time(history), reach=self.reach, bins=self.bins, confidence=self.confidence
        )
        self._tallies = Tallies(columns=self.bins + 1, half_life=self.half_life)
        self.update(history if remember else history[:0], rng)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Find the competitive arms, and explore among them."""
        keys = offered_keys(offered(context, arms)[1], arm_ids)
        tallies = self._tallies.of(keys, time)
        levels, counts = tallies[:, :-1], tallies[:, :-1].sum(1)
        means = np.full(len(keys), self._average)
        np.divide(tallies[:, -1], counts, out=means, where=counts > 0)
        rivals = np.flatnonzero(self._competitive(keys, levels, means))
        choice = self._explored(means[rivals], counts[rivals], counts.sum(), rng)
        propensities = np.zeros(len(keys))
        propensities[rivals] = choice.propensities
        return Choice(arm=int(rivals[choice.arm]), propensities=propensities, means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Count outcomes, late ones at their faded worth."""
        amounts = np.hstack(
            [np.eye(self.bins)[level(feedback.rewards, self.bins)], feedback.rewards[:, None]]
        )
        self._tallies.add(arm_keys(feedback.arms, feedback.arm_ids), amounts, feedback.times)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table, the counts and the options."""
        arrays = self._tallies.to_arrays()
        if self._table is not None:
            arrays |= {name: getattr(self._table, name) for name in ("arms", "cells", "bounds")}
        spec = {"options": options(self), "average": self._average}
        checkpoint.write(path, "CorrelatedArms", arrays, spec)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "CorrelatedArms")
        policy = cls(**spec["options"])
        policy._average = spec["average"]
        policy._tallies = Tallies.from_arrays(arrays, columns=policy.bins + 1, half_life=policy.half_life)
        if "arms" in arrays:
            table = {name: arrays[name] for name in ("arms", "cells", "bounds")}
            policy._table = PseudoRewards(**table, bins=policy.bins)
        return policy

    def _explored(self, means: Vector, counts: Vector, total: float, rng: np.random.Generator) -> Choice:
        """Choose among the competitive arms by the plain algorithm."""
        if self.explore == "thompson":
            spread = self.width / np.sqrt(counts + 1)
            choice = highest(rng.normal(means, spread), rng)
            return replace(choice, propensities=gaussian.propensities(means, spread))
        # At least 1, or faded counts of less than e outcomes would end all exploration.
        log_time = max(np.log(max(total, 1.0)), 1.0)
        scores = np.full(len(means), np.inf)
        tried = counts > 0
        scores[tried] = means[tried] + self.width * np.sqrt(2 * log_time / counts[tried])
        return highest(scores, rng)

    def _competitive(self, keys: Ids, levels: Matrix, means: Vector) -> Bool[np.ndarray, "_"]:
        """Return which arms may be the best, as far as the others' outcomes tell."""
        counts = levels.sum(1)
        if self._table is None or not counts.any():
            return np.ones(len(keys), dtype=np.bool_)
        # The mean of equal numbers may be off by a rounding: the largest is never below it.
        telling = np.flatnonzero(counts >= min(counts.mean(), counts.max()))
        best = means[telling].max()
        table = self._table.between(keys, keys[telling])
        # φ(l, k) = Σ_r n_k(r) s(l, k, r) / n_k, and 1 for an arm and itself; taken from 1, so that nothing
        # known is exactly 1
        bounds = 1 - ((1 - table) * (levels[telling] / counts[telling, None])).sum(2)
        competitive = bounds.min(1) >= best
        competitive[telling] |= means[telling] == best
        return competitive


def level(rewards: Vector, bins: int) -> Ids:
    """Return the number of the nearest of `bins` rewards that are evenly spread over [0, 1]."""
    return np.floor(rewards * (bins - 1) + 0.5).astype(np.int64)


def _find(known: Ids, wanted: Array) -> tuple[Array, Array]:
    """Return where the wanted numbers stand in a rising list, and whether they do."""
    if not len(known):
        return np.zeros(wanted.shape, dtype=np.int64), np.zeros(wanted.shape, dtype=np.bool_)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return places, known[places] == wanted
