"""`tercet paper` and `tercet study`: list what there is, and measure it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet import shell
from tercet.paper.catalogue import Catalogue

if TYPE_CHECKING:
    from rich.console import Console

    from tercet.paper.base import Item, Order


def commands(catalogue: Catalogue) -> typer.Typer:
    """Return the commands of a catalogue: `list` and `run`."""
    app = typer.Typer(help=f"{catalogue.title}: claims beside our measurements.", no_args_is_help=True)
    full, quickly = Path(f"tercet-{catalogue.name}"), Path(f"tercet-{catalogue.name}-quick")
    folders = f"by default {full}, or {quickly}"

    @app.command("list")
    def show(
        out: Annotated[Path | None, typer.Option(help=f"The folder whose state is shown; {folders}.")] = None,
    ) -> None:
        """Show everything that can be run, and how far each is."""
        with shell.plain_errors():
            _show(catalogue, out or (quickly if quickly.exists() and not full.exists() else full))

    @app.command()
    def run(
        names: Annotated[
            list[str], typer.Argument(help=f"Names of `tercet {catalogue.name} list`, or `all`.")
        ],
        seeds: Annotated[
            int | None, typer.Option(min=1, help="How many; by default 10, or what the item needs.")
        ] = None,
        quick: Annotated[
            bool, typer.Option("--quick", help="Small sizes: a rough picture in seconds to a few minutes.")
        ] = False,
        data: shell.Data = None,
        out: Annotated[Path | None, typer.Option(help=f"The folder to write to; {folders}.")] = None,
        jobs: Annotated[
            int | None, typer.Option(min=1, help="Runs at a time; by default one a core.")
        ] = None,
        finished: Annotated[
            bool, typer.Option("--finished", help="Do with the runs that are finished, and play no others.")
        ] = False,
        redraw: Annotated[
            bool, typer.Option("--redraw", help="Draw the tables again, and measure nothing.")
        ] = False,
    ) -> None:
        """Measure again: tables, pictures (PDF and PNG), and a report.

        The tables hold the rows, about.json beside them the command, revision and seeds. Experiments go on
        where they were stopped; `all` leaves out what the same code has finished already, and what it has no
        data for. The report in the same folder sets claims beside our measurements.
        """
        from tercet.experiment_file import about

        with shell.plain_errors():
            if redraw and (seeds or finished or quick):
                raise typer.BadParameter("the tables are drawn as they are", param_hint="--redraw")
            shell.use_data(data)
            options: dict[str, Any] = {"quick": quick, "finished": finished, "about": about(sys.argv[1:])}
            session = Session(
                catalogue=catalogue,
                folder=out or (quickly if quick else full),
                seeds=seeds,
                jobs=jobs,
                redraw=redraw,
                everything="all" in names,
                options=options,
            )
            session.run(names)
        if any(problem.startswith("failed") for problem in session.problems.values()):
            raise typer.Exit(1)

    return app


def _show(catalogue: Catalogue, folder: Path) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tercet.paper import press

    table = Table(box=None, pad_edge=False)
    for header in ("name", "what", "where", "status"):
        table.add_column(header, no_wrap=header == "name")
    for name in catalogue.names:
        item = catalogue.item(name)
        table.add_row(name, *map(escape, (item.title, item.where, press.status(item, folder))))
    console = shell.console()
    console.print(table)
    call = f"tercet {catalogue.name} run"
    console.print(
        f"\n`{call} NAME` makes one of them, `{call} all` everything with a report.", highlight=False
    )


@dataclass(frozen=True, kw_only=True)
class Session:
    """What was asked for, and what went wrong so far, by item.

    If `everything` was, what is up to date is left out, and what is missing or fails ends nothing.
    """

    catalogue: Catalogue
    folder: Path
    seeds: int | None
    jobs: int | None
    redraw: bool
    everything: bool
    options: dict[str, Any]
    problems: dict[str, str] = field(default_factory=dict)

    def run(self, names: list[str]) -> None:
        """Make the named items, and say where the report is."""
        wanted = self.catalogue.names if self.everything else dict.fromkeys(names)
        items = [self.catalogue.item(name) for name in wanted]
        console = shell.console()
        for item in items:
            self.make(item, console)
        path = (self.folder / "index.html").resolve()
        console.print(f"\nThe report is {path}", markup=False, highlight=False, soft_wrap=True)

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
        press.write_report(self.catalogue, self.folder, self.problems)

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
    """Return what came of an item's claims, in lines; of all claims together, how many fared how."""
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
