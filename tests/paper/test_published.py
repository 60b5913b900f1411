"""The tables that are published with the code say who made them, and bear out the published claims."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tercet.paper import press
from tercet.paper.catalogue import PAPER

PUBLISHED = Path(__file__).parents[2] / "results" / "paper"
MEASURED = [name for name in PAPER.names if (PUBLISHED / name / "about.json").exists()]


@pytest.mark.parametrize("name", MEASURED)
def test_published_tables_say_what_made_them(name: str) -> None:
    facts = press.about(PUBLISHED / name)
    assert facts is not None
    assert facts["command"].startswith(f"tercet paper run {name} --seeds {facts['seeds']}")
    assert re.fullmatch(r"[0-9a-f]{12}", facts["revision"])  # a commit, with nothing changed since
    assert not facts["quick"]
    assert facts["pictures"] or name == "claims"


@pytest.mark.parametrize("name", MEASURED)
def test_published_tables_can_be_drawn_and_are(name: str) -> None:
    facts = press.about(PUBLISHED / name)
    assert facts is not None
    assert all(len(table) for table in press.tables(PUBLISHED / name).values())
    for picture, caption in facts["pictures"].items():
        assert (PUBLISHED / name / f"{picture}.png").exists()
        assert len(caption) > 80


def test_published_claims_are_what_the_published_tables_say() -> None:
    published = press.tables(PUBLISHED / "claims")["claims"].fillna("")
    found = [
        (name, claim.paper, claim.ours, claim.verdict, claim.note)
        for name in MEASURED
        for claim in press.claims(PAPER.item(name), PUBLISHED / name)
    ]
    assert list(published.itertuples(index=False, name=None)) == found
    assert set(pd.unique(published["verdict"])) <= set(PAPER.verdicts)


def test_everything_is_published() -> None:
    assert tuple(MEASURED) == PAPER.names
