from pathlib import Path

import pytest

from tercet import files


def test_a_draft_takes_the_targets_place(tmp_path: Path) -> None:
    with files.replacing(tmp_path / "a") as draft:
        draft.write_text("new")
    assert (tmp_path / "a").read_text() == "new"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_an_error_leaves_the_old_contents_and_no_draft(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(ZeroDivisionError), files.replacing(tmp_path / "a") as draft:
        draft.write_text(str(1 / (draft.write_text("half") - 4)))
    assert (tmp_path / "a").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="create it first"), files.replacing(tmp_path / "no" / "a"):
        pass
