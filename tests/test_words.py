from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tercet.policies.linear import LinUCB
from tercet.words import words


@dataclass
class Options:
    weights: Any
    folder: str = field(default="here", repr=False)


def test_options_in_words_say_what_differs() -> None:
    assert words(LinUCB(width=0.1)) == "LinUCB(width=0.1, penalty=1.0, discount=1.0, features='shared')"
    assert words(LinUCB(width=0.1)) != words(LinUCB(width=0.2))


def test_arrays_differ_where_their_repr_does_not() -> None:
    one, two = np.zeros(5000), np.zeros(5000)
    two[2500] = 1.0
    assert repr(one) == repr(two)
    assert words(Options(one)) != words(Options(two))
    assert words(Options(one)) == words(Options(one.copy()))


def test_functions_differ_by_what_they_do_not_by_where_they_are() -> None:
    def make(text: str, lines: int) -> Any:
        space: dict[str, Any] = {}
        exec("\n" * lines + f"f = lambda x: {text}", space)
        return space["f"]

    assert words(make("x + 1", 0)) == words(make("x + 1", 7))
    assert words(make("x + 1", 0)) != words(make("x + 2", 0))


def test_fields_that_are_not_shown_do_not_count() -> None:
    assert words(Options(1, folder="here")) == words(Options(1, folder="there"))


def test_objects_without_a_good_repr_have_no_address() -> None:
    assert " at 0x" not in words([object(), {"a": (object(),)}])
