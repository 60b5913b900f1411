"""Thompson sampling's propensities: the probability that an arm's Beta draw is the largest of all.

Everything happens on the logit scale y = log(x / (1 - x)), where each Beta density is smooth and
log-concave, and where draws as small as exp(-20000) (parameters of 1e-3) stay apart from zero.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from tercet import checks, compiled
from tercet.checks import Array, Matrix, Vector

Cube = Float[np.ndarray, "_ _ _"]

SMALLEST, SHARPEST = 1e-100, 1e10  # beyond them SciPy's incomplete beta function loses its digits
TOLERANCE = 1e-9
NEGLIGIBLE = 1e-12
MOST_PANELS = 1000  # in one round, where 58 was the most ever seen: noise must not keep the halving going


def propensities(alpha: Any, beta: Any) -> Vector:
    """Return the probability that each arm's independent Beta(alpha, beta) draw is the largest.

    Every probability is within 1e-6 of the truth, and mostly within 1e-9. They are not normalised: the
    distance of their sum from 1 shows the error. A parameter of zero makes a point mass (alpha at 0, beta
    at 1), and point masses that tie for the largest share equally. Arms whose parameters both exceed 1e10
    count as just that sharp, and parameters below 1e-100 as 1e-100.

    >>> propensities([2, 1], [1, 2]).round(6)
    array([0.833333, 0.166667])
    """
    return _over_proper(*parameters(alpha, beta), _adaptive)


def quick_propensities(alpha: Any, beta: Any) -> Vector:
    """Return `propensities` fast enough for every decision, and normalised.

    The largest error found is 2e-7, with parameters from 1e-3 to 1e6, one sharp arm among diffuse ones
    included. Where Numba can not cache its code this is `propensities`, normalised: milliseconds.
    """
    return _over_proper(*parameters(alpha, beta), _quick())


def parameters(alpha: Any, beta: Any) -> tuple[Vector, Vector]:
    """Return the parameters of each arm's Beta distribution, checked."""
    alpha = checks.vector("alpha", alpha)
    beta = checks.vector("beta", beta, length=len(alpha))
    if not len(alpha):
        raise ValueError("alpha and beta must hold at least one arm; got none")
    least = np.minimum(alpha, beta)
    if least.min() < 0:
        row = least.argmin()
        raise ValueError(f"alpha and beta must not be negative; got {least[row]:g} in row {row}")
    evidence = alpha + beta
    if not evidence.all():
        row = evidence.argmin()
        raise ValueError(f"alpha and beta must not both be zero, as they are in row {row}: add a prior")
    return alpha, beta


def _over_proper(alpha: Vector, beta: Vector, method: Callable[[Vector, Vector], Vector]) -> Vector:
    """Settle the point masses; leave the other arms to the method."""
    if not beta.all():
        return (beta == 0) / np.count_nonzero(beta == 0)
    proper = alpha > 0
    if np.count_nonzero(proper) < 2:  # all at zero, or all but one
        winners = proper if proper.any() else ~proper
        return winners / np.count_nonzero(winners)
    alpha, beta = np.maximum(alpha[proper], SMALLEST), np.maximum(beta[proper], SMALLEST)
    excess = np.maximum(np.minimum(alpha, beta) / SHARPEST, 1.0)
    result = np.zeros(len(proper))
    result[proper] = method(alpha / excess, beta / excess)
    return result


@cache
def _quick() -> Callable[[Vector, Vector], Vector]:
    kernels = compiled.load("tercet.posterior_kernels")
    return _normalised if kernels is None else lambda alpha, beta: kernels.quick(alpha, beta, _rule())


def _normalised(alpha: Vector, beta: Vector) -> Vector:
    result = _adaptive(alpha, beta)
    return result / result.sum()


def _adaptive(alpha: Vector, beta: Vector) -> Vector:
    """Integrate density x product of the other arms' CDFs, halving the panels that are not smooth yet."""
    arms, total, rows = _Arms.of(alpha, beta), np.zeros(len(alpha)), np.arange(len(alpha))
    low, high = np.arcsinh(arms.range())
    edges = np.sinh(np.linspace(low, high, 9))
    cdf = arms.cdf(edges)
    left, right, below, above = edges[:-1], edges[1:], cdf[:-1], cdf[1:]
    while True:
        # The arms' shares of a panel add up to the growth of the maximum's CDF: most panels end here.
        live = above.prod(axis=1) - below.prod(axis=1) > NEGLIGIBLE
        if not live.any():
            return np.minimum(total, 1.0)
        left, right, below, above = left[live], right[live], below[live], above[live]
        keep = below.min(axis=0) < 1 - NEGLIGIBLE  # the other arms lie below all that is left
        arms, rows, below, above = arms.take(keep), rows[keep], below[:, keep], above[:, keep]
        shares, error = _shares(arms, left, right, below, above)
        # Scales go from 1e-3 (much evidence) to 1e+3 (little): halving in asinh finds them all quickly.
        middle = np.sinh((np.arcsinh(left) + np.arcsinh(right)) / 2)
        rough = (error > TOLERANCE) & (left < middle) & (middle < right) & (len(left) < MOST_PANELS)
        total[rows] += shares[~rough].sum(axis=0)
        left, right, below, above, middle = (x[rough] for x in (left, right, below, above, middle))
        between = arms.cdf(middle)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        below, above = np.concatenate([below, between]), np.concatenate([between, above])


