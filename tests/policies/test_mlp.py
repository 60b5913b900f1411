from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet import Feedback
from tercet.policies.mlp import EpsilonGreedyMLP
from tercet.policies.networks import pairs, sigmoid

RNG = np.random.default_rng  # made anew for each call


def chance(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """An interaction that no linear model of context and arm knows."""
    return 1 / (1 + np.exp(-3 * contexts[:, 0] * arms[:, 0]))


def logged(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    return Feedback(
        contexts=contexts, arms=arms, rewards=(rng.random(n) < chance(contexts, arms)).astype(float)
    )


def small(**changes: Any) -> EpsilonGreedyMLP:
    return EpsilonGreedyMLP(**({"hidden": (8,), "epochs": 2, "refit": 16} | changes))


def parameters(policy: EpsilonGreedyMLP) -> list[np.ndarray]:
    assert policy._network is not None
    return policy._network.parameters


def test_expected_rewards_are_those_of_the_same_network_in_torch() -> None:
    policy = small(hidden=(8, 6))
    policy.fit(logged(60), RNG(0))
    context, arms = np.array([0.4, -1.0]), RNG(1).normal(size=(5, 3))
    values = torch.tensor(pairs(*policy._memory.scaled(context[None], arms)))
    layers = [torch.tensor(array) for array in parameters(policy)]
    for number in range(0, len(layers), 2):
        values = values @ layers[number] + layers[number + 1]
        values = torch.relu(values) if number + 2 < len(layers) else torch.sigmoid(values)
    np.testing.assert_allclose(policy.choose(context, arms, RNG(0)).means, values[:, 0].numpy())


def test_it_learns_an_interaction_and_explores_evenly() -> None:
    policy = EpsilonGreedyMLP(epsilon=0.3, epochs=15)
    policy.fit(logged(3_000), RNG(0))
    assert policy._network is not None
    fresh = logged(300, seed=1)
    means = sigmoid(policy._network(pairs(*policy._memory.scaled(fresh.contexts, fresh.arms)))[:, 0])
    # Who knows the average only is off by .25.
    assert np.abs(means - chance(fresh.contexts, fresh.arms)).mean() < 0.08
    choice = policy.choose([1.0, 0.0], [[1.5, 0, 0], [-1.5, 0, 0], [-1.2, 0, 0]], RNG(0))
    np.testing.assert_allclose(choice.propensities, [0.8, 0.1, 0.1])


@pytest.mark.parametrize("window", [None, 13])
def test_what_is_learned_does_not_depend_on_the_batches(window: int | None, tmp_path: Path) -> None:
    one, many, feedback = small(window=window), small(window=window), logged(60)
    for policy in (one, many):
        policy.fit(feedback[:10], RNG(0))
    rng = RNG(1)
    for row in range(10, 60):
        one.update(feedback[row : row + 1], rng)
    many.update(feedback[10:], RNG(1))
    one.save(tmp_path / "a")
    many.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_refits_start_from_the_weights_they_find() -> None:
    policy = small(refit=4, refit_epochs=1, rate=1e-9)
    policy.fit(logged(20), RNG(0))
    before = [array.copy() for array in parameters(policy)]
    policy.update(logged(4, seed=1), RNG(0))
    after = parameters(policy)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old, atol=1e-7)
    assert not all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))


def test_fit_trains_but_leaves_the_memory_empty_if_asked() -> None:
    policy, untrained = small(), small()
    policy.fit(logged(50), RNG(0), remember=False)
    untrained.fit(logged(0), RNG(0))
    assert len(policy._memory) == 0
    assert not np.array_equal(parameters(policy)[0], parameters(untrained)[0])


def test_a_window_keeps_the_newest_by_time() -> None:
    feedback = logged(6)
    late_first = Feedback(
        contexts=feedback.contexts,
        arms=feedback.arms,
        rewards=np.linspace(1, 0, 6),
        times=np.arange(6.0)[::-1],
    )
    policy = small(window=2)
    policy.fit(late_first, RNG(0))
    np.testing.assert_allclose(policy._memory.rewards, [0.8, 1.0])


def test_before_fit_it_says_what_to_do_and_later_it_refuses_other_widths() -> None:
    policy = small()
    with pytest.raises(ValueError, match=r"call fit\(history, rng\)"):
        policy.choose([0.0], np.eye(2), RNG(0))
    policy.fit(logged(5), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(1, 2\)"):
        policy.update(Feedback.one(context=[0.0], arm=[1.0, 0.0], reward=1.0), RNG(0))
    assert len(policy._memory) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": ()}, "hidden must name"),
        ({"epsilon": 1.5}, r"epsilon must lie in \[0, 1\]"),
        ({"rate": 0.0}, "rate must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"batch": 0}, "batch must be"),
        ({"refit": 0}, "refit must be"),
        ({"refit_epochs": 0}, "refit_epochs must be"),
        ({"validation": -0.1}, r"validation must lie in \[0, 1\)"),
        ({"window": 0}, "window must be"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EpsilonGreedyMLP(**options)
