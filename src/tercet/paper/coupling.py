"""Figure 3: how far arms lie from the anchor in the learned space, against how they follow it."""

from typing import TYPE_CHECKING

import numpy as np

from tercet.checks import Vector
from tercet.paper import anchor_training, style
from tercet.paper.anchor_training import OURS, PAPER, TITLES, TRAINERS
from tercet.paper.base import Claim, Item, Order, Picture, Tables, Verdict, above, verdict
from tercet.paper.style import NORMAL
from tercet.statistics import Interval, interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ASIDE = 0.04  # of ρ, so that bars do not hide each other


def measure(order: Order) -> Tables:
    """Train phi; return distances to the anchor, their summary, and how each phi ranks them by rho."""
    rows = anchor_training.arm_embeddings(order)
    return tables_of(rows.loc[rows["arm"] > 0, ["trainer", "seed", "stage", "arm", "rho", "distance"]])


def tables_of(distances: "pd.DataFrame") -> Tables:
    """Return all that is drawn and judged, from the distance of each arm."""
    return {"distances": distances, "summary": _summary(distances), "spearman": _rankings(distances)}


def _summary(distances: "pd.DataFrame") -> "pd.DataFrame":
    groups = distances.groupby(["trainer", "stage", "rho"], sort=False)["distance"]
    return groups.agg(mean="mean", sd="std", n="size").reset_index()


def _rankings(distances: "pd.DataFrame") -> "pd.DataFrame":
    """Spearman's correlation of distance and rho, for each phi."""
    import pandas as pd
    from scipy.stats import spearmanr

    rows = []
    for (trainer, stage, seed), part in distances.groupby(["trainer", "stage", "seed"], sort=False):
        value = float(spearmanr(part["rho"], part["distance"]).statistic)
        rows.append({"trainer": trainer, "stage": stage, "seed": seed, "spearman": value})
    return pd.DataFrame(rows)


def draw(tables: Tables) -> list[Picture]:
    """Draw the distances of trained and untrained phi, one panel a trainer."""
    summary, rankings = tables["summary"], tables["spearman"]
    figure, axes = style.panels(1, 2, height=2.7, sharey=True)
    for panel, trainer in zip(axes, TRAINERS, strict=True):
        for stage in ("before", "after"):
            part = summary[(summary["trainer"] == trainer) & (summary["stage"] == stage)]
            _series(panel, part, trainer, stage)
        seen = _ranking(rankings, trainer, "after")
        panel.set_title(f"{TITLES[trainer]}: Spearman's correlation {_with_half(seen)}")
        panel.set_xlabel("ρ of the arm")
        panel.set_xticks(sorted(summary["rho"].unique()))
    axes[0].set_ylabel("distance to the anchor (in σ)")
    style.legend_below(figure, columns=3)
    seeds = int(summary["n"].max())
    caption = (
        "Distance between an arm and the anchor in the embedding, against ρ, the paper's parameter of how "
        f"the arm follows the anchor; {seeds} seeds. The paper does not say of what its bars are {NORMAL} "
        f"sigma: thin bars with caps are {NORMAL} standard deviations of the seeds, thick bars {NORMAL} "
        "standard errors of their mean. Titles have the mean over seeds of Spearman's correlation, with its "
        "95 % interval (Student's t). Not in the paper: the untrained phi as a control (moved aside a "
        "little), and our trainer (right)."
    )
    return [Picture(name="coupling", figure=figure, caption=caption)]


def _series(panel: "Axes", part: "pd.DataFrame", trainer: str, stage: str) -> None:
    part = part.sort_values("rho")
    colour, _, marker, width = style.look(trainer)
    line: object = "-"
    label = f"phi after training, {TITLES[trainer]}"
    if stage == "before":
        colour, line, marker, label = style.GREY, style.DOT, "x", "phi before training"
    middle, sd = part["mean"].to_numpy(), part["sd"].to_numpy()
    x = part["rho"].to_numpy() + (ASIDE if stage == "before" else 0)
    error = sd / np.sqrt(part["n"].to_numpy())
    panel.errorbar(x, middle, NORMAL * sd, color=colour, linestyle="none", linewidth=0.7)
    panel.errorbar(x, middle, NORMAL * error, color=colour, linestyle="none", elinewidth=2.4, capsize=0)
    panel.plot(x, middle, color=colour, linestyle=line, marker=marker, linewidth=width, label=label)


