"""Classification bandits: regret over time under both protocols, and against the size of the history."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.embedding.options import Training
from tercet.environments.classification import Classification
from tercet.experiment import Contender, Experiment
from tercet.paper.base import Claim, Item, Order, Picture, Tables
from tercet.policies.c3 import C3
from tercet.roster import SLOW, Group, roster

if TYPE_CHECKING:
    import pandas as pd

DATA = ("shuttle", "MagicTelescope", "covertype", "mnist_784")
PROTOCOLS = ("text", "scripts")
STEPS, QUICK_STEPS = 1000, 150
# What the appendix varies by data set.
SETTINGS: dict[str, dict[str, Any]] = {
    "shuttle": {"hidden": (32,), "dim": 4},
    "MagicTelescope": {"training": Training.paper(epochs=200, usage=0.5)},
}
OURS = "C3, as in the paper"
RIVALS = ("LinUCB", "LinTS", "SquareCB", "NeuralUCB", "NeuralTS")  # of the paper's figure
# Windows are for drift, and the Gaussian process is cubic: they play in the news experiment.
ELSEWHERE = ("LinUCB, shared", "NeuralUCB, window", "NeuralTS, window", "Gaussian process")
# On 784 pixels a run of these takes minutes.
SLOW_ON_PIXELS = ("D-LinUCB", "LightGBM, bootstrapped", "LightGBM, refitted", "supervised")
# A quick look leaves out what is slow and not the paper's.
QUICK = (*RIVALS[:3], "C3", "C3, greedy", "LightGBM, greedy, not updated", "Vowpal Wabbit squarecb", "uniform")

SIZES: tuple[int | float, ...] = (0, 100, 1000, 4000, 0.4)
BY_SIZE = (
    OURS,
    "C3",
    "C3, greedy",
    "LinUCB",
    "SquareCB",
    "LightGBM, refitted",
    "LightGBM, greedy, not updated",
    "Vowpal Wabbit squarecb",
    "kNN-UCB",
    "MLP, ε-greedy",
    "uniform",
)
SEEDS_BY_SIZE = 5
POINTS = 25  # of a curve in the table


def contenders(data: str, *, quick: bool) -> Group:
    """Return who plays on a data set: every policy as published, C3 with the paper's layers."""
    everybody = roster(one_hot=True, tuned=False)
    paper = C3.paper(progress=False, **SETTINGS.get(data, {}))
    everybody[OURS] = Contender(policy=paper)
    for name in ("NeuralUCB", "NeuralTS"):
        if data != "mnist_784":  # the paper's own rivals play as often as C3
            everybody[name] = replace(everybody[name], seeds=None)
    if data == "mnist_784":
        for name in SLOW_ON_PIXELS:
            everybody[name] = replace(everybody[name], seeds=SLOW)
    if quick:
        return {name: everybody[name] for name in (OURS, *QUICK)}
    return {name: contender for name, contender in everybody.items() if name not in ELSEWHERE}


def over_time(data: str, protocol: str, *, seeds: int, quick: bool = False) -> Experiment:
    """Return the paper's experiment: raw inputs, 4 logged outcomes stream in before each evaluated step."""
    sizes: dict[str, Any] = {"history": 4000} if quick and protocol == "scripts" else {}
    return Experiment(
        policies=contenders(data, quick=quick),
        environments={
            data: Classification(data=data, protocol=protocol, streaming=True, scale=False, **sizes)
        },
        seeds=seeds,
        steps=QUICK_STEPS if quick else STEPS,
    )


def by_size(data: str, *, seeds: int, quick: bool = False) -> Experiment:
    """Return the experiment on the history's size: scaled inputs, the whole history in memory."""
    policies = contenders(data, quick=quick)
    sizes = SIZES[:3] if quick else SIZES
    return Experiment(
        policies={name: policies[name] for name in BY_SIZE if name in policies},
        environments={
            str(size): Classification(data=data, protocol="scripts", history=size) for size in sizes
        },
        seeds=min(seeds, SEEDS_BY_SIZE),
        steps=QUICK_STEPS if quick else STEPS,
    )
