"""Checks at the door: bad input ends here, with an error that says what came and what was expected."""

from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

Array = Shaped[np.ndarray, "..."]
Matrix = Float[np.ndarray, "_ _"]
Vector = Float[np.ndarray, "_"]

# Decisions run in float32, so a value beyond its range would turn into infinity half-way through.
LARGEST = float(np.finfo(np.float32).max)


def matrix(name: str, value: Any, *, columns: int | None = None) -> Matrix:
    """Return value as a finite float64 matrix, one row a sample."""
    array = _floats(name, value)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a matrix (rows x features); got an array of shape {array.shape}")
    if columns is not None and array.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns; got {array.shape[1]}")
    _finite(name, array)
    return array


def vector(name: str, value: Any, *, length: int | None = None) -> Vector:
    """Return value as a finite float64 vector."""
    array = _vector(name, value, length)
    _finite(name, array)
    return array


def unit(name: str, value: Any, *, length: int | None = None) -> Vector:
    """Return value as a vector within [0, 1]."""
    array = _vector(name, value, length)
    # False for NaN too; reductions without a wrapper, because every outcome comes through here.
    if array.size and not (np.minimum.reduce(array) >= 0 and np.maximum.reduce(array) <= 1):
        _finite(name, array)
        row = np.flatnonzero((array < 0) | (array > 1))[0]
        raise ValueError(f"{name} must lie in [0, 1]; got {array[row]:g} in row {row}")
    return array


def integers(name: str, value: Any, *, length: int) -> Array:
    """Return value as an int64 vector."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(
            f"{name} must be integers (tercet.stable_ids makes them of strings); got {array.dtype}"
        )
    if array.shape != (length,):
        raise ValueError(f"{name} must have length {length}; got an array of shape {array.shape}")
    return array.astype(np.int64)


def number(name: str, value: Any) -> float:
    """Return value as a finite number."""
    try:
        result = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number; got {value!r}") from error
    if not np.isfinite(result):
        raise ValueError(f"{name} must be finite; got {value}")
    return result


def positive(name: str, value: float) -> float:
    """Return value as a finite number above zero."""
    result = number(name, value)
    if result <= 0:
        raise ValueError(f"{name} must be a finite number above 0; got {value}")
    return result


def whole(name: str, value: Any, *, least: int = 1) -> int:
    """Return value as a whole number of at least so many."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more; got {value!r}")
    return int(value)


def _vector(name: str, value: Any, length: int | None) -> Vector:
    array = _floats(name, value)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; got an array of shape {array.shape}")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} must have length {length}; got {len(array)}")
    return array


def _floats(name: str, value: Any) -> Array:
    advice = f"{name} must be numbers in equal rows (tercet.Encoder turns tables into such)"
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "MmUS":  # dates have units; words are not numbers even where they look so
            return array.astype(np.float64, order="C", copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{advice}: {error}") from error
    raise ValueError(f"{advice}; got {array.dtype}")


def _finite(name: str, array: Array) -> None:
    # False for NaN too. Absolute values would first fill an array of their own, which takes longer.
    if array.size and not (
        np.minimum.reduce(array, axis=None) >= -LARGEST and np.maximum.reduce(array, axis=None) <= LARGEST
    ):
        place = tuple(int(i) for i in np.argwhere(~(np.abs(array) <= LARGEST))[0])
        raise ValueError(f"{name} must be finite and within float32's range; got {array[place]} at {place}")
