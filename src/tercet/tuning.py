"""Choosing between settings of a policy on the history alone, within a budget of wall-clock time.

Every policy gets the same budget. A setting is fitted on the older part of the history and replays the
newer part (Li et al., 2011): at each logged outcome it decides among the logged arm and others, and learns
the outcome where it would have shown the logged arm. Its value is the self-normalised importance weighted
reward Σ (π/p) r / Σ (π/p), with π its own and p the log's probability of the logged arm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Self

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import Policy, arm_keys, fresh
from tercet.types import Feedback, Ids

FEW = 20  # distinct arms: as many or fewer are all on offer in every replayed decision
OFFERED = 10  # arms in a replayed decision where the log does not tell
NEAR = 100  # outcomes before and after, from which other arms on offer are taken


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How much time goes into choosing settings, and on which part of the history.

    `seconds` are for each (policy, environment, seed); the setting that is being tried when they are over
    does not count, though its fit, which can not be cut short, may take longer. The newest `rows` of the
    history are looked at, and the newest `share` of them replayed.
    """

    seconds: float = 60.0
    rows: int = 5000
    share: float = 0.4

    def __post_init__(self) -> None:
        checks.positive("seconds", self.seconds)
        if self.rows < 10:
            raise ValueError(f"rows must be at least 10; got {self.rows}")
        if not 0 < self.share < 1:
            raise ValueError(f"share must lie between 0 and 1; got {self.share}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuned:
    """The chosen policy, unfitted; the values of the settings that were tried, in order; the time it took."""

    policy: Policy
    values: tuple[float, ...]
    seconds: float


def tune(settings: Sequence[Policy], history: Feedback, rng: np.random.Generator, options: Tuning) -> Tuned:
    """Return the setting that earns most in the replay; the first where none could be tried in time."""
    started = perf_counter()
    past, tail = split(history, options)
    seeds = rng.integers(2**63, size=3)  # equal luck for all settings
    values: list[float] = []
    if len(settings) > 1 and len(past) and len(tail):
        offers = Offers.of(tail, np.random.default_rng(seeds[0]))
        for setting in settings:
            if perf_counter() > started + options.seconds:
                break
            policy = fresh(setting)
            policy.fit(past, np.random.default_rng(seeds[1]))
            value = replay(
                policy, tail, offers, np.random.default_rng(seeds[2]), deadline=started + options.seconds
            )
            if value is None:
                break
            values.append(value)
    best = int(np.argmax(values)) if values else 0
    return Tuned(policy=settings[best], values=tuple(values), seconds=perf_counter() - started)


def split(history: Feedback, options: Tuning) -> tuple[Feedback, Feedback]:
    """Return the older and the newer part of the newest rows."""
    if history.times is not None:
        history = history[np.argsort(history.times, kind="stable")]
    recent = history[-options.rows :]
    cut = len(recent) - int(options.share * len(recent))
    return recent[:cut], recent[cut:]


@dataclass(frozen=True, kw_only=True, eq=False)
class Offers:
    """The arms on offer at each replayed outcome, the place of the logged one, and its chance in the log."""

    arms: Matrix
    arm_ids: Array | None
    picks: list[Ids]  # rows of `arms`, one array an outcome
    logged: Ids
    chances: Vector

    @classmethod
    def of(cls, tail: Feedback, rng: np.random.Generator) -> Self:
        """Offer every distinct arm where they are few, else some that were logged at about that time."""
        keys = arm_keys(tail.arms, tail.arm_ids)
        distinct, first, which = np.unique(keys, return_index=True, return_inverse=True)
        if len(distinct) <= FEW:
            picks = [first] * len(tail)
            logged = which
            chances = (
                np.full(len(tail), 1 / len(distinct)) if tail.propensities is None else tail.propensities
            )
        else:
            count = OFFERED if tail.propensities is None else round(1 / np.median(tail.propensities))
            picks = _nearby(keys, int(np.clip(count, 2, FEW)), rng)
            logged = np.zeros(len(tail), dtype=np.int64)
            chances = np.array([1 / len(pick) for pick in picks])
        return cls(arms=tail.arms, arm_ids=tail.arm_ids, picks=picks, logged=logged, chances=chances)


def replay(
    policy: Policy, tail: Feedback, offers: Offers, rng: np.random.Generator, *, deadline: float = np.inf
) -> float | None:
    """Return what the policy would earn on average; None where the clock passes the deadline first."""
    weights = np.zeros(len(tail))
    for row, pick in enumerate(offers.picks):
        if perf_counter() > deadline:
            return None
        choice = policy.choose(
            tail.contexts[row],
            offers.arms[pick],
            rng,
            time=None if tail.times is None else float(tail.times[row]),
            arm_ids=None if offers.arm_ids is None else offers.arm_ids[pick],
        )
        logged = offers.logged[row]
        weights[row] = choice.propensities[logged] / max(offers.chances[row], 1e-6)
        if choice.arm == logged:
            policy.update(tail[row : row + 1], rng)
    if not weights.any():
        return 0.0  # never once the logged arm: as bad as it gets
    return float(weights @ tail.rewards / weights.sum())


def _nearby(keys: Ids, count: int, rng: np.random.Generator) -> list[Ids]:
    """Return for each outcome its own row and rows of other arms, logged shortly before or after."""
    picks = []
    for row, own in enumerate(keys):
        others = rng.permutation(np.arange(max(row - NEAR, 0), min(row + NEAR + 1, len(keys))))
        others = others[keys[others] != own]
        _, first = np.unique(keys[others], return_index=True)
        picks.append(np.concatenate([[row], others[np.sort(first)][: count - 1]]))
    return picks
