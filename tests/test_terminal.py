from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table as RichTable

from tercet import terminal
from tercet.comparison import compare
from tercet.results import Job
from tests.test_comparison import only, results


def text(table: RichTable) -> str:
    console = Console(width=150)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_the_time_left_follows_what_the_same_policies_took() -> None:
    jobs = [Job(name, "w", seed) for seed in range(2) for name in ("slow", "quick")]
    clock = terminal.Clock(workers=1, left=list(jobs))
    assert clock.remaining() is None
    clock.note(jobs[0], 100.0)
    assert clock.remaining() == pytest.approx(300)  # the others as long, for all we know
    clock.note(jobs[1], 2.0)
    assert clock.remaining() == pytest.approx(102)
    clock.note(jobs[2], 120.0)
    assert clock.remaining() == pytest.approx(2)


def test_workers_share_the_time_left() -> None:
    jobs = [Job("p", "w", seed) for seed in range(5)]
    clock = terminal.Clock(workers=2, left=list(jobs))
    clock.note(jobs[0], 10.0)
    assert clock.remaining() == pytest.approx(20)


def test_standings_name_everybody_and_mark_what_is_significant(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, good=0.7, bad=0.3)))
    shown = text(terminal.standings(table))
    for word in ("dynamic regret", "behind good", "lift over bad", "<.001*", "95 % intervals over seeds"):
        assert word in shown
    for row in table.standings:
        assert row.policy in shown


def test_names_may_hold_brackets_and_oracles_are_marked(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, **{"C3[red]": 0.7, "oracle": 0.9, "bad": 0.3})))
    shown = text(terminal.standings(table))
    assert "C3[red]" in shown
    assert "oracle (oracle)" in shown


def test_costs_and_quality_leave_out_what_nobody_has(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, good=0.7, bad=0.3)))
    assert "as is" in text(terminal.costs(table))
    quality = text(terminal.quality(table))
    assert "log loss" in quality
    assert "recovery" not in quality  # nothing changed abruptly
    assert "new arm" not in quality
