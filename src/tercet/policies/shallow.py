"""The network of NeuralUCB and NeuralTS: one hidden layer, and all that is asked of its gradients."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from tercet.checks import Array, Matrix, Vector
from tercet.types import Ids


class Rows(NamedTuple):
    """Inputs x ⊗ e_b without their zeros: the features x of each, and its block b."""

    features: Matrix
    block: Ids

    def take(self, which: Any) -> "Rows":
        """Return some of the rows."""
        return Rows(self.features[which], self.block[which])

    def groups(self) -> Iterator[tuple[int, Any]]:
        """Give each block that occurs, and an index of its rows."""
        blocks = np.unique(self.block).tolist()
        for block in blocks:
            yield block, slice(None) if len(blocks) == 1 else np.flatnonzero(self.block == block)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Shallow:
    """f(x) = √m w·relu(xW) with m hidden units (Zhou et al., 2020, section 2), or a value a parameter.

    W is cut into the blocks of its inputs (block x feature x unit): an input touches only its own.
    """

    first: Array
    last: Vector

    @classmethod
    def fresh(cls, width: int, hidden: int, rng: np.random.Generator, *, blocks: int = 1) -> Self:
        """Draw twins of opposite sign, so that f starts as 0 (Zhou et al., 2020, section 3)."""
        half = hidden // 2
        first, last = rng.normal(size=(blocks, width, half)), rng.normal(size=half)
        scale = np.sqrt(2 / hidden)
        return cls(first=scale * np.concatenate([first, first], axis=2), last=scale * np.append(last, -last))

    def __call__(self, rows: Rows) -> Vector:
        """Return f, row by row."""
        return np.sqrt(len(self.last)) * (np.maximum(self.linear(rows), 0) @ self.last)

    def linear(self, rows: Rows) -> Matrix:
        """Return xW, row by row."""
        linear = np.empty((len(rows.block), len(self.last)))
        for block, members in rows.groups():
            linear[members] = rows.features[members] @ self.first[block]
        return linear

    def factors(self, rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
        """Return the squares that g² is made of, g being the gradient of f over √m, row by row.

        By W it is x ⊗ (w where the unit is on), so its square is an outer product too and never written
        out; by w it is relu(xW).
        """
        linear = self.linear(rows)
        return rows.features**2, np.where(linear > 0, self.last**2, 0), np.maximum(linear, 0) ** 2

    def to_arrays(self, name: str) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        return {f"{name}.first": self.first, f"{name}.last": self.last}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], name: str) -> Self:
        """Return what `to_arrays` described."""
        return cls(first=arrays[f"{name}.first"], last=arrays[f"{name}.last"])


def counted(evidence: Shallow, network: Shallow, rows: Rows) -> Shallow:
    """Return U + Σ g² of these rows, parameter by parameter."""
    x, by_first, by_last = network.factors(rows)
    first = evidence.first.copy()
    for block, members in rows.groups():
        first[block] += x[members].T @ by_first[members]
    return Shallow(first=first, last=evidence.last + by_last.sum(0))


def novelty(network: Shallow, evidence: Shallow, rows: Rows) -> Vector:
    """Return Σ g²/U of each row (Zhang et al., 2021, Algorithm 1, with the diagonal of U)."""
    x, by_first, by_last = network.factors(rows)
    sums = by_last @ (1 / evidence.last)
    for block, members in rows.groups():
        sums[members] += ((x[members] @ (1 / evidence.first[block])) * by_first[members]).sum(1)
    return sums


def descend(
    network: Shallow,
    start: Shallow,
    rows: Rows,
    rewards: Vector,
    rng: np.random.Generator,
    *,
    steps: int,
    rate: float,
    batch: int,
    penalty: float,
) -> Shallow:
    """Return the network after SGD on (Σ (f - r)² + mλ‖θ - θ₀‖²) / 2n (Zhou et al., 2020, Algorithm 2)."""
    network = Shallow(first=network.first.copy(), last=network.last.copy())
    first, last, root = network.first, network.last, np.sqrt(len(network.last))
    # The pull to the start is an implicit step: stable, however large the penalty.
    pull = rate * len(last) * penalty / len(rewards)
    for _ in range(steps):
        which = slice(None) if len(rewards) <= batch else rng.integers(len(rewards), size=batch)
        x, target = rows.take(which), rewards[which]
        hidden = np.maximum(network.linear(x), 0)
        slope = root * (root * (hidden @ last) - target) / len(target)
        by_linear = np.where(hidden > 0, slope[:, None] * last, 0)
        for block, members in x.groups():
            first[block] -= rate * (x.features[members].T @ by_linear[members])
        last -= rate * (slope @ hidden)
        first += pull / (1 + pull) * (start.first - first)
        last += pull / (1 + pull) * (start.last - last)
    return network
