import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback, gaussian
from tercet.policies.linear import BayesianLinear, LinTS, LinUCB
from tercet.policies.ridge import pair_features

RNG = np.random.default_rng  # made anew for each call


def some(n: int, seed: int = 0, *, one_hot: bool = False) -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    if one_hot:
        arms = np.eye(3)[arms.argmax(1)]
    return Feedback(contexts=contexts, arms=arms, rewards=rng.random(n), times=rng.random(n))


def shared_inputs(context: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return np.array([[1.0, *context, *arm, *(c * a for c in context for a in arm)] for arm in arms])


def sums(feedback: Feedback, *, penalty: float = 1.0, discount: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """V⁻¹ and w from sums written out: V = Σ γ^age x xᵀ + λI, w = V⁻¹ Σ γ^age r x."""
    precision, response = penalty * np.eye(12), np.zeros(12)
    for age, row in enumerate(reversed(range(len(feedback)))):
        x = shared_inputs(feedback.contexts[row], feedback.arms[row : row + 1])[0]
        precision += discount**age * np.outer(x, x)
        response += discount**age * feedback.rewards[row] * x
    inverse = np.linalg.inv(precision)
    return inverse, inverse @ response


def bounds(inputs: np.ndarray, inverse: np.ndarray, weights: np.ndarray, width: float) -> np.ndarray:
    return np.array([x @ weights + width * np.sqrt(x @ inverse @ x) for x in inputs])


def scores(policy: LinUCB, context: Any, arms: Any) -> np.ndarray:
    view = policy._ridges.view(context, arms)
    return view.means + policy.width * view.spreads


@given(st.integers(0, 25), st.floats(0, 3), st.floats(0.1, 10), st.floats(0.5, 1), st.integers(0, 25))
@settings(max_examples=40)
def test_scores_equal_brute_force_however_the_outcomes_are_batched(
    n: int, width: float, penalty: float, discount: float, cut: int
) -> None:
    feedback, policy = some(n), LinUCB(width=width, penalty=penalty, discount=discount)
    for part in (feedback[:cut], feedback[cut:]):
        policy.update(part, RNG(0))
    context, arms = RNG(1).normal(size=2), RNG(2).normal(size=(5, 3))
    inverse, weights = sums(feedback, penalty=penalty, discount=discount)
    expected = bounds(shared_inputs(context, arms), inverse, weights, width)
    # V's condition number stays below 1e4 here, and float64 has sixteen digits.
    np.testing.assert_allclose(scores(policy, context, arms), expected, rtol=1e-9, atol=1e-9)
    choice = policy.choose(context, arms, RNG(0))
    assert expected[choice.arm] == pytest.approx(expected.max(), abs=1e-9)
    np.testing.assert_allclose(choice.means, shared_inputs(context, arms) @ weights, atol=1e-9)


def peer(policy: Any, feedback: Feedback) -> Any:
    """MABWiser's bandit after the same stream; it has no intercept of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mab = pytest.importorskip("mabwiser.mab")
        bandit = mab.MAB(arms=[0, 1, 2], learning_policy=policy(mab.LearningPolicy), seed=0)
        for call, part in ((bandit.fit, feedback[:20]), (bandit.partial_fit, feedback[20:])):
            call(part.arms.argmax(1), part.rewards, np.insert(part.contexts, 0, 1.0, axis=1))
    return bandit


def test_disjoint_bounds_equal_those_of_mabwiser_on_the_same_stream() -> None:
    feedback = some(60, one_hot=True)
    bandit = peer(lambda known: known.LinUCB(alpha=1.96, l2_lambda=1.0), feedback)
    policy = LinUCB(width=1.96, features="disjoint")
    for part in (feedback[:20], feedback[20:]):
        policy.update(part, RNG(0))
    for context in RNG(1).normal(size=(5, 2)):
        expected = bandit.predict_expectations([[1.0, *context]])
        np.testing.assert_allclose(scores(policy, context, np.eye(3)), [expected[arm] for arm in range(3)])


def test_disjoint_thompson_draws_have_the_moments_of_mabwisers() -> None:
    feedback, n = some(60, one_hot=True), 20_000
    bandit = peer(lambda known: known.LinTS(alpha=0.5, l2_lambda=1.0), feedback)
    policy = LinTS(scale=0.5, features="disjoint")
    policy.update(feedback, RNG(0))
    # Arm by arm: MABWiser copies one generator to all arms, so that theirs are not independent.
    drawn = bandit.predict_expectations(np.tile([1.0, 0.4, -0.2], (n, 1)))
    theirs = np.array([[row[arm] for arm in range(3)] for row in drawn])
    view = policy._ridges.view([0.4, -0.2], np.eye(3))
    spreads = 0.5 * view.spreads
    assert (np.abs(theirs.mean(0) - view.means) <= 5 * spreads / np.sqrt(n)).all()
    assert (np.abs(theirs.std(0) - spreads) <= 5 * spreads / np.sqrt(2 * n)).all()
    propensities = policy.choose([0.4, -0.2], np.eye(3), RNG(0)).propensities
    np.testing.assert_allclose(propensities, gaussian.propensities(view.means, spreads))


@pytest.mark.parametrize("count", [4, 30])  # fewer arms than weights (12), and more
def test_shared_thompson_propensities_equal_draws_of_the_weights(count: int) -> None:
    feedback, policy, n = some(40), LinTS(scale=0.7, discount=0.98), 20_000
    policy.update(feedback, RNG(0))
    context, arms = np.array([0.4, -0.2]), RNG(2).normal(size=(count, 3))
    inverse, weights = sums(feedback, discount=0.98)
    draws = RNG(3).multivariate_normal(weights, 0.49 * inverse, size=n) @ shared_inputs(context, arms).T
    expected = np.bincount(draws.argmax(1), minlength=count) / n
    choice = replace_draws(policy, n).choose(context, arms, RNG(4))
    error = 5 * np.sqrt(expected * (1 - expected) * 2 / n) + 5 / n
    assert (np.abs(choice.propensities - expected) <= error).all()
    np.testing.assert_allclose(choice.means, shared_inputs(context, arms) @ weights, atol=1e-9)


def replace_draws(policy: LinTS, draws: int) -> LinTS:
    """The same knowledge, seen through more draws."""
    result = replace(policy, draws=draws)
    result._ridges = policy._ridges
    return result


def test_thompson_arms_follow_their_propensities_and_are_never_impossible() -> None:
    policy, n = LinTS(scale=0.3), 1000
    policy.update(some(40), RNG(0))
    arms = RNG(2).normal(size=(20, 3))
    choices = [policy.choose([0.4, -0.2], arms, RNG(seed)) for seed in range(n)]
    assert all(choice.propensities[choice.arm] > 0 for choice in choices)
    p = np.mean([choice.propensities for choice in choices], axis=0)  # a million draws: all but exact
    counts = np.bincount([choice.arm for choice in choices], minlength=20)
    assert (np.abs(counts / n - p) <= 5 * np.sqrt(p * (1 - p) / n)).all()


def test_shared_thompson_propensities_follow_the_arms_exactly_and_twins_share() -> None:
    policy, order = LinTS(scale=0.5), RNG(3).permutation(12)
    policy.update(some(40), RNG(0))
    arms = np.vstack([RNG(2).normal(size=(10, 3)), np.ones((2, 3))])
    straight, turned = (policy.choose([0.4, -0.2], offer, RNG(7)) for offer in (arms, arms[order]))
    np.testing.assert_array_equal(turned.propensities, straight.propensities[order])
    assert straight.propensities[10] == straight.propensities[11]
    twins = [policy.choose([0.4, -0.2], arms[10:], RNG(seed)).arm for seed in range(60)]
    assert 12 <= sum(twins) <= 48  # 30 of 60, within five standard errors


def test_the_default_scale_is_that_of_agrawal_and_goyal() -> None:
    # R = .01, δ = .5, ε = 1/ln 1000; three arms with three weights each.
    expected = 0.01 * np.sqrt(24 * 9 / (1 / np.log(1000)) * np.log(1 / 0.5))
    theirs, given = LinTS(features="disjoint"), LinTS(features="disjoint", scale=float(expected))
    for policy in (theirs, given):
        policy.update(some(9, one_hot=True), RNG(0))
    one, two = (policy.choose([0.3, 0.1], np.eye(3), RNG(0)).propensities for policy in (theirs, given))
    np.testing.assert_allclose(one, two)


@pytest.mark.parametrize(("noise", "prior_precision"), [(1.0, 1.0), (0.5, 3.0)])
def test_bayesian_scores_are_quantiles_of_the_posterior(noise: float, prior_precision: float) -> None:
    feedback = some(30)
    policy = BayesianLinear(noise=noise, prior_precision=prior_precision)
    policy.update(feedback, RNG(0))
    inputs = pair_features(feedback.contexts, feedback.arms)
    covariance = np.linalg.inv(inputs.T @ inputs / noise**2 + prior_precision * np.eye(12))
    mean = covariance @ inputs.T @ feedback.rewards / noise**2
    for seed in range(20):
        context, arms = RNG(seed).normal(size=2), RNG(seed).normal(size=(4, 3))
        choice = policy.choose(context, arms, RNG(0))
        np.testing.assert_allclose(choice.means, shared_inputs(context, arms) @ mean, atol=1e-9)
        assert choice.arm == np.argmax(bounds(shared_inputs(context, arms), covariance, mean, 1.96))


def test_fit_learns_the_history_in_the_order_of_its_times() -> None:
    feedback = some(30)
    assert feedback.times is not None
    fitted, updated = LinUCB(discount=0.9), LinUCB(discount=0.9)
    fitted.fit(feedback, RNG(0))
    updated.update(feedback[np.argsort(feedback.times)], RNG(0))
    np.testing.assert_allclose(scores(fitted, [1, 1], np.eye(3)), scores(updated, [1, 1], np.eye(3)))


@pytest.mark.parametrize(
    "policy", [LinUCB(), LinTS(), BayesianLinear()], ids=lambda each: type(each).__name__
)
def test_fit_forgets_what_came_before_and_remembers_only_if_asked(policy: Any) -> None:
    fresh = replace(policy)
    policy.update(some(10, seed=1), RNG(0))
    policy.fit(some(10, seed=2), RNG(0))
    fresh.fit(some(10, seed=2), RNG(0))
    one, two = (each.choose([1.0, 1.0], np.eye(3), RNG(0)).means for each in (policy, fresh))
    np.testing.assert_array_equal(one, two)
    policy.fit(some(10), RNG(0), remember=False)
    np.testing.assert_array_equal(policy.choose([1.0, 1.0], np.eye(3), RNG(0)).means, 0)


def test_an_untrained_policy_decides_and_can_be_saved(tmp_path: Path) -> None:
    policy = LinUCB(width=0.5)
    policy.save(tmp_path / "policy")
    again = LinUCB.load(tmp_path / "policy")
    for each in (policy, again):
        np.testing.assert_allclose(each.choose([0.0, 0.0], np.eye(3), RNG(0)).propensities, 1 / 3)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (LinUCB, {"width": -1.0}, "width must be a finite number of at least 0; got -1"),
        (LinUCB, {"width": float("nan")}, "width must be"),
        (LinUCB, {"penalty": 0.0}, "penalty must be"),
        (LinUCB, {"discount": 1.1}, "discount must lie"),
        (LinTS, {"scale": 0.0}, "scale must be a finite number above 0; got 0"),
        (LinTS, {"horizon": 1}, "horizon must be at least 2 steps"),
        (LinTS, {"noise": -1.0}, "noise must be"),
        (LinTS, {"risk": 1.0}, "risk must lie between 0 and 1; got 1"),
        (LinTS, {"draws": 0}, "draws must be a whole number, 1 or more; got 0"),
        (BayesianLinear, {"width": -1.0}, "width must be"),
        (BayesianLinear, {"noise": 0.0}, "noise must be"),
        (BayesianLinear, {"prior_precision": 0.0}, "prior_precision must be"),
    ],
)
def test_impossible_options_are_refused(kind: Any, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**options)
