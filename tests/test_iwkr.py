import numpy as np
import pytest
from scipy import integrate

from tercet import iwkr

SIGMA = 0.1


def sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def normal(x: float) -> float:
    return float(np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


def limit(query: float, *, importance: bool) -> float:
    """mu-hat for infinitely many samples of p = N(0, 1), by quadrature: w tends to 1 / (kappa * p)."""

    def weight(s: float) -> float:
        if not importance:
            return 1.0
        spread = np.sqrt(1 + SIGMA**2)
        return float(spread / normal(s / spread))

    def kappa(s: float) -> float:
        return float(np.exp(-((s - query) ** 2) / (2 * SIGMA**2)))

    near = {"limit": 200, "epsabs": 1e-13, "points": [query]}
    low, high = query - 8 * SIGMA, query + 8 * SIGMA
    top = integrate.quad(lambda s: kappa(s) * weight(s) * normal(s) * sigmoid(2 * s), low, high, **near)[0]
    return float(top / integrate.quad(lambda s: kappa(s) * weight(s) * normal(s), low, high, **near)[0])


@pytest.mark.parametrize(("importance", "bias"), [(False, -3.69e-3), (True, -1.62e-3)])
def test_importance_weights_remove_the_bias_of_the_sampling_density(importance: bool, bias: float) -> None:
    # NWKR ≈ σ²(½μ″ + μ′p′/p), IWKR ≈ ½σ²μ″ at s = 1; the next term is of order σ⁴ = 1e-4 times derivatives.
    assert limit(1.0, importance=importance) - sigmoid(2) == pytest.approx(bias, abs=5e-5)


def test_the_estimators_reach_these_limits_with_many_samples() -> None:
    rng = np.random.default_rng(0)
    n, query = 6_000, np.array([[1.0]])
    s = rng.normal(size=(n, 1))
    r = 1 / (1 + np.exp(-2 * s[:, 0]))  # noise-free rewards: what is left is bias and the sample of s
    kappa = iwkr.rbf(query, s, SIGMA)
    w = 1 / iwkr.densities(iwkr.rbf(s, s, SIGMA))
    # About 360 samples lie within a bandwidth; mu varies by .02 there, so one standard error is 1e-3.
    assert iwkr.nwkr(kappa, r)[0] == pytest.approx(limit(1.0, importance=False), abs=3e-3)
    assert iwkr.iwkr(kappa, w, r)[0] == pytest.approx(limit(1.0, importance=True), abs=3e-3)
    assert abs(iwkr.iwkr(kappa, w, r)[0] - sigmoid(2)) < abs(iwkr.nwkr(kappa, r)[0] - sigmoid(2))


def test_a_crowd_counts_once_per_neighbourhood() -> None:
    s = np.array([[0.0]] * 99 + [[1.0]])
    r = np.array([0.0] * 99 + [1.0])
    kappa = iwkr.rbf(np.array([[0.5]]), s, 0.25)
    w = 1 / iwkr.densities(iwkr.rbf(s, s, 0.25))
    assert iwkr.nwkr(kappa, r)[0] == pytest.approx(0.01)
    # The crowd spills a little over its neighbour, whose density is 1 + 99·exp(-8).
    assert iwkr.iwkr(kappa, w, r)[0] == pytest.approx(0.5, abs=0.01)


def test_the_truncated_kernel_is_the_kernel_within_one_bandwidth() -> None:
    points = np.linspace(0, 3, 31)[:, None]
    full, cut = iwkr.rbf(points, points, 1.0), iwkr.truncated_rbf(points, points, 1.0)
    near = np.abs(points - points.T) <= 1 + 1e-12
    np.testing.assert_array_equal(cut[cut > 0], full[cut > 0])
    assert (cut > 0).sum() <= near.sum()
    assert not cut[~near].any()


def test_without_evidence_the_mean_is_one_half() -> None:
    empty = np.zeros((2, 3))
    np.testing.assert_array_equal(iwkr.nwkr(empty, np.ones(3)), 0.5)
    np.testing.assert_array_equal(iwkr.mass(empty), 0)


def test_distances_do_not_cancel_far_from_the_origin() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-8, 8, size=(2, 20, 4)) / 16  # differences are exact in binary
    near, far = iwkr.squared_distances(a, b), iwkr.squared_distances(a + 2.0**40, b + 2.0**40)
    np.testing.assert_array_equal(near, far)
