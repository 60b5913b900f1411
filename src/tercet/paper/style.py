"""How our figures look: one colour, line and marker for each policy, in every figure.

Colours are of Okabe and Ito's palette and keep apart for every kind of colour vision; lines and markers
tell policies apart in grey.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tercet import files
from tercet.checks import Array, Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE = (
    "#000000",
    "#0072B2",
    "#56B4E9",
    "#009E73",
    "#E69F00",
    "#D55E00",
    "#CC79A7",
)
GREY, WINE, OLIVE, GOLD = "#7F7F7F", "#882255", "#8A7A2E", "#B8860B"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # for what is no policy
COLUMN, PAGE = 3.4, 7.0  # inches: the widths of a column and of a page
DOTS = 160  # an inch, of the PNG
NORMAL = 1.96  # standard errors to either side: the paper's bars


class Look(NamedTuple):
    """How a policy is drawn."""

    colour: str
    line: Any
    marker: str
    width: float = 1.1


DASH, DOT, DASHDOT, LONG = (0, (4, 1.5)), (0, (1, 1.3)), (0, (4, 1.2, 1, 1.2)), (0, (8, 2))
LOOKS: Mapping[str, Look] = {
    "C3, as in the paper": Look(VERMILION, "-", "o", 1.8),
    "C3": Look(BLACK, "-", "s", 1.8),
    "C3, greedy": Look(BLACK, DASH, "^", 1.4),
    "C3, NWKR": Look(BLACK, DOT, "v", 1.4),
    "C3, keeping everything": Look(BLACK, DASHDOT, "D", 1.4),
    "LinUCB": Look(BLUE, "-", "D"),
    "LinUCB, shared": Look(BLUE, LONG, "d"),
    "LinTS": Look(BLUE, DASH, "<"),
    "SquareCB": Look(BLUE, DASHDOT, ">"),
    "Bayesian linear regression": Look(BLUE, DOT, "h"),
    "SW-LinUCB": Look(SKY, "-", "p"),
    "D-LinUCB": Look(SKY, DASH, "P"),
    "restless, simplified": Look(SKY, DOT, "H"),
    "NeuralUCB": Look(PURPLE, "-", "X"),
    "NeuralTS": Look(PURPLE, DASH, "*"),
    "NeuralUCB, window": Look(PURPLE, DASHDOT, "x"),
    "NeuralTS, window": Look(PURPLE, DOT, "+"),
    "NeuralLinear": Look(WINE, "-", "8"),
    "MLP, ε-greedy": Look(WINE, DASH, "s"),
    "two towers": Look(WINE, LONG, "s"),
    "two towers, small": Look(WINE, DASHDOT, "o"),
    "two towers, large": Look(WINE, DOT, "D"),
    "LightGBM, greedy, not updated": Look(GREEN, "-", "^"),
    "LightGBM, refitted": Look(GREEN, DASH, "o"),
    "LightGBM, bootstrapped": Look(GREEN, DOT, "s"),
    "Vowpal Wabbit squarecb": Look(ORANGE, "-", "v"),
    "Vowpal Wabbit cover": Look(ORANGE, DASH, "v"),
    "Vowpal Wabbit regcb": Look(ORANGE, DOT, "<"),
    "KernelUCB": Look(OLIVE, "-", "h"),
    "kNN-UCB": Look(OLIVE, DASH, "p"),
    "Gaussian process": Look(OLIVE, DOT, "d"),
    "correlated arms": Look(GREY, DASHDOT, "<"),
    "Thompson per arm": Look(GREY, DASH, "X"),
    "click counter": Look(GREY, LONG, "P"),
    "uniform": Look(GREY, DOT, "."),
    "supervised": Look(GOLD, LONG, "*"),
    "greedy per arm": Look(GREY, "-", "x"),
}


def look(policy: str) -> Look:
    """Return how a policy is drawn; "X, tuned" is drawn as X.

    >>> look("LinUCB, tuned") == look("LinUCB")
    True
    """
    plain = policy.removesuffix(", tuned")
    if plain not in LOOKS:
        raise ValueError(f"{policy!r} has no look; add it to tercet.paper.style.LOOKS")
    return LOOKS[plain]


def in_order(policies: Iterable[str]) -> list[str]:
    """Return policies in the order in which every legend has them."""
    order = {name: number for number, name in enumerate(LOOKS)}
    return sorted(set(policies), key=lambda name: (order[name.removesuffix(", tuned")], name))


@contextmanager
def used() -> Iterator[None]:
    """Draw and save in our style."""
    import matplotlib as mpl

    settings: Any = {
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#E3E3E3",
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.2,
        "lines.markersize": 3.5,
        "errorbar.capsize": 2,
        "figure.constrained_layout.use": True,
        "savefig.dpi": DOTS,
        "pdf.fonttype": 42,  # text that stays text
    }
    with mpl.rc_context(settings):
        yield


def panels(
    rows: int = 1, columns: int = 1, *, width: float = PAGE, height: float = 2.4, **options: Any
) -> tuple["Figure", Any]:
    """Return a figure of `width` x `height` inches with its axes (an array if there are several)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **options)


def curve(axes: "Axes", x: Array, middle: Vector, half: Vector | None, policy: str) -> None:
    """Draw a policy's line with a band of `half` to either side, and a few markers on it."""
    colour, line, marker, width = look(policy)
    place = list(LOOKS).index(policy.removesuffix(", tuned"))
    every = max(len(x) // 5, 1)
    axes.plot(
        x,
        middle,
        color=colour,
        linestyle=line,
        linewidth=width,
        marker=marker,
        markevery=(place % every, every),  # not one above the other
        label=policy,
    )
    if half is not None and not np.isnan(half).all():
        axes.fill_between(x, middle - half, middle + half, color=colour, alpha=0.15, linewidth=0)


def legend_below(figure: "Figure", columns: int = 4) -> None:
    """Put one legend of all axes below the figure, where it hides no data."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries |= {label: entries.get(label, handle) for label, handle in zip(labels, handles, strict=True)}
    known = in_order(name for name in entries if name.removesuffix(", tuned") in LOOKS)
    names = known + [name for name in entries if name not in known]
    figure.legend([entries[name] for name in names], names, loc="outside lower center", ncols=columns)


def save(figure: "Figure", path: Path) -> None:
    """Write the figure beside `path` as a vector PDF and as a PNG; equal figures give equal files."""
    for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
        # Not with_suffix: a name may have a dot.
        with files.replacing(path.with_name(f"{path.name}.{kind}")) as draft:
            figure.savefig(draft, format=kind, metadata=metadata)
