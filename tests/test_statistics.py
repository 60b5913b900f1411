import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tercet.statistics import holm, interval, lift, p_value


def test_the_interval_is_students() -> None:
    mean, half = interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2
    assert half == pytest.approx(4.302653 / np.sqrt(3), abs=1e-6)  # t(.975; 2), from tables
    assert np.isnan(interval(np.array([1.0])).half)


def test_the_test_is_paired() -> None:
    rng = np.random.default_rng(0)
    worlds = rng.normal(scale=100, size=8)
    ours, theirs = worlds + rng.normal(size=8), worlds + 3 + rng.normal(size=8)
    assert p_value(ours - theirs) == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert p_value(ours - theirs) < 0.01 < stats.ttest_ind(ours, theirs).pvalue


@pytest.mark.parametrize("units", [3, 5, 10])
def test_equal_differences_are_counted_as_signs(units: int) -> None:
    sign_test = stats.binomtest(units, units).pvalue
    assert p_value(np.ones(units)) == pytest.approx(sign_test)
    assert p_value(-0.1 - 1e-12 * np.arange(units)) == pytest.approx(sign_test)  # but for rounding
    assert p_value(np.zeros(units)) == 1


@pytest.mark.parametrize("units", [0, 1, 2])
def test_fewer_than_three_units_tell_nothing(units: int) -> None:
    assert np.isnan(p_value(np.ones(units)))
    assert np.isnan(lift(np.ones(units), np.ones(units))[1:]).all()


def test_the_interval_of_nothing_is_unknown() -> None:
    assert np.isnan(interval(np.zeros(0))).all()


@given(arrays(float, st.integers(1, 8), elements=st.floats(0, 1)))
def test_holm_is_between_the_raw_values_and_bonferroni_and_keeps_their_order(raw: np.ndarray) -> None:
    corrected = holm(raw)
    assert (corrected >= raw).all()
    assert (corrected <= np.minimum(len(raw) * raw, 1) + 1e-15).all()
    assert (np.diff(corrected[np.argsort(raw, kind="stable")]) >= 0).all()


def test_holm_does_not_count_what_was_not_tested() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, np.nan, 0.04])), [0.02, np.nan, 0.04])


def test_a_lift_is_a_ratio_of_sums_within_its_interval() -> None:
    rng = np.random.default_rng(0)
    theirs = rng.uniform(10, 20, size=12)
    ours = 1.1 * theirs + rng.normal(scale=0.2, size=12)
    mean, low, high = lift(ours, theirs)
    assert mean == pytest.approx(ours.sum() / theirs.sum() - 1)
    assert low < mean < high
    assert high - low < 0.02  # paired: the spread between units cancels
    assert np.isnan(lift(ours, 0 * theirs).mean)


@pytest.mark.parametrize("units", [3, 5, 10])
def test_the_interval_of_a_lift_covers_the_truth_with_few_units_too(units: int) -> None:
    rng = np.random.default_rng(units)
    truth, covered, repeats = 0.1, 0, 400
    for _ in range(repeats):
        worlds = rng.uniform(10, 20, size=units)
        theirs = worlds * rng.lognormal(sigma=0.3, size=units)
        ours = (1 + truth) * worlds * rng.lognormal(sigma=0.3, size=units)
        _, low, high = lift(ours, theirs)
        covered += low <= truth <= high
    # Bare percentiles cover .77, .83 and .89; a standard error is .011.
    assert 0.91 <= covered / repeats <= 0.99


def test_nobody_loses_more_than_everything_and_a_rival_without_rewards_leaves_the_top_open() -> None:
    assert lift(np.array([0.0, 0.0, 3.0]), np.array([5.0, 6.0, 5.0])).low == -1
    assert lift(np.array([5.0, 6.0, 5.0]), np.array([0.0, 0.0, 3.0])).high == np.inf
