"""The memory of a grove: outcomes by leaf.

One tree is a kernel that is 1 within a leaf and 0 beyond. Then all references of a leaf have the same
density, their number; Eq. 5 is the mean of their rewards, and Eq. 2 their number. A grove is many of these:

    mass    eta(q) = 1/T Σ_t n_t(q)
    mean    mu(q)  = the mean of the leaves' means, over the trees whose leaf at q holds anything

Appending and forgetting move one count in each tree, however many outcomes there are.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from tercet import checks, interrupts
from tercet.checks import Array, Matrix, Vector
from tercet.reference.exact import Estimate
from tercet.types import Ids

WHOLE = 2.0**32  # a reward of 1: whole numbers add up exactly, in any order


class Leaves:
    """All outcomes so far, by the leaf of each tree that they fell into; leaf -1 is no leaf.

    >>> memory = Leaves(trees=2, leaves=4)
    >>> memory.append([[0, 2], [0, 3]], rewards=[1.0, 0.0])
    >>> found = memory.estimate([[0, 2], [1, 2], [-1, -1]])
    >>> found.mean, found.mass
    (array([0.75, 1.  , 0.5 ]), array([1.5, 0.5, 0. ]))
    """

    def __init__(self, *, trees: int, leaves: int) -> None:
        self.dim, self.leaves = checks.whole("trees", trees), checks.whole("leaves", leaves)
        self._counts, self._earned = np.zeros((2, leaves), np.int64)
        self._supposed = np.zeros((2, leaves), np.int64)  # counts and rewards of what nobody saw
        self._points = np.empty((0, trees), np.int32)
        self._columns = {"reward": np.empty(0), "time": np.empty(0), "id": np.empty(0, np.int64)}
        self._count = self._appended = 0

    def __len__(self) -> int:
        return self._count

    @property
    def points(self) -> Matrix:
        """The leaves of all outcomes, a column for each tree."""
        return self._points[: self._count].astype(np.float64)

    @property
    def rewards(self) -> Vector:
        """Rewards of all outcomes."""
        return self._columns["reward"][: self._count].copy()

    @property
    def times(self) -> Vector:
        """Times of all outcomes."""
        return self._columns["time"][: self._count].copy()

    @property
    def ids(self) -> Ids:
        """Ids of all outcomes."""
        return self._columns["id"][: self._count].copy()

    def append(self, points: Any, rewards: Any, times: Any = None, ids: Any = None) -> None:
        """Add outcomes; times and ids default to a running count."""
        leaves = self._leaves(points)
        n = len(leaves)
        running = np.arange(self._appended, self._appended + n)
        new = {
            "reward": checks.unit("rewards", rewards, length=n),
            "time": running.astype(np.float64) if times is None else checks.vector("times", times, length=n),
            "id": running if ids is None else checks.integers("ids", ids, length=n),
        }
        with interrupts.held():
            self._reserve(self._count + n)
            part = slice(self._count, self._count + n)
            self._points[part] = leaves
            for name, column in new.items():
                self._columns[name][part] = column
            self._add(leaves, new["reward"], 1, self._counts, self._earned)
            self._count, self._appended = self._count + n, self._appended + n

    def suppose(self, points: Any, rewards: Any) -> None:
        """Count outcomes that nobody saw but others imply (`embedding/rivals.py`); they stay for good.

        >>> memory = Leaves(trees=1, leaves=1)
        >>> memory.append([[0]], rewards=[1.0])
        >>> memory.suppose([[0], [0], [0]], rewards=[0.0, 0.0, 0.0])
        >>> memory.estimate([[0]]).mean, len(memory)
        (array([0.25]), 1)
        """
        leaves = self._leaves(points)
        rewards = checks.unit("rewards", rewards, length=len(leaves))
        with interrupts.held():
            for sums in ((self._counts, self._earned), self._supposed):
                self._add(leaves, rewards, 1, *sums)

    def check(self, points: Any) -> None:
        """Raise what `append` would raise for these points, and change nothing."""
        self._leaves(points)

    def forget(self, gone: Any) -> None:
        """Remove the outcomes where the mask is true; the others keep their order."""
        mask = np.asarray(gone)
        if mask.dtype != bool or mask.shape != (len(self),):
            raise ValueError(
                f"gone must be a mask of {len(self)} booleans; got {mask.dtype} of shape {mask.shape}"
            )
        with interrupts.held():
            part = slice(self._count)
            leaves, rewards = self._points[part][mask], self._columns["reward"][part][mask]
            self._add(leaves, rewards, -1, self._counts, self._earned)
            self._points = self._points[part][~mask]
            self._columns = {name: column[part][~mask] for name, column in self._columns.items()}
            self._count = len(self._points)

    def estimate(self, queries: Any, time: float | None = None) -> Estimate:  # noqa: ARG002 - nothing fades
        """Return mass and mean at each query."""
        leaves = self._leaves(queries)
        counts = np.where(leaves < 0, 0, self._counts[leaves])
        known = counts > 0
        means = np.divide(self._earned[leaves] / WHOLE, counts, out=np.zeros(counts.shape), where=known)
        voters = known.sum(axis=1)
        mean = np.divide(means.sum(axis=1), voters, out=np.full(len(leaves), 0.5), where=voters > 0)
        return Estimate(mass=counts.mean(axis=1), mean=mean.clip(0.0, 1.0))

    def shares(self, queries: Any) -> Matrix:
        """Return how much each outcome weighs in the mean at each query; of one that nobody knows, 0.

        What is only supposed weighs too, but is no outcome.
        """
        leaves = self._leaves(queries)
        counts = np.where(leaves < 0, 0, self._counts[leaves])
        votes = np.divide(1.0, counts, out=np.zeros(counts.shape), where=counts > 0)
        votes /= np.maximum((counts > 0).sum(axis=1), 1)[:, None]
        return (self._sparse(leaves, votes) @ self._sparse(self._points[: self._count]).T).toarray()

    def kernel(self, queries: Any, others: Any) -> Matrix:
        """Return the share of trees that have a query and another one in the same leaf."""
        rows, columns = self._sparse(self._leaves(queries)), self._sparse(self._leaves(others))
        return (rows @ columns.T).toarray() / self.dim

    def without(self, top: Ids, query: Any) -> Estimate:
        """Return the estimate that the other outcomes give at a query."""
        rest = type(self)(trees=self.dim, leaves=self.leaves)
        rest._suppose(self._supposed)
        kept = np.ones(len(self), bool)
        kept[top] = False
        rest.append(self._points[: self._count][kept], self.rewards[kept])
        return rest.estimate(query[None])

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and a JSON-able spec, from which `from_arrays` rebuilds this memory."""
        rows = {name: column[: self._count] for name, column in self._columns.items()}
        spec = {"kind": "leaves", "trees": self.dim, "leaves": self.leaves, "appended": self._appended}
        return rows | {"leaf": self._points[: self._count], "supposed": self._supposed}, spec

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], spec: Mapping[str, Any]) -> Self:
        """Rebuild what `to_arrays` returned."""
        memory = cls(trees=spec["trees"], leaves=spec["leaves"])
        supposed = np.asarray(arrays["supposed"])
        if supposed.shape != (2, memory.leaves) or supposed.dtype != np.int64 or supposed.min(initial=0) < 0:
            raise ValueError(
                f"what is supposed must be two counts for each of {memory.leaves} leaves; "
                f"got {supposed.dtype} of shape {supposed.shape}"
            )
        memory._suppose(supposed)
        memory.append(arrays["leaf"], arrays["reward"], arrays["time"], arrays["id"])
        memory._appended = checks.whole("appended", spec["appended"], least=0)
        return memory

    def _leaves(self, points: Any) -> Array:
        points = checks.matrix("points", points, columns=self.dim)
        within = points.min(initial=0) >= -1 and points.max(initial=0) < self.leaves
        if not within or (points % 1).any():
            raise ValueError(f"points must be numbers of leaves, from -1 to {self.leaves - 1}")
        return points.astype(np.int32)

    def _suppose(self, sums: Array) -> None:
        self._supposed = self._supposed + sums
        self._counts, self._earned = self._counts + sums[0], self._earned + sums[1]

    def _add(self, leaves: Array, rewards: Vector, sign: int, counts: Array, sums: Array) -> None:
        known = leaves >= 0
        earned = np.broadcast_to(np.rint(rewards * WHOLE).astype(np.int64)[:, None], leaves.shape)
        np.add.at(counts, leaves[known], sign)
        np.add.at(sums, leaves[known], sign * earned[known])

    def _reserve(self, rows: int) -> None:
        """Make room, twice as much where it is short: one more outcome then costs little in the mean."""
        if rows > len(self._points):
            more = max(rows, 2 * self._count) - self._count
            self._points = np.concatenate([self._points[: self._count], np.empty((more, self.dim), np.int32)])
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate([column[: self._count], np.empty(more, column.dtype)])

    def _sparse(self, leaves: Array, values: Array | None = None) -> Any:
        """Return a sparse matrix with a column for each leaf."""
        from scipy.sparse import csr_array

        known = leaves >= 0
        ends = np.concatenate([[0], known.sum(axis=1).cumsum()])
        entries = np.ones(known.sum()) if values is None else values[known]
        return csr_array((entries, leaves[known], ends), shape=(len(leaves), self.leaves))
