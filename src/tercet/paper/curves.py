"""Regret over time of many runs, as a few rows of a table."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def curves(
    runs: "Iterable[tuple[dict[str, Any], pd.DataFrame]]", *, points: int, column: str = "regret"
) -> list[dict[str, Any]]:
    """Return each policy's cumulative regret at evenly spaced steps: mean and spread of its seeds."""
    by_policy: dict[str, list[Any]] = {}
    for summary, steps in runs:
        by_policy.setdefault(summary["policy"], []).append(steps[column].cumsum().to_numpy())
    rows = []
    for policy, regrets in by_policy.items():
        matrix = np.array(regrets)
        for step in np.unique(np.linspace(0, matrix.shape[1], points + 1).round().astype(int))[1:]:
            values = matrix[:, step - 1]
            spread = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
            row = {"step": int(step), "mean": values.mean(), "sd": spread, "seeds": len(values)}
            rows.append({"policy": policy} | row)
    return rows
