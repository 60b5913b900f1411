"""The scatter of appendix A.6: where the arms lie in phi's space before and after training."""

from typing import TYPE_CHECKING

import numpy as np

from tercet.checks import Matrix, Vector
from tercet.paper import anchor_training, style
from tercet.paper.anchor_training import OURS, PAPER
from tercet.paper.base import Claim, Item, Order, Picture, Tables, above
from tercet.statistics import interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SHOWN = 0  # the seed in the picture
CHANCE = 0.5  # of a positive arm to be nearer than a negative one
PANELS = (
    (PAPER, "before", "before training"),
    (PAPER, "after", "after, the paper's trainer"),
    (OURS, "after", "after, our trainer"),
)
KINDS = (
    ("anchor", style.BLUE, "*", 9.0),
    ("ρ > 0", style.GREEN, "o", 5.0),
    ("ρ < 0", style.VERMILION, "s", 4.5),
)


def measure(order: Order) -> Tables:
    """Train phi; return all places, and how often a positive arm is nearer than a negative one."""
    return tables_of(anchor_training.arm_embeddings(order))


def tables_of(places: "pd.DataFrame") -> Tables:
    """Return all that is drawn and judged, from the place of each arm."""
    return {"places": places, "nearer": _nearer(places)}


def _nearer(places: "pd.DataFrame") -> "pd.DataFrame":
    """The share of pairs of a positive and a negative arm in which the positive one is nearer.

    One half is chance, by symmetry, whatever the scale of the space, which training changes.
    """
    import pandas as pd

    rows = []
    others = places[places["arm"] > 0]
    for (trainer, stage, seed), part in others.groupby(["trainer", "stage", "seed"], sort=False):
        positive, negative = (part.loc[part["rho"] * sign > 0, "distance"].to_numpy() for sign in (1, -1))
        share = float((positive[:, None] < negative).mean())
        rows.append({"trainer": trainer, "stage": stage, "seed": seed, "share": share})
    return pd.DataFrame(rows)


def draw(tables: Tables) -> list[Picture]:
    """Draw one seed's arms, before and after."""
    places, nearer = tables["places"], tables["nearer"]
    figure, axes = style.panels(1, 3, height=2.75)
    for panel, (trainer, stage, title) in zip(axes, PANELS, strict=True):
        chosen = (places["trainer"] == trainer) & (places["stage"] == stage) & (places["seed"] == SHOWN)
        _scatter(panel, places[chosen].sort_values("arm"))
        panel.set_title(title)
    axes[0].set_ylabel("second coordinate (in σ)")
    style.legend_below(figure, columns=3)
    caption = (
        "The arms in phi's two-dimensional space, with the anchor moved to the origin, before training and "
        f"after it; numbers are ρ. One seed ({SHOWN}) of {nearer['seed'].nunique()}, nothing averaged, so "
        "there are no error bars. Scales differ: before training all arms lie within a fraction of a "
        "bandwidth. The dotted circle has a radius of one bandwidth σ (where the panel is large enough). Our "
        "trainer (right) is not in the paper."
    )
    return [Picture(name="arms", figure=figure, caption=caption)]


def _scatter(panel: "Axes", rows: "pd.DataFrame") -> None:
    points = rows[["x", "y"]].to_numpy()
    points = points - points[0]
    kinds = np.where(rows["arm"] == 0, 0, np.where(rows["rho"] > 0, 1, 2))
    for number, (label, colour, marker, size) in enumerate(KINDS):
        x, y = points[kinds == number].T
        panel.plot(x, y, linestyle="none", marker=marker, color=colour, markersize=size, label=label)
    _frame(panel, points)
    names = [f"{rho:g}" if arm else "" for arm, rho in zip(rows["arm"], rows["rho"], strict=True)]
    _label(panel, points, names)


def _frame(panel: "Axes", points: Matrix) -> None:
    """Show all points in a square, and a circle of one bandwidth where it helps to see the scale."""
    from matplotlib.patches import Circle

    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    reach = float(np.ptp(points, axis=0).max()) * 0.72
    if reach > 1:
        panel.add_patch(Circle((0, 0), 1, fill=False, color=style.GREY, linestyle=style.DOT, linewidth=0.8))
    panel.set_xlim(centre[0] - reach, centre[0] + reach)
    panel.set_ylim(centre[1] - reach, centre[1] + reach)
    panel.set_aspect("equal")
    panel.set_xlabel("first coordinate (in σ)")


def _label(panel: "Axes", points: Matrix, names: list[str]) -> None:
    """Write each name on the side of its point that faces away from the point nearest to it."""
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distances, np.inf)
    for i, name in enumerate(names):
        away = points[i] - points[distances[i].argmin()]
        # Points of the page: a name is wider than it is high.
        offset = np.array([13, 9]) * away / max(float(np.linalg.norm(away)), 1e-12)
        panel.annotate(
            name,
            points[i],
            offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.8},
        )


def claims(tables: Tables) -> list[Claim]:
    """Judge the order of distances after training."""
    return [_after(tables)]


def _shares(tables: Tables, trainer: str, stage: str) -> Vector:
    rows = tables["nearer"]
    chosen = rows[(rows["trainer"] == trainer) & (rows["stage"] == stage)]
    return np.asarray(chosen["share"], dtype=np.float64)


def _after(tables: Tables) -> Claim:
    seen, ours = (interval(_shares(tables, trainer, "after")) for trainer in (PAPER, OURS))
    return Claim(
        paper="Implied: after training, positively correlated arms lie nearer to the anchor than negatively "
        "correlated ones.",
        ours=(
            f"Of all pairs of one positive and one negative arm, the positive one is nearer in "
            f"{seen.mean:.0%} ± {seen.half:.0%} (95 % interval over {len(_shares(tables, PAPER, 'after'))} "
            f"seeds; chance is {CHANCE:.0%}); with our trainer {ours.mean:.0%} ± {ours.half:.0%}."
        ),
        verdict=above(seen, CHANCE),
    )


ITEM = Item(
    name="arms",
    title="Arm embeddings before and after training",
    where="Appendix A.6",
    says="Training moves positively correlated arms near the anchor, negatively correlated ones far away.",
    seeds=10,
    quick_seeds=3,
    measure=measure,
    draw=draw,
    claims=claims,
    deviations=(
        anchor_training.BATCH,
        anchor_training.SHAPE,
        "The anchor is moved to the origin: only distances matter to the kernel.",
        anchor_training.QUICK,
    ),
)
