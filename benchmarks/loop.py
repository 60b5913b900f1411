"""What the bandit loop costs beside the policy that it plays."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from tercet import C3, Feedback, Round, Training
from tercet.environments.classification import Classification
from tercet.loop import play

STEPS, REPEATS = 1000, 5


@dataclass
class Recorded:
    """An environment whose rounds are ready, so that only the loop and the policy take time."""

    past: Feedback
    ready: list[Round]
    started: float = 0.0
    streaming: bool = False
    one_log: bool = False

    def history(self, rng: np.random.Generator) -> Feedback:  # noqa: ARG002
        """Return the history."""
        return self.past

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:  # noqa: ARG002
        """Yield the rounds, and note when that began."""
        self.started = perf_counter()
        return iter(self.ready)


def overhead(console: Console) -> None:
    """Print the share of a covertype run that is neither C3's decisions nor its learning."""
    table = Table("references", "steps", "loop beside C3, %", "target, %", title="The loop, C3 on covertype")
    try:
        for history in (4000, 50_000):
            table.add_row(f"{history:,}", f"{STEPS:,}", f"{100 * measure(history):.1f}", "5")
    except ValueError as error:
        console.print(f"The loop was not measured: {error}")
        return
    console.print(table)


def measure(history: int) -> float:
    """Return the loop's own time over the policy's; C3 trains once through, which is not counted."""
    rng = np.random.default_rng
    world = Classification(data="covertype", history=history).draw(rng(0))
    recorded = Recorded(world.history(rng(0)), list(islice(world.rounds(rng(0)), STEPS)))
    policy = C3(training=Training(epochs=1), progress=False)
    shares = []
    for _ in range(REPEATS):
        trace = play(policy, recorded, rng(0))
        whole = perf_counter() - recorded.started
        shares.append(whole / float(trace.seconds.sum()) - 1)
    return min(shares)
