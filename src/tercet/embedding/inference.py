"""phi without torch: a small perceptron in NumPy, fast for a few rows at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, final, runtime_checkable

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector

# Any function of paired rows may serve as phi: (n x context, n x arm) -> n x dim.
Phi = Callable[[Matrix, Matrix], Matrix]


@runtime_checkable
class Shared(Protocol):
    """A phi that computes the share of a context once for all its arms."""

    def candidates(self, context: Any, arms: Any) -> Matrix: ...


# Scaled inputs are cut here, so that a monstrous feature ends up far away rather than as inf - inf.
REACH = 1e6
BLOCK = 32_768  # hidden values at a time


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Perceptron:
    """Linear layers with Softplus between them, on centred and scaled inputs.

    Weights are inputs x outputs; the first `context_dim` inputs are the context, the rest the arm.

    >>> phi = Perceptron(weights=[np.ones((3, 2))], biases=[np.zeros(2)], centre=[0, 0, 0], scale=[1, 1, 1],
    ...                  context_dim=1)
    >>> phi.candidates([1.0], [[0.0, 2.0], [0.0, 3.0]])
    array([[3., 3.],
           [4., 4.]])
    """

    weights: Sequence[Any]
    biases: Sequence[Any]
    centre: Any
    scale: Any
    context_dim: int

    def __post_init__(self) -> None:
        centre = checks.vector("centre", self.centre)
        scale = checks.vector("scale", self.scale, length=len(centre))
        if not (scale > 0).all():
            raise ValueError(f"scale must be above 0; got {scale.min():g}")
        if not 0 <= self.context_dim <= len(centre):
            raise ValueError(
                f"context_dim must lie between 0 and {len(centre)}, the inputs; got {self.context_dim}"
            )
        weights, biases = _layers(len(centre), self.weights, self.biases)
        # Inputs are centred in float64: a large centre, such as a date in seconds, must cancel exactly.
        values = {"weights": weights, "biases": biases, "centre": centre, "scale": scale}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def arm_dim(self) -> int:
        """Number of arm features."""
        return len(self.centre) - self.context_dim

    @property
    def dim(self) -> int:
        """Number of coordinates of an embedding."""
        return int(self.weights[-1].shape[1])

    @property
    def widest(self) -> int:
        """Number of values that a row has at most on its way."""
        return max(int(weight.shape[1]) for weight in self.weights)

    def __call__(self, contexts: Any, arms: Any) -> Matrix:
        """Embed pairs, row by row."""
        return pairs(self, contexts, arms)

    def candidates(self, context: Any, arms: Any) -> Matrix:
        """Embed one context with each row of `arms`; the context's share is computed once."""
        return shared(self, context, arms)

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return named arrays and a JSON-able spec, from which `from_arrays` rebuilds this network."""
        arrays: dict[str, Array] = {"centre": self.centre, "scale": self.scale}
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            arrays |= {f"weights.{layer}": weight, f"biases.{layer}": bias}
        return arrays, {"kind": "perceptron", "layers": len(self.weights), "context_dim": self.context_dim}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], spec: Mapping[str, Any]) -> Self:
        """Rebuild what `to_arrays` returned; arrays of other names are left alone."""
        if spec.get("kind") != "perceptron":
            raise ValueError(f"spec must be of the kind 'perceptron'; got {spec.get('kind')!r}")
        layers = range(int(spec["layers"]))
        names = ["centre", "scale", *(f"{part}.{i}" for part in ("weights", "biases") for i in layers)]
        missing = [name for name in names if name not in arrays]
        if missing:
            raise ValueError(f"the checkpoint lacks the arrays {missing}; it has {sorted(arrays)}")
        return cls(
            weights=[arrays[f"weights.{i}"] for i in layers],
            biases=[arrays[f"biases.{i}"] for i in layers],
            centre=arrays["centre"],
            scale=arrays["scale"],
            context_dim=int(spec["context_dim"]),
        )

    def context_part(self, contexts: Matrix) -> Array:
        """Return the contexts' share of the first layer."""
        part = slice(0, self.context_dim)
        return self._scaled(contexts, part) @ self.weights[0][part] + self.biases[0]

    def with_arms(self, context_part: Array, arms: Matrix) -> Array:
        """Return the embeddings of arms and a share (or a row of shares each) of the context."""
        part = slice(self.context_dim, None)
        values = self._scaled(arms, part) @ self.weights[0][part]
        values += context_part
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            values = _softplus(values) @ weight
            values += bias
        return values

    def _scaled(self, inputs: Matrix, part: slice) -> Matrix:
        scaled = (inputs - self.centre[part]) / self.scale[part]
        return np.clip(scaled, -REACH, REACH, out=scaled).astype(np.float32)


