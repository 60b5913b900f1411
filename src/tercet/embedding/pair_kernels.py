"""The loops of leave-one-out over all pairs of a group, compiled: see `leave_one_out.predictions`.

The kernel is symmetric, so that every sum runs down a column: its terms come in the order of the rows, and
the loops along a row vectorise as they are.
"""

import functools

import numba
import numpy as np

from tercet.reference.kernels import exp2_single

LOG2_E = np.float32(1.4426950408889634)

# Unlike sums, a product and a sum in one instruction never depend on where the compiled code came from.
kernel = functools.partial(numba.njit, cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@kernel()
def densities(kappa, faint):
    """Make inner products kernels, with a diagonal of zeros; return the sums of columns, each with itself."""
    result, half = np.ones(kappa.shape[:2], np.float32), np.empty(kappa.shape[1], np.float32)
    for g in range(kappa.shape[0]):
        for i in range(kappa.shape[1]):
            half[i] = kappa[g, i, i] / np.float32(2)
        for i in range(kappa.shape[1]):
            row, sums, own = kappa[g, i], result[g], half[i]
            for j in range(len(row)):
                exponent = row[j] - own - half[j]
                row[j] = exp2_single(LOG2_E * min(max(exponent, faint), np.float32(0)))
            row[i] = 0
            for j in range(len(row)):
                sums[j] += row[j]
    return result


@kernel()
def weighted(kappa, density, rewards):
    """Return each row's sums of weights, and of weights times rewards."""
    totals, earned = np.zeros(density.shape, np.float32), np.zeros(density.shape, np.float32)
    for g in range(kappa.shape[0]):
        for i in range(kappa.shape[1]):
            row, total, gain = kappa[g, i], totals[g], earned[g]
            w, r = density[g, i], rewards[g, i]
            for j in range(len(row)):
                weight = row[j] / (w - row[j])
                total[j] += weight
                gain[j] += r * weight
    return totals, earned


@kernel()
def sinking(kappa, density, rewards, u, v):
    """Return s, the loss's derivatives by each density with their signs turned."""
    result = np.zeros(density.shape, np.float32)
    for g in range(kappa.shape[0]):
        w, r, s = density[g], rewards[g], result[g]
        for i in range(kappa.shape[1]):
            row, ui, vi = kappa[g, i], u[g, i], v[g, i]
            for j in range(len(row)):
                others = w[j] - row[j]
                s[j] += (ui * r[j] - vi) * (row[j] / (others * others))
    return result


@kernel()
def pulls(kappa, density, rewards, u, v, s, out):
    """Write Q + Qᵀ: how each pair is pulled together."""
    for g in range(kappa.shape[0]):
        w, r, ug, vg, sg = density[g], rewards[g], u[g], v[g], s[g]
        for i in range(kappa.shape[1]):
            row, result = kappa[g, i], out[g, i]
            wi, ri, ui, vi, si = w[i], r[i], ug[i], vg[i], sg[i]
            for j in range(len(row)):
                here, there = w[j] - row[j], wi - row[j]
                here, there = here * here, there * there
                both = (ui * r[j] - vi) * w[j] * there + (ug[j] * ri - vg[j]) * wi * here
                result[j] = row[j] * (both / (here * there) - si - sg[j])
