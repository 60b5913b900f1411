from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback
from tercet.policies.simple import ArmThompson, Uniform

ARMS = np.eye(3)
RNG = np.random.default_rng  # made anew for each call


def outcomes(
    arms: list[int], rewards: list[float], times: list[float] | None = None, *, order: list[int] | None = None
) -> Feedback:
    feedback = Feedback(
        contexts=np.zeros((len(arms), 1)), arms=ARMS[arms], rewards=np.array(rewards),
        times=None if times is None else np.array(times),
    )  # fmt: skip
    return feedback if order is None else feedback[np.array(order)]


def beliefs(policy: ArmThompson, time: float | None = None) -> np.ndarray:
    posterior = policy.choose([0.0], ARMS, RNG(0), time=time).posterior
    assert posterior is not None
    return np.column_stack([posterior.alpha, posterior.beta])


def test_uniform_gives_every_arm_the_same_chance() -> None:
    rng = RNG(0)
    counts = np.bincount([Uniform().choose([0.0], ARMS, rng).arm for _ in range(3000)], minlength=3)
    np.testing.assert_allclose(Uniform().choose([0.0], ARMS, rng).propensities, 1 / 3)
    assert (np.abs(counts - 1000) < 5 * np.sqrt(3000 * 2 / 9)).all()


def test_counts_are_the_sums_of_rewards_over_the_prior() -> None:
    policy = ArmThompson(prior=(1.0, 1.0))
    policy.update(outcomes([0, 0, 1], [1.0, 0.25, 0.0]), RNG(0))
    np.testing.assert_allclose(beliefs(policy), [[2.25, 1.75], [1, 2], [1, 1]])


def test_an_unseen_arm_counts_as_two_looks_at_the_average_arm() -> None:
    policy = ArmThompson()
    policy.fit(outcomes([0] * 9, [1.0] * 3 + [0.0] * 6), RNG(0))
    np.testing.assert_allclose(beliefs(policy)[2], [2 * 3.5 / 10, 2 * 6.5 / 10])


def test_a_prior_of_a_history_without_any_sale_locks_no_arm_out() -> None:
    policy = ArmThompson()
    policy.fit(outcomes([0] * 9, [0.0] * 9), RNG(0))
    assert (beliefs(policy) > 0).all()


def test_counts_halve_every_half_life() -> None:
    policy = ArmThompson(half_life=10.0, prior=(1.0, 1.0))
    policy.update(outcomes([0], [1.0], [0.0]), RNG(0))
    np.testing.assert_allclose(beliefs(policy, 0.0)[0], [2, 1])
    np.testing.assert_allclose(beliefs(policy, 20.0)[0], [1.25, 1])


def test_a_decision_in_the_past_does_not_inflate_counts() -> None:
    policy = ArmThompson(half_life=10.0, prior=(1.0, 1.0))
    policy.update(outcomes([0], [1.0], [100.0]), RNG(0))
    np.testing.assert_allclose(beliefs(policy, 0.0)[0], [2, 1])


@given(st.permutations(range(6)), st.integers(1, 5))
@settings(max_examples=30)
def test_late_and_split_feedback_counts_as_a_sum_over_ages(order: list[int], cut: int) -> None:
    arms, rewards, times = [0, 0, 1, 1, 1, 2], [1.0, 0.0, 0.5, 1.0, 0.0, 1.0], [0.0, 3.0, 9.0, 1.0, 4.0, 7.0]
    feedback = outcomes(arms, rewards, times, order=order)
    policy = ArmThompson(half_life=4.0, prior=(1.0, 1.0))
    for part in (feedback[:cut], feedback[cut:]):
        policy.update(part, RNG(0))
    expected = np.ones((3, 2))
    for arm, reward, time in zip(arms, rewards, times, strict=True):
        expected[arm] += 0.5 ** ((11.0 - time) / 4.0) * np.array([reward, 1 - reward])
    np.testing.assert_allclose(beliefs(policy, 11.0), expected)


def test_fit_forgets_what_came_before_and_remembers_only_if_asked() -> None:
    policy = ArmThompson(prior=(1.0, 1.0))
    policy.update(outcomes([0], [1.0]), RNG(0))
    policy.fit(outcomes([1], [1.0]), RNG(0))
    np.testing.assert_allclose(beliefs(policy), [[1, 1], [2, 1], [1, 1]])
    policy.fit(outcomes([1], [1.0]), RNG(0), remember=False)
    np.testing.assert_allclose(beliefs(policy), 1)


