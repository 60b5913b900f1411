"""NeuralUCB and NeuralTS: a network tells the mean, its gradients tell what it has not seen yet.

NeuralUCB is Zhou et al. (2020), NeuralTS Zhang et al. (2021), both with the diagonal of the design matrix
in place of all of it, which no network of a useful size could afford.
"""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal, Self, final

import numpy as np

from tercet import checkpoint, checks, gaussian
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import highest, offered, options
from tercet.policies.memory import Outcomes, in_time, whole
from tercet.policies.networks import Inputs
from tercet.types import Choice, Feedback


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Shallow:
    """f(x) = √m w·relu(xW) with m hidden units (Zhou et al., 2020, section 2), or a value a parameter."""

    first: Matrix
    last: Vector

    @classmethod
    def fresh(cls, width: int, hidden: int, rng: np.random.Generator) -> Self:
        """Draw twins of opposite sign, so that f starts as 0 (Zhou et al., 2020, section 3)."""
        half = (width, hidden // 2)
        first, last = rng.normal(size=half), rng.normal(size=half[1])
        scale = np.sqrt(2 / hidden)
        return cls(first=scale * np.hstack([first, first]), last=scale * np.append(last, -last))

    def __call__(self, inputs: Matrix) -> Vector:
        """Return f, row by row."""
        return np.sqrt(len(self.last)) * (np.maximum(inputs @ self.first, 0) @ self.last)

    def factors(self, inputs: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the squares that g² is made of, g being the gradient of f over √m, row by row.

        By W it is x ⊗ (w where the unit is on), so its square is an outer product too and never written
        out; by w it is relu(xW).
        """
        linear = inputs @ self.first
        return inputs**2, np.where(linear > 0, self.last**2, 0), np.maximum(linear, 0) ** 2

    def to_arrays(self, name: str) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        return {f"{name}.first": self.first, f"{name}.last": self.last}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], name: str) -> Self:
        """Return what `to_arrays` described."""
        return cls(first=arrays[f"{name}.first"], last=arrays[f"{name}.last"])


def squares(network: Shallow, inputs: Matrix) -> Shallow:
    """Return Σ g² of these rows, parameter by parameter."""
    x, by_first, by_last = network.factors(inputs)
    return Shallow(first=x.T @ by_first, last=by_last.sum(0))


def novelty(network: Shallow, evidence: Shallow, inputs: Matrix) -> Vector:
    """Return Σ g²/U of each row (Zhang et al., 2021, Algorithm 1, with the diagonal of U)."""
    x, by_first, by_last = network.factors(inputs)
    return ((x @ (1 / evidence.first)) * by_first).sum(1) + by_last @ (1 / evidence.last)


def descend(
    network: Shallow,
    start: Shallow,
    inputs: Matrix,
    rewards: Vector,
    rng: np.random.Generator,
    *,
    steps: int,
    rate: float,
    batch: int,
    penalty: float,
) -> Shallow:
    """Return the network after SGD on (Σ (f - r)² + mλ‖θ - θ₀‖²) / 2n (Zhou et al., 2020, Algorithm 2)."""
    first, last, root = network.first.copy(), network.last.copy(), np.sqrt(len(network.last))
    # The pull to the start is an implicit step: stable, however large the penalty.
    pull = rate * len(last) * penalty / len(rewards)
    for _ in range(steps):
        rows = slice(None) if len(rewards) <= batch else rng.integers(len(rewards), size=batch)
        x, target = inputs[rows], rewards[rows]
        hidden = np.maximum(x @ first, 0)
        slope = root * (root * (hidden @ last) - target) / len(target)
        by_first = x.T @ np.where(hidden > 0, slope[:, None] * last, 0)
        first -= rate * by_first
        last -= rate * (slope @ hidden)
        first += pull / (1 + pull) * (start.first - first)
        last += pull / (1 + pull) * (start.last - last)
    return Shallow(first=first, last=last)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Belief:
    """What is learned: how inputs are scaled, θ₀, θ, and U = λ + Σ g²."""

    inputs: Inputs
    start: Shallow
    network: Shallow
    evidence: Shallow

    def having_seen(self, contexts: Matrix, arms: Matrix) -> "Belief":
        """Return the belief with these pairs counted in U."""
        new = squares(self.network, unit_rows(self.inputs, contexts, arms))
        evidence = Shallow(first=self.evidence.first + new.first, last=self.evidence.last + new.last)
        return replace(self, evidence=evidence)

    def having_seen_nothing(self, penalty: float) -> "Belief":
        """Return the belief with U = λ."""
        first, last = (np.full_like(array, penalty) for array in (self.start.first, self.start.last))
        return replace(self, evidence=Shallow(first=first, last=last))

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        networks = self.start.to_arrays("start") | self.network.to_arrays("network")
        return self.inputs.to_arrays() | networks | self.evidence.to_arrays("evidence")

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Return the belief that `to_arrays` described."""
        networks = {name: Shallow.from_arrays(arrays, name) for name in ("start", "network", "evidence")}
        return cls(inputs=Inputs.from_arrays(arrays), **networks)


def unit_rows(inputs: Inputs, contexts: Matrix, arms: Matrix) -> Matrix:
    """Return intercept and pair in rows of length 1, as both papers ask: it keeps SGD stable."""
    pairs = inputs.joint(contexts, arms) * np.sqrt(2 / max(len(inputs.centre), 1))
    rows = np.hstack([np.ones((len(pairs), 1)), pairs])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@final
@dataclass(kw_only=True, eq=False)
class NeuralBandit:
    """Play the highest f + σ ("ucb") or the highest draw of N(f, σ²) ("thompson"), σ² = λ ν Σ g²/U.

    f is a network of one hidden layer, g its gradient over √m (the papers' scale), U = λ + Σ g² over the
    arms played, each at the network of its time (after `fit`: at the fitted one). The papers train from θ₀
    each time; here training goes on from the current weights, which takes fewer steps to the same loss.

    Parameters
    ----------
    explore
        "ucb" (NeuralUCB) or "thompson" (NeuralTS).
    hidden
        Units of the hidden layer, an even number m.
    penalty, variance
        λ and ν. Both 1e-5 in the paper's classification experiments, both 1 in its news experiment.
    rate, batch
        Of the stochastic gradient steps.
    epochs
        Passes over the history in `fit`.
    steps
        Most gradient steps of a training online; as many as there are outcomes until then.
    eager, every
        Train after every update (of one outcome or of many) up to `eager` outcomes, then each time that
        `every` more have come.
    window
        Learn from the newest outcomes only, so many; U is then summed anew in each training. None: all.

    >>> policy, rng = NeuralUCB(), np.random.default_rng(0)
    >>> shown = Feedback(contexts=np.zeros((60, 1)), arms=np.eye(2)[[0, 1] * 30], rewards=[0.0, 1.0] * 30)
    >>> policy.fit(shown, rng)
    >>> policy.choose([0.0], np.eye(2), rng).propensities
    array([0., 1.])
    """

    explore: Literal["ucb", "thompson"]
    hidden: int = 100
    penalty: float = 1e-5
    variance: float = 1e-5
    rate: float = 1e-2
    batch: int = 64
    epochs: int = 100
    steps: int = 100
    eager: int = 2_000
    every: int = 200
    window: int | None = None
    _belief: Belief | None = field(default=None, init=False, repr=False)
    _memory: Outcomes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.explore not in ("ucb", "thompson"):
            raise ValueError(f'explore must be "ucb" or "thompson"; got {self.explore!r}')
        if whole("hidden", self.hidden) % 2:
            raise ValueError(f"hidden must be even, because units start as twins; got {self.hidden}")
        for name in ("penalty", "variance", "rate"):
            checks.positive(name, getattr(self, name))
        for name in ("batch", "epochs", "steps", "eager", "every"):
            whole(name, getattr(self, name))
        if self.window is not None:
            whole("window", self.window)
        self._memory = Outcomes(limit=self.window)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, train a new network on the history, then count what it has seen."""
        inputs, memory = Inputs.of(history), Outcomes(limit=self.window)
        if remember:
            memory.append(in_time(history))
        start = network = Shallow.fresh(1 + sum(inputs.dims), self.hidden, rng)
        if len(history):
            x = unit_rows(inputs, history.contexts, history.arms)
            steps = self.epochs * -(-len(history) // self.batch)
            network = descend(start, start, x, history.rewards, rng, steps=steps, **self._descent())
        # What the memory lacks of the history must last in θ₀, or the first training would undo it.
        start = start if len(memory) == len(history) else network
        belief = Belief(inputs=inputs, start=start, network=network, evidence=start)
        self._belief, self._memory = self._recounted(belief, memory), memory

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Score every arm and play the best; no training."""
        features, matrix = offered(context, arms)
        belief = self._fitted()
        x = unit_rows(belief.inputs, features[None], matrix)
        mean = belief.network(x)
        spread = np.sqrt(self.penalty * self.variance * novelty(belief.network, belief.evidence, x))
        if self.explore == "ucb":
            return highest(mean + spread, rng, means=mean)
        draw = highest(rng.normal(mean, spread), rng)
        return Choice(arm=draw.arm, propensities=gaussian.propensities(mean, spread), means=mean)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Count the gradients of the arms played, remember the outcomes, and train if it is time."""
        belief = self._fitted().having_seen(feedback.contexts, feedback.arms)
        before = self._memory.seen
        self._memory.append(feedback)
        after = self._memory.seen
        if after > before and (after <= self.eager or after // self.every > before // self.every):
            belief = self._trained(belief, rng)
        self._belief = belief

    def save(self, path: str | PathLike[str]) -> None:
        """Write network, evidence, memory and options."""
        arrays = {} if self._belief is None else self._belief.to_arrays()
        checkpoint.write(path, "NeuralBandit", arrays | self._memory.to_arrays(), options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "NeuralBandit")
        policy = cls(**spec)
        policy._memory = Outcomes.from_arrays(arrays, limit=policy.window)
        policy._belief = Belief.from_arrays(arrays) if "inputs.centre" in arrays else None
        return policy

    def _trained(self, belief: Belief, rng: np.random.Generator) -> Belief:
        memory = self._memory
        x = unit_rows(belief.inputs, memory.contexts, memory.arms)
        steps = min(len(memory), self.steps)
        network = descend(
            belief.network, belief.start, x, memory.rewards, rng, steps=steps, **self._descent()
        )
        belief = replace(belief, network=network)
        return belief if self.window is None else self._recounted(belief, memory)

    def _recounted(self, belief: Belief, memory: Outcomes) -> Belief:
        belief = belief.having_seen_nothing(self.penalty)
        return belief.having_seen(memory.contexts, memory.arms) if len(memory) else belief

    def _descent(self) -> dict[str, Any]:
        return {"rate": self.rate, "batch": self.batch, "penalty": self.penalty}

    def _fitted(self) -> Belief:
        if self._belief is None:
            raise ValueError("the network must be built first: call fit(history, rng); history may be empty")
        return self._belief


def NeuralUCB(**options: Any) -> NeuralBandit:  # noqa: N802 - a policy's name
    """Return a `NeuralBandit` that plays the highest upper confidence bound (Zhou et al., 2020)."""
    return NeuralBandit(explore="ucb", **options)


def NeuralTS(**options: Any) -> NeuralBandit:  # noqa: N802 - a policy's name
    """Return a `NeuralBandit` that plays the highest posterior draw (Zhang et al., 2021)."""
    return NeuralBandit(explore="thompson", **options)
