"""Policies that ignore features: uniform choice, and one that counts what each arm has earned."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, Self, final

import numpy as np

from tercet import checkpoint, checks, posterior
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import arm_keys, highest, offered, options
from tercet.policies.memory import offered_keys
from tercet.types import Choice, Feedback, Ids, Posterior

PRIOR_COUNTS = 2.0  # an arm nobody has seen counts as two looks at the average arm


@final
@dataclass(kw_only=True, eq=False)
class Uniform:
    """Choose evenly among the arms, and learn nothing."""

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Do nothing."""

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Pick any arm."""
        count = len(offered(context, arms)[1])
        return Choice(arm=int(rng.integers(count)), propensities=np.full(count, 1 / count))

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Do nothing."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write that this was a Uniform."""
        checkpoint.write(path, "Uniform", {}, {})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        checkpoint.read(path, "Uniform")
        return cls()


@dataclass(kw_only=True, eq=False)
class Tallies:
    """Sums by arm that fade: several columns an arm, faded to the time of its latest outcome (its clock)."""

    columns: int
    half_life: float | None = None
    _places: dict[int, int] = field(default_factory=dict, init=False)
    _sums: Matrix = field(init=False)
    _clocks: Vector = field(init=False)

    def __post_init__(self) -> None:
        self._sums, self._clocks = np.zeros((0, self.columns)), np.zeros(0)

    def add(self, keys: Ids, amounts: Matrix, times: Vector | None) -> None:
        """Add a row of amounts for each outcome, late ones at their faded worth."""
        if self.half_life is not None and times is None:
            raise ValueError("with a half_life every outcome needs a time; got feedback without times")
        times = np.zeros(len(keys)) if times is None else times
        arms, arm_of = np.unique(keys, return_inverse=True)
        latest = np.full(len(arms), -np.inf)
        np.maximum.at(latest, arm_of, times)
        self._welcome(arms, latest)
        places = self._lookup(arms)
        clocks = np.maximum(self._clocks[places], latest)
        added = np.zeros((len(arms), self.columns))
        np.add.at(added, arm_of, amounts * self._fading(clocks[arm_of] - times)[:, None])
        kept = self._fading(clocks - self._clocks[places])[:, None]
        self._sums[places] = kept * self._sums[places] + added
        self._clocks[places] = clocks

    def of(self, keys: Ids, time: float | None) -> Matrix:
        """Return the sums of these arms as they have faded by `time`; zeros for unknown arms."""
        if self.half_life is not None and time is None:
            raise ValueError("with a half_life a decision needs its time; got time=None")
        places = self._lookup(keys)
        known = places >= 0
        sums = np.zeros((len(keys), self.columns))
        sums[known] = self._sums[places[known]]
        if time is not None:
            # A decision that looks back in time gets the sums as they are, never inflated ones.
            ages = np.maximum(checks.number("time", time) - self._clocks[places[known]], 0.0)
            sums[known] *= self._fading(ages)[:, None]
        return sums

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        keys = np.array(list(self._places), dtype=np.int64)
        return {"keys": keys, "sums": self._sums, "clocks": self._clocks}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], *, columns: int, half_life: float | None) -> Self:
        """Return the tallies that `to_arrays` described."""
        tallies = cls(columns=columns, half_life=half_life)
        tallies._welcome(arrays["keys"], arrays["clocks"])
        tallies._sums[:] = arrays["sums"]
        return tallies

    def _welcome(self, keys: Ids, clocks: Vector) -> None:
        """Give new arms a place, with nothing earned."""
        new = self._lookup(keys) < 0
        count = len(self._places)
        self._places |= dict(zip(keys[new].tolist(), range(count, count + int(new.sum())), strict=True))
        self._sums = np.concatenate([self._sums, np.zeros((int(new.sum()), self.columns))])
        self._clocks = np.concatenate([self._clocks, clocks[new]])

    def _lookup(self, keys: Ids) -> Ids:
        return np.array([self._places.get(key, -1) for key in keys.tolist()], dtype=np.int64)

    def _fading(self, ages: Vector) -> Vector:
        return np.ones(len(ages)) if self.half_life is None else np.exp2(-ages / self.half_life)


