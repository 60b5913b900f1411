import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from tercet import gaussian


@given(
    st.floats(-3, 3), st.floats(-6, 1), st.floats(-6, 1), st.floats(-1e3, 1e3)
)  # sharp beside diffuse, far from zero
def test_two_arms_have_a_closed_form(gap: float, log_a: float, log_b: float, shift: float) -> None:
    a, b = 10**log_a, 10**log_b
    expected = norm.cdf(gap / np.hypot(a, b))
    got = gaussian.propensities(np.array([shift + gap, shift]), np.array([a, b]))
    assert got[0] == pytest.approx(expected, abs=1e-8)


def test_many_arms_match_a_monte_carlo() -> None:
    rng = np.random.default_rng(0)
    mean, spread = rng.normal(size=12), 10 ** rng.uniform(-2, 0.3, size=12)
    draws = mean + spread * rng.normal(size=(200_000, 12))
    expected = np.bincount(draws.argmax(1), minlength=12) / len(draws)
    np.testing.assert_allclose(
        gaussian.propensities(mean, spread), expected, atol=5 * np.sqrt(0.25 / 200_000)
    )


def test_without_spread_the_best_takes_all_and_equals_share() -> None:
    np.testing.assert_allclose(gaussian.propensities(np.array([0.0, 2.0, 2.0]), np.zeros(3)), [0, 0.5, 0.5])
    np.testing.assert_allclose(gaussian.propensities(np.ones(4), np.zeros(4)), 0.25)
    np.testing.assert_allclose(gaussian.propensities(np.array([3.0]), np.array([0.0])), 1)


def test_shares_count_the_winners_of_rows_and_split_ties() -> None:
    scores = np.array([[1.0, 0.0], [2.0, 3.0], [5.0, 5.0], [0.0, 9.0]])
    np.testing.assert_allclose(gaussian.shares(scores), [1.5 / 4, 2.5 / 4])


def test_scores_within_a_tie_share_the_row_and_infinities_take_it() -> None:
    scores = np.array([[1.0, 0.9, 0.0], [0.0, 0.8, 1.0], [np.inf, 9.0, np.inf], [-np.inf, -np.inf, -np.inf]])
    np.testing.assert_allclose(gaussian.shares(scores, tie=0.1), np.array([4 / 3, 5 / 6, 11 / 6]) / 4)
