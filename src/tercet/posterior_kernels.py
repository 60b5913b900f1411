"""The integral of `tercet.quadrature`, compiled: one march along the logit scale, with exponentials only.

The march starts below everything that matters, carries every arm's CDF along, and takes steps as long as
sixteen Gauss-Legendre nodes allow. On the logit scale the log-density of Beta(alpha, beta) is
alpha y - (alpha + beta) softplus(y) + constant: concave, with straight lines at both ends.
"""

import functools
import math

import numba
import numpy as np

DEEP = 16.0  # exp(-16) = 1e-7: what is less probable than that is left out
RIPPLE = 1e-5  # the largest last Legendre coefficient of a step; the integral is far more exact than that
HALF_LOG_TWO_PI = 0.9189385332046727

# Without fast-math: code that was just compiled and code from the cache take their parts from different
# places, and with licence to regroup sums they would differ in the last bit.
kernel = functools.partial(numba.njit, cache=True, nogil=True, error_model="numpy")


@kernel()
def quick(alpha, beta, rule):
    """Return the normalised propensities of arms whose parameters are all positive."""
    mode = np.log(alpha) - np.log(beta)
    start = lowest(alpha, beta, mode)
    near = np.empty(len(alpha), np.bool_)
    for k in range(len(alpha)):
        near[k] = start < mode[k] or fall(alpha[k], beta[k], start - mode[k]) < DEEP + 4
    result = np.zeros(len(alpha))
    result[near] = march(alpha[near], beta[near], mode[near], start, rule)
    return result / result.sum()


@kernel()
def march(alpha, beta, mode, y, rule):
    """Integrate from y on until the largest draw is almost surely below."""
    arms, size = len(alpha), len(rule.nodes)
    log_peak, below, above, width, knee = np.empty(arms), np.empty(arms), np.empty(arms), math.inf, 0.0
    for k in range(arms):
        log_peak[k] = log_peak_of(alpha[k], beta[k])
        knee = max(knee, DEEP + math.log(1.0 + alpha[k] + beta[k]))
        below[k] = cdf_at(y, alpha[k], beta[k], mode[k], log_peak[k], rule)
        width = min(width, math.sqrt((alpha[k] + beta[k]) / alpha[k] / beta[k]))
    mass, cdf, shares, result = np.empty((arms, size)), np.empty((arms, size)), np.empty(arms), np.zeros(arms)
    half = 2.0 * width
    for _ in range(2000):
        half = min(half, longest(y, knee))
        ripple, rest = fill(y + half, half, alpha, beta, mode, log_peak, below, rule, mass, cdf, above)
        ripple = max(ripple, share(mass, cdf, rule, shares))
        if ripple > RIPPLE:
            half *= 0.5
            continue
        result += shares
        below[:] = above
        y += 2.0 * half
        if rest < math.exp(-DEEP):
            break
        if ripple < 0.01 * RIPPLE:
            half *= 2.0
    return result


@kernel()
def fill(middle, half, alpha, beta, mode, log_peak, below, rule, mass, cdf, above):
    """Write each arm's mass and CDF at the nodes; return their ripple and the chance of a draw beyond."""
    size = len(rule.nodes)
    step, up, down = half * rule.nodes, np.empty(size), np.empty(size)
    for j in range(size):
        up[j], down[j] = growth(middle, step[j]), growth(-middle, -step[j])
    ripple, beyond = 0.0, 0.0
    for k in range(len(alpha)):
        fallen = fall(alpha[k], beta[k], middle - mode[k])
        beyond += math.exp(-fallen) if middle > mode[k] else 1.0
        total, first, second = 0.0, 0.0, 0.0
        cdf[k] = below[k]
        slope, bend = (alpha[k], up) if alpha[k] <= beta[k] else (-beta[k], down)
        for j in range(size):
            exponent = log_peak[k] - fallen + slope * step[j] - (alpha[k] + beta[k]) * bend[j]
            m = half * math.exp(max(exponent, -700.0))  # subnormal numbers are slow
            mass[k, j] = m
            total += rule.weights[j] * m
            first += rule.last[j, 0] * m
            second += rule.last[j, 1] * m
            for i in range(size):
                cdf[k, i] += rule.antiderivative[j, i] * m
        above[k] = min(below[k] + total, 1.0)
        ripple = max(ripple, abs(first), abs(second))
    return ripple, beyond


@kernel()
def share(mass, cdf, rule, shares):
    """Write each arm's probability to be the largest within the step; return the integrands' ripple."""
    arms, size = mass.shape
    product = np.ones(size)
    for k in range(arms):
        for j in range(size):
            cdf[k, j] = min(max(cdf[k, j], 0.0), 1.0)
            mass[k, j] *= product[j]
            product[j] *= cdf[k, j]
    product[:] = 1.0
    ripple = 0.0
    for k in range(arms - 1, -1, -1):
        total, first, second = 0.0, 0.0, 0.0
        for j in range(size):
            m = mass[k, j] * product[j]
            product[j] *= cdf[k, j]
            total += rule.weights[j] * m
            first += rule.last[j, 0] * m
            second += rule.last[j, 1] * m
        shares[k] = total
        ripple = max(ripple, abs(first), abs(second))
    return ripple


