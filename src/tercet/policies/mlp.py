"""An ε-greedy perceptron: the plainest way to put a network into a bandit, and hard to beat."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks, posterior
from tercet.policies.base import drawn, highest, offered, options
from tercet.policies.memory import Outcomes, Scale, in_time
from tercet.policies.networks import Course, Network, pairs, parts, predict, sigmoid, sizes, train
from tercet.types import Choice, Feedback


@final
@dataclass(kw_only=True, eq=False)
class EpsilonGreedyMLP:
    """Play the arm with the highest predicted reward, and with probability `epsilon` any arm.

    A ReLU network on context and arm, its output the logit of the reward, trained by cross-entropy.

    Parameters
    ----------
    hidden
        Units of each hidden layer.
    epsilon
        Probability of a uniform choice.
    epochs, rate, batch, validation
        Of the training in `fit` by Adam; the epoch that best predicts the share held out is kept.
    refit, refit_epochs
        Train on, from the current weights, every so many outcomes (at first after 1, 2, 4, ...), for so
        many passes over the memory.
    window
        Remember the newest outcomes only, so many. None: all.

    >>> policy, rng = EpsilonGreedyMLP(), np.random.default_rng(0)
    >>> shown = Feedback(contexts=np.zeros((60, 1)), arms=np.eye(2)[[0, 1] * 30], rewards=[0.0, 1.0] * 30)
    >>> policy.fit(shown, rng)
    >>> policy.choose([0.0], np.eye(2), rng).propensities
    array([0.025, 0.975])
    """

    hidden: Sequence[int] = (64, 64)
    epsilon: float = 0.05
    epochs: int = 40
    rate: float = 2e-3
    batch: int = 64
    validation: float = 0.1
    refit: int = 200
    refit_epochs: int = 2
    window: int | None = None
    _network: Network | None = field(default=None, init=False, repr=False)
    _memory: Outcomes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.hidden = sizes("hidden", self.hidden)
        checks.unit("epsilon", [self.epsilon])
        checks.positive("rate", self.rate)
        for name in ("epochs", "batch", "refit", "refit_epochs"):
            checks.whole(name, getattr(self, name))
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation must lie in [0, 1); got {self.validation}")
        if self.window is not None:
            checks.whole("window", self.window)
        self._memory = Outcomes(limit=self.window)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything and train a new network on the history."""
        memory = Outcomes(limit=self.window, scale=Scale.standard(history))
        x = pairs(*memory.scaled(history.contexts, history.arms))
        network = Network.fresh((x.shape[1], *self.hidden, 1), rng)
        (network,) = train((network,), (x,), history.rewards, rng, self._course(self.epochs, self.validation))
        if remember:
            memory.append(in_time(history))
        self._network, self._memory = network, memory

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Predict every arm's reward and play the best, or any."""
        features, matrix = offered(context, arms)
        network = self._fitted()
        means = sigmoid(predict((network,), (pairs(*self._memory.scaled(features[None], matrix)),)))
        greedy = highest(means, rng).propensities
        return drawn(posterior.with_floor(greedy, self.epsilon), rng, means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Remember outcomes, and train on where it is time."""
        network = self._fitted()
        self._memory.check(feedback)
        for part, due in parts(feedback, self._memory.seen, self.refit):
            self._memory.append(part)
            if due:
                x = pairs(self._memory.contexts, self._memory.arms)
                course = self._course(self.refit_epochs)
                (network,) = train((network,), (x,), self._memory.rewards, rng, course)
        self._network = network

    def save(self, path: str | PathLike[str]) -> None:
        """Write network, memory and options."""
        arrays = self._memory.to_arrays()
        if self._network is not None:
            arrays |= self._network.to_arrays("network")
        checkpoint.write(path, "EpsilonGreedyMLP", arrays, options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "EpsilonGreedyMLP")
        policy = cls(**spec)
        policy._memory = Outcomes.from_arrays(arrays, limit=policy.window)
        if "network.0" in arrays:
            policy._network = Network.from_arrays(arrays, "network")
        return policy

    def _course(self, epochs: int, validation: float = 0.0) -> Course:
        return Course(epochs=epochs, rate=self.rate, batch=self.batch, loss="logistic", validation=validation)

    def _fitted(self) -> Network:
        if self._network is None:
            raise ValueError("the network must be built first: call fit(history, rng); history may be empty")
        return self._network
