"""Classification as a bandit: the arms are the classes, and the right one earns 1."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import ClassVar, final

import numpy as np

from tercet.checks import Matrix, Vector
from tercet.embedding.inference import scaling
from tercet.environments import tables
from tercet.environments.base import Revealed
from tercet.environments.tables import Table
from tercet.types import Feedback, Ids, Round

MOST_ROWS = 125_000  # the authors' scripts draw so many rows of a larger table
STREAMED = 4  # logged outcomes that arrive before each evaluated step (paper, appendix)
FARTHEST = 10.0  # no scaled value of the history is beyond it, so later ones need not be either
LOGGINGS = ("label-aware", "uniform")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Logged and evaluated rows: whole numbers, or shares of the rows in use."""

    history: int | float
    evaluated: int | float


PROTOCOLS = {"text": Sizes(history=4000, evaluated=1000), "scripts": Sizes(history=0.4, evaluated=0.06)}


@final
@dataclass(frozen=True, kw_only=True)
class Classification:
    """The recipe; each seed shuffles the table anew and draws what was logged.

    data : shuttle, MagicTelescope (magic), covertype, mnist_784 (mnist), one of `tables.BUNDLED`, or another
        name on OpenML.
    protocol : "text": 4,000 logged rows and 1,000 evaluated, as the paper says. "scripts": of at most
        125,000 drawn rows 40 % logged and 6 % evaluated, as its authors' experiments have it.
    logging : "label-aware": the logged arm was the right one with probability 1/2, else any other.
        "uniform": any arm.
    history : another number of logged rows, or share of the rows in use. A seed's evaluated rows stay the
        same, and a smaller history is the beginning of a larger one.
    streaming : the paper's way: outcomes of the history come again, four before each evaluated step, each
        once and in order, as new as that step. Of a history longer than four times the steps only the
        beginning comes.
    scale : standardise contexts by the mean and spread of the history's (`inference.scaling`), so that it
        lies within 10 of 0; what lies farther out later counts as 10. Columns that are constant there become
        0. Below two logged rows there is nothing to learn a scale from, and contexts stay as they are.
    folder : where NAME.npz lies, see `tables.load`.
    """

    data: str = "covertype"
    protocol: str = "scripts"
    logging: str = "label-aware"
    history: int | float | None = None
    streaming: bool = False
    scale: bool = True
    folder: str | PathLike[str] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", tables.canonical(self.data))  # one name for equal recipes
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {self.protocol!r}")
        if self.logging not in LOGGINGS:
            raise ValueError(f"logging must be one of {', '.join(LOGGINGS)}; got {self.logging!r}")
        size = self.history
        whole = isinstance(size, int) and not isinstance(size, bool) and size >= 0
        if not (size is None or whole or (isinstance(size, float) and 0 <= size < 1)):
            raise ValueError(f"history must be a number of rows or a share in [0, 1); got {size!r}")

    def draw(self, rng: np.random.Generator) -> "ClassWorld":
        """Draw the order of the rows and the logged arms."""
        table = tables.load(self.data, self.folder)
        order = rng.permutation(len(table))[:MOST_ROWS]
        evaluated, history = self._sizes(len(order))
        # The luck of all rows is drawn, used or not: no history's size may change another's outcomes.
        luck = rng.random((len(order), 2))[evaluated : evaluated + history]
        logged = order[evaluated : evaluated + history]
        arms, propensities = _logged_arms(table.labels[logged], table.classes, luck, self.logging)
        return ClassWorld(
            table=table,
            evaluated=order[:evaluated],
            logged=logged,
            logged_arms=arms,
            propensities=propensities,
            scaling=_scaling(table.contexts(logged)) if self.scale else None,
            streaming=self.streaming,
        )

    def _sizes(self, rows: int) -> tuple[int, int]:
        """Return how many rows are evaluated and how many are logged."""
        sizes = PROTOCOLS[self.protocol]
        wanted = sizes.evaluated, sizes.history if self.history is None else self.history
        evaluated, history = (int(size * rows) if isinstance(size, float) else size for size in wanted)
        if evaluated < 1 or evaluated + history > rows:
            raise ValueError(
                f"{self.data} has {rows} rows to use; protocol {self.protocol!r} must evaluate at least 1 "
                f"(it has {evaluated}) besides {history} of the history: take a smaller history, or more data"
            )
        return evaluated, history


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ClassWorld:
    """One drawn world. Times are row numbers: those of the history first, the evaluated ones after them."""

    one_log: ClassVar[bool] = False

    table: Table
    evaluated: Ids  # rows of the table
    logged: Ids
    logged_arms: Ids
    propensities: Vector
    scaling: tuple[Vector, Vector] | None  # centre, and what to multiply by
    streaming: bool

    def history(self, rng: np.random.Generator) -> Feedback:  # noqa: ARG002 - all was drawn with the world
        """Return the logged rows."""
        return self._outcomes(0, len(self.logged))

    def revealed(self, rng: np.random.Generator) -> Revealed:  # noqa: ARG002
        """Return the contexts of the history with the right arm of each."""
        arms = np.eye(self.table.classes)
        return Revealed(
            contexts=self._contexts(self.logged), arms=arms, rewards=arms[self.table.labels[self.logged]]
        )

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:  # noqa: ARG002
        """Yield the evaluated rows, all arms on offer."""
        arms = np.eye(self.table.classes)
        pace = STREAMED + 1 if self.streaming else 1  # a unit of time is an outcome, anybody's
        for i, row in enumerate(self.evaluated):
            start, time = STREAMED * i, float(len(self.logged) + pace * i)
            streams = self.streaming and start < len(self.logged)
            rewards = arms[self.table.labels[row]]
            yield Round(
                context=self._contexts(self.evaluated[i : i + 1])[0],
                arms=arms,
                time=time + pace - 1,
                rewards=rewards,
                means=rewards,
                arm_ids=np.arange(len(arms)),
                logged=self._outcomes(start, start + STREAMED, time) if streams else None,
            )

    def _outcomes(self, start: int, stop: int, time: float | None = None) -> Feedback:
        """Return some logged rows, at their own times or arriving from `time` on."""
        rows, arms = self.logged[start:stop], self.logged_arms[start:stop]
        numbers = np.arange(start, start + len(rows))
        return Feedback(
            contexts=self._contexts(rows),
            arms=np.eye(self.table.classes)[arms],
            rewards=(arms == self.table.labels[rows]).astype(np.float64),
            times=numbers + (0.0 if time is None else time - start),
            ids=numbers,
            arm_ids=arms,
            propensities=self.propensities[start:stop],
        )

    def _contexts(self, rows: Ids) -> Matrix:
        contexts = self.table.contexts(rows)
        if self.scaling is not None:
            centre, factor = self.scaling
            contexts -= centre
            contexts *= factor
            np.clip(contexts, -FARTHEST, FARTHEST, out=contexts)
        return contexts


def _logged_arms(labels: Ids, classes: int, luck: Matrix, logging: str) -> tuple[Ids, Vector]:
    """Return the logged arms and their propensities."""
    if logging == "uniform":
        return (luck[:, 0] * classes).astype(np.int64), np.full(len(labels), 1 / classes)
    right = luck[:, 0] < 0.5
    steps = 1 + (luck[:, 1] * (classes - 1)).astype(np.int64)  # to another class, each as likely
    arms = np.where(right, labels, (labels + steps) % classes)
    return arms, np.where(right, 0.5, 0.5 / (classes - 1))


def _scaling(contexts: Matrix) -> tuple[Vector, Vector] | None:
    if len(contexts) < 2:
        return None
    centre, scale = scaling(contexts)
    return centre, np.where((contexts == contexts[0]).all(0), 0.0, 1 / scale)
