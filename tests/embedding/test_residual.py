"""Our residual phi: NumPy and torch agree, checkpoints are exact, bad input ends at the door."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.checks import Matrix
from tercet.embedding import inference
from tercet.embedding.encoding import Encoding
from tercet.embedding.residual import Block, Layer, Residual
from tercet.embedding.residual_network import ARM, CONTEXT, ResidualNetwork, export

# float32 layers of up to 40 summands, whose normalised values lie within ±6.
CLOSE: dict[str, float] = {"rtol": 0, "atol": 1e-4}


def network(
    context: Encoding, arm: Encoding, *, seed: int = 0, width: int = 16, blocks: int = 2, dropout: float = 0.5
) -> ResidualNetwork:
    """A network as if it were trained: its normalisations have gains and shifts, its blocks add something."""
    rng = np.random.default_rng(seed)
    made = ResidualNetwork(
        np.ones(context.outputs),
        np.ones(arm.outputs),
        width=width,
        blocks=blocks,
        dim=3,
        dropout=dropout,
        rng=rng,
    )
    generator = torch.Generator().manual_seed(seed)
    for norm in made.norms:
        torch.nn.init.uniform_(norm.weight, 0.5, 2.0, generator=generator)
        torch.nn.init.uniform_(norm.bias, -1.0, 1.0, generator=generator)
    for values in made.outer.parameters():
        torch.nn.init.normal_(values, std=0.2, generator=generator)
    return made


def phi(contexts: Matrix, arms: Matrix, *, pieces: int = 4, **shape: Any) -> Residual:
    """The export of such a network, with encodings of these inputs."""
    encodings = [Encoding.of(inputs, pieces=pieces) for inputs in (contexts, arms)]
    return export(network(*encodings, **shape), *encodings)


@settings(max_examples=30)
@given(
    context_dim=st.integers(0, 4),
    arm_dim=st.integers(1, 5),
    pieces=st.sampled_from([0, 3]),
    width=st.integers(2, 40),
    blocks=st.integers(0, 3),
    seed=st.integers(0, 10_000),
)
def test_an_exported_network_agrees_with_torch(
    context_dim: int, arm_dim: int, pieces: int, width: int, blocks: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    contexts, arms = rng.normal(size=(12, context_dim)), 1e6 + rng.exponential(size=(12, arm_dim))
    context, arm = (Encoding.of(inputs, pieces=pieces) for inputs in (contexts, arms))
    module = network(context, arm, seed=seed, width=width, blocks=blocks).eval()
    with torch.no_grad():
        expected = module(torch.tensor(context(contexts)), torch.tensor(arm(arms))).numpy()
    twin = export(module, context, arm)
    np.testing.assert_allclose(twin(contexts, arms), expected, **CLOSE)
    assert (twin.context_dim, twin.arm_dim, twin.dim) == (context_dim, arm_dim, 3)


def test_an_export_is_a_copy_as_of_now() -> None:
    contexts, arms = np.random.default_rng(0).normal(size=(2, 9, 2))
    encodings = Encoding.of(contexts), Encoding.of(arms)
    module = network(*encodings)
    twin = export(module, *encodings)
    before = twin(contexts, arms)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 1
    np.testing.assert_array_equal(twin(contexts, arms), before)


@settings(max_examples=30)
@given(
    context_dim=st.integers(0, 3), rows=st.integers(0, 9), blocks=st.integers(0, 2), seed=st.integers(0, 99)
)
def test_candidates_are_pairs_with_one_context(context_dim: int, rows: int, blocks: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    embed = phi(rng.normal(size=(20, context_dim)), rng.normal(size=(20, 2)), blocks=blocks, seed=seed)
    context, arms = rng.normal(size=context_dim), rng.normal(size=(rows, 2))
    found = embed.candidates(context, arms)
    assert found.shape == (rows, 3)
    np.testing.assert_allclose(found, embed(np.tile(context, (rows, 1)), arms), **CLOSE)


def test_many_rows_give_what_each_gives_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "BLOCK", 16 * 7)  # seven rows at a time
    contexts, arms = np.random.default_rng(1).normal(size=(2, 30, 2))
    embed = phi(contexts, arms)
    alone = np.vstack([embed(contexts[i : i + 1], arms[i : i + 1]) for i in range(30)])
    np.testing.assert_allclose(embed(contexts, arms), alone, **CLOSE)
    np.testing.assert_allclose(embed.candidates(contexts[4], arms)[4], alone[4], **CLOSE)
    assert np.abs(np.diff(alone, axis=0)).max(axis=1).min() > 1e-3  # so that rows in another order would show


def test_embeddings_of_wild_inputs_are_finite() -> None:
    contexts, arms = np.random.default_rng(2).normal(size=(2, 30, 2))
    embed = phi(contexts, arms)
    for value in (-3e38, 3e38):
        assert np.isfinite(embed.candidates([value, 0.0], [[value, value]])).all()


@pytest.mark.parametrize("context_dim", [0, 2])
@pytest.mark.parametrize("blocks", [0, 2])
def test_a_checkpoint_is_exact(context_dim: int, blocks: int) -> None:
    rng = np.random.default_rng(3)
    contexts, arms = rng.normal(size=(20, context_dim)), rng.normal(size=(20, 3))
    embed = phi(contexts, arms, blocks=blocks)
    arrays, spec = embed.to_arrays()
    again = Residual.from_arrays(arrays | {"something": np.ones(2)}, json.loads(json.dumps(spec)))
    np.testing.assert_array_equal(embed(contexts, arms), again(contexts, arms))
    rebuilt = again.to_arrays()[0]
    assert rebuilt.keys() == arrays.keys()
    for name, array in arrays.items():
        assert rebuilt[name].dtype == array.dtype
        np.testing.assert_array_equal(rebuilt[name], array, err_msg=name)


def layer(inputs: int, outputs: int) -> Layer:
    return Layer(np.ones((inputs, outputs), np.float32), np.zeros(outputs, np.float32))


PARTS: dict[str, Any] = {
    "context": Encoding.of(np.empty((0, 2))),
    "arm": Encoding.of(np.empty((0, 3))),
    "first": layer(5, 4),
    "blocks": [Block(layer(4, 4), layer(4, 4))],
    "last": layer(4, 2),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": layer(4, 4)}, "first must take 5 inputs; it takes 4"),
        ({"context": Encoding.of(np.empty((0, 1)))}, "first must take 4 inputs; it takes 5"),
        ({"blocks": [Block(layer(3, 4), layer(4, 4))]}, r"blocks\[0\].inner must take 4 inputs; it takes 3"),
        ({"blocks": [Block(layer(4, 4), layer(4, 5))]}, r"blocks\[0\].outer must have 4 columns; got 5"),
        ({"last": layer(3, 2)}, "last must take 4 inputs; it takes 3"),
        ({"last": Layer(np.ones((4, 2)), np.zeros(3))}, "last's bias must have length 2; got 3"),
        ({"last": Layer(np.full((4, 2), np.nan), np.zeros(2))}, "last must be finite"),
    ],
)
def test_layers_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    assert Residual(**PARTS).dim == 2
    with pytest.raises(ValueError, match=message):
        Residual(**PARTS | changes)


def test_inputs_of_wrong_shape_are_refused() -> None:
    embed = Residual(**PARTS)
    with pytest.raises(ValueError, match="contexts must have 2 columns; got 3"):
        embed(np.zeros((4, 3)), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="arms must have 3 columns; got 2"):
        embed(np.zeros((4, 2)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="equal lengths; got 1 and 4"):
        embed(np.zeros((1, 2)), np.zeros((4, 3)))  # NumPy would repeat the one
    with pytest.raises(ValueError, match="context must have length 2; got 1"):
        embed.candidates([0.0], np.zeros((4, 3)))
    with pytest.raises(ValueError, match="arms must be finite"):
        embed.candidates([0.0, 0.0], [[0.0, 0.0, np.nan]])


def test_the_rng_decides_the_weights_and_global_random_state_is_left_alone() -> None:
    encodings = PARTS["context"], PARTS["arm"]
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, again, other = (network(*encodings, seed=seed) for seed in (1, 1, 2))
    inputs = torch.ones(6, 2), torch.ones(6, 3)
    drawn = [module.train()(*inputs) for module in (first, again)]
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*drawn)
    assert not torch.equal(first(*inputs), drawn[0])  # dropout draws anew
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
    assert not torch.equal(first.first.weight, other.first.weight)


@pytest.mark.parametrize("spread", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("columns", [1, 40])
def test_before_training_the_hidden_values_spread_alike_whatever_the_columns(
    columns: int, spread: float
) -> None:
    spreads = [np.full(columns, spread), np.full(3, spread)]
    options: dict[str, Any] = {"width": 2_000, "blocks": 1, "dim": 2}
    weights = ResidualNetwork(*spreads, rng=np.random.default_rng(4), **options).first.weight.detach().numpy()
    for part, own, strength in zip(
        np.split(weights, [columns], axis=1), spreads, (CONTEXT, ARM), strict=True
    ):
        variance = np.square(part * own).sum(axis=1).mean()
        # The mean of 2,000 squared normal values has a deviation of 3 in a hundred.
        assert variance == pytest.approx(strength**2, rel=0.15)


def test_columns_that_never_vary_leave_the_start_finite() -> None:
    options: dict[str, Any] = {"width": 8, "blocks": 1, "dim": 2}
    made = ResidualNetwork(np.zeros(2), np.zeros(1), rng=np.random.default_rng(5), **options)
    assert made.first.weight.isfinite().all()


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_dropout_leaves_out_its_share_and_keeps_the_mean(dropout: float) -> None:
    made = network(PARTS["context"], PARTS["arm"], dropout=dropout).train()
    thinned = made._thinned(torch.ones(200, 500), made.dropout)
    n, share = thinned.numel(), round(256 * dropout) / 256  # bytes decide
    # Five deviations of a mean of n draws that are 0 or 1 / (1 - share).
    assert (thinned == 0).float().mean().item() == pytest.approx(
        share, abs=5 * np.sqrt(share * (1 - share) / n)
    )
    assert thinned.mean().item() == pytest.approx(1, abs=5 * np.sqrt(share / (1 - share) / n))
    assert len(thinned.unique()) == 2


def test_before_training_blocks_add_nothing() -> None:
    made = ResidualNetwork(
        np.ones(2), np.ones(3), width=16, blocks=2, dim=3, rng=np.random.default_rng(0)
    ).eval()
    contexts, arms = torch.randn(6, 2), torch.randn(6, 3)
    first = made.first(torch.cat([contexts, arms], dim=1))
    assert torch.equal(made(contexts, arms), made.last(made.norms[-1](first)))


def test_columns_of_the_context_are_left_out_and_those_of_the_arm_never() -> None:
    made = ResidualNetwork(
        np.ones(400), np.ones(3), width=4, blocks=1, dim=2, dropout=0.25, rng=np.random.default_rng(0)
    ).train()
    seen = []
    made.first.register_forward_hook(lambda layer, inputs, output: seen.append(inputs[0]))
    made(torch.ones(50, 400), torch.ones(50, 3))
    assert (seen[0][:, :400] == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert (seen[0][:, 400:] == 1).all()
    made.eval()(torch.ones(50, 400), torch.ones(50, 3))
    assert (seen[1] == 1).all()


def test_without_dropout_and_in_evaluation_nothing_is_left_out() -> None:
    inputs = torch.ones(6, 2), torch.ones(6, 3)
    for dropout, training in ((0.0, True), (0.5, False)):
        made = network(PARTS["context"], PARTS["arm"], dropout=dropout).train(training)
        assert torch.equal(made(*inputs), made(*inputs))


def test_short_floats_serve_training_alone() -> None:
    made = network(PARTS["context"], PARTS["arm"], dropout=0.0)
    rng = np.random.default_rng(0)
    inputs = [torch.as_tensor(rng.normal(size=(40, width)), dtype=torch.float32) for width in (2, 3)]
    points = {}
    for short, training in ((False, True), (True, True), (True, False)):
        made.short = short
        points[short, training] = made.train(training)(*inputs)
        assert points[short, training].dtype == torch.float32
    assert torch.equal(points[True, False], points[False, True])
    assert not torch.equal(points[True, True], points[False, True])
    assert (points[True, True] - points[False, True]).abs().max() < 0.1


@pytest.mark.parametrize("dropout", [0.001, 0.999])
def test_any_dropout_gives_finite_embeddings(dropout: float) -> None:
    made = network(PARTS["context"], PARTS["arm"], dropout=dropout).train()
    assert made(torch.ones(6, 2), torch.ones(6, 3)).isfinite().all()
