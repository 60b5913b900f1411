"""Two towers: a network for contexts and one for arms, whose outputs' dot product is the reward's logit."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks, posterior
from tercet.policies.base import drawn, highest, offered, options
from tercet.policies.memory import Outcomes, Scale, in_time
from tercet.policies.networks import Course, Network, parts, predict, sigmoid, sizes, train
from tercet.types import Choice, Feedback

Towers = tuple[Network, ...]


@final
@dataclass(kw_only=True, eq=False)
class TwoTower:
    """Play the arm whose tower's output has the largest dot product with the context's.

    ReLU between layers, cross-entropy on the logit. Trained once, on the history, unless `refit` is given:
    the retrieval model of recommender systems (Yi et al., 2019), as C3's paper compares with it.
    `TwoTower.small()` and `TwoTower.large()` are that paper's sizes.

    Parameters
    ----------
    context_layers, arm_layers
        Widths of each tower's layers after its inputs; the last ones must be equal.
    epochs, rate, batch, validation
        Of the training by Adam; the epoch that best predicts the share held out is kept.
    epsilon
        Probability of a uniform choice.
    refit
        Train on, from the current weights and on all outcomes remembered, every so many of them (at first
        after 1, 2, 4, ...). None: never, and no outcome is remembered.
    window
        Remember the newest outcomes only, so many. None: all.

    >>> policy, rng = TwoTower.small(), np.random.default_rng(0)
    >>> shown = Feedback(contexts=np.zeros((60, 1)), arms=np.eye(2)[[0, 1] * 30], rewards=[0.0, 1.0] * 30)
    >>> policy.fit(shown, rng)
    >>> policy.choose([0.0], np.eye(2), rng).propensities
    array([0., 1.])
    """

    context_layers: Sequence[int] = (64, 32)
    arm_layers: Sequence[int] = (128, 32)
    epochs: int = 5
    rate: float = 8e-3
    batch: int = 32
    validation: float = 0.1
    epsilon: float = 0.0
    refit: int | None = None
    window: int | None = None
    _towers: Towers = field(default=(), init=False, repr=False)
    _memory: Outcomes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.context_layers = sizes("context_layers", self.context_layers)
        self.arm_layers = sizes("arm_layers", self.arm_layers)
        if self.context_layers[-1] != self.arm_layers[-1]:
            raise ValueError(
                "the last of context_layers and of arm_layers must be equal, for their dot product; "
                f"got {self.context_layers[-1]} and {self.arm_layers[-1]}"
            )
        for name in ("epochs", "batch"):
            checks.whole(name, getattr(self, name))
        for name in ("refit", "window"):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name))
        checks.positive("rate", self.rate)
        checks.unit("epsilon", [self.epsilon])
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation must lie in [0, 1); got {self.validation}")
        self._memory = Outcomes(limit=self.window)

    @classmethod
    def small(cls, **changes: Any) -> Self:
        """Return the paper's small towers (the defaults), with changes: its tuned row has rate=8e-4."""
        return cls(**changes)

    @classmethod
    def large(cls, **changes: Any) -> Self:
        """Return the paper's large towers, with changes."""
        settings: dict[str, Any] = {"context_layers": (64, 64), "arm_layers": (256, 64), "epochs": 40}
        return cls(**(settings | changes))

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything and train new towers on the history."""
        memory = Outcomes(limit=self.window, scale=Scale.standard(history))
        columns = memory.scaled(history.contexts, history.arms)
        layers = zip(columns, (self.context_layers, self.arm_layers), strict=True)
        towers = tuple(Network.fresh((inputs.shape[1], *widths), rng) for inputs, widths in layers)
        towers = train(towers, columns, history.rewards, rng, self._course(self.validation))
        if remember and self.refit is not None:
            memory.append(in_time(history))
        self._towers, self._memory = towers, memory

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Predict every arm's reward and play the best, or any; the context passes its tower once."""
        features, matrix = offered(context, arms)
        means = sigmoid(predict(self._fitted(), self._memory.scaled(features[None], matrix)))
        greedy = highest(means, rng).propensities
        return drawn(posterior.with_floor(greedy, self.epsilon), rng, means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Remember outcomes and train on where it is time; without `refit`, learn nothing."""
        towers = self._fitted()
        self._memory.check(feedback)
        if self.refit is None:
            return
        for part, due in parts(feedback, self._memory.seen, self.refit):
            self._memory.append(part)
            if due:
                columns = (self._memory.contexts, self._memory.arms)
                towers = train(towers, columns, self._memory.rewards, rng, self._course(0.0))
        self._towers = towers

    def save(self, path: str | PathLike[str]) -> None:
        """Write towers, memory and options."""
        arrays = self._memory.to_arrays()
        # Before fit there are no towers.
        for name, tower in zip(("context", "arm"), self._towers, strict=False):
            arrays |= tower.to_arrays(name)
        checkpoint.write(path, "TwoTower", arrays, options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "TwoTower")
        policy = cls(**spec)
        policy._memory = Outcomes.from_arrays(arrays, limit=policy.window)
        if "context.0" in arrays:
            policy._towers = tuple(Network.from_arrays(arrays, name) for name in ("context", "arm"))
        return policy

    def _course(self, validation: float) -> Course:
        return Course(
            epochs=self.epochs, rate=self.rate, batch=self.batch, loss="logistic", validation=validation
        )

    def _fitted(self) -> Towers:
        if not self._towers:
            raise ValueError("the towers must be built first: call fit(history, rng); history may be empty")
        return self._towers
