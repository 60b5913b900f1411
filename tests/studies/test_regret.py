"""Regret by world, of runs in several folders."""

from pathlib import Path

import pytest

from tercet import experiment as experiments
from tercet.environments.drift import Drift
from tercet.executors import Serial
from tercet.experiment import Experiment
from tercet.policies.simple import Uniform
from tercet.results import Results
from tercet.studies.regret import POINTS, by_world


def played(folder: Path, *worlds: str, steps: int) -> Results:
    stages = {world: Drift(kind="stationary", logged=0, steps=steps) for world in worlds}
    experiment = Experiment(policies={"uniform": Uniform()}, environments=stages, seeds=2)
    return experiments.run(experiment, folder, executor=Serial())


def test_runs_of_all_folders_are_kept_by_world_whatever_their_length(tmp_path: Path) -> None:
    parts = [played(tmp_path / "a", "one", "two", steps=50), played(tmp_path / "b", "three", steps=10)]
    tables = by_world([*parts, Results(tmp_path / "not begun")])
    assert tables["final"]["world"].tolist() == ["one", "one", "two", "two", "three", "three"]
    assert tables["final"]["steps"].tolist() == [50] * 4 + [10] * 2
    assert tables["curves"].groupby("world").size().to_dict() == {"one": POINTS, "two": POINTS, "three": 10}
    ends = tables["curves"].groupby("world")["mean"].last()
    means = tables["final"].groupby("world")["regret"].mean()
    assert ends.to_dict() == pytest.approx(means.to_dict())
