"""`tercet paper`: list what is reproduced of the paper, and reproduce it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    out: Annotated[
        Path | None, typer.Option(help=f"The folder whose state is shown; by default {OUT}, or {QUICK_OUT}.")
    ] = None,
) -> None:
    """Show every figure, table and theorem of the paper, and how far each is."""
    from rich.markup import escape
    from rich.table import Table

    from tercet.paper import catalogue, press

    with shell.plain_errors():
        folder = out or (QUICK_OUT if QUICK_OUT.exists() and not OUT.exists() else OUT)
        table = Table(box=None, pad_edge=False)
        for header in ("name", "what", "in the paper", "status"):
            table.add_column(header, no_wrap=header == "name")
        for name in catalogue.NAMES:
            item = catalogue.item(name)
            table.add_row(name, *map(escape, (item.title, item.where, press.status(item, folder))))
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
        int | None, typer.Option(min=1, help="How many; by default 10, or what the item needs.")
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
    where they were stopped; `all` leaves out what the same code has finished already, and what it has no
    data for. The report in the same folder sets the paper's claims beside our measurements.
    """
    from tercet.experiment_file import about
    from tercet.paper import catalogue

    with shell.plain_errors():
        if redraw and (seeds or finished or quick):
            raise typer.BadParameter("the tables are drawn as they are", param_hint="--redraw")
        shell.use_data(data)
        folder = out or (QUICK_OUT if quick else OUT)
        everything = "all" in names
        items = [catalogue.item(name) for name in (catalogue.NAMES if everything else dict.fromkeys(names))]
        options: dict[str, Any] = {"quick": quick, "finished": finished, "about": about(sys.argv[1:])}
        session = Session(
            folder=folder, seeds=seeds, jobs=jobs, redraw=redraw, everything=everything, options=options
        )
        console = shell.console()
        for item in items:
            session.make(item, console)
        path = (folder / "index.html").resolve()
        console.print(f"\nThe report is {path}", markup=False, highlight=False, soft_wrap=True)
    if any(problem.startswith("failed") for problem in session.problems.values()):
        raise typer.Exit(1)


@dataclass(frozen=True, kw_only=True)
class Session:
    """What was asked for, and what went wrong so far, by item.

    If `everything` was, what is up to date is left out, and what is missing or fails ends nothing.
    """

    folder: Path
    seeds: int | None
    jobs: int | None
    redraw: bool
    everything: bool
    options: dict[str, Any]
    problems: dict[str, str] = field(default_factory=dict)

    def make(self, item: "Item", console: "Console") -> None:
        """Make an item, tell its verdicts, and write the report: whenever the session ends, there is one."""
        from tercet.environments.base import MissingDataError
        from tercet.paper import press

        console.print(f"\n{item.name}: {item.title}", style="bold", markup=False, highlight=False)
        try:
            with _bar(console, item) as advance:
                self._make(item, self._order(item, advance))
            verdicts = _verdicts(item, self.folder)
        except MissingDataError as error:
            if not self.everything:
                raise
            self.problems[item.name] = f"its data is missing: {error}"
        except Exception as error:
            if not self.everything:
                raise
            self.problems[item.name] = f"failed: {type(error).__name__}: {error}"
        lines = [self.problems[item.name]] if item.name in self.problems else verdicts
        for line in lines:
            console.print(f"  {line}", markup=False, highlight=False)
        press.write_report(self.folder, self.problems)

    def _order(self, item: "Item", advance: Callable[[str, int, int], None]) -> "Order":
        from tercet.executors import Processes
        from tercet.paper.base import Order

        return Order(
            folder=self.folder / item.name,
            seeds=self.seeds or (item.quick_seeds if self.options["quick"] else item.seeds),
            executor=Processes(self.jobs),
            advance=advance,
            **self.options,
        )

    def _make(self, item: "Item", order: "Order") -> None:
        from tercet.paper import press

        if item.name == "claims":  # collected in a moment, and never older than the tables of the others
            press.run(item, order)
        elif self.redraw:
            if not self.everything or press.about(order.folder) is not None:
                press.draw(item, order.folder)
        elif not (self.everything and press.up_to_date(order.folder, order)):
            press.run(item, order)


def _verdicts(item: "Item", out: Path) -> list[str]:
    """Return what an item says of the paper, in lines; of all claims together, how many fared how."""
    from collections import Counter

    from tercet.paper import press

    if item.name == "claims":
        counts = Counter(press.tables(out / item.name)["claims"]["verdict"])
        return [", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())]
    judged = press.claims(item, out / item.name)
    return [line for claim in judged for line in (f"{claim.verdict}: {claim.paper}", f"  {claim.ours}")]


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
