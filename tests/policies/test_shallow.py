import numpy as np
import pytest
import torch

from tercet.policies.shallow import Rows, Shallow, counted, descend, novelty

RNG = np.random.default_rng  # made anew for each call
BLOCKS = pytest.mark.parametrize("blocks", [1, 3])


def some(n: int, *, blocks: int, width: int = 4, seed: int = 1) -> Rows:
    rng = RNG(seed)
    return Rows(rng.normal(size=(n, width)), rng.integers(blocks, size=n))


def network(seed: int = 0, *, blocks: int = 1, width: int = 4, hidden: int = 6) -> Shallow:
    rng = RNG(seed)
    return Shallow(first=rng.normal(size=(blocks, width, hidden)), last=rng.normal(size=hidden))


def written_out(rows: Rows, blocks: int) -> np.ndarray:
    """x ⊗ e_b with all its zeros."""
    return np.array([np.kron(np.eye(blocks)[b], x) for x, b in zip(*rows, strict=True)])


def in_torch(net: Shallow, rows: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """f by section 2 of Zhou et al. (2020) on the whole vectors, and its parameters as leaves."""
    blocks, width, hidden = net.first.shape
    first = torch.tensor(net.first.reshape(blocks * width, hidden), requires_grad=True)
    last = torch.tensor(net.last, requires_grad=True)
    x = torch.tensor(written_out(rows, blocks))
    return hidden**0.5 * torch.relu(x @ first) @ last, first, last


def gradients(net: Shallow, rows: Rows) -> np.ndarray:
    """The gradient of f over √m at each row, all parameters in a line, by torch."""
    lines = []
    for row in range(len(rows.block)):
        value, first, last = in_torch(net, rows.take([row]))
        value.sum().backward()  # type: ignore[no-untyped-call]
        assert first.grad is not None
        assert last.grad is not None
        lines.append(np.append(first.grad.numpy(), last.grad.numpy()) / len(net.last) ** 0.5)
    return np.array(lines).reshape(len(lines), net.first.size + net.last.size)


def flat(net: Shallow) -> np.ndarray:
    return np.append(net.first, net.last)


def constant(like: Shallow, value: float) -> Shallow:
    return Shallow(first=np.full_like(like.first, value), last=np.full_like(like.last, value))


@BLOCKS
def test_f_and_the_squares_of_its_gradient_are_those_of_torch_on_whole_vectors(blocks: int) -> None:
    net, rows = network(blocks=blocks), some(9, blocks=blocks)
    np.testing.assert_allclose(net(rows), in_torch(net, rows)[0].detach().numpy())
    squares = gradients(net, rows) ** 2
    evidence = counted(constant(net, 0.3), net, rows)
    np.testing.assert_allclose(flat(evidence), 0.3 + squares.sum(0))
    np.testing.assert_allclose(novelty(net, evidence, rows), (squares / flat(evidence)).sum(1))


@BLOCKS
@pytest.mark.parametrize("penalty", [0.01, 3.0])
def test_a_gradient_step_is_that_of_torch_on_the_papers_loss(penalty: float, blocks: int) -> None:
    rng = RNG(3)
    net, start = network(blocks=blocks), network(4, blocks=blocks)
    rows, rewards = some(5, blocks=blocks), rng.random(5)
    f, first, last = in_torch(net, rows)
    (((f - torch.tensor(rewards)) ** 2).sum() / 2 / 5).backward()  # type: ignore[no-untyped-call]
    assert first.grad is not None
    assert last.grad is not None
    slope = np.append(first.grad.numpy(), last.grad.numpy())
    got = descend(net, start, rows, rewards, rng, steps=1, rate=0.01, batch=8, penalty=penalty)
    # The implicit step on mλ‖θ - θ₀‖²/2n solves θ' = θ - rate·slope - rate·(mλ/n)·(θ' - θ₀).
    left = flat(got) - (flat(net) - 0.01 * slope - 0.01 * 6 * penalty / 5 * (flat(got) - flat(start)))
    np.testing.assert_allclose(left, 0, atol=1e-12)


@BLOCKS
def test_f_is_zero_at_first_and_its_gradient_has_a_length_of_about_root_two(blocks: int) -> None:
    fresh, rows = Shallow.fresh(30, 400, RNG(0), blocks=blocks), some(50, blocks=blocks, width=30)
    rows = Rows(rows.features / np.linalg.norm(rows.features, axis=1, keepdims=True), rows.block)
    np.testing.assert_allclose(fresh(rows), 0, atol=1e-12)
    # One of each layer.
    np.testing.assert_allclose(novelty(fresh, constant(fresh, 1.0), rows).mean(), 2, rtol=0.2)


def test_training_learns_a_known_function_down_to_its_noise() -> None:
    rng = RNG(0)
    x = rng.uniform(-1, 1, size=(1_000, 2))
    rewards = 0.5 + 0.4 * np.sin(3 * x[:, 0]) * np.sign(x[:, 1])
    noisy = rewards + 0.1 * rng.normal(size=1_000)
    rows = Rows(np.hstack([np.ones((1_000, 1)), x]) / np.sqrt(3), np.zeros(1_000, dtype=np.int64))
    start = Shallow.fresh(3, 100, rng)
    net = descend(start, start, rows, noisy, rng, steps=8_000, rate=1e-2, batch=64, penalty=1e-5)
    # The function's variance is .09, the noise's .01.
    assert np.mean((net(rows) - rewards) ** 2) < 0.01


def test_training_leaves_the_given_network_alone() -> None:
    start, rows = network(), some(10, blocks=1)
    before = flat(start).copy()
    descend(start, start, rows, np.ones(10), RNG(2), steps=3, rate=1e-2, batch=4, penalty=1e-5)
    np.testing.assert_array_equal(flat(start), before)


def test_a_large_penalty_holds_the_network_at_its_start() -> None:
    start, rows = Shallow.fresh(4, 20, RNG(0)), some(10, blocks=1)
    held = descend(start, start, rows, np.ones(10), RNG(2), steps=50, rate=1e-2, batch=64, penalty=1e9)
    np.testing.assert_allclose(flat(held), flat(start), atol=1e-6)
