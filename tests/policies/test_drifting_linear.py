from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet import Feedback
from tercet.policies.drifting_linear import DLinUCB, EpsilonSGD, SWLinUCB
from tercet.policies.ridge import Features

RNG = np.random.default_rng
KINDS: list[Features] = ["shared", "disjoint"]
ARMS = np.eye(3)


def some(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    arms = ARMS[rng.integers(3, size=n)]
    return Feedback(contexts=rng.normal(size=(n, 2)), arms=arms, rewards=rng.random(n), times=rng.random(n))


def written_out(context: Any, arm: np.ndarray, features: Features) -> np.ndarray:
    if features == "shared":
        return np.array([1.0, *context, *arm, *(c * a for c in context for a in arm)])
    return np.kron(arm, [1.0, *context])


def offered_inputs(context: Any, features: Features) -> np.ndarray:
    return np.array([written_out(context, arm, features) for arm in ARMS])


def norms(inputs: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return np.sqrt(np.array([x @ matrix @ x for x in inputs]))


@pytest.mark.parametrize("features", KINDS)
@pytest.mark.parametrize("batch", [1, 4, 70])
def test_a_window_knows_its_newest_outcomes_and_nothing_else(features: Features, batch: int) -> None:
    feedback, policy = some(210), SWLinUCB(window=50, radius=0.7, features=features)
    window: deque[int] = deque(maxlen=50)
    for start in range(0, 210, batch):
        policy.update(feedback[start : start + batch], RNG(0))
        window.extend(range(start, min(start + batch, 210)))
        size = 12 if features == "shared" else 9
        precision, response = 0.5 * np.eye(size), np.zeros(size)
        for row in window:
            x = written_out(feedback.contexts[row], feedback.arms[row], features)
            precision, response = precision + np.outer(x, x), response + feedback.rewards[row] * x
        inverse, context = np.linalg.inv(precision), RNG(start).normal(size=2)
        inputs = offered_inputs(context, features)
        choice = policy.choose(context, ARMS, RNG(0))
        assert choice.means is not None
        np.testing.assert_allclose(choice.means, inputs @ inverse @ response, rtol=1e-8, atol=1e-8)
        scores = choice.means + 0.7 * norms(inputs, inverse)
        assert scores[choice.arm] == pytest.approx(scores.max(), abs=1e-9)


def test_a_monster_that_has_left_the_window_leaves_no_rounding_behind() -> None:
    policy, plain = (SWLinUCB(window=1000) for _ in range(2))
    feedback = some(2000)
    policy.update(Feedback.one(context=[1e9, 1e9], arm=ARMS[0], reward=1.0), RNG(0))
    for start in range(0, 2000, 100):
        policy.update(feedback[start : start + 100], RNG(0))
    plain.update(feedback[-1000:], RNG(0))
    one, two = (each.choose([0.3, -0.2], ARMS, RNG(0)).means for each in (policy, plain))
    np.testing.assert_allclose(one, two, rtol=1e-9)


def test_fit_keeps_the_newest_of_the_history_by_time() -> None:
    feedback = some(80)
    assert feedback.times is not None
    fitted, updated = SWLinUCB(window=30), SWLinUCB(window=30)
    fitted.update(some(9, seed=1), RNG(0))
    fitted.fit(feedback, RNG(0))
    updated.update(feedback[np.argsort(feedback.times)[-30:]], RNG(0))
    one, two = (each.choose([0.3, -0.2], ARMS, RNG(0)).means for each in (fitted, updated))
    np.testing.assert_allclose(one, two, rtol=1e-9)


@pytest.mark.parametrize("features", KINDS)
@pytest.mark.parametrize("radius", [None, 0.4])
def test_discounted_scores_follow_the_papers_recursions(features: Features, radius: float | None) -> None:
    gamma, penalty, size = 0.9, 0.5, 12 if features == "shared" else 9
    policy = DLinUCB(discount=gamma, radius=radius, features=features)
    v, v_tilde, b = penalty * np.eye(size), penalty * np.eye(size), np.zeros(size)
    for t in range(60):
        context = RNG(t).normal(size=2)
        inputs, inverse = offered_inputs(context, features), np.linalg.inv(v)
        growth = 25 * (1 - gamma ** (2 * t)) / (penalty * size * (1 - gamma**2))
        beta = np.sqrt(penalty) * 5 + np.sqrt(2 * np.log(1 / 0.05) + size * np.log(1 + growth))
        bonus = (beta if radius is None else radius) * norms(inputs, inverse @ v_tilde @ inverse)
        choice = policy.choose(context, ARMS, RNG(0))
        assert choice.means is not None
        np.testing.assert_allclose(choice.means, inputs @ inverse @ b, atol=1e-9)
        scores = choice.means + bonus
        assert scores[choice.arm] == pytest.approx(scores.max(), abs=1e-9)
        reward, x = float(RNG(t).random()), inputs[choice.arm]
        policy.update(Feedback.one(context=context, arm=ARMS[choice.arm], reward=reward), RNG(0))
        v = gamma * v + np.outer(x, x) + (1 - gamma) * penalty * np.eye(size)
        v_tilde = gamma**2 * v_tilde + np.outer(x, x) + (1 - gamma**2) * penalty * np.eye(size)
        b = gamma * b + reward * x


def test_the_radius_of_a_window_is_the_papers() -> None:
    # R = 2, L = S = 5, λ = .5, δ = .05 and twelve weights.
    expected = 2 * np.sqrt(12 * np.log((1 + 500 * 25 / 0.5) / 0.05)) + np.sqrt(0.5) * 5
    assert SWLinUCB(window=500)._radius(12) == pytest.approx(expected)


@pytest.mark.parametrize("features", KINDS)
def test_steps_follow_the_gradient_of_the_squared_error_on_scaled_inputs(features: Features) -> None:
    history, later = some(50), some(30, seed=1)
    policy = EpsilonSGD(step=0.01, features=features)
    policy.fit(history, RNG(0), remember=False)
    policy.update(later, RNG(0))
    size = 12 if features == "shared" else 9
    if features == "shared":
        seen = np.array(
            [written_out(c, a, features) for c, a in zip(history.contexts, history.arms, strict=True)]
        )
        centre, scale = seen.mean(0), seen.std(0)
        centre[0], scale[0] = 0, 1
    else:  # the scale of a context is the same for every arm
        centre = np.tile([0, *history.contexts.mean(0)], 3)
        scale = np.tile([1, *history.contexts.std(0)], 3)

    def scaled(context: np.ndarray, arm: np.ndarray) -> np.ndarray:
        present = 1.0 if features == "shared" else np.repeat(arm, 3)
        return (written_out(context, arm, features) - centre) / scale * present

    weights = np.zeros(size)
    for context, arm, reward in zip(later.contexts, later.arms, later.rewards, strict=True):
        x = scaled(context, arm)
        weights -= 0.01 * (weights @ x - reward) * x
    context = np.array([0.3, -0.2])
    choice = policy.choose(context, ARMS, RNG(0))
    np.testing.assert_allclose(choice.means, [weights @ scaled(context, arm) for arm in ARMS], atol=1e-12)


def test_epsilon_is_spread_over_all_arms() -> None:
    policy = EpsilonSGD(epsilon=0.3)
    np.testing.assert_allclose(policy.choose([0.3, -0.2], ARMS, RNG(0)).propensities, 1 / 3)
    policy.fit(some(50), RNG(0))
    choice = policy.choose([0.3, -0.2], ARMS, RNG(0))
    assert choice.means is not None
    expected = np.full(3, 0.1)
    expected[np.argmax(choice.means)] = 0.8
    np.testing.assert_allclose(choice.propensities, expected)


def test_steps_that_would_overshoot_are_cut() -> None:
    policy = EpsilonSGD(step=10.0)
    for seed in range(20):
        policy.update(some(50, seed), RNG(0))
    last = some(1)
    policy.update(last, RNG(0))
    means = policy.choose(last.contexts[0], last.arms, RNG(0)).means
    np.testing.assert_allclose(means, last.rewards)  # as far as a step may go: to the outcome itself


@pytest.mark.parametrize(
    "policy", [SWLinUCB(), DLinUCB(), EpsilonSGD()], ids=lambda each: type(each).__name__
)
def test_fit_without_remembering_leaves_nothing_known(policy: Any) -> None:
    policy.update(some(10), RNG(0))
    policy.fit(some(10), RNG(0), remember=False)
    np.testing.assert_array_equal(policy.choose([1.0, 1.0], ARMS, RNG(0)).means, 0)


@pytest.mark.parametrize(
    "policy", [SWLinUCB(), DLinUCB(), EpsilonSGD()], ids=lambda each: type(each).__name__
)
def test_features_of_another_width_are_refused(policy: Any) -> None:
    fitted = replace(policy)
    fitted.update(some(3), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(1, 3\)"):
        fitted.choose([0.0], ARMS, RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(2, 2\)"):
        fitted.update(Feedback.one(context=[0.0, 0.0], arm=[1.0, 0.0], reward=1.0), RNG(0))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (SWLinUCB, {"window": 0}, "window must be a whole number, 1 or more; got 0"),
        (SWLinUCB, {"radius": -1.0}, "radius must be"),
        (SWLinUCB, {"noise": 0.0}, "noise must be"),
        (SWLinUCB, {"penalty": 0.0}, "penalty must be"),
        (DLinUCB, {"input_bound": 0.0}, "input_bound must be"),
        (DLinUCB, {"weight_bound": -5.0}, "weight_bound must be"),
        (DLinUCB, {"risk": 1.0}, "risk must lie between 0 and 1; got 1"),
        (DLinUCB, {"discount": 1.5}, "discount must lie"),
        (EpsilonSGD, {"epsilon": 1.5}, r"epsilon must lie in \[0, 1\]; got 1.5"),
        (EpsilonSGD, {"step": 0.0}, "step must be"),
    ],
)
def test_impossible_options_are_refused(kind: Any, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**options)
