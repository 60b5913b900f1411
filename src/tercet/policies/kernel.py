"""KernelUCB: kernel ridge regression on a window of outcomes, with a confidence width."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import highest, offered, options
from tercet.policies.memory import Outcomes, Scale, in_time
from tercet.types import Choice, Feedback

# Corrections pile up rounding errors, a fresh inverse wipes them out. At this pace it costs less than the
# corrections in between, whose errors (of random rows, window 500) stay below 1e-13 of the largest entry
# with penalty 1, 1e-7 with 1e-3, and 1e-2 with 1e-6.
REFRESH = 500
FEWEST = 64  # rows that the inverse has room for at first
BLOCK = 64  # rows corrected at a time: their change stays in the processor's cache
SMALLEST = 1e-6  # penalty: a window of equal rows leaves K + λI a condition number of window / penalty
MEASURED = 1_000  # rows that the median distance is taken from


@final
@dataclass(kw_only=True, eq=False)
class KernelUCB:
    """Play the arm with the highest kernel ridge estimate plus `width` times its standard deviation.

    With K the kernel matrix of the newest `window` outcomes, k the kernel between them and a pair x of
    context and arm, and λ the `penalty` (Valko, Korda, Munos, Flaounas & Cristianini, 2013):
    mean k'(K + λI)⁻¹y, standard deviation √((k(x,x) - k'(K + λI)⁻¹k) / λ). The kernel is an RBF on features
    scaled by the history; without a `bandwidth` it is the history's median distance.

    >>> policy, rng = KernelUCB(width=0.1), np.random.default_rng(0)
    >>> policy.update(Feedback.one(context=[1.0], arm=[0.0, 1.0], reward=1.0), rng)
    >>> policy.choose([1.0], [[1.0, 0.0], [0.0, 1.0]], rng).means.round(2)
    array([0.18, 0.5 ])
    """

    bandwidth: float | None = None
    penalty: float = 1.0
    width: float = 1.0
    window: int = 500
    _bandwidth: float = field(init=False, repr=False)  # the bandwidth in use
    _memory: Outcomes = field(init=False, repr=False)
    _inverse: Matrix = field(init=False, repr=False)  # (K + λI)⁻¹ of the slots, see `exchange`

    def __post_init__(self) -> None:
        if self.bandwidth is not None:
            checks.positive("bandwidth", self.bandwidth)
        if checks.number("penalty", self.penalty) < SMALLEST:
            raise ValueError(
                f"penalty must be at least {SMALLEST:g}, or K + λI has no inverse; got {self.penalty}"
            )
        if checks.number("width", self.width) < 0:
            raise ValueError(f"width must be a number of at least 0; got {self.width}")
        self._memory = Outcomes(limit=checks.whole("window", self.window))
        self._bandwidth = self.bandwidth or 1.0
        self._refresh()

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, take scale and bandwidth from the history, and remember its newest outcomes."""
        scale, history = Scale.of(history), in_time(history)
        points = np.hstack(scale.apply(history.contexts[-MEASURED:], history.arms[-MEASURED:]))
        self._bandwidth = self.bandwidth or median_distance(points)
        self._memory = Outcomes(limit=self.window, scale=scale)
        self._memory.append(history if remember else history[:0])
        self._refresh()

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
        contexts, matrix = self._memory.scaled(np.tile(features, (len(matrix), 1)), matrix)
        mean, deviation = self._estimate(np.hstack([contexts, matrix]))
        return highest(mean + self.width * deviation, rng, means=mean)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes in the order given; the oldest beyond the window are forgotten."""
        self._memory.check(feedback)
        if len(feedback) >= REFRESH:
            self._memory.append(feedback)
            self._refresh()
            return
        for row in range(len(feedback)):
            self._learn(feedback[row : row + 1])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the window, the inverse and the options."""
        spec = {"options": options(self), "bandwidth": self._bandwidth}
        checkpoint.write(path, "KernelUCB", self._memory.to_arrays() | {"inverse": self._inverse}, spec)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "KernelUCB")
        policy = cls(**spec["options"])
        policy._memory = Outcomes.from_arrays(arrays, limit=policy.window)
        policy._bandwidth, policy._inverse = spec["bandwidth"], arrays["inverse"].copy()
        return policy

    def _estimate(self, points: Matrix) -> tuple[Vector, Vector]:
        """Return mean and standard deviation at each point."""
        if not len(self._memory):
            return np.zeros(len(points)), np.full(len(points), 1 / np.sqrt(self.penalty))
        near = self._slots(rbf(points, self._memory.joint(), self._bandwidth))
        solved = near @ self._inverse
        variance = (1 - (solved * near).sum(1)) / self.penalty  # k(x, x) = 1
        return solved @ self._slots(self._memory.rewards), np.sqrt(np.maximum(variance, 0))

    def _learn(self, outcome: Feedback) -> None:
        slot = self._memory.seen % self.window
        self._memory.append(outcome)
        if self._memory.seen % REFRESH == 0:
            self._refresh()
            return
        if slot == len(self._inverse):
            grown = np.zeros((self._room(), self._room()))
            grown[:slot, :slot] = self._inverse
            self._inverse = grown
        points = self._memory.joint()
        row = self._slots(rbf(points[-1:], points, self._bandwidth)[0])
        row[slot] += self.penalty
        exchange(self._inverse, slot, row)

    def _refresh(self) -> None:
        """Invert anew."""
        self._inverse = np.zeros((self._room(), self._room()))
        count = len(self._memory)
        if count:
            points = np.roll(self._memory.joint(), self._memory.seen % count, axis=0)
            ridge = rbf(points, points, self._bandwidth) + self.penalty * np.eye(count)
            root = np.linalg.inv(np.linalg.cholesky(ridge))
            self._inverse[:count, :count] = root.T @ root

    def _slots(self, values: Array) -> Array:
        """Return values by slot, given them (in the last axis) by age; empty slots have 0.

        The outcome that came as number i is in slot i modulo the window: it takes the place of the one
        that it drives out, and nothing else moves.
        """
        count = values.shape[-1]
        placed = np.zeros((*values.shape[:-1], len(self._inverse)))
        placed[..., :count] = np.roll(values, self._memory.seen % count, axis=-1)
        return placed

    def _room(self) -> int:
        """Slots to keep: a function of the memory alone, so that a reloaded policy rounds alike."""
        count = max(len(self._memory), FEWEST)
        return min(self.window, 1 << (count - 1).bit_length())


