"""The bandit loop: a policy learns from a log, then decides and learns from its own decisions only."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from tercet.checks import Array, Vector
from tercet.policies.base import Policy
from tercet.types import Feedback, Ids, Round


@runtime_checkable
class Environment(Protocol):
    """A world to learn in; equal rngs give the same history and the same rounds."""

    def history(self, rng: np.random.Generator) -> Feedback:
        """Return what was logged before the first round."""

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        """Yield the rounds, with the rewards of all arms drawn whichever is chosen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """What happened, one row a round. Regret is the best arm's mean less the chosen arm's, then and there."""

    times: Vector
    arms: Ids  # positions among the offered
    arm_ids: Array | None
    propensities: Vector
    rewards: Vector
    regrets: Vector
    seconds: Vector  # to decide and to learn from the outcome
    fit_seconds: float

    def __len__(self) -> int:
        return len(self.rewards)


class Streams(NamedTuple):
    """Independent randomness for each part of a run, so that no policy disturbs the world it plays in."""

    history: np.random.Generator
    rounds: np.random.Generator
    fit: np.random.Generator
    policy: np.random.Generator

    @classmethod
    def of(cls, rng: np.random.Generator) -> Self:
        """Split a fresh generator; equal ones give equal streams."""
        return cls(*rng.spawn(4))


def play(policy: Policy, environment: Environment, rng: np.random.Generator) -> Trace:
    """Fit the policy on the environment's history, then let it play all rounds.

    Policies played with equal rngs (`np.random.default_rng(seed)`, made anew for each) see the same
    history, the same rounds and the same luck of every arm, so that their regrets differ only by what
    they chose. Where an environment has no means, the realised rewards stand in for them.
    """
    streams = Streams.of(rng)
    history = environment.history(streams.history)
    started = perf_counter()
    policy.fit(history, streams.fit)
    fit_seconds = perf_counter() - started
    rounds = enumerate(environment.rounds(streams.rounds), start=len(history))
    rows = [_step(policy, round_, number, streams.policy) for number, round_ in rounds]
    if not rows:
        raise ValueError("the environment must have at least one round; got none")
    columns: dict[str, Any] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Trace(**({"arm_ids": None} | columns), fit_seconds=fit_seconds)


def _step(policy: Policy, round_: Round, number: int, rng: np.random.Generator) -> dict[str, Any]:
    if round_.logged is not None:
        policy.update(round_.logged, rng)
    started = perf_counter()
    choice = policy.choose(round_.context, round_.arms, rng, time=round_.time)
    arm = choice.arm
    arm_id = None if round_.arm_ids is None else round_.arm_ids[arm]
    outcome = Feedback.one(
        context=round_.context,
        arm=round_.arms[arm],
        reward=round_.rewards[arm],
        time=round_.time,
        id=number,
        arm_id=arm_id,
        propensity=choice.propensities[arm],
    )
    policy.update(outcome, rng)
    seconds = perf_counter() - started
    means = round_.rewards if round_.means is None else round_.means
    return ({} if arm_id is None else {"arm_ids": arm_id}) | {
        "times": float(round_.time),
        "arms": arm,
        "propensities": float(choice.propensities[arm]),
        "rewards": float(round_.rewards[arm]),
        "regrets": float(means.max() - means[arm]),
        "seconds": seconds,
    }
