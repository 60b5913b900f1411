"""Best of several rounds; the contestants take turns, so that a noisy neighbour hits all of them.

A turn is a few runs in a row: an append follows a decision over the same data in real life, so each
contestant may have its own data in the cache, and nobody has the other's.
"""

import argparse
import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]


def rounds(text: str) -> int:
    """Return how many rounds were asked for; none would measure nothing."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more; got {text!r}")
    return int(text)


def best(contestants: Mapping[str, Work], *, rounds: int = 10, turn: int = 4) -> dict[str, float]:
    """Return each contestant's shortest time in seconds."""
    for work in contestants.values():
        work()  # compile, touch the memory
    shortest = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, work in contestants.items():
            for _ in range(turn):
                start = time.perf_counter()
                work()
                shortest[name] = min(shortest[name], time.perf_counter() - start)
    return shortest
