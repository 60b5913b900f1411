from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback
from tercet.policies.correlated import CorrelatedArms, PseudoRewards, level

RNG = np.random.default_rng  # made anew for each call
ARMS = np.eye(4)
NAMES = np.array([10, 20, 30, 40])


def log(arms: list[int], rewards: list[float]) -> Feedback:
    n = len(arms)
    return Feedback(
        contexts=np.zeros((n, 1)), arms=ARMS[arms], rewards=np.array(rewards), times=np.arange(n),
        arm_ids=NAMES[arms],
    )  # fmt: skip


def some(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    return log(rng.integers(3, size=n).tolist(), rng.choice([0.0, 0.5, 1.0], size=n).tolist())


def brute_bound(
    history: Feedback, arm: int, other: int, reward: float, *, reach: int, confidence: float
) -> float:
    """s(arm, other, reward), by looking around every outcome of the arm."""
    assert history.arm_ids is not None
    found = []
    for row in np.flatnonzero(history.arm_ids == arm):
        around = [i for i in range(row - reach, row + reach + 1) if 0 <= i < len(history)]
        if any(history.arm_ids[i] == other and history.rewards[i] == reward for i in around):
            found.append(history.rewards[row])
    if not found or arm == other:
        return 1.0
    return min(1.0, np.mean(found) + np.sqrt(np.log(1 / (1 - confidence)) / (2 * len(found))))


@given(st.integers(0, 60), st.integers(1, 4), st.floats(0, 0.99))
@settings(max_examples=30)
def test_the_table_equals_a_count_by_hand(n: int, reach: int, confidence: float) -> None:
    history = some(n)
    table = PseudoRewards.of(history, reach=reach, bins=3, confidence=confidence)
    got = table.between(NAMES, NAMES)
    expected = [
        [
            [brute_bound(history, a, b, r, reach=reach, confidence=confidence) for r in (0.0, 0.5, 1.0)]
            for b in NAMES
        ]
        for a in NAMES
    ]
    np.testing.assert_allclose(got, expected)


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 99))
@settings(max_examples=40)
def test_competitive_arms_equal_the_definition_written_out(logged: int, played: int, seed: int) -> None:
    history, outcomes = some(logged, seed), some(played, seed + 100)
    policy = CorrelatedArms(bins=3, confidence=0.3, reach=2, explore="ucb")
    policy.fit(history, RNG(0), remember=False)
    policy.update(outcomes, RNG(0))
    assert outcomes.arm_ids is not None
    earned = {name: outcomes.rewards[outcomes.arm_ids == name] for name in NAMES}
    telling = [name for name in NAMES if played and len(earned[name]) >= played / len(NAMES)]
    means = {name: earned[name].mean() for name in telling}
    expected = []
    for arm in NAMES:
        bounds = [
            np.mean([brute_bound(history, arm, k, r, reach=2, confidence=0.3) for r in earned[k]])
            for k in telling
            if k != arm
        ]
        best = max(means.values(), default=0.0)
        expected.append(min(bounds, default=1.0) >= best - 1e-12 or means.get(arm) == best)
    tallies = policy._tallies.of(NAMES, None)
    counts = np.maximum(tallies[:, :-1].sum(1), 1e-9)
    got = policy._competitive(NAMES, tallies[:, :-1], tallies[:, -1] / counts)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("explore", ["thompson", "ucb"])
def test_without_a_history_it_is_the_plain_algorithm(explore: str) -> None:
    policy = CorrelatedArms(explore=explore, width=0.5)
    policy.fit(some(0), RNG(0))
    policy.update(log([0] * 6 + [1] * 3 + [2], [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]), RNG(0))
    mean, count = np.array([2 / 3, 1 / 3, 0]), np.array([6, 3, 1])
    choice = policy.choose([0.0], ARMS[:3], RNG(0), arm_ids=NAMES[:3])
    np.testing.assert_allclose(choice.means, mean)
    if explore == "ucb":
        assert choice.arm == np.argmax(mean + 0.5 * np.sqrt(2 * np.log(10) / count))
    else:
        draws = RNG(1).normal(mean, 0.5 / np.sqrt(count + 1), size=(100_000, 3))
        shares = np.bincount(draws.argmax(1), minlength=3) / len(draws)
        np.testing.assert_allclose(choice.propensities, shares, atol=5 * np.sqrt(0.25 / len(draws)))


def test_an_arm_that_the_others_outcomes_rule_out_is_not_explored() -> None:
    # Whenever arm 0 wins, arm 1 earns nothing, so with arm 0 winning there is no reason to try arm 1.
    rewards = np.repeat(RNG(0).integers(2, size=200), 2).astype(float)
    rewards[1::2] = 1 - rewards[1::2]
    policy = CorrelatedArms(reach=1, confidence=0.9)
    policy.fit(log([0, 1] * 200, rewards.tolist()), RNG(0), remember=False)
    before = policy.choose([0.0], ARMS, RNG(0), arm_ids=NAMES).propensities
    assert (before > 0).all()
    policy.update(log([0] * 8, [1.0] * 8), RNG(0))
    after = policy.choose([0.0], ARMS, RNG(0), arm_ids=NAMES).propensities
    assert after[1] == 0
    assert (after[[0, 2, 3]] > 0).all()  # of new arms nothing is known


def test_equal_faded_counts_leave_an_arm_to_compare_with() -> None:
    policy = CorrelatedArms()
    policy.fit(some(30), RNG(0))
    levels = np.full((3, 2), 0.05)  # the mean of .1, .1 and .1 is more than .1
    assert levels.sum(1).mean() > levels.sum(1).max()
    assert policy._competitive(NAMES[:3], levels, np.array([0.1, 0.9, 0.1]))[1]


def test_arms_without_outcomes_are_expected_to_be_average() -> None:
    policy = CorrelatedArms()
    policy.fit(log([0, 1, 0, 1], [1.0, 0.0, 1.0, 1.0]), RNG(0))
    means = policy.choose([0.0], ARMS, RNG(0), arm_ids=NAMES).means
    np.testing.assert_allclose(means, [1.0, 0.5, 0.75, 0.75])


def test_rewards_go_to_the_nearest_level() -> None:
    np.testing.assert_array_equal(level(np.array([0.0, 0.24, 0.26, 0.5, 0.75, 1.0]), 3), [0, 0, 1, 1, 2, 2])


def test_counts_fade_with_a_half_life_and_the_table_stays() -> None:
    policy = CorrelatedArms(half_life=1.0)
    policy.fit(log([0, 1, 0], [1.0, 0.0, 0.0]), RNG(0))
    tallies = policy._tallies.of(NAMES[:2], 2.0)
    np.testing.assert_allclose(tallies, [[1, 0.25, 0.25], [0.5, 0, 0]])
    assert policy._table is not None
    assert len(policy._table.cells) == 3


def test_an_untrained_policy_decides_and_can_be_saved(tmp_path: Path) -> None:
    CorrelatedArms(bins=4).save(tmp_path / "policy")
    again = CorrelatedArms.load(tmp_path / "policy")
    np.testing.assert_allclose(again.choose([0.0], ARMS, RNG(0)).propensities, 1 / 4)
    assert again.bins == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": -1.0}, "width must be a number of at least 0; got -1"),
        ({"reach": 0}, "reach must be a whole number"),
        ({"bins": 1}, "bins must be at least 2, for rewards of 0 and 1; got 1"),
        ({"confidence": 1.0}, r"confidence must lie in \[0, 1\), 1 left out; got 1"),
        ({"half_life": 0.0}, "half_life must be a finite number above 0"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CorrelatedArms(**options)
