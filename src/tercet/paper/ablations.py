"""What the paper asserts of C3's parts without a figure: each is taken away, or changed, in turn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tercet.environments import tables as data_tables
from tercet.environments.base import MissingDataError
from tercet.experiment import Experiment
from tercet.metrics import calibration_error
from tercet.paper.ablation_worlds import (
    DATA,
    DRIFTING,
    FULL,
    HALF_LIFE,
    OURS,
    PAPER,
    PAPERS_WEIGHT,
    PER_ARM,
    SMALL,
    WEIGHTS,
    plays,
)
from tercet.paper.ablations_pictures import draw, label
from tercet.paper.base import Claim, Item, Order, Tables, Verdict, verdict
from tercet.reference.forgetting import RandomDrop
from tercet.results import ResultError
from tercet.statistics import interval

if TYPE_CHECKING:
    import pandas as pd

EARLY = 10  # impressions of an arm that count as its first
TOLERANCE = 0.1  # of the regret: what "is not an issue" may cost
DROP = RandomDrop()


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
        others = [f"λ = {weight:g}" for weight in WEIGHTS if weight != PAPERS_WEIGHT]
        result += [
            Pair("calibration", "calibration", world, f"λ = {PAPERS_WEIGHT:g}", other, other, figure)
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
    missing = _missing(rows, statement)
    # A data set without any row was not at hand.
    absent = [name for name in DATA if name in missing and not (table["world"] == name).any()]
    unplayed = sum(world not in absent for world in missing)
    notes = [
        statement.note,
        f"Judged by {len(pays) + len(harmless)} of these rows, which must all agree; one that is surely "
        "otherwise is enough against it.",
        f"Not judged without the data: {', '.join(absent)}." if absent else "",
        f"Rows not yet played: {unplayed}." if unplayed else "",
    ]
    return Claim(
        paper=statement.paper,
        ours="; ".join(_told(row) for _, row in rows.iterrows()) or "nothing was played.",
        verdict=_judged(pays, harmless, missing=bool(missing), absent=bool(absent)),
        note=" ".join(filter(None, notes)),
    )


def _judged(pays: "pd.DataFrame", harmless: "pd.DataFrame", *, missing: bool, absent: bool) -> Verdict:
    # "No issue" must allow for something: a tenth of the regret.
    margin = TOLERANCE * harmless["level"]
    holds = bool(
        (pays["cost"] - pays["half"] > 0).all() and (harmless["cost"] + harmless["half"] < margin).all()
    )
    refuted = bool(
        (pays["cost"] + pays["half"] <= 0).any() or (harmless["cost"] - harmless["half"] >= margin).any()
    )
    # What refutes a statement about all rows does so whatever the missing ones would say.
    if absent and not refuted:
        return "not testable"
    return verdict(holds and not missing, refuted=refuted)


def _missing(rows: "pd.DataFrame", statement: Statement) -> list[str]:
    """Return the worlds of the expected rows that are not there, one for each row."""
    import pandas as pd

    everything = pd.DataFrame(pairs())
    mine = everything[everything["ablation"] == statement.ablation]
    expected = pd.concat([_those(mine, statement.pays), _those(mine, statement.harmless)])
    key = ["world", "kept", "changed", "measure"]
    there = set(rows[key].itertuples(index=False, name=None))
    return [row[0] for row in expected[key].itertuples(index=False, name=None) if row not in there]


def _those(rows: "pd.DataFrame", wanted: Mapping[str, Any] | None) -> "pd.DataFrame":
    """Return the rows with these values, or one of them; none where nothing is asked for."""
    chosen = rows if wanted else rows[:0]
    for column, value in (wanted or {}).items():
        chosen = chosen[chosen[column].isin([value] if isinstance(value, str) else value)]
    return chosen


def _told(row: Any) -> str:
    return f"{label(row)}: {row['cost']:+.3f} ± {row['half']:.3f} (of {row['level']:.3f})"


STATEMENTS = (
    Statement(
        "weights",
        "An issue with NWKR is the susceptibility to bias from drifts in the sampling distribution. To "
        "mitigate sampling bias, we introduce importance weights.",
        pays={"kept": PAPER, "world": (*DRIFTING, "moving log")},
        note="“moving log” is a stationary world whose log shows a favourite group, each interval another.",
    ),
    Statement(
        "calibration",
        "We incorporate calibration as an auxiliary objective to reduce overconfidence; calibration is "
        "important to avoid biases when facing a lack of data.",
        pays={"measure": "calibration_error", "what": "λ = 0"},
        note="The error is of the chosen arms' means, prior included, and has no sign: it does not tell too "
        f"much confidence from too little. The paper's λ is {PAPERS_WEIGHT:g} here.",
    ),
    Statement(
        "intervals",
        "To partition the reference dataset by time intervals (when φ is trained) avoids averaging reward "
        "values from a different time period which may be subject to concept drift.",
        pays={"kept": PAPER, "world": DRIFTING},
    ),
    Statement(
        "logging",
        "Sub-optimality is not an issue for the training of φ.",
        harmless={"what": "φ of poor log"},
        note="Uniform against label-aware logs of the same rows, label-aware references in both; “poor "
        "log” has uniform references too, “old log” ended long before the first step. A uniform log is poor "
        "in reward but shows every arm: a narrow one, which leaves arms out, is not tested.",
    ),
    Statement(
        "reuse",
        "φ can be resilient to concept drifts so data from a different time period may still be utilized.",
        pays={"what": "no φ, against that"},
        harmless={"what": "φ of another season"},
        note="References are of the new period in all cases; without φ the raw features take its place.",
    ),
    Statement(
        "cold start",
        "C3 can also leverage arm features, which reduces the cold-start problem on arms.",
        pays={"kept": PAPER, "what": "all steps"},
        note="Against Thompson sampling by arm, in a world where new arms keep arriving: judged by the "
        f"regret of all steps, whose rounds are the same for both. The first {EARLY} impressions of arms "
        "that are not in the log are only told: there a policy is scored where it chose a new arm itself.",
    ),
    Statement(
        "forgetting",
        "To mitigate the issues presented by non-stationarity, C3 allows the removal of older samples "
        f"(randomly approximately {DROP.fraction:.0%} every {DROP.every} steps).",
        pays={"what": "no forgetting", "world": DRIFTING},
        note=f"“fading” is soft decay with the same half-life of {HALF_LIFE:.0f} steps.",
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
    needs="MagicTelescope and covertype, from --data or OpenML (else without them)",
    measure=measure,
    draw=draw,
    claims=claims,
    deviations=(
        "The paper has no such experiments: worlds and sizes are ours.",
        "In drifting worlds φ trains on half of the log in each epoch, as in the paper's simulation, for "
        f"{FULL.epochs} epochs; with a tenth an interval would have a handful of references.",
        f"Rows named “{PAPER}” in the worlds {', '.join(DRIFTING)} and stationary, and all of another season "
        f"or of an old log, are C3 as in the paper but fading: evidence decays with a half-life of "
        f"{HALF_LIFE:.0f} steps, which is that of the random drops. In the moving log and with arriving arms "
        "nothing is forgotten.",
        f"Where samples are dropped they leave one by one; after each {DROP.every} steps the same are gone.",
        "The calibration loss and the loggers are tried on standardised inputs, with the whole history in "
        "memory from the start; the paper's inputs are raw, and its memory is filled step by step.",
        "A poor log is a uniform one, in which every arm is shown; a narrow logger is not tested.",
    ),
)
