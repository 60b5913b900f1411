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
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from tercet import files
from tercet.paper import report, style
from tercet.paper.base import Claim, Item, Order, Tables
from tercet.paper.catalogue import Catalogue
from tercet.paper.report import Section
from tercet.results import Results

DIGITS = "%.6g"
FACTS = ("name", "command", "revision", "version", "seeds", "quick", "partial", "tables", "pictures")
PACKAGES = ("matplotlib", "torch", "lightgbm", "vowpalwabbit", "gpytorch")  # extras paper, train and bench


def run(item: Item, order: Order) -> None:
    """Measure, write the tables, and draw what they say."""
    earlier = about(order.folder)
    if order.quick and earlier is not None and not earlier["quick"]:
        raise ValueError(
            f"{order.folder} holds a full measurement, which a quick one would replace; give another --out"
        )
    _ready(order.folder)
    item.check()
    started = perf_counter()
    # A part of which no run is finished has no rows, and no table.
    measured = {name: table for name, table in item.measure(order).items() if len(table)}
    if not measured:
        raise ValueError(f"no run of {item.name} is finished yet; run it without --finished")
    for name, table in measured.items():
        text = table.to_csv(index=False, float_format=DIGITS, lineterminator="\n")
        _write(order.folder / f"{name}.csv", text)
    facts: dict[str, Any] = {
        "name": item.name,
        "command": command(item, order),
        "revision": order.about.get("revision"),
        "version": order.about.get("version"),
        "run_revisions": _run_revisions(order),
        "seeds": order.seeds,
        "quick": order.quick,
        "partial": order.finished,
        "seconds": round(perf_counter() - started, 1),
        "finished": datetime.now(UTC).date().isoformat(),
        "tables": list(measured),
        "pictures": None,  # until they are drawn
    }
    _note(order.folder, facts)
    draw(item, order.folder)


def command(item: Item, order: Order) -> str:
    """Return the command that makes the same again; DIR stands for a folder with data sets."""
    flags = {"--quick": order.quick, "--finished": order.finished, "--data DIR": bool(item.needs)}
    options = [flag for flag, given in flags.items() if given]
    return " ".join([_call(item), f"--seeds {order.seeds}", *options])


def _call(item: Item) -> str:
    return f"tercet {item.catalogue.name} run {item.name}"


def draw(item: Item, folder: Path) -> None:
    """Draw the tables of a folder again."""
    facts = about(folder)
    if facts is None:
        raise ValueError(f"{folder} holds no measurement to draw; run `{_call(item)}` first")
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
        missing = [name for name in FACTS if name not in facts]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} can not be read ({error}); delete it and run the item again") from error
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}; delete it and run the item again")
    return facts


def tables(folder: Path) -> Tables:
    """Return the tables of a folder, as they were written."""
    import pandas as pd

    facts = about(folder)
    found = {}
    for name in [] if facts is None else facts["tables"]:
        path = folder / f"{name}.csv"
        try:
            found[name] = pd.read_csv(path)
        except (OSError, ValueError) as error:  # what pandas raises is a ValueError
            raise ValueError(f"{path} can not be read ({error}); run the item again") from error
    return found


def claims(item: Item, folder: Path) -> list[Claim]:
    """Return what the tables of a folder say of the claims; nothing where there are none."""
    return [] if about(folder) is None else item.claims(tables(folder))


def up_to_date(folder: Path, order: Order) -> bool:
    """Whether the same was measured and drawn by the same code."""
    facts, revision = about(folder), order.about.get("revision")
    if facts is None or facts["pictures"] is None or revision is None or revision.endswith("-dirty"):
        return False
    wanted = {"seeds": order.seeds, "quick": order.quick, "partial": order.finished, "revision": revision}
    return all(facts[name] == value for name, value in wanted.items())


def status(item: Item, out: Path) -> str:
    """Return in a few words how far an item is."""
    folder = out / item.name
    facts = about(folder)
    if facts is not None:
        size = "quick" if facts["quick"] else "so far" if facts["partial"] else "full"
        made = facts["revision"] or f"version {facts['version']}"
        return f"{size}, {facts['seeds']} seed{'s' * (facts['seeds'] != 1)}, {made}"
    runs = len(list(folder.glob("*runs/*/runs/*.parquet")))
    if runs:
        return f"begun: {runs} finished run{'s' * (runs != 1)}"
    return f"not run; needs {item.needs}" if item.needs else "not run"


def write_report(catalogue: Catalogue, out: Path, problems: Mapping[str, str] = {}) -> Path:
    """Write the page of all that is in a folder; `problems` say why an item is not."""
    # The item `claims` is the page's own table.
    names = [name for name in catalogue.names if name != "claims"]
    sections = [_section(catalogue.item(name), out, problems.get(name, "")) for name in names]
    path = out / "index.html"
    _write(path, report.page(sections, catalogue))
    return path


def _section(item: Item, out: Path, problem: str) -> Section:
    """Return an item's part of the page; if its files are damaged, only what is wrong with them."""
    folder = out / item.name
    facts = None
    judged: list[Claim] = []
    pictures: dict[str, bytes] = {}
    links: list[str] = []
    try:
        facts = about(folder)
        if facts is not None:
            judged = item.claims(tables(folder))
            pictures = {name: (folder / f"{name}.png").read_bytes() for name in facts["pictures"] or {}}
            wanted = [f"{name}.csv" for name in facts["tables"]] + [f"{name}.pdf" for name in pictures]
            links = [f"{item.name}/{name}" for name in wanted if (folder / name).exists()]
    except Exception as error:  # one item's damage must not cost the report of the others
        problem = f"{error}; `{_call(item)}` makes it again"
        facts, judged, pictures, links = None, [], {}, []
    return Section(
        item=item, about=facts, problem=problem, claims=judged, pictures=pictures, files=tuple(links)
    )


def _run_revisions(order: Order) -> list[str]:
    """Return the revisions that played the runs: those kept from before are older than the tables."""
    folders = [Results(path) for path in order.runs.glob("*") if path.is_dir()]
    found = {summary.get("revision") for results in folders if results.started for summary in results.heads()}
    return sorted(filter(None, found))


def _ready(folder: Path) -> None:
    """Find out before anything is measured whether it can be drawn and written."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"measurements and figures need {', '.join(missing)}: pip install 'tercet[train,bench,paper]'"
        )
    try:
        _write(folder / "about.draft", "")
        (folder / "about.draft").unlink()
    except OSError as error:
        raise OSError(
            f"{folder} must be a folder that can be written to ({error}); give another --out"
        ) from error


def _note(folder: Path, facts: Mapping[str, Any]) -> None:
    _write(folder / "about.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
