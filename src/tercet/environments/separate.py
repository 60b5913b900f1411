"""Arms that have nothing in common, and no context: what one earns is learned by showing it, and not else."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from tercet import checks
from tercet.checks import Matrix, Vector
from tercet.environments.drift import BASE, HEIGHT
from tercet.environments.simulated import sigmoid
from tercet.types import Feedback, Ids, Round


@final
@dataclass(frozen=True, kw_only=True)
class Separate:
    """The recipe: `arms` that are always on offer, told by one-hot rows; `logged` steps, `steps` to play.

    usual : None: the log showed arms that were drawn evenly. A number: it showed each arm but the first so
        many times, at random places, and else the first.
    arriving : None, or the played steps after which the oldest arm leaves, again and again; one that the
        log never showed takes its place.
    interval : None, or the steps after which all chances are drawn anew, in the log too.

    >>> world = Separate(logged=300, usual=3).draw(np.random.default_rng(0))
    >>> np.bincount(world.history(np.random.default_rng(1)).arm_ids)
    array([288,   3,   3,   3,   3])
    """

    arms: int = 5
    logged: int = 300
    steps: int = 1000
    usual: int | None = None
    arriving: int | None = None
    interval: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("arms", 2), ("logged", 0), ("steps", 1)):
            checks.whole(name, getattr(self, name), least=least)
        for name, least in (("usual", 0), ("arriving", 1), ("interval", 1)):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), least=least)
        if self.usual is not None and self.usual * self.arms > self.logged:
            raise ValueError(
                f"usual must leave the first arm as many of the {self.logged} logged steps as each of the "
                f"other {self.arms - 1}, {self.logged // self.arms} at most; got {self.usual}"
            )

    @property
    def width(self) -> int:
        """How many arms there are over time, newcomers included."""
        return self.arms + (0 if self.arriving is None else (self.steps - 1) // self.arriving)

    def draw(self, rng: np.random.Generator) -> "SeparateArms":
        """Draw the chances of all arms, newcomers included, in every interval."""
        count = 1 if self.interval is None else -(-(self.logged + self.steps) // self.interval)
        return SeparateArms(
            recipe=self, chances=sigmoid(BASE + rng.normal(scale=HEIGHT, size=(count, self.width)))
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SeparateArms:
    """One drawn world."""

    streaming: ClassVar[bool] = False
    one_log: ClassVar[bool] = False

    recipe: Separate
    chances: Float[np.ndarray, "intervals arms"]

    def means(self, times: Ids, arms: Int[np.ndarray, "times offered"]) -> Matrix:
        """Return what the arms (numbers, one row a time) are expected to earn then."""
        interval = self.recipe.interval
        rows = np.zeros_like(times) if interval is None else times // interval
        return self.chances[rows[:, None], arms]

    def history(self, rng: np.random.Generator) -> Feedback:
        """Return the logged steps."""
        steps = np.arange(self.recipe.logged)
        means = self.means(steps, np.tile(np.arange(self.recipe.arms), (len(steps), 1)))
        rewards = (rng.random(means.shape) < means).astype(np.float64)
        shown, propensities = self._shown(rng)
        return Feedback(
            contexts=np.empty((len(steps), 0)),
            arms=np.eye(self.recipe.width)[shown],
            rewards=rewards[steps, shown],
            times=steps.astype(np.float64),
            ids=steps,
            arm_ids=shown,
            propensities=propensities,
        )

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        """Yield the steps to play; those at which chances are drawn anew are marked as changed."""
        recipe, features = self.recipe, np.eye(self.recipe.width)
        played = np.arange(recipe.steps)
        times, arms = recipe.logged + played, self._offered(played)
        means = self.means(times, arms)
        rewards = (rng.random(means.shape) < means).astype(np.float64)
        for i, time in enumerate(times.tolist()):
            yield Round(
                context=np.empty(0),
                arms=features[arms[i]],
                time=float(time),
                rewards=rewards[i],
                means=means[i],
                arm_ids=arms[i],
                changed=recipe.interval is not None and time > 0 and time % recipe.interval == 0,
            )

    def _shown(self, rng: np.random.Generator) -> tuple[Ids, Vector]:
        """Draw the logged arms; any order of a fixed number of shows is as likely, so shares are odds."""
        recipe = self.recipe
        if recipe.usual is None:
            return rng.integers(recipe.arms, size=recipe.logged), np.full(recipe.logged, 1 / recipe.arms)
        others = np.repeat(np.arange(1, recipe.arms), recipe.usual)
        usual = np.zeros(recipe.logged - len(others), dtype=np.int64)
        shown = rng.permutation(np.concatenate([usual, others]))
        return shown, (np.bincount(shown) / max(recipe.logged, 1))[shown]

    def _offered(self, played: Ids) -> Int[np.ndarray, "played offered"]:
        """Return the numbers of the arms on offer; at each place an arm follows the one that was oldest."""
        recipe = self.recipe
        gone = np.zeros_like(played) if recipe.arriving is None else played // recipe.arriving
        return gone[:, None] + (np.arange(recipe.arms) - gone[:, None]) % recipe.arms
