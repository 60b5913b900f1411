"""How exact densities stay that are updated in place: references come and go, in several arithmetics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet import iwkr
from tercet.checks import Matrix, Vector
from tercet.paper.growth import BANDWIDTH
from tercet.reference.exact import ReferenceSet

CROWD = 0.5  # spread of all references in the plane, in bandwidths: a busy neighbourhood
BATCH = 50  # references that come to our set, or leave it, at a time

# The paper's pattern of use: as many references as its classification experiments see, 4,000 and 1,000;
# its news experiment drops a fifth and appends a hundred in a round, and has five rounds.
REFERENCES, DROPPED, APPENDED = 5_000, 0.2, 100
PAPER_ROUNDS = 5
ROUNDS = (PAPER_ROUNDS, 10, 20, 50)

# The extreme: next to nobody stays of a crowd.
STAYERS = 2  # references whose densities are watched; fewer would be recomputed
VISITORS = (200, 2_000, 20_000)

OURS, SINGLE, HALF = "float64 sums (ours)", "float32 sums", "float16 sums"
WEIGHTS, COARSE = "float32 weights (the proof's)", "float16 points, float64 sums"


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """How densities are kept; single kernels are exact but for `kind`.

    kind : of floating point numbers.
    weights : kept are w, by the proof's w' = 1 / (z + 1/w); else 1/w, as sums.
    coarse : points are rounded to float16.
    """

    kind: type[np.floating[Any]]
    weights: bool = False
    coarse: bool = False

    def seen(self, points: Matrix) -> Matrix:
        return points.astype(np.float16).astype(np.float64) if self.coarse else points

    def start(self, densities: Vector) -> Any:
        return (1 / densities if self.weights else densities).astype(self.kind)

    def changed(self, kept: Any, kernels: Any) -> Any:
        """Return what is kept after adding a kernel to each density, a negative one if a reference left."""
        return 1 / (kernels + 1 / kept) if self.weights else kept + kernels

    def joined(self, kept: Any, kernels: Any) -> Any:
        """Append a reference, given its kernels with all that are there and, at the end, with itself."""
        total = kernels.sum(dtype=self.kind)
        new = 1 / total if self.weights else total
        return np.append(self.changed(kept, kernels[:-1]), new).astype(self.kind)

    def densities(self, kept: Any) -> Vector:
        wide: Vector = kept.astype(np.float64)
        return 1 / wide if self.weights else wide


ARITHMETICS: Mapping[str, Arithmetic] = {
    SINGLE: Arithmetic(kind=np.float32),
    WEIGHTS: Arithmetic(kind=np.float32, weights=True),
    HALF: Arithmetic(kind=np.float16),
    COARSE: Arithmetic(kind=np.float64, coarse=True),
}
NAMES = (OURS, *ARITHMETICS)


def crowd(count: int, rng: np.random.Generator) -> Matrix:
    """Return points of a busy neighbourhood."""
    return rng.normal(scale=CROWD * BANDWIDTH, size=(count, 2))


def recomputed(points: Matrix) -> Vector:
    """Return true densities."""
    parts = [points[i : i + 500] for i in range(0, len(points), 500)]
    return np.concatenate([iwkr.mass(iwkr.rbf(part, points, BANDWIDTH)) for part in parts])


def error(densities: Vector, truth: Vector) -> float:
    """Return the largest relative error."""
    return float(np.max(np.abs(densities / truth - 1)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """What happens to the references in a round: where the mask is true they leave, then others come."""

    gone: Any
    new: Matrix


def rounds(rng: np.random.Generator, start: int, count: int) -> Iterator[Round]:
    """Yield rounds of the paper's pattern."""
    references = start
    for _ in range(count):
        gone = rng.random(references) < DROPPED
        yield Round(gone=gone, new=crowd(APPENDED, rng))
        references += APPENDED - int(gone.sum())


