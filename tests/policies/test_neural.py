from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet import Feedback
from tercet.policies.neural import Belief, NeuralBandit, NeuralTS, NeuralUCB, unit_rows
from tercet.policies.shallow import Rows
from tests.policies.test_shallow import flat, gradients, in_torch

RNG = np.random.default_rng  # made anew for each call


def some(n: int, seed: int = 0, *, features: str = "shared") -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    arms = arms if features == "shared" else np.eye(3)[rng.integers(3, size=n)]
    return Feedback(contexts=contexts, arms=arms, rewards=rng.random(n))


def rows_of(policy: NeuralBandit, contexts: np.ndarray, arms: np.ndarray) -> Rows:
    return unit_rows(*policy._memory.scaled(contexts, arms), policy.features)


def belief(policy: NeuralBandit) -> Belief:
    assert policy._belief is not None
    return policy._belief


def test_inputs_have_length_one_and_an_intercept() -> None:
    history = some(40)
    for features, width in (("shared", 1 + 2 + 3), ("disjoint", 1 + 2)):
        arms = history.arms if features == "shared" else np.eye(3)[np.arange(40) % 3]
        rows = unit_rows(history.contexts, arms, features)  # type: ignore[arg-type]
        assert rows.features.shape == (40, width)
        np.testing.assert_allclose(np.linalg.norm(rows.features, axis=1), 1)
        assert (rows.features[:, 0] > 0).all()
        np.testing.assert_array_equal(rows.block, 0 if features == "shared" else np.arange(40) % 3)


@pytest.mark.parametrize(("features", "parameters"), [("shared", 6 * 10 + 10), ("disjoint", 9 * 10 + 10)])
@pytest.mark.parametrize("make", [NeuralUCB, NeuralTS])
def test_scores_equal_brute_force_with_each_gradient_at_the_network_of_its_time(
    make: Any, features: str, parameters: int
) -> None:
    policy = make(hidden=10, penalty=0.3, variance=0.7, eager=6, every=4, features=features)
    policy.fit(some(0, features=features), RNG(0))
    evidence = np.full(parameters, 0.3)
    for step in range(16):
        outcome = some(1, seed=step + 1, features=features)
        rows = rows_of(policy, outcome.contexts, outcome.arms)
        evidence += (gradients(belief(policy).network, rows) ** 2).sum(0)
        policy.update(outcome, RNG(step))
    network = belief(policy).network
    context, arms = np.ones(2), RNG(9).normal(size=(3, 3)) if features == "shared" else np.eye(3)[[2, 0, 1]]
    rows = rows_of(policy, context[None], arms)
    spread = np.sqrt(0.3 * 0.7 * (gradients(network, rows) ** 2 / evidence).sum(1))
    mean = in_torch(network, rows)[0].detach().numpy()
    choice = policy.choose(context, arms, RNG(0))
    np.testing.assert_allclose(choice.means, mean, rtol=1e-9)
    if policy.explore == "ucb":
        assert choice.arm == np.argmax(mean + spread)
    else:
        draws = RNG(0).normal(mean, spread, size=(40_000, 3)).argmax(1)
        expected = np.bincount(draws, minlength=3) / 40_000
        np.testing.assert_allclose(choice.propensities, expected, atol=5 * np.sqrt(0.25 / 40_000))
        assert choice.arm == draws[0]


def test_disjoint_arms_have_hidden_layers_of_their_own_and_must_be_one_hot() -> None:
    policy, history = NeuralUCB(hidden=6, features="disjoint"), some(30, features="disjoint")
    untouched = history[history.arms[:, 1] == 0]
    policy.fit(untouched, RNG(0))
    start, network = belief(policy).start.first, belief(policy).network.first
    np.testing.assert_array_equal(network[1], start[1])
    assert not np.array_equal(network[0], start[0])
    for act in (policy.update, NeuralUCB(features="disjoint").fit):
        with pytest.raises(ValueError, match="one-hot"):
            act(some(3), RNG(0))
    assert len(policy._memory) == len(untouched)


def test_it_trains_after_every_update_and_later_now_and_then() -> None:
    policy = NeuralUCB(hidden=4, eager=5, every=4)
    policy.fit(some(0), RNG(0))
    trained = []
    for step in range(1, 18):
        before = belief(policy).network
        policy.update(some(1, seed=step), RNG(step))
        trained += [step] if belief(policy).network is not before else []
    assert trained == [1, 2, 3, 4, 5, 8, 12, 16]


