import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tercet import coupled, iwkr
from tercet.posterior import quick_propensities

LAWS = settings(max_examples=50)
COUNTS = arrays(np.float64, 5, elements=st.floats(1e-3, 1e6))
SOME = st.integers(1, 12)


def places(n: int, *, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=scale, size=(n, 3))


def odds(alpha, beta, common, *, seed: int = 0, rounds: int = 1) -> np.ndarray:
    """The mean of some rounds."""
    rng = np.random.default_rng(seed)
    return np.mean([coupled.propensities(alpha, beta, common, rng) for _ in range(rounds)], axis=0)


# --- overlap ---------------------------------------------------------------------------------------------


@LAWS
@given(SOME, st.floats(0.05, 20), st.floats(-1e5, 1e5))
def test_overlap_is_a_kernel_of_twice_the_variance_wherever_the_origin_is(n, bandwidth, shift):
    points = places(n) + shift
    common = coupled.overlap(points, bandwidth)
    expected = iwkr.rbf(points, points, np.sqrt(2) * bandwidth)
    np.testing.assert_allclose(common, expected, atol=1e-8)
    np.testing.assert_allclose(common, common.T, rtol=1e-12)
    np.testing.assert_array_equal(common.diagonal(), 1.0)


def test_overlap_is_the_correlation_of_two_kernel_estimates_among_even_references():
    grid = np.linspace(-8, 8, 4001)[:, None]
    queries = np.array([[-0.7], [0.0], [1.1]])
    weights = iwkr.rbf(queries, grid, 0.6)  # an estimate weighs the outcomes' luck by these
    shared = weights @ weights.T
    scale = np.sqrt(shared.diagonal())
    np.testing.assert_allclose(coupled.overlap(queries, 0.6), shared / np.outer(scale, scale), atol=1e-6)


def test_copies_overlap_wholly():
    common = coupled.overlap(np.repeat(places(3, scale=1e3), 40, axis=0), 0.5)
    np.testing.assert_array_equal(common, np.kron(np.eye(3), np.ones((40, 40))))


# --- propensities ----------------------------------------------------------------------------------------


@LAWS
@given(COUNTS, COUNTS, st.floats(0.01, 100))
def test_propensities_are_a_distribution_with_any_evidence(alpha, beta, bandwidth):
    chances = odds(alpha, beta, coupled.overlap(places(5), bandwidth))
    assert (chances >= 0).all()
    assert chances.sum() == pytest.approx(1, abs=1e-12)


@LAWS
@given(COUNTS, COUNTS, st.floats(0.3, 3), st.permutations(range(5)))
def test_the_order_of_the_arms_does_not_matter(alpha, beta, bandwidth, order):
    alpha = alpha + np.arange(5)  # no two equal arms, whose luck could be exchanged
    beta = beta * (1 + np.arange(5) / 7)
    common = coupled.overlap(places(5), bandwidth)
    turned = odds(alpha[order], beta[order], common[np.ix_(order, order)])
    # A rounding may decide a draw or two.
    np.testing.assert_allclose(turned, odds(alpha, beta, common)[order], atol=2.5 / coupled.DRAWS)


def normal_odds(alpha, beta) -> float:
    """The first of two arms wins, where the log-odds of either are normal and independent."""
    from scipy.special import digamma, polygamma

    mean, variance = digamma(alpha) - digamma(beta), polygamma(1, alpha) + polygamma(1, beta)
    return float(stats.norm.cdf((mean[0] - mean[1]) / np.sqrt(variance.sum())))


@LAWS
@given(*[arrays(np.float64, 2, elements=st.floats(1e-3, 1e6)) for _ in range(2)], st.integers(0, 99))
def test_two_arms_far_apart_have_a_closed_form(alpha, beta, seed):
    expected = normal_odds(alpha, beta)
    found = odds(alpha, beta, np.eye(2), seed=seed)[0]
    # Mirrored draws are at least as exact as others; a tie moves nothing that is wider than 1e-3.
    assert found == pytest.approx(expected, abs=5 * np.sqrt(0.25 / coupled.DRAWS) + 0.005)


@given(*[arrays(np.float64, 2, elements=st.floats(1, 1e4)) for _ in range(2)])
def test_a_normal_in_place_of_a_betas_log_odds_changes_the_odds_of_two_arms_little(alpha, beta):
    # A random search found .068 with a parameter of 1 and .028 from 5 on.
    bound = 0.07 if min(alpha.min(), beta.min()) < 5 else 0.03
    assert normal_odds(alpha, beta) == pytest.approx(quick_propensities(alpha, beta)[0], abs=bound)


@settings(max_examples=20)
@given(*[arrays(np.float64, 4, elements=st.floats(5, 300)) for _ in range(2)])
def test_arms_far_apart_have_the_odds_of_independent_draws(alpha, beta):
    found = odds(alpha, beta, coupled.overlap(1e3 * np.eye(4), 1.0), rounds=8)
    # 5 standard errors of 8 x 1,024 draws, and the normal in place of a Beta.
    error = 5 * np.sqrt(0.25 / 8 / coupled.DRAWS) + 0.03
    np.testing.assert_allclose(found, quick_propensities(alpha, beta), atol=error)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, -0.9])
