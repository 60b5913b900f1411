"""The `tercet` command. Heavy packages are imported inside the commands that need them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tercet.demo import Comparison

app = typer.Typer(
    help="Contextual bandits whose arms have features and whose rewards drift.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)


def _print_version(asked: bool) -> bool:
    if asked:
        from importlib.metadata import version

        typer.echo(f"tercet {version('tercet')}")
        raise typer.Exit
    return asked


@app.callback()
def main(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop."),
    ] = False,
) -> None:
    """Contextual bandits whose arms have features and whose rewards drift."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The report to write, one HTML file.")] = Path("tercet-demo.html"),
    seeds: Annotated[int, typer.Option(min=1, help="Worlds to play; more make the intervals narrower.")] = 8,
    steps: Annotated[int, typer.Option(min=1, help="Visits in the year that is played.")] = 3650,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """Play a year in a seasonal shop: C3 against its rivals.

    Bicycles sell with helmets and skis with snowboards, in seasons that are never on time, and products
    come and go. C3 trains on three logged years; then every policy plays the same year. Takes a minute or
    two and ends with a table and a report that needs no network.
    """
    from rich.console import Console

    if not out.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {out.parent}; create it first", param_hint="--out")
    if out.is_dir():
        raise typer.BadParameter(f"{out} is a folder; name a file in it", param_hint="--out")
    console = Console()
    comparison = _compare(console, seeds, steps)
    from tercet import report

    out.write_text(report.page(comparison), encoding="utf-8")
    console.print(_table(comparison))
    for line in report.headlines(comparison):
        console.print(line, highlight=False)
    console.print(f"\nThe report is [bold]{out.resolve()}[/bold]", soft_wrap=True, highlight=False)
    if show:
        typer.launch(out.resolve().as_uri())


def _compare(console: "Console", seeds: int, steps: int) -> "Comparison":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tercet.demo import CONTENDERS, compare

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("playing the year", total=seeds * len(CONTENDERS))
        jobs = min(os.cpu_count() or 1, seeds)
        return compare(seeds=seeds, visits=steps, jobs=jobs, advance=lambda _: progress.advance(task))


def _table(comparison: "Comparison") -> "Table":
    from rich.table import Table

    from tercet import report

    table = Table(
        title=f"A year in the shop, {report.seed_count(comparison)}", box=None, title_justify="left"
    )
    table.add_column("policy")
    for name in ("sales missed", "more than C3", "ms a visit"):
        table.add_column(name, justify="right")
    for row in report.rows(comparison):
        more = "" if row.name == "C3" else report.spread(row.more_than_c3)
        pace = "" if row.milliseconds != row.milliseconds else f"{row.milliseconds:.1f}"
        table.add_row(row.name, report.spread(row.missed), more, pace)
    return table
