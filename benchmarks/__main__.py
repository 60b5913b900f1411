"""`python -m benchmarks [speed] [memory] [loop]`: all of them without arguments."""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread each, NumPy's matrix products included
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.console import Console

from benchmarks import loop, memory, speed

PARTS = {"speed": (speed.decisions, speed.updates), "memory": (memory.memory,), "loop": (loop.overhead,)}


def main() -> None:
    """Run the named parts."""
    console = Console()
    console.print("Ratios in this run, one thread each, best of several rounds; larger is better.")
    for name in sys.argv[1:] or PARTS:
        if name not in PARTS:
            sys.exit(f"unknown benchmark {name!r}; there are {', '.join(PARTS)}")
        for part in PARTS[name]:
            part(console)


main()
