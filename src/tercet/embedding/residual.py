"""Our phi without torch: normalised residual blocks on encoded inputs, in NumPy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix
from tercet.embedding.encoding import Encoding
from tercet.embedding.inference import pairs, shared

EPSILON = 1e-5  # of the normalisation, as in torch


class Layer(NamedTuple):
    """An affine map: inputs x outputs, and a bias."""

    weights: Array
    bias: Array


class Block(NamedTuple):
    """Adds outer(max(inner(normalised values), 0)) to the values."""

    inner: Layer
    outer: Layer


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Residual:
    """A first layer, residual blocks, and a last layer on the normalised values.

    The gains and shifts of the normalisations are part of the layers behind them.
    """

    context: Encoding
    arm: Encoding
    first: Layer  # the context's encoded columns, then the arm's
    blocks: Sequence[Block]
    last: Layer

    def __post_init__(self) -> None:
        width = self.first.weights.shape[1]
        shapes = {"first": (self.first, self.context.outputs + self.arm.outputs)}
        for number, block in enumerate(self.blocks):
            shapes |= {f"blocks[{number}].{name}": (layer, width) for name, layer in block._asdict().items()}
        for name, (layer, inputs) in (shapes | {"last": (self.last, width)}).items():
            outputs = layer.weights.shape[1] if name == "last" else width
            checks.matrix(name, layer.weights, columns=outputs)
            checks.vector(f"{name}'s bias", layer.bias, length=outputs)
            if len(layer.weights) != inputs:
                raise ValueError(f"{name} must take {inputs} inputs; it takes {len(layer.weights)}")

    @property
    def context_dim(self) -> int:
        """Number of context features."""
        return self.context.inputs

    @property
    def arm_dim(self) -> int:
        """Number of arm features."""
        return self.arm.inputs

    @property
    def dim(self) -> int:
        """Number of coordinates of an embedding."""
        return int(self.last.weights.shape[1])

    @property
    def widest(self) -> int:
        """Number of values that a row has at most on its way."""
        return int(self.first.weights.shape[1])

    def __call__(self, contexts: Any, arms: Any) -> Matrix:
        """Embed pairs, row by row."""
        return pairs(self, contexts, arms)

    def candidates(self, context: Any, arms: Any) -> Matrix:
        """Embed one context with each row of `arms`; the context's share is computed once."""
        return shared(self, context, arms)

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return named arrays and a JSON-able spec, from which `from_arrays` rebuilds this network."""
        arrays = {f"context.{name}": array for name, array in self.context.to_arrays().items()}
        arrays |= {f"arm.{name}": array for name, array in self.arm.to_arrays().items()}
        for name, layer in self._layers().items():
            arrays |= {f"{name}.weights": layer.weights, f"{name}.bias": layer.bias}
        return arrays, {"kind": "residual", "blocks": len(self.blocks)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], spec: Mapping[str, Any]) -> Self:
        """Rebuild what `to_arrays` returned; arrays of other names are left alone."""
        if spec.get("kind") != "residual":
            raise ValueError(f"spec must be of the kind 'residual'; got {spec.get('kind')!r}")

        def layer(name: str) -> Layer:
            return Layer(arrays[f"{name}.weights"], arrays[f"{name}.bias"])

        def encoding(name: str) -> Encoding:
            start = f"{name}."
            return Encoding.from_arrays(
                {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
            )

        numbers = range(int(spec["blocks"]))
        return cls(
            context=encoding("context"),
            arm=encoding("arm"),
            first=layer("first"),
            blocks=[Block(layer(f"blocks.{i}.inner"), layer(f"blocks.{i}.outer")) for i in numbers],
            last=layer("last"),
        )

    def _layers(self) -> dict[str, Layer]:
        inside = {
            f"blocks.{number}.{name}": layer
            for number, block in enumerate(self.blocks)
            for name, layer in block._asdict().items()
        }
        return {"first": self.first} | inside | {"last": self.last}

    def context_part(self, contexts: Matrix) -> Array:
        """Return the contexts' share of the first layer."""
        return self.context(contexts) @ self.first.weights[: self.context.outputs] + self.first.bias

    def with_arms(self, context_part: Array, arms: Matrix) -> Array:
        """Return the embeddings of arms and a share (or a row of shares each) of the context."""
        values = self.arm(arms) @ self.first.weights[self.context.outputs :]
        values += context_part
        for inner, outer in self.blocks:
            hidden = _normalised(values) @ inner.weights
            hidden += inner.bias
            np.maximum(hidden, 0.0, out=hidden)
            values += hidden @ outer.weights
            values += outer.bias
        result: Array = _normalised(values) @ self.last.weights
        result += self.last.bias
        return result


def _normalised(values: Array) -> Array:
    centred: Array = values - values.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", centred, centred) / centred.shape[1]
    centred /= np.sqrt(variance + EPSILON)[:, None]
    return centred
