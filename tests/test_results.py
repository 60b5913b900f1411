import json
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tercet.results import Job, ResultError, Results

JOB = Job("C3", "a/b: c?", 3)


def columns(n: int = 4, scale: float = 1.0) -> dict[str, np.ndarray]:
    return {
        "reward": scale * np.arange(float(n)), "arm_id": np.array([None] * n), "arm": np.arange(n),
        "predicted": np.full(n, np.nan),
    }  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "new" / "folder")


def test_rows_and_summaries_come_back(results: Results) -> None:
    results.write(JOB, columns(), {"fit_seconds": 1.5})
    results.write(JOB._replace(seed=4), columns(2), {"fit_seconds": 2.5})
    rows = results.rows()
    assert list(rows[["policy", "environment", "seed", "step"]].itertuples(index=False, name=None)) == [
        ("C3", "a/b: c?", 3, 0), ("C3", "a/b: c?", 3, 1), ("C3", "a/b: c?", 3, 2), ("C3", "a/b: c?", 3, 3),
        ("C3", "a/b: c?", 4, 0), ("C3", "a/b: c?", 4, 1),
    ]  # fmt: skip
    np.testing.assert_array_equal(rows["reward"], [0, 1, 2, 3, 0, 1])
    assert rows["predicted"].isna().all()
    assert results.summaries()["fit_seconds"].tolist() == [1.5, 2.5]


def test_names_that_look_alike_are_kept_apart(results: Results) -> None:
    paths = {results.path(Job(policy, "w", 0)) for policy in ("C3", "c3", "C3!", "C 3", "é", "ü" * 300)}
    assert len(paths) == 6


def test_a_second_writing_replaces_the_first(results: Results) -> None:
    results.write(JOB, columns(), {})
    results.write(JOB, columns(scale=2.0), {})
    np.testing.assert_array_equal(results.rows()["reward"], [0, 2, 4, 6])


@pytest.mark.parametrize("cut", [0, 10, -1])
def test_a_damaged_file_is_named_and_the_others_are_left_alone(results: Results, cut: int) -> None:
    results.write(JOB, columns(), {})
    results.write(JOB._replace(seed=4), columns(), {})
    path = results.path(JOB)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ResultError, match=f"{path.name}.*delete it"):
        results.rows()
    path.unlink()
    assert len(results.rows()) == 4


def test_a_flipped_bit_is_noticed(results: Results) -> None:
    rewards = np.random.default_rng(0).random(500)
    results.write(JOB, {"reward": rewards}, {})
    path = results.path(JOB)
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 1  # amid the numbers
    path.write_bytes(contents)
    with pytest.raises(ResultError, match="delete it"):
        results.rows()


def test_a_copy_of_a_file_is_not_another_run(results: Results) -> None:
    results.write(JOB, columns(), {})
    path = results.path(JOB)
    path.with_name("copy.parquet").write_bytes(path.read_bytes())
    with pytest.raises(ResultError, match=r"copy\.parquet is a copy of"):
        results.rows()


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ResultError, match="must be a folder for results; it is a file"):
        Results(tmp_path / "out").describe({})


def test_a_damaged_description_is_named(results: Results) -> None:
    results.describe({"seeds": 3})
    assert results.description() == {"seeds": 3}
    (results.folder / "experiment.json").write_text("{")
    with pytest.raises(ResultError, match=r"experiment\.json can not be read"):
        results.description()


def test_an_empty_folder_says_so(results: Results) -> None:
    with pytest.raises(ResultError, match="there is no folder"):
        results.rows()
    results.describe({})
    with pytest.raises(ResultError, match="no finished run"):
        results.rows()
    (results.folder / "experiment.json").unlink()
    with pytest.raises(ResultError, match="holds no results"):
        results.description()


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file may grow beyond 100 bytes: writes fail as they do on a full disk, with an OSError."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_loses_nothing_that_was_written(results: Results, request: pytest.FixtureRequest) -> None:
    results.write(JOB, columns(), {})
    results.describe({"seeds": 3})
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match=r"could not be written .*File too large.*finished before is kept"):
        results.write(JOB, columns(scale=2.0), {})
    with pytest.raises(OSError, match=r"could not be written .*File too large.*finished before is kept"):
        results.describe({"words": "x" * 5000})
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    np.testing.assert_array_equal(results.rows()["reward"], [0, 1, 2, 3])
    assert json.loads((results.folder / "experiment.json").read_text()) == {"seeds": 3}
    assert not list(results.folder.rglob(".*"))  # no drafts
