"""What C3's looks for drift after `fit` cost: updates with them beside the same without, in turns.

python -m benchmarks.looks

A log of a world that stands still, 3,000 rows, then 2,048 outcomes one by one; no data are needed. It takes
about a minute of a core, which should have nothing else to do.
"""

import argparse
import time
from copy import deepcopy

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.timing import rounds
from tercet import C3
from tercet.environments.drift import Drift
from tercet.types import Feedback

LOGGED, PLAYED, TURN = 3_000, 2_048, 256


def main() -> None:
    """Time both in turns; print how the times relate."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=rounds, default=3, help="how often all outcomes are learned (3)")
    given = options.parse_args()
    world = Drift(kind="stationary", logged=LOGGED + PLAYED).draw(np.random.default_rng(0))
    log = world.history(np.random.default_rng(1))
    policy = C3(progress=False)
    policy.fit(log[:LOGGED], np.random.default_rng(0))
    assert policy.state.watch is not None, "this log shows drift: there is nothing left to look for"
    means, looks = [], []
    for _ in track(range(given.rounds), "learning", transient=True):
        looking, blind = deepcopy(policy), deepcopy(policy)
        blind.state.watch = None
        took = np.hstack(
            [
                [learned(each, log[start : start + TURN]) for each in (looking, blind)]
                for start in range(LOGGED, LOGGED + PLAYED, TURN)
            ]
        )
        means.append(took[0].sum() / took[1].sum())
        looks.append(took[0].max() / np.median(took[0]))
    Console(highlight=False).print(
        f"Updates that look: in the mean {spread(means, '.2f')} times as long as without looks, "
        f"the longest of them {spread(looks, '.0f')} times as long as the median."
    )


def learned(policy: C3, outcomes: Feedback) -> list[float]:
    """Return how long each update took."""
    rng, took = np.random.default_rng(0), []
    for number in range(len(outcomes)):
        outcome = outcomes[number : number + 1]
        start = time.perf_counter()
        policy.update(outcome, rng)
        took.append(time.perf_counter() - start)
    return took


def spread(ratios: list[float], form: str) -> str:
    """Return the median, and the least and most."""
    median, least, most = (f"{value:{form}}" for value in (np.median(ratios), min(ratios), max(ratios)))
    return f"{median} ({least} to {most})"


if __name__ == "__main__":
    main()
