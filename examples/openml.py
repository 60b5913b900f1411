"""Four classification bandits: C3 beside linear models, trees and Vowpal Wabbit.

    tercet run examples/openml.py --data DIR

DIR holds shuttle.npz, magic.npz, covertype.npz and mnist.npz; without --data they come from OpenML.
"""

from tercet.environments.classification import Classification
from tercet.experiment import Experiment
from tercet.roster import roster
from tercet.tuning import Tuning

policies = roster("simple", "linear", "trees", "vowpal", "c3", "oracle", one_hot=True)
del policies["LinUCB, shared"]  # its 8,635 products of features on MNIST are one too many for two cores

experiment = Experiment(
    policies=policies,
    environments={
        data: Classification(data=data, protocol="scripts", logging="label-aware")
        for data in ("shuttle", "MagicTelescope", "covertype", "mnist_784")
    },
    seeds=3,
    steps=1000,
    tuning=Tuning(seconds=20.0),
)
