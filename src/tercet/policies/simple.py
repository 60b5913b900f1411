"""Policies that ignore features: uniform choice, and a Thompson sampler that knows each arm by itself."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple, Self, final

import numpy as np

from tercet import checkpoint, checks, posterior
from tercet.checks import Matrix, Vector
from tercet.policies.base import offered
from tercet.types import Choice, Feedback, Posterior

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


class Tally(NamedTuple):
    """What one arm has earned, faded to the time of its latest outcome (`clock`)."""

    wins: float
    losses: float
    clock: float


@final
@dataclass(kw_only=True, eq=False)
class ArmThompson:
    """Thompson sampling with one Beta posterior an arm, whoever the visitor is.

    An arm is known by its feature row: two arms with equal features are one. With a `half_life` (in
    units of time) counts fade, and every outcome and decision needs its time. Without a `prior`
    (alpha, beta) an unseen arm counts as two looks at the average arm of the history.

    >>> policy, rng = ArmThompson(), np.random.default_rng(0)
    >>> arms = np.eye(2)
    >>> policy.update(Feedback(contexts=np.zeros((90, 1)), arms=arms[[0] * 90], rewards=np.ones(90)), rng)
    >>> policy.choose([0.0], arms, rng).propensities.round(2)
    array([0.99, 0.01])
    """

    half_life: float | None = None
    prior: tuple[float, float] | None = None
    _tallies: dict[bytes, Tally] = field(default_factory=dict, init=False, repr=False)
    _arm_dim: int | None = field(default=None, init=False, repr=False)
    _average: float = field(default=0.5, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.half_life is not None:
            checks.positive("half_life", self.half_life)
        if self.prior is not None:
            alpha, beta = self.prior
            self.prior = (checks.positive("prior[0]", alpha), checks.positive("prior[1]", beta))

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, take the prior's mean from the history, and count its outcomes."""
        self._tallies, self._arm_dim = {}, None
        # The prior must stay within (0, 1) even where nobody, or everybody, bought.
        self._average = (float(history.rewards.sum()) + 0.5) / (len(history) + 1)
        if remember:
            self.update(history, rng)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Draw from every arm's posterior and pick the highest draw."""
        if self.half_life is not None and time is None:
            raise ValueError("with a half_life a decision needs its time; got time=None")
        if time is not None and not np.isfinite(time):
            raise ValueError(f"time must be finite; got {time}")
        keys = self._keys(offered(context, arms)[1])
        counts = np.array([self._counts(key, time) for key in keys])
        alpha, beta = (counts + self._prior()).T
        draws = posterior.draw(alpha, beta, rng)
        return Choice(
            arm=int(np.argmax(draws)),
            propensities=posterior.quick_propensities(alpha, beta),
            posterior=Posterior(mean=alpha / (alpha + beta), mass=counts.sum(1), alpha=alpha, beta=beta),
        )

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Count outcomes, late ones at their faded worth."""
        if self.half_life is not None and feedback.times is None:
            raise ValueError("with a half_life every outcome needs a time; got feedback without times")
        times = np.zeros(len(feedback)) if feedback.times is None else feedback.times
        keys = self._keys(feedback.arms)
        for key, reward, time in zip(keys, feedback.rewards.tolist(), times.tolist(), strict=True):
            old = self._tallies.get(key, Tally(0.0, 0.0, time))
            clock = max(old.clock, time)
            kept, worth = self._fading(clock - old.clock), self._fading(clock - time)
            self._tallies[key] = Tally(
                kept * old.wins + worth * reward, kept * old.losses + worth * (1 - reward), clock
            )
        self._arm_dim = feedback.arms.shape[1]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tallies, the arms they belong to and the options."""
        count = len(self._tallies)
        arrays = {
            "arms": np.frombuffer(b"".join(self._tallies)).reshape(count, self._arm_dim or 0),
            "tallies": np.array(list(self._tallies.values())).reshape(count, 3),
        }
        spec = {"half_life": self.half_life, "prior": self.prior, "average": self._average}
        checkpoint.write(path, "ArmThompson", arrays, {**spec, "arm_dim": self._arm_dim})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "ArmThompson")
        prior = spec["prior"]
        policy = cls(half_life=spec["half_life"], prior=None if prior is None else (prior[0], prior[1]))
        policy._average, policy._arm_dim = spec["average"], spec["arm_dim"]
        tallies = (Tally(*row) for row in arrays["tallies"].tolist())
        policy._tallies = dict(zip(policy._keys(arrays["arms"]), tallies, strict=True))
        return policy

    def _prior(self) -> Vector:
        if self.prior is not None:
            return np.array(self.prior)
        return PRIOR_COUNTS * np.array([self._average, 1 - self._average])

    def _fading(self, age: float) -> float:
        return 1.0 if self.half_life is None else float(np.exp2(-age / self.half_life))

    def _counts(self, key: bytes, time: float | None) -> tuple[float, float]:
        tally = self._tallies.get(key)
        if tally is None:
            return 0.0, 0.0
        # A decision that looks back in time gets the counts as they are, never inflated ones.
        left = 1.0 if time is None else self._fading(max(time - tally.clock, 0.0))
        return left * tally.wins, left * tally.losses

    def _keys(self, arms: Matrix) -> list[bytes]:
        if self._arm_dim not in (None, arms.shape[1]):
            raise ValueError(f"arms must have {self._arm_dim} columns; got {arms.shape[1]}")
        return [arm.tobytes() for arm in arms + 0.0]  # -0.0 and 0.0 are one arm
