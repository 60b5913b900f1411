"""Independent work on all cores, in threads: for code that lets go of Python's lock."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the function's result for each item, in their order; the first error goes on up.

    Products of matrices stay on their item's core: on busy cores, BLAS threads wait for each other.

    >>> each(len, ["one", "three"])
    [3, 5]
    """
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(function, items))