def test_draws_are_as_correlated_as_they_are_told(correlation):
    from scipy.special import polygamma

    alpha, beta = np.array([3.0, 5.0]), np.array([7.0, 9.0])
    common = np.array([[1.0, correlation], [correlation, 1.0]])
    mean = coupled._log_odds(alpha, beta)[0]
    a, b = np.sqrt(polygamma(1, alpha) + polygamma(1, beta))
    expected = stats.norm.cdf((mean[0] - mean[1]) / np.sqrt(a**2 + b**2 - 2 * correlation * a * b))
    found = odds(alpha, beta, common, rounds=40)[0]
    assert found == pytest.approx(expected, abs=5 * np.sqrt(0.25 / 40 / coupled.DRAWS))


@pytest.mark.parametrize("copies", [1, 10, 50, 500])
@pytest.mark.parametrize("jitter", [0.0, 1e-9, 1e-6])
def test_copies_of_an_arm_win_as_often_as_the_arm_alone(copies, jitter):
    alpha, beta, points = np.array([40.0, 3.0, 9.0]), np.array([60.0, 9.0, 7.0]), places(3)
    alone = odds(alpha, beta, coupled.overlap(points, 1.0), rounds=4)
    rows = np.r_[0, np.full(copies, 1), 2]
    near = points[rows] + places(len(rows), seed=1, scale=jitter)
    many = odds(alpha[rows], beta[rows], coupled.overlap(near, 1.0), seed=1, rounds=4)
    group = [many[0], many[1:-1].sum(), many[-1]]
    # 5 standard errors of the difference between two lots of 4 x 1,024 draws.
    np.testing.assert_allclose(group, alone, atol=5 * np.sqrt(2 * 0.25 / 4 / coupled.DRAWS))
    if jitter < 1e-6:
        np.testing.assert_allclose(many[1:-1], many[1], atol=1e-12)


def test_independent_draws_lack_that_law():
    chances = [
        quick_propensities(np.r_[101.0, np.full(m, 6.0)], np.r_[901.0, np.full(m, 96.0)])[0]
        for m in (1, 10, 50, 500)
    ]
    np.testing.assert_allclose(chances, [0.94, 0.57, 0.12, 0.0], atol=0.005)


def test_copies_that_are_a_rounding_apart_share_evenly():
    alpha, beta = np.full(6, 4.0) * (1 + 1e-7 * np.arange(6)), np.full(6, 6.0)
    chances = odds(alpha, beta, np.ones((6, 6)))
    np.testing.assert_allclose(chances, 1 / 6, atol=1e-12)


def test_a_single_arm_is_certain():
    assert odds([2.0], [3.0], np.ones((1, 1))).tolist() == [1.0]
    assert odds([0.0], [3.0], np.ones((1, 1))).tolist() == [1.0]


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [
        ([0.0, 3.0, 2.0], [3.0, 0.0, 2.0], [0, 1, 0]),
        ([1.0, 3.0, 2.0], [0.0, 0.0, 2.0], [0.5, 0.5, 0]),
        ([0.0, 0.0, 2.0], [3.0, 1.0, 2.0], [0, 0, 1]),
        ([0.0, 0.0, 0.0], [3.0, 1.0, 2.0], [1 / 3, 1 / 3, 1 / 3]),
    ],
)
@pytest.mark.parametrize("common", [np.eye(3), np.ones((3, 3))], ids=["apart", "copies"])
def test_point_masses_win_or_lose_all_and_share_ties(alpha, beta, expected, common):
    np.testing.assert_allclose(odds(alpha, beta, common), expected, atol=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1e6, 1e30])
def test_extreme_parameters_stay_finite(size):
    chances = odds(np.full(3, size), np.full(3, size), np.eye(3), rounds=4)
    np.testing.assert_allclose(chances, 1 / 3, atol=5 * np.sqrt(2 / 9 / 4 / coupled.DRAWS))


@LAWS
@given(COUNTS, COUNTS)
def test_the_generator_moves_on_by_the_same_amount_whatever_the_arms(alpha, beta):
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first = coupled.propensities(alpha, beta, np.eye(5), one)
    coupled.propensities(np.ones(5), np.ones(5), np.ones((5, 5)), other)
    assert one.random() == other.random()
    again = coupled.propensities(alpha, beta, np.eye(5), np.random.default_rng(3))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("alpha", "beta", "message"),
    [
        ([], [], "at least one arm"),
        ([0.0], [0.0], "both be zero"),
        ([-1.0], [1.0], "negative"),
        ([1.0, 1.0], [1.0, 1.0], "a row for each of 2 arms"),
    ],
)
def test_bad_parameters_are_named(alpha, beta, message):
    with pytest.raises(ValueError, match=message):
        coupled.propensities(alpha, beta, np.ones((1, 1)), np.random.default_rng(0))
