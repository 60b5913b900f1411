"""phi in torch: equal to its export, drawn from the given rng alone."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tercet.embedding import network


class Sum(nn.Module):
    """A module that is not ours, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(2, 3), nn.Dropout(0.5)

    def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
        return self.dropout(self.layer(contexts + arms))


@settings(max_examples=30, deadline=None)
@given(
    context_dim=st.integers(0, 4),
    arm_dim=st.integers(1, 5),
    hidden=st.lists(st.integers(1, 64), max_size=3),
    seed=st.integers(0, 10_000),
)
def test_an_exported_network_agrees_with_torch(
    context_dim: int, arm_dim: int, hidden: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    width = context_dim + arm_dim
    centre, scale = 1e6 * rng.normal(size=width), rng.uniform(0.1, 10, size=width)
    module = network.build(context_dim, arm_dim, rng, hidden=hidden, dim=4, centre=centre, scale=scale)
    inputs = centre + scale * rng.normal(size=(9, width))
    contexts, arms = inputs[:, :context_dim], inputs[:, context_dim:]
    with torch.no_grad():
        expected = module(torch.tensor(contexts), torch.tensor(arms)).numpy()
    np.testing.assert_allclose(network.export(module)(contexts, arms), expected, rtol=0, atol=1e-5)


def test_the_rng_decides_the_weights_and_global_random_state_is_left_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, again, other = (network.build(2, 3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)


def test_initial_weights_fill_the_usual_range() -> None:
    weight = network.build(50, 50, np.random.default_rng(3), hidden=(200,)).layers[0].weight
    # 20,000 uniform draws in ±1/√100: the largest misses the bound by 1e-5 on average.
    assert 0.0999 < weight.abs().max().item() <= 0.1


def test_wrong_sizes_are_refused() -> None:
    rng = np.random.default_rng(4)
    with pytest.raises(ValueError, match="at least one input"):
        network.build(0, 0, rng)
    with pytest.raises(ValueError, match="hidden and dim must be at least 1"):
        network.build(1, 1, rng, hidden=(0,))
    with pytest.raises(ValueError, match="scale must be above 0"):
        network.build(1, 1, rng, scale=[1, -1])
    with pytest.raises(ValueError, match="centre must have length 2"):
        network.build(1, 1, rng, centre=[1])
    with pytest.raises(ValueError, match="takes 1 context and 2 arm features; got 2 and 1"):
        network.build(1, 2, rng)(torch.zeros(3, 2), torch.zeros(3, 1))


def test_a_frozen_module_is_a_copy_in_evaluation_mode() -> None:
    module = Sum().train()
    contexts, arms = np.ones((4, 2)), np.zeros((4, 2))
    phi = network.frozen(module)
    before = phi(contexts, arms)
    expected = (module.layer.weight.sum(dim=1) + module.layer.bias).detach().numpy()
    np.testing.assert_allclose(before, np.tile(expected, (4, 1)), rtol=1e-6)
    with torch.no_grad():
        module.layer.weight += 1
    np.testing.assert_array_equal(phi(contexts, arms), before)
    assert module.training


def test_a_frozen_network_of_ours_needs_no_torch() -> None:
    module = network.build(1, 1, np.random.default_rng(5))
    assert type(network.frozen(module)).__name__ == "Perceptron"


def test_modules_get_inputs_of_the_widest_type_they_hold() -> None:
    assert network.input_type(network.build(1, 1, np.random.default_rng(6))) == torch.float64
    assert network.input_type(Sum()) == torch.float32
    assert network.input_type(nn.Identity()) == torch.float32
