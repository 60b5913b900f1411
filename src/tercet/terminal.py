"""What the commands print: a progress line with the time left, and tables of standings."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tercet.comparison import SIGNIFICANT, Standing, Table
from tercet.results import Job
from tercet.statistics import Interval

if TYPE_CHECKING:
    import rich.table

NAMES = {"regret": "regret", "dynamic_regret": "dynamic regret", "reward": "mean reward"}
QUALITY = {
    "reward": "reward",
    "new_arm_reward": "new arm\nreward",
    "log_loss": "log loss",
    "brier": "brier",
    "calibration_error": "calibration\nerror",
}


@dataclass(kw_only=True)
class Clock:
    """How long the runs that are left will take, by how long the same policies took before."""

    workers: int
    left: list[Job]
    took: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def note(self, job: Job, seconds: float) -> None:
        """Remember that a run is finished."""
        self.left.remove(job)
        self.took[job.policy, job.environment].append(seconds)

    def remaining(self) -> float | None:
        """Return the seconds left; None before the first run is finished."""
        everything = [seconds for times in self.took.values() for seconds in times]
        if not everything:
            return None
        usual = sum(everything) / len(everything)
        total = 0.0
        for job in self.left:
            known = self.took.get((job.policy, job.environment))
            total += sum(known) / len(known) if known else usual
        return total / max(min(self.workers, len(self.left)), 1)


def duration(seconds: float) -> str:
    """Return a time for people.

    >>> duration(8), duration(100), duration(7500)
    ('8 s', '1 min 40 s', '2 h 05 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def standings(table: Table) -> "rich.table.Table":
    """Return who stands where: the measure, the distance to the reference, the lift over the baseline."""
    rows = table.standings
    scale = min((abs(row.value.mean) for row in rows if not row.oracle), default=0.0)
    digits = 3 if scale < 1 else 1 if scale < 100 else 0
    columns = {
        NAMES[table.measure]: [_spread(row.value, digits) for row in rows],
        "seeds": [str(row.seeds) for row in rows],
        "behind": ["" if row.policy == table.reference else _spread(row.behind, digits) for row in rows],
        "p": [_p(row.p) for row in rows],
        "lift, %": [_lift(row, table) for row in rows],
    }
    title = f"{table.environment}: ± and [ ] are 95 % intervals over {table.units}"
    # In the title, because names as headers would take the room of figures.
    names = f"\nbehind {table.reference}; lift over {table.baseline}" if len(rows) > 1 else ""
    return _table(title + names, table, columns)


def costs(table: Table) -> "rich.table.Table":
    """Return what each policy cost: time to decide, to learn, to fit, and the tuning it got."""
    columns = {
        "ms to decide": [_number(row.figures["decide_ms"]) for row in table.standings],
        "ms to learn": [_number(row.figures["learn_ms"]) for row in table.standings],
        "s to fit": [_number(row.fit_seconds) for row in table.standings],
        "tuning": [_tuning(row) for row in table.standings],
    }
    return _table(f"{table.environment}: cost", table, columns)


def quality(table: Table) -> "rich.table.Table":
    """Return how well each policy predicted, treated new arms and came back after changes."""
    columns = {
        header: [_number(row.figures[name]) for row in table.standings] for name, header in QUALITY.items()
    }
    columns["recovery\nsteps"] = [_number(row.recovery_steps) for row in table.standings]
    return _table(f"{table.environment}: quality", table, columns)


def _table(title: str, table: Table, columns: Mapping[str, list[str]]) -> "rich.table.Table":
    import rich.table
    from rich.markup import escape

    result = rich.table.Table(title=escape(title), title_justify="left", box=None)
    result.add_column("policy", overflow="fold")  # names give way to figures, and lose nothing
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    for name in shown:
        result.add_column(escape(name), justify="right", no_wrap=True)
    for number, row in enumerate(table.standings):
        name = f"{row.policy} (oracle)" if row.oracle else row.policy
        result.add_row(escape(name), *(escape(cells[number]) for cells in shown.values()))
    return result


def _missing(value: float) -> bool:
    return value != value


def _spread(value: Interval, digits: int) -> str:
    if _missing(value.mean):
        return ""
    return f"{value.mean:.{digits}f}" + ("" if _missing(value.half) else f" ± {value.half:.{digits}f}")


def _p(value: float) -> str:
    if _missing(value):
        return ""
    text = "<.001" if value < 0.001 else f"{value:.3f}"
    return f"{text}*" if value < SIGNIFICANT else text


def _lift(row: Standing, table: Table) -> str:
    mean, low, high = row.lift
    if row.policy == table.baseline or _missing(mean):
        return ""
    text = f"{100 * mean:+.1f}"
    return text if _missing(low) else f"{text} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _number(value: float) -> str:
    return "" if _missing(value) else f"{value:.3g}"


def _tuning(row: Standing) -> str:
    if not row.budget_seconds:
        return "as is"
    return f"{row.tried:.3g} of {row.settings:g}, {duration(row.budget_seconds)}"
