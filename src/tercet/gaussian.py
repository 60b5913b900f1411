"""Propensities of policies that draw scores from normal distributions and play the highest."""

from functools import cache

import numpy as np

from tercet.checks import Matrix, Vector

# Where the distribution functions bend, in standard deviations: a panel of 16 nodes between two
# neighbours leaves an error below 1e-11.
BENDS = np.array([-7.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 7.0])
NARROWEST = 1e-9  # of the scores' scale: a spread of zero becomes this, and equal scores share evenly


def propensities(mean: Vector, spread: Vector) -> Vector:
    """Return each arm's chance of the highest draw, the draws being independent N(mean, spread²).

    P(a) = ∫ f_a(x) Π_{b≠a} F_b(x) dx, by Gauss-Legendre quadrature on panels that every arm's bends
    cut: sharp and diffuse arms are both resolved.

    >>> propensities(np.array([1.0, 0.0]), np.array([0.6, 0.8])).round(4)
    array([0.8413, 0.1587])
    """
    from scipy.special import log_ndtr

    size = np.abs(mean - mean.max()).max() + spread.max()
    if size == 0:
        return np.full(len(mean), 1 / len(mean))
    mean = (mean - mean.max()) / size
    spread = np.maximum(spread / size, NARROWEST)
    lowest, highest = (mean + BENDS[0] * spread).max(), (mean + BENDS[-1] * spread).max()
    cuts = np.unique(np.clip(mean[:, None] + spread[:, None] * BENDS, lowest, highest))
    nodes, weights = _rule()
    middles, halves = (cuts[1:] + cuts[:-1]) / 2, (cuts[1:] - cuts[:-1]) / 2
    x = (middles[:, None] + halves[:, None] * nodes).ravel()
    z = (x - mean[:, None]) / spread[:, None]
    below = log_ndtr(z)
    density = np.exp(below.sum(0) - below - z**2 / 2) / spread[:, None]
    chances = density @ (halves[:, None] * weights).ravel()
    return chances / chances.sum()


def shares(scores: Matrix, *, tie: float = 0.0) -> Vector:
    """Return how often each arm (column) has the highest score of a row, or one within `tie`; ties share."""
    best = scores >= scores.max(1, keepdims=True) - tie
    return (best / best.sum(1, keepdims=True)).mean(0)


@cache
def _rule() -> tuple[Vector, Vector]:
    nodes, weights = np.polynomial.legendre.leggauss(16)
    return nodes, weights
