"""What each ingredient of C3 is good for: one at a time is taken back, in the same worlds."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tercet import metrics
from tercet.embedding.options import LeaveOneOut, Training
from tercet.environments import tables as data_tables
from tercet.environments.classification import Classification
from tercet.environments.drift import Drift
from tercet.experiment import Experiment
from tercet.paper import openml
from tercet.paper.base import Claim, Item, Order, Tables
from tercet.policies.c3 import C3
from tercet.statistics import FEWEST
from tercet.studies import ingredients_pictures
from tercet.studies.catalogue import STUDIES
from tercet.studies.expectations import by_seed, dearer, scaled, surplus, untold

if TYPE_CHECKING:
    import pandas as pd

OURS, MEAN = "C3", "mean of all"
WITHOUT: dict[str, dict[str, Any]] = {
    "one perceptron": {"hidden": (64,)},
    "one perceptron, Algorithm 1": {"hidden": (64,), "training": Training()},
    "AdamW alone": {"training": LeaveOneOut(hidden_rate=None)},
    "a quarter of the training": {"training": LeaveOneOut(epochs=10, steps=75)},
    "one time interval": {"training": LeaveOneOut(partitions=1)},
    "NWKR": {"importance": False},
    "bandwidth 1": {"bandwidth": 1.0},
    "sharpness 1": {"sharpness": 1.0},
    "prior of two outcomes": {"prior": (1.0, 1.0)},
    "draws as wide as the posterior": {"spread": 1.0},
    "no surprises": {"forgetting": None},
    "no trees": {"trees": 0},
    "no rivals": {"rivals": False},
}
# Not taken back, but chosen otherwise: nobody claims that these cost.
INSTEAD: dict[str, dict[str, Any]] = {
    "greedy": {"explore": "greedy"},
    "coupled draws": {"draws": "coupled"},
    "no recalibration": {"recalibrate": False},
}
# What is compared: regret, how far from .9 the share is that 90 % intervals hold, and how far means are from
# what came.
REGRET, INTERVALS, CALIBRATION = "regret", "intervals", "calibration"
AIMS = {"sharpness 1": INTERVALS, "prior of two outcomes": CALIBRATION, "no recalibration": CALIBRATION}
WORSE = {
    REGRET: "more regret",
    INTERVALS: "intervals that hold a share farther from .9",
    CALIBRATION: "a larger expected calibration error",
}
TABLES = {"MagicTelescope": 1000, "covertype": 4000, "mnist_784": 1000}  # logged rows
DRIFTS = ("seasonal", "conditional", "arrivals", "stationary")
QUICK = ("one perceptron", "NWKR", "no surprises")
QUICK_LOGGED, QUICK_STEPS = 600, 200


def experiments(*, seeds: int, quick: bool = False) -> dict[str, Experiment]:
    """Return who plays where: tables and drift have their own numbers of steps."""
    changed = {name: WITHOUT[name] for name in QUICK} if quick else WITHOUT | INSTEAD
    policies = {OURS: C3(progress=False)}
    policies |= {name: C3(progress=False, **options) for name, options in changed.items()}
    sizes = {"logged": QUICK_LOGGED, "steps": QUICK_STEPS} if quick else {}
    found = {
        "drift": Experiment(
            policies=policies,
            environments={kind: Drift(kind=kind, **sizes) for kind in (DRIFTS[:1] if quick else DRIFTS)},
            seeds=seeds,
        )
    }
    if not quick:
        found["tables"] = Experiment(
            policies=policies,
            environments={data: Classification(data=data, history=size) for data, size in TABLES.items()},
            seeds=seeds,
            steps=openml.STEPS,
        )
    return found


def check() -> None:
    """Raise `MissingDataError` where one of the data sets can neither be found nor fetched."""
    for data in TABLES:
        data_tables.load(data)


def measure(order: Order) -> Tables:
    """Play everything, then pair by seed what differs in one ingredient."""
    import pandas as pd

    finals: list[dict[str, Any]] = []
    for name, experiment in experiments(seeds=order.seeds, quick=order.quick).items():
        results = order.play(name, experiment)
        finals += [
            {
                "world": summary["environment"],
                "policy": summary["policy"],
                "seed": summary["seed"],
                "steps": len(steps),
                "regret": steps["dynamic_regret"].sum(),
                "covered": steps["covered"].mean(),
                "error": metrics.calibration_error(
                    *(steps[name].to_numpy(dtype=np.float64) for name in ("reward", "predicted"))
                ),
            }
            for summary, steps in (results.runs() if results.started else ())
        ]
    final = pd.DataFrame(finals)
    return {"final": final, "costs": costs(final) if finals else final}


def costs(final: "pd.DataFrame") -> "pd.DataFrame":
    """Return by how many per cent measures differ from C3's in the mean of all, and regret in each world."""
    import pandas as pd

    rows = []
    for measure in (REGRET, INTERVALS, CALIBRATION):
        compared = _compared(final, measure)
        worlds = [*dict.fromkeys(final["world"])] if measure == REGRET else []
        for world in (*worlds, MEAN):
            part = compared if world == MEAN else compared[compared["world"] == world]
            for name in [name for name in (WITHOUT | INSTEAD) if (part["policy"] == name).any()]:
                pair = by_seed(part[part["policy"].isin((OURS, name))], ["world"])
                if {OURS, name} <= set(pair) and len(pair):
                    cost = surplus(pair, name, OURS)
                    told = {"cost": cost.mean, "half": cost.half, "seeds": len(pair)}
                    rows.append({"measure": measure, "world": world, "policy": name} | told)
    return pd.DataFrame(rows)