def _layers(
    width: int, weights: Sequence[Any], biases: Sequence[Any]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Check that each layer takes what the one before gives; return float32."""
    if not weights or len(weights) != len(biases):
        raise ValueError(
            f"weights and biases must be equally many, at least one; got {len(weights)} and {len(biases)}"
        )
    checked = []
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        weight = checks.matrix(f"weights[{layer}]", weight)
        if len(weight) != width:
            raise ValueError(f"weights[{layer}] must have {width} rows; got {len(weight)}")
        width = weight.shape[1]
        bias = checks.vector(f"biases[{layer}]", bias, length=width)
        checked.append((np.ascontiguousarray(weight, dtype=np.float32), bias.astype(np.float32)))
    return tuple(weight for weight, _ in checked), tuple(bias for _, bias in checked)


@runtime_checkable
class TwoSided(Protocol):
    """A network whose first layer adds a share of the context and one of the arm."""

    @property
    def context_dim(self) -> int: ...
    @property
    def arm_dim(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def widest(self) -> int: ...
    def context_part(self, contexts: Matrix) -> Array: ...
    def with_arms(self, context_part: Array, arms: Matrix) -> Array: ...


def pairs(network: TwoSided, contexts: Any, arms: Any) -> Matrix:
    """Embed pairs, row by row."""
    contexts = checks.matrix("contexts", contexts, columns=network.context_dim)
    arms = checks.matrix("arms", arms, columns=network.arm_dim)
    if len(contexts) != len(arms):
        raise ValueError(f"contexts and arms must have equal lengths; got {len(contexts)} and {len(arms)}")
    result = np.empty((len(arms), network.dim))
    for rows in _blocks(network, len(arms)):
        result[rows] = network.with_arms(network.context_part(contexts[rows]), arms[rows])
    return result


def shared(network: TwoSided, context: Any, arms: Any) -> Matrix:
    """Embed one context with each row of `arms`; the context's share is computed once."""
    context = checks.vector("context", context, length=network.context_dim)
    arms = checks.matrix("arms", arms, columns=network.arm_dim)
    share = network.context_part(context[None])
    result = np.empty((len(arms), network.dim))
    for rows in _blocks(network, len(arms)):
        result[rows] = network.with_arms(share, arms[rows])
    return result


def _blocks(network: TwoSided, n: int) -> Iterator[slice]:
    # Hidden values that stay in a core's own cache take a third off the time at some hundred rows.
    step = max(1, BLOCK // network.widest)
    return (slice(start, start + step) for start in range(0, n, step))


def candidates(phi: Phi, context: Any, arms: Any) -> Matrix:
    """Embed one context with each row of `arms`, by any phi."""
    ours: object = phi
    if isinstance(ours, Shared):
        return ours.candidates(context, arms)
    context = checks.vector("context", context)
    arms = checks.matrix("arms", arms)
    embeddings = checks.matrix("phi's result", phi(np.tile(context, (len(arms), 1)), arms))
    if len(embeddings) != len(arms):
        raise ValueError(f"phi must return one row per arm; got {len(embeddings)} rows for {len(arms)} arms")
    return embeddings


def scaling(inputs: Any) -> tuple[Vector, Vector]:
    """Return the centre and scale of each column: its mean and standard deviation, 1 where it is constant.

    The scale is at least a tenth of the farthest value, or a column that is almost always 0 (a pixel at the
    rim, a rare category) would outweigh all others where it is not.
    """
    inputs = checks.matrix("inputs", inputs)
    if not len(inputs):
        raise ValueError("inputs must have at least one row; got none")
    centre = inputs.mean(axis=0)
    away = inputs - centre
    farthest = np.maximum(away.max(axis=0), -away.min(axis=0))
    np.square(away, out=away)
    scale = np.maximum(np.sqrt(away.mean(axis=0)), farthest / 10)
    constant = (
        farthest <= 1e-12 * np.abs(centre) + 1e-30
    )  # the mean of equal numbers may be off by a rounding
    return centre, np.where(constant, 1.0, scale)


def _softplus(values: Matrix) -> Matrix:
    # Beyond 30 it is 0 or the value itself, to float32's accuracy; exp stays clear of overflow and denormals.
    bent = np.clip(values, -30, 30)
    np.exp(bent, out=bent)
    bent += 1
    np.log(bent, out=bent)
    return np.maximum(values, bent, out=bent)