@kernel()
def lowest(alpha, beta, mode):
    """Return a place that the largest draw exceeds, save for a probability of exp(-DEEP)."""
    low = -math.inf
    for k in range(len(alpha)):
        if low < mode[k] and (low == -math.inf or fall(alpha[k], beta[k], low - mode[k]) > DEEP):
            low = mode[k] - reach(mode[k], -1.0, alpha[k], beta[k], mode[k])
    # Chernoff: below its mode an arm's log-CDF is at most what the log-density has fallen. The sum over
    # arms is convex, so Newton's steps from the left never go too far.
    for _ in range(60):
        fallen, slope = 0.0, 0.0
        for k in range(len(alpha)):
            if low < mode[k]:
                fallen += fall(alpha[k], beta[k], low - mode[k])
                slope -= steepness(low, alpha[k], beta[k])
        if fallen < 1.2 * DEEP:
            break
        low += (fallen - DEEP) / slope
    return low


@kernel()
def cdf_at(y, alpha, beta, mode, log_peak, rule):
    """Integrate the density over the tail from y away from the mode."""
    side = 1.0 if y > mode else -1.0
    rest, knee, tail = reach(y, side, alpha, beta, mode), DEEP + math.log(1.0 + alpha + beta), 0.0
    half = 0.5 * rest
    while rest > 0.0:
        half = min(half, 0.5 * rest, longest(side * y, knee))
        total, first, second = 0.0, 0.0, 0.0
        for j in range(len(rule.nodes)):
            place = y + side * half * (1.0 + rule.nodes[j])
            m = half * math.exp(log_peak - fall(alpha, beta, place - mode))
            total += rule.weights[j] * m
            first += rule.last[j, 0] * m
            second += rule.last[j, 1] * m
        if max(abs(first), abs(second)) > RIPPLE:
            half *= 0.5
            continue
        tail += total
        y += side * 2.0 * half
        rest -= 2.0 * half
        half = 0.5 * rest
    return max(1.0 - tail, 0.0) if side > 0 else min(tail, 1.0)


@kernel()
def longest(y, knee):
    """Return the longest half step from y: a long one could jump over the bend between -knee and knee."""
    if y > knee:
        return math.inf
    return max(6.0, 0.5 * (-knee - y))


@kernel()
def reach(y, side, alpha, beta, mode):
    """Return how far it is from y, away from the mode, until the log-density has fallen by DEEP more."""
    here, slope = fall(alpha, beta, y - mode), side * steepness(y, alpha, beta)
    e = math.exp(-abs(y))
    bend = (alpha + beta) * e / (1.0 + e) ** 2
    far = 2.0 * DEEP / (slope + math.sqrt(slope * slope + 2.0 * bend * DEEP))
    for _ in range(60):
        # What has fallen is convex in the distance: a step of Newton's lands on the place or beyond, if
        # its rounding errors let it.
        excess = fall(alpha, beta, y + side * far - mode) - here - DEEP
        if 0.0 <= excess < 0.2 * DEEP:
            break
        far = max(far - excess / (side * steepness(y + side * far, alpha, beta)), 0.001 * far)
    return far


@kernel()
def fall(alpha, beta, t):
    """Return log(density at the mode / density at distance t), in a form whose large terms do not cancel."""
    if alpha > beta:
        alpha, beta, t = beta, alpha, -t
    p = alpha / (alpha + beta)
    if t < 1.0:
        grown = math.log1p(p * math.expm1(t))
    else:
        grown = math.log1p(-p) + softplus(math.log(p) - math.log1p(-p) + t)
    return (alpha + beta) * grown - alpha * t


@kernel()
def steepness(y, alpha, beta):
    """Return the derivative of `fall` at the place y."""
    e = math.exp(-abs(y))
    return (beta * e - alpha) / (1.0 + e) if y < 0.0 else (beta - alpha * e) / (1.0 + e)


@kernel()
def growth(y, step):
    """Return softplus(y + step) - softplus(y)."""
    if abs(step) < 1.0:
        return math.log1p(math.expm1(step) / (1.0 + math.exp(-y)))
    return softplus(y + step) - softplus(y)


@kernel()
def softplus(y):
    """Return log(1 + exp(y))."""
    return max(y, 0.0) + math.log1p(math.exp(-abs(y)))


@kernel()
def log_peak_of(alpha, beta):
    """Return the log-density at the mode."""
    spread = 0.5 * (math.log(alpha) + math.log(beta / (alpha + beta))) - HALF_LOG_TWO_PI
    return spread + stirling(alpha + beta) - stirling(alpha) - stirling(beta)


@kernel()
def stirling(z):
    """Return the error of Stirling's formula for log Gamma."""
    if z < 10.0:
        return math.lgamma(z) - ((z - 0.5) * math.log(z) - z + HALF_LOG_TWO_PI)
    s = 1.0 / (z * z)
    return (1 / 12 - (1 / 360 - (1 / 1260 - s / 1680) * s) * s) / z
