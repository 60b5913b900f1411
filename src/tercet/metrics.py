"""What is measured on the rows of a run: regret, reward, new arms, recovery, quality of predictions."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tercet.checks import Array, Vector
from tercet.types import Ids, Posterior

if TYPE_CHECKING:
    import pandas as pd

SURE = 1e-3  # predictions are cut to [SURE, 1 - SURE]: linear models leave the unit interval
FIRST_IMPRESSIONS = 100
OUTSIDE = 0.05  # of a posterior, on either side of its 90 % interval
BINS = 10
BLOCKS = 20  # of time, where all seeds replay one log
SMOOTHED = 25  # steps
BEFORE = 100  # steps before a change that tell the level to come back to


def blocks(times: Vector) -> Ids:
    """Return the number of the stretch, of equally long ones from the first time to the last."""
    since, span = times - times.min(), np.ptp(times)
    return np.minimum(since * BLOCKS / (span or 1.0), BLOCKS - 1).astype(np.int64)


def totals(rows: "pd.DataFrame", column: str) -> "pd.DataFrame":
    """Return a row for each block of each seed and a column a policy: totals, or of rewards means a step."""
    runs = rows.pivot_table(
        index=["policy", "seed"], columns="block", values=column, aggfunc="sum", fill_value=0
    )
    # A block counts as if the whole run went as it did, so that the mean over blocks is the run's.
    steps = rows.groupby(["policy", "seed"]).size() if column == "reward" else 1
    long = (runs.shape[1] * runs).div(steps, axis=0).melt(ignore_index=False).reset_index()
    return long.pivot(index=["block", "seed"], columns="policy", values="value")


def summarise(rows: "pd.DataFrame") -> dict[str, float]:
    """Return the figures of a run, or of the pooled steps of several; NaN where one can not be had."""
    rewards, predicted = rows["reward"].to_numpy(), rows["predicted"].to_numpy(dtype=np.float64)
    return {
        "regret_per_step": float(rows["regret"].mean()),
        "dynamic_regret_per_step": float(rows["dynamic_regret"].mean(skipna=False)),
        "reward": float(rewards.mean()),
        "new_arm_reward": new_arm_reward(rewards, rows["impression"].to_numpy()),
        "log_loss": log_loss(rewards, predicted),
        "brier": float(np.mean((rewards - _cut(predicted)) ** 2)),
        "calibration_error": calibration_error(rewards, predicted),
        "decide_ms": 1e3 * float(rows["decide_seconds"].mean()),
        "learn_ms": 1e3 * float(rows["learn_seconds"].mean()),
    }


def new_arm_reward(rewards: Vector, impressions: Array) -> float:
    """Return the mean reward of the first impressions of arms that the history did not know."""
    early = (impressions >= 0) & (impressions < FIRST_IMPRESSIONS)
    return float(rewards[early].mean()) if early.any() else float("nan")


def log_loss(rewards: Vector, predicted: Vector) -> float:
    """Return the mean cross-entropy of predictions made before their outcomes."""
    chances = _cut(predicted)
    return float(-np.mean(rewards * np.log(chances) + (1 - rewards) * np.log(1 - chances)))


def covered(beliefs: Posterior, means: Vector) -> float:
    """Return the share of arms whose expected reward lies in the 90 % interval of their posterior.

    >>> one, nine = np.ones(2), np.array([1.0, 99.0])
    >>> covered(Posterior(mean=one / (one + nine), mass=nine, alpha=one, beta=nine), np.array([0.2, 0.2]))
    0.5
    """
    from scipy.special import betainc

    below = betainc(beliefs.alpha, beliefs.beta, means)
    return float(np.mean((below >= OUTSIDE) & (below <= 1 - OUTSIDE)))


def calibration_error(rewards: Vector, predicted: Vector) -> float:
    """Return how far predictions are from frequencies, on average over bins of about equally many."""
    if np.isnan(predicted).any():
        return float("nan")
    bins = calibration_bins(rewards, predicted)
    return float(np.abs(bins.rewards - bins.predicted).sum() / len(rewards))


class Bins(NamedTuple):
    """How many outcomes each bin has, and the sums of their rewards and predictions."""

    outcomes: Array
    rewards: Vector
    predicted: Vector


def calibration_bins(rewards: Vector, predicted: Vector) -> Bins:
    """Sort outcomes by prediction into bins of about equally many.

    Equal predictions share a bin: otherwise the order of the rows would count.
    """
    chances = _cut(predicted)
    ranks = np.searchsorted(np.sort(chances), chances)
    which = ranks * BINS // len(chances)
    return Bins(
        np.bincount(which, minlength=BINS),
        np.bincount(which, weights=rewards, minlength=BINS),
        np.bincount(which, weights=chances, minlength=BINS),
    )


def recovery_steps(regrets: Sequence[Vector], changed: Sequence[Array]) -> float:
    """Return how many steps after an abrupt change half of the jump in regret is gone.

    The regret around every change of every run is averaged and smoothed, and the level of the steps
    before the change subtracted. NaN without changes, without a jump or where the regret is unknown;
    infinite where half is never gone before the next change.
    """
    windows = _windows(regrets, changed)
    if not windows or np.isnan(windows).any():
        return float("nan")
    mean = np.mean(windows, axis=0)
    after = np.convolve(mean[BEFORE:] - mean[:BEFORE].mean(), np.full(SMOOTHED, 1 / SMOOTHED), mode="valid")
    if after[0] < 1e-9:
        return float("nan")
    gone = np.flatnonzero(after <= after[0] / 2)
    return float(gone[0]) if len(gone) else float("inf")


def _windows(regrets: Sequence[Vector], changed: Sequence[Array]) -> list[Vector]:
    """Return equally long stretches of regret around the changes, those too near to an end left out."""
    changes = [
        (regret, start, end)
        for regret, mask in zip(regrets, changed, strict=True)
        for start, end in pairwise([*np.flatnonzero(mask), len(mask)])
        if start >= BEFORE and end - start > SMOOTHED
    ]
    # The end of a run may cut its last window short, which must not shorten the others.
    whole = [end - start for regret, start, end in changes if end < len(regret)]
    length = min(whole or [end - start for _, start, end in changes], default=0)
    return [
        regret[start - BEFORE : start + length] for regret, start, end in changes if end - start >= length
    ]


def _cut(predicted: Vector) -> Vector:
    return np.clip(predicted, SURE, 1 - SURE)
