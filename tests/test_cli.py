import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tercet.cli import app


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "TERM": "dumb"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_version() -> None:
    assert run("--version") == (0, f"tercet {version('tercet')}\n")


def test_help_teaches_the_demo() -> None:
    code, text = run("demo", "--help")
    assert code == 0
    for word in ("--out", "--seeds", "--steps", "--open", "three logged years"):
        assert word in text


def test_demo_prints_a_table_and_says_where_the_report_is(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    code, text = run("demo", "--seeds", "1", "--steps", "40", "--out", str(out))
    assert code == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    for word in (
        "C3",
        "discounted LinUCB",
        "best fixed rule of hindsight",
        "has the lowest regret",
        str(out),
    ):
        assert word in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "0"), "greater than or equal to 1"),
        (("--steps", "-1"), "greater than or equal to 1"),
        (("--out", "no/such/folder/report.html"), "there is no folder no/such/folder"),
        (("--out", "."), ". is a folder; name a file in it"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(arguments: tuple[str, str], message: str) -> None:
    code, text = run("demo", *arguments)
    assert code == 2
    assert message in text


def test_the_command_starts_without_heavy_packages() -> None:
    code = (
        "import sys, tercet.cli; print(*{'torch', 'numba', 'scipy', 'pandas', 'plotly'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


FILE = """
from dataclasses import dataclass
import numpy as np
from tercet.environments.simulated import Shop
from tercet.experiment import Experiment
from tercet.policies.linear import LinUCB
from tercet.policies.simple import Uniform

@dataclass(frozen=True)
class Small:
    def draw(self, rng):
        return Shop.draw(rng, visits=30)

experiment = Experiment(
    policies={"uniform": Uniform(), "LinUCB": LinUCB()}, environments={"small shop": Small()}, seeds=3
)
"""


def test_run_plays_a_users_file_and_compare_shows_it_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    out = str(tmp_path / "out")
    code, text = run(
        "run", str(tmp_path / "mine.py"), "--out", out, "--seeds", "2", "--steps", "20", "--jobs", "2"
    )
    assert code == 0
    for word in ("small shop", "LinUCB", "uniform", "95 % intervals", "ms to decide", "tercet compare"):
        assert word in text
    assert "log loss" not in text
    code, again = run("compare", out, "--all", "--csv", str(tmp_path / "all.csv"))
    assert code == 0
    assert "log loss" in again
    assert (tmp_path / "all.csv").read_text().count("small shop") == 2
    code, text = run("compare", out, "--to", "uniform", "--measure", "reward", "--lift-over", "LinUCB")
    assert code == 0
    assert "behind uniform" in text
    assert "mean reward" in text


def test_a_finished_experiment_is_not_played_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    arguments = (
        "run",
        str(tmp_path / "mine.py"),
        "--out",
        str(tmp_path / "out"),
        "--steps",
        "5",
        "--on",
        "serial",
    )
    run(*arguments)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()}
    assert run(*arguments)[0] == 0
    assert files == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()}


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("", "must define `experiment = Experiment(...)`"),
        ("experiment = 3", "got int"),
        ("import no_such_package", "No module named 'no_such_package'"),
        ("experiment = ", "invalid syntax"),
        ("raise ValueError('mine')", "mine"),
    ],
)
def test_a_file_that_is_no_experiment_is_refused(tmp_path: Path, contents: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(contents)
    code, text = run("run", str(tmp_path / "mine.py"))
    assert code == 1
    assert message in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "no-such-file.py"), "there is no file no-such-file.py"),
        (("run", "README.md"), "must be a Python file"),
        (("compare", "no-such-folder"), "there is no folder no-such-folder"),
    ],
)
def test_missing_files_are_named(arguments: tuple[str, ...], message: str) -> None:
    code, text = run(*arguments)
    assert code == 1
    assert message in text


def test_an_unknown_policy_and_a_missing_data_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    out = str(tmp_path / "out")
    run("run", str(tmp_path / "mine.py"), "--out", out, "--steps", "5", "--on", "serial", "--seeds", "1")
    code, text = run("compare", out, "--to", "C4")
    assert (code, "there are" in text) == (1, True)
    code, text = run("run", str(tmp_path / "mine.py"), "--data", str(tmp_path / "nowhere"))
    assert (code, "there is no folder" in text) == (2, True)
    code, text = run("run", str(tmp_path / "mine.py"), "--address", "auto")
    assert (code, "an address is for --on ray" in text) == (2, True)


BAD = """
@dataclass
class Bad:
    def fit(self, history, rng, *, remember=True): pass
    def choose(self, context, arms, rng, *, time=None, arm_ids=None): raise KeyError("deep inside")
    def update(self, feedback, rng): pass
    def save(self, path): pass
    @classmethod
    def load(cls, path): pass
"""
BROKEN = FILE.replace("\nexperiment", BAD + "\nexperiment").replace(
    '"uniform": Uniform()', '"TS [/x]": Uniform(), "bad [red]": Bad()'
)


def test_failures_are_told_with_the_table_of_what_succeeded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BROKEN)
    out = tmp_path / "out[1]"
    code, text = run("run", str(tmp_path / "mine.py"), "--out", str(out), "--steps", "5", "--on", "serial")
    assert code == 1
    for word in (
        "TS [/x]",
        "95 % intervals",
        "3 run(s) failed",
        "bad [red] in small shop, seed 0 and 2 more",
        "deep inside",
    ):
        assert word in text
    assert "mine.py" in next(iter((out / "errors").iterdir())).read_text()  # the traceback leads there


def test_a_file_gets_a_line_for_each_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    _, text = run(
        "run", str(tmp_path / "mine.py"), "--out", str(tmp_path / "o"), "--steps", "5", "--on", "serial"
    )
    assert "1 of 6: uniform in small shop, seed 0 took" in text
    assert "6 of 6: LinUCB in small shop, seed 2 took" in text
