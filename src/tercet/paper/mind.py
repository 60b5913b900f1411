"""Figure 5: news recommendation, on MIND where its files are at hand, else on EB-NeRD."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet import metrics
from tercet.checks import Vector
from tercet.environments import ebnerd, mind, news
from tercet.environments.base import MissingDataError
from tercet.environments.ebnerd import Ebnerd
from tercet.environments.mind import Mind
from tercet.experiment import Contender, Experiment
from tercet.paper.base import Item, Order, Tables
from tercet.paper.mind_claims import DROP, PAPERS_LIFT, claims, percent
from tercet.paper.mind_pictures import (
    BASELINES,
    COUNTING,
    KEPT,
    MIND,
    OTHERS,
    OURS,
    SUBSTITUTE,
    TOWERS,
    draw,
)
from tercet.policies.simple import ArmThompson
from tercet.policies.trees import Boosting
from tercet.policies.two_tower import TwoTower
from tercet.results import ResultError, Results
from tercet.roster import Group, Stage, roster

if TYPE_CHECKING:
    import pandas as pd

POINTS, QUICK_POINTS = 500, 250
SHARE, QUICK_SHARE = 0.2, 0.04
CHECKPOINTS = 20  # of a curve
LUCK = 3  # seeds over the whole log of policies that are cheap: there only their own luck differs
HALF_LIFE = 6.0  # hours, of the policies that count by article
SEEDS = {"Gaussian process": 3}  # it trains and inverts at every step
CHEAP = (*COUNTING, "restless, simplified", "Vowpal Wabbit squarecb")
WHOLE_LOG = (*CHEAP, OURS, "C3", "C3, greedy", "LinUCB", "LightGBM, refitted", *TOWERS)
QUICK = (OURS, KEPT, "C3", "two towers, small", "Bayesian linear regression", "D-LinUCB", "LinUCB", *CHEAP)
WHERE = "news"  # the environment's name in the results
HELD_OUT = 0.2  # of the paper's history, to choose the best epoch
UNFADING = Stage(one_hot=False, news=True).half_lives[-1]  # outcomes elsewhere; a replay's time is in hours


def measure(order: Order) -> Tables:
    """Play the paper's evaluated points, then whole days with the policies that are cheap."""
    name = data()
    points, share = (QUICK_POINTS, QUICK_SHARE) if order.quick else (POINTS, SHARE)
    figure = order.play(
        "points",
        Experiment(
            policies=contenders(QUICK if order.quick else None),
            environments={WHERE: _world(name, share=share, points=points)},
            seeds=order.seeds,
        ),
    )
    whole = order.play(
        "whole-log",
        Experiment(
            policies=_on_whole_log(CHEAP if order.quick else WHOLE_LOG),
            environments={WHERE: _world(name, share=SHARE if order.quick else 1.0, points=None)},
            seeds=min(order.seeds, LUCK),
        ),
    )
    tables = {"curves": _curves(figure).assign(world=name)}
    try:
        return tables | {"hits": _hits(whole).assign(world=name)}
    except ResultError:
        if not order.finished:  # else this part has not begun
            raise
        return tables


def data() -> str:
    """Return which log is played: MIND's own files, since in its sample most titles are missing."""
    try:
        news.find(None, {mind.FILES: mind.LAYOUTS[mind.FILES]}, home=mind.HOME)
    except MissingDataError:
        return SUBSTITUTE
    return MIND


def _check() -> None:
    if data() != MIND:
        news.find(None, ebnerd.LAYOUTS, home=ebnerd.HOME)


def _world(name: str, *, share: float, points: int | None) -> Any:
    return Mind(share=share, points=points) if name == MIND else Ebnerd(share=share, points=points)


def contenders(only: tuple[str, ...] | None) -> Group:
    """Return who plays: the paper's, ours, and those who count by article."""
    policies = {name: row.policy for name, row in roster(one_hot=False, tuned=False, news=True).items()}
    policies |= {
        KEPT: replace(policies[OURS], forgetting=None),
        "Thompson per arm": ArmThompson(half_life=HALF_LIFE),
        "click counter": ArmThompson(explore="greedy", floor=0.05, half_life=HALF_LIFE),
    }
    return {
        name: Contender(policy=policies[name], seeds=SEEDS.get(name))
        for name in (OURS, KEPT, *OTHERS, *COUNTING, *BASELINES)
        if only is None or name in only
    }


