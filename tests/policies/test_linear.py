from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback
from tercet.policies.linear import LinUCB, pair_features

RNG = np.random.default_rng  # made anew for each call


def some(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    return Feedback(contexts=contexts, arms=arms, rewards=rng.random(n), times=rng.random(n))


def brute_scores(
    feedback: Feedback,
    context: np.ndarray,
    arms: np.ndarray,
    *,
    width: float,
    penalty: float,
    discount: float,
) -> np.ndarray:
    """Scores from sums written out: V = Σ γ^age x xᵀ + λI, w = V⁻¹ Σ γ^age r x, w·x + width·√(xᵀV⁻¹x)."""

    def features(c: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.array([1.0, *c, *a, *(ci * aj for ci in c for aj in a)])

    size = 1 + 2 + 3 + 6
    precision, response = penalty * np.eye(size), np.zeros(size)
    for age, row in enumerate(reversed(range(len(feedback)))):
        x = features(feedback.contexts[row], feedback.arms[row])
        precision += discount**age * np.outer(x, x)
        response += discount**age * feedback.rewards[row] * x
    inverse = np.linalg.inv(precision)
    inputs = [features(context, arm) for arm in arms]
    return np.array([x @ inverse @ response + width * np.sqrt(x @ inverse @ x) for x in inputs])


def scores(policy: LinUCB, context: np.ndarray, arms: np.ndarray) -> np.ndarray:
    inputs = pair_features(np.tile(context, (len(arms), 1)), arms)
    assert policy._ridge is not None
    return inputs @ policy._ridge.weights + policy.width * policy._ridge.spread(inputs)


@given(st.integers(0, 25), st.floats(0, 3), st.floats(0.1, 10), st.floats(0.5, 1), st.integers(0, 25))
@settings(max_examples=40)
def test_scores_equal_brute_force_however_the_outcomes_are_batched(
    n: int, width: float, penalty: float, discount: float, cut: int
) -> None:
    feedback, policy = some(n), LinUCB(width=width, penalty=penalty, discount=discount)
    for part in (feedback[:cut], feedback[cut:]):
        policy.update(part, RNG(0))
    context, arms = RNG(1).normal(size=2), RNG(2).normal(size=(5, 3))
    expected = brute_scores(feedback, context, arms, width=width, penalty=penalty, discount=discount)
    # V's condition number stays below 1e4 here, and float64 has sixteen digits.
    np.testing.assert_allclose(scores(policy, context, arms), expected, rtol=1e-9, atol=1e-9)
    chosen = policy.choose(context, arms, RNG(0)).arm
    assert expected[chosen] == pytest.approx(expected.max(), abs=1e-9)


def test_fit_learns_the_history_in_the_order_of_its_times() -> None:
    feedback = some(30)
    assert feedback.times is not None
    fitted, updated = LinUCB(discount=0.9), LinUCB(discount=0.9)
    fitted.fit(feedback, RNG(0))
    updated.update(feedback[np.argsort(feedback.times)], RNG(0))
    context, arms = np.ones(2), np.eye(3)
    np.testing.assert_allclose(scores(fitted, context, arms), scores(updated, context, arms))


def test_fit_forgets_what_came_before_and_remembers_only_if_asked() -> None:
    policy, fresh = LinUCB(), LinUCB()
    policy.update(some(10, seed=1), RNG(0))
    policy.fit(some(10, seed=2), RNG(0))
    fresh.update(some(10, seed=2), RNG(0))
    context, arms = np.ones(2), np.eye(3)
    np.testing.assert_allclose(scores(policy, context, arms), scores(fresh, context, arms))
    policy.fit(some(10), RNG(0), remember=False)
    assert policy._ridge is not None
    np.testing.assert_array_equal(policy._ridge.weights, 0)


def test_an_untried_direction_stays_well_defined_after_long_fading() -> None:
    policy = LinUCB(discount=0.5)
    for _ in range(200):  # .5^200 of the first outcome is left: nothing but the regulariser holds V up
        policy.update(Feedback.one(context=[1.0], arm=[1.0, 0.0], reward=1.0), RNG(0))
    assert policy._ridge is not None
    np.testing.assert_allclose(policy._ridge.spread(np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]])), 1.0)


def test_an_untrained_policy_decides_and_can_be_saved(tmp_path: Path) -> None:
    policy = LinUCB(width=0.5)
    policy.save(tmp_path / "policy")
    again = LinUCB.load(tmp_path / "policy")
    for each in (policy, again):
        np.testing.assert_allclose(each.choose([0.0, 0.0], np.eye(3), RNG(0)).propensities, 1 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": -1.0}, "width must be a finite number of at least 0; got -1"),
        ({"width": float("nan")}, "width must be"),
        ({"penalty": 0.0}, "penalty must be"),
        ({"discount": 0.0}, "discount must lie above 0 and not above 1; got 0"),
        ({"discount": 1.1}, "discount must lie"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinUCB(**options)


def test_features_of_another_width_are_refused() -> None:
    policy = LinUCB()
    policy.update(some(3), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features; got \(1, 3\)"):
        policy.choose([0.0], np.eye(3), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features; got \(2, 2\)"):
        policy.update(Feedback.one(context=[0.0, 0.0], arm=[1.0, 0.0], reward=1.0), RNG(0))
