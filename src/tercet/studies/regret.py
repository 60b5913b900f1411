"""Dynamic regret of worlds with names: of each run, and over time."""

from collections.abc import Iterable
from typing import Any

from tercet.paper.base import Tables
from tercet.paper.curves import curves
from tercet.results import Results

POINTS = 25  # of a curve in the table


def by_world(played: Iterable[Results]) -> Tables:
    """Return the regret of each run, and curves of regret; both are empty before the first run."""
    import pandas as pd

    runs: dict[str, list[tuple[dict[str, Any], pd.DataFrame]]] = {}
    for results in played:
        for summary, steps in results.runs() if results.started else ():
            runs.setdefault(summary["environment"], []).append((summary, steps))
    finals = [
        {"world": world, "policy": summary["policy"], "seed": summary["seed"], "steps": len(steps)}
        | {"regret": steps["dynamic_regret"].sum()}
        for world, parts in runs.items()
        for summary, steps in parts
    ]
    lines = [
        {"world": world} | row
        for world, parts in runs.items()
        for row in curves(parts, points=POINTS, column="dynamic_regret")
    ]
    return {"final": pd.DataFrame(finals), "curves": pd.DataFrame(lines)}
