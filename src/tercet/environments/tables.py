"""Tables of rows with a class each, from a folder of NPZ files, from scikit-learn or from OpenML."""

import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Int, Shaped

from tercet.checks import Array, Matrix
from tercet.environments.base import DATA_VARIABLE, MissingDataError
from tercet.types import Ids


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a table of the paper is found, and what its features are divided by."""

    file: str  # without .npz
    version: int  # on OpenML
    unit: float = 1.0


SOURCES: Mapping[str, Source] = {
    "shuttle": Source(file="shuttle", version=1),
    "MagicTelescope": Source(file="magic", version=1),
    "covertype": Source(file="covertype", version=3),
    # The one preparation that the paper's appendix names: pixels become numbers from 0 to 1.
    "mnist_784": Source(file="mnist", version=1, unit=255.0),
}
BUNDLED = ("breast_cancer", "digits", "iris", "wine")  # files of scikit-learn, under its names for them
ALIASES = {"magic": "MagicTelescope", "magictelescope": "MagicTelescope", "mnist": "mnist_784"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Features as they are stored (a pixel takes a byte, not eight), and labels 0 to classes - 1."""

    features: Shaped[np.ndarray, "rows _"]
    labels: Int[np.ndarray, "rows"]
    classes: int
    unit: float = 1.0

    def __len__(self) -> int:
        return len(self.labels)

    def contexts(self, rows: Ids) -> Matrix:
        """Return the features of these rows as numbers."""
        contexts = self.features[rows].astype(np.float64)
        contexts /= self.unit
        return contexts


def canonical(name: str) -> str:
    """Return the name that OpenML uses; names that are not the paper's pass unchanged.

    >>> canonical("mnist"), canonical("letter")
    ('mnist_784', 'letter')
    """
    if not re.fullmatch(r"[\w.()\- ]+", name):  # it becomes a file name
        raise ValueError(f"data must be the name of an OpenML data set, such as covertype; got {name!r}")
    return ALIASES.get(name.lower(), name.lower() if name.lower() in SOURCES else name)


def load(name: str, folder: str | PathLike[str] | None = None) -> Table:
    """Return a table, from NAME.npz in the folder (or in $TERCET_DATA) if it is there, else from OpenML.

    The paper's four are called shuttle.npz, magic.npz, covertype.npz and mnist.npz; each holds X (rows x
    features) and y (labels). Those that come with scikit-learn (`BUNDLED`) need no network. A process
    reads a table once.
    """
    name = canonical(name)
    source = SOURCES.get(name)
    place = folder or os.environ.get(DATA_VARIABLE)
    if place:
        if not Path(place).is_dir():
            raise ValueError(f"the data folder must exist; there is none at {place}")
        path = Path(place).resolve() / f"{source.file if source else name}.npz"
        if path.exists():
            return _from_file(path, path.stat().st_mtime_ns, source.unit if source else 1.0)
    return _from_sklearn(name) if name in BUNDLED else _from_openml(name)


@lru_cache(maxsize=4)
def _from_file(path: Path, modified: int, unit: float) -> Table:  # noqa: ARG001 - a new file is read anew
    try:
        # NumPy leaves a file open that it can not read, so we open it.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            columns = {name: file[name] for name in ("X", "y") if name in file}
            held = list(file)
    # NumPy reports damage in all these ways, depending on where it is.
    except (OSError, EOFError, BadZipFile, zlib.error, TypeError, ValueError) as error:
        raise ValueError(f"{path} can not be read as an NPZ file: {error}") from error
    if len(columns) < 2:
        raise ValueError(f"{path} must hold X (rows x features) and y (labels); it has {held}")
    return _table(str(path), columns["X"], columns["y"], unit)


@lru_cache(maxsize=4)
def _from_sklearn(name: str) -> Table:
    import sklearn.datasets

    features, labels = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return _table(name, features, labels, 1.0)


@lru_cache(maxsize=4)
def _from_openml(name: str) -> Table:
    from sklearn.datasets import fetch_openml

    source = SOURCES.get(name)
    version: int | str = source.version if source else "active"
    try:
        bunch = fetch_openml(name, version=version, as_frame=True, parser="auto")
    except OSError as error:  # no network, or a server that refuses
        file = source.file if source else name
        raise MissingDataError(
            f"{name} can not be fetched from OpenML ({error}); give a folder that holds {file}.npz "
            f"(--data DIR, or the environment variable {DATA_VARIABLE})"
        ) from error
    if bunch.target is None or getattr(bunch.target, "ndim", 1) != 1:
        raise ValueError(f"{name} must have one target column on OpenML; it has none, or several")
    if bunch.target.isna().any():
        raise ValueError(f"{name} must have a class in every row; some are missing on OpenML")
    return _table(name, _numbers(name, bunch.data), np.asarray(bunch.target), source.unit if source else 1.0)


def _numbers(name: str, frame: Any) -> Array:
    """Return numeric columns as they are, and a column of 0 and 1 for each value of a nominal one.

    Two values need a single column. Row numbers are left out: where a file is sorted by class, they
    foretell it.
    """
    columns = []
    for title, column in frame.items():
        if str(title).strip(" :").lower() == "id":
            continue
        if column.dtype.kind in "iufb":
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
            continue
        values = sorted(column.dropna().unique(), key=str)
        shown = values[1:] if len(values) == 2 and column.notna().all() else values
        columns += [(column == value).to_numpy(dtype=np.float64, na_value=0.0) for value in shown]
    if not columns:
        raise ValueError(f"{name} must have at least one feature; it has none")
    return np.column_stack(columns)


def _table(name: str, features: Array, labels: Array, unit: float) -> Table:
    if features.ndim != 2 or features.dtype.kind not in "iufb" or not features.shape[1]:
        raise ValueError(
            f"{name}: X must be a matrix of numbers (rows x features); "
            f"got shape {features.shape} of {features.dtype}"
        )
    if labels.shape != features.shape[:1]:
        raise ValueError(
            f"{name}: y must have a label for each of the {len(features)} rows of X; got shape {labels.shape}"
        )
    if not np.isfinite(features).all():
        row = int(np.argwhere(~np.isfinite(features))[0, 0])
        raise ValueError(f"{name}: X must be finite, without missing values; row {row} is not")
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.round(labels)):
        raise ValueError(f"{name}: y must be classes; got fractions or missing values")
    values, codes = np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)
    if len(values) < 2:
        raise ValueError(f"{name}: y must have at least two classes; got {len(values)}")
    features.flags.writeable = codes.flags.writeable = False  # the process shares them
    return Table(features=features, labels=codes, classes=len(values), unit=unit)
