"""One cell of a table: what is missing, and how a number, a label or a moment is read.

A reader returns None for a missing value and raises ValueError for one it can not read; the caller adds
the column and the row.
"""

from datetime import date, datetime
from decimal import Decimal
from reprlib import repr as brief
from typing import Any

import numpy as np

from tercet.checks import LARGEST


def missing(value: Any) -> bool:
    """Say whether a value is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"  # pandas.NA has no truth value, and no array has one either


def number(value: Any) -> float | None:
    """Read a number, a bool (0 or 1) or a string that spells a number.

    >>> number("2.5"), number(True), number(float("nan"))
    (2.5, 1.0, None)
    """
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        if missing(value):
            return None
        raise ValueError(f"expected a number; got {brief(value)}") from None
    if result != result:
        return None
    if not -LARGEST <= result <= LARGEST:
        raise ValueError(f"expected a finite number within float32's range; got {brief(value)}")
    return result


def label(value: Any) -> str | None:
    """Read a category or a text; 7, 7.0 and "7" are one label, because tables turn integers into floats.

    >>> label("red"), label(7.0), label(0.5), label(None)
    ('red', '7', '0.5', None)
    """
    if isinstance(value, str):
        return value
    if missing(value):
        return None
    if isinstance(value, bool | np.bool_ | date):
        return str(value)
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating | Decimal):
        real = float(value)
        return str(int(real)) if real.is_integer() else repr(real)
    raise ValueError(f"expected a string, a number or a bool; got {brief(value)}")


def moment(value: Any) -> datetime | None:
    """Read a date, a datetime, a timestamp or an ISO 8601 string, as UTC without a zone.

    >>> moment("2024-05-01T01:30:00+02:00")
    datetime.datetime(2024, 4, 30, 23, 30)
    """
    found = value
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"expected a date like 2024-05-01T12:30:00Z; got {brief(value)}") from None
    elif missing(value):
        return None
    elif isinstance(value, np.datetime64):
        found = value.astype("datetime64[us]").item()  # no date beyond the year 9999
    if not isinstance(found, date):
        raise ValueError(f"expected a date, a datetime or an ISO 8601 string; got {brief(value)}")
    if not isinstance(found, datetime):
        return datetime(found.year, found.month, found.day)
    offset = found.utcoffset()
    if offset is None:
        return found
    try:
        return found.replace(tzinfo=None) - offset
    except OverflowError:
        raise ValueError(f"expected a date of the years 1 to 9999 in UTC; got {brief(value)}") from None
