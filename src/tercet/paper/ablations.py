"""What the paper asserts of C3's parts without a figure: each is taken away, or changed, in turn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tercet.environments import tables as data_tables
from tercet.environments.base import MissingDataError
from tercet.experiment import Experiment
from tercet.metrics import calibration_error
from tercet.paper import style
from tercet.paper.ablation_worlds import DATA, DRIFTING, FULL, OURS, PAPER, PER_ARM, SMALL, WEIGHTS, plays
from tercet.paper.base import Claim, Item, Order, Picture, Tables
from tercet.results import ResultError
from tercet.statistics import interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

EARLY = 10  # impressions of an arm that count as its first
TOLERANCE = 0.1  # of the regret: what "is not an issue" may cost


class Pair(NamedTuple):
    """Two policies of one world: what the change costs is the second's figure less the first's."""

    ablation: str
    play: str
    world: str
    kept: str
    changed: str
    what: str = ""  # was changed, where the ablation's name does not say it
    measure: str = "regret"


def measure(order: Order) -> Tables:
    """Play everything, then pair by seed what differs in one thing."""
    import pandas as pd

    runs = []
    for name, part in plays(SMALL if order.quick else FULL, at_hand()).items():
        if not part.worlds:
            continue
        experiment = Experiment(
            policies=part.policies, environments=part.worlds, seeds=order.seeds, steps=part.steps
        )
        try:
            runs += [_figures(name, run, rows) for run, rows in order.play(name, experiment).runs()]
        except ResultError:
            if not order.finished:  # else this part has not begun
                raise
    table = pd.DataFrame(runs)
    return {"runs": table, "differences": differences(table)}


def at_hand() -> list[str]:
    """Return the data sets that can be read; what needs the others is left out, and not judged."""
    found = []
    for name in DATA:
        try:
            data_tables.load(name)
        except MissingDataError:
            continue
        found.append(name)
    return found


def _figures(play: str, run: dict[str, Any], rows: "pd.DataFrame") -> dict[str, Any]:
    early = rows["impression"].between(0, EARLY - 1)
    return {
        "play": play,
        "world": run["environment"],
        "policy": run["policy"],
        "seed": run["seed"],
        "regret": rows["dynamic_regret"].mean(),
        "early_regret": rows.loc[early, "dynamic_regret"].mean(),
        "calibration_error": calibration_error(
            rows["reward"].to_numpy(), rows["predicted"].to_numpy(dtype=float)
        ),
    }


def pairs() -> list[Pair]:
    """Return all that is compared."""
    named = [(name, f"{name}, ") for name in (PAPER, OURS)]
    result = [
        Pair("weights", play, world, name, f"{prefix}NWKR")
        for play, worlds in (("drift", (*DRIFTING, "stationary")), ("logs", ("moving log",)))
        for world in worlds
        for name, prefix in named
    ]
    for figure in ("calibration_error", "regret"):
        others = [f"λ = {weight:g}" for weight in WEIGHTS if weight != 2]
        result += [
            Pair("calibration", "calibration", world, "λ = 2", other, other, figure)
            for world in DATA
            for other in others
        ]
    for world in (*DRIFTING, "stationary"):
        result += [Pair("intervals", "drift", world, name, f"{prefix}one interval") for name, prefix in named]
    for world in DATA:
        result += [
            Pair("logging", "loggers", world, "good log", poor, poor)
            for poor in ("φ of poor log", "poor log")
        ]
    for world in DRIFTING:
        result += [
            Pair("logging", "periods", world, "φ of now", "all of then", "old log"),
            Pair("reuse", "periods", world, "φ of now", "φ of then", "φ of another season"),
            Pair("reuse", "periods", world, "φ of then", "no φ", "no φ, against that"),
        ]
    for figure, what in (("early_regret", "first impressions"), ("regret", "all steps")):
        result += [Pair("cold start", "logs", "arrivals", name, PER_ARM, what, figure) for name, _ in named]
    for world in (*DRIFTING, "stationary"):
        dropping, kept = f"{PAPER}, random drop", f"{PAPER}, nothing forgotten"
        result += [
            Pair("forgetting", "drift", world, dropping, kept, "no forgetting"),
            Pair("forgetting", "drift", world, dropping, PAPER, "fading"),
        ]
    return result


def differences(runs: "pd.DataFrame") -> "pd.DataFrame":
    """Return what each change costs: mean over seeds, and the half-width of its 95 % interval."""
    import pandas as pd

    rows = []
    for pair in pairs():
        part = runs[(runs["play"] == pair.play) & (runs["world"] == pair.world)]
        figures = part.pivot(index="seed", columns="policy", values=pair.measure)
        if {pair.kept, pair.changed} <= set(figures):
            both = figures[[pair.kept, pair.changed]].dropna()
            cost = interval((both[pair.changed] - both[pair.kept]).to_numpy())
            level = {"level": both[pair.kept].mean(), "seeds": len(both)}
            rows.append(pair._asdict() | {"cost": cost.mean, "half": cost.half} | level)
    return pd.DataFrame(rows)


def claims(tables: Tables) -> list[Claim]:
    """Judge each assertion by the intervals of what its change costs."""
    table = tables["differences"].fillna({"what": ""})
    return [_claim(table, statement) for statement in STATEMENTS]


class Statement(NamedTuple):
    """What the paper says of a part, and the rows that must bear it out, all of them.

    pays : rows whose cost must be above 0: the part is good for something.
    harmless : rows whose cost must be below a tenth of the regret: the change is no issue.
    """

    ablation: str
    paper: str
    pays: Mapping[str, Any] | None = None
    harmless: Mapping[str, Any] | None = None
    note: str = ""


def _claim(table: "pd.DataFrame", statement: Statement) -> Claim:
    rows = table[table["ablation"] == statement.ablation]
    pays, harmless = _those(rows, statement.pays), _those(rows, statement.harmless)
    # "No issue" must allow for something: a tenth of the regret, and the whole interval must be below it.
    holds = bool(
        (pays["cost"] - pays["half"] > 0).all()
        and (harmless["cost"] + harmless["half"] < TOLERANCE * harmless["level"]).all()
    )
    judged = len(pays) + len(harmless)
    return Claim(
        paper=statement.paper,
        ours="; ".join(_told(row) for _, row in rows.iterrows()) or "nothing was played.",
        verdict="not testable" if not judged else "reproduced" if holds else "not reproduced",
        note=f"{statement.note} Judged by {judged} of these rows, which must all agree.".strip(),
    )


def _those(rows: "pd.DataFrame", wanted: Mapping[str, Any] | None) -> "pd.DataFrame":
    """Return the rows with these values, or one of them; none where nothing is asked for."""
    chosen = rows if wanted else rows[:0]
    for column, value in (wanted or {}).items():
        chosen = chosen[chosen[column].isin([value] if isinstance(value, str) else value)]
    return chosen


def _told(row: Any) -> str:
    return f"{_label(row)}: {row['cost']:+.3f} ± {row['half']:.3f} (of {row['level']:.3f})"


def _label(row: Any) -> str:
    who = f", {row['kept']}" if row["kept"] == OURS else ""
    figure = ", calibration error" if row["measure"] == "calibration_error" else ""
    return row["world"] + (f", {row['what']}" if row["what"] else "") + who + figure


TITLES = {
    "weights": "NWKR, not IWKR",
    "intervals": "one time interval, not many",
    "calibration": "calibration loss: λ, not 2",
    "forgetting": "not random drop",
    "logging": "a poor or an old log",
    "reuse": "φ of another season",
    "cold start": "counts by arm, no features",
}


def draw(tables: Tables) -> list[Picture]:
    """Draw what each change costs, a panel an ablation."""
    table = tables["differences"].fillna({"what": ""})
    shown = [name for name in TITLES if (table["ablation"] == name).any()]
    heights = [3 if name in ("weights", "intervals", "cold start", "reuse") else 5 for name in shown[::2]]
    figure, grid = style.panels(
        len(heights), 2, height=0.6 + 0.42 * sum(heights), height_ratios=heights, squeeze=False
    )
    for axes, name in zip(grid.flat, shown, strict=False):
        _panel(axes, table[table["ablation"] == name], TITLES[name])
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes in grid.flat[max(len(shown) - 2, 0) : len(shown)]:  # the lowest of each column
        axes.set_xlabel("cost of the change (regret a step)")
    style.legend_below(figure, columns=3)
    seeds = sorted(set(table["seeds"]))
    return [
        Picture(
            name="ablations",
            figure=figure,
            caption="What it costs to change one part of C3: regret a step with the change less that without "
            f"it, paired by seed ({' or '.join(map(str, seeds))} seeds), with 95 % intervals (Student's t). "
            "Right of the line the change costs, left of it it pays. Diamonds: the same for the expected "
            "calibration error. The paper has no such figure: it asserts these things in words.",
        )
    ]


SERIES = {
    "C3, as in the paper": (style.VERMILION, "o"),
    "C3": (style.BLACK, "s"),
    "C3, as in the paper: calibration error": (style.BLUE, "D"),
}


def _panel(axes: "Axes", rows: "pd.DataFrame", title: str) -> None:
    records = rows.to_dict("records")
    lines = [_label(record | {"kept": "", "measure": ""}) for record in records]
    labels, several = list(dict.fromkeys(lines)), len(set(lines)) < len(lines)
    for record, line in zip(records, lines, strict=True):
        series = OURS if record["kept"] == OURS else PAPER
        series += ": calibration error" if record["measure"] == "calibration_error" else ""
        colour, marker = SERIES[series]
        # Two points of one line stand a little apart.
        place = labels.index(line) + several * (-0.16 if series == PAPER else 0.16)
        bar = axes.errorbar(
            record["cost"], place, xerr=record["half"], color=colour, marker=marker, linestyle=""
        )
        if series not in axes.get_legend_handles_labels()[1]:
            bar.set_label(series)
    axes.axvline(0, color=style.GREY, linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_title(title)


STATEMENTS = (
    Statement(
        "weights",
        "Importance weights mitigate the bias of NWKR from drifts in the sampling distribution.",
        pays={"kept": PAPER, "world": (*DRIFTING, "moving log")},
        note="“moving log” is a stationary world whose log shows a favourite group, each interval another.",
    ),
    Statement(
        "calibration",
        "The calibration loss reduces overconfidence, and calibration is important.",
        pays={"measure": "calibration_error", "what": "λ = 0"},
        note="Calibration of the chosen arms' means, prior included; the paper's λ is 2 here.",
    ),
    Statement(
        "intervals",
        "Partitioning the references by time when φ is trained avoids averaging over a drift.",
        pays={"kept": PAPER, "world": DRIFTING},
    ),
    Statement(
        "logging",
        "Sub-optimality of the log is not an issue for the training of φ.",
        harmless={"what": "φ of poor log"},
        note="Uniform against label-aware logs of the same rows, label-aware references in both; “poor "
        "log” has uniform references too, “old log” ended long before the first step.",
    ),
    Statement(
        "reuse",
        "φ can be resilient to concept drifts, so that data of another period may still be utilised.",
        pays={"what": "no φ, against that"},
        harmless={"what": "φ of another season"},
        note="References are of the new period in all cases; without φ the raw features take its place.",
    ),
    Statement(
        "cold start",
        "Arm features reduce the cold-start problem.",
        pays={"kept": PAPER, "what": "first impressions"},
        note=f"Against Thompson sampling by arm; first {EARLY} impressions of arms that are not in the log.",
    ),
    Statement(
        "forgetting",
        "Removing samples (20 % at random every 100 steps) mitigates the issues of non-stationarity.",
        pays={"what": "no forgetting", "world": DRIFTING},
        note="“fading” is soft decay with the same half-life of 311 steps.",
    ),
)

ITEM = Item(
    name="ablations",
    title="What C3's parts are good for: seven assertions without a figure",
    where="Sections 4 and 6, appendix “Experiment Details”",
    says="Importance weights, calibration, time intervals and forgetting help; poor or old logs and new arms "
    "do not hurt.",
    seeds=10,
    quick_seeds=2,
    measure=measure,
    draw=draw,
    claims=claims,
    deviations=(
        "The paper has no such experiments: worlds and sizes are ours.",
        "In drifting worlds φ trains on half of the log in each epoch, as in the paper's simulation, for "
        f"{FULL.epochs} epochs; with a tenth an interval would have a handful of references.",
    ),
)
