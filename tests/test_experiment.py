import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tercet import Choice, Feedback
from tercet.executors import Processes, Ray, Serial
from tercet.experiment import Contender, Done, Experiment, ExperimentError, run
from tercet.policies.linear import LinUCB
from tercet.policies.simple import ArmThompson, Uniform
from tercet.results import Job, ResultError, Results
from tercet.tuning import Tuning
from tests.worlds import Signs

EXPERIMENT = Experiment(
    policies={
        "uniform": Uniform(),
        "per arm": Contender(policy=ArmThompson(), seeds=1),
        "LinUCB": Contender(policy=LinUCB(width=50.0), settings=(LinUCB(width=0.1),)),
    },
    environments={"signs": Signs(), "streamed": Signs(logged=30, streaming=True)},
    seeds=2,
    steps=40,
    tuning=Tuning(seconds=60.0),
)
TIMINGS = ["decide_seconds", "learn_seconds"]


def rows(results: Results) -> pd.DataFrame:
    return results.rows().drop(columns=TIMINGS)


@dataclass(kw_only=True)
class Broken:
    """A policy that fails at its third decision."""

    made: int = 0

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None: ...

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        if self.made == 2:
            raise ZeroDivisionError("third decision")
        return Choice(arm=0, propensities=np.eye(len(arms))[0])

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        self.made += 1

    def save(self, path: Any) -> None: ...

    @classmethod
    def load(cls, path: Any) -> "Broken":
        raise NotImplementedError


def test_every_policy_plays_every_environment_and_seed(tmp_path: Path) -> None:
    told: list[Done] = []
    results = run(EXPERIMENT, tmp_path, executor=Serial(), advance=told.append)
    assert [done.job for done in told] == EXPERIMENT.jobs()
    assert len(EXPERIMENT.jobs()) == 2 * 2 * 2 + 2  # `per arm` plays one seed only
    frame = results.rows()
    assert frame.groupby(["policy", "environment", "seed"]).size().tolist() == [40] * 10
    description = results.description()
    assert description["seeds"] == 2
    assert "width=50.0" in description["policies"]["LinUCB"]


def test_policies_of_a_seed_see_the_same_rounds_and_seeds_differ(tmp_path: Path) -> None:
    frame = run(EXPERIMENT, tmp_path, executor=Serial()).rows()
    frame["best"] = frame["reward"] + frame["regret"]
    best = frame.pivot_table(index=["environment", "seed", "step"], columns="policy", values="best")
    assert (best["uniform"] == best["LinUCB"]).all()
    signs = best.loc["signs", "uniform"].unstack("seed")
    assert (signs[0] != signs[1]).any()


def test_a_tuned_policy_says_what_was_chosen_at_what_cost(tmp_path: Path) -> None:
    summaries = run(EXPERIMENT, tmp_path, executor=Serial()).summaries().set_index(["policy", "environment"])
    tuned = summaries.loc[("LinUCB", "signs")]
    assert (tuned["tried"] == 2).all()
    assert (tuned["budget_seconds"] == 60).all()
    assert all("width=0.1" in words for words in tuned["chosen"])  # width 50 explores for ever
    assert (summaries.loc["uniform", "tried"] == 0).all()


def test_the_executor_changes_nothing_but_the_timings(tmp_path: Path) -> None:
    serial = rows(run(EXPERIMENT, tmp_path / "serial", executor=Serial()))
    processes = rows(run(EXPERIMENT, tmp_path / "processes", executor=Processes(2)))
    pd.testing.assert_frame_equal(serial, processes, check_exact=True)


