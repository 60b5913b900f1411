"""Coupled draws: arms that share their evidence share their luck.

Of many independent draws the highest is high, so that near-copies of a worse arm outbid a better one by their
number. Drawn jointly, they rise and fall together and count as one.
"""

from typing import Any

import numpy as np

from tercet import gaussian
from tercet.checks import Matrix, Vector
from tercet.quadrature import SMALLEST, parameters
from tercet.types import Ids

DRAWS = 1024  # half of them the mirror images of the others
SETTLED = 1e-8  # variance (of 1) that is left out once the draws of other arms explain all but it
REACH = 6.0  # standard deviations: arms that are farther apart than this need no draw to compare them
TIE = 1e-5  # log-odds: copies differ by the rounding of their embeddings


def overlap(queries: Matrix, bandwidth: float) -> Matrix:
    """Return the share of evidence that every two arms have in common: exp(-‖q - q'‖² / 4σ²).

    This is the correlation of two kernel estimates where references lie evenly.
    """
    # Centred, since far from the origin the differences would drown in rounding.
    scaled = (queries - queries.mean(axis=0)) / (np.sqrt(2) * bandwidth)
    exponents = scaled @ scaled.T
    squares = exponents.diagonal() / 2
    exponents -= squares
    exponents -= squares[:, None]
    return np.exp(np.minimum(exponents, 0.0, out=exponents), out=exponents)


def propensities(alpha: Any, beta: Any, correlations: Matrix, rng: np.random.Generator) -> Vector:
    """Return how often each arm has the highest of 1,024 joint draws; ties share evenly.

    Log-odds are drawn jointly normal, with these correlations and with the means and variances that they have
    under each arm's Beta(alpha, beta). The shares estimate the odds of that model; but whoever draws an arm
    from them plays it with exactly these odds, given the draws, and never one whose share is 0.

    A parameter of zero makes a point mass, as in `posterior.draw`. `rng` moves on by the same amount whatever
    the arms.

    >>> twins = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    >>> propensities([2, 2, 2], [2, 2, 2], twins, np.random.default_rng(0))
    array([0.5 , 0.25, 0.25])
    """
    alpha, beta = parameters(alpha, beta)
    if correlations.shape != (len(alpha), len(alpha)):
        raise ValueError(
            f"correlations must be square, a row for each of {len(alpha)} arms; got {correlations.shape}"
        )
    mean, deviation = _log_odds(alpha, beta)
    # Sorted, so that equal generators give equal arms equal luck, wherever they stand.
    order = np.lexsort((deviation, mean))
    order = order[(mean + REACH * deviation >= (mean - REACH * deviation).max())[order]]
    factor, pivots = _factor(correlations[np.ix_(order, order)])
    order = order[pivots]
    # The factor has as many columns as arms differ: a child generator keeps that from the caller's.
    child = np.random.default_rng(rng.integers(2**63))
    luck = factor @ child.standard_normal((factor.shape[1], DRAWS // 2))
    luck *= deviation[order, None]
    usual, result = mean[order, None], np.zeros(len(alpha))
    result[order] = sum(gaussian.shares(scores.T, tie=TIE) for scores in (usual + luck, usual - luck)) / 2
    return result


def _log_odds(alpha: Vector, beta: Vector) -> tuple[Vector, Vector]:
    """Return mean and standard deviation of each Beta's log-odds; the mean of a point mass is infinite."""
    from scipy.special import digamma, zeta

    ones, zeros = np.maximum(alpha, SMALLEST), np.maximum(beta, SMALLEST)
    mean = digamma(ones) - digamma(zeros)
    mean[alpha == 0] = -np.inf
    mean[beta == 0] = np.inf
    return mean, np.sqrt(zeta(2, ones) + zeta(2, zeros))  # zeta(2, x) is the trigamma function


def _factor(correlations: Matrix) -> tuple[Matrix, Ids]:
    """Return F and an order of the arms in which F Fᵀ is their correlations; copies have equal rows."""
    from scipy.linalg.lapack import dpstrf

    # Pivots make a Cholesky factor of a singular matrix; LAPACK counts them from 1.
    lower, pivots, rank, _ = dpstrf(correlations.T, tol=SETTLED, lower=1)
    return np.tril(lower)[:, :rank], pivots.astype(np.int64) - 1
