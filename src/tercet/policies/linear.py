"""Linear policies: one ridge regression on context, arm and their products, shared by all arms."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks
from tercet.checks import Matrix, Vector
from tercet.policies.base import highest, offered
from tercet.types import Choice, Feedback


@dataclass(frozen=True, kw_only=True, eq=False)
class Ridge:
    """The state of a ridge regression whose old evidence fades: V = Σ γ^age x xᵀ + λI and b = Σ γ^age r x.

    The regulariser does not fade, so a direction nobody has tried for long stays well defined (Russac
    et al., 2019). `root` is R with V⁻¹ = RᵀR, `weights` the solution of V w = b.
    """

    precision: Matrix
    response: Vector
    root: Matrix
    weights: Vector

    @classmethod
    def solve(cls, precision: Matrix, response: Vector) -> Self:
        """Factor V and solve for the weights."""
        root = np.linalg.inv(np.linalg.cholesky(precision))
        return cls(precision=precision, response=response, root=root, weights=root.T @ (root @ response))

    @classmethod
    def empty(cls, width: int, *, penalty: float) -> Self:
        """Return the state before any outcome."""
        return cls.solve(penalty * np.eye(width), np.zeros(width))

    def learn(self, inputs: Matrix, rewards: Vector, *, penalty: float, discount: float) -> Self:
        """Return the state after these outcomes, oldest first, each fading all before it by `discount`."""
        worth = discount ** np.arange(len(rewards) - 1.0, -1.0, -1.0)
        rest = discount ** len(rewards)
        precision = rest * self.precision + (inputs * worth[:, None]).T @ inputs
        precision[np.diag_indices_from(precision)] += (1 - rest) * penalty
        return self.solve(precision, rest * self.response + (worth * rewards) @ inputs)

    def spread(self, inputs: Matrix) -> Vector:
        """Return √(xᵀ V⁻¹ x) of each row: how little is known in its direction."""
        return np.linalg.norm(inputs @ self.root.T, axis=1)


def pair_features(contexts: Matrix, arms: Matrix) -> Matrix:
    """Return intercept, context, arm and every product of a context and an arm feature, row by row.

    >>> pair_features(np.array([[2.0]]), np.array([[3.0, 5.0]]))
    array([[ 1.,  2.,  3.,  5.,  6., 10.]])
    """
    products = contexts[:, :, None] * arms[:, None, :]
    return np.hstack(
        [
            np.ones((len(arms), 1)),
            contexts,
            arms,
            products.reshape(len(arms), contexts.shape[1] * arms.shape[1]),
        ]
    )


@final
@dataclass(kw_only=True, eq=False)
class LinUCB:
    """Play the arm with the highest w·x + width·√(xᵀV⁻¹x), x made by `pair_features` (Li et al., 2010).

    All arms share w, so an arm needs features, not pulls. With a `discount` below 1 each outcome fades
    those before it (half is left after log ½ / log discount outcomes), which lets w follow drift.

    >>> policy, rng = LinUCB(width=0.1), np.random.default_rng(0)
    >>> policy.update(Feedback.one(context=[1.0], arm=[0.0, 1.0], reward=1.0), rng)
    >>> policy.choose([1.0], [[1.0, 0.0], [0.0, 1.0]], rng).propensities
    array([0., 1.])
    """

    width: float = 1.0
    penalty: float = 1.0
    discount: float = 1.0
    _ridge: Ridge | None = field(default=None, init=False, repr=False)
    _dims: tuple[int, int] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and self.width >= 0):
            raise ValueError(f"width must be a finite number of at least 0; got {self.width}")
        checks.positive("penalty", self.penalty)
        if not 0 < self.discount <= 1:
            raise ValueError(f"discount must lie above 0 and not above 1; got {self.discount}")

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the history in the order of its times."""
        self._ridge = self._dims = None
        if remember and history.times is not None:
            history = history[np.argsort(history.times, kind="stable")]
        self.update(history if remember else history[:0], rng)

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
        contexts = np.tile(features, (len(matrix), 1))
        ridge = self._state((contexts.shape[1], matrix.shape[1]))
        inputs = pair_features(contexts, matrix)
        return highest(inputs @ ridge.weights + self.width * ridge.spread(inputs), rng)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes in the order given."""
        dims = (feedback.contexts.shape[1], feedback.arms.shape[1])
        inputs = pair_features(feedback.contexts, feedback.arms)
        self._ridge = self._state(dims).learn(
            inputs, feedback.rewards, penalty=self.penalty, discount=self.discount
        )
        self._dims = dims

    def save(self, path: str | PathLike[str]) -> None:
        """Write the regression and the options."""
        options = {"width": self.width, "penalty": self.penalty, "discount": self.discount}
        arrays = (
            {}
            if self._ridge is None
            else {"precision": self._ridge.precision, "response": self._ridge.response}
        )
        checkpoint.write(path, "LinUCB", arrays, {**options, "dims": self._dims})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, options = checkpoint.read(path, "LinUCB")
        dims = options.pop("dims")
        policy = cls(**options)
        if dims is not None:
            policy._dims = (dims[0], dims[1])
            policy._ridge = Ridge.solve(arrays["precision"], arrays["response"])
        return policy

    def _state(self, dims: tuple[int, int]) -> Ridge:
        """Return the regression, a fresh one before the first outcome."""
        if self._ridge is None:
            context, arm = dims
            return Ridge.empty(1 + context + arm + context * arm, penalty=self.penalty)
        if dims != self._dims:
            raise ValueError(f"contexts and arms must have {self._dims} features; got {dims}")
        return self._ridge
