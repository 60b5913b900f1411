"""Tables of any make, as lists of rows."""

from collections.abc import Mapping
from typing import Any

Row = Mapping[Any, Any]


def rows_of(table: Any) -> list[Row]:
    """Return the rows of a list of dicts, or of a pandas or polars frame."""
    if not isinstance(table, list | tuple):
        return _rows_of_frame(table)
    for i, row in enumerate(table):
        if not isinstance(row, Mapping):
            raise ValueError(f"every row must be a dict; row {i} is {row!r}")
    return list(table)


def flatten(row: Row) -> Row:
    """Give the values of nested dicts dotted names.

    >>> flatten({"user": {"age": 30, "home": {"city": "Ulm"}}, "hour": 7})
    {'user.age': 30, 'user.home.city': 'Ulm', 'hour': 7}
    """
    if not any(isinstance(value, dict) for value in row.values()):
        return row
    flat: dict[str, Any] = {}
    _spread(row, "", flat)
    return flat


def _spread(row: Row, prefix: str, flat: dict[str, Any]) -> None:
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            _spread(value, f"{name}.", flat)
        elif name in flat:
            raise ValueError(f"two values are called {name!r}, one of them nested; rename one")
        else:
            flat[name] = value


def _rows_of_frame(table: Any) -> list[Row]:
    import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise ValueError(
            f"a table must be a list of dicts, a pandas or a polars frame; got {type(table).__name__}"
        ) from None
    names = frame.columns
    columns = [frame.get_column(name).to_list() for name in names]
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
