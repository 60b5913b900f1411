"""The studies are declared, and `tercet study` lists and runs them."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tercet.cli import app
from tercet.paper.base import Claim
from tercet.paper.catalogue import PAPER, Catalogue
from tercet.studies.catalogue import STUDIES
from tests.paper.test_press import ITEM

STUDY = replace(
    ITEM,
    catalogue=STUDIES,
    claims=lambda _: [Claim(paper="Values grow.", ours="mean 2", verdict="reached")],
)


def tercet(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["study", *map(str, arguments)])
    return result.exit_code, result.output


@pytest.fixture
def doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be one study, in a folder of its own."""
    monkeypatch.setitem(vars(STUDIES), "names", ("doubles",))
    monkeypatch.setattr(Catalogue, "item", lambda _, name: {"doubles": STUDY}[name])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", STUDIES.names)
def test_every_study_is_declared_under_its_name_with_words(name: str) -> None:
    item = STUDIES.item(name)
    assert item.name == name
    assert item.catalogue is STUDIES
    assert item.title
    assert item.says.endswith(".")
    assert 1 <= item.quick_seeds <= item.seeds


def test_items_of_the_paper_belong_to_the_paper() -> None:
    assert {PAPER.item(name).catalogue.name for name in PAPER.names} == {"paper"}


def test_an_unknown_study_is_told_what_there_is() -> None:
    code, text = tercet("run", "openml")
    assert code == 1
    assert (
        "`tercet study` has no 'openml'; there are sizes, drift, exploring, alone, elsewhere, ingredients, long"
        in text
    )


def test_the_list_has_every_study(tmp_path: Path) -> None:
    code, text = tercet("list", "--out", tmp_path)
    assert code == 0
    assert all(name in text for name in STUDIES.names)
    assert "tercet study run NAME" in text


@pytest.mark.usefixtures("doubles")
def test_a_run_has_its_own_folder_and_a_page_that_speaks_of_expectations(tmp_path: Path) -> None:
    for options, folder in (([], "tercet-study"), (["--quick"], "tercet-study-quick")):
        code, text = tercet("run", "all", "--jobs", "1", *options)
        assert code == 0, text
        assert "reached: Values grow." in text
        page = (tmp_path / folder / "index.html").read_text()
        assert "<title>Studies of our own</title>" in page
        assert "1 claim of our own: 1 reached, 0 not reached, 0 undecided, 0 not testable." in page
        assert "We expected" in page
        assert "tercet study run doubles --seeds" in page
        words = page.split("</style>")[1]
        assert "paper" not in words.replace("beyond the paper", "")


@pytest.mark.usefixtures("doubles")
def test_a_redraw_without_tables_names_the_command() -> None:
    code, text = tercet("run", "doubles", "--redraw")
    assert code == 1
    assert "run `tercet study run doubles` first" in text
