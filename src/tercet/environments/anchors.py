"""The paper's coupled arms: an anchor is redrawn in every episode; the others follow it, each to a degree.

C3 paper, section 5.1 and its appendix on the generation of correlated arms.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.types import Feedback, Round

SLOPES = (-1.0, -0.6, -0.2, 0.2, 0.6, 1.0)
CONCENTRATION = 50.0


def coupled_means(
    anchors: Vector, slopes: Vector, concentration: float, rng: np.random.Generator
) -> Float[np.ndarray, "anchors slopes"]:
    """Draw each arm's mean (columns) for each mean of the anchor (rows).

    μᵢ ~ Beta(2c·m, 2c·(1 - m)) with m = ½ + ρᵢ(μ₀ - ½), the appendix's Beta(2c(ρᵢ(μ₀ - ½) + ½), ...).
    """
    # The Beta has no density at m = 0 or 1, where |ρ| = 1 leads if the anchor is there.
    mean = np.clip(moments(anchors, slopes, concentration)[0], 1e-12, 1 - 1e-12)
    return rng.beta(2 * concentration * mean, 2 * concentration * (1 - mean))


def moments(anchors: Vector, slopes: Vector, concentration: float) -> tuple[Matrix, Matrix]:
    """Return mean m and variance m(1 - m)/(2c + 1) of each arm's mean (columns) given the anchor's (rows)."""
    mean = 0.5 + slopes * (anchors[:, None] - 0.5)
    return mean, mean * (1 - mean) / (2 * concentration + 1)


def pearson(slope: float, concentration: float = CONCENTRATION) -> float:
    """Return the correlation of an arm's mean with the anchor's, which the paper's ρ is not: ρ is a slope.

    With μ₀ uniform, Var μ₀ = 1/12, Cov = ρ/12 and Var μᵢ = ρ²/12 + (¼ - ρ²/12)/(2c + 1).

    >>> [round(pearson(slope), 3) for slope in (0.2, 0.6, 1.0)]
    [0.76, 0.966, 0.99]
    """
    explained = slope**2 / 12
    variance = explained + (0.25 - explained) / (2 * concentration + 1)
    return float(slope / 12 / np.sqrt(variance / 12))


def degree_of_coupling(means: Matrix) -> Float[np.ndarray, "arms arms"]:
    """Return Eq. 1 of every two arms, given their means (columns) over time (rows) in one context.

    One less the mean Jensen-Shannon divergence of the two Bernoulli rewards, in bits, so that it lies
    in [0, 1]. Arms that are each other's opposite are coupled for whoever learns, but not by this measure.

    >>> degree_of_coupling(np.array([[0.0, 0.0, 1.0], [0.5, 0.5, 0.5]]))
    array([[1. , 1. , 0.5],
           [1. , 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """
    chances = checks.matrix("means", means)
    checks.unit("means", chances.ravel())
    surprise = _entropy(chances).mean(0)
    # One column at a time: all pairs at all times at once would not fit for hundreds of arms.
    mixed = np.array([_entropy((chances + column[:, None]) / 2).mean(0) for column in chances.T])
    return 1 - mixed + (surprise + surprise[:, None]) / 2


def _entropy(chances: Matrix) -> Matrix:
    """Return the entropy of Bernoulli rewards in bits."""
    from scipy.special import entr

    return (entr(chances) + entr(1 - chances)) / np.log(2)


@final
@dataclass(frozen=True, kw_only=True)
class Anchors:
    """The recipe: an anchor and one arm a slope, in `logged` episodes of `samples` steps, then `played` ones.

    There is no context: its vectors have no entries. `concentration` is the paper's c.

    >>> world = Anchors(logged=3, played=1, samples=10).draw(np.random.default_rng(0))
    >>> len(world.history(np.random.default_rng(1))), world.means.shape
    (30, (4, 7))
    """

    slopes: tuple[float, ...] = SLOPES
    concentration: float = CONCENTRATION
    logged: int = 200
    played: int = 10
    samples: int = 100

    def __post_init__(self) -> None:
        slopes = checks.vector("slopes", self.slopes)
        if not len(slopes) or np.abs(slopes).max() > 1:
            raise ValueError(f"slopes must be at least one, each within [-1, 1]; got {self.slopes}")
        if checks.positive("concentration", self.concentration) < 1:
            raise ValueError(f"concentration must be at least 1, as in the paper; got {self.concentration}")
        for name, least in (("logged", 0), ("played", 1), ("samples", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}")

    def draw(self, rng: np.random.Generator) -> "AnchoredArms":
        """Draw the means of all episodes."""
        anchors = rng.random(self.logged + self.played)
        others = coupled_means(anchors, np.array(self.slopes), self.concentration, rng)
        return AnchoredArms(recipe=self, means=np.column_stack([anchors, others]))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AnchoredArms:
    """One drawn world: each arm's mean (columns, the anchor first) in each episode (rows).

    Time is counted in episodes, so as many time intervals as logged episodes are the episodes themselves.
    """

    streaming: ClassVar[bool] = False
    one_log: ClassVar[bool] = False

    recipe: Anchors
    means: Matrix

    def history(self, rng: np.random.Generator) -> Feedback:
        """Return the logged episodes, in which the arm was drawn evenly."""
        count = self.recipe.logged * self.recipe.samples
        steps, arms = np.arange(count), self.means.shape[1]
        pulled = rng.integers(arms, size=count)
        chances = self.means[steps // self.recipe.samples, pulled]
        return Feedback(
            contexts=np.empty((count, 0)),
            arms=np.eye(arms)[pulled],
            rewards=(rng.random(count) < chances).astype(np.float64),
            times=self._times(steps),
            ids=steps,
            arm_ids=pulled,
            propensities=np.full(count, 1 / arms),
        )

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        """Yield the episodes to play; the first step of each is marked as changed."""
        samples, arms = self.recipe.samples, np.eye(self.means.shape[1])
        steps = np.arange(self.recipe.logged * samples, len(self.means) * samples)
        means = self.means[steps // samples]
        rewards = (rng.random(means.shape) < means).astype(np.float64)
        for i, time in enumerate(self._times(steps)):
            yield Round(
                context=np.empty(0),
                arms=arms,
                time=float(time),
                rewards=rewards[i],
                means=means[i],
                arm_ids=np.arange(len(arms)),
                changed=bool(steps[i] % samples == 0),
            )

    def _times(self, steps: Array) -> Vector:
        return steps / self.recipe.samples
