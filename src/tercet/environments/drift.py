"""Arms in coupled groups whose expected rewards drift: one world, and a named nature for each kind of drift.

An arm's log-odds are the level of the trend that it follows, its group's interest in the context, and a
quality of its own. The strengths of these were picked by hand so that uniform choice misses about three in
ten rewards and a sampler that counts by arm about two: hard, and not hopeless. They were not picked for any
policy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.environments.anchors import CONCENTRATION, coupled_means
from tercet.environments.simulated import sigmoid
from tercet.types import Feedback, Ids, Round

BASE = -0.5  # log-odds of a usual arm at a usual time
SWING, HEIGHT, INTEREST, QUALITY = 1.1, 1.1, 0.3, 0.2  # log-odds
NOISE = 0.2  # of an arm's features around its group's, which are standard normal
LIFETIME = 3000

COUPLINGS = ("groups", "none", "conditional")


@final
@dataclass(frozen=True, kw_only=True)
class Nature:
    """What moves in a world, what ties its arms together, and whether their features tell.

    swing : height of the wave that each trend follows, each at its own phase (log-odds).
    height : spread of the trends' constant levels (log-odds).
    redrawn : whether those levels are drawn anew every `Drift.interval` steps.
    anchored : whether they come from the paper's anchor instead: the slopes of the trends, evenly from -1
        to 1, say how each follows one hidden mean (see `anchors`).
    interest : spread of a group's weight on each context feature (log-odds).
    turning : whether those weights rotate, all alike, once in `Drift.period` steps.
    coupling : "groups": the arms of a group follow one trend. "none": each arm has its own.
        "conditional": groups follow their own trends where the first context feature is negative, and
        share one with a neighbour where it is not.
    telling : whether features tell the group; else they are noise.
    lifetime : steps until an arm leaves and another of its group takes its place.
    """

    swing: float = 0.0
    height: float = 0.0
    redrawn: bool = False
    anchored: bool = False
    interest: float = INTEREST
    turning: bool = False
    coupling: str = "groups"
    telling: bool = True
    lifetime: int = LIFETIME

    def __post_init__(self) -> None:
        for name in ("swing", "height", "interest"):
            if checks.number(name, getattr(self, name)) < 0:
                raise ValueError(f"{name} must be at least 0; got {getattr(self, name)}")
        if self.coupling not in COUPLINGS:
            raise ValueError(f"coupling must be one of {', '.join(COUPLINGS)}; got {self.coupling!r}")
        if self.lifetime < 1:
            raise ValueError(f"lifetime must be at least 1 step; got {self.lifetime}")


# Each kind moves one thing; the last three are controls in which coupling, or following drift, can not pay.
KINDS: Mapping[str, Nature] = {
    "seasonal": Nature(swing=SWING),
    "abrupt": Nature(height=HEIGHT, redrawn=True),
    "rotation": Nature(interest=3 * INTEREST, turning=True),
    "arrivals": Nature(height=HEIGHT, lifetime=LIFETIME // 10),
    "anchors": Nature(redrawn=True, anchored=True),
    "conditional": Nature(swing=SWING, coupling="conditional"),
    "uncoupled": Nature(swing=SWING, coupling="none"),
    "lying": Nature(swing=SWING, telling=False),
    "stationary": Nature(height=HEIGHT),
}


@final
@dataclass(frozen=True, kw_only=True)
class Drift:
    """The recipe: a kind of `KINDS` (or a `Nature` of your own), `logged` steps, then `steps` to play.

    `alive` arms exist at any time, evenly in `groups`; `offered` of them are drawn for a step. Trends have
    waves of `period` steps, or are redrawn every `interval` steps; for the first `still` steps nothing moves,
    but arms still come and go. The log showed an arm of the first
    `neglected` groups only `seldom` times as often as another.

    >>> world = Drift(kind="abrupt", logged=600, steps=600).draw(np.random.default_rng(0))
    >>> [round_.time for round_ in world.rounds(np.random.default_rng(1)) if round_.changed]
    [1000.0]
    """

    kind: str | Nature = "seasonal"
    alive: int = 30
    groups: int = 6
    arm_features: int = 8
    context_features: int = 4
    offered: int = 10
    logged: int = 6000
    steps: int = 4000
    period: float = 2000.0
    interval: int = 500
    still: int = 0
    neglected: int = 0
    seldom: float = 0.01

    def __post_init__(self) -> None:
        if isinstance(self.kind, str) and self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, or a Nature; got {self.kind!r}")
        checks.positive("period", self.period)
        checks.positive("seldom", self.seldom)
        least = {"groups": 1, "arm_features": 1, "context_features": 1, "offered": 2, "interval": 1}
        for name, smallest in (least | {"logged": 0, "steps": 1, "still": 0, "neglected": 0}).items():
            if getattr(self, name) < smallest:
                raise ValueError(f"{name} must be at least {smallest}; got {getattr(self, name)}")
        if self.nature.turning and self.context_features % 2:
            raise ValueError(
                f"context_features must be even, since weights turn in pairs; got {self.context_features}"
            )
        if self.alive % self.groups or self.alive < self.offered:
            raise ValueError(
                f"alive must be a multiple of groups ({self.groups}) and at least offered "
                f"({self.offered}); got {self.alive}"
            )

    @property
    def nature(self) -> Nature:
        return KINDS[self.kind] if isinstance(self.kind, str) else self.kind

    @property
    def lives(self) -> int:
        """How many arms may follow one another at a place until the last step."""
        return 1 + -(-(self.logged + self.steps) // self.nature.lifetime)

    def draw(self, rng: np.random.Generator) -> "DriftingWorld":
        """Draw the arms, the trends at all times and the interests."""
        groups = np.repeat(np.arange(self.alive) % self.groups, self.lives)
        follows = _follows(groups, self.nature.coupling)
        typical = rng.normal(size=(self.groups, self.arm_features))
        if not self.nature.telling:
            typical[:] = 0.0
        spread = NOISE if self.nature.telling else 1.0
        return DriftingWorld(
            recipe=self,
            groups=groups,
            features=typical[groups] + rng.normal(scale=spread, size=(len(groups), self.arm_features)),
            quality=rng.normal(scale=QUALITY, size=len(groups)),
            ages=rng.integers(self.nature.lifetime, size=self.alive),
            interests=rng.normal(scale=self.nature.interest, size=(self.groups, self.context_features)),
            follows=follows,
            heights=_heights(self, int(follows.max()) + 1, rng),
            phases=_phases(int(follows.max()) + 1, rng),
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DriftingWorld:
    """One drawn world. At each place one arm follows another; its number tells the place and the turn."""

    streaming: ClassVar[bool] = False
    one_log: ClassVar[bool] = False

    recipe: Drift
    groups: Ids  # of each arm
    features: Matrix
    quality: Vector
    ages: Ids  # how old the first arm of each place is at time 0
    interests: Matrix  # of each group in each context feature, at time 0
    follows: Int[np.ndarray, "2 arms"]  # the trend of each arm where the first context feature is < 0, or not
    heights: Float[np.ndarray, "intervals trends"]
    phases: Vector  # of each trend's wave

    def means(
        self, times: Vector, contexts: Matrix, arms: Int[np.ndarray, "times offered"]
    ) -> Float[np.ndarray, "times offered"]:
        """Return what the arms (numbers, one row a time) are expected to earn then, in these contexts."""
        half, times = (contexts[:, :1] >= 0).astype(np.int64), np.maximum(times, self.recipe.still)
        levels = self._levels(times[:, None], self.follows[half, arms])
        if self.recipe.nature.turning:
            # To turn the context back is to turn every group's weights.
            contexts = _turned(contexts, -2 * np.pi * times / self.recipe.period)
        interest = np.take_along_axis(contexts @ self.interests.T, self.groups[arms], axis=1)
        return sigmoid(BASE + levels + interest + self.quality[arms])

    def history(self, rng: np.random.Generator) -> Feedback:
        """Return the logged steps, in which one of the offered arms was drawn: evenly, unless neglected."""
        seen = self._offers(0, self.recipe.logged, rng)
        rows = np.arange(len(seen.times))
        chances = np.full(seen.arms.shape, 1 / self.recipe.offered)
        if self.recipe.neglected:
            weights = np.where(self.groups[seen.arms] < self.recipe.neglected, self.recipe.seldom, 1.0)
            chances = weights / weights.sum(axis=1, keepdims=True)
            shown = (chances.cumsum(axis=1) < rng.random((len(rows), 1))).sum(axis=1)
            shown = np.minimum(shown, self.recipe.offered - 1)  # a sum of chances may end below 1
        else:
            shown = rng.integers(self.recipe.offered, size=len(rows))
        arms = seen.arms[rows, shown]
        return Feedback(
            contexts=seen.contexts,
            arms=self.features[arms],
            rewards=seen.rewards[rows, shown],
            times=seen.times,
            ids=rows,
            arm_ids=arms,
            propensities=chances[rows, shown],
        )

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        """Yield the steps to play; those at which the levels are redrawn are marked as changed."""
        offers, redrawn = self._offers(self.recipe.logged, self.recipe.steps, rng), self.recipe.nature.redrawn
        for i, arms in enumerate(offers.arms):
            time = float(offers.times[i])
            yield Round(
                context=offers.contexts[i],
                arms=self.features[arms],
                time=time,
                rewards=offers.rewards[i],
                means=offers.means[i],
                arm_ids=arms,
                changed=redrawn and time > self.recipe.still and time % self.recipe.interval == 0,
            )

    def _levels(self, times: Array, trends: Array) -> Matrix:
        recipe = self.recipe
        wave = recipe.nature.swing * np.sin(2 * np.pi * (times / recipe.period + self.phases[trends]))
        row = (times // recipe.interval).astype(np.int64) if recipe.nature.redrawn else np.int64(0)
        return self.heights[row, trends] + wave

    def _offers(self, start: int, count: int, rng: np.random.Generator) -> "Offers":
        recipe = self.recipe
        steps = np.arange(start, start + count)
        times = steps.astype(np.float64)
        contexts = rng.normal(size=(count, recipe.context_features))
        places = rng.random((count, recipe.alive)).argsort(axis=1)[:, : recipe.offered]
        arms = places * recipe.lives + (steps[:, None] + self.ages[places]) // recipe.nature.lifetime
        means = self.means(times, contexts, arms)
        rewards = (rng.random(means.shape) < means).astype(np.float64)
        return Offers(times=times, contexts=contexts, arms=arms, means=means, rewards=rewards)


@dataclass(frozen=True, kw_only=True, eq=False)
class Offers:
    """Steps with what stays hidden from policies: the means and the rewards of all offered arms."""

    times: Vector
    contexts: Matrix
    arms: Int[np.ndarray, "steps offered"]
    means: Float[np.ndarray, "steps offered"]
    rewards: Float[np.ndarray, "steps offered"]


def _follows(groups: Ids, coupling: str) -> Int[np.ndarray, "2 arms"]:
    if coupling == "none":
        return np.tile(np.arange(len(groups)), (2, 1))
    shared = groups.max() + 1 + groups // 2
    return np.array([groups, shared if coupling == "conditional" else groups])


def _heights(recipe: Drift, trends: int, rng: np.random.Generator) -> Matrix:
    """Draw the levels of all intervals; a single one where they are not redrawn."""
    nature = recipe.nature
    intervals = -(-(recipe.logged + recipe.steps) // recipe.interval) if nature.redrawn else 1
    if not nature.anchored:
        return rng.normal(scale=nature.height, size=(intervals, trends))
    slopes = np.linspace(-1, 1, trends)
    chances = np.clip(coupled_means(rng.random(intervals), slopes, CONCENTRATION, rng), 0.01, 0.99)
    return np.log(chances) - np.log1p(-chances)


def _phases(trends: int, rng: np.random.Generator) -> Vector:
    """Spread the trends evenly over the wave, in random order: worlds of equal difficulty."""
    return rng.permutation(trends) / trends + rng.random()


def _turned(contexts: Matrix, angles: Vector) -> Matrix:
    """Rotate each row by its angle, in the plane of every two neighbouring features."""
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    left, right = contexts[:, 0::2], contexts[:, 1::2]
    turned = np.stack([cos * left - sin * right, sin * left + cos * right], axis=2)
    return turned.reshape(contexts.shape)
