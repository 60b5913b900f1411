"""The report on the paper, or on our studies: one HTML page that needs no network and no scripts."""

import struct
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote

from tercet.paper.base import Claim, Item
from tercet.paper.catalogue import PAPER, Catalogue
from tercet.paper.report_page import BODY, ITEM, PAGE, STYLE
from tercet.paper.style import DOTS
from tercet.paper.style import PAGE as PAGE_INCHES

TEXT_WIDTH = 888  # CSS pixels: what the page's 920 leave between its margins
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
SYMBOLS = {
    "reproduced": "✓",
    "not reproduced": "✗",
    "reached": "✓",
    "not reached": "✗",
    "undecided": "~",
    "not testable": "?",
    "not measured": "–",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """An item with what came of it.

    about : what made the tables: command, revision, version, seeds, quick, partial, seconds, finished and
        the pictures' captions; None if it was not run.
    problem : why there is nothing, or nothing newer; or "".
    pictures : PNG files by their names.
    files : tables and PDFs, relative to the page.
    """

    item: Item
    about: Mapping[str, Any] | None
    problem: str
    claims: list[Claim]
    pictures: Mapping[str, bytes]
    files: tuple[str, ...]


class Line(NamedTuple):
    """A line of the table of all claims; an item that was not measured has one, which says why."""

    section: Section
    verdict: str
    paper: str
    ours: str
    note: str


def page(sections: Sequence[Section], catalogue: Catalogue = PAPER) -> str:
    """Return the report as one HTML document."""
    rows = lines(sections)
    counts = Counter(row.verdict for row in rows)
    body = BODY.format(
        title=escape(catalogue.title),
        about=escape(catalogue.about),
        said=escape(catalogue.said),
        banner=_banner(sections),
        summary=escape(summary(sections, catalogue)),
        made=_made(sections),
        contents="\n".join(map(_entry, sections)),
        filters=_filters(counts),
        claims="\n".join(map(_row, rows)),
        items="\n".join(map(_item, sections)),
    )
    return PAGE.format(title=escape(catalogue.title), style=STYLE, body=body)


def missing(section: Section) -> str:
    """Return why an item was not measured, or "" if it was."""
    if section.about is None:
        return section.problem or "not run"
    return "" if section.about["finished"] else section.problem or "not run to its end"


def lines(sections: Iterable[Section]) -> list[Line]:
    """Return the table of all claims."""
    table = []
    for section in sections:
        table += [Line(section, c.verdict, c.paper, c.ours, c.note) for c in section.claims]
        if why := missing(section):
            table.append(Line(section, "not measured", section.item.says, "", why))
    return table


def summary(sections: Sequence[Section], catalogue: Catalogue = PAPER) -> str:
    """Return how the claims fared, in two sentences."""
    counts = Counter[str](claim.verdict for section in sections for claim in section.claims)
    shares = ", ".join(f"{counts[verdict]} {verdict}" for verdict in catalogue.verdicts)
    unmeasured = sum(bool(missing(section)) for section in sections)
    items = f"{unmeasured} of {_count(len(sections), 'item')} not measured."
    return f"{_count(counts.total(), 'claim')} {catalogue.whose}: {shares}. {items}"


def _banner(sections: Sequence[Section]) -> str:
    """Return a warning if this is not, or not wholly, a full measurement."""
    measured = [section for section in sections if section.about]
    quick = [section for section in measured if section.about and section.about["quick"]]
    partial = [section for section in measured if section.about and section.about.get("partial")]
    said = []
    if quick:
        said.append(
            "<strong>A quick run: rough sizes, not the full ones.</strong> It shows that everything runs; "
            f"do not judge by its verdicts.{_which(quick, measured)}"
        )
    if partial:
        said.append(
            "<strong>Not all runs are finished.</strong> Figures and verdicts are those of the runs "
            f"so far.{_which(partial, measured)}"
        )
    return "".join(f'<p class="banner">{text}</p>\n' for text in said)


def _which(some: Sequence[Section], of: Sequence[Section]) -> str:
    """Return which items a warning is about, unless it is about all."""
    if len(some) == len(of):
        return ""
    return f" This is about: {', '.join(_link(section, section.item.name) for section in some)}."


def _made(sections: Iterable[Section]) -> str:
    """Return what made one item, or all of the page; where items differ, all that there is."""
    abouts = [section.about for section in sections if section.about]
    if not abouts:
        return ""
    seeds = sorted({about["seeds"] for about in abouts})
    days = sorted({about["finished"][:10] for about in abouts if about["finished"]})
    facts = {
        "Command": _codes(about["command"] for about in abouts),
        "Revision": _codes(about["revision"] for about in abouts),
        "tercet": _codes(about["version"] for about in abouts),
        "Seeds": f"{seeds[0]} to {seeds[-1]}, by item" if len(seeds) > 1 else str(seeds[0]),
        "Time": duration(sum(about["seconds"] for about in abouts)),
        "Finished": escape(" to ".join(dict.fromkeys([days[0], days[-1]]))) if days else "no",
    }
    pairs = (f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    return f'<dl class="made">{"".join(pairs)}</dl>\n'


def duration(seconds: float) -> str:
    """Return a time for people.

    >>> duration(8.24), duration(95), duration(7260)
    ('8.2 s', '1 min 35 s', '2 h 1 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    if seconds < 3599.5:
        return f"{round(seconds) // 60} min {round(seconds) % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def _entry(section: Section) -> str:
    place = f"<small>{escape(section.item.where)}</small>"
    return f"<li><span>{_link(section)} {place}</span>{_tally(section, in_words=False)}</li>"


def _tally(section: Section, *, in_words: bool) -> str:
    """Return how often each verdict came out; words are there for screen readers also where none is seen."""
    counts = Counter(line.verdict for line in lines([section]))
    if not counts:
        return '<p class="note">no claim to judge</p>'
    marks = []
    for verdict in (verdict for verdict in SYMBOLS if counts[verdict]):
        count = "" if verdict == "not measured" else f"{counts[verdict]} "
        words = f"{count}{verdict}"
        seen = words if in_words or not count else count.strip()
        marks.append(f'<li title="{words}">{_verdict(verdict, seen, words)}</li>')
    return f'<ul class="tally">{"".join(marks)}</ul>'


def _verdict(verdict: str, seen: str = "", words: str = "") -> str:
    """Return a verdict with its symbol and colour; `words` is what is read out in place of what is seen."""
    seen = seen or verdict
    label = f' role="img" aria-label="{words}"' if words not in ("", seen) else ""
    mark = f'<span class="mark" aria-hidden="true"><b>{SYMBOLS[verdict]}</b></span>'
    return f'<span class="verdict {_class(verdict)}"{label}>{mark}{seen}</span>'


def _filters(counts: Mapping[str, int]) -> str:
    """Return buttons that leave one verdict in the table; the style sheet does it, without a script."""
    present = [verdict for verdict in SYMBOLS if counts.get(verdict)]
    if len(present) < 2:
        return ""
    buttons = [_button("all", f'<span class="verdict">all {sum(counts.values())}</span>', " checked")]
    buttons += [_button(_class(name), _verdict(name, f"{name} {counts[name]}")) for name in present]
    return f'<fieldset class="filters"><legend>Show</legend>{"".join(buttons)}</fieldset>'


def _button(name: str, label: str, checked: str = "") -> str:
    return f'<label><input type="radio" name="show" id="show-{name}"{checked}><span>{label}</span></label>'


def _row(line: Line) -> str:
    cells = {
        line.section.item.catalogue.said: _text(line.paper),
        "We measured": _text(line.ours),
        "Verdict": _verdict(line.verdict),
        "Note": _text(line.note),
    }
    tds = (f'<td data-label="{label}">{cell}</td>' for label, cell in cells.items())
    name = _link(line.section, line.section.item.name)
    return f'<tr class="is-{_class(line.verdict)}"><td>{name}</td>{"".join(tds)}</tr>'


def _item(section: Section) -> str:
    item = section.item
    return ITEM.format(
        name=escape(item.name),
        title=escape(item.title),
        where=escape(item.where),
        source=escape(item.catalogue.source),
        problem=_problem(section),
        says=_text(item.says),
        tally=_tally(section, in_words=True),
        claims="\n".join(_beside(claim, item.catalogue.source) for claim in section.claims),
        pictures="".join(_picture(section, name) for name in section.pictures),
        deviations=_deviations(item),
        files=_files(section.files),
        made=_made([section]),
    )


def _problem(section: Section) -> str:
    if why := missing(section):
        return f'<p class="problem"><strong>Not measured:</strong> {_text(why)}</p>\n'
    if not section.problem:
        return ""
    # A later attempt that failed leaves the earlier measurement in place.
    said = f"<strong>The last run:</strong> {_text(section.problem)}. What follows is of an earlier one."
    return f'<p class="problem">{said}</p>\n'


def _beside(claim: Claim, source: str) -> str:
    note = f'<p class="note">{_text(claim.note)}</p>' if claim.note else ""
    ours = f"<p>{_verdict(claim.verdict)}</p><p>{_text(claim.ours)}</p>{note}"
    said = f'<td data-label="{escape(source)}">{_text(claim.paper)}</td>'
    return f'<tr>{said}<td data-label="Measured">{ours}</td></tr>'


def _picture(section: Section, name: str) -> str:
    data = section.pictures[name]
    if not data.startswith(PNG_SIGNATURE):
        raise ValueError(f"pictures must be PNG files; {section.item.name}'s {name} begins with {data[:8]!r}")
    # The size is known before the picture is decoded, so that links do not jump; all pictures share a scale.
    pixels = struct.unpack(">II", data[16:24])
    width, height = (round(side * TEXT_WIDTH / (PAGE_INCHES * DOTS)) for side in pixels)
    captions = section.about["pictures"] if section.about else {}
    caption = _text(captions.get(name, name))
    source = f"data:image/png;base64,{b64encode(data).decode()}"
    image = f'<img src="{source}" width="{width}" height="{height}" alt="{caption}">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>\n"


def _deviations(item: Item) -> str:
    if not item.deviations:
        return ""
    points = "".join(f"<li>{_text(deviation)}</li>" for deviation in item.deviations)
    return f'<h3>{escape(item.catalogue.deviations)}</h3>\n<ul class="deviations">{points}</ul>\n'


def _files(files: Sequence[str]) -> str:
    if not files:
        return ""
    for file in files:
        if file.startswith("/") or ":" in file:
            raise ValueError(f"files must be paths relative to the page; got {file!r}")
    links = (f'<li><a href="{quote(file)}">{escape(file.rsplit("/", 1)[-1])}</a></li>' for file in files)
    return f'<h3>Tables and pictures</h3>\n<ul class="files">{"".join(links)}</ul>\n'


def _link(section: Section, text: str = "") -> str:
    item = section.item
    return f'<a href="#{quote(item.name)}">{escape(text or item.title)}</a>'


def _text(text: str) -> str:
    """Return text for the page; a line does not break before a sign that belongs to its number."""
    return escape(text).replace(" ± ", "\u00a0±\u00a0").replace(" %", "\u00a0%")


def _class(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _codes(codes: Iterable[str | None]) -> str:
    """Return the different ones; many are left to the items, each of which tells its own."""
    different = dict.fromkeys(codes)
    if len(different) > 2:
        return f"{len(different)} different ones, each told with its item"
    return ", ".join(f"<code>{escape(code)}</code>" if code else "unknown" for code in different)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