@final
@dataclass(kw_only=True, eq=False)
class ArmThompson:
    """Thompson sampling with one Beta posterior an arm, whoever the visitor is.

    An arm is known by its id, or by its feature row where no ids are given: then two arms with equal
    features are one. With a `half_life` (in units of time) counts fade, and every outcome and decision
    needs its time. Without a `prior` (alpha, beta) an unseen arm counts as two looks at the average arm
    of the history.

    With `explore="greedy"` it plays the highest mean instead: a decayed click counter, clicks over shows.
    A `floor` is the probability of a uniform choice, the epsilon of epsilon-greedy.

    >>> policy, rng = ArmThompson(), np.random.default_rng(0)
    >>> arms = np.eye(2)
    >>> policy.update(Feedback(contexts=np.zeros((90, 1)), arms=arms[[0] * 90], rewards=np.ones(90)), rng)
    >>> policy.choose([0.0], arms, rng).propensities.round(2)
    array([0.99, 0.01])
    """

    half_life: float | None = None
    prior: tuple[float, float] | None = None
    explore: Literal["thompson", "greedy"] = "thompson"
    floor: float = 0.0
    _tallies: Tallies = field(init=False, repr=False)
    _arm_dim: int | None = field(default=None, init=False, repr=False)
    _average: float = field(default=0.5, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.half_life is not None:
            checks.positive("half_life", self.half_life)
        if self.prior is not None:
            alpha, beta = self.prior
            self.prior = (checks.positive("prior[0]", alpha), checks.positive("prior[1]", beta))
        if self.explore not in ("thompson", "greedy"):
            raise ValueError(f'explore must be "thompson" or "greedy"; got {self.explore!r}')
        checks.unit("floor", [self.floor])
        self._tallies = Tallies(columns=2, half_life=self.half_life)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, take the prior's mean from the history, and count its outcomes."""
        self._tallies, self._arm_dim = Tallies(columns=2, half_life=self.half_life), None
        # The prior must stay within (0, 1) even where nobody, or everybody, bought.
        self._average = (float(history.rewards.sum()) + 0.5) / (len(history) + 1)
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
        """Draw from every arm's posterior (or take its mean) and pick the highest."""
        beliefs = self._beliefs(offered(context, arms)[1], time, arm_ids)
        if self.explore == "greedy":
            choice = highest(beliefs.mean, rng)
            chances = choice.propensities
        else:
            choice = highest(posterior.draw(beliefs.alpha, beliefs.beta, rng), rng)
            chances = posterior.quick_propensities(beliefs.alpha, beliefs.beta)
        arm = choice.arm
        if self.floor > 0:
            chances = posterior.with_floor(chances, self.floor)
            if rng.random() < self.floor:
                arm = int(rng.integers(len(chances)))
        return Choice(arm=arm, propensities=chances, means=beliefs.mean, posterior=beliefs)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Count outcomes, late ones at their faded worth."""
        self._check(feedback.arms)
        amounts = np.column_stack([feedback.rewards, 1 - feedback.rewards])
        self._tallies.add(arm_keys(feedback.arms, feedback.arm_ids), amounts, feedback.times)
        self._arm_dim = feedback.arms.shape[1]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tallies, the arms they belong to and the options."""
        spec = {"options": options(self), "average": self._average, "arm_dim": self._arm_dim}
        checkpoint.write(path, "ArmThompson", self._tallies.to_arrays(), spec)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "ArmThompson")
        prior = spec["options"]["prior"]
        policy = cls(**(spec["options"] | {"prior": None if prior is None else tuple(prior)}))
        policy._average, policy._arm_dim = spec["average"], spec["arm_dim"]
        policy._tallies = Tallies.from_arrays(arrays, columns=2, half_life=policy.half_life)
        return policy

    def _beliefs(self, arms: Matrix, time: float | None, arm_ids: Any) -> Posterior:
        self._check(arms)
        counts = self._tallies.of(offered_keys(arms, arm_ids), time)
        prior = self.prior or (PRIOR_COUNTS * self._average, PRIOR_COUNTS * (1 - self._average))
        alpha, beta = (counts + prior).T
        return Posterior(mean=alpha / (alpha + beta), mass=counts.sum(1), alpha=alpha, beta=beta)

    def _check(self, arms: Matrix) -> None:
        if self._arm_dim not in (None, arms.shape[1]):
            raise ValueError(f"arms must have {self._arm_dim} columns; got {arms.shape[1]}")