def test_minus_zero_is_zero() -> None:
    policy = ArmThompson(prior=(1.0, 1.0))
    policy.update(Feedback.one(context=[0.0], arm=[-0.0, 1.0, 0.0], reward=1.0), RNG(0))
    np.testing.assert_allclose(beliefs(policy)[1], [2, 1])


def test_a_policy_that_never_learned_can_be_saved(tmp_path: Path) -> None:
    ArmThompson(prior=(2.0, 3.0)).save(tmp_path / "policy")
    np.testing.assert_allclose(beliefs(ArmThompson.load(tmp_path / "policy")), [[2, 3]] * 3)


def test_arms_with_ids_go_by_their_ids_whatever_their_features() -> None:
    policy = ArmThompson(prior=(1.0, 1.0))
    for arm, reward in ((0, 1.0), (1, 1.0), (2, 0.0)):
        policy.update(
            Feedback.one(context=[0.0], arm=ARMS[arm], reward=reward, arm_id="new" if arm == 2 else "old"),
            RNG(0),
        )
    chosen = policy.choose([0.0], ARMS, RNG(0), arm_ids=["new", "old", "unseen"])
    assert chosen.posterior is not None
    np.testing.assert_allclose(chosen.posterior.alpha, [1, 3, 1])
    np.testing.assert_allclose(chosen.posterior.beta, [2, 1, 1])


def test_expected_rewards_are_clicks_over_shows_smoothed_by_the_history() -> None:
    policy = ArmThompson()
    policy.fit(outcomes([0, 0, 0, 1], [1.0, 1.0, 0.0, 0.0]), RNG(0))
    average = 2.5 / 5
    means = policy.choose([0.0], ARMS, RNG(0)).means
    np.testing.assert_allclose(means, [(2 + 2 * average) / 5, 2 * average / 3, average])


@pytest.mark.parametrize("explore", ["thompson", "greedy"])
def test_a_floor_mixes_uniform_choice_into_the_propensities(explore: str) -> None:
    bare, mixed = (ArmThompson(explore=explore, floor=floor) for floor in (0.0, 0.3))
    for policy in (bare, mixed):
        policy.fit(outcomes([0, 0, 1], [1.0, 1.0, 0.0]), RNG(0))
    chances = bare.choose([0.0], ARMS, RNG(0)).propensities
    np.testing.assert_allclose(
        mixed.choose([0.0], ARMS, RNG(0)).propensities, 0.7 * chances + 0.1, rtol=1e-12
    )


def test_the_click_counter_plays_the_arm_with_the_most_clicks_a_show_of_late() -> None:
    policy = ArmThompson(half_life=1.0, explore="greedy")
    feedback = outcomes(
        [0] * 20 + [1] * 20 + [0] * 5, [1.0] * 20 + [0.5] * 20 + [0.0] * 5, [0.0] * 40 + [9.0] * 5
    )
    policy.fit(feedback, RNG(0))
    np.testing.assert_array_equal(policy.choose([0.0], ARMS[:2], RNG(0), time=0.0).propensities, [0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"floor": 1.5}, r"floor must lie in \[0, 1\]; got 1.5"),
        ({"half_life": 0.0}, "half_life must be a finite number above 0; got 0"),
        ({"half_life": float("nan")}, "half_life must be"),
        ({"prior": (0.0, 1.0)}, r"prior\[0\] must be"),
        ({"prior": (1.0, float("inf"))}, r"prior\[1\] must be"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArmThompson(**options)


def test_a_half_life_needs_times() -> None:
    policy = ArmThompson(half_life=1.0)
    with pytest.raises(ValueError, match="every outcome needs a time"):
        policy.update(outcomes([0], [1.0]), RNG(0))
    with pytest.raises(ValueError, match="a decision needs its time"):
        policy.choose([0.0], ARMS, RNG(0))
    with pytest.raises(ValueError, match="time must be finite"):
        policy.choose([0.0], ARMS, RNG(0), time=float("nan"))


def test_arms_of_another_width_are_refused() -> None:
    policy = ArmThompson()
    policy.update(outcomes([0], [1.0]), RNG(0))
    with pytest.raises(ValueError, match="arms must have 3 columns; got 2"):
        policy.choose([0.0], np.eye(2), RNG(0))
