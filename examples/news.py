"""A week of EB-NeRD's front pages, replayed: who picks the article that was clicked.

tercet run examples/news.py --data DIR

DIR holds EB-NeRD's demo (recsys.eb.dk). Every list shown has a click, so this measures ranking: the mean
reward is the share of first places that were hit (`tercet compare results/news --measure reward`).
"""

from tercet.environments.ebnerd import Ebnerd
from tercet.experiment import Experiment
from tercet.roster import roster

experiment = Experiment(
    # About 70 lists an hour: half-lives of 4 and 40 hours.
    policies=roster(
        "simple", "linear", "trees", "c3", one_hot=False, news=True, half_lives=(300.0, 3000.0), pace=1 / 70
    ),
    environments={"EB-NeRD": Ebnerd()},
    seeds=3,
)
