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
