"""Linear policies made for drift: a sliding window, a discount with its own bound, and a constant step."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks
from tercet.checks import Matrix, Vector
from tercet.embedding.inference import scaling
from tercet.policies.base import check_widths, drawn, highest, offered, options
from tercet.policies.memory import Outcomes, in_time
from tercet.policies.ridge import (
    Features,
    Inputs,
    Ridges,
    at_least_zero,
    check_features,
    encode,
    faded_count,
    lengths,
    sizes,
)
from tercet.types import Choice, Feedback, Ids

SHORTEST = 1000  # outcomes between two fresh starts of a window's sums


@final
@dataclass(kw_only=True, eq=False)
class SWLinUCB:
    """LinUCB on the newest `window` outcomes (Cheung, Simchi-Levi and Zhu, 2019).

    The score is w·x + radius·√(xᵀV⁻¹x). Unless `radius` is given, it is the paper's bound
    R√(d ln((1 + window·L²/λ)/δ)) + √λ·S with R = `noise`, L = `input_bound`, S = `weight_bound`,
    λ = `penalty` and δ = `risk`; d counts the weights of all arms. Features are as in `LinUCB`.

    >>> policy, rng = SWLinUCB(window=1, radius=0.0), np.random.default_rng(0)
    >>> for arm in np.eye(2):
    ...     policy.update(Feedback.one(context=[1.0], arm=arm, reward=1.0), rng)
    >>> policy.choose([1.0], np.eye(2), rng).means.round(2)
    array([0.44, 0.89])
    """

    window: int = 50_000
    radius: float | None = None
    noise: float = 2.0
    input_bound: float = 5.0
    weight_bound: float = 5.0
    penalty: float = 0.5
    risk: float = 0.05
    features: Features = "shared"
    _ridges: Ridges = field(init=False, repr=False)
    _memory: Outcomes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checks.whole("window", self.window)
        _check_bound(self)
        self._ridges = Ridges(features=self.features, penalty=self.penalty)
        self._memory = Outcomes(limit=self.window)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the newest part of the history."""
        self._memory = Outcomes(limit=self.window)
        self._ridges = self._ridges.refit(history, remember=False)
        if remember:
            self.update(in_time(history), rng)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Score every arm and pick the best."""
        view = self._ridges.view(context, arms)
        return highest(view.means + self._radius(view.parameters) * view.spreads, rng, means=view.means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes, and take the oldest back as they leave the window."""
        memory, period = self._memory, max(self.window, SHORTEST)
        rounds = memory.seen // period
        leaving = min(max(len(memory) + len(feedback) - self.window, 0), len(memory))
        gone = _rows(memory, leaving) if leaving else feedback[:0]
        ridges = self._ridges.learn(feedback[-self.window :]).unlearn(gone)
        memory.append(feedback)
        if memory.seen // period > rounds:
            # Sums that only add and subtract keep the rounding of what has left, so they start anew at times.
            ridges = ridges.refit(_rows(memory, len(memory)), remember=True)
        self._ridges = ridges

    def save(self, path: str | PathLike[str]) -> None:
        """Write the regressions, the window and the options."""
        arrays = self._memory.to_arrays() | self._ridges.to_arrays("ridges_")
        checkpoint.write(path, "SWLinUCB", arrays, options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "SWLinUCB")
        policy = cls(**spec)
        policy._ridges = policy._ridges.from_arrays(arrays, "ridges_")
        policy._memory = Outcomes.from_arrays(arrays, limit=policy.window)
        return policy

    def _radius(self, parameters: int) -> float:
        """Return the confidence radius of Cheung et al. (2019)."""
        if self.radius is not None:
            return self.radius
        growth = np.log((1 + self.window * self.input_bound**2 / self.penalty) / self.risk)
        return float(self.noise * np.sqrt(parameters * growth) + np.sqrt(self.penalty) * self.weight_bound)


