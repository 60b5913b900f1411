"""Time intervals: equal counts, and as many as the drift asks for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.embedding import intervals
from tercet.types import Feedback


def drifting(n: int, changes: int, seed: int, *, contexts: int = 1) -> Feedback:
    """Four arms; which of them pays for a context changes so many times."""
    rng = np.random.default_rng(seed)
    arm, context = rng.integers(4, size=n), rng.normal(size=(n, contexts))
    times = np.arange(n, dtype=float)
    effects = rng.normal(size=(changes + 1, 4, 1 + contexts))[(times * (changes + 1) // n).astype(int), arm]
    logits = effects[:, 0] + (effects[:, 1:] * context).sum(axis=1)
    rewards = (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(float)
    return Feedback(contexts=context, arms=np.eye(4)[arm], rewards=rewards, times=times)


@settings(max_examples=40, deadline=None)
@given(
    times=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60, unique=True),
    partitions=st.integers(1, 80),
    seed=st.integers(0, 100),
)
def test_intervals_have_equal_counts_and_follow_time_in_any_order(
    times: list[float], partitions: int, seed: int
) -> None:
    ordered = np.sort(np.array(times))
    interval = intervals.split(ordered, partitions)
    assert (np.diff(interval) >= 0).all()
    assert interval[0] >= 0
    assert interval[-1] < partitions
    counts = np.bincount(interval, minlength=partitions)
    assert counts.max() - counts.min() <= 1
    shuffle = np.random.default_rng(seed).permutation(len(times))
    np.testing.assert_array_equal(intervals.split(ordered[shuffle], partitions), interval[shuffle])


def test_equal_times_share_an_interval() -> None:
    days = np.repeat(np.arange(20.0), 100)
    np.testing.assert_array_equal(intervals.split(days, 20), days)
    np.testing.assert_array_equal(intervals.split(np.full(50, 3.0), 7), np.zeros(50))


@pytest.mark.parametrize("seed", range(3))
def test_a_stationary_history_is_not_divided(seed: int) -> None:
    assert intervals.choose(drifting(3000, 0, seed)) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("contexts", [0, 2])
def test_a_drifting_history_is_divided_about_as_often_as_it_changes(contexts: int, seed: int) -> None:
    assert intervals.choose(drifting(4000, 3, seed, contexts=contexts)) in (4, 8)


def test_a_drift_of_which_arm_suits_whom_is_seen() -> None:
    # No arm and no context pays more than another; the sign of their product does, and it flips once.
    rng = np.random.default_rng(2)
    times = np.arange(2000.0)
    contexts, arm = rng.normal(size=(2000, 3)), rng.integers(2, size=2000)
    suits = arm == (contexts[:, 0] > 0)
    history = Feedback(
        contexts=contexts, arms=np.eye(2)[arm], rewards=(suits == (times < 1000)).astype(float), times=times
    )
    assert intervals.choose(history) == 2


def test_the_order_of_rows_does_not_matter() -> None:
    history = drifting(4000, 3, 0)
    shuffled = history[np.random.default_rng(1).permutation(4000)]
    assert intervals.choose(shuffled) == intervals.choose(history)


def test_a_long_history_is_thinned_out_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MOST", 2000)
    assert intervals.choose(drifting(8000, 3, 0)) == 4


def test_too_few_rows_or_no_times_are_not_divided() -> None:
    history = drifting(4000, 3, 0)
    assert intervals.choose(history[:300]) == 1
    assert intervals.choose(history[:0]) == 1
    untimed = Feedback(contexts=history.contexts, arms=history.arms, rewards=history.rewards)
    assert intervals.choose(untimed) == 1
    assert set(intervals.of(untimed, None)) == {0}
    with pytest.raises(ValueError, match="3 time intervals need a history with times"):
        intervals.of(untimed, 3)


def test_a_given_number_is_used_as_it_is() -> None:
    np.testing.assert_array_equal(np.bincount(intervals.of(drifting(300, 0, 0), 3)), [100, 100, 100])
