"""Everything that is reproduced of the paper, in its order there."""

from importlib import import_module

from tercet.paper.base import Item

NAMES = (
    "drift",
    "thompson",
    "coupling",
    "openml",
    "mind",
    "correlation",
    "arms",
    "mnist",
    "bandwidth",
    "ablations",
    "time",
    "complexity",
    "theorem-1",
    "theorem-2",
    "regret",
    "claims",  # last: it is about all others
)


def item(name: str) -> Item:
    """Return what goes by a name.

    >>> item("theorem-1").name
    'theorem-1'
    """
    if name not in NAMES:
        raise ValueError(f"the paper has no {name!r} here; there are {', '.join(NAMES)}")
    found: Item = import_module(f"tercet.paper.{name.replace('-', '_')}").ITEM
    return found