@pytest.mark.slow
def test_ray_gives_the_rows_that_processes_give(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'tercet[ray]'")
    processes = rows(run(EXPERIMENT, tmp_path / "processes", executor=Processes(2)))
    ray = rows(run(EXPERIMENT, tmp_path / "ray", executor=Ray(jobs=2)))
    pd.testing.assert_frame_equal(ray, processes, check_exact=True)


def test_only_what_is_not_finished_is_run(tmp_path: Path) -> None:
    whole = rows(run(EXPERIMENT, tmp_path / "whole", executor=Serial()))
    smaller = replace(EXPERIMENT, seeds=1)
    run(smaller, tmp_path / "grown", executor=Serial())
    told: list[Job] = []
    grown = run(EXPERIMENT, tmp_path / "grown", executor=Serial(), advance=lambda done: told.append(done.job))
    assert {job.seed for job in told} == {1}
    pd.testing.assert_frame_equal(rows(grown), whole, check_exact=True)


def test_results_of_other_options_are_not_mixed_in(tmp_path: Path) -> None:
    run(EXPERIMENT, tmp_path, executor=Serial())
    for changed, what in (
        (replace(EXPERIMENT, steps=41), "steps"),
        (replace(EXPERIMENT, environments={"signs": Signs(logged=50)}), "world"),
        (replace(EXPERIMENT, policies={"LinUCB": LinUCB(width=50.0)}), "settings"),
        (replace(EXPERIMENT, policies={"uniform": LinUCB()}), "made_of"),
        (replace(EXPERIMENT, tuning=Tuning(seconds=61.0)), "tuning"),
    ):
        with pytest.raises(ResultError, match=f"another {what}.*another folder"):
            run(changed, tmp_path, executor=Serial())


def test_a_run_that_fails_stops_no_other_and_is_tried_again(tmp_path: Path) -> None:
    broken = replace(EXPERIMENT, policies={"broken": Broken(), "uniform": Uniform()})
    message = r"4 run.*\nbroken in signs, seed 0 and 3 more: ZeroDivisionError: third decision\n.*errors"
    with pytest.raises(ExperimentError, match=message):
        run(broken, tmp_path, executor=Serial())
    assert set(Results(tmp_path).summaries()["policy"]) == {"uniform"}
    texts = [path.read_text() for path in (tmp_path / "errors").iterdir()]
    assert len(texts) == 4
    assert all("in choose" in text for text in texts)
    short = replace(broken, policies={"broken": Broken()}, steps=2)
    assert len(run(short, tmp_path, executor=Serial()).rows()) == 4 * 40 + 4 * 2
    assert not list((tmp_path / "errors").iterdir())


@dataclass(kw_only=True)
class Leaver(Broken):
    """A policy that ends the program, as a crashing library does, or asks it to end."""

    politely: bool = True

    def choose(self, context: Any, arms: Any, rng: np.random.Generator, **more: Any) -> Choice:
        sys.exit("bye") if self.politely else os._exit(7)


def test_a_run_that_ends_the_program_stops_no_other(tmp_path: Path) -> None:
    policies = {"polite": Leaver(), "rude": Leaver(politely=False), "uniform": Uniform()}
    experiment = replace(EXPERIMENT, policies=policies, environments={"signs": Signs()})
    with pytest.raises(ExperimentError) as caught:
        run(experiment, tmp_path, executor=Processes(2))
    assert "SystemExit: bye" in str(caught.value)
    assert "rude in signs, seed 0 and 1 more: the run crashed" in str(caught.value)
    assert Results(tmp_path).summaries()["policy"].tolist() == ["uniform", "uniform"]


def test_a_corrupt_result_stops_the_run_before_it_starts(tmp_path: Path) -> None:
    results = run(EXPERIMENT, tmp_path, executor=Serial())
    path = results.path(Job("uniform", "signs", 0))
    path.write_bytes(b"PAR1 no more")
    with pytest.raises(ResultError, match="delete it"):
        run(EXPERIMENT, tmp_path, executor=Serial())
    path.unlink()
    assert len(run(EXPERIMENT, tmp_path, executor=Serial()).rows()) == 400


FILE = """
from tercet.experiment import Experiment
from tercet.policies.linear import LinUCB
from tercet.policies.simple import ArmThompson, Uniform
from tests.worlds import Signs

experiment = Experiment(
    policies={"uniform": Uniform(), "LinUCB": LinUCB(), "per arm": ArmThompson()},
    environments={"signs": Signs(rounds_=400)},
    seeds=6,
)
"""


def test_a_killed_run_goes_on_without_a_lost_or_doubled_row(tmp_path: Path) -> None:
    file, folder = tmp_path / "mine.py", tmp_path / "out"
    file.write_text(FILE)
    command = [sys.executable, "-m", "tercet", "run", str(file), "--jobs", "2"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    killed = subprocess.Popen(
        [*command, "--out", str(folder)], env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    while len(list(folder.glob("runs/*.parquet"))) < 4 and killed.poll() is None:
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    finished = len(list(folder.glob("runs/*.parquet")))
    assert 4 <= finished < 18  # killed in the middle
    for target in (folder, tmp_path / "whole"):
        subprocess.run([*command, "--out", str(target)], env=environment, check=True, capture_output=True)
    pd.testing.assert_frame_equal(rows(Results(folder)), rows(Results(tmp_path / "whole")), check_exact=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 0}, "seeds must be a whole number, 1 or more"),
        ({"steps": 0}, "steps must be a whole number, 1 or more"),
        ({"policies": {"": Uniform()}}, "must have a name"),
        ({"policies": {"two\nlines": Uniform()}}, "must have a name"),
        ({"environments": {"x": Signs}}, "must be a scenario"),
        ({"policies": {}}, "at least one policy"),
        ({"environments": {}}, "at least one policy"),
        ({"policies": {"x": 3}}, "must be a policy"),
        ({"policies": {"x": Uniform}}, "must be an instance"),
        ({"environments": {"x": 3}}, "must be a scenario"),
    ],
)
def test_bad_experiments_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(EXPERIMENT, **changes)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    experiment = replace(EXPERIMENT, seeds=np.int64(1).item(), policies={"uniform": Uniform()})
    assert experiment.seeds == 1
    assert len(run(experiment, tmp_path, executor=Serial()).rows()) == 80
