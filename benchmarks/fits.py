"""How long C3's fit takes, beside training as in the paper on the same history, one after the other.

python -m benchmarks.fits --data DIR

DIR holds the four data sets; without --data it is TERCET_DATA, or they come from OpenML. The histories are
those of the study `long`, 40 % of the rows. A round takes some seven minutes of two cores, which should
have nothing else to do.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.timing import rounds
from tercet import C3
from tercet.environments.classification import Classification
from tercet.paper.openml import contenders
from tercet.policies.base import fresh
from tercet.studies.long import WORLDS
from tercet.studies.sizes_claims import MOST
from tercet.types import Feedback

OURS, PAPER = "C3", "C3, as in the paper"


def main() -> None:
    """Time both in turns; print how the times relate."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--data", metavar="DIR", help="folder that holds the data sets")
    options.add_argument("--rounds", type=rounds, default=3, help="how often each of both is fitted (3)")
    options.add_argument(
        "--only", choices=WORLDS, action="append", help="one of the data sets; may come again"
    )
    given = options.parse_args()
    table = Table("history", "rows", "C3 / the paper's training", "least and most of the rounds")
    for data in given.only or WORLDS:
        world = Classification(data=data, history=MOST, folder=given.data).draw(np.random.default_rng(0))
        history = world.history(np.random.default_rng(1))
        C3(progress=False).fit(history[:2000], np.random.default_rng(0))  # compiles
        ratios = [ratio(data, history, seed) for seed in track(range(given.rounds), data, transient=True)]
        table.add_row(
            data, f"{len(history):,}", f"{np.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"
        )
    Console().print(table)


def ratio(data: str, history: Feedback, seed: int) -> float:
    """Return how many times as long as the paper's our training takes."""
    took = []
    for name in (OURS, PAPER):
        policy = fresh(contenders(data)[name].policy)
        start = time.perf_counter()
        policy.fit(history, np.random.default_rng(seed))
        took.append(time.perf_counter() - start)
    return took[0] / took[1]


if __name__ == "__main__":
    main()
