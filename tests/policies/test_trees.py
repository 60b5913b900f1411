import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest

from tercet import Feedback
from tercet.policies.trees import Boosting, BootstrapBoosting

RNG = np.random.default_rng  # made anew for each call
ARMS = np.eye(3)
SMALL: dict[str, Any] = {"trees": 10, "leaves": 8}


def some(n: int, seed: int = 0) -> Feedback:
    """Graded rewards: the arm that the first feature points at earns more."""
    rng = RNG(seed)
    contexts, arms = rng.uniform(-1, 1, size=(n, 2)), rng.integers(3, size=n)
    rewards = np.clip(0.6 * (arms == 1 + (contexts[:, 0] > 0)) + 0.3 * rng.random(n), 0, 1)
    return Feedback(contexts=contexts, arms=ARMS[arms], rewards=rewards, times=np.arange(n) * 1.0)


def means(policy: Any, time: float = 1000.0) -> np.ndarray:
    choices = [policy.choose(context, ARMS, RNG(0), time=time) for context in some(20, seed=9).contexts]
    return np.array([choice.means for choice in choices])


def test_expected_rewards_are_those_of_lightgbm_on_contexts_and_arms() -> None:
    history, policy = some(300), Boosting(**SMALL, refit=None)
    policy.fit(history, RNG(0))
    settings = {"objective": "cross_entropy", "num_leaves": 8, "learning_rate": 0.1, "verbosity": -1}
    data = lightgbm.Dataset(np.hstack([history.contexts, history.arms]), history.rewards)
    peer = lightgbm.train(settings | {"num_threads": 1}, data, num_boost_round=10)
    expected = [peer.predict(np.hstack([np.tile(c, (3, 1)), ARMS])) for c in some(20, seed=9).contexts]
    np.testing.assert_allclose(means(policy), expected, rtol=1e-12)


def test_epsilon_is_shared_by_all_arms_and_the_rest_by_the_best() -> None:
    policy = Boosting(**SMALL, epsilon=0.3)
    policy.fit(some(300), RNG(0))
    choice = policy.choose([0.5, 0.0], ARMS, RNG(0))
    np.testing.assert_allclose(choice.propensities, [0.1, 0.1, 0.8])
    twins = policy.choose([0.5, 0.0], ARMS[[2, 2, 0]], RNG(0))
    np.testing.assert_allclose(twins.propensities, [0.45, 0.45, 0.1])


def test_propensities_are_the_shares_of_the_models_that_like_an_arm_best() -> None:
    policy = BootstrapBoosting(**SMALL, models=7)
    policy.fit(some(200), RNG(0))
    context = np.array([0.02, 0.3])
    inputs = np.hstack([np.tile(context, (3, 1)), ARMS])
    scores = np.array([forest.booster.predict(inputs) for forest in policy._forests])
    choice = policy.choose(context, ARMS, RNG(0))
    assert len(set(scores.argmax(1))) > 1  # the models differ here
    np.testing.assert_allclose(choice.propensities, np.bincount(scores.argmax(1), minlength=3) / 7)
    np.testing.assert_allclose(choice.means, scores.mean(0))


@pytest.mark.parametrize("policy", [Boosting(**SMALL, refit=50), Boosting(**SMALL, refit=50, half_life=30.0)])
def test_a_batch_teaches_what_its_outcomes_teach_one_by_one(policy: Boosting) -> None:
    feedback, one, many = some(170), replace(policy), replace(policy)
    for each in (one, many):
        each.fit(some(0), RNG(0))
    many.update(feedback, RNG(0))
    for row in range(170):
        one.update(feedback[row : row + 1], RNG(0))
    np.testing.assert_array_equal(means(one), means(many))


@pytest.mark.parametrize("kind", [Boosting, BootstrapBoosting])
def test_a_window_trains_on_the_newest_outcomes_only(kind: Any) -> None:
    feedback = some(200)
    policy, newest = kind(**SMALL, refit=60, window=80), kind(**SMALL)
    policy.fit(feedback[:140], RNG(0))
    policy.update(feedback[140:], RNG(5))
    newest.fit(feedback[120:], RNG(5))
    np.testing.assert_array_equal(means(policy), means(newest))


@pytest.mark.parametrize("kind", [Boosting, BootstrapBoosting])
def test_a_streamed_history_replaces_its_model_only_when_it_is_back_in_whole(kind: Any) -> None:
    history, policy = some(200), kind(**SMALL, refit=50)
    policy.fit(history, RNG(0), remember=False)
    first = means(policy)
    policy.update(history[:150], RNG(1))
    np.testing.assert_array_equal(means(policy), first)
    policy.update(replace(history[:50], rewards=1 - history.rewards[:50]), RNG(1))
    assert not np.array_equal(means(policy), first)


