"""Small ReLU networks in NumPy: forward, backward, and training by Adam.

Networks this small train as fast without torch, and to the same bits every time on one machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Self, final

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.types import Feedback, Ids

Loss = Literal["squared", "logistic"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Linear layers with ReLU between them; weights are inputs x outputs."""

    weights: tuple[Matrix, ...]
    biases: tuple[Vector, ...]

    @classmethod
    def fresh(cls, sizes: Sequence[int], rng: np.random.Generator) -> Self:
        """Draw weights that keep the size of signals from layer to layer (He et al., 2015, Eq. 10).

        The last layer starts so that the dot product of two networks' outputs has variance 1.
        """
        scales = [np.sqrt(2 / max(width, 1)) for width in sizes[:-1]]
        scales[-1] *= np.sqrt(0.5) * sizes[-1] ** -0.25
        weights = [rng.normal(size=pair) * scale for pair, scale in zip(pairwise(sizes), scales, strict=True)]
        return cls(weights=tuple(weights), biases=tuple(np.zeros(width) for width in sizes[1:]))

    def __call__(self, inputs: Matrix) -> Matrix:
        """Return the outputs, row by row."""
        return self.trace(inputs)[-1]

    def trace(self, inputs: Matrix) -> list[Matrix]:
        """Return the inputs and what each layer makes of them, the outputs last."""
        values = [inputs]
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            linear = values[-1] @ weight + bias
            values.append(linear if layer == last else np.maximum(linear, 0))
        return values

    def gradients(self, trace: Sequence[Matrix], slopes: Matrix) -> list[Array]:
        """Return the gradients of Σ slopes·outputs, in the order of `parameters` (back-propagation)."""
        backwards: list[Array] = []
        for layer in reversed(range(len(self.weights))):
            backwards += [slopes.sum(0), trace[layer].T @ slopes]
            if layer:
                slopes = (slopes @ self.weights[layer].T) * (trace[layer] > 0)
        return backwards[::-1]

    @property
    def parameters(self) -> list[Array]:
        """The arrays themselves, not copies: weights and biases, layer by layer."""
        return [array for pair in zip(self.weights, self.biases, strict=True) for array in pair]

    def copy(self) -> "Network":
        """Return a network that shares no array with this one."""
        return Network(
            weights=tuple(weight.copy() for weight in self.weights),
            biases=tuple(bias.copy() for bias in self.biases),
        )

    def to_arrays(self, name: str) -> dict[str, Array]:
        """Return what a checkpoint needs."""
        return {f"{name}.{number}": array for number, array in enumerate(self.parameters)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], name: str) -> Self:
        """Return the network that `to_arrays` described."""
        count = sum(key.startswith(f"{name}.") for key in arrays)
        parameters = [arrays[f"{name}.{number}"] for number in range(count)]
        return cls(weights=tuple(parameters[::2]), biases=tuple(parameters[1::2]))


@final
@dataclass(frozen=True, kw_only=True)
class Course:
    """How to train: passes over the rows, Adam's rate, rows a step, and the share held out.

    With rows held out, the epoch that predicts them best is kept; without, the last.
    """

    epochs: int
    rate: float
    batch: int
    loss: Loss
    validation: float = 0.0


@final
@dataclass(kw_only=True, eq=False)
class Adam:
    """Gradient steps scaled by running moments (Kingma and Ba, 2015, Algorithm 1)."""

    parameters: Sequence[Array]
    rate: float
    _moments: list[tuple[Array, Array]] = field(init=False)
    _steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._moments = [(np.zeros_like(array), np.zeros_like(array)) for array in self.parameters]

    def step(self, gradients: Sequence[Array]) -> None:
        """Change the parameters in place."""
        self._steps += 1
        first, second = 0.9, 0.999  # the paper's decay rates
        shrink = np.sqrt(1 - second**self._steps)
        rate = self.rate * shrink / (1 - first**self._steps)
        for array, gradient, (mean, square) in zip(self.parameters, gradients, self._moments, strict=True):
            mean += (1 - first) * (gradient - mean)
            square += (1 - second) * (gradient**2 - square)
            array -= rate * mean / (np.sqrt(square) + 1e-8 * shrink)


