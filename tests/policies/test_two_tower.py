from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet import Feedback
from tercet.policies.networks import train
from tercet.policies.two_tower import TwoTower

RNG = np.random.default_rng  # made anew for each call


def chance(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-2 * (contexts[:, 0] * arms[:, 0] - contexts[:, 1] * arms[:, 2])))


def logged(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    return Feedback(
        contexts=contexts, arms=arms, rewards=(rng.random(n) < chance(contexts, arms)).astype(float)
    )


def tiny(**changes: Any) -> TwoTower:
    return TwoTower(**({"context_layers": (6, 4), "arm_layers": (5, 4), "epochs": 2} | changes))


def contents(path: Path, policy: TwoTower) -> bytes:
    policy.save(path)
    return path.read_bytes()


def test_expected_rewards_are_those_of_the_same_towers_in_torch() -> None:
    policy = TwoTower.large(epochs=1)
    policy.fit(logged(80), RNG(0))
    context, arms = np.array([0.4, -1.0]), RNG(1).normal(size=(5, 3))
    outputs = []
    columns = policy._memory.scaled(np.tile(context, (5, 1)), arms)
    for tower, inputs in zip(policy._towers, columns, strict=True):
        module = torch.nn.Sequential()
        for weight, bias in zip(tower.weights, tower.biases, strict=True):
            layer = torch.nn.Linear(*weight.shape, dtype=torch.float64)
            layer.weight.data, layer.bias.data = torch.tensor(weight.T), torch.tensor(bias)
            module.extend([layer, torch.nn.ReLU()])
        outputs.append(module[:-1](torch.tensor(inputs)))
    expected = torch.sigmoid((outputs[0] * outputs[1]).sum(1)).detach().numpy()
    np.testing.assert_allclose(policy.choose(context, arms, RNG(0)).means, expected)


def test_the_papers_sizes_follow_the_data_at_the_input_only() -> None:
    for policy, layers in (
        (TwoTower.small(epochs=1), [(2, 64, 32), (3, 128, 32)]),
        (TwoTower.large(epochs=1), [(2, 64, 64), (3, 256, 64)]),
    ):
        policy.fit(logged(10), RNG(0))
        for tower, (inputs, hidden, outputs) in zip(policy._towers, layers, strict=True):
            assert [weight.shape for weight in tower.weights] == [(inputs, hidden), (hidden, outputs)]
    assert (TwoTower.small().epochs, TwoTower.large().epochs) == (5, 40)
    assert TwoTower.large(rate=8e-4).rate == 8e-4


def test_it_learns_the_probabilities_of_a_bilinear_world() -> None:
    policy, fresh = TwoTower.small(), logged(300, seed=1)
    policy.fit(logged(4_000), RNG(0))
    truth = chance(fresh.contexts, fresh.arms)
    means = [
        policy.choose(context, arm[None], RNG(0)).means
        for context, arm in zip(fresh.contexts, fresh.arms, strict=True)
    ]
    # Who knows the average only is off by .28.
    assert np.abs(np.concatenate([mean for mean in means if mean is not None]) - truth).mean() < 0.1


def test_without_refit_outcomes_change_nothing_and_are_not_kept(tmp_path: Path) -> None:
    policy = tiny()
    policy.fit(logged(30), RNG(0))
    before = contents(tmp_path / "a", policy)
    policy.update(logged(50, seed=1), RNG(0))
    assert contents(tmp_path / "a", policy) == before
    assert len(policy._memory) == 0


def test_with_refit_what_is_learned_does_not_depend_on_the_batches(tmp_path: Path) -> None:
    one, many, feedback = tiny(refit=16), tiny(refit=16), logged(60)
    for policy in (one, many):
        policy.fit(feedback[:10], RNG(0))
    start, rng = many._towers, RNG(1)
    for row in range(10, 60):
        one.update(feedback[row : row + 1], rng)
    many.update(feedback[10:], RNG(1))
    assert contents(tmp_path / "a", one) == contents(tmp_path / "b", many)
    assert many._towers is not start


def test_with_a_window_it_refits_on_the_newest_outcomes_only() -> None:
    policy, feedback = tiny(refit=16, window=12), logged(48)
    policy.fit(logged(8), RNG(0))
    policy.update(feedback[:39], RNG(0))
    start = policy._towers
    policy.update(feedback[39:40], RNG(1))  # the 48th, with those of the history
    newest = feedback[28:40]
    columns = policy._memory.scaled(newest.contexts, newest.arms)
    expected = train(start, columns, newest.rewards, RNG(1), policy._course(0.0))
    for tower, other in zip(policy._towers, expected, strict=True):
        for one, two in zip(tower.parameters, other.parameters, strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_history_that_is_not_remembered_still_trains_the_towers() -> None:
    policy, untrained = tiny(refit=16), tiny(refit=16)
    policy.fit(logged(30), RNG(0), remember=False)
    untrained.fit(logged(0), RNG(0))
    assert len(policy._memory) == 0
    assert not np.array_equal(policy._towers[0].weights[0], untrained._towers[0].weights[0])


def test_epsilon_is_shared_evenly() -> None:
    policy = tiny(epsilon=0.3)
    policy.fit(logged(30), RNG(0))
    choice = policy.choose([0.5, 0.5], np.eye(3), RNG(0))
    assert choice.means is not None
    expected = np.full(3, 0.1)
    expected[choice.means.argmax()] += 0.7
    np.testing.assert_allclose(choice.propensities, expected)


def test_before_fit_it_says_what_to_do_and_later_it_refuses_other_widths() -> None:
    policy = tiny()
    with pytest.raises(ValueError, match=r"call fit\(history, rng\)"):
        policy.choose([0.0], np.eye(2), RNG(0))
    policy.fit(logged(5), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(1, 2\)"):
        policy.update(Feedback.one(context=[0.0], arm=[1.0, 0.0], reward=1.0), RNG(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context_layers": ()}, "context_layers must name"),
        ({"arm_layers": (0,)}, "arm_layers must be"),
        ({"context_layers": (8, 3)}, "must be equal, for their dot product; got 3 and 32"),
        ({"epsilon": -0.1}, r"epsilon must lie in \[0, 1\]"),
        ({"rate": 0.0}, "rate must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"batch": 0}, "batch must be"),
        ({"refit": 0}, "refit must be"),
        ({"window": 0}, "window must be"),
        ({"validation": 1.0}, r"validation must lie in \[0, 1\)"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TwoTower(**options)
