"""Values in words: what two runs are compared by, and what is kept beside their results."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from types import CodeType, FunctionType
from typing import Any

import numpy as np


def words(value: Any) -> str:
    """Return a value's options in words that differ where the options do, and are the same in any process.

    Arrays and functions come with a digest, because their repr hides what is in them.

    >>> words({"width": np.zeros(3), "names": ("a", "b")})
    "{'width': array(3,)#04d43c, 'names': ('a', 'b')}"
    """
    if isinstance(value, np.ndarray):
        return f"array{value.shape}#{_digest(np.ascontiguousarray(value).tobytes())}"
    if isinstance(value, FunctionType):
        return f"{value.__qualname__}#{_digest(_code(value.__code__).encode())}"
    if is_dataclass(value) and not isinstance(value, type):
        options = [f"{f.name}={words(getattr(value, f.name))}" for f in fields(value) if f.init and f.repr]
        return f"{type(value).__qualname__}({', '.join(options)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {words(item)}" for key, item in value.items()) + "}"
    if type(value) in (list, tuple):
        inside = ", ".join(map(words, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _code(code: CodeType) -> str:
    """Return what a function does, wherever it is written."""
    constants = [_code(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=3).hexdigest()
