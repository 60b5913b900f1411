"""One look for each policy, in every figure."""

import pytest

from tercet.paper import style
from tercet.roster import roster


def test_every_policy_of_the_roster_has_a_look() -> None:
    for one_hot in (True, False):
        for name in roster(one_hot=one_hot):
            style.look(name)


def test_no_two_policies_look_alike_even_in_grey() -> None:
    in_grey = [(str(look.line), look.marker) for look in style.LOOKS.values()]
    assert len(set(in_grey)) == len(in_grey)


def test_an_unknown_policy_is_told_where_looks_are() -> None:
    with pytest.raises(ValueError, match="LOOKS"):
        style.look("nobody")


def test_a_legend_keeps_one_order_whatever_was_drawn_first() -> None:
    assert style.in_order(["uniform", "C3", "LinUCB"]) == ["C3", "LinUCB", "uniform"]
