"""What all commands share: a console, errors in plain words, and the folder with data sets."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

Data = Annotated[
    Path | None, typer.Option(help="The folder with data sets; by default that of $TERCET_DATA.")
]


def console() -> "Console":
    """Return where to print: as wide as the terminal, and in a file as wide as the tables."""
    from rich.console import Console

    found = Console()
    return found if found.is_terminal else Console(width=120)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say what is wrong in a line: a traceback is for programmers."""
    try:
        yield
    except KeyboardInterrupt:
        typer.secho("\nStopped. What is finished is written; the same command goes on.", err=True)
        raise typer.Exit(130) from None
    except (ValueError, OSError, ModuleNotFoundError, RuntimeError) as error:
        typer.secho(f"tercet: {error}", err=True, fg="red")
        raise typer.Exit(1) from error


def use_data(folder: Path | None) -> None:
    """Let this process and those it starts look for data sets in a folder."""
    from tercet.environments.base import DATA_VARIABLE

    if folder is None:
        return
    if not folder.is_dir():
        raise typer.BadParameter(f"there is no folder {folder}", param_hint="--data")
    os.environ[DATA_VARIABLE] = str(folder.resolve())
