"""The paper's estimator as pure functions: kernel, importance weights, regression (Eq. 3-5).

Written for reading and for tests, in float64 over whole matrices. The reference set computes the same
sums incrementally (tercet.reference), and training computes them with gradients (tercet.embedding).
Symbols are the paper's: s is an embedding, kappa a matrix of kernel values, eta the kernel mass,
W = 1/w the density at a reference.
"""

import numpy as np
from jaxtyping import Float

Kernel = Float[np.ndarray, "queries references"]


def squared_distances(
    s: Float[np.ndarray, "queries d"], s_ref: Float[np.ndarray, "references d"]
) -> Float[np.ndarray, "queries references"]:
    """‖s - s'‖² by differences: |s|² - 2s·s' + |s'|² cancels when points lie far from the origin."""
    total = np.zeros((len(s), len(s_ref)))
    for coordinate in range(s.shape[1]):
        total += np.subtract.outer(s[:, coordinate], s_ref[:, coordinate]) ** 2
    return total


def rbf(
    s: Float[np.ndarray, "queries d"], s_ref: Float[np.ndarray, "references d"], bandwidth: float
) -> Kernel:
    """kappa(s, s') = exp(-‖s - s'‖² / 2σ²), the kernel of Eq. 3."""
    return np.exp(squared_distances(s, s_ref) / (-2 * bandwidth**2))


def truncated_rbf(
    s: Float[np.ndarray, "queries d"], s_ref: Float[np.ndarray, "references d"], bandwidth: float
) -> Kernel:
    """The kernel of the regret proof (appendix A.3): rbf within one bandwidth, zero beyond."""
    squares = squared_distances(s, s_ref)
    return np.where(squares <= bandwidth**2, np.exp(squares / (-2 * bandwidth**2)), 0.0)


def mass(kappa: Kernel) -> Float[np.ndarray, " queries"]:
    """eta(s) = Σ kappa(s, s_i): how much evidence lies near each query (section 4.2)."""
    return kappa.sum(axis=1)


def densities(kappa: Float[np.ndarray, "n n"]) -> Float[np.ndarray, " n"]:
    """W_i = 1 / w(s_i) = Σ_j kappa(s_i, s_j), self included (the reciprocal of Eq. 4)."""
    return kappa.sum(axis=1)


def nwkr(kappa: Kernel, r: Float[np.ndarray, " references"]) -> Float[np.ndarray, " queries"]:
    """Nadaraya-Watson kernel regression (Eq. 3)."""
    return _average(kappa, r)


def iwkr(
    kappa: Kernel, w: Float[np.ndarray, " references"], r: Float[np.ndarray, " references"]
) -> Float[np.ndarray, " queries"]:
    """Importance weighted kernel regression (Eq. 5)."""
    return _average(kappa * w, r)  # w: a reference counts once per neighbourhood, not once per sample


def _average(weights: Kernel, r: Float[np.ndarray, " references"]) -> Float[np.ndarray, " queries"]:
    total = weights.sum(axis=1)
    # Without evidence the estimate says nothing: one half, and the mass of zero tells the reader so.
    return np.divide(weights @ r, total, out=np.full(len(total), 0.5), where=total > 0)
