"""NeuralUCB and NeuralTS: a network tells the mean, its gradients tell what it has not seen yet.

NeuralUCB is Zhou et al. (2020), NeuralTS Zhang et al. (2021), both with the diagonal of the design matrix
in place of all of it, which no network of a useful size could afford.
"""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal, Self, final, get_args

import numpy as np

from tercet import checkpoint, checks, gaussian
from tercet.checks import Array, Matrix
from tercet.policies.base import highest, offered, one_hot, options
from tercet.policies.memory import Outcomes, Scale, in_time
from tercet.policies.networks import pairs
from tercet.policies.ridge import Features
from tercet.policies.shallow import Rows, Shallow, counted, descend, novelty
from tercet.types import Choice, Feedback


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Belief:
    """What is learned: θ₀, θ, and U = λ + Σ g²."""

    start: Shallow
    network: Shallow
    evidence: Shallow

    def having_seen(self, rows: Rows) -> "Belief":
        """Return the belief with these inputs counted in U."""
        return replace(self, evidence=counted(self.evidence, self.network, rows))

    def having_seen_nothing(self, penalty: float) -> "Belief":
        """Return the belief with U = λ."""
        first, last = (np.full_like(array, penalty) for array in (self.start.first, self.start.last))
        return replace(self, evidence=Shallow(first=first, last=last))

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        networks = self.start.to_arrays("start") | self.network.to_arrays("network")
        return networks | self.evidence.to_arrays("evidence")

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Return the belief that `to_arrays` described."""
        return cls(**{name: Shallow.from_arrays(arrays, name) for name in ("start", "network", "evidence")})


def unit_rows(contexts: Matrix, arms: Matrix, features: Features) -> Rows:
    """Return inputs of length 1 with an intercept, as both papers ask (it keeps SGD stable).

    Given are contexts, or a single one for all arms, and arms, both scaled.
    """
    if features == "shared":
        inputs, block = pairs(contexts, arms), np.zeros(len(arms), dtype=np.int64)
        inputs *= np.sqrt(2 / max(inputs.shape[1], 1))  # half of the length for the context, half for the arm
    else:
        width = contexts.shape[1]
        inputs, block = np.broadcast_to(contexts, (len(arms), width)) / np.sqrt(max(width, 1)), one_hot(arms)
    rows = np.hstack([np.ones((len(inputs), 1)), inputs])
    return Rows(rows / np.linalg.norm(rows, axis=1, keepdims=True), block)


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
    features
        With "shared" ones the input is context and arm. "disjoint" is for one-hot arms, and how both
        papers treat classes: the input is x ⊗ e_a, the context in its arm's block and zeros elsewhere.
    hidden
        Units of the hidden layer, an even number m.
    penalty, variance
        λ and ν. Both 1e-5 in the paper's classification experiments, both 1 in its news experiment.
    rate, batch
        Of the stochastic gradient steps.
    epochs
        Passes over the history in `fit`; 0: the network starts untrained, and learns online only.
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
    features: Features = "shared"
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
        if self.features not in get_args(Features):
            raise ValueError(f"features must be one of {get_args(Features)}; got {self.features!r}")
        if checks.whole("hidden", self.hidden) % 2:
            raise ValueError(f"hidden must be even, because units start as twins; got {self.hidden}")
        for name in ("penalty", "variance", "rate"):
            checks.positive(name, getattr(self, name))
        for name in ("batch", "steps", "eager", "every"):
            checks.whole(name, getattr(self, name))
        checks.whole("epochs", self.epochs, least=0)
        if self.window is not None:
            checks.whole("window", self.window)
        self._memory = Outcomes(limit=self.window)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, train a new network on the history, then count what it has seen."""
        shared = self.features == "shared"
        memory = Outcomes(limit=self.window, scale=Scale.standard(history, arms=shared))
        rows = self._rows(*memory.scaled(history.contexts, history.arms))
        if remember:
            memory.append(in_time(history))
        blocks = 1 if shared else history.arms.shape[1]
        start = network = Shallow.fresh(rows.features.shape[1], self.hidden, rng, blocks=blocks)
        if len(history) and self.epochs:
            steps = self.epochs * -(-len(history) // self.batch)
            network = descend(start, start, rows, history.rewards, rng, steps=steps, **self._descent())
        # What the memory lacks of the history must last in θ₀, or the first training would undo it.
        start = start if len(memory) == len(history) else network
        belief = Belief(start=start, network=network, evidence=start)
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
        rows = self._rows(*self._memory.scaled(features[None], matrix))
        mean = belief.network(rows)
        spread = np.sqrt(self.penalty * self.variance * novelty(belief.network, belief.evidence, rows))
        if self.explore == "ucb":
            return highest(mean + spread, rng, means=mean)
        draw = highest(rng.normal(mean, spread), rng)
        return Choice(arm=draw.arm, propensities=gaussian.propensities(mean, spread), means=mean)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Count the gradients of the arms played, remember the outcomes, and train if it is time."""
        belief = self._fitted()
        belief = belief.having_seen(self._rows(*self._memory.scaled(feedback.contexts, feedback.arms)))
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
        policy._belief = Belief.from_arrays(arrays) if "start.first" in arrays else None
        return policy

    def _trained(self, belief: Belief, rng: np.random.Generator) -> Belief:
        memory = self._memory
        rows, steps = self._rows(memory.contexts, memory.arms), min(len(memory), self.steps)
        network = descend(
            belief.network, belief.start, rows, memory.rewards, rng, steps=steps, **self._descent()
        )
        belief = replace(belief, network=network)
        return belief if self.window is None else self._recounted(belief, memory)

    def _recounted(self, belief: Belief, memory: Outcomes) -> Belief:
        belief = belief.having_seen_nothing(self.penalty)
        return belief.having_seen(self._rows(memory.contexts, memory.arms)) if len(memory) else belief

    def _rows(self, contexts: Matrix, arms: Matrix) -> Rows:
        return unit_rows(contexts, arms, self.features)

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
