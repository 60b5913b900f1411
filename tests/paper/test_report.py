import struct
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, get_args

import pytest

from tercet.paper.base import Claim, Item, Verdict
from tercet.paper.catalogue import PAPER
from tercet.paper.report import PNG_SIGNATURE, SYMBOLS, Section, duration, page, summary
from tercet.paper.report_page import STYLE
from tercet.studies.catalogue import STUDIES

VOID = {"meta", "img", "input", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    pieces: list[str] = field(default_factory=list)  # text inside, also of what is nested
    tags_above: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


class Reader(HTMLParser):
    """Reads a page into elements, and notes every tag that closes what is not open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.all: list[Element] = []
        self.open: list[Element] = []
        self.wrong: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs), tags_above=tuple(one.tag for one in self.open))
        self.all.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1].tag == tag:
            self.open.pop()
        else:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.pieces.append(data)

    def of(self, tag: str, style: str | None = None) -> list[Element]:
        return [
            one
            for one in self.all
            if one.tag == tag and (style is None or style in (one.attributes.get("class") or "").split())
        ]


def item(name: str, **changes: Any) -> Item:
    words = {"title": f"The title of {name}", "where": f"Figure of {name}", "says": f"Saying of {name}."}
    return Item(
        **{"name": name, "seeds": 3, "quick_seeds": 1, "measure": lambda _: {}, "draw": lambda _: []}
        | {"claims": lambda _: []}
        | words
        | changes
    )


def about(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "command": f"tercet paper run {name}", "revision": "abc123", "version": "9.8.7",
        "seeds": 7, "quick": False, "seconds": 61.0, "finished": "2031-02-03", "pictures": {},
    } | changes  # fmt: skip


def section(name: str, *claims: Claim, **changes: Any) -> Section:
    plain: dict[str, Any] = {
        "item": item(name), "about": about(name), "problem": "", "pictures": {}, "files": (),
    }  # fmt: skip
    return Section(claims=list(claims), **plain | changes)


def claim(number: int, verdict: Verdict = "reproduced", note: str = "") -> Claim:
    return Claim(paper=f"paper-{number}-says", ours=f"ours-{number}-is", verdict=verdict, note=note)


def png(width: int, height: int) -> bytes:
    return PNG_SIGNATURE + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"the rest"


def full() -> list[Section]:
    """Return a bit of everything."""
    first = section(
        "drift",
        claim(1),
        claim(2, "not reproduced", "a-note"),
        item=item("drift", deviations=("We do otherwise.",)),
        about=about("drift", pictures={"drift": "What is drawn, at 5 %."}),
        pictures={"drift": png(1120, 400)},
        files=("drift/rows.csv", "drift/drift.pdf"),
    )
    second = section("theorem-1", claim(3, "not testable"), about=about("theorem-1", revision=None, seeds=20))
    return [first, second, section("mind", about=None, problem="needs <MIND>: get it")]


def test_all_tags_are_closed_in_their_order_and_ids_are_unique() -> None:
    for sections in (full(), [], [section("drift")]):
        read = Reader(page(sections))
        assert not read.wrong
        assert not read.open
        ids = Counter(one.attributes["id"] for one in read.all if "id" in one.attributes)
        assert not [name for name, count in ids.items() if count > 1]


def test_every_claim_is_once_in_the_table_and_once_in_its_section() -> None:
    sections = full()
    read = Reader(page(sections))
    [table] = read.of("table", "claims")
    own = {one.attributes["id"]: one for one in read.of("section", "item")}
    for one in sections:
        for claim in one.claims:
            for words in (claim.paper, claim.ours, claim.note or claim.ours):
                assert table.text.count(words) == 1
                assert [name for name, part in own.items() if words in part.text] == [one.item.name]
                assert own[one.item.name].text.count(words) == 1


def test_a_row_of_the_table_has_the_verdict_as_text_symbol_and_colour() -> None:
    sections = full()
    rows = [row for row in Reader(page(sections)).of("tr") if "class" in row.attributes]
    verdicts = [claim.verdict for one in sections for claim in one.claims] + ["not measured"]
    assert len(rows) == len(verdicts)
    for row, verdict in zip(rows, verdicts, strict=True):
        assert f"{SYMBOLS[verdict]}{verdict}" in row.text
        assert row.attributes["class"] == f"is-{verdict.replace(' ', '-')}"


def test_every_verdict_has_a_symbol_of_its_own_a_colour_and_a_filter() -> None:
    assert {*get_args(Verdict), "not measured"} == set(SYMBOLS)
    for catalogue in (PAPER, STUDIES):
        assert len({SYMBOLS[verdict] for verdict in (*catalogue.verdicts, "not measured")}) == 5
    for verdict in SYMBOLS:
        style = verdict.replace(" ", "-")
        assert f"\n.{style} {{ color:" in STYLE
        assert f"#show-{style}:checked) tbody tr:not(.is-{style})" in STYLE


def test_filters_are_there_for_the_verdicts_that_are() -> None:
    shown = [one.attributes["id"] for one in Reader(page(full())).of("input")]
    assert shown == [
        "show-all", "show-reproduced", "show-not-reproduced", "show-not-testable", "show-not-measured",
    ]  # fmt: skip
    assert not Reader(page([section("drift", claim(1), claim(2))])).of("input")


def test_the_summary_counts_claims_and_items() -> None:
    assert summary(full()) == (
        "3 claims of the paper: 1 reproduced, 1 not reproduced, 0 undecided, 1 not testable. 1 of 3 items not measured."
    )
    assert summary([section("drift", claim(1))]).startswith("1 claim of the paper: 1 reproduced, 0 not rep")
    assert summary(full()) in page(full())


def test_contents_link_to_sections_and_show_their_verdicts() -> None:
    read = Reader(page(full()))
    [contents] = read.of("ol", "contents")
    links = [
        one.attributes["href"] for one in read.of("a") if "ol" in one.tags_above and "nav" in one.tags_above
    ]
    assert links == ["#drift", "#theorem-1", "#mind"]
    assert {one.attributes.get("id") for one in read.of("section", "item")} == {link[1:] for link in links}
    assert "✓1✗1" in contents.text
    assert "–not measured" in contents.text
    assert "2 reproduced" in page([section("drift", claim(1), claim(2))])  # read out where only ✓ 2 is seen


def test_everything_is_escaped() -> None:
    nasty = "<script>alert('&\"{body}')</script>"
    sections = [
        section(
            "drift",
            Claim(paper=nasty, ours=nasty, verdict="reproduced", note=nasty),
            item=item("drift", title=nasty, where=nasty, says=nasty, deviations=(nasty,)),
            about=about("drift", command=nasty, revision=nasty, version=nasty, pictures={"drift": nasty}),
            pictures={"drift": png(10, 10)},
            files=(nasty,),
        ),
        section("mind", about=None, problem=nasty),
    ]
    html = page(sections)
    read = Reader(html)
    assert "<script" not in html
    assert not read.of("script")
    assert not read.wrong
    assert not read.open
    assert read.of("section", "item")[0].text.count(nasty) >= 9


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = page(full())
    addresses = [
        one.attributes[name] or ""
        for one in Reader(html).all
        for name in ("href", "src")
        if name in one.attributes
    ]
    assert addresses
    assert not [one for one in addresses if one.startswith(("http", "//", "file:"))]
    assert "http" not in html
    assert "url(" not in html
    assert "@import" not in html
    assert "<link" not in html


@pytest.mark.parametrize("file", ["http://example.org/a.csv", "//example.org/a.csv", "/a.csv"])
def test_files_that_are_not_beside_the_page_are_refused(file: str) -> None:
    with pytest.raises(ValueError, match="files must be paths relative to the page"):
        page([section("drift", files=(file,))])


def test_a_quick_run_has_a_banner_and_a_full_one_has_none() -> None:
    quick = section("drift", claim(1), about=about("drift", quick=True))
    whole = section("theorem-1", claim(2))
    assert not Reader(page([whole])).of("p", "banner")
    [banner] = Reader(page([quick])).of("p", "banner")
    assert "rough sizes, not the full ones" in banner.text
    assert "drift" not in banner.text  # all of it is quick
    [banner] = Reader(page([quick, whole])).of("p", "banner")
    assert "This is about: drift." in banner.text


def test_results_of_some_of_the_runs_are_said_to_be_so() -> None:
    [banner] = Reader(page([section("drift", claim(1), about=about("drift", partial=True))])).of(
        "p", "banner"
    )
    assert "Not all runs are finished" in banner.text


@pytest.mark.parametrize(
    ("about", "problem", "why"),
    [
        (None, "needs <MIND>: get it", "needs <MIND>: get it"),
        (None, "", "not run"),
        (about("mind", finished=None), "", "not run to its end"),
    ],
)
def test_what_was_not_measured_is_said_with_the_reason(
    about: dict[str, Any] | None, problem: str, why: str
) -> None:
    read = Reader(page([section("mind", about=about, problem=problem)]))
    [row] = [row for row in read.of("tr") if "class" in row.attributes]
    assert row.attributes["class"] == "is-not-measured"
    assert "Saying of mind." in row.text
    assert why in row.text
    assert [one.text for one in read.of("p", "problem")] == [f"Not measured: {why}"]
    assert "1 of 1 item not measured" in read.of("p", "summary")[0].text


def test_a_failed_attempt_is_told_beside_the_earlier_measurement() -> None:
    read = Reader(page([section("drift", claim(1), problem="failed: no memory")]))
    assert (
        read.of("p", "problem")[0].text
        == "The last run: failed: no memory. What follows is of an earlier one."
    )
    assert "0 of 1 item not measured" in read.of("p", "summary")[0].text


def test_an_item_without_claims_is_not_called_unmeasured() -> None:
    read = Reader(page([section("claims")]))
    assert "no claim to judge" in read.of("ol", "contents")[0].text
    assert not [row for row in read.of("tr") if "class" in row.attributes]


def test_a_section_tells_what_made_it_and_where_its_files_are() -> None:
    read = Reader(page(full()))
    drift, theorem, _ = read.of("section", "item")
    for words in ("Figure of drift", "Saying of drift.", "We do otherwise.", "rows.csv", "drift.pdf"):
        assert words in drift.text
    for words in ("tercet paper run drift", "abc123", "9.8.7", "Seeds7", "1 min 1 s", "2031-02-03"):
        assert words in drift.text
    assert "Revisionunknown" in theorem.text
    links = {one.attributes["href"] for one in read.of("a")}
    assert {"drift/rows.csv", "drift/drift.pdf"} <= links


def test_the_head_tells_what_made_the_page_as_far_as_items_agree() -> None:
    [head] = Reader(page(full())).of("header")
    assert "Commandtercet paper run drift, tercet paper run theorem-1" in head.text
    assert "7 to 20, by item" in head.text
    assert "Time2 min 2 s" in head.text
    [head] = Reader(page([section(name) for name in ("drift", "arms", "time")])).of("header")
    assert "3 different ones" in head.text
    assert "Seeds7" in head.text
    assert head.text.count("abc123") == 1


def test_a_picture_is_in_the_page_with_its_caption_and_keeps_its_shape() -> None:
    read = Reader(page(full()))
    [image] = read.of("img")
    assert (image.attributes["src"] or "").startswith("data:image/png;base64,iVBORw0KGgo")
    assert image.attributes["alt"] == "What is drawn, at 5\u00a0%."
    assert read.of("figcaption")[0].text == "What is drawn, at 5 %."  # `split` takes the hard space too
    assert (image.attributes["width"], image.attributes["height"]) == ("888", "317")  # a page of 7 inches


def test_what_is_no_png_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be PNG files; drift's curve begins with b'GIF89a'"):
        page([section("drift", pictures={"curve": b"GIF89a"})])


def test_durations_do_not_run_over() -> None:
    assert [duration(s) for s in (0.04, 59.94, 59.96, 119.6, 3599.4, 3599.6, 7199)] == [
        "0.0 s", "59.9 s", "1 min 0 s", "2 min 0 s", "59 min 59 s", "1 h 0 min", "2 h 0 min",
    ]  # fmt: skip
