"""NeuralLinear: a network learns features, a Bayesian regression on them explores (Riquelme et al., 2018)."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks, gaussian
from tercet.checks import Matrix, Vector
from tercet.policies.base import highest, offered, options
from tercet.policies.memory import Outcomes, in_time, whole
from tercet.policies.networks import Course, Inputs, Network, parts, sizes, train
from tercet.types import Choice, Feedback


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """The posterior N(μ, Σ) of a linear regression: Σ⁻¹ = ZᵀZ/σ² + I, μ = Σ Zᵀr/σ².

    `root` is L with Σ⁻¹ = LLᵀ.
    """

    precision: Matrix
    response: Vector
    root: Matrix
    mean: Vector

    @classmethod
    def solve(cls, precision: Matrix, response: Vector) -> Self:
        """Factor Σ⁻¹ and solve for the mean."""
        root = np.linalg.cholesky(precision)
        mean = np.linalg.solve(root.T, np.linalg.solve(root, response))
        return cls(precision=precision, response=response, root=root, mean=mean)

    @classmethod
    def empty(cls, width: int) -> Self:
        """Return the prior N(0, I)."""
        return cls.solve(np.eye(width), np.zeros(width))

    def learn(self, features: Matrix, rewards: Vector, *, noise: float) -> Self:
        """Return the posterior after these outcomes."""
        precision = self.precision + features.T @ features / noise**2
        return self.solve(precision, self.response + rewards @ features / noise**2)

    def draw(self, count: int, rng: np.random.Generator) -> Matrix:
        """Draw parameters, one vector a row."""
        noise = rng.normal(size=(len(self.mean), count))
        return self.mean + np.linalg.solve(self.root.T, noise).T


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """Scaled inputs, the network that makes features of them, and the head."""

    inputs: Inputs
    network: Network
    head: Head

    def features(self, contexts: Matrix, arms: Matrix) -> Matrix:
        """Return an intercept and the last hidden layer."""
        hidden = self.network.trace(self.inputs.joint(contexts, arms))[-2]
        return np.hstack([np.ones((len(hidden), 1)), hidden])


@final
@dataclass(kw_only=True, eq=False)
class NeuralLinear:
    """Thompson sampling on the last hidden layer of a network: draw the head's parameters, play the best.

    All arms share a draw. Propensities are how often each arm is the best over `draws` of them, of which
    the first decides; so the arm that is played has a propensity of at least 1/draws.

    Parameters
    ----------
    hidden
        Units of each hidden layer of the network, which is trained by least squares.
    noise
        σ, the standard deviation of a reward around its mean; one half is the most that a reward between 0
        and 1 can have.
    draws
        Draws of the head's parameters at each decision.
    epochs, rate, batch, validation
        Of the training in `fit` by Adam; the epoch that best predicts the share held out is kept.
    refit, refit_epochs
        Train on, from the current weights, every so many outcomes (at first after 1, 2, 4, ...), for so
        many passes over the memory; the head is then computed anew on the new features.
    window
        Remember the newest outcomes only, so many, in network and head. None: all.

    >>> policy, rng = NeuralLinear(), np.random.default_rng(0)
    >>> shown = Feedback(contexts=np.zeros((60, 1)), arms=np.eye(2)[[0, 1] * 30], rewards=[0.0, 1.0] * 30)
    >>> policy.fit(shown, rng)
    >>> policy.choose([0.0], np.eye(2), rng).means.round(1)
    array([0., 1.])
    """

    hidden: Sequence[int] = (32,)
    noise: float = 0.5
    draws: int = 1_000
    epochs: int = 40
    rate: float = 2e-3
    batch: int = 64
    validation: float = 0.1
    refit: int = 200
    refit_epochs: int = 2
    window: int | None = None
    _model: Model | None = field(default=None, init=False, repr=False)
    _memory: Outcomes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.hidden = sizes("hidden", self.hidden)
        for name in ("noise", "rate"):
            checks.positive(name, getattr(self, name))
        for name in ("draws", "epochs", "batch", "refit", "refit_epochs"):
            whole(name, getattr(self, name))
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation must lie in [0, 1); got {self.validation}")
        if self.window is not None:
            whole("window", self.window)
        self._memory = Outcomes(limit=self.window)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, train a new network on the history, and feed its outcomes to the head."""
        inputs, memory = Inputs.of(history), Outcomes(limit=self.window)
        network = Network.fresh((sum(inputs.dims), *self.hidden, 1), rng)
        x = inputs.joint(history.contexts, history.arms)
        (network,) = train((network,), (x,), history.rewards, rng, self._course(self.epochs, self.validation))
        if remember:
            memory.append(in_time(history))
        self._model, self._memory = self._recounted(inputs, network, memory), memory

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Draw the head's parameters many times; the first draw decides."""
        features, matrix = offered(context, arms)
        model = self._fitted()
        z = model.features(features[None], matrix)
        scores = model.head.draw(self.draws, rng) @ z.T
        arm = highest(scores[0], rng).arm
        return Choice(arm=arm, propensities=gaussian.shares(scores), means=z @ model.head.mean)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Feed outcomes to the head, and train the network on where it is time."""
        model = self._fitted()
        model.inputs.check(feedback.contexts, feedback.arms)
        for part, due in parts(feedback, self._memory.seen, self.refit):
            self._memory.append(part)
            if due:
                model = self._recounted(model.inputs, self._trained(model, rng), self._memory)
            elif self.window is not None:
                model = self._recounted(model.inputs, model.network, self._memory)
            else:
                z = model.features(part.contexts, part.arms)
                model = replace(model, head=model.head.learn(z, part.rewards, noise=self.noise))
        self._model = model

    def save(self, path: str | PathLike[str]) -> None:
        """Write network, head, memory and options."""
        arrays, model = self._memory.to_arrays(), self._model
        if model is not None:
            arrays |= model.inputs.to_arrays() | model.network.to_arrays("network")
            arrays |= {"precision": model.head.precision, "response": model.head.response}
        checkpoint.write(path, "NeuralLinear", arrays, options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "NeuralLinear")
        policy = cls(**spec)
        policy._memory = Outcomes.from_arrays(arrays, limit=policy.window)
        if "precision" in arrays:
            policy._model = Model(
                inputs=Inputs.from_arrays(arrays),
                network=Network.from_arrays(arrays, "network"),
                head=Head.solve(arrays["precision"], arrays["response"]),
            )
        return policy

    def _trained(self, model: Model, rng: np.random.Generator) -> Network:
        memory = self._memory
        x = model.inputs.joint(memory.contexts, memory.arms)
        (network,) = train((model.network,), (x,), memory.rewards, rng, self._course(self.refit_epochs))
        return network

    def _recounted(self, inputs: Inputs, network: Network, memory: Outcomes) -> Model:
        """Return a model whose head has learned the memory and nothing else."""
        model = Model(inputs=inputs, network=network, head=Head.empty(1 + self.hidden[-1]))
        if not len(memory):
            return model
        z = model.features(memory.contexts, memory.arms)
        return replace(model, head=model.head.learn(z, memory.rewards, noise=self.noise))

    def _course(self, epochs: int, validation: float = 0.0) -> Course:
        return Course(epochs=epochs, rate=self.rate, batch=self.batch, loss="squared", validation=validation)

    def _fitted(self) -> Model:
        if self._model is None:
            raise ValueError("the network must be built first: call fit(history, rng); history may be empty")
        return self._model
