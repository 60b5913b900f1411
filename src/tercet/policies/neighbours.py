"""kNN-UCB: the mean reward of an arm's nearest outcomes, as many of them as bound it best."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import highest, offered, options
from tercet.policies.memory import Outcomes, Scale, in_time, offered_keys
from tercet.types import Choice, Feedback, Ids


@final
@dataclass(kw_only=True, eq=False)
class NeighbourUCB:
    """Play the arm with the highest mean reward of its k nearest outcomes plus an uncertainty.

    The k-Nearest Neighbour UCB Algorithm (Reeve, Mellor & Brown, 2018): after t outcomes the
    k nearest of an arm, the farthest of them at distance r, leave the uncertainty
    U(k) = width·√(ln t / k) + slope·r, and each arm takes the k with the smallest. (The paper counts an
    arm's outcomes among the nearest of all arms; more of others only add distance, so the smallest U is at
    an outcome of the arm's own.) Here k is at most `neighbours`, the paper's slope φ(t) is constant, and
    distances are root mean squares over the features of context and arm, scaled by the history.

    `pooled=True` is not the paper's: outcomes of all arms are neighbours, near or far by their arms'
    features too, for catalogues that change. `window` forgets all but the newest outcomes, and t is at most
    that.

    >>> policy, rng = NeighbourUCB(), np.random.default_rng(0)
    >>> policy.update(Feedback.one(context=[1.0], arm=[0.0, 1.0], reward=1.0), rng)
    >>> policy.choose([1.0], [[1.0, 0.0], [0.0, 1.0]], rng).propensities
    array([1., 0.])
    """

    neighbours: int = 20
    width: float = 0.1
    slope: float = 0.3
    pooled: bool = False
    window: int | None = None
    _memory: Outcomes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checks.whole("neighbours", self.neighbours)
        for name in ("width", "slope"):
            if checks.number(name, getattr(self, name)) < 0:
                raise ValueError(f"{name} must be a number of at least 0; got {getattr(self, name)}")
        self._memory = Outcomes(limit=None if self.window is None else checks.whole("window", self.window))

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, take the scale from the history, and remember its outcomes."""
        self._memory = Outcomes(limit=self.window, scale=Scale.of(history))
        self._memory.append(in_time(history) if remember else history[:0])

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
        keys = offered_keys(matrix, arm_ids)
        contexts, matrix = self._memory.scaled(features[None], matrix)
        if not len(self._memory):
            return highest(np.zeros(len(matrix)), rng, means=np.full(len(matrix), 0.5))
        nearest, distances = self._nearest(contexts[0], matrix, keys)
        count = np.arange(1, distances.shape[1] + 1)
        log_time = np.log(max(len(self._memory), 2))  # ln 1 = 0 would be certain of a single outcome
        real = np.isfinite(distances)
        farness = np.full_like(distances, np.inf)
        np.multiply(self.slope, distances, out=farness, where=real)
        uncertainty = self.width * np.sqrt(log_time / count) + farness
        averages = np.cumsum(self._memory.rewards[nearest], axis=1) / count
        row, best = np.arange(len(matrix)), uncertainty.argmin(1)
        # An arm without outcomes has no mean of its own: it is expected to be like the others.
        means = np.where(real[:, 0], averages[row, best], self._memory.rewards.mean())
        return highest(means + uncertainty[row, best], rng, means=means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Remember outcomes; the oldest beyond the window are forgotten."""
        self._memory.append(feedback)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the outcomes and the options."""
        checkpoint.write(path, "NeighbourUCB", self._memory.to_arrays(), options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "NeighbourUCB")
        policy = cls(**spec)
        policy._memory = Outcomes.from_arrays(arrays, limit=policy.window)
        return policy

    def _nearest(self, context: Vector, arms: Matrix, keys: Ids) -> tuple[Array, Matrix]:
        """Return the nearest outcomes of each arm, nearest first, and their distances; infinite for none."""
        squares = self._squared_distances(context, arms)
        if not self.pooled:
            squares[self._memory.keys != keys[:, None]] = np.inf
        count = min(self.neighbours, len(self._memory))
        nearest = np.argpartition(squares, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(squares, nearest, axis=1), axis=1, kind="stable")
        nearest = np.take_along_axis(nearest, order, axis=1)
        return nearest, np.sqrt(np.take_along_axis(squares, nearest, axis=1))

    def _squared_distances(self, context: Vector, arms: Matrix) -> Matrix:
        """Return ‖p‖² - 2p·q + ‖q‖² in two parts, because all arms share one context: a row for each arm."""
        memory = self._memory
        visitors = np.einsum("ij,ij->i", memory.contexts, memory.contexts) - 2 * memory.contexts @ context
        shown = np.einsum("ij,ij->i", memory.arms, memory.arms) - 2 * arms @ memory.arms.T
        offsets = context @ context + (arms * arms).sum(1)
        return np.maximum(visitors + shown + offsets[:, None], 0)