def rbf(points: Matrix, others: Matrix, bandwidth: float) -> Matrix:
    """Return exp(-‖p - o‖² / 2 bandwidth²), a row for each point and a column for each other."""
    from scipy.spatial.distance import cdist

    return np.exp(cdist(points, others, "sqeuclidean") / (-2 * bandwidth**2))


def median_distance(points: Matrix) -> float:
    """Return the median distance of two rows; 1 where there is none."""
    from scipy.spatial.distance import pdist

    distances = pdist(points)
    return float(np.median(distances[distances > 0])) if distances.any() else 1.0


def exchange(inverse: Matrix, slot: int, row: Vector) -> None:
    """Change A⁻¹ in place to that of A with another row and column at `slot`.

    An empty slot has zeros in A⁻¹, and `row` has zeros for the other empty slots. Taking a row out leaves
    A⁻¹ - e e'/e_slot, e being its column; putting one in adds v v'/s, v being the solution for the other
    entries, with -1 at the slot, and s the Schur complement of the corner.
    """
    others = row.copy()
    others[slot] = 0
    solved = inverse @ others
    gone, pivot = inverse[slot].copy(), inverse[slot, slot] or 1.0
    solved -= gone @ others / pivot * gone
    rest = row[slot] - others @ solved
    solved[slot] = -1
    left, right = np.stack([-gone / pivot, solved / rest], axis=1), np.stack([gone, solved])
    for start in range(0, len(inverse), BLOCK):
        inverse[start : start + BLOCK] += left[start : start + BLOCK] @ right
    inverse[slot] = inverse[:, slot] = -solved / rest
