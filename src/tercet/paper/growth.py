"""How time grows with the number of references: what is timed, how, and which order its exponent is."""

import gc
from collections.abc import Callable
from time import process_time

import numpy as np

from tercet import iwkr
from tercet.checks import Array, Vector
from tercet.paper.base import Verdict, verdict
from tercet.reference.exact import ReferenceSet

BANDWIDTH = 1.0  # of a made-up memory, and of the paper's classification experiments
SITES = 1024  # places that the points of a made-up memory share
GROWING = 1.5  # times the first one, the last time of a series from which a fixed cost can be told
# Time grows as n^k. Where a memory outgrows a cache, k is off its order by .3; beyond .5 another is nearer.
TOLERANCE, HALFWAY = 0.3, 0.5
RULE = (
    f"An exponent within {TOLERANCE:g} of an order bears it out (caches bend the lines so far); beyond "
    f"{HALFWAY:g}, where another order is nearer, it refutes it."
)


def filled(n: int, rng: np.random.Generator, *, dim: int) -> ReferenceSet:
    """Return a set of n references with true densities, made in less than the n²/2 kernels of appending.

    All references lie on at most `SITES` places. A density is then a sum over places, each worth as many
    kernels as it holds references. What an append or an estimate costs does not depend on where they lie.
    """
    places = rng.normal(size=(min(n, SITES), dim)).astype(np.float32)
    where = rng.integers(len(places), size=n)
    counts = np.bincount(where, minlength=len(places))
    kappa = iwkr.rbf(places.astype(np.float64), places.astype(np.float64), BANDWIDTH)
    references = ReferenceSet(dim=dim, bandwidth=BANDWIDTH)
    references.append(places[:1], [1.0])
    arrays, spec = references.to_arrays()
    columns: dict[str, Array] = {
        "high": places[where],  # with a bandwidth of 1 the set keeps points as they are
        "low": np.zeros((n, dim), np.float32),
        "density": (kappa @ counts)[where],
        "reward": rng.integers(2, size=n).astype(np.float64),
        "time": np.arange(n, dtype=np.float64),
        "id": np.arange(n),
        "sequence": np.arange(n),
    }
    return ReferenceSet.from_arrays(
        dict(arrays) | columns, dict(spec) | {"appended": n, "newest": float(n - 1)}
    )


def shortest(work: Callable[[], object], *, repeats: int, budget: float = 1.0) -> float:
    """Return the shortest of so many times in seconds, or of as many as the budget in seconds allows.

    It is time of the processor, in one thread: what else the machine does adds little to it, and never
    takes any away.
    """
    from threadpoolctl import threadpool_limits

    times: list[float] = []
    gc.disable()
    try:
        with threadpool_limits(1):
            work()  # compile, touch the memory
            while len(times) < repeats and (len(times) < 3 or sum(times) < budget):
                start = process_time()
                work()
                times.append(process_time() - start)
    finally:
        gc.enable()
    return min(times)


def exponent(n: Vector, seconds: Vector) -> float:
    """Return k of seconds = fixed + c·n^k by least squares on logarithms.

    A call costs some microseconds whatever n is, which would hide the growth of what follows. Where times
    hardly grow no fixed cost can be told from them, and k is the slope of their logarithms.
    """
    from scipy.optimize import least_squares

    slope = float(np.polyfit(np.log(n), np.log(seconds), 1)[0])
    if seconds[-1] < GROWING * seconds[0]:
        return slope
    logs, largest = np.log(seconds), np.log(n / n[-1])

    def residuals(values: Vector) -> Vector:
        fixed, scale, power = values
        return np.logaddexp(fixed, scale + power * largest) - logs

    start = [logs[0] - 0.1, logs[-1], max(slope, 1.0)]
    limits = ([logs[0] - 20, logs[0] - 20, 0.0], [logs[0] + 1, logs[-1] + 1, 4.0])
    return float(least_squares(residuals, start, bounds=limits).x[2])


def of_order(found: float, order: int) -> Verdict:
    """Judge whether time grows as n^order.

    >>> of_order(1.1, 1), of_order(1.4, 1), of_order(1.9, 1)
    ('reproduced', 'undecided', 'not reproduced')
    """
    away = abs(found - order)
    return verdict(away <= TOLERANCE, refuted=away > HALFWAY)


def at_most_of_order(found: float, order: int) -> Verdict:
    """Judge whether time grows no faster than n^order."""
    return of_order(max(found, float(order)), order)
