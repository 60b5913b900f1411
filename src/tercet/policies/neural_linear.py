"""NeuralLinear: a network learns features, a Bayesian regression on them explores (Riquelme et al., 2018)."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Self, final, get_args

import numpy as np

from tercet import checkpoint, checks, gaussian
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import highest, offered, one_hot, options
from tercet.policies.memory import Outcomes, Scale, in_time
from tercet.policies.networks import Course, Network, pairs, parts, sizes, train
from tercet.policies.ridge import Features
from tercet.policies.shallow import Rows
from tercet.types import Choice, Feedback


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """The posteriors N(μ, Σ) of linear regressions, one a block: Σ⁻¹ = ZᵀZ/σ² + I, μ = Σ Zᵀr/σ².

    `root` is L with Σ⁻¹ = LLᵀ. The first axis of all arrays is the block.
    """

    precision: Array
    response: Matrix
    root: Array
    mean: Matrix

    @classmethod
    def solve(cls, precision: Array, response: Matrix) -> Self:
        """Factor Σ⁻¹ and solve for the mean."""
        root = np.linalg.cholesky(precision)
        half = np.linalg.solve(root, response[:, :, None])
        mean = np.linalg.solve(root.transpose(0, 2, 1), half)[:, :, 0]
        return cls(precision=precision, response=response, root=root, mean=mean)

    @classmethod
    def empty(cls, width: int, *, blocks: int = 1) -> Self:
        """Return the prior N(0, I) of each block."""
        return cls.solve(np.tile(np.eye(width), (blocks, 1, 1)), np.zeros((blocks, width)))

    def learn(self, rows: Rows, rewards: Vector, *, noise: float) -> Self:
        """Return the posterior after these outcomes."""
        precision, response = self.precision.copy(), self.response.copy()
        for block, members in rows.groups():
            z = rows.features[members]
            precision[block] += z.T @ z / noise**2
            response[block] += rewards[members] @ z / noise**2
        return self.solve(precision, response)

    def means(self, rows: Rows) -> Vector:
        """Return μ·z of each row."""
        return (rows.features * self.mean[rows.block]).sum(1)

    def spreads(self, rows: Rows) -> Vector:
        """Return √(zᵀΣz) of each row."""
        return np.linalg.norm(np.linalg.solve(self.root[rows.block], rows.features[:, :, None]), axis=(1, 2))

    def draw(self, count: int, rng: np.random.Generator) -> Matrix:
        """Draw parameters of the first block, one vector a row."""
        noise = rng.normal(size=(self.mean.shape[1], count))
        return self.mean[0] + np.linalg.solve(self.root[0].T, noise).T


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """The network that makes features of scaled contexts and arms, and the head."""

    features: Features
    network: Network
    head: Head

    def rows(self, contexts: Matrix, arms: Matrix) -> Rows:
        """Return an intercept and the last hidden layer; a single context goes with every arm."""
        shared = self.features == "shared"
        hidden = self.network.trace(pairs(contexts, arms) if shared else contexts)[-2]
        hidden = np.broadcast_to(hidden, (len(arms), hidden.shape[1]))
        block = np.zeros(len(arms), dtype=np.int64) if shared else one_hot(arms)
        return Rows(np.hstack([np.ones((len(arms), 1)), hidden]), block)


@final
@dataclass(kw_only=True, eq=False)
class NeuralLinear:
    """Thompson sampling on the last hidden layer of a network: draw the head's parameters, play the best.

    Parameters
    ----------
    features
        With "shared" ones the network sees context and arm, and all arms share a head and a draw of it.
        Propensities are how often each arm is the best over `draws` of them, of which the first decides; so
        the arm that is played has a propensity of at least 1/draws. "disjoint" is for one-hot arms, and
        Riquelme et al.'s: the network sees the context, and has an output and a head for each arm. Their
        draws are independent, the propensities exact.
    hidden
        Units of each hidden layer of the network, which is trained by least squares.
    noise
        σ, the standard deviation of a reward around its mean; one half is the most that a reward between 0
        and 1 can have.
    draws
        Draws of a shared head's parameters at each decision.
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

    features: Features = "shared"
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
        if self.features not in get_args(Features):
            raise ValueError(f"features must be one of {get_args(Features)}; got {self.features!r}")
        self.hidden = sizes("hidden", self.hidden)
        for name in ("noise", "rate"):
            checks.positive(name, getattr(self, name))
        for name in ("draws", "epochs", "batch", "refit", "refit_epochs"):
            checks.whole(name, getattr(self, name))
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation must lie in [0, 1); got {self.validation}")
        if self.window is not None:
            checks.whole("window", self.window)
        self._memory = Outcomes(limit=self.window)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, train a new network on the history, and feed its outcomes to the head."""
        shared = self.features == "shared"
        memory = Outcomes(limit=self.window, scale=Scale.standard(history, arms=shared))
        contexts, arms = memory.scaled(history.contexts, history.arms)
        if shared:
            inputs, outputs = contexts.shape[1] + arms.shape[1], 1
        else:
            one_hot(arms)
            inputs, outputs = contexts.shape[1], arms.shape[1]
        network = Network.fresh((inputs, *self.hidden, outputs), rng)
        course = self._course(self.epochs, self.validation)
        network = self._trained(network, contexts, arms, history.rewards, rng, course)
        if remember:
            memory.append(in_time(history))
        self._model, self._memory = self._recounted(network, memory), memory

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Draw the parameters of the arms' heads and play the arm that they like best."""
        features, matrix = offered(context, arms)
        model = self._fitted()
        rows = model.rows(*self._memory.scaled(features[None], matrix))
        means = model.head.means(rows)
        if self.features == "shared":
            scores = model.head.draw(self.draws, rng) @ rows.features.T
            arm = highest(scores[0], rng).arm
            return Choice(arm=arm, propensities=gaussian.shares(scores), means=means)
        spreads = model.head.spreads(rows)
        arm = int(np.argmax(rng.normal(means, spreads)))
        return Choice(arm=arm, propensities=gaussian.propensities(means, spreads), means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Feed outcomes to the head, and train the network on where it is time."""
        model, memory = self._fitted(), self._memory
        memory.check(feedback)
        if self.features == "disjoint":
            one_hot(feedback.arms)
        for part, due in parts(feedback, memory.seen, self.refit):
            memory.append(part)
            if due:
                course = self._course(self.refit_epochs)
                network = self._trained(
                    model.network, memory.contexts, memory.arms, memory.rewards, rng, course
                )
                model = self._recounted(network, memory)
            elif self.window is not None:
                model = self._recounted(model.network, memory)
            else:
                rows = model.rows(*memory.scaled(part.contexts, part.arms))
                model = replace(model, head=model.head.learn(rows, part.rewards, noise=self.noise))
        self._model = model

    def save(self, path: str | PathLike[str]) -> None:
        """Write network, head, memory and options."""
        arrays, model = self._memory.to_arrays(), self._model
        if model is not None:
            arrays |= model.network.to_arrays("network")
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
                features=policy.features,
                network=Network.from_arrays(arrays, "network"),
                head=Head.solve(arrays["precision"], arrays["response"]),
            )
        return policy

    def _trained(
        self,
        network: Network,
        contexts: Matrix,
        arms: Matrix,
        rewards: Vector,
        rng: np.random.Generator,
        course: Course,
    ) -> Network:
        if self.features == "shared":
            return train((network,), (pairs(contexts, arms),), rewards, rng, course)[0]
        # The dot product with a one-hot arm is that arm's output, which alone gets the gradient.
        as_it_is = Network(weights=(), biases=())
        return train((network, as_it_is), (contexts, arms), rewards, rng, course)[0]

    def _recounted(self, network: Network, memory: Outcomes) -> Model:
        """Return a model whose head has learned the memory and nothing else."""
        head = Head.empty(1 + self.hidden[-1], blocks=len(network.biases[-1]))
        model = Model(features=self.features, network=network, head=head)
        if not len(memory):
            return model
        rows = model.rows(memory.contexts, memory.arms)
        return replace(model, head=head.learn(rows, memory.rewards, noise=self.noise))

    def _course(self, epochs: int, validation: float = 0.0) -> Course:
        return Course(epochs=epochs, rate=self.rate, batch=self.batch, loss="squared", validation=validation)

    def _fitted(self) -> Model:
        if self._model is None:
            raise ValueError("the network must be built first: call fit(history, rng); history may be empty")
        return self._model
