"""From a measurement to files: tables first, then what is drawn from them as they were written.

OUT/
  index.html           the report of all that is there
  NAME/about.json      command, revision, seeds; which tables and pictures there are
  NAME/TABLE.csv
  NAME/PICTURE.pdf, .png
  NAME/runs/           finished runs of experiments, from which a stopped measurement goes on
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from tercet import files
from tercet.paper import report, style
from tercet.paper.base import Claim, Item, Order, Tables
from tercet.paper.catalogue import NAMES, item
from tercet.paper.report import Section

DIGITS = "%.6g"


def run(item: Item, order: Order) -> None:
    """Measure, write the tables, and draw what they say."""
    earlier = about(order.folder)
    if order.quick and earlier is not None and not earlier["quick"]:
        raise ValueError(
            f"{order.folder} holds a full measurement, which a quick one would replace; give another --out"
        )
    item.check()
    started = perf_counter()
    tables = item.measure(order)
    for name, table in tables.items():
        text = table.to_csv(index=False, float_format=DIGITS, lineterminator="\n")
        _write(order.folder / f"{name}.csv", text)
    facts: dict[str, Any] = {
        "name": item.name,
        "command": command(item, order),
        "revision": order.about.get("revision"),
        "version": order.about.get("version"),
        "seeds": order.seeds,
        "quick": order.quick,
        "partial": order.finished,
        "seconds": round(perf_counter() - started, 1),
        "finished": datetime.now(UTC).date().isoformat(),
        "tables": list(tables),
        "pictures": {},
    }
    _note(order.folder, facts)
    draw(item, order.folder)


def command(item: Item, order: Order) -> str:
    """Return the command that makes the same again; DIR stands for a folder with data sets."""
    flags = {"--quick": order.quick, "--finished": order.finished, "--data DIR": bool(item.needs)}
    options = [flag for flag, given in flags.items() if given]
    return " ".join(["tercet paper run", item.name, f"--seeds {order.seeds}", *options])


def draw(item: Item, folder: Path) -> None:
    """Draw the tables of a folder again."""
    facts = about(folder)
    if facts is None:
        raise ValueError(f"{folder} holds no measurement to draw; run `tercet paper run {item.name}` first")
    with style.used():
        pictures = item.draw(tables(folder))
        for picture in pictures:
            style.save(picture.figure, folder / picture.name)
    _note(folder, facts | {"pictures": {picture.name: picture.caption for picture in pictures}})


def about(folder: Path) -> dict[str, Any] | None:
    """Return what a folder holds; None where nothing was measured."""
    path = folder / "about.json"
    if not path.exists():
        return None
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} can not be read ({error}); delete it and run the figure again") from error
    return facts


def tables(folder: Path) -> Tables:
    """Return the tables of a folder, as they were written."""
    import pandas as pd

    facts = about(folder)
    names = [] if facts is None else facts["tables"]
    try:
        return {name: pd.read_csv(folder / f"{name}.csv") for name in names}
    except (OSError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"a table in {folder} can not be read ({error}); run the figure again") from error


def claims(item: Item, folder: Path) -> list[Claim]:
    """Return what the tables of a folder say of the paper's claims; nothing where there are none."""
    return [] if about(folder) is None else item.claims(tables(folder))


def up_to_date(folder: Path, order: Order) -> bool:
    """Whether the same was measured by the same code."""
    facts, revision = about(folder), order.about.get("revision")
    if facts is None or revision is None or revision.endswith("-dirty"):
        return False
    wanted = {"seeds": order.seeds, "quick": order.quick, "partial": order.finished, "revision": revision}
    return all(facts[name] == value for name, value in wanted.items())


def status(item: Item, out: Path) -> str:
    """Return in a few words how far an item is."""
    folder = out / item.name
    facts = about(folder)
    if facts is not None:
        size = "quick" if facts["quick"] else "so far" if facts["partial"] else "full"
        return f"{size}, {facts['seeds']} seeds, {facts['revision'] or 'version ' + str(facts['version'])}"
    runs = len(list(folder.glob("runs/*/runs/*.parquet")))
    if runs:
        return f"begun: {runs} runs finished"
    return f"not run; needs {item.needs}" if item.needs else "not run"


def write_report(out: Path, problems: Mapping[str, str] = {}) -> Path:
    """Write the page of all that is in a folder; `problems` say why an item is not."""
    sections = []
    for name in NAMES:
        one, folder = item(name), out / name
        facts = about(folder)
        pictures = [] if facts is None else list(facts["pictures"])
        links = [] if facts is None else [f"{name}/{table}.csv" for table in facts["tables"]]
        sections.append(
            Section(
                item=one,
                about=facts,
                problem=problems.get(name, ""),
                claims=claims(one, folder),
                pictures={picture: (folder / f"{picture}.png").read_bytes() for picture in pictures},
                files=(*links, *(f"{name}/{picture}.pdf" for picture in pictures)),
            )
        )
    path = out / "index.html"
    _write(path, report.page(sections))
    return path


def _note(folder: Path, facts: Mapping[str, Any]) -> None:
    _write(folder / "about.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
