"""The two inner loops of the reference set, compiled: read for a decision, add to densities.

`tercet.reference.twins` holds the same two functions in NumPy, with the arguments explained. Here the
loops run along blocks of shape (dimension, BLOCK), so that they vectorise, and 2^x is a polynomial.
"""

import numba
import numpy as np

from tercet.reference.layout import BLOCK, NEGLIGIBLE

# Sums may be regrouped (that is what makes them vectorise); NaN and infinity never get here. Unlike the
# compiler switch of that name, this sets no processor flag: denormals elsewhere in the process are safe.
FAST = {"reassoc", "contract", "nsz", "arcp", "nnan", "ninf"}


@numba.njit(inline="always")
def exp2_single(x):
    """2^x for x <= 0, relative error 1e-7: 2^f = 1 + f·q(f) on [0, 1), minimax, exactly 1 at 0."""
    whole = np.floor(x)
    f = x - whole
    q = np.float32(0.00901702917583296) + f * np.float32(0.0018671304815714143)
    q = np.float32(0.2401644496977741) + f * (np.float32(0.05579991423423959) + f * q)
    q = np.float32(0.6931513118662238) + f * q
    power = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (np.float32(1) + f * q) * power


@numba.njit(inline="always")
def exp2_double(x):
    """2^x for -1000 <= x <= 1000, relative error 2e-14; the same polynomial, four degrees up."""
    x = max(x, -1000.0)
    whole = np.floor(x)
    f = x - whole
    q = 1.5359556991457686e-05 + f * (1.230580009139418e-06 + f * 1.4325067647747745e-07)
    q = 0.009618121015883519 + f * (0.0013333875271054826 + f * (0.00015396080483548783 + f * q))
    q = 0.693147180561866 + f * (0.2402265068782887 + f * (0.05550410982431571 + f * q))
    power = np.int64((np.int64(whole) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return (1.0 + f * q) * power


@numba.njit(inline="always")
def measure(block, point, distance):
    """Squared distance of a point to each row of a block, four coordinates a sweep."""
    dim = len(point)
    distance[:] = 0
    j = 0
    while j + 4 <= dim:
        p0, p1, p2, p3 = point[j], point[j + 1], point[j + 2], point[j + 3]
        for i in range(BLOCK):
            d0, d1 = block[j, i] - p0, block[j + 1, i] - p1
            d2, d3 = block[j + 2, i] - p2, block[j + 3, i] - p3
            distance[i] += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
        j += 4
    while j < dim:
        p0 = point[j]
        for i in range(BLOCK):
            d0 = block[j, i] - p0
            distance[i] += d0 * d0
        j += 1


@numba.njit(inline="always")
def measure_two(block, p, q, distance_p, distance_q):
    """Squared distances of two points to each row of a block."""
    dim = len(p)
    distance_p[:] = 0
    distance_q[:] = 0
    j = 0
    while j + 4 <= dim:
        p0, p1, p2, p3 = p[j], p[j + 1], p[j + 2], p[j + 3]
        q0, q1, q2, q3 = q[j], q[j + 1], q[j + 2], q[j + 3]
        for i in range(BLOCK):
            x0, x1, x2, x3 = block[j, i], block[j + 1, i], block[j + 2, i], block[j + 3, i]
            d0, d1, d2, d3 = x0 - p0, x1 - p1, x2 - p2, x3 - p3
            e0, e1, e2, e3 = x0 - q0, x1 - q1, x2 - q2, x3 - q3
            distance_p[i] += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3
            distance_q[i] += e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3
        j += 4
    while j < dim:
        p0, q0 = p[j], q[j]
        for i in range(BLOCK):
            d0, e0 = block[j, i] - p0, block[j, i] - q0
            distance_p[i] += d0 * d0
            distance_q[i] += e0 * e0
        j += 1


@numba.njit(inline="always")
def kernel_single(exponent, limit):
    """2^-exponent, or zero beyond the limit."""
    kappa = exp2_single(max(-exponent, np.float32(-NEGLIGIBLE)))
    return kappa if exponent <= limit else np.float32(0)


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def read(high, density, reward, time, count, queries, sharp, epoch, rate, fade, limit, importance, totals):
    """Add one chunk's Σκg, Σκgw and Σκgwr for each query to `totals`."""
    sharp, limit = np.float32(sharp), np.float32(limit)
    decay = np.zeros(BLOCK, np.float32)
    weight = np.zeros(BLOCK, np.float32)
    earned = np.zeros(BLOCK, np.float32)
    distance_n, distance_m = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    for b in range(-(-count // BLOCK)):
        offset = b * BLOCK
        rows = min(BLOCK, count - offset)
        if rows < BLOCK:
            decay[:] = weight[:] = earned[:] = 0
        for i in range(rows):
            g = 1.0
            if rate > 0.0:
                g = exp2_double((time[offset + i] - epoch) * rate)
            w = g
            if importance:
                w = g / max(density[offset + i], g)  # Eq. 4; a density is at least its own reference
            decay[i] = g * fade
            weight[i] = w
            earned[i] = weight[i] * reward[offset + i]
        for n in range(0, len(queries), 2):  # two at a time: each coordinate is loaded once for both
            m = min(n + 1, len(queries) - 1)
            measure_two(high[b], queries[n], queries[m], distance_n, distance_m)
            mass_n = weight_n = earned_n = np.float32(0)
            mass_m = weight_m = earned_m = np.float32(0)
            for i in range(BLOCK):
                kappa_n = kernel_single(distance_n[i] * sharp, limit)
                kappa_m = kernel_single(distance_m[i] * sharp, limit)
                mass_n += kappa_n * decay[i]
                weight_n += kappa_n * weight[i]
                earned_n += kappa_n * earned[i]
                mass_m += kappa_m * decay[i]
                weight_m += kappa_m * weight[i]
                earned_m += kappa_m * earned[i]
            totals[n, 0] += mass_n
            totals[n, 1] += weight_n
            totals[n, 2] += earned_n
            if m > n:
                totals[m, 0] += mass_m
                totals[m, 1] += weight_m
                totals[m, 2] += earned_m


@numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def add(high, low, split, density, time, first, last, points, weights, sharp, epoch, rate, limit, sums):
    """Add each point's kernel to the densities of rows first..last, and the rows' kernels to `sums`."""
    whole = np.empty(high.shape[1:])
    decay = np.ones(BLOCK)
    distance = np.empty(BLOCK)
    for b in range(first // BLOCK, -(-last // BLOCK)):
        start, stop = max(0, first - b * BLOCK), min(BLOCK, last - b * BLOCK)
        mine = density[b * BLOCK + start : b * BLOCK + stop]
        if rate > 0.0:
            for i in range(start, stop):
                decay[i] = exp2_double((time[b * BLOCK + i] - epoch) * rate)
        if split:
            for j in range(len(whole)):
                for i in range(BLOCK):
                    whole[j, i] = np.float64(high[b, j, i]) + np.float64(low[b, j, i])
        for n in range(len(points)):
            if split:
                measure(whole, points[n], distance)
            else:
                measure(high[b], points[n], distance)
            # Views from zero: Numba vectorises no loop whose index it must suspect of being negative.
            distances, decays = distance[start:stop], decay[start:stop]
            total = 0.0
            for i in range(len(mine)):
                exponent = distances[i] * sharp
                kappa = exp2_double(-exponent)
                kappa = kappa if exponent <= limit else 0.0
                mine[i] += weights[n] * kappa
                total += decays[i] * kappa
            sums[n] += total
