from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet import Feedback
from tercet.policies.networks import Inputs
from tercet.policies.neural import (
    Belief,
    NeuralBandit,
    NeuralTS,
    NeuralUCB,
    Shallow,
    descend,
    novelty,
    squares,
    unit_rows,
)

RNG = np.random.default_rng  # made anew for each call


def some(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    return Feedback(contexts=contexts, arms=arms, rewards=rng.random(n))


def network(seed: int = 0, *, width: int = 4, hidden: int = 6) -> Shallow:
    rng = RNG(seed)
    return Shallow(first=rng.normal(size=(width, hidden)), last=rng.normal(size=hidden))


def in_torch(net: Shallow, x: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """f by section 2 of Zhou et al. (2020), and its parameters as leaves."""
    first, last = (torch.tensor(array, requires_grad=True) for array in (net.first, net.last))
    return len(net.last) ** 0.5 * torch.relu(torch.tensor(x) @ first) @ last, first, last


def gradients(net: Shallow, x: np.ndarray) -> np.ndarray:
    """The gradient of f over √m at each row, all parameters in a line, by torch."""
    rows = []
    for row in x:
        value, first, last = in_torch(net, row[None])
        value.sum().backward()  # type: ignore[no-untyped-call]
        assert first.grad is not None
        assert last.grad is not None
        rows.append(np.append(first.grad.numpy(), last.grad.numpy()) / len(net.last) ** 0.5)
    return np.array(rows).reshape(len(x), net.first.size + net.last.size)


def flat(net: Shallow) -> np.ndarray:
    return np.append(net.first, net.last)


def belief(policy: NeuralBandit) -> Belief:
    assert policy._belief is not None
    return policy._belief


def test_f_and_the_squares_of_its_gradient_are_those_of_torch() -> None:
    net, x = network(), RNG(1).normal(size=(9, 4))
    np.testing.assert_allclose(net(x), in_torch(net, x)[0].detach().numpy())
    np.testing.assert_allclose(flat(squares(net, x)), (gradients(net, x) ** 2).sum(0))
    evidence = network(2)
    evidence = Shallow(first=evidence.first**2 + 0.1, last=evidence.last**2 + 0.1)
    np.testing.assert_allclose(novelty(net, evidence, x), (gradients(net, x) ** 2 / flat(evidence)).sum(1))


@pytest.mark.parametrize("penalty", [0.01, 3.0])
def test_a_gradient_step_is_that_of_torch_on_the_papers_loss(penalty: float) -> None:
    rng = RNG(3)
    net, start, x, rewards = network(), network(4), rng.normal(size=(5, 4)), rng.random(5)
    f, first, last = in_torch(net, x)
    (((f - torch.tensor(rewards)) ** 2).sum() / 2 / 5).backward()  # type: ignore[no-untyped-call]
    assert first.grad is not None
    assert last.grad is not None
    slope = np.append(first.grad.numpy(), last.grad.numpy())
    got = descend(net, start, x, rewards, rng, steps=1, rate=0.01, batch=8, penalty=penalty)
    # The implicit step on mλ‖θ - θ₀‖²/2n solves θ' = θ - rate·slope - rate·(mλ/n)·(θ' - θ₀).
    left = flat(got) - (flat(net) - 0.01 * slope - 0.01 * 6 * penalty / 5 * (flat(got) - flat(start)))
    np.testing.assert_allclose(left, 0, atol=1e-12)


def test_f_is_zero_at_first_and_its_gradient_has_a_length_of_about_root_two() -> None:
    fresh, x = Shallow.fresh(30, 400, RNG(0)), RNG(1).normal(size=(50, 30))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(fresh(x), 0, atol=1e-12)
    nothing = Shallow(first=np.ones_like(fresh.first), last=np.ones_like(fresh.last))
    np.testing.assert_allclose(novelty(fresh, nothing, x).mean(), 2, rtol=0.2)  # one of each layer


def test_inputs_have_length_one_and_an_intercept() -> None:
    history = some(40)
    rows = unit_rows(Inputs.of(history), history.contexts, history.arms)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    assert (rows[:, 0] > 0).all()


def test_training_learns_a_known_function_down_to_its_noise() -> None:
    rng = RNG(0)
    x = rng.uniform(-1, 1, size=(1_000, 2))
    rewards = 0.5 + 0.4 * np.sin(3 * x[:, 0]) * np.sign(x[:, 1])
    noisy = rewards + 0.1 * rng.normal(size=1_000)
    rows = np.hstack([np.ones((1_000, 1)), x]) / np.sqrt(3)
    start = Shallow.fresh(3, 100, rng)
    net = descend(start, start, rows, noisy, rng, steps=8_000, rate=1e-2, batch=64, penalty=1e-5)
    # The function's variance is .09, the noise's .01.
    assert np.mean((net(rows) - rewards) ** 2) < 0.01


def test_a_large_penalty_holds_the_network_at_its_start() -> None:
    start, x = Shallow.fresh(4, 20, RNG(0)), RNG(1).normal(size=(10, 4))
    held = descend(start, start, x, np.ones(10), RNG(2), steps=50, rate=1e-2, batch=64, penalty=1e9)
    np.testing.assert_allclose(flat(held), flat(start), atol=1e-6)


@pytest.mark.parametrize("make", [NeuralUCB, NeuralTS])
def test_scores_equal_brute_force_with_each_gradient_at_the_network_of_its_time(make: Any) -> None:
    policy = make(hidden=10, penalty=0.3, variance=0.7, eager=6, every=4)
    policy.fit(some(0), RNG(0))
    evidence = np.full(6 * 10 + 10, 0.3)
    for step in range(16):
        now = belief(policy)
        outcome = some(1, seed=step + 1)
        x = unit_rows(now.inputs, outcome.contexts, outcome.arms)
        evidence += (gradients(now.network, x) ** 2).sum(0)
        policy.update(outcome, RNG(step))
    now = belief(policy)
    context, arms = np.ones(2), RNG(9).normal(size=(5, 3))
    x = unit_rows(now.inputs, context[None], arms)
    spread = np.sqrt(0.3 * 0.7 * (gradients(now.network, x) ** 2 / evidence).sum(1))
    mean = in_torch(now.network, x)[0].detach().numpy()
    choice = policy.choose(context, arms, RNG(0))
    np.testing.assert_allclose(choice.means, mean, rtol=1e-9)
    if policy.explore == "ucb":
        assert choice.arm == np.argmax(mean + spread)
    else:
        draws = RNG(0).normal(mean, spread, size=(40_000, 5)).argmax(1)
        expected = np.bincount(draws, minlength=5) / 40_000
        np.testing.assert_allclose(choice.propensities, expected, atol=5 * np.sqrt(0.25 / 40_000))
        assert choice.arm == draws[0]


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
    x = unit_rows(now.inputs, newest.contexts, newest.arms)
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
    x = unit_rows(now.inputs, history.contexts, history.arms)
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
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as in fit; got \(1, 3\)"):
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
        ({"epochs": 0}, "epochs must be"),
        ({"steps": 0}, "steps must be"),
        ({"eager": 0}, "eager must be"),
        ({"every": 0}, "every must be"),
        ({"window": 0}, "window must be"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeuralUCB(**options)


def test_an_unknown_way_to_explore_is_refused() -> None:
    policy: Any = NeuralUCB()
    policy.explore = "greedy"  # given at once, it would not pass the type check that tests run under
    with pytest.raises(ValueError, match='explore must be "ucb" or "thompson"; got \'greedy\''):
        policy.__post_init__()
