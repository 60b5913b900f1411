"""A phi that needs no training: the features themselves, on scales chosen by leave-one-out."""

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
    contexts, arms = _directions(history.contexts), _directions(history.arms)
    picked = rng.permutation(len(history))[:ROWS]
    rows = history[picked]
    context_scale, arm_scale = LIKELY
    # Equal rewards are foretold best by the widest kernel, which would never tell arms apart again.
    if len(rows) >= 4 and rows.rewards.min() < rows.rewards.max():
        context_scale, arm_scale = _scales(
            _squares(_mapped(rows.contexts, contexts)), _squares(_mapped(rows.arms, arms)), rows.rewards
        )
    (c_centre, c_scale, c_turn), (a_centre, a_scale, a_turn) = contexts, arms
    weights = np.zeros((len(c_centre) + len(a_centre), c_turn.shape[1] + a_turn.shape[1]))
    weights[: len(c_centre), : c_turn.shape[1]] = c_turn * context_scale
    weights[len(c_centre) :, c_turn.shape[1] :] = a_turn * arm_scale
    return Perceptron(
        weights=[weights],
        biases=[np.zeros(weights.shape[1])],
        centre=np.concatenate([c_centre, a_centre]),
        scale=np.concatenate([c_scale, a_scale]),
        context_dim=len(c_centre),
    )


def _directions(inputs: Matrix) -> tuple[Vector, Vector, Matrix]:
    """Centre, scale, and the matrix that takes standardised columns to at most MOST_COLUMNS of them.

    Squared distances between two random rows come out near 2, however many columns there are.
    """
    width = inputs.shape[1]
    if not len(inputs) or not width:
        return np.zeros(width), np.ones(width), np.eye(width) / max(width, 1) ** 0.5
    centre, scale = scaling(inputs)
    turn: Array = np.eye(width)
    if width > MOST_COLUMNS:
        standard = (inputs[:: -(-len(inputs) // SAMPLED)] - centre) / scale
        turn = np.linalg.eigh(standard.T @ standard)[1][:, ::-1][:, :MOST_COLUMNS]
    return centre, scale, turn / width**0.5


def _mapped(inputs: Matrix, directions: tuple[Vector, Vector, Matrix]) -> Matrix:
    centre, scale, turn = directions
    return ((inputs - centre) / scale) @ turn


def _squares(points: Matrix) -> Matrix:
    half = np.square(points).sum(axis=1)
    return np.maximum(half[:, None] + half - 2 * points @ points.T, 0.0)


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


def log_loss(predicted: Vector, rewards: Vector) -> Vector:
    """Return the log-loss of each prediction, squeezed a little so that it stays finite."""
    squeezed = 1e-4 + (1 - 2e-4) * predicted
    return -(rewards * np.log(squeezed) + (1 - rewards) * np.log(1 - squeezed))
