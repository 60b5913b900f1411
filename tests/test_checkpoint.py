from pathlib import Path

import numpy as np
import pytest

from tercet import CheckpointError, checkpoint

ARRAYS = {
    "a": np.arange(6.0).reshape(2, 3),
    "b": np.array([], np.int64),
    "t": np.arange(6, dtype=np.float32).reshape(2, 3).T,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.tercet"
    checkpoint.write(path, "test", ARRAYS, {"x": 0.1, "name": "é", "none": None})
    return path


def test_arrays_and_spec_come_back_as_they_were(file: Path) -> None:
    arrays, spec = checkpoint.read(file, "test")
    assert spec == {"x": 0.1, "name": "é", "none": None}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)


def test_numbers_of_numpy_are_written_as_any_other(file: Path) -> None:
    checkpoint.write(file, "test", {}, {"n": np.int64(3), "x": np.float32(0.5), "yes": np.True_})
    assert checkpoint.read(file, "test")[1] == {"n": 3, "x": 0.5, "yes": True}


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        checkpoint.write(tmp_path / "nowhere" / "file", "test", {}, {})


def test_a_new_file_replaces_the_old_one_and_leaves_no_draft(file: Path) -> None:
    checkpoint.write(file, "test", {}, {"x": 2})
    assert checkpoint.read(file, "test") == ({}, {"x": 2})
    assert list(file.parent.iterdir()) == [file]


def test_a_failed_write_keeps_the_old_file(file: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        checkpoint.write(file, "test", {}, {"x": float("nan")})
    with pytest.raises(Exception, match="object"):
        checkpoint.write(file, "test", {"bad": np.array([object()])}, {})
    assert checkpoint.read(file, "test")[1]["x"] == 0.1
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("size", [0, 4, 60, -1])
def test_a_truncated_file_is_refused(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(CheckpointError, match="can not be read"):
        checkpoint.read(file, "test")


def test_foreign_and_missing_files_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"must hold a tercet\.C3; it holds test"):
        checkpoint.read(file, "tercet.C3")
    with pytest.raises(CheckpointError, match="can not be read"):
        checkpoint.read(tmp_path / "nowhere", "test")
    text = tmp_path / "text"
    text.write_text("not a checkpoint at all, but long enough to look like one")
    with pytest.raises(CheckpointError, match="can not be read"):
        checkpoint.read(text, "test")
    from safetensors.numpy import save_file

    foreign = tmp_path / "foreign"
    save_file({"a": np.ones(2)}, foreign)
    with pytest.raises(CheckpointError, match="something else"):
        checkpoint.read(foreign, "test")