def test_without_refit_nothing_is_learned_or_remembered_online(tmp_path: Path) -> None:
    policy = Boosting(**SMALL, refit=None)
    policy.fit(some(100), RNG(0))
    policy.save(tmp_path / "before")
    policy.update(some(500, seed=1), RNG(0))
    policy.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


def test_counters_tell_apart_what_features_can_not() -> None:
    """Arms with equal features: only their ids, and what they earned lately, differ."""
    rng, n = RNG(0), 600
    ids = rng.integers(2, size=n)
    good = np.where(np.arange(n) < 300, ids == 0, ids == 1)  # the other one since time 300
    feedback = Feedback(
        contexts=np.zeros((n, 1)),
        arms=np.ones((n, 1)),
        rewards=good.astype(float),
        times=np.arange(n) * 1.0,
        arm_ids=np.array(["old", "new"])[ids],
    )
    policy = Boosting(**SMALL, half_life=20.0)
    policy.fit(feedback, RNG(0))
    choice = policy.choose([0.0], np.ones((2, 1)), RNG(0), time=600.0, arm_ids=["old", "new"])
    assert choice.means is not None
    assert choice.means[1] > choice.means[0]


def test_no_arm_is_preferred_before_there_is_anything_to_learn_from() -> None:
    for policy in (Boosting(**SMALL, refit=30), BootstrapBoosting(**SMALL, refit=30)):
        for past in (some(0), replace(some(50), rewards=np.ones(50))):
            policy.fit(past, RNG(0))
            choice = policy.choose([0.5, 0.0], ARMS, RNG(0))
            np.testing.assert_allclose(choice.propensities, 1 / 3)
            assert choice.means is None
        policy.update(some(30), RNG(0))
        assert policy.choose([0.5, 0.0], ARMS, RNG(0)).means is not None


def test_made_up_outcomes_come_from_visitors_and_arms_that_were_seen() -> None:
    history, policy = some(40), BootstrapBoosting(**SMALL, prior=15)
    policy.fit(history, RNG(0))
    inputs, rewards = policy._resample(history.joint(), history.rewards, RNG(1))
    assert inputs.shape == (55, 5)
    seen = {tuple(row) for row in history.joint()}
    assert all(tuple(row) in seen for row in inputs[:40])
    assert {tuple(row) for row in inputs[40:, :2]} <= {tuple(row) for row in history.contexts}
    assert (inputs[40:, 2:].sum(1) == 1).all()
    assert set(rewards[40:]) == {0.0, 1.0}


@pytest.mark.parametrize("kind", [Boosting, BootstrapBoosting])
def test_other_widths_than_before_are_refused(kind: Any) -> None:
    policy = kind(**SMALL)
    policy.fit(some(0), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features"):
        policy.choose([0.0], ARMS, RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features"):
        policy.update(Feedback.one(context=[0.0, 0.0], arm=[1.0], reward=1.0), RNG(0))


def test_a_half_life_needs_times() -> None:
    policy = Boosting(**SMALL, half_life=5.0)
    with pytest.raises(ValueError, match="every outcome needs a time"):
        policy.fit(replace(some(10), times=None), RNG(0))
    policy.fit(some(10), RNG(0))
    with pytest.raises(ValueError, match="a decision needs its time"):
        policy.choose([0.0, 0.0], ARMS, RNG(0))


@pytest.mark.parametrize(
    ("message", "bad"),
    [
        ("trees must be a whole number", {"trees": 0}),
        ("leaves must be at least 2", {"leaves": 1}),
        ("rate must be", {"rate": 0.0}),
        ("refit must be a whole number", {"refit": 0}),
        ("window must be a whole number", {"window": 0}),
    ],
)
@pytest.mark.parametrize("kind", [Boosting, BootstrapBoosting])
def test_bad_sizes_are_refused(kind: Any, message: str, bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**bad)


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="epsilon must lie in"):
        Boosting(epsilon=1.5)
    with pytest.raises(ValueError, match="half_life must be"):
        Boosting(half_life=-1.0)
    with pytest.raises(ValueError, match="models must be a whole number"):
        BootstrapBoosting(models=0)
    with pytest.raises(ValueError, match="prior must be"):
        BootstrapBoosting(prior=-1)


def test_a_missing_lightgbm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tercet\[bench\]'"):
        Boosting().fit(some(50), RNG(0))
