"""Classification bandits: regret against the size of the history, logged in two ways; calibration."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tercet import metrics
from tercet.environments.classification import LOGGINGS, Classification
from tercet.experiment import Experiment
from tercet.paper import openml
from tercet.paper.base import Item, Order, Tables
from tercet.studies import sizes_claims, sizes_pictures
from tercet.studies.catalogue import STUDIES

if TYPE_CHECKING:
    import pandas as pd

SIZES: tuple[int | float, ...] = (100, 1000, 4000, 0.4)
ORACLE = sizes_claims.ORACLE


def experiments(*, seeds: int, quick: bool = False) -> dict[str, Experiment]:
    """Return who plays where, by name: one experiment for each way of logging and data set, and the oracle's.

    Worlds and policies are those of the paper's figure by history size, so that its runs can serve here.
    """
    found = {}
    everybody = [name for name in openml.BY_SIZE if not quick or name in openml.QUICK]
    for data in openml.DATA[:2] if quick else openml.DATA:
        for logging in LOGGINGS:
            # The paper has label-aware logs only.
            names = [name for name in everybody if logging == "label-aware" or name != openml.OURS]
            sizes = SIZES[:2] if quick else SIZES
            found[f"{logging}-{data}"] = _experiment(data, logging, names, sizes, seeds, quick)
    for data in () if quick else openml.DATA:  # how far any bandit could get with the longest history
        found[f"oracle-{data}"] = _experiment(data, "label-aware", [ORACLE], SIZES[-1:], seeds, quick)
    return found


def _experiment(
    data: str, logging: str, names: list[str], sizes: tuple[int | float, ...], seeds: int, quick: bool
) -> Experiment:
    policies = openml.contenders(data)
    return Experiment(
        policies={name: policies[name] for name in names},
        environments={
            str(size): Classification(data=data, protocol="scripts", history=size, logging=logging)
            for size in sizes
        },
        seeds=seeds,
        steps=openml.QUICK_STEPS if quick else openml.STEPS,
    )


def measure(order: Order) -> Tables:
    """Play everything; keep the regret of each run, and what calibration needs of its predictions."""
    import pandas as pd

    finals: list[dict[str, Any]] = []
    bins: list[dict[str, Any]] = []
    for name, experiment in experiments(seeds=order.seeds, quick=order.quick).items():
        results = order.play(name, experiment)
        predictions: dict[tuple[str, str], list[pd.DataFrame]] = {}
        for summary, steps in results.runs() if results.started else ():
            world = _world(experiment.environments[summary["environment"]])
            run = {"policy": summary["policy"], "seed": summary["seed"]}
            finals.append(world | run | {"steps": len(steps), "regret": steps["regret"].sum()})
            key = summary["environment"], summary["policy"]
            predictions.setdefault(key, []).append(steps[["reward", "predicted"]])
        for (size, policy), parts in predictions.items():
            world = _world(experiment.environments[size]) | {"policy": policy}
            bins += [world | row for row in _bins(pd.concat(parts))]
    return {"final": pd.DataFrame(finals), "calibration": pd.DataFrame(bins)}


def _world(scenario: Classification) -> dict[str, Any]:
    return {"data": scenario.data, "logging": scenario.logging, "history": scenario.history}


def _bins(steps: "pd.DataFrame") -> list[dict[str, Any]]:
    """Return the bins of all seeds' predictions of the played arm; none where a policy predicts nothing."""
    predicted = steps["predicted"].to_numpy(dtype=np.float64)
    if np.isnan(predicted).any():
        return []
    found = metrics.calibration_bins(steps["reward"].to_numpy(dtype=np.float64), predicted)
    return [
        {"bin": number, "count": count, "rewards": rewards, "predicted": sums}
        for number, (count, rewards, sums) in enumerate(zip(*found, strict=True))
        if count
    ]


ITEM = Item(
    name="sizes",
    title="Regret against the size of the history, on four classification bandits",
    where="docs/studies.md",
    says="Of little history or much, logged with a preference for the right arm or evenly, C3 makes the "
    "least regret of all bandits, and its predictions come true as often as they say.",
    seeds=10,
    quick_seeds=1,
    needs="four data sets, from --data or OpenML",
    check=openml.check,
    measure=measure,
    draw=sizes_pictures.draw,
    claims=sizes_claims.claims,
    catalogue=STUDIES,
    deviations=(
        "Nobody is tuned: C3 chooses its settings on the history, and all others have published constants "
        "or their defaults, as in the paper's figures.",
        "Inputs are scaled by the history for everybody, the memory starts with the whole history, and "
        "nothing is streamed.",
        "Label-aware: the logged arm was the right one with probability 1/2, as in the scripts of the "
        "paper's authors. Uniform: any arm. C3 as in the paper plays label-aware logs only.",
        "'supervised' has seen all labels of the history: it is no bandit, and no rival.",
    ),
)
