"""The `tercet` command. Heavy packages are imported inside the commands that need them."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet import shell
from tercet.paper.catalogue import PAPER
from tercet.paper.commands import commands
from tercet.studies.catalogue import STUDIES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tercet.comparison import Table as StandingsTable
    from tercet.demo import Comparison
    from tercet.executors import Executor
    from tercet.experiment import Done, Experiment
    from tercet.results import Job, Results

app = typer.Typer(
    help="Contextual bandits whose arms have features and whose rewards drift.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)
for catalogue in (PAPER, STUDIES):
    app.add_typer(commands(catalogue), name=catalogue.name)


Where = Literal["processes", "serial", "ray"]
Measure = Literal["regret", "dynamic_regret", "reward"]


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


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A Python file that defines `experiment = Experiment(...)`.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder for the results; by default results/NAME-OF-THE-FILE.")
    ] = None,
    on: Annotated[Where, typer.Option(help="Where the runs are played.")] = "processes",
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time; by default one a core (on a cluster: all it has)."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help='A running Ray cluster ("auto" finds one); by default a local one is started.'),
    ] = None,
    data: shell.Data = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Play so many seeds, whatever the file says.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Play so many steps, whatever the file says.")
    ] = None,
) -> None:
    """Play an experiment of your own, and say who wins.

    Every run is written as soon as it is finished: stop with Ctrl-C whenever you like, and the same
    command goes on where it stopped. More seeds or policies may be added later. The documentation has an
    annotated example (docs/experiments.md).
    """
    from dataclasses import replace

    from tercet import experiment, experiment_file
    from tercet.results import Results

    shell.use_data(data)
    folder = out or Path("results") / file.stem
    with shell.plain_errors():
        value = experiment_file.load(file)
        value = replace(value, seeds=seeds or value.seeds, steps=steps or value.steps)
        results = Results(folder)
        todo = experiment.unfinished(value, results)
        console = shell.console()
        try:
            _play(console, value, results, todo, _executor(on, jobs, address))
        except experiment.ExperimentError:
            if list(folder.glob("runs/*.parquet")):
                _print_tables(console, results)
            raise
        _print_tables(console, results)
    text = f"\nThe results are in {folder}; `tercet compare {folder}` shows them again."
    console.print(text, markup=False, highlight=False, soft_wrap=True)


@app.command()
def compare(
    folder: Annotated[Path, typer.Argument(help="A folder that `tercet run` has written.")],
    measure: Annotated[
        Measure | None,
        typer.Option(help="What to compare; by default expected regret where it is known, else realised."),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Compare all with this policy; by default with the best.")
    ] = None,
    lift_over: Annotated[
        str | None, typer.Option(help="Show lifts over this policy; by default over the runner-up.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show predictions, new arms and recovery too.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(help="Write all figures to this file too.")] = None,
) -> None:
    """Show who wins and who ties, with intervals and corrected tests.

    Differences are paired: every policy has played the same worlds. The p-values are of paired t-tests,
    corrected by Holm's method for all pairs, or, with --to, for all comparisons with that policy.
    """
    from tercet.results import Results

    with shell.plain_errors():
        tables = _print_tables(
            shell.console(), Results(folder), measure, to, lift_over, everything=everything
        )
        if csv is not None:
            from tercet import comparison

            comparison.frame(tables).to_csv(csv, index=False)


def _executor(on: Where, jobs: int | None, address: str | None) -> "Executor":
    from tercet.executors import Processes, Ray, Serial

    if address is not None and on != "ray":
        raise typer.BadParameter("an address is for --on ray", param_hint="--address")
    if on == "ray":
        return Ray(address=address, jobs=jobs)
    return Serial() if on == "serial" else Processes(jobs)


def _play(
    console: "Console", value: "Experiment", results: "Results", todo: "list[Job]", executor: "Executor"
) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tercet import experiment, experiment_file
    from tercet.terminal import Clock, duration

    total = len(value.jobs())
    clock = Clock(workers=executor.workers, left=list(todo))
    job = TextColumn("{task.description}", markup=False)
    left = TextColumn("{task.fields[left]}", markup=False)
    columns = job, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), left
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("playing", total=total, completed=total - len(todo), left="")

        def advance(done: "Done") -> None:
            clock.note(done.job, done.seconds)
            seconds = clock.remaining()
            text = "" if seconds is None else f"about {duration(seconds)} left"
            progress.update(task, advance=1, description=str(done.job), left=text)
            if done.error is not None or not console.is_terminal:  # a file has no bar that moves
                state = f"took {duration(done.seconds)}" if done.error is None else "failed"
                line = f"{total - len(clock.left)} of {total}: {done.job} {state}; {text}"
                progress.console.print(line, markup=False, highlight=False)

        experiment.run(
            value,
            results.folder,
            executor=executor,
            about=experiment_file.about(sys.argv[1:]),
            advance=advance,
        )


def _print_tables(
    console: "Console",
    results: "Results",
    measure: Measure | None = None,
    to: str | None = None,
    lift_over: str | None = None,
    *,
    everything: bool = False,
) -> "list[StandingsTable]":
    from tercet import comparison, terminal

    tables = comparison.compare(results, measure=measure, reference=to, baseline=lift_over)
    for table in tables:
        console.print(terminal.standings(table))
        console.print(table.verdict, "\n", markup=False, highlight=False)
        if everything:
            console.print(terminal.quality(table), "\n")
        console.print(terminal.costs(table), "\n")
    return tables


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
