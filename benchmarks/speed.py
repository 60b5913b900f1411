"""Decisions, appends and forgetting: tercet over NumPy, and over the floor of this machine."""

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.floor import Machine
from benchmarks.peers import NumpyReferences
from benchmarks.timing import best
from tercet import ReferenceSet

DECISIONS = [
    (5_000, 8, 8),
    (50_000, 8, 8),
    (50_000, 8, 64),
    (50_000, 64, 8),
    (500_000, 8, 8),
    (500_000, 64, 8),
]
TARGETS = {(50_000, 8, 8): 2.0, (500_000, 8, 8): 2.5}


def filled(n: int, dim: int, seed: int = 0) -> tuple[ReferenceSet, NumpyReferences, np.random.Generator]:
    """Return both engines over the same float32 points; densities are made up where a build takes minutes."""
    rng = np.random.default_rng(seed)
    bandwidth = 0.35 * dim**0.5
    points, rewards = rng.normal(size=(n, dim)).astype(np.float32), rng.integers(0, 2, n).astype(float)
    references = ReferenceSet(dim=dim, bandwidth=bandwidth)
    references.append(points[:1], rewards[:1])
    arrays, spec = references.to_arrays()
    arrays |= {
        "high": points / 2.0 ** round(np.log2(bandwidth)),
        "low": np.zeros_like(points),
        "reward": rewards,
    }
    arrays |= {
        "density": rng.uniform(1, 50, n),
        "time": np.zeros(n),
        "id": np.arange(n),
        "sequence": np.arange(n),
        "centre": np.zeros(dim),
    }
    references = ReferenceSet.from_arrays(arrays, spec)
    return references, NumpyReferences(points, rewards, references.densities, bandwidth), rng


def decisions(console: Console) -> None:
    """One decision: mass and mean of `arms` queries over n references."""
    machine = Machine.measure()
    table = Table(
        "references", "dimension", "arms", "times NumPy", "share of the floor", "target", title="A decision"
    )
    for n, dim, arms in DECISIONS:
        ours, theirs, rng = filled(n, dim)
        queries = rng.normal(size=(arms, dim)).astype(np.float32)
        mass, mean = theirs.estimate(queries)
        estimate = ours.estimate(queries)
        np.testing.assert_allclose(estimate.mass, mass, rtol=1e-3)
        np.testing.assert_allclose(estimate.mean, mean, atol=1e-3)
        times = best({"ours": lambda: ours.estimate(queries), "numpy": lambda: theirs.estimate(queries)})  # noqa: B023
        target = TARGETS.get((n, dim, arms))
        table.add_row(
            f"{n:,}", str(dim), str(arms), f"{times['numpy'] / times['ours']:.2f}",
            f"{machine.floor(n, dim, arms) / times['ours']:.0%}", f">= {target}" if target else "",
        )  # fmt: skip
    console.print(table)
    rates = machine.multiply_adds / 1e9, machine.exponentials / 1e9
    console.print("One core: {:.0f} G multiply-adds/s, {:.1f} G exponentials/s.".format(*rates))


def updates(console: Console) -> None:
    """Append one outcome; forget a fifth of the memory."""
    table = Table("update", "references", "times", "target", title="Updates")
    for n in (50_000, 500_000):
        ours, single, rng = filled(n, 8)
        double = NumpyReferences(single.points, single.rewards, single.densities, ours.bandwidth, np.float64)
        point = rng.normal(size=(1, 8)).astype(np.float32)
        times = best(
            {
                "ours": lambda: ours.append(point, [1.0]),  # noqa: B023
                "double": lambda: double.append(point[0]),  # noqa: B023
                "single": lambda: single.append(point[0]),  # noqa: B023
            }
        )
        target = ">= 1.5" if n == 500_000 else ""
        exact, fast = times["double"] / times["ours"], times["single"] / times["ours"]
        table.add_row("append, over NumPy in float64 (as exact as ours)", f"{n:,}", f"{exact:.2f}", target)
        table.add_row("append, over NumPy in float32 (off by 1e-7)", f"{n:,}", f"{fast:.2f}", "")

    ours, theirs, rng = filled(50_000, 8)
    gone = rng.random(50_000) < 0.2
    copies = iter([filled(50_000, 8)[0] for _ in range(4)])
    forget = best({"forget": lambda: next(copies).forget(gone)}, rounds=3, turn=1)["forget"]
    again = best({"ours": ours.rebuild, "numpy": theirs.rebuild}, rounds=2, turn=1)
    table.add_row("forget 20 %, over our own rebuild", "50,000", f"{again['ours'] / forget:.2f}", ">= 1.5")
    table.add_row("forget 20 %, over NumPy's rebuild", "50,000", f"{again['numpy'] / forget:.2f}", "")
    console.print(table)
