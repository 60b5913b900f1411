"""What each column of the history is: its kind, whether it varies, whether it has gaps."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from tercet.encode import cells
from tercet.encode.columns import words
from tercet.encode.options import EncoderOptions
from tercet.encode.tables import Row, flatten

READERS: dict[str, Callable[[Any], Any]] = {
    "number": cells.number,
    "category": cells.label,
    "date": cells.moment,
    "text": cells.label,
}
KINDS = (*READERS, "ignore")

# Titles and sentences have that many words on average; labels such as "New York City" have fewer.
WORDS_OF_A_TEXT = 4

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")  # bare digits such as 20240501 are more often an id


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """One column of the history, read; `varies` counts present values only."""

    name: str
    kind: str
    values: list[Any]
    varies: bool
    gaps: bool


def study(rows: Sequence[Row], kinds: Mapping[str, str], options: EncoderOptions) -> list[Field]:
    """Read the history into columns, in the order in which their names first appear."""
    if not rows:
        raise ValueError("an encoder is fitted on a history; got a table without rows")
    columns = _columns(rows)
    _check_kinds(kinds, columns)
    fields = [_field(name, values, kinds.get(name), options) for name, values in columns.items()]
    return [field for field in fields if field.kind != "ignore"]


def read(name: str, kind: str, values: Sequence[Any]) -> list[Any]:
    """Read the cells of one column; None stands for a missing value."""
    reader, result = READERS[kind], []
    for i, value in enumerate(values):
        try:
            result.append(reader(value))
        except ValueError as error:
            raise ValueError(f"row {i}, column {name!r}: {error}") from None
    return result


def infer(name: str, values: Sequence[Any], options: EncoderOptions) -> str:
    """Guess the kind of a column from its present values.

    Strings are dates if all look like ISO 8601. They are text if they average four words or more, or if
    there are more than `max_categories` of them and most occur once (names, addresses); a text can be
    compared with unseen ones, a category can not. Anything else that can be a label is a category.
    """
    present = [value for value in values if not cells.missing(value)]
    if all(isinstance(value, int | float | Decimal | np.number | np.bool_) for value in present):
        return "number"
    if all(_is_date(value) for value in present):
        return "date"
    try:
        labels = [str(cells.label(value)) for value in present]
    except ValueError as error:
        raise ValueError(
            f"column {name!r} has no known kind: {error}. Turn its values into such, or leave the column "
            f"out with kinds={{{name!r}: 'ignore'}}"
        ) from None
    total = sum(len(words(text)) for text in labels)
    mostly_unique = len(set(labels)) > max(options.max_categories, len(labels) / 2)
    return "text" if total >= WORDS_OF_A_TEXT * len(labels) or mostly_unique else "category"


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    flat = [flatten(row) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"column names must be strings; got {name!r}")
    return {name: [row.get(name) for row in flat] for name in names}


def _check_kinds(kinds: Mapping[str, str], columns: Mapping[str, Any]) -> None:
    for name, kind in kinds.items():
        if name not in columns:
            raise ValueError(f"kinds names the column {name!r}; the history has {list(columns)}")
        if kind not in KINDS:
            raise ValueError(f"the kind of column {name!r} must be one of {KINDS}; got {kind!r}")


def _field(name: str, values: list[Any], kind: str | None, options: EncoderOptions) -> Field:
    kind = kind or infer(name, values, options)
    cells_read = [] if kind == "ignore" else read(name, kind, values)
    present = [value for value in cells_read if value is not None]
    distinct = {tuple(words(text)) for text in present} if kind == "text" else set(present)
    return Field(
        name=name,
        kind=kind,
        values=cells_read,
        varies=len(distinct) > 1,
        gaps=0 < len(present) < len(values),
    )


def _is_date(value: Any) -> bool:
    if isinstance(value, str):
        if not _ISO_DATE.match(value):
            return False
        try:
            cells.moment(value)
        except ValueError:
            return False
        return True
    return isinstance(value, date | np.datetime64)
