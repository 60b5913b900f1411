"""Time intervals: references of another time may mislead, so a query learns from its own interval only."""

import numpy as np

from tercet import threads
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import scaling
from tercet.types import Feedback

FOLDS = 4
LEAST = 200  # an interval with fewer rows has too few references to learn from
MOST = 50_000  # more rows are thinned out before the choice
PENALTIES = (30.0, 100.0, 300.0, 1000.0)


def of(history: Feedback, partitions: int | None) -> Array:
    """Return the number of each row's interval, of `partitions` (None: of as many as `choose` says)."""
    if partitions is None:
        partitions = choose(history)
    if partitions == 1:
        return np.zeros(len(history), dtype=np.int64)
    if history.times is None:
        raise ValueError(
            f"{partitions} time intervals need a history with times; it has none (partitions=1 needs none)"
        )
    return split(history.times, partitions)


def split(times: Vector, partitions: int) -> Array:
    """Return each row's interval, of equal counts; equal times share one.

    >>> split(np.array([3.0, 1.0, 2.0, 4.0]), 2)
    array([1, 0, 0, 1])
    """
    earlier = np.searchsorted(np.sort(times), times, side="left")
    return earlier * partitions // max(len(times), 1)


def choose(history: Feedback) -> int:
    """Return how many intervals serve the history best: 1 unless the rewards drift.

    A ridge regression with interactions predicts held-out rewards, once from all times and once corrected
    within 2, 4, 8, ... intervals. The corrected one must win by three standard errors. It takes a second
    where training phi for each number would take minutes; a drift that it can not express goes unseen.
    """
    if history.times is None:
        return 1
    if len(history) > MOST:
        history = history[np.argsort(history.times)[:: len(history) // MOST]]
    counts = [2**power for power in range(1, 20) if 2**power * LEAST <= len(history)]
    if not counts:
        return 1
    alone, corrected = _held_out_errors(history, counts)
    gains = {setting: alone - errors for setting, errors in corrected.items()}
    best = max(gains, key=lambda setting: gains[setting].mean())
    gain = gains[best]
    return best[0] if gain.mean() > 3 * gain.std() / np.sqrt(len(gain)) else 1


def _held_out_errors(history: Feedback, counts: list[int]) -> tuple[Vector, dict[tuple[int, float], Vector]]:
    """Squared errors without intervals, and for each number of them and each penalty."""
    features, times = _features(history), np.asarray(history.times)
    fold = np.argsort(np.argsort(times, kind="stable")) % FOLDS
    labels = {count: split(times, count) for count in counts}
    alone = np.empty(len(history))
    corrected = {(count, penalty): np.empty(len(history)) for count in counts for penalty in PENALTIES}

    def predict(number: int) -> None:
        learn, test = fold != number, fold == number
        (common,) = _ridge(features[learn], history.rewards[learn], (1.0,))
        residual = history.rewards - features @ common
        alone[test] = residual[test] ** 2
        for count, label in labels.items():
            for interval in range(count):
                near, far = learn & (label == interval), test & (label == interval)
                fits = _ridge(features[near], residual[near], PENALTIES)
                for penalty, own in zip(PENALTIES, fits, strict=True):
                    corrected[count, penalty][far] = (residual[far] - features[far] @ own) ** 2

    threads.each(predict, range(FOLDS))
    return alone, corrected


def _features(history: Feedback) -> Matrix:
    contexts, arms = _principal(history.contexts, 24), _principal(history.arms, 24)
    products = contexts[:, :8, None] * arms[:, None, :8]
    return np.hstack([np.ones((len(arms), 1)), contexts, arms, products.reshape(len(arms), -1)])


def _principal(inputs: Matrix, most: int) -> Matrix:
    """The leading principal components of the standardised columns, at unit variance."""
    centre, scale = scaling(inputs)
    standard = np.clip((inputs - centre) / scale, -4, 4)  # a wild value must not decide alone
    variances, directions = np.linalg.eigh(standard.T @ standard / len(standard))
    lead = np.flatnonzero(variances > 1e-6)[::-1][:most]
    return standard @ (directions[:, lead] / np.sqrt(variances[lead]))


def _ridge(inputs: Matrix, targets: Vector, penalties: tuple[float, ...]) -> list[Vector]:
    gram, moments, unit = inputs.T @ inputs, inputs.T @ targets, np.eye(inputs.shape[1])
    return [np.linalg.solve(gram + penalty * unit, moments) for penalty in penalties]