def _ranking(rankings: "pd.DataFrame", trainer: str, stage: str) -> Interval:
    return interval(_values(rankings, trainer, stage))


def _values(rankings: "pd.DataFrame", trainer: str, stage: str) -> Vector:
    rows = rankings[(rankings["trainer"] == trainer) & (rankings["stage"] == stage)]
    return np.asarray(rows.sort_values("seed")["spearman"], dtype=np.float64)


def _with_half(value: Interval) -> str:
    return f"{value.mean:.2f} ± {value.half:.2f}"


def claims(tables: Tables) -> list[Claim]:
    """Judge that distance falls with rho, at every step of rho, and that training made it so."""
    return [_falls(tables), _falls_everywhere(tables), _learned(tables)]


def _below_zero(value: Interval) -> Verdict:
    """The whole 95 % interval must lie below 0."""
    return above(Interval(-value.mean, value.half))


def _falls(tables: Tables) -> Claim:
    from scipy.stats import spearmanr

    seen = _ranking(tables["spearman"], PAPER, "after")
    distances = tables["distances"]
    rows = distances[(distances["trainer"] == PAPER) & (distances["stage"] == "after")]
    pooled = spearmanr(rows["rho"], rows["distance"]).statistic
    ours = _ranking(tables["spearman"], OURS, "after")
    return Claim(
        paper="The more correlated an arm is to the anchor, the lower its distance, and vice versa.",
        ours=(
            f"Spearman's correlation of distance and ρ is {_with_half(seen)} by seed (95 % interval, "
            f"{rows['seed'].nunique()} seeds) and {pooled:.2f} over all seeds together; "
            f"with our trainer {_with_half(ours)}."
        ),
        verdict=_below_zero(seen),
        note=(
            "The distance measures closeness of rewards, not information: the arm of ρ = -1 tells as much "
            "about the anchor as that of ρ = 1."
        ),
    )


def _falls_everywhere(tables: Tables) -> Claim:
    steps = {trainer: _steps(tables["distances"], trainer) for trainer in TRAINERS}
    falling = {trainer: sum(step.mean < 0 for step in found) for trainer, found in steps.items()}
    verdicts = [_below_zero(step) for step in steps[PAPER]]
    return Claim(
        paper="Implied: the mean distance falls from each ρ to the next (Figure 3).",
        ours=(
            f"It falls at {falling[PAPER]} of {len(steps[PAPER])} steps of ρ, at "
            f"{verdicts.count('reproduced')} of them with the 95 % interval of the paired change "
            f"(our trainer: at {falling[OURS]} of {len(steps[OURS])})."
        ),
        verdict=verdict(set(verdicts) == {"reproduced"}, refuted="not reproduced" in verdicts),
        note="Reproduced if all intervals lie below 0, not reproduced if one lies above.",
    )


def _steps(distances: "pd.DataFrame", trainer: str) -> list[Interval]:
    """Return the change of the distance from each rho to the next, paired by seed."""
    rows = distances[(distances["trainer"] == trainer) & (distances["stage"] == "after")]
    wide = rows.pivot_table(index="seed", columns="rho", values="distance").sort_index(axis=1)
    return [interval(change) for change in np.diff(wide.to_numpy(), axis=1).T]


def _learned(tables: Tables) -> Claim:
    rankings = tables["spearman"]
    before, after = (_values(rankings, PAPER, stage) for stage in ("before", "after"))
    change = interval(after - before)
    return Claim(
        paper="phi can capture the notion of coupling (section 5.1).",
        ours=(
            f"Spearman's correlation is {_with_half(interval(before))} before training and changes by "
            f"{_with_half(change)} (95 % interval of the paired change)."
        ),
        verdict=_below_zero(change),
        note="Reproduced if training lowers the correlation. The untrained phi is our control; the paper's "
        "figure has none.",
    )


ITEM = Item(
    name="coupling",
    title="Distance to the anchor arm against ρ",
    where="Figure 3, section 5.1 and appendix A.5",
    says="The more an arm is correlated with the anchor, the nearer it is embedded.",
    seeds=10,
    quick_seeds=3,
    measure=measure,
    draw=draw,
    claims=claims,
    deviations=(
        anchor_training.BATCH,
        anchor_training.SHAPE,
        "The untrained phi is added as a control.",
        anchor_training.QUICK,
    ),
)
