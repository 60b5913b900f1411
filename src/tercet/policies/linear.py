"""Linear policies for a world that stands still or fades: LinUCB, Thompson sampling, Bayesian regression."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks, gaussian
from tercet.checks import Matrix, Vector
from tercet.policies.base import highest, offered, options
from tercet.policies.ridge import Features, Ridges, View, at_least_zero
from tercet.types import Choice, Feedback


@final
@dataclass(kw_only=True, eq=False)
class LinUCB:
    """Play the arm with the highest w·x + width·√(xᵀV⁻¹x) (Li et al., 2010).

    With "shared" features all arms share w and x is made by `pair_features`, so an arm needs features,
    not pulls; with "disjoint" ones each of the one-hot arms has a w of its own for x = [1, context]. With
    a `discount` below 1 each outcome fades those before it (half is left after log ½ / log discount
    outcomes), which lets w follow drift.

    >>> policy, rng = LinUCB(width=0.1), np.random.default_rng(0)
    >>> policy.update(Feedback.one(context=[1.0], arm=[0.0, 1.0], reward=1.0), rng)
    >>> policy.choose([1.0], [[1.0, 0.0], [0.0, 1.0]], rng).propensities
    array([0., 1.])
    """

    width: float = 1.0
    penalty: float = 1.0
    discount: float = 1.0
    features: Features = "shared"
    _ridges: Ridges = field(init=False, repr=False)

    def __post_init__(self) -> None:
        at_least_zero("width", self.width)
        self._ridges = Ridges(features=self.features, penalty=self.penalty, discount=self.discount)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the history in the order of its times."""
        self._ridges = self._ridges.refit(history, remember=remember)

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
        return highest(view.means + self.width * view.spreads, rng, means=view.means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes in the order given."""
        self._ridges = self._ridges.learn(feedback)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the regressions and the options."""
        checkpoint.write(path, "LinUCB", self._ridges.to_arrays(), options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "LinUCB")
        policy = cls(**spec)
        policy._ridges = policy._ridges.from_arrays(arrays)
        return policy


@final
@dataclass(kw_only=True, eq=False)
class LinTS:
    """Draw w from N(V⁻¹b, v²V⁻¹) and play the arm with the highest w·x (Agrawal and Goyal, 2013).

    Features and discount are as in `LinUCB`. Unless `scale` gives v, it is the paper's R√(24 d ln T ln 1/δ)
    (ε being 1/ln T) with R = `noise`, T = `horizon` and δ = `risk`; d counts the weights of all arms.

    Propensities are exact where arms have weights of their own. Where they share w their draws are
    correlated, and propensities are the shares of `draws` draws, of which the first one decides: their
    standard error is √(p(1-p)/draws), at most .016 by default, and that of the chosen arm is never 0.

    >>> policy, rng = LinTS(scale=0.5, features="disjoint"), np.random.default_rng(0)
    >>> policy.update(Feedback.one(context=[1.0], arm=[0.0, 1.0], reward=1.0), rng)
    >>> policy.choose([1.0], [[1.0, 0.0], [0.0, 1.0]], rng).propensities.round(3)
    array([0.207, 0.793])
    """

    scale: float | None = None
    horizon: int = 1000
    noise: float = 0.01
    risk: float = 0.5
    penalty: float = 1.0
    discount: float = 1.0
    features: Features = "shared"
    draws: int = 1000
    _ridges: Ridges = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.scale is not None:
            checks.positive("scale", self.scale)
        if checks.whole("horizon", self.horizon) < 2:
            raise ValueError(f"horizon must be at least 2 steps, or ln T is 0; got {self.horizon}")
        checks.positive("noise", self.noise)
        if not 0 < checks.number("risk", self.risk) < 1:
            raise ValueError(f"risk must lie between 0 and 1; got {self.risk}")
        checks.whole("draws", self.draws)
        self._ridges = Ridges(features=self.features, penalty=self.penalty, discount=self.discount)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the history in the order of its times."""
        self._ridges = self._ridges.refit(history, remember=remember)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Draw the weights and pick the arm that they like best."""
        if self.features == "shared":
            return self._choose_together(*offered(context, arms), rng)
        view = self._ridges.view(context, arms)
        spreads = self._scale(view.parameters) * view.spreads
        scores = view.means + spreads * rng.standard_normal(len(spreads))
        chances = gaussian.propensities(view.means, spreads)
        return Choice(arm=int(np.argmax(scores)), propensities=chances, means=view.means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes in the order given."""
        self._ridges = self._ridges.learn(feedback)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the regressions and the options."""
        checkpoint.write(path, "LinTS", self._ridges.to_arrays(), options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "LinTS")
        policy = cls(**spec)
        policy._ridges = policy._ridges.from_arrays(arrays)
        return policy

    def _scale(self, parameters: int) -> float:
        """Return v of Agrawal and Goyal's Algorithm 1."""
        if self.scale is not None:
            return self.scale
        return self.noise * float(np.sqrt(24 * parameters * np.log(self.horizon) * np.log(1 / self.risk)))

    def _choose_together(self, context: Vector, arms: Matrix, rng: np.random.Generator) -> Choice:
        # In sorted order the draws do not depend on the order of the offer, and twins are drawn once.
        distinct, place = np.unique(arms, axis=0, return_inverse=True)
        known = self._ridges.started((len(context), arms.shape[1]))
        view = known.view(context, distinct)
        factor = _factor(view, known.blocks[0].inverse)
        noise = rng.standard_normal((self.draws, factor.shape[1])) @ factor.T
        scores = (view.means + self._scale(view.parameters) * noise)[:, place]
        return Choice(
            arm=highest(scores[0], rng).arm, propensities=gaussian.shares(scores), means=view.means[place]
        )


@final
@dataclass(kw_only=True, eq=False)
class BayesianLinear:
    """Play the arm with the highest upper quantile μ·x + width·√(xᵀΣx) of a Bayesian linear regression.

    The weights' prior is N(0, I/prior_precision), an outcome's noise N(0, noise²), so that
    Σ = (XᵀX/noise² + prior_precision·I)⁻¹ and μ = ΣXᵀr/noise²; the default width is the 97.5 % quantile.
    This is `LinUCB` with its two options given a meaning: penalty = prior_precision·noise² and
    width·noise, so that with the defaults it decides as LinUCB(width=1.96) does.
    """

    width: float = 1.96
    noise: float = 1.0
    prior_precision: float = 1.0
    features: Features = "shared"
    _ridges: Ridges = field(init=False, repr=False)

    def __post_init__(self) -> None:
        at_least_zero("width", self.width)
        checks.positive("noise", self.noise)
        checks.positive("prior_precision", self.prior_precision)
        # Σ = noise²·V⁻¹ with V = XᵀX + noise²·prior_precision·I, and noise² cancels from μ.
        self._ridges = Ridges(features=self.features, penalty=self.prior_precision * self.noise**2)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, then learn the history."""
        self._ridges = self._ridges.refit(history, remember=remember)

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
        return highest(view.means + self.width * self.noise * view.spreads, rng, means=view.means)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn outcomes."""
        self._ridges = self._ridges.learn(feedback)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the regressions and the options."""
        checkpoint.write(path, "BayesianLinear", self._ridges.to_arrays(), options(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "BayesianLinear")
        policy = cls(**spec)
        policy._ridges = policy._ridges.from_arrays(arrays)
        return policy


def _factor(view: View, inverse: Matrix) -> Matrix:
    """Return F with FFᵀ = XV⁻¹Xᵀ, the covariance of arms under one w, by way of the smaller matrix."""
    rows = view.inputs.rows
    if len(rows) > len(inverse):
        return rows @ _root(inverse)
    return _root(view.directions @ rows.T)


def _root(matrix: Matrix) -> Matrix:
    """Return a square root R, RRᵀ being the matrix; semidefinite ones (arms on a line) have one too."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 0.0))
