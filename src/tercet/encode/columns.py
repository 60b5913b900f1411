"""The fitted columns: each writes the features of one value into a row of zeros.

A missing value leaves the features of its column at zero, which is the mean of a standardised number, the
centre of every cycle and an empty text; it sets an indicator of its own where the history had gaps.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any, final

import numpy as np

from tercet.checks import LARGEST, Matrix, Vector
from tercet.encode import cells

# The linear parts of a date are standardised. The cycles are not: they are bounded by themselves, and a
# history of one winter would blow up the summer.
PARTS = ("year", "month", "day", "weekday", "hour", "seconds")
CYCLES = ("sin of day", "cos of day", "sin of week", "cos of week", "sin of year", "cos of year")

_FIRST_DAY = datetime(1970, 1, 1).toordinal()


@final
@dataclass(frozen=True, kw_only=True)
class Presence:
    """A column whose present values were all alike: what is left is whether there is one."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """Name each feature."""
        return (f"{self.name} is missing",)

    def write(self, value: Any, out: Vector, at: int) -> None:
        """Write the features of a value, from index `at` on."""
        if cells.missing(value):
            out[at] = 1.0


@final
@dataclass(frozen=True, kw_only=True)
class Number:
    """A number, standardised."""

    name: str
    gaps: bool
    mean: float
    scale: float

    @property
    def names(self) -> tuple[str, ...]:
        """Name each feature."""
        return (self.name, *_indicator(self))

    def write(self, value: Any, out: Vector, at: int) -> None:
        """Write the features of a value, from index `at` on."""
        number = cells.number(value)
        if number is not None:
            out[at] = _standardised(number, self.mean, self.scale)
        elif self.gaps:
            out[at + 1] = 1.0


@final
@dataclass(frozen=True, kw_only=True)
class Category:
    """One feature a label; with `pooled`, one more for rare, unseen and missing ones."""

    name: str
    gaps: bool
    labels: tuple[str, ...]
    pooled: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Name each feature."""
        rare = (f"{self.name} is rare",) if self.pooled else ()
        return (*(f"{self.name}={label}" for label in self.labels), *rare, *_indicator(self))

    @cached_property
    def _places(self) -> dict[str | None, int]:
        return {label: place for place, label in enumerate(self.labels)}

    def write(self, value: Any, out: Vector, at: int) -> None:
        """Write the features of a value, from index `at` on."""
        label = cells.label(value)
        place = self._places.get(label)
        if place is not None:
            out[at + place] = 1.0
            return
        if self.pooled:
            out[at + len(self.labels)] = 1.0
        if label is None and self.gaps:
            out[at + len(self.labels) + self.pooled] = 1.0


@final
@dataclass(frozen=True, kw_only=True)
class Date:
    """The parts and cycles of a date that varied in the history, each with its mean and scale."""

    name: str
    gaps: bool
    parts: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Name each feature."""
        return (*(f"{self.name} {part}" for part in self.parts), *_indicator(self))

    @cached_property
    def _plan(self) -> tuple[tuple[int, float, float], ...]:
        places = [(*PARTS, *CYCLES).index(part) for part in self.parts]
        return tuple(zip(places, self.means, self.scales, strict=True))

    def write(self, value: Any, out: Vector, at: int) -> None:
        """Write the features of a value, from index `at` on."""
        moment = cells.moment(value)
        if moment is None:
            if self.gaps:
                out[at + len(self.parts)] = 1.0
            return
        parts = calendar(moment)
        for offset, (place, mean, scale) in enumerate(self._plan):
            out[at + offset] = _standardised(parts[place], mean, scale)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Text:
    """TF-IDF of character n-grams inside words, reduced to a few components."""

    name: str
    gaps: bool
    sizes: tuple[int, int]
    ngrams: tuple[str, ...]
    idf: Vector
    components: Matrix

    @property
    def names(self) -> tuple[str, ...]:
        """Name each feature."""
        width = self.components.shape[1]
        return (*(f"{self.name}[{i}]" for i in range(width)), *_indicator(self))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {ngram: place for place, ngram in enumerate(self.ngrams)}

    def write(self, value: Any, out: Vector, at: int) -> None:
        """Write the features of a value, from index `at` on."""
        width = self.components.shape[1]
        text = cells.label(value)
        if text is None:
            if self.gaps:
                out[at + width] = 1.0
            return
        counts = Counter(map(self._places.get, word_ngrams(text, *self.sizes)))
        counts.pop(None, None)  # n-grams that the history did not have
        if not counts:
            return
        known = np.fromiter(counts, np.intp, len(counts))
        weights = np.fromiter(counts.values(), np.float64, len(counts)) * self.idf[known]
        weights /= math.sqrt(weights @ weights)
        out[at : at + width] = weights @ self.components[known]


Column = Presence | Number | Category | Date | Text


def calendar(moment: datetime) -> tuple[float, ...]:
    """Return the PARTS of a moment, then its CYCLES."""
    year, weekday = moment.year, moment.weekday()
    ordinal = moment.toordinal()
    start = datetime(year, 1, 1).toordinal()
    length = 366 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 365
    second = (moment.hour * 60 + moment.minute) * 60 + moment.second
    micros = second * 1_000_000 + moment.microsecond
    seconds = ((ordinal - _FIRST_DAY) * 86_400_000_000 + micros) / 1e6
    of_day = micros / 86_400e6
    turns = (of_day, (weekday + of_day) / 7, (ordinal - start + of_day) / length)
    angles = [2 * math.pi * turn for turn in turns]
    cycles = chain.from_iterable((math.sin(angle), math.cos(angle)) for angle in angles)
    return tuple(map(float, (year, moment.month, moment.day, weekday, moment.hour, seconds, *cycles)))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return text.lower().split()


def word_ngrams(text: str, shortest: int, longest: int) -> Iterator[str]:
    """Yield the n-grams of each word between two blanks.

    >>> list(word_ngrams("Ox", 3, 4))
    [' ox', 'ox ', ' ox ']
    """
    for word in words(text):
        padded = f" {word} "
        for size in range(shortest, longest + 1):
            if len(padded) <= size:  # a short word counts once, whatever the sizes
                yield padded
                break
            for start in range(len(padded) - size + 1):
                yield padded[start : start + size]


def _indicator(column: Number | Category | Date | Text) -> tuple[str, ...]:
    return (f"{column.name} is missing",) if column.gaps else ()


def _standardised(value: float, mean: float, scale: float) -> float:
    result = (value - mean) / scale
    if not -LARGEST <= result <= LARGEST:
        raise ValueError(f"{value} is too far from the history's mean {mean} (scale {scale})")
    return result
