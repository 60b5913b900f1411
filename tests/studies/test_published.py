"""The published tables say who made them, and can be judged and drawn."""

import re
from pathlib import Path

import pytest
from tools import headline

from tercet.paper import press
from tercet.studies.catalogue import STUDIES

PUBLISHED = Path(__file__).parents[2] / "results" / "studies"
MEASURED = [name for name in STUDIES.names if (PUBLISHED / name / "about.json").exists()]


@pytest.mark.parametrize("name", MEASURED)
def test_published_tables_say_what_made_them(name: str) -> None:
    facts = press.about(PUBLISHED / name)
    assert facts is not None
    assert facts["command"].startswith(f"tercet study run {name} --seeds {facts['seeds']}")
    assert re.fullmatch(r"[0-9a-f]{12}", facts["revision"])  # a commit, with nothing changed since
    assert not facts["quick"]


@pytest.mark.parametrize("name", MEASURED)
def test_published_tables_are_drawn_and_judge_every_expectation(name: str) -> None:
    item, facts = STUDIES.item(name), press.about(PUBLISHED / name)
    assert facts is not None
    for picture, caption in facts["pictures"].items():
        assert (PUBLISHED / name / f"{picture}.png").exists()
        assert len(caption) > 80
    verdicts = {claim.verdict for claim in press.claims(item, PUBLISHED / name)}
    assert verdicts <= set(STUDIES.verdicts)
    assert (
        facts["partial"] or "not testable" not in verdicts
    )  # of a whole run every expectation can be judged


@pytest.mark.parametrize("page", headline.PAGES, ids=lambda page: page.name)
def test_pages_have_the_tables_of_the_published_rows(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == headline.filled(page)