@final
@dataclass(kw_only=True, eq=False)
class DLinUCB:
    """LinUCB with a discount and the bonus that belongs to it (Russac, Vernade and Cappé, 2019).

    The score is w·x + β√(xᵀV⁻¹ṼV⁻¹x), where Ṽ fades by discount². Unless `radius` gives β, it is the
    paper's √λ·S + σ√(2 ln(1/δ) + d ln(1 + L²(1 - γ^2t)/(λd(1 - γ²)))) after t outcomes with γ = `discount`,
    σ = `noise`, L = `input_bound`, S = `weight_bound`, λ = `penalty` and δ = `risk`; d counts the weights
    of all arms. Features are as in `LinUCB`. V is factored once a decision, O(d³).
    """

    discount: float = 0.95
    radius: float | None = None
    noise: float = 1.0
    input_bound: float = 5.0
    weight_bound: float = 5.0
    penalty: float = 0.5
    risk: float = 0.05
    features: Features = "shared"
    _ridges: Ridges = field(init=False, repr=False)
    _squared: Ridges = field(init=False, repr=False)  # its V is Ṽ, its b is never looked at

    def __post_init__(self) -> None:
        _check_bound(self)
        self._ridges, self._squared = (
            Ridges(features=self.features, penalty=self.penalty, discount=discount)
            for discount in (self.discount, self.discount**2)
        )

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the history in the order of its times."""
        self._ridges = self._ridges.refit(history, remember=remember)
        self._squared = self._squared.refit(history, remember=remember)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Score every arm and pick the best."""
        features, matrix = offered(context, arms)
        view = self._ridges.view(features, matrix)
        squared = self._squared.started((len(features), matrix.shape[1]))
        images = squared.through(
            view.inputs.block, view.directions, lambda block, rows: rows @ block.precision
        )
        bonus = self._radius(view.parameters) * lengths(view.directions, images)
        return highest(view.means + bonus, rng, means=view.means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes in the order given."""
        self._ridges, self._squared = self._ridges.learn(feedback), self._squared.learn(feedback)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the regressions and the options."""
        arrays = self._ridges.to_arrays() | self._squared.to_arrays("squared_")
        checkpoint.write(path, "DLinUCB", arrays, options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "DLinUCB")
        policy = cls(**spec)
        policy._ridges = policy._ridges.from_arrays(arrays)
        policy._squared = policy._squared.from_arrays(arrays, "squared_")
        return policy

    def _radius(self, parameters: int) -> float:
        """Return β_t of Russac et al. (2019)."""
        if self.radius is not None:
            return self.radius
        evidence = faded_count(self._ridges.seen, self.discount**2)  # (1 - γ^2t)/(1 - γ²)
        growth = np.log1p(self.input_bound**2 * evidence / (self.penalty * parameters))
        width = np.sqrt(2 * np.log(1 / self.risk) + parameters * growth)
        return float(np.sqrt(self.penalty) * self.weight_bound + self.noise * width)


@final
@dataclass(kw_only=True, eq=False)
class EpsilonSGD:
    """Epsilon-greedy choice on a linear model that learns by stochastic gradient steps of constant size.

    Plainly: this is no restless bandit and has no Whittle index. It is what the C3 paper's "contextual
    restless bandit" (CRB) amounts to after the simplifications it needed; the constant step is all that
    follows drift. Inputs are standardised by the history that `fit` saw (or left alone without one).
    Features are as in `LinUCB`.
    """

    epsilon: float = 0.1
    step: float = 1e-3
    features: Features = "shared"
    _line: "_Line | None" = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= checks.number("epsilon", self.epsilon) <= 1:
            raise ValueError(f"epsilon must lie in [0, 1]; got {self.epsilon}")
        checks.positive("step", self.step)
        check_features(self.features)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, measure the history, and step through it in the order of its times."""
        self._line = _Line.over(history, self.features)
        if remember:
            self.update(in_time(history), rng)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Pick the arm with the highest prediction, or any arm in `epsilon` of all cases."""
        features, matrix = offered(context, arms)
        contexts = np.tile(features, (len(matrix), 1))
        nothing = Feedback(contexts=contexts[:0], arms=matrix[:0], rewards=np.empty(0))
        line = self._line or _Line.over(nothing, self.features)
        inputs = line.inputs(contexts, matrix, self.features)
        means = (inputs.rows * line.weights[inputs.block]).sum(1)
        best = means == means.max()
        return drawn(self.epsilon / len(means) + (1 - self.epsilon) * best / best.sum(), rng, means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Take one step for each outcome, in the order given."""
        line = self._line or _Line.over(feedback[:0], self.features)
        inputs = line.inputs(feedback.contexts, feedback.arms, self.features)
        weights = line.weights.copy()
        for row, block, reward in zip(*inputs, feedback.rewards, strict=True):
            # Beyond 1/‖x‖² a step overshoots the very outcome it is for, and a few such diverge.
            step = min(self.step, 1 / (row @ row))
            weights[block] += step * (reward - row @ weights[block]) * row
        self._line = replace(line, weights=weights)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the weights, the scale of the inputs and the options."""
        checkpoint.write(path, "EpsilonSGD", {} if self._line is None else vars(self._line), options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "EpsilonSGD")
        policy = cls(**spec)
        policy._line = _Line(**arrays) if arrays else None
        return policy


@dataclass(frozen=True, kw_only=True, eq=False)
class _Line:
    """Weights, a row a regression, and the units of what they are multiplied by."""

    weights: Matrix
    centre: Vector
    scale: Vector
    dims: Ids  # features of a context and of an arm

    @classmethod
    def over(cls, history: Feedback, features: Features) -> Self:
        """Return weights of zero for inputs in units of this history; an empty one leaves them alone."""
        dims = (history.contexts.shape[1], history.arms.shape[1])
        count, width = sizes(features, dims)
        centre, scale = np.zeros(width), np.ones(width)
        if len(history):
            centre, scale = scaling(encode(features, history.contexts, history.arms).rows)
            centre[0] = 0.0  # the intercept
        return cls(weights=np.zeros((count, width)), centre=centre, scale=scale, dims=np.array(dims))

    def inputs(self, contexts: Matrix, arms: Matrix, features: Features) -> Inputs:
        """Return what the weights are multiplied by."""
        context, arm = self.dims.tolist()
        check_widths((context, arm), (contexts.shape[1], arms.shape[1]))
        rows, block = encode(features, contexts, arms)
        return Inputs((rows - self.centre) / self.scale, block)


def _check_bound(policy: SWLinUCB | DLinUCB) -> None:
    """Refuse constants that the bounds of both papers are not defined for."""
    if policy.radius is not None:
        at_least_zero("radius", policy.radius)
    for name in ("noise", "input_bound", "weight_bound"):
        checks.positive(name, getattr(policy, name))
    if not 0 < checks.number("risk", policy.risk) < 1:
        raise ValueError(f"risk must lie between 0 and 1; got {policy.risk}")


def _rows(memory: Outcomes, count: int) -> Feedback:
    """Return the oldest outcomes of a window."""
    return Feedback(
        contexts=memory.contexts[:count], arms=memory.arms[:count], rewards=memory.rewards[:count]
    )
