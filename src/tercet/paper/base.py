"""What is reproduced or studied: rows to measure, pictures to draw of them, claims to judge by them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tercet import experiment as experiments
from tercet.embedding.options import LeaveOneOut
from tercet.executors import Crash, Executor, Processes
from tercet.experiment import Experiment
from tercet.paper.catalogue import PAPER, Catalogue
from tercet.policies.c3 import C3
from tercet.results import Results
from tercet.statistics import Interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Tables = Mapping[str, "pd.DataFrame"]
HASTE = {"epochs": 5, "steps": 40}  # of our C3's training, in a quick look
Verdict = Literal["reproduced", "not reproduced", "reached", "not reached", "undecided", "not testable"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement with our measurement beside it.

    paper : what the paper says, in its own terms; what it only implies begins with "Implied:". In a study:
        what we expected before the run.
    ours : what the rows say, with the number.
    verdict : "undecided" where the rows bear out neither side, such as too few seeds; "not testable" where
        data are missing.
    note : what to know when comparing the two: slips, deviations, or the data that is missing.
    """

    paper: str
    ours: str
    verdict: Verdict
    note: str = ""


def verdict(holds: object, refuted: object = None) -> Verdict:
    """Return the verdict of a rule that holds, is refuted, or neither; without `refuted` it is the opposite.

    >>> verdict(2 > 1), verdict(1 > 2), verdict(1 > 2, refuted=False)
    ('reproduced', 'not reproduced', 'undecided')
    """
    if holds:
        return "reproduced"
    return "not reproduced" if refuted is None or refuted else "undecided"


def above(value: Interval, least: float = 0.0) -> Verdict:
    """Judge by a 95 % interval whether something is above a least value: surely, surely not, or undecided.

    >>> above(Interval(3.0, 1.0)), above(Interval(-3.0, 1.0)), above(Interval(3.0, float("nan")))
    ('reproduced', 'not reproduced', 'undecided')
    """
    mean, half = value
    return verdict(mean - half > least, refuted=mean + half <= least)


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """A drawn figure; the caption explains its error bars and what differs from the paper's figure."""

    name: str
    figure: "Figure"
    caption: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Order:
    """What is asked of a measurement, and the two ways to run its jobs.

    folder : of this item; finished runs are kept there and not run again.
    quick : whether a rough result in seconds is wanted, not the paper's sizes.
    finished : whether to do with the runs that are finished, and play no others.
    advance : is told what goes on, how many parts of it are done and how many there are.
    """

    folder: Path
    seeds: int
    quick: bool = False
    finished: bool = False
    executor: Executor = field(default_factory=Processes)
    about: Mapping[str, Any] = field(default_factory=dict)
    advance: Callable[[str, int, int], None] = lambda _what, _done, _total: None

    @property
    def runs(self) -> Path:
        """Where the runs of experiments are kept, those of a quick look apart."""
        return self.folder / ("quick-runs" if self.quick else "runs")

    def play(self, name: str, experiment: Experiment) -> Results:
        """Play an experiment, going on where it was stopped; return its own runs, and no others'."""
        if self.quick:
            experiment = _hasty(experiment)
        folder = self.runs / name
        results = Results(folder, only=tuple(experiment.jobs()))
        total = len(experiment.jobs())
        done = total - len(experiments.unfinished(experiment, results))
        self.advance(name, done, total)
        if self.finished:
            return results

        def advance(_: experiments.Done) -> None:
            nonlocal done
            done += 1
            self.advance(name, done, total)

        experiments.run(experiment, folder, executor=self.executor, about=self.about, advance=advance)
        return results

    def map(self, name: str, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """Return the function's result for each task, in their order."""
        results: dict[int, Any] = {}
        self.advance(name, 0, len(tasks))
        for result in self.executor.map(_Numbered(function), list(enumerate(tasks))):
            if isinstance(result, Crash):
                raise RuntimeError(f"{name}, part {result.task[0] + 1} of {len(tasks)}: {result.reason}")
            number, value = result
            results[number] = value
            self.advance(name, len(results), len(tasks))
        return [results[number] for number in range(len(tasks))]


def _hasty(experiment: Experiment) -> Experiment:
    """Return the experiment with our C3 trained in a fraction of the time: it takes most of a quick look."""

    def hasty(policy: Any) -> Any:
        ours = isinstance(policy, C3) and isinstance(policy.training, LeaveOneOut)
        return replace(policy, training=replace(policy.training, **HASTE)) if ours else policy

    policies = {name: replace(who, policy=hasty(who.policy)) for name, who in experiment.policies.items()}
    return replace(experiment, policies=policies)


@dataclass(frozen=True)
class _Numbered:
    """A function of numbered tasks, whose results can be put in order again."""

    function: Callable[[Any], Any]

    def __call__(self, task: tuple[int, Any]) -> tuple[int, Any]:
        number, value = task
        return number, self.function(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Item:
    """A figure, table or theorem of the paper, or a study of our own.

    name : of the command line and of the results.
    title : what it shows, in a line.
    where : its place in the paper, or in the documentation.
    says : what the paper claims with it, or what we expected.
    seeds, quick_seeds : how many are run when nobody says.
    deviations : where we do otherwise than the paper, and why; of a study, what to know.
    needs : the data sets, in words.
    check : raise `MissingDataError` where they can neither be found nor fetched.
    measure : run it; tables by name, a few hundred rows each.
    draw : pictures of the tables, as they are read back from their files.
    claims : what the tables say of the claims.
    catalogue : where it belongs.
    """

    name: str
    title: str
    where: str
    says: str
    seeds: int
    quick_seeds: int
    measure: Callable[[Order], Tables]
    draw: Callable[[Tables], list[Picture]]
    claims: Callable[[Tables], list[Claim]]
    needs: str = ""
    check: Callable[[], object] = lambda: None
    deviations: tuple[str, ...] = ()
    catalogue: Catalogue = PAPER
