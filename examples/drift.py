"""Drift in nine ways, three of which are controls where coupled arms can not help.

tercet run examples/drift.py
"""

from tercet.environments.drift import KINDS, Drift
from tercet.experiment import Experiment
from tercet.roster import roster
from tercet.tuning import Tuning

experiment = Experiment(
    policies=roster("simple", "linear", "trees", "vowpal", "kernel", "c3", one_hot=False),
    environments={kind: Drift(kind=kind) for kind in KINDS},
    seeds=10,
    tuning=Tuning(seconds=60.0),
)
