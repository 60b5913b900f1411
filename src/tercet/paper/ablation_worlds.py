"""Who plays where in the ablations: logs with a flaw, C3 with a part changed, phi of another log."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import log, log1p
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tercet.checks import Matrix
from tercet.embedding.options import Training
from tercet.environments.classification import Classification, ClassWorld
from tercet.environments.drift import Drift, DriftingWorld
from tercet.policies.c3 import C3
from tercet.policies.simple import ArmThompson
from tercet.reference.forgetting import Decay, RandomDrop
from tercet.types import Choice, Feedback, Round

PAPER, OURS, PER_ARM = "C3, as in the paper", "C3", "Thompson per arm"
PAPERS_WEIGHT = 2.0  # λ of the calibration loss, in the paper's classification experiments
WEIGHTS = (0.0, 0.01, PAPERS_WEIGHT, 5.0)  # the paper has .01 and 5 in others
DATA = ("MagicTelescope", "covertype")
DRIFTING = ("seasonal", "abrupt")
RARE = 0.1  # chance that a shown arm is in the log where it is no favourite
THINNED = 4  # steps of a log of favourites for each outcome in it: 1 / (1/6 + 5/6 · RARE)
POOR, GOOD = "uniform", "label-aware"


def halving(rule: RandomDrop) -> float:
    """Return the outcomes in which random drops halve the memory, in expectation.

    >>> round(halving(RandomDrop(fraction=0.2, every=100)))
    311
    """
    return rule.every * log(2) / -log1p(-rule.fraction)


HALF_LIFE = float(round(halving(RandomDrop())))  # steps


class Sizes(NamedTuple):
    """How long everything is: the steps between two redrawn levels, those logged and those played."""

    interval: int
    logged: int
    steps: int
    epochs: int
    rows: int  # of a classification log
    evaluated: int


FULL = Sizes(interval=500, logged=4000, steps=2000, epochs=20, rows=4000, evaluated=1000)
SMALL = Sizes(interval=250, logged=1000, steps=150, epochs=4, rows=600, evaluated=100)


@dataclass(frozen=True, kw_only=True)
class Play:
    """Policies and worlds that are played together."""

    policies: dict[str, Any]
    worlds: dict[str, Any]
    steps: int


def plays(sizes: Sizes, data: Sequence[str] = DATA) -> dict[str, Play]:
    """Return what is played, by name; without the classification `data` that is not at hand."""
    drift = {"logged": sizes.logged, "steps": sizes.steps, "interval": sizes.interval}
    drift["period"] = 4 * sizes.interval
    half = sizes.logged // 2
    # The wave is so long that what was learned first is used in the opposite season.
    slow = drift | {"period": 4 * half}
    calm = Drift(kind="stationary", **drift)
    return {
        "drift": Play(
            policies=_drift_policies(sizes),
            worlds={kind: Drift(kind=kind, **drift) for kind in (*DRIFTING, "stationary")},
            steps=sizes.steps,
        ),
        "logs": Play(
            policies=_log_policies(sizes),
            worlds={"moving log": Favourites(recipe=calm), "arrivals": Drift(kind="arrivals", **drift)},
            steps=sizes.steps,
        ),
        "periods": Play(
            policies=_period_policies(sizes, half),
            worlds={kind: Drift(kind=kind, **slow) for kind in DRIFTING},
            steps=sizes.steps,
        ),
        "calibration": Play(
            policies={f"λ = {weight:g}": _paper(calibration=weight) for weight in WEIGHTS},
            worlds={name: Classification(data=name, protocol="text", history=sizes.rows) for name in data},
            steps=sizes.evaluated,
        ),
        "loggers": Play(
            policies=_logger_policies(float(sizes.rows)),
            worlds={name: TwoLoggers(data=name, history=sizes.rows) for name in data},
            steps=sizes.evaluated,
        ),
    }


def _paper(*, forgetting: Any = None, importance: bool = True, phi: Any = None, **training: Any) -> C3:
    return C3.paper(
        forgetting=forgetting,
        importance=importance,
        phi=phi,
        progress=False,
        training=Training.paper(**training),
    )


def _drift_policies(sizes: Sizes) -> dict[str, Any]:
    """Return C3 with time intervals and fading references, and with one of its parts changed."""
    # A tenth of a short log is too little for many intervals: half of it, as in the paper's simulation.
    trained: dict[str, Any] = {
        "usage": 0.5,
        "epochs": sizes.epochs,
        "partitions": sizes.logged // sizes.interval,
    }
    fading = Decay(half_life=HALF_LIFE)
    ours = C3(forgetting=fading, progress=False)
    return {
        PAPER: _paper(forgetting=fading, **trained),
        f"{PAPER}, NWKR": _paper(forgetting=fading, importance=False, **trained),
        f"{PAPER}, one interval": _paper(forgetting=fading, **(trained | {"partitions": 1})),
        f"{PAPER}, random drop": _paper(forgetting=RandomDrop(), **trained),
        f"{PAPER}, nothing forgotten": _paper(**trained),
        OURS: ours,
        f"{OURS}, NWKR": replace(ours, importance=False),
        f"{OURS}, one interval": replace(ours, training=Training(partitions=1)),
    }


def _log_policies(sizes: Sizes) -> dict[str, Any]:
    trained: dict[str, Any] = {"usage": 0.5, "epochs": sizes.epochs}
    ours = C3(progress=False)
    return {
        PAPER: _paper(**trained),
        f"{PAPER}, NWKR": _paper(importance=False, **trained),
        OURS: ours,
        f"{OURS}, NWKR": replace(ours, importance=False),
        PER_ARM: ArmThompson(),
    }


def _period_policies(sizes: Sizes, half: int) -> dict[str, Any]:
    old, new = (0.0, float(half)), (float(half), 2.0 * half)
    trained: dict[str, Any] = {"usage": 0.5, "epochs": sizes.epochs, "partitions": half // sizes.interval}
    policy = _paper(forgetting=Decay(half_life=HALF_LIFE), **trained)
    bare = _paper(forgetting=Decay(half_life=HALF_LIFE), phi=raw)
    return {
        "φ of now": Borrowed(policy=policy, learns=new, remembers=new),
        "φ of then": Borrowed(policy=policy, learns=old, remembers=new),
        "all of then": Borrowed(policy=policy, learns=old, remembers=old),
        "no φ": Borrowed(policy=bare, learns=new, remembers=new),
    }


def _logger_policies(rows: float) -> dict[str, Any]:
    poor, good = (0.0, rows), (rows, 2 * rows)
    return {
        "good log": Borrowed(policy=_paper(), learns=good, remembers=good),
        "φ of poor log": Borrowed(policy=_paper(), learns=poor, remembers=good),
        "poor log": Borrowed(policy=_paper(), learns=poor, remembers=poor),
    }


@final
@dataclass(frozen=True, kw_only=True)
class Favourites:
    """A world in which only the sampling drifts: the log shows a favourite group, each interval another.

    Nothing else moves where `recipe` is stationary. The log has about `recipe.logged` outcomes, over
    `THINNED` times as many steps.
    """

    recipe: Drift

    def draw(self, rng: np.random.Generator) -> "FavouriteWorld":
        """Draw the world and the order of the favourites."""
        steps = THINNED * self.recipe.logged
        longer = replace(self.recipe, logged=steps)
        favourites = rng.integers(self.recipe.groups, size=1 + steps // longer.interval)
        return FavouriteWorld(world=longer.draw(rng), favourites=favourites)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FavouriteWorld:
    """One drawn world of `Favourites`."""

    streaming: ClassVar[bool] = False
    one_log: ClassVar[bool] = False

    world: DriftingWorld
    favourites: Any  # the group of each interval

    def history(self, rng: np.random.Generator) -> Feedback:
        """Return the outcomes of favourites, and a few of the others."""
        everything = self.world.history(rng)
        assert everything.times is not None
        assert everything.arm_ids is not None
        intervals = (everything.times // self.world.recipe.interval).astype(np.int64)
        liked = self.world.groups[everything.arm_ids] == self.favourites[intervals]
        kept = everything[liked | (rng.random(len(everything)) < RARE)]
        return replace(kept, propensities=None)  # those of the uniform log are no longer true

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        """Yield the world's own rounds."""
        return self.world.rounds(rng)


