"""Choosing between settings of a policy on the history alone, within a budget of wall-clock time.

Every policy gets the same budget. Its settings are fitted on the older part of the history and then race
over the newer part: at each logged outcome a setting decides among the logged arm and others, and then
learns the outcome, as it would have learned its own. Its value is the self-normalised importance weighted
reward Σ (π/p) r / Σ (π/p), with π its own and p the log's probability of the logged arm (Li et al., 2011,
count only outcomes where the two agree; too few are left of ten arms to tell how fast to forget).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Self

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix, Vector
from tercet.policies.base import Policy, arm_keys, fresh
from tercet.policies.memory import in_time
from tercet.types import Feedback, Ids

FEW = 20  # distinct arms: as many or fewer are all on offer in every replayed decision
OFFERED = 10  # arms in a replayed decision where the log does not tell
NEAR = 100  # outcomes before and after, from which other arms on offer are taken
LAP = 50  # outcomes that a setting replays before it is the next one's turn


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How much time goes into choosing settings, and on which part of the history.

    `seconds` are for each (policy, environment, seed). A setting that takes more than twice its share of
    them is left out; when they are over, the settings are compared on the outcomes that all have replayed
    (a fit can not be cut short and may take longer). The newest `rows` of the history are looked at, and
    the newest `share` of them replayed.
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
    """The chosen policy, unfitted; the value of each setting, NaN if left out; the time and rows it took."""

    policy: Policy
    values: tuple[float, ...]
    rows: int
    seconds: float

    @property
    def tried(self) -> int:
        """How many settings were compared."""
        return int(np.isfinite(self.values).sum())


@dataclass(kw_only=True, eq=False)
class _Runner:
    """A setting in the race: its fitted policy, what it has replayed, and the time that took."""

    policy: Policy
    rng: np.random.Generator
    seconds: float = 0.0
    weights: list[float] = field(default_factory=list)


def tune(settings: Sequence[Policy], history: Feedback, rng: np.random.Generator, options: Tuning) -> Tuned:
    """Return the setting that earns most in the replay; the first where none could be compared."""
    started = perf_counter()
    past, tail = split(history, options)
    seeds = rng.integers(2**63, size=3)  # equal luck for all settings
    values, rows = np.full(len(settings), np.nan), 0
    if len(settings) > 1 and len(past) and len(tail):
        offers = Offers.of(tail, np.random.default_rng(seeds[0]))
        runners = _fitted(settings, past, seeds[1:], started + options.seconds / 2)
        rows = _race(runners, tail, offers, started + options.seconds, 2 * options.seconds / len(settings))
        for number, runner in runners.items() if rows else ():
            weights = np.array(runner.weights[:rows])
            # Never once the logged arm is as bad as it gets.
            values[number] = weights @ tail.rewards[:rows] / weights.sum() if weights.any() else 0.0
    best = int(np.nanargmax(values)) if rows else 0
    return Tuned(
        policy=settings[best], values=tuple(values.tolist()), rows=rows, seconds=perf_counter() - started
    )


def split(history: Feedback, options: Tuning) -> tuple[Feedback, Feedback]:
    """Return the older and the newer part of the newest rows."""
    recent = in_time(history)[-options.rows :]
    cut = len(recent) - int(options.share * len(recent))
    return recent[:cut], recent[cut:]


@dataclass(frozen=True, kw_only=True, eq=False)
class Offers:
    """The arms on offer at each replayed outcome, the place of the logged one, and its chance in the log.

    Chances matter up to a factor only.
    """

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
        chances = np.ones(len(tail)) if tail.propensities is None else np.maximum(tail.propensities, 1e-6)
        if len(distinct) <= FEW:
            picks, logged = [first] * len(tail), which
        else:
            count = OFFERED if tail.propensities is None else round(1 / np.median(chances))
            picks, logged, frequency = _nearby(keys, int(np.clip(count, 2, FEW)), rng)
            # A log that prefers some arms to others offers them more often too: only what it prefers
            # for this visitor must be undone. An even log needs no such estimate, which would add noise.
            if np.ptp(chances) > 1e-9:
                chances = chances / frequency
        return cls(arms=tail.arms, arm_ids=tail.arm_ids, picks=picks, logged=logged, chances=chances)


def replay(policy: Policy, tail: Feedback, offers: Offers, row: int, rng: np.random.Generator) -> float:
    """Let the policy decide at one logged outcome and learn it; return the outcome's weight."""
    pick = offers.picks[row]
    choice = policy.choose(
        tail.contexts[row],
        offers.arms[pick],
        rng,
        time=None if tail.times is None else float(tail.times[row]),
        arm_ids=None if offers.arm_ids is None else offers.arm_ids[pick],
    )
    policy.update(tail[row : row + 1], rng)
    return float(choice.propensities[offers.logged[row]] / offers.chances[row])


def _fitted(settings: Sequence[Policy], past: Feedback, seeds: Array, deadline: float) -> dict[int, _Runner]:
    """Return the settings that could be fitted in time, at least one, by number."""
    runners: dict[int, _Runner] = {}
    for number, setting in enumerate(settings):
        started = perf_counter()
        if runners and started > deadline:
            break
        runner = _Runner(policy=fresh(setting), rng=np.random.default_rng(seeds[1]))
        runner.policy.fit(past, np.random.default_rng(seeds[0]))
        runner.seconds = perf_counter() - started
        runners[number] = runner
    return runners


def _race(runners: dict[int, _Runner], tail: Feedback, offers: Offers, deadline: float, share: float) -> int:
    """Replay lap by lap and drop settings that take more than their share; return the rows all have done."""
    for start in range(0, len(tail), LAP):
        for number, runner in list(runners.items()):
            if perf_counter() > deadline:
                return min(len(runner.weights) for runner in runners.values())
            for row in range(start, min(start + LAP, len(tail))):
                before = perf_counter()
                runner.weights.append(replay(runner.policy, tail, offers, row, runner.rng))
                runner.seconds += perf_counter() - before
                if runner.seconds > share and len(runners) > 1:
                    del runners[number]
                    break
    return len(tail)


def _nearby(keys: Ids, count: int, rng: np.random.Generator) -> tuple[list[Ids], Ids, Vector]:
    """Return rows of arms logged shortly before or after each outcome, its own among them.

    Then its place there, and how large a part of the outcomes nearby was of its arm.
    """
    picks, frequency = [], np.empty(len(keys))
    places = np.empty(len(keys), dtype=np.int64)
    for row, own in enumerate(keys):
        near = rng.permutation(np.arange(max(row - NEAR, 0), min(row + NEAR + 1, len(keys))))
        others = near[keys[near] != own]
        frequency[row] = 1 - len(others) / len(near)
        _, first = np.unique(keys[others], return_index=True)
        chosen = others[np.sort(first)][: count - 1]
        places[row] = rng.integers(len(chosen) + 1)  # any place, for policies that break ties by it
        picks.append(np.insert(chosen, places[row], row))
    return picks, places, frequency