def _shares(
    arms: "_Arms", left: Vector, right: Vector, below: Matrix, above: Matrix
) -> tuple[Matrix, Vector]:
    """Return each arm's probability to be the largest within each panel, and the panels' errors."""
    rule, half = _rule(), ((right - left) / 2)[:, None]
    mass = arms.density(left[:, None] + half * (1 + rule.nodes)) * half[:, None]
    cdf = np.clip(below[:, :, None] + mass @ rule.antiderivative, 0, 1)
    integrand = mass * _product_of_others(cdf)
    # Smooth means: the densities integrate to what the CDFs say, and the last Legendre coefficients of
    # the integrands have died away.
    missing = np.abs(mass @ rule.weights - (above - below)).max(axis=1)
    ripple = np.abs(integrand @ rule.last).max(axis=(1, 2))
    return integrand @ rule.weights, np.maximum(missing, ripple)


def _product_of_others(cdf: Cube) -> Cube:
    """Return the product over all arms (axis 1) but one; a division would fail where a CDF is zero."""
    others = np.ones_like(cdf)
    others[:, 1:] = np.cumprod(cdf[:, :-1], axis=1)
    others[:, :-1] *= np.cumprod(cdf[:, :0:-1], axis=1)[:, ::-1]
    return others


@dataclass(frozen=True, kw_only=True, eq=False)
class _Arms:
    """Beta distributions on the logit scale."""

    alpha: Vector
    beta: Vector
    mode: Vector
    log_peak: Vector  # log-density at the mode
    log_beta: Vector  # log B(alpha, beta)

    @staticmethod
    def of(alpha: Vector, beta: Vector) -> "_Arms":
        from scipy.special import betaln

        # Stirling's formula takes the large terms out of log B(alpha, beta), so that none cancel.
        log_peak = (np.log(alpha) + np.log(beta / (alpha + beta)) - np.log(2 * np.pi)) / 2
        log_peak += _stirling(alpha + beta) - _stirling(alpha) - _stirling(beta)
        mode = np.log(alpha) - np.log(beta)
        return _Arms(alpha=alpha, beta=beta, mode=mode, log_peak=log_peak, log_beta=betaln(alpha, beta))

    def take(self, keep: Array) -> "_Arms":
        return _Arms(**{name: column[keep] for name, column in vars(self).items()})

    def range(self) -> tuple[float, float]:
        """Return where the largest draw lies, save for a probability of twice NEGLIGIBLE."""
        # F(y) <= exp(alpha y) / (alpha B) for each arm, and 1 - F(y) <= exp(-beta y) / (beta B).
        least = np.log(NEGLIGIBLE) + self.log_beta
        low = (least + np.log(self.alpha)) / self.alpha
        high = (np.log(len(least)) - least - np.log(self.beta)) / self.beta
        return float(low.max()), float(high.max())

    def density(self, y: Matrix) -> Cube:
        """Return the density of each arm (axis 1) at each place (axes 0 and 2)."""
        lesser, total = np.minimum(self.alpha, self.beta)[:, None], (self.alpha + self.beta)[:, None]
        p = lesser / total
        # log(f / peak) = lesser t - total log(1 - p + p exp(t)), t the distance from the mode towards the
        # lesser parameter's side: the form in which large terms do not cancel.
        t = (y[:, None] - self.mode[:, None]) * np.where(self.alpha <= self.beta, 1.0, -1.0)[:, None]
        near = np.log1p(p * np.expm1(np.minimum(t, 1.0)))
        far = np.logaddexp(np.log1p(-p), np.log(p) + t)
        return np.exp(self.log_peak[:, None] + lesser * t - total * np.where(t < 1, near, far))

    def cdf(self, y: Vector) -> Matrix:
        """Return the CDF of each arm (axis 1) at each place (axis 0)."""
        from scipy.special import betainc, expit

        y = y[:, None]
        near, far = np.where(y < 0, self.alpha, self.beta), np.where(y < 0, self.beta, self.alpha)
        distance = np.abs(y)
        # For whole numbers SciPy sums a binomial series and loses digits; the next number is not whole.
        far = np.nextafter(far, np.inf)
        # Where exp(-distance) leaves the floating-point range its power series has one term left.
        power = np.exp(np.minimum(-near * distance - np.log(near) - self.log_beta, 0.0))
        tail = np.where(distance < 600, betainc(near, far, expit(-distance)), power)
        return np.where(y < 0, tail, 1 - tail)


def _stirling(z: Vector) -> Vector:
    """Return the error of Stirling's formula for log Gamma(z)."""
    from scipy.special import gammaln

    small, large = np.minimum(z, 10.0), np.maximum(z, 10.0)
    direct = gammaln(small) - ((small - 0.5) * np.log(small) - small + np.log(2 * np.pi) / 2)
    s = large**-2
    return np.where(z < 10, direct, (1 / 12 - (1 / 360 - (1 / 1260 - s / 1680) * s) * s) / large)


class _Rule(NamedTuple):  # Numba takes named tuples
    """Gauss-Legendre on [-1, 1], and what else can be had from values at its nodes."""

    nodes: Vector
    weights: Vector
    antiderivative: Matrix  # the integrals from -1 to each node
    last: Matrix  # the last two Legendre coefficients


@cache
def _rule() -> _Rule:
    size, legendre = 16, np.polynomial.legendre
    nodes, weights = legendre.leggauss(size)
    values, order = legendre.legvander(nodes, size), np.arange(size)
    coefficients = values[:, :size] * weights[:, None] * (order + 0.5)
    # The integral of P_k from -1 is (P_{k+1} - P_{k-1}) / (2k + 1); that of P_0 is P_1 + 1.
    integrals = (values[:, 1:] - np.roll(values, 1, axis=1)[:, :size]) / (2 * order + 1)
    integrals[:, 0] = nodes + 1
    return _Rule(nodes, weights, coefficients @ integrals.T, coefficients[:, -2:].copy())
