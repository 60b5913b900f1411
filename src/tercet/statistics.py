"""Paired comparisons over units that all have played (seeds or blocks of time): intervals, tests, lifts."""

from typing import NamedTuple

import numpy as np

from tercet.checks import Vector

RESAMPLES = 2000
FEWEST = 3  # units that a test or the interval of a lift needs
EQUAL = 1e-9  # differences within this part of the largest are equal but for rounding


class Interval(NamedTuple):
    """A mean and the half-width of its 95 % interval (Student's t; NaN where units are too few)."""

    mean: float
    half: float


class Lift(NamedTuple):
    """Relative gain in reward with its 95 % interval by a paired bootstrap (NaN below three units)."""

    mean: float
    low: float
    high: float


def interval(values: Vector) -> Interval:
    """Return the mean with its 95 % interval."""
    from scipy.stats import t

    count = len(values)
    if count < 2:
        return Interval(float(values[0]) if count else float("nan"), float("nan"))
    half = t.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count)
    return Interval(float(np.mean(values)), float(half))


def p_value(differences: Vector) -> float:
    """Return the two-sided p-value of a paired t-test; NaN below three units.

    Where all differences are equal, t would be infinite, which a few rewards of 0 and 1 do not bear out:
    then it is the p-value of a sign test, 2 / 2^n.
    """
    from scipy.stats import ttest_1samp

    if len(differences) < FEWEST:
        return float("nan")
    if np.ptp(differences) <= EQUAL * np.abs(differences).max():
        return 2 * 0.5 ** len(differences) if differences.any() else 1.0
    return float(ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Vector) -> Vector:
    """Return p-values corrected for being many (Holm, 1979); NaN stays NaN and does not count.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    corrected = np.full(len(p_values), np.nan)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return corrected


def lift(ours: Vector, theirs: Vector) -> Lift:
    """Return how much more reward ours is than theirs, both in sums over the same units.

    The bootstrap draws units, the same for both; its generator is fixed, so a table is the same twice. The
    percentiles of few units lie too close (a resample's variance is (n - 1)/n of a sample's, and normal
    quantiles stand for Student's), so they are moved away from the estimate by √(n/(n - 1)) · t/z.
    """
    from scipy.stats import norm, t

    count = len(ours)
    total = float(ours.sum() / theirs.sum() - 1) if theirs.sum() > 0 else float("nan")
    if count < FEWEST or np.isnan(total):
        return Lift(total, float("nan"), float("nan"))
    draws = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    with np.errstate(divide="ignore", invalid="ignore"):
        lifts = ours[draws].sum(1) / theirs[draws].sum(1) - 1
    # Without interpolation, because a resample without any reward of theirs has an infinite lift.
    low, high = np.nanquantile(lifts, [0.025, 0.975], method="inverted_cdf")
    wider = np.sqrt(count / (count - 1)) * t.ppf(0.975, count - 1) / norm.ppf(0.975)
    return Lift(total, float(max(total + wider * (low - total), -1.0)), float(total + wider * (high - total)))