def _on_whole_log(names: tuple[str, ...]) -> Group:
    return {
        name: Contender(policy=contender.policy, seeds=None if name in CHEAP else 1)
        for name, contender in contenders(names).items()
    }


def _curves(results: Results) -> "pd.DataFrame":
    """Return cumulative regret and clicks at evenly spaced steps of each run."""
    import pandas as pd

    tables = []
    for run, rows in results.runs():
        steps = np.unique(np.linspace(0, len(rows), CHECKPOINTS + 1).round().astype(np.int64))
        columns = {
            "step": steps,
            "regret": _total(rows["regret"], steps),
            "clicks": _total(rows["reward"], steps),
        }
        tables.append(pd.DataFrame({"policy": run["policy"], "seed": run["seed"], **columns}))
    return pd.concat(tables, ignore_index=True)


def _total(column: Any, steps: Any) -> Vector:
    return np.concatenate([[0.0], np.cumsum(column.to_numpy())])[steps]


def _hits(results: Results) -> "pd.DataFrame":
    """Return hits and steps in each of equally long stretches of time of each run."""
    import pandas as pd

    tables = []
    for run, rows in results.runs():
        blocks = rows.groupby(metrics.blocks(rows["time"].to_numpy()))["reward"]
        table = pd.DataFrame({"hits": blocks.sum(), "steps": blocks.size()})
        table = table.rename_axis("block").reset_index()
        tables.append(table.assign(policy=run["policy"], seed=run["seed"]))
    return pd.concat(tables, ignore_index=True)


ITEM = Item(
    name="mind",
    title="News recommendation: regret relative to the best policy (EB-NeRD where MIND is not at hand)",
    where="Figure 5, section 5.3 and appendix “MIND Experiment Details”",
    says=f"C3 has {percent(PAPERS_LIFT)} more clicks than the baselines: worse than two towers at first, "
    "better with drift.",
    seeds=10,
    quick_seeds=2,
    needs="MINDsmall or EB-NeRD, from --data",
    check=_check,
    measure=measure,
    draw=draw,
    claims=claims,
    deviations=(
        "Without the TSV files of MINDsmall in the data folder, EB-NeRD stands in: a week of history, not "
        "three days, and no drift made by hand.",
        "On MIND titles are embedded by hashed words instead of BERT; contexts are each category's share of "
        "what was read (the paper: its frequency).",
        "On EB-NeRD an article's taste vector is rebuilt daily, and a reader's profile from these vectors at "
        "each visit, of all clicks of the log, also on lists that the policy did not show. Policies that use "
        "features profit; those who count by article do not see these clicks.",
        f"C3's samples leave one by one, not at once; after each {DROP.every} steps the same ones are gone.",
        "C3's Beta posteriors have a pseudo-count of +1 on both sides, so that no arm can be lost for good.",
        "φ's three time intervals have equal counts; the paper's are days.",
        "The restless bandit is ε-greedy on a linear model that learns by stochastic gradient steps.",
        "Linear policies get the products of context and arm features beside the two; the paper's Bayesian "
        "linear regression has the two joined. With unit constants it decides as LinUCB of that width does.",
        f"Two towers hold out {TwoTower.validation:.0%} of the history (the paper: {HELD_OUT:.0%}), scale "
        "their inputs, and predict each click by itself, without a softmax.",
        f"LightGBM's counts of clicks fade with a half-life of {UNFADING:,.0f} hours, so they hardly do, and "
        f"it is refitted every {Boosting.refit} outcomes on all: not before the last of {POINTS} points.",
        f"The Gaussian process plays {SEEDS['Gaussian process']} seeds.",
        "Policies beyond the paper's play along, and C3 without dropping samples; those who count by article "
        f"forget with a half-life of {HALF_LIFE:g} hours.",
    ),
)