def pairs(contexts: Matrix, arms: Matrix) -> Matrix:
    """Return scaled contexts and arms side by side; a single context goes with every arm.

    Context and arm get half of the pair's squared length each: ten columns that tell an arm would be
    drowned by the thousand of an image.
    """
    half = (contexts.shape[1] + arms.shape[1]) / 2
    one, other = (part * np.sqrt(half / max(part.shape[1], 1)) for part in (contexts, arms))
    return np.hstack([np.broadcast_to(one, (len(other), one.shape[1])), other])


def predict(towers: Sequence[Network], inputs: Sequence[Matrix]) -> Vector:
    """Return Σ_k Π_towers output_k, row by row: two towers' dot product, one network's only output.

    A tower with a single row of inputs goes with every row of the others.
    """
    outputs = [tower(columns) for tower, columns in zip(towers, inputs, strict=True)]
    return np.prod(np.broadcast_arrays(*outputs), axis=0).sum(1)


def train(
    towers: Sequence[Network],
    inputs: Sequence[Matrix],
    rewards: Vector,
    rng: np.random.Generator,
    course: Course,
) -> tuple[Network, ...]:
    """Return the towers, trained on from where they are so that `predict` tells the rewards."""
    towers = tuple(tower.copy() for tower in towers)
    optimiser = Adam(parameters=[array for tower in towers for array in tower.parameters], rate=course.rate)
    order = rng.permutation(len(rewards))
    held, learned = np.split(order, [round(course.validation * len(order))])
    best, lowest = towers, np.inf
    for _ in range(course.epochs):
        for rows in _batches(learned, course.batch, rng):
            batch = [columns[rows] for columns in inputs]
            optimiser.step(_gradients(towers, batch, rewards[rows], course.loss))
        if len(held):
            predicted = predict(towers, [columns[held] for columns in inputs])
            value = error(predicted, rewards[held], course.loss)
            if value < lowest:
                # Training goes on in place: only a true copy stays what it is.
                best, lowest = tuple(tower.copy() for tower in towers), value
    return best


def error(predicted: Vector, rewards: Vector, loss: Loss) -> float:
    """Return the mean loss: half the square, or the cross-entropy of logits."""
    if loss == "squared":
        return float(np.mean((predicted - rewards) ** 2) / 2)
    return float(np.mean(np.logaddexp(0, predicted) - rewards * predicted))


def sigmoid(logits: Vector) -> Vector:
    """Return 1 / (1 + exp(-logit)), without overflow."""
    return (1 + np.tanh(logits / 2)) / 2


def parts(feedback: Feedback, seen: int, refit: int | None) -> Iterator[tuple[Feedback, bool]]:
    """Cut outcomes where a refit is due, and say where: after 1, 2, 4, ... outcomes, then every `refit`.

    `seen` outcomes came before. What is learned does not depend on how outcomes are batched.
    """
    start = 0
    while start < len(feedback):
        now, wait = seen + start, len(feedback) + 1
        if refit is not None:
            wait = refit - now % refit if now >= refit else min(2 ** now.bit_length(), refit) - now
        part = feedback[start : start + wait]
        start += wait
        yield part, len(part) == wait


def sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return the widths of layers, of which there is at least one."""
    widths = tuple(np.atleast_1d(value).tolist())
    if not widths:
        raise ValueError(f"{name} must name at least one layer's width; got none")
    return tuple(checks.whole(name, width) for width in widths)


def _batches(rows: Ids, size: int, rng: np.random.Generator) -> Iterator[Ids]:
    order = rng.permutation(rows)
    return (order[start : start + size] for start in range(0, len(order), size))


def _gradients(
    towers: Sequence[Network], inputs: Sequence[Matrix], rewards: Vector, loss: Loss
) -> list[Array]:
    traces = [tower.trace(columns) for tower, columns in zip(towers, inputs, strict=True)]
    outputs = [trace[-1] for trace in traces]
    predicted = np.prod(outputs, axis=0).sum(1)
    expected = sigmoid(predicted) if loss == "logistic" else predicted
    slope = (expected - rewards)[:, None] / len(rewards)  # of either loss, by the prediction
    gradients: list[Array] = []
    for number, tower in enumerate(towers):
        others = np.prod([np.ones_like(outputs[0]), *outputs[:number], *outputs[number + 1 :]], axis=0)
        gradients += tower.gradients(traces[number], slope * others)
    return gradients
