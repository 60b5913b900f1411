"""Experiments written in a Python file of the user's own."""

import importlib.util
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tercet
from tercet.experiment import Experiment


def load(path: str | Path) -> Experiment:
    """Return the value named `experiment` of a Python file.

    What the file defines travels to other processes by value, so its own policies and environments run
    on any executor.
    """
    import cloudpickle

    source = Path(path).resolve()
    if not source.is_file():
        raise ValueError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"experiment_{source.stem}", source)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} must be a Python file, its name ending in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where pickle and dataclasses look a class's home up
    sys.path.insert(0, str(source.parent))  # as for a script: it may import what lies beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path}{_line(error, source)}: {type(error).__name__}: {error}") from error
    cloudpickle.register_pickle_by_value(module)
    experiment = getattr(module, "experiment", None)
    if not isinstance(experiment, Experiment):
        raise ValueError(
            f"{path} must define `experiment = Experiment(...)`; got {type(experiment).__name__}"
        )
    return experiment


def _line(error: Exception, source: Path) -> str:
    """Return where in the file it went wrong, if it did there."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(source)
    ]
    return f", line {lines[-1]}" if lines else ""


def about(arguments: Sequence[str]) -> dict[str, Any]:
    """Return what made the results: the command, tercet's version and, of a checkout, its revision."""
    from importlib.metadata import version

    return {
        "command": " ".join(["tercet", *arguments]),
        "version": version("tercet"),
        "revision": _revision(),
    }


def _revision() -> str | None:
    """Return the commit that last changed the code; what else is committed or changed does not matter."""
    folder = str(Path(tercet.__file__).parent)

    def git(*arguments: str) -> str:
        command = ["git", "-C", folder, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # not somebody else's repository
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("log", "-1", "--format=%h", "--abbrev=12", "--", ".") + ("-dirty" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
