"""`tercet paper` as its users meet it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tercet.cli import app
from tercet.environments.base import MissingDataError
from tercet.paper.base import Item, Order, Tables
from tercet.paper.catalogue import PAPER, Catalogue
from tests.paper.test_press import ITEM


def tercet(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["paper", *map(str, arguments)])
    return result.exit_code, result.output


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the paper have these items only."""
    claims = PAPER.item("claims")

    def declare(*items: Item) -> None:
        found = {item.name: item for item in items} | {"claims": claims}
        monkeypatch.setitem(vars(PAPER), "names", tuple(found))
        monkeypatch.setattr(Catalogue, "item", lambda _, name: found[name])

    return declare


def failing(name: str, error: BaseException) -> Item:
    def measure(_: Order) -> Tables:
        raise error

    return replace(ITEM, name=name, measure=measure)


def test_the_list_has_everything_with_its_place_and_status(tmp_path: Path) -> None:
    code, text = tercet("list", "--out", tmp_path)
    assert code == 0
    for name in PAPER.names:
        assert name in text
    assert "not run" in text


def test_a_run_tells_its_verdicts_and_where_the_report_is(tmp_path: Path, only: Callable[..., None]) -> None:
    only(ITEM)
    code, text = tercet("run", "doubles", "--out", tmp_path, "--jobs", "1")
    assert code == 0, text
    assert "reproduced: Values grow." in text
    assert "mean 2" in text
    assert "Values grow." in (tmp_path / "index.html").read_text()
    assert (tmp_path / "doubles" / "rows.csv").exists()


def test_all_goes_on_past_what_is_missing_or_fails_and_says_so(
    tmp_path: Path, only: Callable[..., None]
) -> None:
    only(failing("broken", KeyError("luck")), failing("far", MissingDataError("no such data")), ITEM)
    code, text = tercet("run", "all", "--out", tmp_path, "--jobs", "1")
    assert code == 1  # something failed; what is missing alone is no failure
    assert "failed: KeyError: 'luck'" in text
    assert "its data is missing: no such data" in text
    page = (tmp_path / "index.html").read_text()
    assert "KeyError" in page
    assert "no such data" in page
    claims = (tmp_path / "claims" / "claims.csv").read_text()
    assert claims.splitlines()[1].startswith("doubles,Values grow.,mean 2,reproduced")


def test_missing_data_alone_is_no_failure(tmp_path: Path, only: Callable[..., None]) -> None:
    only(failing("far", MissingDataError("no such data")), ITEM)
    assert tercet("run", "all", "--out", tmp_path, "--jobs", "1")[0] == 0


def test_a_stop_is_told_how_to_go_on(tmp_path: Path, only: Callable[..., None]) -> None:
    only(failing("long", KeyboardInterrupt()))
    code, text = tercet("run", "all", "--out", tmp_path)
    assert code == 130
    assert "the same command goes on" in text


def test_all_leaves_out_what_the_same_code_has_finished(
    tmp_path: Path, only: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.experiment_file._revision", lambda: "0123456789ab")
    only(ITEM)
    assert tercet("run", "all", "--out", tmp_path, "--jobs", "1")[0] == 0
    only(failing("doubles", RuntimeError("measured again")))
    assert tercet("run", "all", "--out", tmp_path, "--jobs", "1")[0] == 0
    assert tercet("run", "doubles", "--out", tmp_path, "--jobs", "1")[0] == 1


def test_redraw_of_all_leaves_out_what_was_never_measured(tmp_path: Path, only: Callable[..., None]) -> None:
    only(ITEM, replace(ITEM, name="later"))
    tercet("run", "doubles", "--out", tmp_path, "--jobs", "1")
    (tmp_path / "doubles" / "doubles.png").unlink()
    assert tercet("run", "all", "--redraw", "--out", tmp_path)[0] == 0
    assert (tmp_path / "doubles" / "doubles.png").exists()
    assert not (tmp_path / "later").exists()


def test_a_name_twice_is_made_once(tmp_path: Path, only: Callable[..., None]) -> None:
    only(ITEM)
    assert tercet("run", "doubles", "doubles", "--out", tmp_path, "--jobs", "1")[1].count("Doubles") == 1


def test_redraw_measures_nothing(tmp_path: Path, only: Callable[..., None]) -> None:
    only(ITEM)
    tercet("run", "doubles", "--out", tmp_path, "--jobs", "1")
    only(replace(ITEM, measure=failing("doubles", RuntimeError("measured")).measure))
    assert tercet("run", "doubles", "--redraw", "--out", tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "figure-9"], "theorem-2"),
        (["run", "drift", "--data", "nowhere"], "no folder"),
        (["run", "drift", "--redraw"], "no measurement to draw"),
        (["run", "drift", "--redraw", "--seeds", "3"], "drawn as they are"),
    ],
)
def test_bad_input_is_told_what_to_do(
    arguments: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, text = tercet(*arguments)
    assert code != 0
    assert expected in " ".join(text.split())
    assert not list(tmp_path.iterdir())


def test_a_quick_run_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: Callable[..., None]
) -> None:
    monkeypatch.chdir(tmp_path)
    only(ITEM)
    for options in ([], ["--quick"]):
        assert tercet("run", "doubles", "--jobs", "1", *options)[0] == 0
    assert (tmp_path / "tercet-paper" / "index.html").exists()
    assert (tmp_path / "tercet-paper-quick" / "index.html").exists()
