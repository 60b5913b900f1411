from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table as RichTable

from tercet import terminal
from tercet.comparison import compare
from tercet.results import Job
from tests.test_comparison import SUMMARY, columns, only, results


def text(table: RichTable, width: int = 150) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def figures(shown: str) -> list[str]:
    return [word for word in shown.split() if any(letter.isdigit() for letter in word)]


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


def test_eighty_columns_hold_every_figure_and_every_word_of_a_name(tmp_path: Path) -> None:
    names = {"restless, simplified, tuned": 0.5, "LightGBM, greedy, not updated": 0.7, "oracle": 0.9}
    table = only(compare(results(tmp_path, **names), measure="reward"))
    for draw in (terminal.standings, terminal.quality, terminal.costs):
        wide, narrow = (text(draw(table), width) for width in (150, 80))
        assert max(map(len, narrow.splitlines())) <= 80
        assert figures(narrow) == figures(wide)
        assert sorted("".join(narrow.split())) == sorted("".join(wide.split()))


def test_tuning_tells_how_many_settings_were_tried_of_how_many_and_the_budget(tmp_path: Path) -> None:
    folder = results(tmp_path, plain=0.5)
    rows, summary = (
        columns(np.zeros(400), np.ones(400)),
        SUMMARY | {"budget_seconds": 20.0, "tried": 3, "settings": ["other"] * 17},
    )
    folder.write(Job("tuned", "world", 0), rows, summary | {"world_digest": "0"})
    assert "3 of 18, 20 s" in text(terminal.costs(only(compare(folder))))


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