def pattern(task: tuple[int, int]) -> list[dict[str, Any]]:
    """Return the largest relative error of the densities after rounds of the paper's pattern."""
    seed, start = task
    rng = np.random.default_rng(seed)
    points = crowd(start, rng)
    plan = list(rounds(rng, start, max(ROUNDS)))
    ways = {OURS: _our_rounds(points, plan)}
    ways |= {name: _rounds(points, plan, way) for name, way in ARITHMETICS.items()}
    truths: list[Vector] = []
    for number, one in enumerate(plan, start=1):
        points = np.vstack([points[~one.gone], one.new])
        if number in ROUNDS:
            truths.append(recomputed(points))
    return [
        {"seed": seed, "rounds": count, "references": len(truth), "arithmetic": name}
        | {"error": error(found, truth)}
        for name, densities in ways.items()
        for count, found, truth in zip(ROUNDS, densities, truths, strict=True)
    ]


def _rounds(points: Matrix, plan: list[Round], way: Arithmetic) -> list[Vector]:
    """Return the densities after each of `ROUNDS`, changed one reference at a time."""
    points = way.seen(points)
    kept = way.start(recomputed(points))
    found = []
    for number, one in enumerate(plan, start=1):
        lost, points = points[one.gone], points[~one.gone]
        kept = kept[~one.gone]
        for kernels in iwkr.rbf(lost, points, BANDWIDTH).astype(way.kind):
            kept = way.changed(kept, -kernels)
        points = np.vstack([points, way.seen(one.new)])
        for kernels in iwkr.rbf(way.seen(one.new), points, BANDWIDTH).astype(way.kind):
            kept = way.joined(kept, kernels[: len(kept) + 1])
        if number in ROUNDS:
            found.append(way.densities(kept))
    return found


def _our_rounds(points: Matrix, plan: list[Round]) -> list[Vector]:
    """Return our set's densities after each of `ROUNDS`.

    Batches save calls: each kernel is added to a density, or taken from it, by itself.
    """
    references = _appended(points)
    found = []
    for number, one in enumerate(plan, start=1):
        going = np.flatnonzero(one.gone)
        for first in range(0, len(going), BATCH):
            mask = np.zeros(len(references), bool)
            mask[going[first : first + BATCH] - first] = True  # those before have left
            references.forget(mask)
        references.append(one.new, np.zeros(len(one.new)))
        if number in ROUNDS:
            found.append(references.densities.copy())
    return found


def _appended(points: Matrix) -> ReferenceSet:
    references = ReferenceSet(dim=points.shape[1], bandwidth=BANDWIDTH)
    for first in range(0, len(points), BATCH):
        part = points[first : first + BATCH]
        references.append(part, np.zeros(len(part)))
    return references


def after_visits(task: tuple[int, int]) -> dict[str, float]:
    """Return the largest relative error of the stayers' densities when all visitors have come and gone."""
    seed, visitors = task
    points = crowd(STAYERS + visitors, np.random.default_rng(seed))
    truth = recomputed(points[:STAYERS])
    found = {OURS: _visited(points)} | {name: _visits(points, way) for name, way in ARITHMETICS.items()}
    return {name: error(densities, truth) for name, densities in found.items()}


def _visits(points: Matrix, way: Arithmetic) -> Vector:
    points = way.seen(points)
    kept = way.start(recomputed(points[:STAYERS]))
    rows = iwkr.rbf(points[STAYERS:], points[:STAYERS], BANDWIDTH).astype(way.kind)
    for sign in (1, -1):
        for kernels in sign * rows:
            kept = way.changed(kept, kernels)
    return way.densities(kept)


def _visited(points: Matrix) -> Vector:
    """Return the densities that our reference set has after the appends and the removals."""
    references = _appended(points)
    while (left := len(references) - STAYERS) > 0:
        # Never so many that the set would rather compute the others' densities anew.
        leaving = max(min(BATCH, left // 3), 1)
        gone = np.zeros(len(references), bool)
        gone[STAYERS : STAYERS + leaving] = True  # the eldest visitors
        references.forget(gone)
    return references.densities
