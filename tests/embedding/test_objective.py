"""The estimate that carries gradient equals the paper's formulas, and stays finite where they do not."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.checks import Array, Matrix, Vector
from tercet.embedding.objective import EDGE, estimate, loss


def brute_force(
    queries: Matrix,
    references: Matrix,
    rewards: Vector,
    bandwidth: float,
    same: Array,
    reference_same: Array,
    importance: bool,
) -> tuple[Vector, Vector]:
    """Eq. 4 and 5 in plain loops."""

    def kernel(a: Vector, b: Vector) -> float:
        return float(np.exp(-((a - b) ** 2).sum() / (2 * bandwidth**2)))

    n = range(len(references))
    density = [sum(kernel(references[i], references[j]) for j in n if reference_same[i, j]) for i in n]
    mass, mean = [], []
    for row, query in enumerate(queries):
        near = {i: kernel(query, references[i]) for i in n if same[row, i]}
        weights = {i: k / density[i] if importance else k for i, k in near.items()}
        mass.append(sum(near.values()))
        mean.append(sum(w * rewards[i] for i, w in weights.items()) / sum(weights.values()))
    return np.array(mass), np.array(mean)


def tensors(*arrays: Array) -> list[torch.Tensor]:
    return [torch.tensor(array, dtype=torch.float32) for array in arrays]


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 12),
    dim=st.integers(1, 5),
    bandwidth=st.floats(0.3, 3),
    groups=st.integers(1, 3),
    importance=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_the_estimate_is_the_papers(
    n: int, dim: int, bandwidth: float, groups: int, importance: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    references, rewards = rng.normal(size=(n, dim)), rng.random(n)
    group = rng.integers(groups, size=n)
    queries, own = rng.normal(size=(6, dim)), rng.choice(group, size=6)
    same, reference_same = own[:, None] == group, group[:, None] == group
    mass, mean = estimate(
        *tensors(queries, references, rewards),
        bandwidth=bandwidth,
        same=torch.tensor(same),
        reference_same=torch.tensor(reference_same),
        importance=importance,
    )
    expected = brute_force(queries, references, rewards, bandwidth, same, reference_same, importance)
    np.testing.assert_allclose(mass, expected[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(mean, expected[1], rtol=0, atol=1e-5)


def test_without_masks_every_reference_counts() -> None:
    rng = np.random.default_rng(0)
    queries, references, rewards = rng.normal(size=(5, 2)), rng.normal(size=(30, 2)), rng.random(30)
    whole = np.ones((5, 30), dtype=bool), np.ones((30, 30), dtype=bool)
    expected = brute_force(queries, references, rewards, 0.7, *whole, importance=True)
    mass, mean = estimate(*tensors(queries, references, rewards), bandwidth=0.7)
    np.testing.assert_allclose(mass, expected[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(mean, expected[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("importance", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_queries_references_and_densities_carry_the_true_gradient(importance: bool, masked: bool) -> None:
    torch_rng = torch.Generator().manual_seed(1)
    queries, references, rewards = (
        torch.rand(shape, generator=torch_rng, dtype=torch.float64) for shape in [(4, 3), (7, 3), (7,)]
    )
    group = torch.tensor([0, 0, 0, 1, 1, 1, 1])
    masks = {}
    if masked:
        own = torch.tensor([0, 1, 1, 5])  # the last has no reference
        masks = {"same": own[:, None] == group, "reference_same": group[:, None] == group}

    def function(q: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return estimate(q, s, rewards, bandwidth=0.5, importance=importance, **masks)

    assert torch.autograd.gradcheck(function, (queries.requires_grad_(), references.requires_grad_()))


def test_where_every_kernel_underflows_the_estimate_is_finite_and_keeps_its_gradient() -> None:
    queries = torch.tensor([[0.0, 0.0]], requires_grad=True)
    references = torch.tensor([[100.0, 0.0], [100.001, 0.0], [-300.0, 0.0]], requires_grad=True)
    mass, mean = estimate(queries, references, torch.tensor([1.0, 0.0, 0.5]), bandwidth=1.0)
    mean.sum().backward()
    assert mass.item() == pytest.approx(0, abs=1e-30)
    # The nearer of the two references is ahead by a factor e^0.1.
    assert mean.item() == pytest.approx(1 / (1 + np.exp(-0.1)), abs=0.01)
    for gradient in (queries.grad, references.grad):
        assert gradient is not None
        assert gradient.isfinite().all()
    assert abs(references.grad[0, 0].item()) > 1


def test_far_from_the_origin_the_estimate_is_the_same() -> None:
    rng = np.random.default_rng(2)
    queries, references, rewards = rng.normal(size=(5, 3)), rng.normal(size=(20, 3)), rng.random(20)
    here = estimate(*tensors(queries, references, rewards), bandwidth=1.0)
    there = estimate(*tensors(queries + 1000, references + 1000, rewards), bandwidth=1.0)
    # float32 keeps 1000 to 6e-5, which moves exponents of some units by 1e-3 at most.
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4)


def test_a_query_without_references_has_no_mass_no_opinion_and_no_gradient() -> None:
    queries = torch.randn(2, 3, generator=torch.Generator().manual_seed(3), requires_grad=True)
    references, rewards = torch.zeros(4, 3), torch.ones(4)
    same = torch.tensor([[True] * 4, [False] * 4])
    mass, mean = estimate(queries, references, rewards, bandwidth=1.0, same=same)
    (mass + mean).sum().backward()
    assert (mass[1].item(), mean[1].item()) == (0.0, 0.5)
    assert queries.grad is not None
    assert queries.grad.isfinite().all()
    assert (queries.grad[1] == 0).all()
    assert (queries.grad[0] != 0).any()
    mass, mean = estimate(queries, torch.empty(0, 3), torch.empty(0), bandwidth=1.0)
    assert mass.tolist() == [0, 0]
    assert mean.tolist() == [0.5, 0.5]


def test_leading_dimensions_are_independent_problems() -> None:
    rng = torch.Generator().manual_seed(4)
    queries, references, rewards = (torch.rand(s, generator=rng) for s in [(3, 4, 2), (3, 6, 2), (3, 6)])
    together = torch.stack(estimate(queries, references, rewards, bandwidth=0.4))
    for i in range(3):
        alone = torch.stack(estimate(queries[i], references[i], rewards[i], bandwidth=0.4))
        np.testing.assert_allclose(together[:, i], alone, rtol=0, atol=1e-5)


def test_the_loss_is_cross_entropy_plus_calibration_error() -> None:
    mean = torch.tensor([0.1, 0.15, 0.55, 0.95, 1.0])
    rewards = torch.tensor([0.0, 1.0, 0.5, 1.0, 0.8])
    p = EDGE + (1 - 2 * EDGE) * mean
    entropy = -(rewards * p.log() + (1 - rewards) * (1 - p).log()).mean()
    # Bins of a fifth: {.1, .15} against {0, 1}, {.55} against .5, {.95, 1} against {1, .8}.
    error = (2 * abs(0.125 - 0.5) + abs(0.55 - 0.5) + 2 * abs(0.975 - 0.9)) / 5
    assert loss(mean, rewards, calibration=0.0, bins=5).item() == pytest.approx(entropy.item(), rel=1e-5)
    assert loss(mean, rewards, calibration=3.0, bins=5).item() == pytest.approx(
        entropy.item() + 3 * error, rel=1e-5
    )


def test_the_mean_confidence_of_a_bin_carries_gradient() -> None:
    mean = torch.tensor([0.3, 0.35, 0.8], dtype=torch.float64, requires_grad=True)
    rewards = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda m: loss(m, rewards, calibration=2.0, bins=5), (mean,))


def test_a_confident_mistake_costs_much_but_not_everything_and_can_be_corrected() -> None:
    mean = torch.tensor([0.0, 1.0], requires_grad=True)
    value = loss(mean, torch.tensor([1.0, 0.0]), calibration=1.0, bins=5)
    value.backward()
    assert value.item() == pytest.approx(-np.log(EDGE) + 1, rel=1e-3)
    assert mean.grad is not None
    assert mean.grad[0] < 0 < mean.grad[1]
