"""Where the reference set keeps its rows: chunks of blocks, grown one chunk at a time, never copied.

A point is kept as the unevaluated sum of two float32 numbers. The high half alone feeds decisions (half
the memory traffic of float64); both halves together (48 bits) feed the densities, which must stay exact
through millions of additions and subtractions. Embeddings that come in float32 have no low half: then its
pages are neither written nor read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from tercet.checks import Array

BLOCK = 512  # rows a block: its coordinates and partial sums stay in the first-level cache
NEGLIGIBLE = 100.0  # 2^-100 times any weight is still a normal float32; a kernel beyond it counts as zero
COLUMNS = ("density", "reward", "time", "id", "sequence")
CHUNK_NUMBERS = 1 << 21  # coordinates a chunk (262,144 rows of 8): arrays of 8 MiB, which get huge pages


class Rows(NamedTuple):
    """Columns of some rows."""

    high: Array
    low: Array
    density: Array
    reward: Array
    time: Array
    id: Array
    sequence: Array  # the order of arrival

    @property
    def points(self) -> Array:
        """Both halves together, in float64."""
        return self.high.astype(np.float64) + self.low


def halves(points: Array) -> tuple[Array, Array]:
    """Split float64 numbers into two float32 numbers, of which they are the sum (to 48 bits)."""
    high = points.astype(np.float32)
    return high, (points - high).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Chunk:
    """A fixed stretch of rows; zeroed pages cost nothing until they are written."""

    high: Array
    low: Array
    density: Array
    reward: Array
    time: Array
    id: Array
    sequence: Array

    @classmethod
    def empty(cls, rows: int, dim: int) -> Self:
        """Return a chunk of unused rows."""
        points = (rows // BLOCK, dim, BLOCK)
        return cls(
            high=np.zeros(points, np.float32),
            low=np.zeros(points, np.float32),
            density=np.zeros(rows),
            reward=np.zeros(rows, np.float32),
            time=np.zeros(rows),
            id=np.zeros(rows, np.int64),
            sequence=np.zeros(rows, np.int64),
        )


class Storage:
    """Rows by number, 0 to count - 1, spread over chunks."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.count = 0
        self.split = False  # whether any point has a low half
        self._in_order = True  # whether rows still stand in their order of arrival
        self.chunks: list[Chunk] = []
        self._rows = BLOCK * max(1, min(512, CHUNK_NUMBERS // (BLOCK * max(1, dim))))

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Return a storage of these rows, in the places they stand in."""
        storage = cls(rows.high.shape[1])
        storage.write(np.arange(len(rows.id)), rows)
        storage.count = len(rows.id)
        storage._in_order = bool((np.diff(rows.sequence) > 0).all())
        return storage

    def spans(self, start: int, stop: int) -> Iterator[tuple[Chunk, int, int]]:
        """Yield each chunk that holds rows start to stop, with the first and last row inside it."""
        for number in range(start // self._rows, -(-stop // self._rows)):
            offset = number * self._rows
            yield self.chunks[number], max(0, start - offset), min(self._rows, stop - offset)

    def write(self, numbers: Array, rows: Rows) -> None:
        """Put rows at these numbers; chunks are added as needed."""
        if not len(numbers):
            return
        while len(self.chunks) * self._rows <= numbers.max():
            self.chunks.append(Chunk.empty(self._rows, self.dim))
        self.split = self.split or bool(rows.low.any())
        for chunk, places, mine in self._places(numbers):
            block, lane = places // BLOCK, places % BLOCK
            chunk.high[block, :, lane] = rows.high[mine]
            if self.split:
                chunk.low[block, :, lane] = rows.low[mine]
            for name in COLUMNS:
                getattr(chunk, name)[places] = getattr(rows, name)[mine]

    def read(self, numbers: Array) -> Rows:
        """Return the rows at these numbers."""
        n = len(numbers)
        high, low = np.empty((2, n, self.dim), np.float32)
        rows = Rows(high, low, *np.empty((3, n)), *np.empty((2, n), np.int64))
        for chunk, places, mine in self._places(numbers):
            block, lane = places // BLOCK, places % BLOCK
            rows.high[mine] = chunk.high[block, :, lane]
            rows.low[mine] = chunk.low[block, :, lane] if self.split else 0
            for name in COLUMNS:
                getattr(rows, name)[mine] = getattr(chunk, name)[places]
        return rows

    def order(self) -> Array:
        """Return the numbers of all rows in their order of arrival."""
        if self._in_order:
            return np.arange(self.count)
        return np.argsort(self._column("sequence"), kind="stable")  # a few sorted runs: nearly linear

    def column(self, name: str) -> Array:
        """Return one column of all rows, in their order of arrival."""
        column = self._column(name)
        return column if self._in_order else column[self.order()]

    def _column(self, name: str) -> Array:
        if not self.count:
            return np.empty(0, np.int64 if name in ("id", "sequence") else np.float64)
        return np.concatenate([getattr(c, name)[first:last] for c, first, last in self.spans(0, self.count)])

    def remove(self, gone: Array) -> None:
        """Drop the rows at these numbers: the last rows move into the holes, nothing else moves."""
        gone = np.sort(gone)
        kept = self.count - len(gone)
        holes = gone[gone < kept]
        self._in_order = self._in_order and not len(holes)
        tail = np.ones(self.count - kept, bool)
        tail[gone[gone >= kept] - kept] = False
        self.write(holes, self.read(kept + np.flatnonzero(tail)))
        self.count = kept
        del self.chunks[-(-kept // self._rows) :]

    def _places(self, numbers: Array) -> Iterator[tuple[Chunk, Array, Array]]:
        chunk_of = numbers // self._rows
        for number in range(chunk_of.min(), chunk_of.max() + 1) if len(numbers) else ():
            mine = np.flatnonzero(chunk_of == number)
            yield self.chunks[number], numbers[mine] - number * self._rows, mine


def lanes(blocks: Array) -> Array:
    """Blocks as rows of points."""
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])
