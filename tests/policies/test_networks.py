from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback
from tercet.policies import networks
from tercet.policies.networks import (
    Adam,
    Course,
    Loss,
    Network,
    error,
    pairs,
    parts,
    predict,
    sigmoid,
    train,
)

RNG = np.random.default_rng  # made anew for each call


def some(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(3, 5, size=(n, 6)), rng.normal(size=(n, 2))
    return Feedback(contexts=contexts, arms=arms, rewards=rng.random(n))


def tensors(arrays: Sequence[np.ndarray]) -> list[torch.Tensor]:
    return [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in arrays]


def in_torch(parameters: Sequence[torch.Tensor], inputs: np.ndarray) -> torch.Tensor:
    values = torch.tensor(inputs, dtype=torch.float64)
    for layer, (weight, bias) in enumerate(zip(parameters[::2], parameters[1::2], strict=True)):
        values = values @ weight + bias
        if 2 * layer + 2 < len(parameters):
            values = torch.relu(values)
    return values


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("layers", [[(5, 7, 1)], [(5, 1)], [(5, 7, 4), (3, 6, 5, 4)]])
def test_predictions_losses_and_gradients_are_those_of_torch(
    layers: list[tuple[int, ...]], loss: Loss
) -> None:
    rng = RNG(0)
    towers = [Network.fresh(sizes, rng) for sizes in layers]
    for tower in towers:
        for bias in tower.biases:
            bias += rng.normal(size=bias.shape)
    inputs, rewards = [rng.normal(size=(20, sizes[0])) for sizes in layers], rng.random(20)
    leaves = [tensors(tower.parameters) for tower in towers]
    outputs = [in_torch(leaf, columns) for leaf, columns in zip(leaves, inputs, strict=True)]
    predicted = torch.stack(outputs).prod(0).sum(1)
    target = torch.tensor(rewards)
    expected = (
        ((predicted - target) ** 2).mean() / 2
        if loss == "squared"
        else torch.nn.functional.binary_cross_entropy_with_logits(predicted, target)
    )
    expected.backward()  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(predict(towers, inputs), predicted.detach().numpy(), rtol=1e-10)
    assert error(predict(towers, inputs), rewards, loss) == pytest.approx(expected.item(), rel=1e-10)
    got = networks._gradients(towers, inputs, rewards, loss)
    for gradient, leaf in zip(got, [leaf for tower in leaves for leaf in tower], strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_adam_steps_as_torch_does() -> None:
    rng = RNG(0)
    arrays = [rng.normal(size=(3, 4)), rng.normal(size=5)]
    leaves = tensors(arrays)
    ours, theirs = Adam(parameters=arrays, rate=0.05), torch.optim.Adam(leaves, lr=0.05)
    for _ in range(20):
        gradients = [rng.normal(size=array.shape) for array in arrays]
        ours.step(gradients)
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf.grad = torch.tensor(gradient)
        theirs.step()
        for array, leaf in zip(arrays, leaves, strict=True):
            np.testing.assert_allclose(array, leaf.detach().numpy(), rtol=1e-7)


def known(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(seed)
    x = rng.uniform(-2, 2, size=(n, 2))
    return x, np.sin(x[:, 0]) * x[:, 1] + noise * rng.normal(size=n)


def test_training_learns_a_known_function_down_to_its_noise() -> None:
    x, y = known(2_000, noise=0.3, seed=0)
    course = Course(epochs=60, rate=1e-2, batch=64, loss="squared", validation=0.1)
    towers = train([Network.fresh((2, 32, 1), RNG(1))], [x], y, RNG(2), course)
    fresh, truth = known(2_000, noise=0.0, seed=3)
    # The variance of the function is .73, that of the noise .09: what is left to learn must be small.
    assert np.mean((predict(towers, [fresh]) - truth) ** 2) < 0.01


def test_logits_learn_known_probabilities() -> None:
    rng = RNG(0)
    x = rng.normal(size=(4_000, 2))
    chances = sigmoid(2 * x[:, 0] - 1)
    rewards = (rng.random(4_000) < chances).astype(float)
    course = Course(epochs=20, rate=5e-3, batch=64, loss="logistic", validation=0.1)
    towers = train([Network.fresh((2, 16, 1), rng)], [x], rewards, rng, course)
    assert np.abs(sigmoid(predict(towers, [x])) - chances).mean() < 0.03


def test_the_epoch_with_the_best_validation_loss_is_kept_as_it_was() -> None:
    x, y = known(60, noise=1.0, seed=0)  # few and noisy: it soon overfits
    start, held = [Network.fresh((2, 64, 1), RNG(1))], RNG(2).permutation(60)[:18]

    def after(epochs: int) -> float:
        course = Course(epochs=epochs, rate=3e-2, batch=8, loss="squared", validation=0.3)
        return error(predict(train(start, [x], y, RNG(2), course), [x[held]]), y[held], "squared")

    losses = [after(epochs) for epochs in range(1, 16)]
    assert all(later <= sooner for sooner, later in pairwise(losses))
    assert len(set(losses)) < len(losses)  # some epochs were worse, and their weights were not kept


def test_training_leaves_the_given_network_alone_and_repeats_itself() -> None:
    x, y = known(50, noise=0.1, seed=0)
    start = Network.fresh((2, 8, 1), RNG(1))
    before = [array.copy() for array in start.parameters]
    course = Course(epochs=3, rate=1e-2, batch=16, loss="squared")
    (one,), (two,) = (train([start], [x], y, RNG(5), course) for _ in range(2))
    for old, now, first, second in zip(before, start.parameters, one.parameters, two.parameters, strict=True):
        np.testing.assert_array_equal(old, now)
        np.testing.assert_array_equal(first, second)
        assert not np.array_equal(first, old)


def test_without_rows_training_changes_nothing() -> None:
    start = Network.fresh((2, 8, 1), RNG(1))
    course = Course(epochs=3, rate=1e-2, batch=16, loss="logistic", validation=0.5)
    (same,) = train([start], [np.empty((0, 2))], np.empty(0), RNG(0), course)
    for old, new in zip(start.parameters, same.parameters, strict=True):
        np.testing.assert_array_equal(old, new)


def test_signals_keep_their_size_and_a_dot_product_starts_with_variance_one() -> None:
    rng = RNG(0)
    x = rng.normal(size=(500, 300))
    logits = [
        predict([Network.fresh((300, 200, 100, 32), rng), Network.fresh((300, 64, 32), rng)], [x, x[::-1]])
        for _ in range(20)
    ]
    assert np.var(logits) == pytest.approx(1, abs=0.25)


def test_logits_of_any_size_have_a_probability() -> None:
    np.testing.assert_array_equal(sigmoid(np.array([-1e9, 0.0, 1e9])), [0, 0.5, 1])
    assert error(np.array([1e9]), np.array([0.0]), "logistic") == 1e9


def test_context_and_arm_weigh_alike_and_a_single_context_goes_with_every_arm() -> None:
    rng = RNG(0)
    contexts, arms = rng.normal(size=(4_000, 6)), rng.normal(size=(4_000, 2))
    joint = pairs(contexts, arms)
    halves = [(joint[:, :6] ** 2).sum(1).mean(), (joint[:, 6:] ** 2).sum(1).mean()]
    np.testing.assert_allclose(halves, 4, rtol=0.1)
    np.testing.assert_array_equal(pairs(contexts[:1], arms[:3]), pairs(contexts[[0, 0, 0]], arms[:3]))


def test_a_network_without_layers_passes_its_inputs_on_and_learns_nothing() -> None:
    rng = RNG(0)
    x, shown = rng.normal(size=(30, 2)), np.eye(3)[rng.integers(3, size=30)]
    start, as_it_is = Network.fresh((2, 4, 3), rng), Network(weights=(), biases=())
    predicted = predict((start, as_it_is), (x, shown))
    np.testing.assert_array_equal(predicted, start(x)[np.arange(30), shown.argmax(1)])
    course = Course(epochs=1, rate=1e-2, batch=30, loss="squared")
    only = shown[:, 0] == 1
    trained, _ = train((start, as_it_is), (x[only], shown[only]), np.ones(only.sum()), rng, course)
    np.testing.assert_array_equal(trained.weights[-1][:, 1:], start.weights[-1][:, 1:])
    assert not np.array_equal(trained.weights[-1][:, 0], start.weights[-1][:, 0])


def test_refits_come_after_doublings_and_then_regularly() -> None:
    seen, due = 0, []
    for part, refit in parts(some(70), 0, 20):
        seen += len(part)
        due += [seen] if refit else []
    assert due == [1, 2, 4, 8, 16, 20, 40, 60]
    assert [(len(part), refit) for part, refit in parts(some(70), 0, None)] == [(70, False)]


@given(st.integers(0, 60), st.integers(1, 30), st.lists(st.integers(0, 60), max_size=4))
@settings(max_examples=30)
def test_refits_do_not_depend_on_how_outcomes_are_batched(seen: int, refit: int, cuts: list[int]) -> None:
    feedback = some(60)

    def refits(edges: list[int]) -> list[int]:
        count, found = seen, []
        for start, stop in pairwise([0, *sorted(edges), 60]):
            for part, due in parts(feedback[start:stop], count, refit):
                count += len(part)
                found += [count] if due else []
        assert count == seen + 60
        return found

    assert refits(cuts) == refits([])


@pytest.mark.parametrize("widths", [(), (0,), (3, -1), (2.5,), ("a",)])
def test_impossible_layers_are_refused(widths: Any) -> None:
    with pytest.raises(ValueError, match="hidden must"):
        networks.sizes("hidden", widths)
