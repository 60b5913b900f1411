"""Experiments as values: policies × environments × seeds × steps, run once, resumed where they stopped."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tercet import checks
from tercet.checks import Array
from tercet.environments.base import Scenario
from tercet.executors import Crash, Executor, Processes
from tercet.loop import play
from tercet.policies.base import Oracle, Policy, fresh
from tercet.results import Job, ResultError, Results
from tercet.tuning import Tuned, Tuning, tune
from tercet.types import Feedback
from tercet.words import words


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A policy in a comparison.

    Parameters
    ----------
    policy
        The policy, unfitted; each run gets a fresh copy.
    settings
        Other settings of it. The best of all on the history plays, as far as the tuning budget reaches.
    seeds
        Play only so many seeds (slow policies); None: as many as the experiment.
    """

    policy: Any
    settings: tuple[Any, ...] = ()
    seeds: int | None = None

    def __post_init__(self) -> None:
        for policy in (self.policy, *self.settings):
            if not isinstance(policy, Policy):
                raise ValueError(f"a contender must be a policy (see tercet.policies.base); got {policy!r}")
            fresh(policy)
        if self.seeds is not None:
            object.__setattr__(self, "seeds", checks.whole("seeds", self.seeds))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Who plays where, how often and how long.

    Parameters
    ----------
    policies
        By name: policies, or `Contender`s where settings are tuned or seeds are fewer.
    environments
        Scenarios by name; each seed draws its own world from them.
    seeds
        Worlds to play in; seed 0, 1, 2, ... are the same worlds for every policy.
    steps
        Rounds to play, at most; None: all that the environment has.
    tuning
        The budget for choosing between a contender's settings, equal for all.
    """

    policies: Mapping[str, Any]
    environments: Mapping[str, Any]
    seeds: int = 10
    steps: int | None = None
    tuning: Tuning = field(default_factory=Tuning)

    def __post_init__(self) -> None:
        if not self.policies or not self.environments:
            raise ValueError("an experiment needs at least one policy and one environment")
        for name, scenario in self.environments.items():
            if not isinstance(scenario, Scenario) or isinstance(scenario, type):
                raise ValueError(f"environment {name!r} must be a scenario with draw(rng); got {scenario!r}")
        object.__setattr__(self, "seeds", checks.whole("seeds", self.seeds))
        if self.steps is not None:
            object.__setattr__(self, "steps", checks.whole("steps", self.steps))
        for name in (*self.policies, *self.environments):
            if not isinstance(name, str) or not name.strip() or "\n" in name:
                raise ValueError(f"policies and environments must have a name, a line of text; got {name!r}")
        contenders = {
            name: policy if isinstance(policy, Contender) else Contender(policy=policy)
            for name, policy in self.policies.items()
        }
        object.__setattr__(self, "policies", contenders)

    def contender(self, name: str) -> Contender:
        """Return who plays under a name."""
        return self.policies[name]

    def jobs(self) -> list[Job]:
        """Return every run of the experiment, one seed after another: a table can be read early."""
        return [
            Job(policy, environment, seed)
            for seed in range(self.seeds)
            for environment in self.environments
            for policy in self.policies
            if seed < (self.contender(policy).seeds or self.seeds)
        ]

    def describe(self, job: Job) -> dict[str, Any]:
        """Return what a run's rows depend on, in words: it is resumed only where they are unchanged."""
        contender = self.contender(job.policy)
        return {
            "made_of": words(contender.policy),
            "settings": [words(policy) for policy in contender.settings],
            "world": words(self.environments[job.environment]),
            "steps": self.steps,
            "tuning": words(self.tuning) if contender.settings else None,
        }


@dataclass(frozen=True, kw_only=True)
class Task:
    """One run, with all that a worker needs."""

    job: Job
    contender: Contender
    scenario: Scenario
    steps: int | None
    tuning: Tuning


@dataclass(frozen=True, kw_only=True, eq=False)
class Done:
    """A finished run: its rows by column and its summary, or the error that ended it."""

    job: Job
    seconds: float
    columns: dict[str, Array] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