def test_between_trainings_batches_and_single_outcomes_count_alike() -> None:
    one, many = (NeuralUCB(hidden=4, eager=1, every=1_000) for _ in range(2))
    for policy in (one, many):
        policy.fit(some(10), RNG(0))
    feedback = some(30, seed=1)
    many.update(feedback, RNG(0))
    for row in range(30):
        one.update(feedback[row : row + 1], RNG(0))
    np.testing.assert_allclose(flat(belief(one).evidence), flat(belief(many).evidence))
    np.testing.assert_array_equal(one._memory.rewards, many._memory.rewards)


def test_a_window_learns_and_counts_the_newest_outcomes_only() -> None:
    policy, feedback = NeuralUCB(hidden=6, window=7), some(40)
    policy.fit(feedback[:20], RNG(0))
    policy.update(feedback[20:], RNG(0))
    now, newest = belief(policy), feedback[33:]
    x = rows_of(policy, newest.contexts, newest.arms)
    np.testing.assert_array_equal(policy._memory.rewards, newest.rewards)
    np.testing.assert_allclose(flat(now.evidence), 1e-5 + (gradients(now.network, x) ** 2).sum(0))


def test_fit_counts_the_history_only_if_it_is_remembered() -> None:
    policy, history = NeuralUCB(hidden=6, penalty=0.5), some(30)
    policy.fit(history, RNG(0), remember=False)
    now = belief(policy)
    np.testing.assert_array_equal(flat(now.evidence), 0.5)
    assert len(policy._memory) == 0
    assert now.start is now.network  # what the memory lacks of the history lasts in θ₀
    policy.fit(history, RNG(0))
    now = belief(policy)
    x = rows_of(policy, history.contexts, history.arms)
    np.testing.assert_allclose(flat(now.evidence), 0.5 + (gradients(now.network, x) ** 2).sum(0))
    np.testing.assert_allclose(now.start(x), 0, atol=1e-12)


def test_fit_forgets_what_came_before(tmp_path: Path) -> None:
    policy = NeuralTS(hidden=6)
    policy.fit(some(30), RNG(0))
    policy.update(some(5, seed=1), RNG(0))
    fresh = replace(policy)
    for name, each in (("a", policy), ("b", fresh)):
        each.fit(some(20, seed=2), RNG(1))
        each.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_features_however_large_leave_finite_scores() -> None:
    policy = NeuralUCB(hidden=10)
    policy.fit(some(0), RNG(0))
    wild = Feedback(contexts=np.full((5, 2), 1e38), arms=np.full((5, 3), -1e38), rewards=np.ones(5))
    for _ in range(5):
        policy.update(wild, RNG(0))
    assert np.isfinite(policy.choose([1e38, 0.0], np.eye(3), RNG(0)).means).all()


def test_before_fit_it_says_what_to_do_and_later_it_refuses_other_widths() -> None:
    policy = NeuralUCB()
    with pytest.raises(ValueError, match=r"call fit\(history, rng\)"):
        policy.choose([0.0], np.eye(2), RNG(0))
    policy.fit(some(5), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(1, 3\)"):
        policy.choose([0.0], np.eye(3), RNG(0))


def test_without_any_features_the_intercept_is_left() -> None:
    policy = NeuralUCB()
    policy.fit(Feedback(contexts=np.empty((3, 0)), arms=np.empty((3, 0)), rewards=np.ones(3)), RNG(0))
    np.testing.assert_allclose(policy.choose([], np.empty((2, 0)), RNG(0)).propensities, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden must be a whole number"),
        ({"hidden": 5}, "hidden must be even, because units start as twins; got 5"),
        ({"penalty": 0.0}, "penalty must be"),
        ({"variance": -1.0}, "variance must be"),
        ({"rate": float("nan")}, "rate must be"),
        ({"batch": 0}, "batch must be"),
        ({"epochs": -1}, "epochs must be"),
        ({"steps": 0}, "steps must be"),
        ({"eager": 0}, "eager must be"),
        ({"every": 0}, "every must be"),
        ({"window": 0}, "window must be"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeuralUCB(**options)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("explore", 'explore must be "ucb" or "thompson"; got \'greedy\''),
        ("features", "features must be one of .'shared', 'disjoint'.; got 'greedy'"),
    ],
)
def test_unknown_words_are_refused(option: str, message: str) -> None:
    policy = NeuralUCB()
    setattr(policy, option, "greedy")  # given at once, it would not pass the type check that tests run under
    with pytest.raises(ValueError, match=message):
        policy.__post_init__()
