"""Best of several rounds; the contestants take turns, so that a noisy neighbour hits all of them."""

import time
from collections.abc import Callable, Mapping


def best(contestants: Mapping[str, Callable[[], object]], *, rounds: int = 15) -> dict[str, float]:
    """Return each contestant's shortest time in seconds."""
    for work in contestants.values():
        work()  # compile, touch the memory
    shortest = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, work in contestants.items():
            start = time.perf_counter()
            work()
            shortest[name] = min(shortest[name], time.perf_counter() - start)
    return shortest
