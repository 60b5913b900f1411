"""The reference set: every past outcome as a point in phi's space, and what it says about a new point.

With decay, evidence of age a counts g = 2^(-a / half_life) in all three sums:

    mass        eta(q, t) = Σ_i g_i κ(q, s_i)
    density     W_i(t)    = Σ_j g_j κ(s_i, s_j)                       (1 / Eq. 4; self included)
    mean        mu(q)     = Σ_i κ(q, s_i) (g_i / W_i) r_i / Σ_i κ(q, s_i) (g_i / W_i)        (Eq. 5)

Since g_i(t) = 2^(-(t - t0) / h) · 2^((t_i - t0) / h), the clock t enters every g by the same factor. The
densities are therefore kept for a fixed epoch t0, where they change only by appends and removals; the
factor cancels in the mean and is put back into the mass. Without decay g = 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from tercet import checks, compiled, interrupts
from tercet.checks import Array, Matrix, Vector
from tercet.reference import twins
from tercet.reference.layout import NEGLIGIBLE, Rows, Storage, halves
from tercet.types import Ids

HALF_LOG2_E = float(np.log2(np.e) / 2)  # exp(-d²/2σ²) = 2^(-d²·HALF_LOG2_E/σ²)
SLICE = 512  # rows appended at a time: each meets all earlier rows once, for both sides' densities
ADD_LIMIT = 1000.0  # as NEGLIGIBLE, for the float64 sums of the densities
KERNELS = "tercet.reference.kernels"
NEAR = 1000.0  # bandwidths from zero at which float32 still resolves a kernel to 1e-3
OPTIONS = ("dim", "bandwidth", "half_life", "importance", "truncated")
Engine = Literal["auto", "numba", "numpy"]
EPOCH_LIMIT = 500.0  # half-lives after which t0 moves, so that 2^((t - t0) / h) stays finite


@dataclass(frozen=True, eq=False)
class Estimate:
    """Kernel mass (evidence) and mean reward at each query; mean is one half where the mass is zero."""

    mass: Vector
    mean: Vector


class ReferenceSet:
    """All outcomes so far, exactly: append and forget in O(n), estimate in one pass.

    Parameters
    ----------
    dim
        Dimension of the embedding.
    bandwidth
        σ of the RBF kernel.
    half_life
        Age at which evidence counts half; None for never.
    importance
        IWKR (Eq. 5) if true, NWKR (Eq. 3) if false.
    truncated
        Cut the kernel at one bandwidth, as the regret proof does.
    engine
        "numba", "numpy", or "auto": Numba where its compiled code can be cached, else NumPy.

    >>> memory = ReferenceSet(dim=1, bandwidth=1.0)
    >>> memory.append([[0.0], [0.0], [3.0]], rewards=[1.0, 1.0, 0.0])
    >>> memory.densities.round(2)
    array([2.01, 2.01, 1.02])
    >>> memory.estimate([[0.0]]).mass.round(2)
    array([2.01])
    """

    def __init__(
        self,
        *,
        dim: int,
        bandwidth: float,
        half_life: float | None = None,
        importance: bool = True,
        truncated: bool = False,
        engine: Engine = "auto",
    ) -> None:
        if dim < 1:
            raise ValueError(f"dim must be at least 1; got {dim}")
        self.dim = dim
        self.bandwidth = checks.positive("bandwidth", bandwidth)
        self.half_life = None if half_life is None else checks.positive("half_life", half_life)
        self.importance = importance
        self.truncated = truncated
        self.engine = _available(engine)
        # Coordinates are kept in units of the power of two nearest the bandwidth: nothing is rounded by
        # it, and no bandwidth, however small, overflows a square.
        self._unit = float(2.0 ** np.round(np.log2(self.bandwidth)))
        self._sharp = float(HALF_LOG2_E * (self._unit / self.bandwidth) ** 2)
        self._rate = 0.0 if half_life is None else 1.0 / half_life
        self._storage = Storage(dim)
        self._centre: Vector | None = None
        self._epoch = 0.0
        self._appended = 0
        self._newest = -np.inf

    def __len__(self) -> int:
        return self._storage.count

    @property
    def _loops(self) -> Any:
        # Looked up at use, so that a set can be copied and sent to another process.
        return twins if self.engine == "numpy" else compiled.load(KERNELS)

    @property
    def _reach(self) -> float:
        """Largest coordinate whose squared distances stay finite in float32."""
        return float((checks.LARGEST / (8 * self.dim)) ** 0.5)

    @property
    def points(self) -> Matrix:
        """Embeddings of all references, one a row."""
        if self._centre is None:
            return np.empty((0, self.dim))
        return self._storage.read(self._storage.order()).points * self._unit + self._centre

    @property
    def rewards(self) -> Vector:
        """Rewards of all references."""
        return self._storage.column("reward").astype(np.float64)

    @property
    def times(self) -> Vector:
        """Times of all references."""
        return self._storage.column("time")

    @property
    def ids(self) -> Ids:
        """Ids of all references."""
        return self._storage.column("id")

    @property
    def densities(self) -> Vector:
        """W_i = 1 / w_i of all references, as of the newest time."""
        return self._storage.column("density") * self._fade(self._newest)

    @property
    def oldest(self) -> float:
        """Smallest time in memory (infinite when empty)."""
        return min(
            (float(c.time[a:b].min()) for c, a, b in self._storage.spans(0, len(self))), default=np.inf
        )

    @property
    def newest(self) -> float:
        """Largest time ever appended (minus infinity before the first)."""
        return self._newest

    def append(self, points: Any, rewards: Any, times: Any = None, ids: Any = None) -> None:
        """Add outcomes; times and ids default to a running count. O(n) each (Theorem 1)."""
        points = checks.matrix("points", points, columns=self.dim)
        n = len(points)
        running = np.arange(self._appended, self._appended + n)
        rewards = checks.unit("rewards", rewards, length=n)
        times = running.astype(np.float64) if times is None else checks.vector("times", times, length=n)
        ids = running if ids is None else checks.integers("ids", ids, length=n)
        if n == 0:
            return
        centre, scaled = self._scaled(points)
        with interrupts.held():
            self._centre = centre
            self._newest = max(self._newest, float(times.max()))
            self._move_epoch()
            self._appended += n
            self._append(Rows(*halves(scaled), np.zeros(n), rewards, times, ids, running))

    def check(self, points: Any) -> None:
        """Raise what `append` would raise for these points, and change nothing."""
        points = checks.matrix("points", points, columns=self.dim)
        if len(points):
            self._scaled(points)

    def forget(self, gone: Any) -> None:
        """Remove the references where the mask is true, and their kernels from the others' densities.

        The others keep their order.
        """
        mask = np.asarray(gone)
        if mask.dtype != bool or mask.shape != (len(self),):
            raise ValueError(
                f"gone must be a mask of {len(self)} booleans; got {mask.dtype} of shape {mask.shape}"
            )
        if not mask.any():
            return
        numbers = self._storage.order()[mask]
        with interrupts.held():
            lost = self._storage.read(numbers)
            self._storage.remove(numbers)
            # Half of kept² pairs may be fewer than kept x gone; and where the lost evidence outweighed the
            # rest a thousandfold, a difference would keep too few digits.
            if 2 * len(numbers) > len(self) or (lost.time.max() - self.oldest) * self._rate > 10:
                self.rebuild()
            else:
                self._add(lost.points, -self._decay(lost.time), 0, len(self))

    def rebuild(self) -> None:
        """Compute all densities anew, from the points alone."""
        rows = self._storage.read(self._storage.order())
        with interrupts.held():
            self._storage = Storage(self.dim)
            self._append(rows)

    def moved(self, points: Any, *, bandwidth: float) -> Self:
        """Return the same outcomes at other points, one for each in their order, under another bandwidth."""
        points = checks.matrix("points", points)
        if len(points) != len(self):
            raise ValueError(f"points must be as many as the references, {len(self)}; got {len(points)}")
        other = type(self)(
            dim=points.shape[1],
            bandwidth=bandwidth,
            half_life=self.half_life,
            importance=self.importance,
            truncated=self.truncated,
            engine=self.engine,
        )
        other._appended, other._newest, other._epoch = self._appended, self._newest, self._newest
        if len(points):
            other._centre, scaled = other._scaled(points)
            high, low = halves(scaled)
            other._append(self._storage.read(self._storage.order())._replace(high=high, low=low))
        return other

    def estimate(self, queries: Any, time: float | None = None) -> Estimate:
        """Return mass and mean at each query, as of `time` (by default, and at the earliest, the newest)."""
        queries = checks.matrix("queries", queries, columns=self.dim)
        # A clock that runs behind must not make evidence worth more than it was.
        now = self._newest if time is None else max(checks.number("time", time), self._newest)
        totals = np.zeros((len(queries), 3))
        if self._centre is not None:
            scaled = ((queries - self._centre) / self._unit).clip(-self._reach, self._reach)
            scaled = np.ascontiguousarray(scaled, dtype=np.float32)
            fade = self._fade(now)
            limit = HALF_LOG2_E if self.truncated else NEGLIGIBLE
            for chunk, _, count in self._storage.spans(0, len(self)):
                self._loops.read(
                    chunk.high, chunk.density, chunk.reward, chunk.time, count, scaled,
                    self._sharp, self._epoch, self._rate, fade, limit, self.importance, totals,
                )  # fmt: skip
        mass, weight, earned = totals.T
        # earned / weight can leave [0, 1] by a rounding
        mean = np.divide(earned, weight, out=np.full(len(queries), 0.5), where=weight > 0).clip(0.0, 1.0)
        return Estimate(mass=mass.copy(), mean=mean)

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and a JSON-able spec, from which `from_arrays` rebuilds this set bit for bit."""
        spec = {name: getattr(self, name) for name in OPTIONS}
        if self._centre is None:
            return {}, spec
        clock = {"epoch": self._epoch, "appended": self._appended, "newest": self._newest}
        rows = self._storage.read(np.arange(len(self)))
        return rows._asdict() | {"centre": self._centre}, spec | clock

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Array], spec: Mapping[str, Any], *, engine: Engine = "auto"
    ) -> Self:
        """Rebuild what `to_arrays` returned."""
        references = cls(**{name: spec[name] for name in OPTIONS}, engine=engine)
        if "appended" in spec:  # it has held rows
            rows = Rows(**{name: arrays[name] for name in Rows._fields})
            lengths = {name: len(column) for name, column in rows._asdict().items()}
            if len(set(lengths.values())) > 1:
                raise ValueError(f"the columns of a reference set must be equally long; got {lengths}")
            for name in ("high", "low"):
                checks.matrix(name, arrays[name], columns=references.dim)
            checks.unit("reward", rows.reward)
            checks.vector("time", rows.time)
            if not np.isfinite(rows.density).all():
                raise ValueError("densities must be finite")
            references._storage = Storage.of(rows)
            references._centre = checks.vector("centre", arrays["centre"], length=references.dim)
            references._epoch, references._newest = float(spec["epoch"]), float(spec["newest"])
            references._appended = int(spec["appended"])
        return references

    def _scaled(self, points: Matrix) -> tuple[Vector, Matrix]:
        """Return the origin of the storage, and points in its coordinates."""
        centre = _centre(points, self.bandwidth) if self._centre is None else self._centre
        scaled = (points - centre) / self._unit
        if not (np.abs(scaled) <= self._reach).all():
            raise ValueError(
                f"points must lie within {self._reach:.1g} bandwidths of each other; "
                f"got a coordinate {np.abs(scaled).max():.1g} away (bandwidth {self.bandwidth})"
            )
        return centre, scaled

    def _append(self, rows: Rows) -> None:
        """Write rows behind the others, slice by slice; each pair of kernels serves both its densities."""
        for first in range(0, len(rows.id), SLICE):
            part = Rows(*(column[first : first + SLICE] for column in rows))
            start, n = len(self), len(part.id)
            points, decay = part.points, self._decay(part.time)
            earlier = self._add(points, decay, 0, start)
            alone = decay if n == 1 else 0.0  # κ(s, s) = 1; several meet each other below
            self._storage.write(np.arange(start, start + n), part._replace(density=earlier + alone))
            self._storage.count += n
            if n > 1:
                self._add(points, decay, start, start + n)

    def _add(self, points: Matrix, weights: Vector, start: int, stop: int) -> Vector:
        """Add weighted kernels of points to the densities of rows start..stop; return Σgκ at each point."""
        sums = np.zeros(len(points))
        limit = HALF_LOG2_E if self.truncated else ADD_LIMIT
        for chunk, first, last in self._storage.spans(start, stop):
            self._loops.add(
                chunk.high, chunk.low, self._storage.split, chunk.density, chunk.time, first, last,
                points, weights, self._sharp, self._epoch, self._rate, limit, sums,
            )  # fmt: skip
        return sums

    def _decay(self, times: Vector) -> Vector:
        return twins.decay(times, self._epoch, self._rate)

    def _fade(self, now: float) -> float:
        """Factor from evidence at the epoch to evidence now."""
        return float(np.exp2(-(now - self._epoch) * self._rate)) if self._rate else 1.0

    def _move_epoch(self) -> None:
        if not len(self):
            self._epoch = self._newest
        elif (self._newest - self._epoch) * self._rate > EPOCH_LIMIT:
            fade = self._fade(self._newest)
            for chunk, first, last in self._storage.spans(0, len(self)):
                chunk.density[first:last] *= fade
            self._epoch = self._newest


def _centre(points: Matrix, bandwidth: float) -> Vector:
    """Origin of the storage: float32 points near zero are exact; others lose least in their midst."""
    if np.array_equal(points, points.astype(np.float32)) and np.abs(points).max() <= NEAR * bandwidth:
        return np.zeros(points.shape[1])
    return np.median(points, axis=0)


def _available(engine: str) -> Literal["numba", "numpy"]:
    """Return "numba" or "numpy"."""
    if engine not in ("auto", "numba", "numpy"):
        raise ValueError(f'engine must be "auto", "numba" or "numpy"; got {engine!r}')
    if engine == "numpy" or compiled.load(KERNELS) is not None:
        return "numpy" if engine == "numpy" else "numba"
    if engine == "numba":
        raise ValueError('Numba can not compile and cache here; use engine="auto" or "numpy"')
    return "numpy"
