"""phi in NumPy: both ways of calling it agree, checkpoints are exact, bad input ends at the door."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.checks import Matrix
from tercet.embedding import inference
from tercet.embedding.inference import Perceptron, candidates, scaling

EPS = float(np.finfo(np.float32).eps)


def perceptron(sizes: list[int], context_dim: int, rng: np.random.Generator) -> Perceptron:
    """A random network of these layer sizes."""
    pairs = list(pairwise(sizes))
    return Perceptron(
        weights=[rng.normal(size=pair) / np.sqrt(max(pair[0], 1)) for pair in pairs],
        biases=[rng.normal(size=outputs) for _, outputs in pairs],
        centre=rng.normal(size=sizes[0]),
        scale=rng.uniform(0.5, 2.0, size=sizes[0]),
        context_dim=context_dim,
    )


def exact(phi: Perceptron, contexts: Matrix, arms: Matrix) -> Matrix:
    """The same network, plainly and in float64."""
    values = (np.hstack([contexts, arms]) - phi.centre) / phi.scale
    for layer, (weight, bias) in enumerate(zip(phi.weights, phi.biases, strict=True)):
        values = (np.logaddexp(0, values) if layer else values) @ weight.astype(float) + bias
    return values


@settings(max_examples=40, deadline=None)
@given(
    context_dim=st.integers(0, 4),
    arm_dim=st.integers(1, 5),
    hidden=st.lists(st.integers(1, 40), max_size=3),
    rows=st.integers(0, 6),
    seed=st.integers(0, 10_000),
)
def test_pairs_and_candidates_agree_with_the_plain_network_to_float32_accuracy(
    context_dim: int, arm_dim: int, hidden: list[int], rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    phi = perceptron([context_dim + arm_dim, *hidden, 3], context_dim, rng)
    context, arms = rng.normal(size=context_dim) * 3, rng.normal(size=(rows, arm_dim)) * 3
    contexts = np.tile(context, (rows, 1))
    expected = exact(phi, contexts, arms)
    # Each of at most 4 layers adds a rounding per summand, at most 45, of values below 100.
    tolerance = 4 * 45 * EPS * 100
    np.testing.assert_allclose(phi(contexts, arms), expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(phi.candidates(context, arms), expected, rtol=0, atol=tolerance)
    assert phi(contexts, arms).shape == (rows, phi.dim) == (rows, 3)


def test_many_rows_give_what_each_gives_alone() -> None:
    rng = np.random.default_rng(0)
    phi = perceptron([5, 512, 4], 2, rng)  # several blocks of rows
    contexts, arms = rng.normal(size=(150, 2)), rng.normal(size=(150, 3))
    alone = np.vstack([phi.candidates(c, a[None]) for c, a in zip(contexts, arms, strict=True)])
    np.testing.assert_allclose(phi(contexts, arms), alone, rtol=0, atol=512 * EPS * 10)


def test_a_large_centre_cancels_exactly() -> None:
    rng = np.random.default_rng(1)
    phi = perceptron([3, 8, 2], 1, rng)
    shift = np.array([1.7e9, 0, -4e8])  # seconds since 1970
    moved = Perceptron(
        weights=phi.weights, biases=phi.biases, centre=phi.centre + shift, scale=phi.scale, context_dim=1
    )
    contexts, arms = rng.normal(size=(20, 1)), rng.normal(size=(20, 2))
    # float64 keeps 1.7e9 to 2e-7, and the two layers at most multiply that by 10.
    np.testing.assert_allclose(
        moved(contexts + shift[:1], arms + shift[1:]), phi(contexts, arms), rtol=0, atol=5e-6
    )


def test_softplus_is_right_far_out_and_raises_no_warning() -> None:
    values = np.linspace(-300, 300, 2001, dtype=np.float32)[None]
    expected = np.logaddexp(0, values.astype(float))
    np.testing.assert_allclose(inference._softplus(values), expected, rtol=4 * EPS, atol=2 * EPS)


def test_a_monstrous_feature_gives_a_finite_embedding() -> None:
    phi = perceptron([3, 16, 16, 2], 1, np.random.default_rng(2))
    assert np.isfinite(phi.candidates([3e38], [[-3e38, 3e38], [0, 0]])).all()


def test_a_checkpoint_gives_the_same_bits() -> None:
    rng = np.random.default_rng(3)
    phi = perceptron([4, 7, 3], 2, rng)
    arrays, spec = phi.to_arrays()
    again = Perceptron.from_arrays({**arrays, "other": np.ones(1)}, json.loads(json.dumps(spec)))
    contexts, arms = rng.normal(size=(9, 2)), rng.normal(size=(9, 2))
    np.testing.assert_array_equal(again(contexts, arms), phi(contexts, arms))
    assert again.context_dim == 2


def test_a_checkpoint_that_lacks_something_says_what() -> None:
    arrays, spec = perceptron([4, 7, 3], 2, np.random.default_rng(4)).to_arrays()
    with pytest.raises(ValueError, match=r"lacks the arrays \['weights.1'\]"):
        Perceptron.from_arrays({name: a for name, a in arrays.items() if name != "weights.1"}, spec)
    with pytest.raises(ValueError, match="kind 'perceptron'; got 'tree'"):
        Perceptron.from_arrays(arrays, {**spec, "kind": "tree"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": [1, 0, 1]}, "scale must be above 0"),
        ({"scale": [1, 1]}, "scale must have length 3"),
        ({"centre": [0, np.nan, 0]}, "centre must be finite"),
        ({"context_dim": 4}, "context_dim must lie between 0 and 3"),
        ({"context_dim": -1}, "context_dim must lie between 0 and 3"),
        ({"weights": [np.ones((2, 2))]}, r"weights\[0\] must have 3 rows; got 2"),
        ({"weights": [np.full((3, 2), np.inf)]}, r"weights\[0\] must be finite"),
        ({"biases": [np.ones(3)]}, r"biases\[0\] must have length 2"),
        ({"biases": []}, "equally many"),
        ({"weights": [], "biases": []}, "at least one"),
    ],
)
def test_a_network_that_does_not_fit_together_is_refused(changes: dict[str, Any], message: str) -> None:
    fine = {"weights": [np.ones((3, 2))], "biases": [np.ones(2)], "centre": [0, 0, 0], "scale": [1, 1, 1]}
    Perceptron(**{"context_dim": 1, **fine})
    with pytest.raises(ValueError, match=message):
        Perceptron(**{"context_dim": 1, **fine, **changes})


def test_bad_inputs_are_refused() -> None:
    phi = perceptron([3, 2], 1, np.random.default_rng(5))
    for contexts, arms, message in [
        ([[1.0]], [[1.0]], "arms must have 2 columns; got 1"),
        ([[1.0, 2.0]], [[1.0, 2.0]], "contexts must have 1 columns; got 2"),
        ([[1.0]], [[1.0, 2.0]] * 2, "equal lengths; got 1 and 2"),
        ([[np.nan]], [[1.0, 2.0]], "contexts must be finite"),
        ([[1.0]], [[1.0, np.inf]], "arms must be finite"),
        ([1.0], [[1.0, 2.0]], "contexts must be a matrix"),
    ]:
        with pytest.raises(ValueError, match=message):
            phi(contexts, arms)
    with pytest.raises(ValueError, match="context must have length 1"):
        phi.candidates([1.0, 2.0], [[1.0, 2.0]])


def test_a_plain_function_serves_as_phi_and_sees_the_context_beside_each_arm() -> None:
    def phi(contexts: Matrix, arms: Matrix) -> Matrix:
        return np.hstack([arms, contexts])

    result = candidates(phi, [7, 8], [[1.0], [2.0]])
    np.testing.assert_array_equal(result, [[1, 7, 8], [2, 7, 8]])
    assert candidates(phi, [], [[1.0], [2.0]]).shape == (2, 1)
    with pytest.raises(ValueError, match="one row per arm; got 1 rows for 2 arms"):
        candidates(lambda contexts, arms: arms[:1], [7], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="phi's result must be finite"):
        candidates(lambda contexts, arms: arms * np.nan, [7], [[1.0], [2.0]])


def test_candidates_uses_a_perceptrons_own_way() -> None:
    phi = perceptron([3, 4, 2], 1, np.random.default_rng(6))
    np.testing.assert_array_equal(candidates(phi, [1], [[1, 2]]), phi.candidates([1], [[1, 2]]))


def test_scaling_is_mean_and_spread_but_at_most_ten_for_rare_values() -> None:
    rng = np.random.default_rng(7)
    rare = np.zeros(1000)
    rare[0] = 1
    inputs = np.column_stack([rng.normal(5, 3, size=1000), np.full(1000, 0.1), rare])
    centre, scale = scaling(inputs)
    np.testing.assert_allclose(centre, inputs.mean(axis=0))
    assert scale[0] == pytest.approx(inputs[:, 0].std())
    assert scale[1] == 1
    assert np.abs((inputs - centre) / scale).max() == pytest.approx(10)
    with pytest.raises(ValueError, match="at least one row"):
        scaling(np.empty((0, 2)))
