import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.policies.counters import ClickCounters


def stream(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes of four arms, late ones among them."""
    rng = np.random.default_rng(seed)
    return rng.integers(4, size=n), rng.random(n), rng.uniform(0, 50, size=n)


def brute(
    keys: np.ndarray, rewards: np.ndarray, times: np.ndarray, *, arm: int, now: float, half_life: float
) -> np.ndarray:
    """Clicks, shows and smoothed rate, each a sum over all outcomes."""
    worth = 0.5 ** ((now - times) / half_life)
    average = ((worth * rewards).sum() + 0.5) / (worth.sum() + 1)
    clicks, shows = (worth * rewards)[keys == arm].sum(), worth[keys == arm].sum()
    return np.array([clicks, shows, (clicks + 2 * average) / (shows + 2)])


@given(n=st.integers(0, 40), seed=st.integers(0, 1000), half_life=st.floats(1, 100))
@settings(max_examples=40)
def test_counts_equal_the_sums_of_what_every_outcome_is_still_worth(
    n: int, seed: int, half_life: float
) -> None:
    keys, rewards, times = stream(n, seed)
    counters = ClickCounters(half_life=half_life)
    counters.watch(keys, rewards, times)
    expected = [brute(keys, rewards, times, arm=arm, now=60.0, half_life=half_life) for arm in range(4)]
    np.testing.assert_allclose(counters.read(np.arange(4), 60.0), expected, rtol=1e-9)


@given(seed=st.integers(0, 1000), cut=st.integers(0, 30))
@settings(max_examples=20)
def test_an_outcome_is_told_only_what_came_before_it(seed: int, cut: int) -> None:
    keys, rewards, times = stream(30, seed)
    whole, changed = ClickCounters(half_life=9.0), ClickCounters(half_life=9.0)
    later = np.where(np.arange(30) < cut, rewards, 1 - rewards)
    before = whole.watch(keys, rewards, times)
    np.testing.assert_array_equal(changed.watch(keys, later, times)[: cut + 1], before[: cut + 1])
    parts = ClickCounters(half_life=9.0)
    split = [parts.watch(keys[part], rewards[part], times[part]) for part in (slice(cut), slice(cut, None))]
    np.testing.assert_array_equal(np.vstack(split), before)


def test_a_look_back_in_time_gets_the_counts_as_they_are() -> None:
    counters = ClickCounters(half_life=1.0)
    counters.watch(np.array([3]), np.array([1.0]), np.array([10.0]))
    np.testing.assert_array_equal(counters.read(np.array([3]), -1000.0), counters.read(np.array([3]), 10.0))


def test_arrays_rebuild_the_counters() -> None:
    keys, rewards, times = stream(20, 0)
    counters = ClickCounters(half_life=5.0)
    for each in (keys[:0], keys):  # empty ones too
        counters.watch(each, rewards[: len(each)], times[: len(each)])
        again = ClickCounters.from_arrays(counters.to_arrays(), half_life=5.0)
        np.testing.assert_array_equal(again.read(np.arange(5), 60.0), counters.read(np.arange(5), 60.0))


def test_a_half_life_must_be_positive() -> None:
    with pytest.raises(ValueError, match="half_life must be a finite number above 0"):
        ClickCounters(half_life=0.0)
