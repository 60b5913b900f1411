"""Arms that differ from all of the log's in what never varied there: a phi that puts them apart.

A network has learned nothing of a column that never varied, and embeds an arm that differs there as if it
did not: among arms that it may have nothing in common with, as sure of it as of them. A coordinate of its
own for each such column keeps a distance that all evidence of before has to cross, and no more: outcomes of
the new arm itself are near, and where all arms move alike, their order stays as it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import Perceptron
from tercet.embedding.residual import Residual

FAR = 3.0  # bandwidths from an arm that differs by one to those that do not: a hundredth of their evidence
MOST = 16  # coordinates; more columns share them, each in a direction of its own


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Apart:
    """Our phi, and beside its coordinates those of what an arm never differed in.

    >>> phi = Perceptron(weights=[np.ones((2, 1))], biases=[np.zeros(1)], centre=[0, 0], scale=[1, 1],
    ...                  context_dim=0)
    >>> Apart.of(phi, np.array([[1.0, 0.0], [2.0, 0.0]]), distance=3.0).candidates([], [[1, 0], [1, 1]])
    array([[1., 0.],
           [2., 3.]])
    """

    phi: Perceptron | Residual
    columns: Array  # of arms
    usual: Vector  # their only values
    directions: Matrix  # columns x coordinates

    @classmethod
    def of(
        cls, phi: Perceptron | Residual, arms: Matrix, *, distance: float
    ) -> "Apart | Perceptron | Residual":
        """Return phi, with coordinates for those columns in which these arms are all alike."""
        columns = np.flatnonzero((arms == arms[:1]).all(axis=0)) if len(arms) else np.empty(0, np.int64)
        if not len(columns):
            return phi
        directions: Array = np.eye(len(columns))
        if len(columns) > MOST:
            # Nearly at right angles, and the same whenever they are drawn.
            directions = np.random.default_rng(0).normal(size=(len(columns), MOST))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return cls(phi=phi, columns=columns, usual=arms[0, columns], directions=distance * directions)

    def __call__(self, contexts: Any, arms: Any) -> Matrix:
        """Embed pairs, row by row."""
        return np.hstack([self.phi(contexts, arms), self._beyond(arms)])

    def candidates(self, context: Any, arms: Any) -> Matrix:
        """Embed one context with each row of `arms`; the context's share is computed once."""
        return np.hstack([self.phi.candidates(context, arms), self._beyond(arms)])

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return named arrays and a JSON-able spec, from which `from_arrays` rebuilds this phi."""
        arrays, spec = self.phi.to_arrays()
        mine = {"columns": self.columns, "usual": self.usual, "directions": self.directions}
        return arrays | {f"apart.{name}": array for name, array in mine.items()}, spec | {"apart": True}

    @classmethod
    def from_arrays(cls, phi: Perceptron | Residual, arrays: Mapping[str, Array]) -> Self:
        """Rebuild what `to_arrays` returned, around the phi that was inside."""
        columns, directions = arrays["apart.columns"], checks.matrix("directions", arrays["apart.directions"])
        usual = checks.vector("usual", arrays["apart.usual"], length=len(columns))
        if len(directions) != len(columns) or not 0 <= columns.min() <= columns.max() < phi.arm_dim:
            raise ValueError(
                f"columns that never varied must be some of the arm's {phi.arm_dim}, each with a direction; "
                f"got {columns.tolist()} and {len(directions)} directions"
            )
        return cls(phi=phi, columns=columns, usual=usual, directions=directions)

    def _beyond(self, arms: Any) -> Matrix:
        # In units of what the value was, 1 at least: a number that moves a little is no news.
        here = checks.matrix("arms", arms, columns=self.phi.arm_dim)[:, self.columns]
        return np.clip((here - self.usual) / np.maximum(np.abs(self.usual), 1.0), -1.0, 1.0) @ self.directions
