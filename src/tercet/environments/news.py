"""What replays of news logs share: where the files lie, what was shown, and the environment made of it.

In a replay every candidate of an impression was really shown, so the click or no click of each is known
and a round can tell what any choice would have earned. Files are read once in a process.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.environments.base import DATA_VARIABLE, MissingDataError
from tercet.types import Feedback, Ids, Round

Folder = str | os.PathLike[str] | None


class Place(NamedTuple):
    """A folder, resolved, and the name of the layout that its files have."""

    folder: Path
    layout: str


def find(folder: Folder, layouts: Mapping[str, Sequence[str]], *, home: str) -> Place:
    """Return where the data lie: in `folder`, else in the folder that TERCET_DATA names.

    `layouts` are the files of each layout, the first complete one wins; `home` is where to get them.
    """
    named = os.environ.get(DATA_VARIABLE) if folder is None else folder
    expected = "; or ".join(f"{', '.join(files)} ({layout})" for layout, files in layouts.items())
    advice = f"expected are {expected}. Get them from {home}"
    if not named:
        raise MissingDataError(
            f"give the folder of the data (--data DIR, `folder`, or the variable {DATA_VARIABLE}); {advice}"
        )
    root = Path(named).resolve()
    for layout, files in layouts.items():
        if all((root / file).is_file() for file in files):
            return Place(root, layout)
    raise MissingDataError(f"{root} does not hold the data; {advice}")


def read_parquet(path: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return the named columns of a Parquet file as lists; lists within stay lists."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        names = parquet.read_schema(path).names
        missing = sorted(set(columns) - set(names))
        if missing:
            raise ValueError(f"{path} has no column {missing}; it has {names}")
        return dict(parquet.read_table(path, columns=list(columns)).to_pydict())
    except pa.ArrowException as error:
        raise ValueError(f"{path} can not be read as Parquet; download it again ({error})") from error


def hours(times: Sequence[datetime | None], *, since: np.datetime64) -> Vector:
    """Return times in hours since a moment.

    >>> hours([datetime(2019, 11, 9, 12, 30)], since=np.datetime64("2019-11-09"))
    array([12.5])
    """
    return (_stamps(times) - since.astype("datetime64[us]")) / np.timedelta64(1, "h")


def midnight(times: Sequence[datetime | None]) -> np.datetime64:
    """Return the start of the first day, at which the clock of a replay stands at 0."""
    if not len(times):
        raise ValueError("a replay needs at least one impression; got none")
    return _stamps(times).min().astype("datetime64[D]")


def spaced(count: int, points: int | None) -> Ids:
    """Return the places of evenly spaced points, the first and the last included (None: of all).

    >>> spaced(9, 3), spaced(2, None), spaced(2, 3)
    (array([0, 4, 8]), array([0, 1]), array([0, 1]))
    """
    if points is None or points >= count:
        return np.arange(count)
    return np.linspace(0, count - 1, points).round().astype(np.int64)


def _stamps(times: Sequence[datetime | None]) -> Array:
    stamps = np.asarray(times, dtype="datetime64[us]")
    missing = np.flatnonzero(np.isnat(stamps))
    if missing.size:
        raise ValueError(f"every time must be given; row {missing[0]} has none")
    return stamps


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """Lists that were shown, in order of time: impression i has the rows starts[i] to starts[i + 1].

    Times are hours since the midnight before the first impression, so that time // 24 is the day.
    """

    times: Vector
    starts: Ids
    arm_ids: Array
    clicks: Vector

    @classmethod
    def of(cls, times: Vector, candidates: Sequence[Sequence[Any]], clicks: Sequence[Sequence[Any]]) -> Self:
        """Join lists that are in order of time."""
        sizes = np.array([len(row) for row in candidates], dtype=np.int64)
        wrong = np.flatnonzero((sizes == 0) | (sizes != [len(row) for row in clicks]))
        if wrong.size:
            raise ValueError(
                f"an impression needs candidates, and a click or no click for each; number {wrong[0]} "
                f"has {sizes[wrong[0]]} candidates and {len(clicks[wrong[0]])} clicks"
            )
        if (np.diff(times) < 0).any():
            raise ValueError("impressions must be in order of time; sort them first")
        return cls(
            times=times,
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            arm_ids=np.array(list(chain.from_iterable(candidates))),
            clicks=checks.unit("clicks", list(chain.from_iterable(clicks))),
        )

    def __len__(self) -> int:
        return len(self.times)

    @property
    def sizes(self) -> Ids:
        """The length of each list."""
        return np.diff(self.starts)

    def rows(self, impressions: Ids) -> Ids:
        """Return the rows of these impressions, one list after another."""
        return np.concatenate(
            [np.arange(0), *(np.arange(self.starts[i], self.starts[i + 1]) for i in impressions)]
        )

    def take(self, impressions: Ids) -> Self:
        """Return these impressions only."""
        rows = self.rows(impressions)
        return type(self)(
            times=self.times[impressions],
            starts=np.concatenate([[0], np.cumsum(self.sizes[impressions])]),
            arm_ids=self.arm_ids[rows],
            clicks=self.clicks[rows],
        )

    def with_clicks(self, clicks: Vector) -> Self:
        """Return the same lists, clicked otherwise."""
        return replace(self, clicks=clicks)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """An environment of real impressions: the first `logged` are the history, the rest are the rounds.

    The history holds every shown candidate with its click or no click, one row each. It has no
    propensities: nobody drew one of the candidates, all of them were seen.
    """

    shown: Shown
    contexts: Matrix  # one row an impression
    arms: Matrix  # one row a candidate, as it was when it was shown
    logged: int

    def __post_init__(self) -> None:
        checks.matrix("contexts", self.contexts)
        checks.matrix("arms", self.arms)
        if (len(self.contexts), len(self.arms)) != (len(self.shown), len(self.shown.arm_ids)):
            raise ValueError(
                f"a replay needs a context for each of {len(self.shown)} impressions and features of each of "
                f"{len(self.shown.arm_ids)} candidates; got {len(self.contexts)} and {len(self.arms)}"
            )
        if not 0 <= self.logged < len(self.shown):
            raise ValueError(
                f"logged must be 0 to {len(self.shown) - 1}, so that a round is left; got {self.logged}"
            )

    @property
    def streaming(self) -> bool:
        """A replay's history is known before the first round and does not come again."""
        return False

    @property
    def one_log(self) -> bool:
        """Whatever part of a log a seed draws, all seeds met the same weeks."""
        return True

    def history(self, rng: np.random.Generator) -> Feedback:  # noqa: ARG002 - nothing is random here
        """Return every candidate that was shown in the logged impressions."""
        end = self.shown.starts[self.logged]
        impressions = np.repeat(np.arange(self.logged), self.shown.sizes[: self.logged])
        return Feedback(
            contexts=self.contexts[impressions],
            arms=self.arms[:end],
            rewards=self.shown.clicks[:end],
            times=self.shown.times[impressions],
            ids=np.arange(end),
            arm_ids=self.shown.arm_ids[:end],
        )

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:  # noqa: ARG002
        """Yield the other impressions; a choice earns 1 where its candidate was clicked."""
        for i in range(self.logged, len(self.shown)):
            rows = slice(*self.shown.starts[i : i + 2])
            yield Round(
                context=self.contexts[i],
                arms=self.arms[rows],
                time=float(self.shown.times[i]),
                rewards=self.shown.clicks[rows],
                arm_ids=self.shown.arm_ids[rows],
            )
