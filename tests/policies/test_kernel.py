from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback
from tercet.policies import kernel
from tercet.policies.kernel import KernelUCB, exchange, median_distance, rbf

RNG = np.random.default_rng  # made anew for each call
CONTEXT, ARMS = RNG(8).normal(size=2), RNG(9).normal(size=(5, 3))


def some(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    return Feedback(contexts=contexts, arms=arms, rewards=rng.random(n), times=rng.random(n))


def brute(
    feedback: Feedback, history: Feedback, *, bandwidth: float, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every arm, entry by entry and with a general solver."""
    centre, spread = history.joint().mean(0), history.joint().std(0)
    points = [(row - centre) / spread / np.sqrt(5) for row in feedback.joint()]
    queries = [(np.concatenate([CONTEXT, arm]) - centre) / spread / np.sqrt(5) for arm in ARMS]

    def kernel(one: np.ndarray, two: np.ndarray) -> float:
        return float(np.exp(-np.sum((one - two) ** 2) / (2 * bandwidth**2)))

    gram = np.array([[kernel(one, two) for two in points] for one in points])
    near = np.array([[kernel(query, point) for point in points] for query in queries])
    solved = np.linalg.solve(gram + penalty * np.eye(len(points)), near.T).T
    variance = np.array([kernel(q, q) for q in queries]) - (solved * near).sum(1)
    return solved @ feedback.rewards, np.sqrt(variance / penalty)


@given(st.integers(1, 20), st.lists(st.integers(1, 12), min_size=1, max_size=5), st.floats(0.01, 10))
@settings(max_examples=25)
def test_scores_equal_brute_force_after_any_appends_and_evictions(
    window: int, sizes: list[int], penalty: float
) -> None:
    history = some(30, seed=99)
    policy = KernelUCB(bandwidth=0.7, penalty=penalty, width=0.5, window=window)
    policy.fit(history, RNG(0), remember=False)
    parts = [some(size, seed) for seed, size in enumerate(sizes)]
    for part in parts:
        policy.update(part, RNG(0))
    newest = Feedback.concat(parts)[-window:]
    mean, deviation = brute(newest, history, bandwidth=0.7, penalty=penalty)
    choice = policy.choose(CONTEXT, ARMS, RNG(0))
    np.testing.assert_allclose(choice.means, mean, atol=1e-8)
    assert choice.arm == np.argmax(mean + 0.5 * deviation)


@given(st.lists(st.integers(0, 11), min_size=1, max_size=40), st.floats(0.01, 10))
@settings(max_examples=40)
def test_the_inverse_equals_a_recompute_after_any_exchanges(slots: list[int], penalty: float) -> None:
    inverse, points = np.zeros((12, 12)), np.zeros((12, 3))
    used: list[int] = []
    for slot, point in zip(slots, RNG(0).normal(size=(len(slots), 3)), strict=True):
        points[slot] = point
        used = sorted({*used, slot})
        row = np.zeros(12)
        row[used] = rbf(points[slot : slot + 1], points[used], 1.0)[0]
        row[slot] += penalty
        exchange(inverse, slot, row)
    expected = np.zeros((12, 12))
    gram = rbf(points[used], points[used], 1.0) + penalty * np.eye(len(used))
    expected[np.ix_(used, used)] = np.linalg.inv(gram)
    np.testing.assert_allclose(inverse, expected, atol=1e-8)


def test_an_update_writes_the_inverse_in_place() -> None:
    policy = KernelUCB(window=40)
    policy.fit(some(60), RNG(0))
    before = policy._inverse
    policy.update(some(20, seed=1), RNG(0))
    assert policy._inverse is before


def test_a_memory_that_grows_has_room_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "FEWEST", 4)
    history, feedback = some(30, seed=99), some(50)
    policy = KernelUCB(bandwidth=0.7, penalty=0.5, window=37)
    policy.fit(history, RNG(0), remember=False)
    rooms = []
    for row in range(50):
        policy.update(feedback[row : row + 1], RNG(0))
        rooms.append(len(policy._inverse))
        mean, _ = brute(feedback[: row + 1][-37:], history, bandwidth=0.7, penalty=0.5)
        np.testing.assert_allclose(policy.choose(CONTEXT, ARMS, RNG(0)).means, mean, atol=1e-8)
    assert sorted(set(rooms)) == [4, 8, 16, 32, 37]


def test_a_long_life_with_a_full_window_loses_no_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    # Almost equal rows and a small penalty: the worst that happens to an inverse.
    monkeypatch.setattr(kernel, "REFRESH", 10**9)
    policy, feedback = KernelUCB(bandwidth=3.0, penalty=1e-3, window=40), some(2 * 500)
    for row in range(len(feedback)):
        policy.update(feedback[row : row + 1], RNG(0))
    lived = policy._inverse.copy()
    policy._refresh()
    np.testing.assert_allclose(lived, policy._inverse, atol=1e-6 * np.abs(lived).max())


def test_a_batch_and_its_rows_one_by_one_teach_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "REFRESH", 30)
    whole, split, feedback = KernelUCB(window=50), KernelUCB(window=50), some(80)
    whole.update(feedback, RNG(0))
    for row in range(len(feedback)):
        split.update(feedback[row : row + 1], RNG(0))
    np.testing.assert_allclose(whole._inverse, split._inverse, atol=1e-10)
    np.testing.assert_allclose(
        whole.choose(CONTEXT, ARMS, RNG(0)).means, split.choose(CONTEXT, ARMS, RNG(0)).means, atol=1e-10
    )


def test_fit_remembers_the_newest_outcomes_by_time_and_only_if_asked() -> None:
    policy, history = KernelUCB(window=7), some(30)
    assert history.times is not None
    policy.fit(history, RNG(0))
    newest = history[np.argsort(history.times)][-7:]
    np.testing.assert_array_equal(policy._memory.rewards, newest.rewards)
    policy.fit(history, RNG(0), remember=False)
    np.testing.assert_array_equal(policy.choose(CONTEXT, ARMS, RNG(0)).means, 0)
    np.testing.assert_allclose(policy.choose(CONTEXT, ARMS, RNG(0)).propensities, 1 / 5)


def test_the_bandwidth_is_the_median_distance_of_the_history_unless_given() -> None:
    points = np.array([[0.0], [1.0], [1.0], [5.0]])
    assert median_distance(points) == 4.0  # of 1, 1, 4, 4, 5: equal rows say nothing
    assert median_distance(points[1:3]) == median_distance(points[:0]) == 1.0
    for bandwidth, expected in ((None, 1.4), (0.25, 0.25)):
        policy = KernelUCB(bandwidth=bandwidth)
        policy.fit(some(200), RNG(0))
        assert policy._bandwidth == pytest.approx(expected, abs=0.1)


def test_an_untrained_policy_decides_and_can_be_saved(tmp_path: Path) -> None:
    policy = KernelUCB(width=0.5, bandwidth=2.0)
    policy.save(tmp_path / "policy")
    again = KernelUCB.load(tmp_path / "policy")
    for each in (policy, again):
        np.testing.assert_allclose(each.choose([0.0, 0.0], np.eye(3), RNG(0)).propensities, 1 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth must be a finite number above 0; got 0"),
        ({"penalty": 0.0}, "penalty must be at least 1e-06, or K"),
        ({"width": -1.0}, "width must be a number of at least 0; got -1"),
        ({"width": float("nan")}, "width must be"),
        ({"window": 0}, "window must be a whole number, 1 or more; got 0"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KernelUCB(**options)


def test_features_of_another_width_are_refused() -> None:
    policy = KernelUCB()
    policy.update(some(3), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(1, 3\)"):
        policy.choose([0.0], np.eye(3), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(2, 2\)"):
        policy.update(Feedback.one(context=[0.0, 0.0], arm=[1.0, 0.0], reward=1.0), RNG(0))
