"""Every kind of drift, with controls: regret against what each arm was expected to earn then and there."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.environments.drift import KINDS, Drift
from tercet.experiment import Contender, Experiment
from tercet.metrics import recovery_steps
from tercet.paper.base import Item, Order, Tables
from tercet.paper.curves import curves
from tercet.policies.c3 import C3
from tercet.roster import Group, roster
from tercet.studies import drift_claims, drift_pictures
from tercet.studies.catalogue import STUDIES
from tercet.tuning import Tuning

if TYPE_CHECKING:
    import pandas as pd

NAMES = (
    "C3, as in the paper",
    "C3",
    "C3, greedy",
    "C3, keeping everything",
    "LinUCB, tuned",
    "LinTS, tuned",
    "SquareCB, tuned",
    "D-LinUCB, tuned",
    "LightGBM, refitted, tuned",
    "Vowpal Wabbit squarecb",
    "kNN-UCB, tuned",
    "Thompson per arm, tuned",
    "click counter, tuned",
    "uniform",
)
QUICK = (
    "C3",
    "C3, keeping everything",
    "LinUCB, tuned",
    "Vowpal Wabbit squarecb",
    "Thompson per arm, tuned",
    "uniform",
)
QUICK_KINDS = ("seasonal", "abrupt", "stationary")
QUICK_LOGGED, QUICK_STEPS = 1500, 1100  # a change far enough from either end to tell a recovery
# Meant to let all but LightGBM compare all settings on all replayed outcomes.
TUNING, QUICK_TUNING = Tuning(seconds=120), Tuning(seconds=5)
POINTS = 25  # of a curve in the table


def contenders() -> Group:
    """Return who plays: rivals that may forget choose on the history how fast, as C3 does."""
    everybody = roster(one_hot=False)
    everybody["C3, keeping everything"] = Contender(policy=C3(forgetting=None, progress=False))
    return {name: everybody[name] for name in NAMES}


def experiment(kind: str, *, seeds: int, quick: bool = False) -> Experiment:
    """Return the experiment on a kind of drift."""
    sizes = {"logged": QUICK_LOGGED, "steps": QUICK_STEPS} if quick else {}
    policies = contenders()
    return Experiment(
        policies={name: policies[name] for name in (QUICK if quick else NAMES)},
        environments={kind: Drift(kind=kind, **sizes)},
        seeds=seeds,
        tuning=QUICK_TUNING if quick else TUNING,
    )


def measure(order: Order) -> Tables:
    """Play every kind; keep the regret of each run, curves of regret, and how fast each policy recovers."""
    import pandas as pd

    finals: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    recoveries: list[dict[str, Any]] = []
    for kind in QUICK_KINDS if order.quick else KINDS:
        results = order.play(kind, experiment(kind, seeds=order.seeds, quick=order.quick))
        runs = list(results.runs()) if results.started else []
        finals += [{"kind": kind} | _final(summary, steps) for summary, steps in runs]
        lines += [{"kind": kind} | row for row in curves(runs, points=POINTS, column="dynamic_regret")]
        if KINDS[kind].redrawn:
            recoveries += [{"kind": kind} | row for row in _recoveries(runs)]
    return {
        "final": pd.DataFrame(finals),
        "curves": pd.DataFrame(lines),
        "recovery": pd.DataFrame(recoveries),
    }


def _final(summary: dict[str, Any], steps: "pd.DataFrame") -> dict[str, Any]:
    return {
        "policy": summary["policy"],
        "seed": summary["seed"],
        "steps": len(steps),
        "regret": steps["dynamic_regret"].sum(),
        "reward": steps["reward"].mean(),
        "covered": steps["covered"].mean(),
    }


def _recoveries(runs: "list[tuple[dict[str, Any], pd.DataFrame]]") -> list[dict[str, Any]]:
    """Return each policy's recovery of all seeds (`without` is empty), and of all but one."""
    by_policy: dict[str, dict[int, pd.DataFrame]] = {}
    for summary, steps in runs:
        by_policy.setdefault(summary["policy"], {})[summary["seed"]] = steps
    rows = []
    for policy, by_seed in by_policy.items():
        for without in (None, *by_seed):
            kept = [steps for seed, steps in by_seed.items() if seed != without]
            regrets = [steps["dynamic_regret"].to_numpy() for steps in kept]
            recovery = recovery_steps(regrets, [steps["changed"].to_numpy() for steps in kept])
            left_out = np.nan if without is None else without
            rows.append({"policy": policy, "without": left_out, "steps": recovery})
    return rows


ITEM = Item(
    name="drift",
    title="Nine kinds of drift, three of them controls",
    where="docs/studies.md",
    says="Where arms are coupled and rewards drift, C3 makes the least regret of all; where neither coupling "
    "nor following drift can pay, it is not far from the best; and it forgets on its own as fast as needed.",
    seeds=10,
    quick_seeds=1,
    measure=measure,
    draw=drift_pictures.draw,
    claims=drift_claims.claims,
    catalogue=STUDIES,
    deviations=(
        "The worlds are simulations of ours. Their strengths were picked by hand for difficulty, before any "
        "policy played (tercet.environments.drift).",
        "Tuned rivals choose between up to 24 settings, half-lives among them, on the newest 5,000 logged "
        "outcomes within two minutes (tercet.tuning). On a slow core LightGBM compares its settings on fewer "
        "of them.",
        "C3 has no tuned row: how fast to follow drift, and all else, it chooses on the history by itself.",
    ),
)
