"""The two inner loops of the reference set in plain NumPy: what the kernels compute, in the fewest words.

kappa = 2^(-sharp·distance²) in the storage's coordinates. g = 2^((time - epoch)·rate) is the decay of a
reference up to a factor common to all, which `fade` puts right in the mass and which cancels in the
regression; rate is zero without decay. `limit` is the exponent beyond which the kernel is zero.
Both functions work on one chunk (see tercet.reference.layout).
"""

import numpy as np

from tercet.checks import Array
from tercet.iwkr import squared_distances
from tercet.reference.layout import lanes

STEP = 8192  # rows at a time: the kernels of 512 points with them take 32 MiB


def read(
    high: Array,
    density: Array,
    reward: Array,
    time: Array,
    count: int,
    queries: Array,
    sharp: float,
    epoch: float,
    rate: float,
    fade: float,
    limit: float,
    importance: bool,
    totals: Array,
) -> None:
    """Add one chunk's Σκg, Σκgw and Σκgwr for each query to `totals`."""
    points = lanes(high)[:count].astype(np.float64)
    kappa = _kappa(queries.astype(np.float64), points, sharp, limit)
    g = decay(time[:count], epoch, rate)
    w = g / np.maximum(density[:count], g) if importance else g
    totals += np.stack([kappa @ g * fade, kappa @ w, kappa @ (w * reward[:count])], axis=1)


def add(
    high: Array,
    low: Array,
    split: bool,
    density: Array,
    time: Array,
    first: int,
    last: int,
    points: Array,
    weights: Array,
    sharp: float,
    epoch: float,
    rate: float,
    limit: float,
    sums: Array,
) -> None:
    """Add each point's kernel to the densities of rows first..last, and the rows' kernels to `sums`."""
    for start in range(first, last, STEP):
        part = slice(start, min(start + STEP, last))
        rows = lanes(high)[part].astype(np.float64)
        if split:
            rows += lanes(low)[part]
        kappa = _kappa(points, rows, sharp, limit)
        density[part] += weights @ kappa
        sums += kappa @ decay(time[part], epoch, rate)


def decay(time: Array, epoch: float, rate: float) -> Array:
    """Return g; a thousand halvings are as good as gone, and keep it above zero."""
    return np.exp2(np.maximum((time - epoch) * rate, -1000.0))


def _kappa(queries: Array, points: Array, sharp: float, limit: float) -> Array:
    exponent = squared_distances(queries, points) * sharp
    return np.where(exponent <= limit, np.exp2(-exponent), 0.0)
