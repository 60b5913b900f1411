"""Shapes and types are checked at run time in tests (see conftest.py)."""

from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintPep673Exception

check_strictly = beartype(
    conf=BeartypeConf(is_pep484_tower=True)
)  # an int is fine where a float is asked for


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate one function or method; beartype knows no Self outside a class that it decorates itself."""
    try:
        return check_strictly(function)
    except BeartypeDecorHintPep673Exception:
        return function
