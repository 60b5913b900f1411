"""Boosted trees (LightGBM) that are refitted now and then: what most teams run before they run a bandit."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks
from tercet.checks import Array, Matrix, Vector
from tercet.gaussian import shares
from tercet.policies.base import arm_keys, check_widths, drawn, offered, options
from tercet.policies.counters import ClickCounters
from tercet.policies.forest import Forest
from tercet.policies.memory import Outcomes, in_time, offered_keys
from tercet.types import Choice, Feedback


@dataclass(kw_only=True, eq=False)
class Refits:
    """When to train anew, and on which outcomes: every `refit` of them, on the newest `window`.

    A model gives way only to one of at least as many outcomes, or of a full window: where the memory
    starts empty beside a model of the whole history, it has to catch up first.
    """

    refit: int | None
    window: int | None
    dims: tuple[int, int] | None = None  # features of a context and of an arm
    trained: int = 0  # outcomes behind the newest model
    waiting: int = 0  # outcomes since the last refit
    memory: Outcomes = field(init=False)

    def __post_init__(self) -> None:
        for name, value in (("refit", self.refit), ("window", self.window)):
            if value is not None:
                checks.whole(name, value)
        self.memory = Outcomes(limit=self.window)

    def check(self, contexts: Matrix, arms: Matrix) -> tuple[int, int]:
        """Return the widths, and refuse others than before."""
        dims = (contexts.shape[1], arms.shape[1])
        check_widths(self.dims, dims)
        return dims

    def start(self, history: Feedback, train: Callable[[Matrix, Vector], None], *, remember: bool) -> None:
        """Train on the newest outcomes of the history, and remember them or not."""
        newest = history[-self.window :] if self.window else history
        self._learn(newest.joint(), newest.rewards, train)
        if remember and self.refit is not None:
            self.memory.append(newest)

    def add(self, feedback: Feedback, train: Callable[[Matrix, Vector], None]) -> None:
        """Remember outcomes, and train where they bring a refit, as if they had come one by one."""
        if self.refit is None:
            return
        due, self.waiting = divmod(self.waiting + len(feedback), self.refit)
        last = len(feedback) - self.waiting if due else 0
        self.memory.append(feedback[:last])
        if due and len(self.memory) >= min(self.trained, self.window or self.trained):
            self._learn(self.memory.joint(), self.memory.rewards, train)
        self.memory.append(feedback[last:])

    def to_arrays(self) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        dims = {} if self.dims is None else {"dims": np.array(self.dims)}
        return self.memory.to_arrays() | dims | {"progress": np.array([self.trained, self.waiting])}

    def resumed(self, arrays: Mapping[str, Array]) -> Self:
        """Return the state that `to_arrays` described."""
        trained, waiting = arrays["progress"].tolist()
        again = replace(self, trained=trained, waiting=waiting)
        if "dims" in arrays:
            again.dims = (int(arrays["dims"][0]), int(arrays["dims"][1]))
        again.memory = Outcomes.from_arrays(arrays, limit=self.window)
        return again

    def _learn(self, inputs: Matrix, rewards: Vector, train: Callable[[Matrix, Vector], None]) -> None:
        if len(rewards) and rewards.min() < rewards.max():  # else there is nothing to tell apart
            train(inputs, rewards)
            self.trained = len(rewards)


@final
@dataclass(kw_only=True, eq=False)
class Boosting:
    """LightGBM on context and arm features, refitted every `refit` outcomes, with an epsilon of luck.

    With a `half_life` (in units of time) the model also sees the arm's faded clicks, shows and smoothed
    rate as they were before each outcome, and every outcome and decision needs its time. `refit=None`
    never trains again after `fit`; a `window` trains on the newest outcomes only. Choice is even until
    there is a model.
    """

    trees: int = 300
    leaves: int = 63
    rate: float = 0.1
    refit: int | None = 500
    window: int | None = None
    half_life: float | None = None
    epsilon: float = 0.05
    _forest: Forest | None = field(default=None, init=False, repr=False)
    _refits: Refits = field(init=False, repr=False)
    _counters: ClickCounters | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_size(self.trees, self.leaves, self.rate)
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1]; got {self.epsilon}")
        self._forget()

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then train on the history, its counters as they stood at each outcome."""
        self._forget()
        self._refits.dims = self._refits.check(history.contexts, history.arms)
        self._refits.start(self._counted(in_time(history)), partial(self._train, rng), remember=remember)
        if not remember:
            self._counters = self._no_counts()

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Pick the arm of the highest prediction, or any with probability epsilon."""
        features, matrix = offered(context, arms)
        contexts = np.tile(features, (len(matrix), 1))
        self._refits.check(contexts, matrix)
        if self._counters is not None:
            if time is None:
                raise ValueError("with a half_life a decision needs its time; got time=None")
            counts = self._counters.read(offered_keys(matrix, arm_ids), checks.number("time", time))
            contexts = np.hstack([contexts, counts])
        if self._forest is None:
            return _any(len(matrix), rng)
        means = self._forest.predict(np.hstack([contexts, matrix]))
        luck = self.epsilon / len(matrix)
        return drawn(luck + (1 - self.epsilon) * shares(means[None]), rng, means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Count the outcomes, and train anew where it is time to."""
        self._refits.dims = self._refits.check(feedback.contexts, feedback.arms)
        self._refits.add(self._counted(feedback), partial(self._train, rng))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model, what the next one will learn from, and the options."""
        arrays = self._refits.to_arrays()
        if self._counters is not None:
            arrays |= self._counters.to_arrays()
        if self._forest is not None:
            arrays |= {"forest": self._forest.text}
        checkpoint.write(path, "Boosting", arrays, options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, chosen = checkpoint.read(path, "Boosting")
        policy = cls(**chosen)
        policy._refits = policy._refits.resumed(arrays)
        if policy.half_life is not None:
            policy._counters = ClickCounters.from_arrays(arrays, half_life=policy.half_life)
        if "forest" in arrays:
            policy._forest = Forest.read(arrays["forest"])
        return policy

    def _forget(self) -> None:
        self._forest, self._counters = None, self._no_counts()
        self._refits = Refits(refit=self.refit, window=self.window)

    def _no_counts(self) -> ClickCounters | None:
        return None if self.half_life is None else ClickCounters(half_life=self.half_life)

    def _counted(self, feedback: Feedback) -> Feedback:
        """Return the outcomes with their counters as further context features, and count them."""
        if self._counters is None:
            return feedback
        if feedback.times is None:
            raise ValueError("with a half_life every outcome needs a time; got feedback without times")
        keys = arm_keys(feedback.arms, feedback.arm_ids)
        counts = self._counters.watch(keys, feedback.rewards, feedback.times)
        return replace(feedback, contexts=np.hstack([feedback.contexts, counts]))

    def _train(self, rng: np.random.Generator, inputs: Matrix, rewards: Vector) -> None:
        self._forest = Forest.grow(
            inputs, rewards, rng, trees=self.trees, num_leaves=self.leaves, learning_rate=self.rate
        )


@final
@dataclass(kw_only=True, eq=False)
class BootstrapBoosting:
    """Thompson sampling by bootstrap: draw one of `models` LightGBM models, play its best arm.

    Each model is trained on its own resample of the outcomes, so the models differ where evidence is
    thin (Eckles and Kaptein, 2014). A resample of nothing but failures holds no doubt, hence each gets
    `prior` made-up outcomes, contexts and arms paired at random, rewards by the toss of a coin (Osband
    and Van Roy, 2015). Choice is even until there is a model.
    """

    models: int = 10
    trees: int = 100
    leaves: int = 31
    rate: float = 0.1
    refit: int | None = 500
    window: int | None = None
    prior: int = 10
    _forests: tuple[Forest, ...] = field(default=(), init=False, repr=False)
    _refits: Refits = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checks.whole("models", self.models)
        _check_size(self.trees, self.leaves, self.rate)
        if self.prior < 0:
            raise ValueError(f"prior must be a number of outcomes, 0 or more; got {self.prior}")
        self._forget()

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then train on the history."""
        self._forget()
        self._refits.dims = self._refits.check(history.contexts, history.arms)
        self._refits.start(in_time(history), partial(self._train, rng), remember=remember)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Draw from the shares of the models that like each arm best, which is to draw a model."""
        features, matrix = offered(context, arms)
        contexts = np.tile(features, (len(matrix), 1))
        self._refits.check(contexts, matrix)
        if not self._forests:
            return _any(len(matrix), rng)
        inputs = np.hstack([contexts, matrix])
        scores = np.array([forest.predict(inputs) for forest in self._forests])
        return drawn(shares(scores), rng, means=scores.mean(0))

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Remember the outcomes, and train anew where it is time to."""
        self._refits.dims = self._refits.check(feedback.contexts, feedback.arms)
        self._refits.add(feedback, partial(self._train, rng))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the models, what the next ones will learn from, and the options."""
        forests = {f"forest {number}": forest.text for number, forest in enumerate(self._forests)}
        checkpoint.write(path, "BootstrapBoosting", self._refits.to_arrays() | forests, options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, chosen = checkpoint.read(path, "BootstrapBoosting")
        policy = cls(**chosen)
        policy._refits = policy._refits.resumed(arrays)
        if "forest 0" in arrays:
            texts = (arrays[f"forest {number}"] for number in range(policy.models))
            policy._forests = tuple(Forest.read(text) for text in texts)
        return policy

    def _forget(self) -> None:
        self._forests, self._refits = (), Refits(refit=self.refit, window=self.window)

    def _train(self, rng: np.random.Generator, inputs: Matrix, rewards: Vector) -> None:
        size: dict[str, Any] = {"trees": self.trees, "num_leaves": self.leaves, "learning_rate": self.rate}
        samples = (self._resample(inputs, rewards, rng) for _ in range(self.models))
        self._forests = tuple(Forest.grow(*sample, rng, **size) for sample in samples)

    def _resample(self, inputs: Matrix, rewards: Vector, rng: np.random.Generator) -> tuple[Matrix, Vector]:
        assert self._refits.dims is not None  # outcomes came before any training
        width = self._refits.dims[0]
        rows = rng.integers(len(rewards), size=len(rewards))
        visitors, shown = rng.integers(len(rewards), size=(2, self.prior))
        made_up = np.hstack([inputs[visitors, :width], inputs[shown, width:]])
        coins = rng.integers(2, size=self.prior)
        return np.vstack([inputs[rows], made_up]), np.concatenate([rewards[rows], coins])


def _any(count: int, rng: np.random.Generator) -> Choice:
    return drawn(np.full(count, 1 / count), rng)


def _check_size(trees: int, leaves: int, rate: float) -> None:
    checks.whole("trees", trees)
    if checks.whole("leaves", leaves) < 2:
        raise ValueError("leaves must be at least 2, or a tree tells nothing apart; got 1")
    checks.positive("rate", rate)
