"""The bandit loop: a policy learns from a log, then decides and learns from its own decisions only."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np

from tercet import metrics
from tercet.checks import Array, Vector
from tercet.environments.base import Environment, Revealed, Revealing
from tercet.policies.base import Oracle, Policy
from tercet.types import Choice, Feedback, Round


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """What happened: `columns` has a row a round, with NaN where nobody knows (see `_Ledger.note`).

    `world` is a digest of all that was there to see: equal for policies that met the same rounds.
    """

    columns: dict[str, Array]
    fit_seconds: float
    world: str

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def times(self) -> Vector:
        return self.columns["time"]

    @property
    def rewards(self) -> Vector:
        return self.columns["reward"]

    @property
    def regrets(self) -> Vector:
        """The best arm's expected reward less the chosen one's, then and there; realised where unknown."""
        expected = self.columns["dynamic_regret"]
        return self.columns["regret"] if np.isnan(expected).any() else expected

    @property
    def seconds(self) -> Vector:
        """To decide and to learn from the outcome."""
        return self.columns["decide_seconds"] + self.columns["learn_seconds"]


class Streams(NamedTuple):
    """Independent randomness for each part of a run, so that no policy disturbs the world it plays in."""

    history: np.random.Generator
    rounds: np.random.Generator
    fit: np.random.Generator
    policy: np.random.Generator
    selection: np.random.Generator

    @classmethod
    def of(cls, rng: np.random.Generator) -> Self:
        """Split a fresh generator; equal ones give equal streams."""
        return cls(*rng.spawn(5))


Selector = Callable[[Feedback, np.random.Generator], Policy]


def play(
    policy: Policy | Selector, environment: Environment, rng: np.random.Generator, *, steps: int | None = None
) -> Trace:
    """Fit the policy on the environment's history, then let it play the rounds, at most `steps`.

    Policies played with equal rngs (`np.random.default_rng(seed)`, made anew for each) see the same
    history, the same rounds and the same luck of every arm, so that their regrets differ only by what
    they chose. In place of a policy, a function may choose one when it has seen the history.
    """
    streams = Streams.of(rng)
    again = deepcopy(streams.history)
    history = environment.history(streams.history)
    if not isinstance(policy, Policy):
        policy = policy(history, streams.selection)
    started = perf_counter()
    if isinstance(policy, Oracle):
        policy.reveal(_revealed(environment, again), streams.fit)
    else:
        policy.fit(history, streams.fit, remember=not environment.streaming)
    fit_seconds = perf_counter() - started
    ledger = _Ledger.after(history)
    for round_ in islice(environment.rounds(streams.rounds), steps):
        ledger.step(policy, round_, streams.policy)
    return Trace(columns=ledger.columns(), fit_seconds=fit_seconds, world=ledger.world.hexdigest())


def _locked(array: Array) -> Array:
    """Return a view that a policy can not change: the world is the same for whoever comes next."""
    view = array.view()
    view.flags.writeable = False
    return view


def _check(choice: Choice, policy: Policy, count: int) -> None:
    """Refuse a choice of no offered arm, or with odds that no draw can have."""
    arm, odds = choice.arm, choice.propensities
    if not 0 <= arm < count or odds.shape != (count,) or not (odds[arm] > 0 and abs(odds.sum() - 1) < 1e-6):
        raise ValueError(
            f"{type(policy).__name__} must choose one of {count} arms, with as many propensities that sum to "
            f"one and are above 0 for the chosen; got arm {arm} and {odds}"
        )


def _revealed(environment: Environment, rng: np.random.Generator) -> Revealed:
    if not isinstance(environment, Revealing):
        raise ValueError(
            f"{type(environment).__name__} can not show the rewards of all arms, which an oracle learns "
            "from; play it without the oracle"
        )
    return environment.revealed(rng)


@dataclass(kw_only=True, eq=False)
class _Ledger:
    """The rows of a run, and how often each arm that the history did not know has been shown."""

    first_id: int
    known: set[Any] | None  # arm ids of the history; None where it has no ids
    shown: dict[Any, int] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    world: Any = field(default_factory=lambda: blake2b(digest_size=16))

    @classmethod
    def after(cls, history: Feedback) -> Self:
        ids = [] if history.arm_ids is None else history.arm_ids.tolist()
        ledger = cls(first_id=len(history), known=set(ids) if len(ids) == len(history) else None)
        for column in (history.contexts.sum(0), history.arms.sum(0), history.rewards):
            ledger.world.update(column)
        return ledger

    def step(self, policy: Policy, round_: Round, rng: np.random.Generator) -> None:
        """Let the policy decide and learn from its own decision."""
        self._see(round_)
        context, arms = _locked(round_.context), _locked(round_.arms)
        start = perf_counter()
        if round_.logged is not None:
            policy.update(round_.logged, rng)
        caught_up = perf_counter()
        choice = policy.choose(context, arms, rng, time=round_.time, arm_ids=round_.arm_ids)
        decided = perf_counter()
        _check(choice, policy, len(arms))
        outcome = self.outcome(round_, choice)
        ready = perf_counter()
        policy.update(outcome, rng)
        learning = perf_counter() - ready + caught_up - start
        self.note(round_, choice, decide_seconds=decided - caught_up, learn_seconds=learning)

    def outcome(self, round_: Round, choice: Choice) -> Feedback:
        """Return what the policy may learn: its own action and that action's reward."""
        arm, named = choice.arm, {}
        if not 0 <= round_.rewards[arm] <= 1:
            raise ValueError(f"rewards must lie in [0, 1]; got {round_.rewards[arm]} at time {round_.time}")
        if round_.arm_ids is not None:
            named["arm_ids"] = np.array([round_.arm_ids[arm]])
        return Feedback.trusted(
            contexts=np.array(round_.context, dtype=np.float64, ndmin=2),
            arms=np.array(round_.arms[arm], dtype=np.float64, ndmin=2),
            rewards=np.array([round_.rewards[arm]], dtype=np.float64),
            times=np.array([round_.time], dtype=np.float64),
            ids=np.array([self.first_id + len(self.rows)]),
            propensities=np.array([choice.propensities[arm]]),
            **named,
        )

    def note(self, round_: Round, choice: Choice, **seconds: float) -> None:
        """Add the row of a round."""
        arm, means, beliefs = choice.arm, round_.means, choice.posterior
        arm_id = None if round_.arm_ids is None else round_.arm_ids[arm]
        self.rows.append(
            {
                "time": float(round_.time),
                "arm": arm,  # position among the offered
                "arm_id": arm_id,
                "offered": len(round_.arms),
                "propensity": float(choice.propensities[arm]),
                "predicted": np.nan if choice.means is None else float(choice.means[arm]),
                "reward": float(round_.rewards[arm]),
                "regret": float(round_.rewards.max() - round_.rewards[arm]),  # realised
                "dynamic_regret": np.nan if means is None else float(means.max() - means[arm]),  # expected
                "covered": np.nan if means is None or beliefs is None else metrics.covered(beliefs, means),
                "impression": self._impression(arm_id),
                "changed": round_.changed,
            }
            | seconds
        )

    def columns(self) -> dict[str, Array]:
        """Return the rows by column."""
        if not self.rows:
            raise ValueError("the environment must have at least one round; got none")
        return {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}

    def _see(self, round_: Round) -> None:
        for column in (round_.context, round_.arms, round_.rewards):
            self.world.update(np.ascontiguousarray(column))

    def _impression(self, arm_id: Any) -> int:
        """Return how often this arm was shown before if the history did not know it, else -1."""
        if arm_id is None or self.known is None or arm_id in self.known:
            return -1
        count = self.shown.get(arm_id, 0)
        self.shown[arm_id] = count + 1
        return count