@final
@dataclass(frozen=True, kw_only=True)
class TwoLoggers:
    """Classification logged twice, on the same rows: a poor log (any arm), then a good one (often right).

    The poor one has times from 0 to `history`, the good one from there to 2 · `history`.
    """

    data: str
    history: int = 4000

    def draw(self, rng: np.random.Generator) -> "TwiceLogged":
        """Draw both logs with the same luck."""
        luck = deepcopy(rng), deepcopy(rng)
        poor, good = (
            Classification(data=self.data, protocol="text", history=self.history, logging=logging).draw(copy)
            for logging, copy in zip((POOR, GOOD), luck, strict=True)
        )
        return TwiceLogged(poor=poor, good=good)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TwiceLogged:
    """One drawn world of `TwoLoggers`."""

    streaming: ClassVar[bool] = False
    one_log: ClassVar[bool] = False

    poor: ClassWorld
    good: ClassWorld

    def history(self, rng: np.random.Generator) -> Feedback:
        """Return the poor log and the good one after it."""
        poor, good = self.poor.history(rng), self.good.history(rng)
        assert good.times is not None
        assert good.ids is not None
        later = replace(good, times=good.times + len(poor), ids=good.ids + len(poor))
        return Feedback.concat([poor, later])

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        """Yield the evaluated rows, which are the same for both, after both logs."""
        delay = len(self.poor.logged)
        return (replace(round_, time=round_.time + delay) for round_ in self.good.rounds(rng))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Borrowed:
    """C3 whose phi learned from one stretch of the log, while its references are another.

    learns, remembers : the first time of a stretch, and the first after it.
    """

    policy: C3
    learns: tuple[float, float]
    remembers: tuple[float, float]

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Train phi on its stretch, then remember the other."""
        self.policy.fit(_within(history, self.learns), rng, remember=False)
        if remember:
            self.policy.update(_within(history, self.remembers), rng)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Choose as C3 does."""
        return self.policy.choose(context, arms, rng, time=time, arm_ids=arm_ids)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Learn as C3 does."""
        self.policy.update(feedback, rng)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the C3 that it has become."""
        self.policy.save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Refuse: what was saved is a C3."""
        raise NotImplementedError(f"{path} holds a C3 with phi and references; read it with C3.load")


def raw(contexts: Matrix, arms: Matrix) -> Matrix:
    """Return the features as they are: the phi of who has learned none."""
    return np.hstack([contexts, arms])


def _within(history: Feedback, stretch: tuple[float, float]) -> Feedback:
    if history.times is None:
        raise ValueError("a stretch of a log needs its times; this history has none")
    start, stop = stretch
    return history[(start <= history.times) & (history.times < stop)]
