"""Four classification bandits: C3 beside linear models, trees and Vowpal Wabbit, as published.

    tercet run examples/openml.py --data DIR

DIR holds shuttle.npz, magic.npz, covertype.npz and mnist.npz; without --data they come from OpenML. Leave
`tuned=False` out to let every policy choose its settings too: that takes hours.
"""

from tercet.environments.classification import Classification
from tercet.experiment import Experiment
from tercet.roster import roster

policies = roster("linear", "trees", "vowpal", "c3", one_hot=True, tuned=False)
del policies["LinUCB, shared"]  # 8,635 products of features on MNIST are too many for it

experiment = Experiment(
    policies=policies,
    environments={
        data: Classification(data=data, protocol="scripts", logging="label-aware")
        for data in ("shuttle", "MagicTelescope", "covertype", "mnist_784")
    },
    seeds=3,
    steps=1000,
)
