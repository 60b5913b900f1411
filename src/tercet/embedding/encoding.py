"""What a network sees of a feature: its standardised value, and where it lies among the history's values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import scaling
from tercet.types import Ids

HEIGHT = 1 / 8  # of a piece: many together must not drown the column itself
FARTHEST = 10.0  # scaled inputs are cut here; nothing in the history lies beyond
MOST_PIECES = 1_500  # pieces of all columns together: beyond, the first layer would be the whole network
ROWS = 20_000  # quantiles of more rows are taken from as many


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Encoding:
    """Standardised columns, followed by the pieces of those that have some.

    A piece is the interval between two neighbouring quantiles of a column; its value goes from -1/8 to 1/8
    while the column crosses it. A network bends at such an edge with its first weight, as a tree splits,
    where a standardised column alone takes many units to.

    >>> encoding = Encoding.of([[0.0], [1.0], [2.0], [3.0], [4.0]], pieces=2)
    >>> encoding([[1.0], [4.0]]).round(3)
    array([[-0.707,  0.   , -0.125],
           [ 1.414,  0.125,  0.125]], dtype=float32)
    """

    centre: Vector
    scale: Vector
    columns: Ids  # of each piece
    lows: Vector
    widths: Vector

    def __post_init__(self) -> None:
        checks.vector("centre", self.centre)
        checks.vector("scale", self.scale, length=len(self.centre))
        pieces = len(self.columns)
        checks.vector("lows", self.lows, length=pieces)
        checks.vector("widths", self.widths, length=pieces)
        if min(self.scale.min(initial=1.0), self.widths.min(initial=1.0)) <= 0:
            raise ValueError("scale and widths must be above 0")
        if pieces and not 0 <= self.columns.min() <= self.columns.max() < len(self.centre):
            raise ValueError(
                f"columns of pieces must lie below {len(self.centre)}; "
                f"got {self.columns.min()} to {self.columns.max()}"
            )

    @classmethod
    def of(cls, inputs: Any, *, pieces: int = 0) -> Self:
        """Return the encoding fitted on these rows, with at most so many pieces a column.

        Columns of two values have none: their standardised value says it all.
        """
        inputs = checks.matrix("inputs", inputs)
        width = inputs.shape[1]
        plain = (np.zeros(width), np.ones(width))
        centre, scale = scaling(inputs) if len(inputs) and width else plain
        lowest, highest = (inputs.min(axis=0), inputs.max(axis=0)) if len(inputs) else plain
        # What differs by a rounding is constant.
        several = highest - lowest > 1e-12 * np.maximum(np.abs(lowest), np.abs(highest)) + 1e-30
        # A column of two values stays 0 or 1: standardised, a rare category would be a giant.
        binary = ((inputs == lowest) | (inputs == highest)).all(axis=0) & several
        centre, scale = np.where(binary, lowest, centre), np.where(binary, highest - lowest, scale)
        # So would the rare values of a column that mostly has one, such as a count or a pixel.
        usual, spread, spiked = _spikes(inputs)
        spiked &= several & ~binary
        centre, scale = np.where(spiked, usual, centre), np.where(spiked, spread, scale)
        found = []
        if pieces and len(inputs):
            found = _pieces((inputs - centre) / scale, np.flatnonzero(several & ~binary), pieces)
        columns = [np.full(len(edges) - 1, column) for column, edges in found]
        return cls(
            centre=centre,
            scale=scale,
            columns=np.concatenate([np.empty(0, np.int64), *columns]),
            lows=np.concatenate([np.empty(0), *(edges[:-1] for _, edges in found)]),
            widths=np.concatenate([np.empty(0), *(np.diff(edges) for _, edges in found)]),
        )

    @property
    def inputs(self) -> int:
        """Number of columns that go in."""
        return len(self.centre)

    @property
    def outputs(self) -> int:
        """Number of columns that come out."""
        return len(self.centre) + len(self.columns)

    def __call__(self, inputs: Any) -> Array:
        """Encode rows, as float32."""
        inputs = checks.matrix("inputs", inputs, columns=self.inputs)
        # Centred in float64: a large centre, such as a date in seconds, must cancel exactly.
        scaled = np.clip((inputs - self.centre) / self.scale, -FARTHEST, FARTHEST)
        if not len(self.columns):
            return scaled.astype(np.float32)
        crossed = np.clip((scaled[:, self.columns] - self.lows) / self.widths, 0.0, 1.0)
        return np.hstack([scaled, HEIGHT * (2.0 * crossed - 1.0)]).astype(np.float32)

    def to_arrays(self) -> dict[str, Array]:
        """Return named arrays, from which `from_arrays` rebuilds this encoding."""
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """Rebuild what `to_arrays` returned."""
        names = ("centre", "scale", "columns", "lows", "widths")
        return cls(**{name: arrays[name] for name in names})


def _spikes(inputs: Matrix) -> tuple[Vector, Vector, Array]:
    """The usual value of each column, how far others are from it, and whether they are fewer than half."""
    if not len(inputs):
        return np.zeros(inputs.shape[1]), np.ones(inputs.shape[1]), np.zeros(inputs.shape[1], dtype=bool)
    usual = np.median(inputs, axis=0)
    away = np.abs(inputs - usual)
    others, farthest = (away > 0).sum(axis=0), away.max(axis=0)
    unit = np.where(farthest > 0, farthest, 1.0)  # squares of anything finite stay finite
    spread = unit * np.sqrt(np.square(away / unit).sum(axis=0) / np.maximum(others, 1))
    return usual, np.maximum(spread, farthest / FARTHEST), (2 * others < len(inputs)) & (farthest > 0)


def _pieces(scaled: Matrix, columns: Ids, most: int) -> list[tuple[int, Vector]]:
    """The edges of the pieces of each of these columns."""
    most = min(most, MOST_PIECES // max(len(columns), 1))
    if most < 2:
        return []
    # An odd stride, so that a log that alternates is not seen by halves.
    sample = scaled[:: (len(scaled) // ROWS) | 1]
    shares = np.linspace(0.0, 1.0, most + 1)
    edges = ((int(column), np.unique(np.quantile(sample[:, column], shares))) for column in columns)
    return [(column, found) for column, found in edges if len(found) > 2]
