"""Ridge regressions that linear policies learn by: Ridge is one, Ridges is one for all arms or one an arm."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import check_widths, offered, one_hot
from tercet.policies.memory import in_time
from tercet.types import Feedback, Ids

Features = Literal["shared", "disjoint"]

# A correction of V⁻¹ loses as many digits as its pivot has: beyond four V is factored anew.
TRUSTED = 1e4


@dataclass(frozen=True, kw_only=True, eq=False)
class Ridge:
    """The state of one ridge regression: V = Σ worth·x xᵀ + λI and b = Σ worth·r x.

    `running` is V⁻¹ as corrected for the outcomes that came since V was factored (`corrections`, never
    more than V has columns, so that rounding can not pile up); None: V is factored when V⁻¹ is needed.
    """

    precision: Matrix
    response: Vector
    penalty: float
    running: Matrix | None = None
    corrections: int = 0

    @classmethod
    def empty(cls, width: int, *, penalty: float) -> Self:
        """Return the state before any outcome."""
        return cls(precision=penalty * np.eye(width), response=np.zeros(width), penalty=penalty)

    @cached_property
    def inverse(self) -> Matrix:
        """V⁻¹."""
        return self.solve(np.eye(len(self.precision))) if self.running is None else self.running

    def solve(self, rows: Matrix) -> Matrix:
        """Return V⁻¹x of each row x."""
        from scipy.linalg import lapack

        if self.running is not None:
            return rows @ self.running
        if self._factor is not None:
            return lapack.dpotrs(self._factor, rows.T, lower=1)[0].T
        values, vectors = np.linalg.eigh(self.precision)
        return (rows @ vectors / np.maximum(values, self.penalty)) @ vectors.T

    @cached_property
    def _factor(self) -> Matrix | None:
        """Cholesky's factor of V; None where features too large for floats hide that V is at least λI."""
        from scipy.linalg import lapack

        factor, failed = lapack.dpotrf(self.precision, lower=1)
        return None if failed or factor.diagonal().min() ** 2 < 0.999 * self.penalty else factor

    def learn(self, inputs: Matrix, rewards: Vector, *, worth: Vector, rest: float = 1.0) -> Self:
        """Return the state after outcomes of this `worth`, when `rest` is left of what was known before.

        A worth of -1 takes an outcome back. The regulariser does not fade, so a direction nobody has
        tried for long stays well defined (Russac et al., 2019); V⁻¹ then has no cheap correction.
        """
        if not len(rewards) and rest == 1:
            return self
        weighted = inputs * worth[:, None]
        precision = rest * self.precision + weighted.T @ inputs
        precision[np.diag_indices_from(precision)] += (1 - rest) * self.penalty
        corrections = self.corrections + len(rewards)
        cheap = rest == 1 and corrections <= len(precision)
        running = self._corrected(inputs, worth) if cheap else None
        return replace(
            self,
            precision=precision,
            response=rest * self.response + rewards @ weighted,
            running=running,
            corrections=0 if running is None else corrections,
        )

    def _corrected(self, inputs: Matrix, worth: Vector) -> Matrix | None:
        """Return V⁻¹ after these outcomes by Woodbury's identity, or None where it would lose digits."""
        directions = inputs @ self.inverse
        pivots = np.diag(1 / worth) + directions @ inputs.T
        sizes = np.abs(np.linalg.eigvalsh(pivots))
        if sizes.min() < 1 / TRUSTED or sizes.max() > TRUSTED:
            return None
        return self.inverse - directions.T @ np.linalg.solve(pivots, directions)


class Inputs(NamedTuple):
    """What regressions see of pairs: a row of features each, and the number of the regression it is for."""

    rows: Matrix
    block: Ids