def run(
    experiment: Experiment,
    folder: str | Path,
    *,
    executor: Executor | None = None,
    about: Mapping[str, Any] | None = None,
    advance: Callable[[Done], None] = lambda _: None,
) -> Results:
    """Play what is not yet finished in the folder, and return its results.

    Each run is written as soon as it is finished, so a killed experiment goes on where it stopped. A run
    that fails does not stop the others; at the end an error names all that failed. `about` is kept with
    every run that is played now, `advance` is told of each as it ends.
    """
    results = Results(Path(folder))
    todo = unfinished(experiment, results)
    results.describe(dict(about or {}) | _description(experiment))
    failed: dict[Path, Done] = {}
    tasks = [_task(experiment, job) for job in todo]
    for result in (executor or Processes()).map(work, tasks):
        done = _crashed(result) if isinstance(result, Crash) else result
        if done.error is None:
            summary = done.summary | experiment.describe(done.job) | dict(about or {})
            results.write(done.job, done.columns, summary)
        else:
            failed[results.write_error(done.job, done.error)] = done
        advance(done)
    if failed:
        raise ExperimentError(failed)
    return results


class ExperimentError(RuntimeError):
    """Some runs failed; all others are written."""

    def __init__(self, failed: Mapping[Path, Done]) -> None:
        self.failed = failed
        groups: dict[str, list[Path]] = {}
        for path, done in failed.items():
            groups.setdefault((done.error or "").strip().splitlines()[-1], []).append(path)
        told = [
            f"{failed[paths[0]].job}"
            + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
            + f": {message}\n    the traceback is in {paths[0]}"
            for message, paths in groups.items()
        ]
        super().__init__("\n".join([f"{len(failed)} run(s) failed, all others are written:", *told]))


def unfinished(experiment: Experiment, results: Results) -> list[Job]:
    """Return the jobs without rows; refuse rows that were made with other options under the same names."""
    todo = []
    for job in experiment.jobs():
        path = results.path(job)
        if not path.exists():
            todo.append(job)
            continue
        then, now = results.summary(path), experiment.describe(job)
        changed = [name for name in now if then.get(name) != now[name]]
        if changed:
            raise ResultError(
                f"{results.folder} has results of {job} with another {changed[0]}: {then.get(changed[0])}; "
                f"now it is {now[changed[0]]}. Give the results another folder, or delete {path}"
            )
    return todo


def work(task: Task) -> Done:
    """Play one run; an error becomes part of the result, so that the other runs go on."""
    started = perf_counter()
    tuned: list[Tuned] = []

    def select(history: Feedback, rng: np.random.Generator) -> Policy:
        settings = (task.contender.policy, *task.contender.settings)
        tuned.append(tune(settings, history, rng, task.tuning))
        return fresh(tuned[0].policy)

    try:
        world, luck = np.random.default_rng(task.job.seed).spawn(2)
        environment = task.scenario.draw(world)
        one_log = environment.one_log
        policy = select if task.contender.settings else fresh(task.contender.policy)
        trace = play(policy, environment, luck, steps=task.steps)
    except (Exception, SystemExit):  # told at the end, with the run's name
        return Done(job=task.job, seconds=perf_counter() - started, error=traceback.format_exc())
    seconds = perf_counter() - started
    summary = {
        "world_digest": trace.world,
        "one_log": one_log,
        "fit_seconds": trace.fit_seconds,
        "run_seconds": seconds,
        "oracle": isinstance(task.contender.policy, Oracle),
        "budget_seconds": task.tuning.seconds if tuned else 0.0,
        "tuning_seconds": tuned[0].seconds if tuned else 0.0,
        "tried": tuned[0].tried if tuned else 0,
        "tuning_rows": tuned[0].rows if tuned else 0,
        "chosen": words(tuned[0].policy if tuned else task.contender.policy),
    }
    return Done(job=task.job, seconds=seconds, columns=trace.columns, summary=summary)


def _crashed(crash: Crash) -> Done:
    return Done(job=crash.task.job, seconds=0.0, error=f"the run crashed: {crash.reason}")


def _task(experiment: Experiment, job: Job) -> Task:
    return Task(
        job=job,
        contender=experiment.contender(job.policy),
        scenario=experiment.environments[job.environment],
        steps=experiment.steps,
        tuning=experiment.tuning,
    )


def _description(experiment: Experiment) -> dict[str, Any]:
    return {
        "policies": {name: words(experiment.contender(name)) for name in experiment.policies},
        "environments": {name: words(scenario) for name, scenario in experiment.environments.items()},
        "seeds": experiment.seeds,
        "steps": experiment.steps,
        "tuning": words(experiment.tuning),
    }
