"""Files that hold arrays and a JSON spec: safetensors, written whole or not at all, never pickle."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tercet import files
from tercet.checks import Array

FORMAT = 1
HEADER = "tercet"


class CheckpointError(ValueError):
    """A file that is missing, damaged, or not what was asked for."""


def write(path: str | PathLike[str], kind: str, arrays: Mapping[str, Array], spec: Mapping[str, Any]) -> None:
    """Write arrays and spec to a new file, then put it in place of the old one in a single step."""
    from safetensors.numpy import save_file

    # One entry only: safetensors writes several in any order, and equal states should give equal files.
    header = {
        HEADER: json.dumps({"kind": kind, "format": FORMAT, "spec": spec}, allow_nan=False, default=_plain)
    }
    with files.replacing(Path(path)) as draft:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, draft, header)


def read(path: str | PathLike[str], kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return arrays and spec of a file that `write` made for this kind."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get(HEADER, "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} can not be read as a checkpoint: {error}") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"{path} has a damaged header: {header!r}")
    if header.get("kind") != kind:
        raise CheckpointError(f"{path} must hold a {kind}; it holds {header.get('kind', 'something else')}")
    if header.get("format") != FORMAT:
        raise CheckpointError(f"{path} is of format {header.get('format')}; this tercet reads {FORMAT}")
    if not isinstance(header.get("spec"), dict):
        raise CheckpointError(f"{path} has a damaged header: it must hold a spec")
    return arrays, header["spec"]


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a spec holds JSON's types only; got {type(value).__name__}")
