"""`tercet paper`: list what is reproduced of the paper, and reproduce it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet import shell

if TYPE_CHECKING:
    from rich.console import Console

    from tercet.paper.base import Item, Order

app = typer.Typer(
    help="The C3 paper, figure by figure: its claims beside our measurements.", no_args_is_help=True
)

OUT, QUICK_OUT = Path("tercet-paper"), Path("tercet-paper-quick")


@app.command("list")
def show(
    out: Annotated[Path, typer.Option(help="The folder whose state is shown.")] = OUT,
    data: shell.Data = None,
) -> None:
    """Show every figure, table and theorem of the paper, and how far each is."""
    from rich.markup import escape
    from rich.table import Table

    from tercet.paper import catalogue, press

    with shell.plain_errors():
        shell.use_data(data)
        table = Table(box=None, pad_edge=False)
        for header in ("name", "what", "in the paper", "status"):
            table.add_column(header, no_wrap=header == "name")
        for name in catalogue.NAMES:
            item = catalogue.item(name)
            table.add_row(name, *map(escape, (item.title, item.where, press.status(item, out))))
        console = shell.console()
        console.print(table)
        console.print(
            "\n`tercet paper run NAME` makes one of them, `tercet paper run all` everything with a report.",
            highlight=False,
        )


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(help="Names of `tercet paper list`, or `all`.")],
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many; by default as many as the paper.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: a rough picture in seconds to a few minutes.")
    ] = False,
    data: shell.Data = None,
    out: Annotated[
        Path | None, typer.Option(help=f"The folder to write to; by default {OUT}, or {QUICK_OUT}.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; by default one a core.")] = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="Do with the runs that are finished, and play no others.")
    ] = False,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Draw the tables again, and measure nothing.")
    ] = False,
) -> None:
    """Make figures of the paper again: tables, pictures (PDF and PNG), and a report.

    The tables hold the rows, about.json beside them the command, revision and seeds. Experiments go on
    where they were stopped; `all` leaves out what the same revision has finished already, and what it has
    no data for. The report in the same folder sets the paper's claims beside our measurements.
    """
    from tercet.executors import Processes
    from tercet.experiment_file import about
    from tercet.paper import catalogue, press
    from tercet.paper.base import Order

    folder = out or (QUICK_OUT if quick else OUT)
    console = shell.console()
    with shell.plain_errors():
        shell.use_data(data)
        everything = names == ["all"]
        items = [catalogue.item(name) for name in (catalogue.NAMES if everything else names)]
        problems: dict[str, str] = {}
        for item in items:
            with _bar(console, item) as advance:
                order = Order(
                    folder=folder / item.name,
                    seeds=seeds or (item.quick_seeds if quick else item.seeds),
                    quick=quick,
                    finished=finished,
                    executor=Processes(jobs),
                    about=about(sys.argv[1:]),
                    advance=advance,
                )
                if redraw:
                    press.draw(item, order.folder)
                elif everything:
                    problems |= _attempt(item, order)
                else:
                    press.run(item, order)
            _tell(console, item, folder, problems)
        path = press.write_report(folder, problems)
        console.print(f"\nThe report is {path.resolve()}", markup=False, highlight=False, soft_wrap=True)
    if any(problem.startswith("failed") for problem in problems.values()):
        raise typer.Exit(1)


def _attempt(item: "Item", order: "Order") -> dict[str, str]:
    """Run one of many: what is missing or fails stops no other, and is told at the end."""
    from tercet.environments.base import MissingDataError
    from tercet.paper import press

    if item.name != "claims" and press.up_to_date(order.folder, order):
        return {}
    try:
        press.run(item, order)
    except MissingDataError as error:
        return {item.name: f"its data is missing: {error}"}
    except (ValueError, OSError, ModuleNotFoundError, RuntimeError) as error:
        return {item.name: f"failed: {error}"}
    return {}


def _tell(console: "Console", item: "Item", out: Path, problems: dict[str, str]) -> None:
    """Print an item's verdicts, or why there are none."""
    from tercet.paper import press

    console.print(f"\n{item.name}: {item.title}", style="bold", markup=False, highlight=False)
    if item.name in problems:
        console.print(f"  {problems[item.name]}", markup=False, highlight=False)
        return
    for claim in press.claims(item, out / item.name):
        console.print(f"  {claim.verdict}: {claim.paper}", markup=False, highlight=False)
        console.print(f"    {claim.ours}", markup=False, highlight=False)


@contextmanager
def _bar(console: "Console", item: "Item") -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that moves a bar; in a file, where none can move, it writes a line now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    told: set[tuple[str, int]] = set()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(item.name, total=None)

        def advance(what: str, done: int, total: int) -> None:
            text = item.name if what == item.name else f"{item.name}, {what}"
            progress.update(task, description=text, completed=done, total=total)
            tenth = (what, 10 * done // max(total, 1))
            if not console.is_terminal and tenth not in told:
                told.add(tenth)
                progress.console.print(f"{text}: {done} of {total}", markup=False, highlight=False)

        yield advance
