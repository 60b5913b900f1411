from typing import Any

import numpy as np
import pytest

from tercet import Feedback
from tercet.policies.networks import pairs
from tercet.policies.neural_linear import Head, Model, NeuralLinear
from tercet.policies.shallow import Rows

RNG = np.random.default_rng  # made anew for each call


def some(n: int, seed: int = 0, *, features: str = "shared") -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    arms = arms if features == "shared" else np.eye(3)[rng.integers(3, size=n)]
    return Feedback(contexts=contexts, arms=arms, rewards=rng.random(n))


def small(**changes: Any) -> NeuralLinear:
    return NeuralLinear(**({"hidden": (9, 5), "epochs": 2, "refit": 16} | changes))


def model(policy: NeuralLinear) -> Model:
    assert policy._model is not None
    return policy._model


def closed_form(z: np.ndarray, rewards: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Σ = (ZᵀZ/σ² + I)⁻¹ and μ = Σ Zᵀr/σ², outcome by outcome."""
    precision, response = np.eye(z.shape[1]), np.zeros(z.shape[1])
    for row, reward in zip(z, rewards, strict=True):
        precision += np.outer(row, row) / noise**2
        response += reward * row / noise**2
    covariance = np.linalg.inv(precision)
    return covariance @ response, covariance


def features(policy: NeuralLinear, feedback: Feedback) -> np.ndarray:
    """The last hidden layer, written out."""
    learned, scaled = model(policy), policy._memory.scaled(feedback.contexts, feedback.arms)
    values = pairs(*scaled) if policy.features == "shared" else scaled[0]
    for weight, bias in zip(learned.network.weights[:-1], learned.network.biases[:-1], strict=True):
        values = np.maximum(values @ weight + bias, 0)
    return np.hstack([np.ones((len(values), 1)), values])


def test_the_head_is_the_posterior_in_closed_form_and_its_draws_follow_it() -> None:
    rng = RNG(0)
    rows, rewards = Rows(rng.normal(size=(12, 4)), np.zeros(12, dtype=np.int64)), rng.random(12)
    head = Head.empty(4)
    for part in (slice(0, 5), slice(5, 12)):
        head = head.learn(rows.take(part), rewards[part], noise=0.3)
    mean, covariance = closed_form(rows.features, rewards, 0.3)
    np.testing.assert_allclose(head.mean, [mean])
    draws = head.draw(100_000, rng)
    errors = np.sqrt(np.diag(covariance) / 100_000)
    np.testing.assert_allclose(draws.mean(0), mean, atol=5 * errors.max())
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.03 * np.diag(covariance).max())


def test_each_block_of_a_head_is_a_regression_of_its_own() -> None:
    rng = RNG(0)
    rows, rewards = Rows(rng.normal(size=(20, 4)), rng.integers(3, size=20)), rng.random(20)
    head = Head.empty(4, blocks=3).learn(rows, rewards, noise=0.3)
    means, spreads = head.means(rows), head.spreads(rows)
    for block in range(3):
        own = rows.block == block
        mean, covariance = closed_form(rows.features[own], rewards[own], 0.3)
        np.testing.assert_allclose(means[own], rows.features[own] @ mean)
        variances = np.diag(rows.features[own] @ covariance @ rows.features[own].T)
        np.testing.assert_allclose(spreads[own], np.sqrt(variances))


@pytest.mark.parametrize("window", [None, 13])
def test_disjoint_arms_have_heads_of_their_own_on_features_of_the_context(window: int | None) -> None:
    policy, feedback = small(features="disjoint", window=window, noise=0.4), some(50, features="disjoint")
    policy.fit(feedback[:20], RNG(0))
    policy.update(feedback[20:31], RNG(0))
    policy.update(feedback[31:], RNG(0))
    newest = feedback[50 - (window or 50) :]
    z, context = features(policy, newest), features(policy, newest[:1])[0]
    moments = []
    for arm in range(3):
        own = newest.arms[:, arm] == 1
        mean, covariance = closed_form(z[own], newest.rewards[own], 0.4)
        moments.append((context @ mean, np.sqrt(context @ covariance @ context)))
    means, spreads = np.transpose(moments)
    choices = [policy.choose(newest.contexts[0], np.eye(3), RNG(seed)) for seed in range(400)]
    np.testing.assert_allclose(choices[0].means, means, rtol=1e-7, atol=1e-9)
    draws = RNG(0).normal(means, spreads, size=(40_000, 3)).argmax(1)
    expected = np.bincount(draws, minlength=3) / 40_000
    np.testing.assert_allclose(choices[0].propensities, expected, atol=5 * np.sqrt(0.25 / 40_000))
    played = np.bincount([choice.arm for choice in choices], minlength=3) / 400
    np.testing.assert_allclose(played, expected, atol=5 * np.sqrt(0.25 / 400))


def test_disjoint_arms_must_be_one_hot_or_nothing_changes() -> None:
    policy = small(features="disjoint")
    with pytest.raises(ValueError, match="one-hot"):
        policy.fit(some(3), RNG(0))
    policy.fit(some(10, features="disjoint"), RNG(0))
    before = model(policy)
    with pytest.raises(ValueError, match="one-hot"):
        policy.update(some(3), RNG(0))
    assert model(policy) is before
    assert len(policy._memory) == 10


@pytest.mark.parametrize(("window", "kept"), [(None, 50), (13, 13)])
def test_after_any_updates_the_head_has_learned_the_memory_on_the_latest_features(
    window: int | None, kept: int
) -> None:
    policy, feedback = small(window=window, noise=0.4), some(50)
    policy.fit(feedback[:20], RNG(0))
    policy.update(
        feedback[20:31], RNG(0)
    )  # 31 outcomes: the last refit came after 16, the next comes after 32
    policy.update(feedback[31:], RNG(0))
    newest = feedback[50 - kept :]
    mean, covariance = closed_form(features(policy, newest), newest.rewards, 0.4)
    head = model(policy).head
    np.testing.assert_allclose(head.mean, [mean], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.linalg.inv(head.precision), [covariance], rtol=1e-7, atol=1e-9)
    z = features(policy, newest[:4])
    got = policy.choose(newest.contexts[0], newest.arms[:4], RNG(0)).means
    assert got is not None
    assert got[0] == pytest.approx(z[0] @ mean)


@pytest.mark.parametrize("window", [None, 13])
def test_what_is_learned_does_not_depend_on_the_batches(window: int | None) -> None:
    one, many = small(window=window), small(window=window)
    feedback = some(60)
    for policy in (one, many):
        policy.fit(feedback[:10], RNG(0))
    rng = RNG(1)
    for row in range(10, 60):
        one.update(feedback[row : row + 1], rng)
    many.update(feedback[10:], RNG(1))
    for left, right in zip(model(one).network.parameters, model(many).network.parameters, strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_allclose(model(one).head.mean, model(many).head.mean)


def test_refits_change_the_features_and_come_when_they_are_due() -> None:
    policy = small()
    policy.fit(some(16), RNG(0))
    before = model(policy).network
    policy.update(some(15, seed=1), RNG(0))
    assert model(policy).network is before
    policy.update(some(1, seed=2), RNG(0))
    assert model(policy).network is not before


def test_fit_feeds_the_head_only_if_the_history_is_remembered() -> None:
    policy, history = small(), some(30)
    policy.fit(history, RNG(0), remember=False)
    np.testing.assert_array_equal(model(policy).head.precision, [np.eye(6)])
    assert len(policy._memory) == 0
    untrained = small()
    untrained.fit(history[:0], RNG(0))
    assert not np.array_equal(model(untrained).network.weights[0], model(policy).network.weights[0])


def test_the_first_draw_decides_and_all_of_them_are_the_propensities() -> None:
    policy = small(draws=50)
    policy.fit(some(30), RNG(0))
    context, arms = np.ones(2), RNG(1).normal(size=(4, 3))
    z = features(policy, Feedback(contexts=np.tile(context, (4, 1)), arms=arms, rewards=np.zeros(4)))
    for seed in range(20):
        scores = model(policy).head.draw(50, RNG(seed)) @ z.T
        choice = policy.choose(context, arms, RNG(seed))
        assert choice.arm == np.argmax(scores[0])
        np.testing.assert_allclose(choice.propensities, np.bincount(scores.argmax(1), minlength=4) / 50)
        assert choice.propensities[choice.arm] >= 1 / 50


def test_equal_arms_share_evenly() -> None:
    policy = small()
    policy.fit(some(30), RNG(0))
    choices = [policy.choose([0.0, 0.0], np.ones((2, 3)), RNG(seed)) for seed in range(200)]
    np.testing.assert_allclose(choices[0].propensities, 0.5)
    assert abs(sum(choice.arm for choice in choices) - 100) < 5 * np.sqrt(200 / 4)


def test_before_fit_it_says_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"call fit\(history, rng\)"):
        small().update(some(1), RNG(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": (0,)}, "hidden must be"),
        ({"noise": 0.0}, "noise must be"),
        ({"rate": -1.0}, "rate must be"),
        ({"draws": 0}, "draws must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"batch": 0}, "batch must be"),
        ({"refit": 0}, "refit must be"),
        ({"refit_epochs": 0}, "refit_epochs must be"),
        ({"validation": 1.0}, r"validation must lie in \[0, 1\)"),
        ({"window": 0}, "window must be"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeuralLinear(**options)


def test_unknown_features_are_refused() -> None:
    policy: Any = small()
    policy.features = "both"  # given at once, it would not pass the type check that tests run under
    with pytest.raises(ValueError, match=r"features must be one of .'shared', 'disjoint'.; got 'both'"):
        policy.__post_init__()
