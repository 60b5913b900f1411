"""The encoder: rows to vectors in plain Python and NumPy."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import accumulate, chain
from os import PathLike
from typing import Any, final

import numpy as np

from tercet import checkpoint
from tercet.checkpoint import CheckpointError
from tercet.checks import Array, Matrix, Vector
from tercet.encode.columns import Category, Column, Date, Number, Presence, Text
from tercet.encode.options import EncoderOptions
from tercet.encode.tables import Row, flatten, rows_of

_KINDS = {kind.__name__.lower(): kind for kind in (Presence, Number, Category, Date, Text)}


@final
class Encoder:
    """Turn rows into vectors, as learned from a history.

    Numbers are standardised, categories one-hot, dates parts and cycles, texts a few components of their
    character n-grams. Columns that never varied leave nothing, unless they had gaps. An encoder never
    changes after `fit`.

    >>> history = [{"price": 1.0, "colour": "red"}, {"price": 3.0, "colour": "blue"}]
    >>> encoder = Encoder.fit(history)
    >>> encoder.names
    ('price', 'colour=blue', 'colour=red')
    >>> encoder.transform_one({"price": 4.0, "colour": "green"})
    array([2., 0., 0.])
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        names = [column.names for column in self.columns]
        starts = accumulate(map(len, names), initial=0)
        self._plan = [
            (column.name, column.write, at) for column, at in zip(self.columns, starts, strict=False)
        ]
        self.names: tuple[str, ...] = tuple(chain.from_iterable(names))
        self.width = len(self.names)
        self.version = _digest(*_state(self.columns))

    @classmethod
    def fit(
        cls, table: Any, *, kinds: Mapping[str, str] | None = None, options: EncoderOptions | None = None
    ) -> "Encoder":
        """Learn from a history: a list of (nested) dicts, a pandas or a polars frame.

        `kinds` overrides what is guessed of a column: "number", "category", "date", "text" or "ignore".
        Values of nested dicts have dotted names, such as "user.age".
        """
        from tercet.encode import fit

        library = fit.fit(table, kinds=kinds or {}, options=options or EncoderOptions())
        return cls(fit.export(library))

    def transform(self, table: Any) -> Matrix:
        """Return the vectors of a table, one a row."""
        rows = rows_of(table)
        out = np.zeros((len(rows), self.width))
        for i, row in enumerate(rows):
            try:
                self._write(row, out[i])
            except ValueError as error:
                raise ValueError(f"row {i}, {error}") from None
        return out

    def transform_one(self, row: Row) -> Vector:
        """Return the vector of one row; unknown names are ignored, absent ones count as missing."""
        out = np.zeros(self.width)
        self._write(rows_of([row])[0], out)
        return out

    def _write(self, row: Row, out: Vector) -> None:
        value_of = flatten(row).get
        for name, write, at in self._plan:
            try:
                write(value_of(name), out, at)
            except ValueError as error:
                raise ValueError(f"column {name!r}: {error}") from None

    def to_state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and a JSON-able rest that make this encoder again."""
        arrays, columns = _state(self.columns)
        return arrays, {"version": self.version, "columns": columns}

    @classmethod
    def from_state(cls, arrays: Mapping[str, Array], spec: Mapping[str, Any]) -> "Encoder":
        """Make the encoder that `to_state` took apart."""
        columns: Any = spec.get("columns")
        if _digest(arrays, columns) != spec.get("version"):
            raise ValueError("the content does not match its version, so it was damaged on the way")
        return cls([_column(i, entry, arrays) for i, entry in enumerate(columns)])

    def save(self, path: str | PathLike[str]) -> None:
        """Write one safetensors file, whose metadata holds the JSON."""
        checkpoint.write(path, "encoder", *self.to_state())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Encoder":
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "encoder")
        try:
            return cls.from_state(arrays, spec)
        except ValueError as error:
            raise CheckpointError(f"{path} holds no sound encoder: {error}") from error

    def __repr__(self) -> str:
        return f"Encoder(width={self.width}, version={self.version!r})"


def _state(columns: Sequence[Column]) -> tuple[dict[str, Array], list[dict[str, Any]]]:
    arrays: dict[str, Array] = {}
    entries = []
    for i, column in enumerate(columns):
        entry: dict[str, Any] = {"kind": type(column).__name__.lower()}
        for field in fields(column):
            value = getattr(column, field.name)
            if isinstance(value, np.ndarray):
                arrays[f"{i}.{field.name}"] = value
            else:
                entry[field.name] = value
        entries.append(entry)
    return arrays, entries


def _column(i: int, entry: Mapping[str, Any], arrays: Mapping[str, Array]) -> Column:
    kind = _KINDS[entry["kind"]]
    values: dict[str, Any] = {}
    for field in fields(kind):
        value = entry[field.name] if field.name in entry else arrays[f"{i}.{field.name}"]
        values[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def _digest(arrays: Mapping[str, Array], columns: Any) -> str:
    content = hashlib.blake2b(json.dumps(columns, sort_keys=True).encode(), digest_size=8)
    for name in sorted(arrays):
        array = arrays[name]
        content.update(f"{name} {array.dtype.str} {array.shape}".encode())
        content.update(array.tobytes())
    return content.hexdigest()
