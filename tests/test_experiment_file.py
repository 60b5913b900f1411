import subprocess
from pathlib import Path

import pytest

from tercet import experiment_file


def test_the_revision_is_of_the_code_whatever_else_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    code = tmp_path / "src" / "tercet" / "__init__.py"
    code.parent.mkdir(parents=True)
    code.write_text("")
    monkeypatch.setattr(experiment_file.tercet, "__file__", str(code))
    git("init", "-q")
    assert experiment_file.about([])["revision"] is None  # somebody else's repository, or none yet
    git("add", "-A")
    git("commit", "-qm", "code")
    first = git("rev-parse", "--short=12", "HEAD")
    assert experiment_file.about([])["revision"] == first
    (tmp_path / "results.csv").write_text("a\n1\n")
    git("add", "-A")
    git("commit", "-qm", "results")
    assert experiment_file.about([])["revision"] == first
    code.write_text("changed = True\n")
    assert experiment_file.about([])["revision"] == f"{first}-dirty"
