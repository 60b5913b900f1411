"""SquareCB: play arms by the inverse of the gap that a regression sees between them and the best."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint
from tercet.checks import Vector
from tercet.policies.base import drawn, options
from tercet.policies.ridge import Features, Ridges, at_least_zero, faded_count
from tercet.types import Choice, Feedback


@final
@dataclass(kw_only=True, eq=False)
class SquareCB:
    """Play arm a with probability 1/(K + γ(ŷ* - ŷ_a)), the best with the rest (Foster and Rakhlin, 2020).

    The rewards ŷ come from a ridge regression, of which features and discount are as in `LinUCB`, and
    γ = gamma_scale·√t, where t counts the outcomes learned, the history's too: what makes gaps trustworthy
    is what the regression has seen. Faded outcomes count by what is left of them.

    >>> policy, rng = SquareCB(features="disjoint"), np.random.default_rng(0)
    >>> policy.update(Feedback.one(context=[1.0], arm=[0.0, 1.0], reward=1.0), rng)
    >>> policy.choose([1.0], np.eye(2), rng).propensities.round(3)
    array([0.115, 0.885])
    """

    gamma_scale: float = 10.0
    penalty: float = 1.0
    discount: float = 1.0
    features: Features = "shared"
    _ridges: Ridges = field(init=False, repr=False)

    def __post_init__(self) -> None:
        at_least_zero("gamma_scale", self.gamma_scale)
        self._ridges = Ridges(features=self.features, penalty=self.penalty, discount=self.discount)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the history in the order of its times."""
        self._ridges = self._ridges.refit(history, remember=remember)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Predict every arm's reward and draw an arm by the gaps."""
        means = self._ridges.view(context, arms).means
        gamma = self.gamma_scale * np.sqrt(faded_count(self._ridges.seen, self.discount))
        return drawn(inverse_gap(means, float(gamma)), rng, means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes in the order given."""
        self._ridges = self._ridges.learn(feedback)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the regressions and the options."""
        checkpoint.write(path, "SquareCB", self._ridges.to_arrays(), options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "SquareCB")
        policy = cls(**spec)
        policy._ridges = policy._ridges.from_arrays(arrays)
        return policy


def inverse_gap(means: Vector, gamma: float) -> Vector:
    """Return 1/(K + γ·gap) of each arm, and what is left over to the best; several best share it evenly.

    >>> inverse_gap(np.array([0.5, 0.3, 0.5]), gamma=10.0).round(3)
    array([0.4, 0.2, 0.4])
    """
    chances = 1 / (len(means) + gamma * (means.max() - means))
    best = means == means.max()
    chances[best] += (1 - chances.sum()) / best.sum()
    return chances
