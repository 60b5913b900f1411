"""What belongs to one command and one report; here: everything that is reproduced of the paper."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tercet.paper.base import Item


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Items by name, and the words in which their report speaks of them.

    name : of the command, `tercet NAME`.
    package : where every item has a module of its name.
    names : in the order of the report.
    title, about : the report's headline, and a few sentences under it.
    whose : of whom the claims are.
    said, source : the headings of what is claimed, as a sentence and in short.
    deviations : the heading of what the reader of an item should know.
    verdicts : what can come out.
    """

    name: str
    package: str
    names: tuple[str, ...]
    title: str
    about: str
    whose: str
    said: str
    source: str
    deviations: str
    verdicts: tuple[str, ...]

    def item(self, name: str) -> "Item":
        """Return what goes by a name.

        >>> PAPER.item("theorem-1").name
        'theorem-1'
        """
        if name not in self.names:
            raise ValueError(f"`tercet {self.name}` has no {name!r}; there are {', '.join(self.names)}")
        found: Item = import_module(f"{self.package}.{name.replace('-', '_')}").ITEM
        return found


PAPER = Catalogue(
    name="paper",
    package="tercet.paper",
    names=(  # in their order there
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
    ),
    title="The C3 paper, figure by figure",
    about="Each figure, table and theorem of the paper, measured again with tercet. What the paper says "
    "stands beside what we measured; verdicts are computed from the measured rows by rules written "
    "in the code.",
    whose="of the paper",
    said="The paper says",
    source="The paper",
    deviations="Where we do otherwise than the paper",
    verdicts=("reproduced", "not reproduced", "undecided", "not testable"),
)