def _compared(final: "pd.DataFrame", measure: str) -> "pd.DataFrame":
    """Return the rows with what is measured in place of regret; the less the better."""
    if measure == REGRET:
        return scaled(final, by=OURS)
    if measure == CALIBRATION:
        return final.assign(regret=final["error"])
    known = final[final["world"].isin(DRIFTS)]  # elsewhere a reward is certain
    return known.assign(regret=(known["covered"] - 0.9).abs())


def claims(tables: Tables) -> list[Claim]:
    """Judge each ingredient by the mean over all worlds; with one missing, it would be another mean."""
    aims = [(name, REGRET) for name in WITHOUT] + [*AIMS.items()]
    whole = {*TABLES, *DRIFTS} == set(tables["final"]["world"])
    compared = {measure: _compared(tables["final"], measure) for measure in WORSE} if whole else {}
    return [_claim(name, measure, compared.get(measure)) for name, measure in aims]


def _claim(name: str, measure: str, rows: "pd.DataFrame | None") -> Claim:
    says = f"{name[0].upper()}{name[1:]}: taken back so, C3 has {WORSE[measure]} in the mean of all worlds."
    if rows is None:
        return untold(says)
    return dearer(says, by_seed(rows[rows["policy"].isin((OURS, name))], ["world"]), name, than=OURS)


ITEM = Item(
    name="ingredients",
    title="What each ingredient of C3 is good for",
    where="docs/studies.md",
    says="Every ingredient of the default C3 earns its place: without it there is more regret, or its "
    "posteriors are less honest.",
    seeds=10,
    quick_seeds=1,
    needs="three data sets, from --data or OpenML",
    check=check,
    measure=measure,
    draw=ingredients_pictures.draw,
    claims=claims,
    catalogue=STUDIES,
    deviations=(
        "One option of C3 is changed at a time; what interacts is not seen. 'One perceptron, Algorithm 1' "
        "changes two: its training is for a perceptron only.",
        "What is no option is not here: networks that see numbers in pieces, and the plain features as a "
        "view (docs/decisions).",
        f"At least {FEWEST} seeds decide; the mean of all gives every world the same weight.",
    ),
)
