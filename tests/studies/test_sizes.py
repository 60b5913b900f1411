"""The study of history sizes: who plays what, and the tables made of it."""

from pathlib import Path

import numpy as np
import pytest

from tercet import metrics
from tercet.executors import Serial
from tercet.paper import openml, press
from tercet.paper.base import Order
from tercet.results import Job
from tercet.studies import sizes
from tercet.studies.sizes_claims import LIMITS


def test_every_data_set_is_logged_in_both_ways_at_every_size() -> None:
    played = {
        (world.data, world.logging, world.history)
        for name, experiment in sizes.experiments(seeds=1).items()
        if not name.startswith("oracle")
        for world in experiment.environments.values()
    }
    assert played == {
        (data, logging, size)
        for data in openml.DATA
        for logging in ("label-aware", "uniform")
        for size in (100, 1000, 4000, 0.4)
    }
    assert set(LIMITS) == set(openml.DATA)


def test_runs_of_the_papers_figure_can_serve_here() -> None:
    every = sizes.experiments(seeds=1)
    for data in openml.DATA:
        theirs, ours = openml.by_size(data, seeds=1), every[f"label-aware-{data}"]
        assert set(ours.environments) < set(theirs.environments)
        for job in ours.jobs():
            assert ours.describe(job) == theirs.describe(job)


def test_the_papers_c3_plays_the_papers_logs_only_and_nobody_else_is_missing() -> None:
    for name, experiment in sizes.experiments(seeds=1).items():
        wanted = {"supervised"} if name.startswith("oracle") else set(openml.BY_SIZE)
        assert set(experiment.policies) == wanted - ({openml.OURS} if name.startswith("uniform") else set())


def test_the_oracle_plays_the_longest_history_only() -> None:
    jobs = sizes.experiments(seeds=1)["oracle-shuttle"].jobs()
    assert jobs == [Job("supervised", "0.4", 0)]


def test_a_quick_look_is_a_part_of_the_whole() -> None:
    whole, quick = sizes.experiments(seeds=1), sizes.experiments(seeds=1, quick=True)
    assert set(quick) < set(whole)
    for name, experiment in quick.items():
        assert {job[:2] for job in experiment.jobs()} < {job[:2] for job in whole[name].jobs()}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Order:
    """Return an order for two linear policies on data sets of our own."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=2000)
    features = np.column_stack([labels + rng.normal(size=2000), rng.normal(size=2000)])
    for name in ("shuttle", "magic", "covertype", "mnist"):
        np.savez(tmp_path / f"{name}.npz", X=features, y=labels)
    monkeypatch.setenv("TERCET_DATA", str(tmp_path))
    monkeypatch.setattr(openml, "BY_SIZE", ("LinUCB", "uniform"))
    monkeypatch.setattr(openml, "QUICK_STEPS", 40)
    return Order(folder=tmp_path / "sizes", seeds=2, quick=True, executor=Serial())


@pytest.mark.slow
def test_a_run_becomes_tables_a_picture_and_verdicts(small: Order) -> None:
    press.run(sizes.ITEM, small)
    found = press.tables(small.folder)
    assert len(found["final"]) == 2 * 2 * 2 * 2 * 2  # data sets, loggings, sizes, policies, seeds
    assert set(found["calibration"]["policy"]) == {"LinUCB"}  # uniform predicts nothing
    facts = press.about(small.folder)
    assert facts is not None
    assert facts["command"] == "tercet study run sizes --seeds 2 --quick --data DIR"
    assert "2 seeds" in facts["pictures"]["sizes"]
    assert {claim.verdict for claim in press.claims(sizes.ITEM, small.folder)} == {"not testable"}  # no C3
    experiment = sizes.experiments(seeds=2, quick=True)["uniform-shuttle"]
    rows = small.play("uniform-shuttle", experiment).rows()
    rows = rows[(rows["policy"] == "LinUCB") & (rows["environment"] == "1000")]
    here = "data == 'shuttle' and logging == 'uniform' and history == 1000 and policy == 'LinUCB'"
    assert found["final"].query(here)["regret"].sum() == rows["regret"].sum()
    bins = found["calibration"].query(here)
    assert bins["count"].sum() == 2 * 40
    error = metrics.calibration_error(rows["reward"].to_numpy(), rows["predicted"].to_numpy())
    assert (bins["rewards"] - bins["predicted"]).abs().sum() / 80 == pytest.approx(error, rel=1e-3)
