"""A phi that needs no training: the features themselves, on scales chosen by leave-one-out."""

from typing import NamedTuple

import numpy as np

from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import Perceptron, scaling
from tercet.types import Feedback

ROWS = 1_000  # of the history that are compared with each other
SAMPLED = 20_000  # rows that principal directions are taken from, at most
MOST_COLUMNS = 24  # of contexts and of arms; more are projected on their principal directions
CONTEXT_SCALES = (0.7, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 10.0)
ARM_SCALES = (0.0, 0.7, 1.5, 3.0, 6.0)
PRIORS = (0.05, 0.2, 1.0)
LIKELY = (3.0, 3.0)  # scales where the history is too short to say


def unlearned(history: Feedback, rng: np.random.Generator) -> Perceptron:
    """Return the map to standardised contexts and arms, each times a factor that serves the history best.

    Where a history is small, a network learns less from it than from what comes after; this kernel loses
    nothing, so it carries the first decisions.
    """
    contexts, arms = Directions.of(history.contexts), Directions.of(history.arms)
    picked = rng.permutation(len(history))[:ROWS]
    rows = history[picked]
    context_scale, arm_scale = LIKELY
    # Equal rewards are foretold best by the widest kernel, which would never tell arms apart again.
    if len(rows) >= 4 and rows.rewards.min() < rows.rewards.max():
        seen, shown = contexts.mapped(rows.contexts), arms.mapped(rows.arms)
        context_scale, arm_scale = _scales(squares(seen, seen), squares(shown, shown), rows.rewards)
    return scaled(contexts, arms, context_scale, arm_scale)


class Directions(NamedTuple):
    """A map from standardised columns to at most MOST_COLUMNS of them.

    Squared distances between two random rows come out near 2, however many columns there are.
    """

    centre: Vector
    scale: Vector
    turn: Matrix

    @classmethod
    def of(cls, inputs: Matrix) -> "Directions":
        """Return those in which the inputs vary most."""
        width = inputs.shape[1]
        if not len(inputs) or not width:
            return cls(np.zeros(width), np.ones(width), np.eye(width) / max(width, 1) ** 0.5)
        centre, scale = scaling(inputs)
        turn: Array = np.eye(width)
        if width > MOST_COLUMNS:
            standard = (inputs[:: -(-len(inputs) // SAMPLED)] - centre) / scale
            turn = np.linalg.eigh(standard.T @ standard)[1][:, ::-1][:, :MOST_COLUMNS]
        return cls(centre, scale, turn / width**0.5)

    def mapped(self, inputs: Matrix) -> Matrix:
        """Return the inputs in these directions."""
        return ((inputs - self.centre) / self.scale) @ self.turn


def scaled(contexts: Directions, arms: Directions, context_scale: float, arm_scale: float) -> Perceptron:
    """Return the phi that puts contexts and arms side by side, each times a factor."""
    weights = np.zeros((len(contexts.centre) + len(arms.centre), contexts.turn.shape[1] + arms.turn.shape[1]))
    weights[: len(contexts.centre), : contexts.turn.shape[1]] = contexts.turn * context_scale
    weights[len(contexts.centre) :, contexts.turn.shape[1] :] = arms.turn * arm_scale
    return Perceptron(
        weights=[weights],
        biases=[np.zeros(weights.shape[1])],
        centre=np.concatenate([contexts.centre, arms.centre]),
        scale=np.concatenate([contexts.scale, arms.scale]),
        context_dim=len(contexts.centre),
    )


def squares(some: Matrix, points: Matrix) -> Matrix:
    """Return squared distances, by a product of matrices: fast, and off by roundings."""
    lengths = np.square(some).sum(axis=1)[:, None] + np.square(points).sum(axis=1)
    return np.maximum(lengths - 2 * some @ points.T, 0.0)


def _scales(contexts: Matrix, arms: Matrix, rewards: Vector) -> tuple[float, float]:
    """The two factors with the smallest log-loss when each row is predicted by the others."""
    mean = (rewards.sum() + 1) / (len(rewards) + 2)
    best, chosen = np.inf, LIKELY
    for context_scale in CONTEXT_SCALES:
        for arm_scale in ARM_SCALES:
            kernel = np.exp(-(context_scale**2 * contexts + arm_scale**2 * arms) / 2)
            np.fill_diagonal(kernel, 0.0)
            weights = kernel / (1 + kernel.sum(axis=1) - kernel)
            mass, total = kernel.sum(axis=1), weights.sum(axis=1)
            estimate = np.divide(weights @ rewards, total, out=np.full(len(rewards), mean), where=total > 0)
            for prior in PRIORS:
                shrunk = (mass * estimate + prior * mean) / (mass + prior)
                loss = log_loss(shrunk, rewards).mean()
                if loss < best:
                    best, chosen = loss, (context_scale, arm_scale)
    return chosen


def log_loss(predicted: Array, rewards: Array) -> Array:
    """Return the log-loss of each prediction, squeezed a little so that it stays finite."""
    squeezed = 1e-4 + (1 - 2e-4) * predicted
    return -(rewards * np.log(squeezed) + (1 - rewards) * np.log(1 - squeezed))