class View(NamedTuple):
    """A decision's arms as regressions see them; `directions` are the rows V⁻¹x."""

    inputs: Inputs
    directions: Matrix
    means: Vector
    parameters: int  # of all regressions together: the d of regret bounds

    @property
    def spreads(self) -> Vector:
        """√(xᵀV⁻¹x) of each arm: how little is known in its direction."""
        return lengths(self.inputs.rows, self.directions)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ridges:
    """One ridge regression on `pair_features` for all arms ("shared"), or one on [1, context] an arm.

    The latter ("disjoint") needs one-hot arms. With a `discount` below 1 every outcome fades all those
    before it, other arms' too; V⁻¹ is then found by one factorisation, O(d³), a decision (only of arms
    that are offered), and else corrected in O(d²) an outcome.
    """

    features: Features = "shared"
    penalty: float = 1.0
    discount: float = 1.0
    seen: int = 0
    dims: tuple[int, int] | None = None  # features of a context and of an arm
    blocks: tuple[Ridge, ...] = ()

    def __post_init__(self) -> None:
        check_features(self.features)
        checks.positive("penalty", self.penalty)
        if not 0 < checks.number("discount", self.discount) <= 1:
            raise ValueError(f"discount must lie above 0 and not above 1; got {self.discount}")

    def refit(self, history: Feedback, *, remember: bool) -> Self:
        """Return what is known after this history alone, in the order of its times."""
        empty = type(self)(features=self.features, penalty=self.penalty, discount=self.discount)
        return empty.learn(in_time(history) if remember else history[:0])

    def learn(self, feedback: Feedback) -> Self:
        """Return what is known after these outcomes too, oldest first."""
        count = len(feedback)
        worth = self.discount ** np.arange(count - 1.0, -1.0, -1.0)
        return self._absorb(feedback, worth, rest=self.discount**count, seen=self.seen + count)

    def unlearn(self, feedback: Feedback) -> Self:
        """Return what is known without these outcomes, which were learned before and have not faded."""
        assert self.discount == 1
        count = len(feedback)
        return self._absorb(feedback, -np.ones(count), rest=1.0, seen=self.seen - count)

    def view(self, context: Any, arms: Any) -> View:
        """Return what is known of the arms offered."""
        features, matrix = offered(context, arms)
        known = self.started((len(features), matrix.shape[1]))
        inputs = encode(self.features, np.tile(features, (len(matrix), 1)), matrix)
        directions = known.through(inputs.block, inputs.rows, Ridge.solve)
        responses = np.array([block.response for block in known.blocks])
        return View(
            inputs=inputs,
            directions=directions,
            means=(directions * responses[inputs.block]).sum(1),
            parameters=responses.size,
        )

    def through(self, block: Ids, rows: Matrix, image: Callable[[Ridge, Matrix], Matrix]) -> Matrix:
        """Return the image of each row by its own regression."""
        result = np.empty_like(rows)
        for number in np.unique(block):
            mine = block == number
            result[mine] = image(self.blocks[number], rows[mine])
        return result

    def started(self, dims: tuple[int, int]) -> Self:
        """Return regressions for contexts and arms of these widths, empty ones before the first outcome."""
        if self.dims is not None:
            check_widths(self.dims, dims)
            return self
        count, width = sizes(self.features, dims)
        empty = Ridge.empty(width, penalty=self.penalty)
        return replace(self, dims=dims, blocks=(empty,) * count)

    def to_arrays(self, prefix: str = "") -> dict[str, Array]:
        """Return what a checkpoint needs, under names that begin with `prefix`."""
        if self.dims is None:
            return {}
        blocks = self.blocks
        running = [block.running for block in blocks if block.running is not None]
        arrays = {
            "dims": np.array(self.dims),
            "seen": np.array(self.seen),
            "precision": np.array([block.precision for block in blocks]),
            "response": np.array([block.response for block in blocks]),
            "corrections": np.array([block.corrections for block in blocks]),
            "running": np.array(running).reshape(len(running), *blocks[0].precision.shape),
        }
        return {prefix + name: array for name, array in arrays.items()}

    def from_arrays(self, arrays: Mapping[str, Array], prefix: str = "") -> Self:
        """Return regressions with these options and the state that `to_arrays` described."""
        if prefix + "dims" not in arrays:
            return self
        precisions, responses, running, corrections = (
            arrays[prefix + name] for name in ("precision", "response", "running", "corrections")
        )
        inverses = iter(running)
        blocks = tuple(
            Ridge(
                precision=precision,
                response=response,
                penalty=self.penalty,
                running=next(inverses) if count else None,
                corrections=count,
            )
            for precision, response, count in zip(precisions, responses, corrections.tolist(), strict=True)
        )
        context, arm = arrays[prefix + "dims"].tolist()
        return replace(self, dims=(context, arm), seen=arrays[prefix + "seen"].item(), blocks=blocks)

    def _absorb(self, feedback: Feedback, worth: Vector, *, rest: float, seen: int) -> Self:
        known = self.started((feedback.contexts.shape[1], feedback.arms.shape[1]))
        inputs = encode(self.features, feedback.contexts, feedback.arms)
        rows = [np.flatnonzero(inputs.block == number) for number in range(len(known.blocks))]
        blocks = tuple(
            block.learn(inputs.rows[mine], feedback.rewards[mine], worth=worth[mine], rest=rest)
            for block, mine in zip(known.blocks, rows, strict=True)
        )
        return replace(known, blocks=blocks, seen=seen)


def encode(features: Features, contexts: Matrix, arms: Matrix) -> Inputs:
    """Return what regressions see of pairs of a context and an arm."""
    if features == "shared":
        return Inputs(pair_features(contexts, arms), np.zeros(len(arms), dtype=np.int64))
    return Inputs(np.insert(contexts, 0, 1.0, axis=1), one_hot(arms))


def sizes(features: Features, dims: tuple[int, int]) -> tuple[int, int]:
    """Return how many regressions there are, and on how many inputs each."""
    context, arm = dims
    return (1, 1 + context + arm + context * arm) if features == "shared" else (arm, 1 + context)


def check_features(features: str) -> None:
    """Refuse anything but the two kinds of features."""
    if features not in ("shared", "disjoint"):
        raise ValueError(f'features must be "shared" or "disjoint"; got {features!r}')


def pair_features(contexts: Matrix, arms: Matrix) -> Matrix:
    """Return intercept, context, arm and every product of a context and an arm feature, row by row.

    >>> pair_features(np.array([[2.0]]), np.array([[3.0, 5.0]]))
    array([[ 1.,  2.,  3.,  5.,  6., 10.]])
    """
    count = len(arms)
    products = contexts[:, :, None] * arms[:, None, :]
    return np.hstack(
        [np.ones((count, 1)), contexts, arms, products.reshape(count, contexts.shape[1] * arms.shape[1])]
    )


def lengths(rows: Matrix, images: Matrix) -> Vector:
    """Return √(xᵀMx) of each row x and its image Mx, M being positive semidefinite."""
    return np.sqrt(np.maximum((rows * images).sum(1), 0.0))


def faded_count(seen: int, discount: float) -> float:
    """Return the worth of the outcomes seen, each fading those before it: Σ discount^age.

    >>> faded_count(3, 0.5), faded_count(3, 1.0)
    (1.75, 3.0)
    """
    return float(seen) if discount == 1 else (1 - discount**seen) / (1 - discount)


def at_least_zero(name: str, value: float) -> float:
    """Return value as a finite number that is not negative."""
    if checks.number(name, value) < 0:
        raise ValueError(f"{name} must be a finite number of at least 0; got {value}")
    return float(value)
