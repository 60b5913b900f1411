"""What we expected of C3 on classification bandits, and what the rows say."""

from typing import TYPE_CHECKING

import numpy as np

from tercet.paper.base import Claim, Tables
from tercet.paper.openml_pictures import TITLES
from tercet.studies.expectations import at_most, below, by_seed, expectation, lowest, untold

if TYPE_CHECKING:
    import pandas as pd

C3, GREEDY, ORACLE = "C3", "C3, greedy", "supervised"
LIMITS = {"shuttle": 3, "MagicTelescope": 118, "covertype": 150, "mnist_784": 40}  # of regret in 1,000 steps
MOST = 0.4  # the longest history, a share of the rows
DEAREST = 2.0  # per cent that drawing may cost more than playing the best mean
MISCALIBRATED = 0.02


def claims(tables: Tables) -> list[Claim]:
    """Judge every expectation; what was not played is not testable."""
    final = tables["final"]
    found = [_level(final, data) for data in LIMITS]
    found += [_lowest(final, data) for data in LIMITS]
    found.append(_exploring(final))
    return found + [_calibrated(tables.get("calibration"), data) for data in LIMITS]


def _title(data: str) -> str:
    return TITLES.get(data, data)


def _longest(rows: "pd.DataFrame", data: str) -> "pd.DataFrame":
    """Return C3's rows where 40 % of a data set are logged, label-aware."""
    history = np.isclose(rows["history"].astype(float), MOST)
    part = rows[history & (rows["data"] == data)]
    return part[(part["logging"] == "label-aware") & (part["policy"] == C3)]


def _level(final: "pd.DataFrame", data: str) -> Claim:
    says = (
        f"With 40 % of {_title(data)} logged (label-aware), the upper end of the 95 % interval of C3's mean "
        f"regret is at most {LIMITS[data]} in 1,000 steps."
    )
    rows = _longest(final, data)
    return below(says, rows["regret"].to_numpy(dtype=np.float64), LIMITS[data])


def _lowest(final: "pd.DataFrame", data: str) -> Claim:
    says = (
        f"On {_title(data)}, in the mean over sizes of the history and both ways of logging, C3 has the "
        "lowest regret of all bandits but its own variants, or ties with the best within the paired 95 % "
        "interval."
    )
    part = final[final["data"] == data]
    part = part[(part["policy"] == C3) | ~part["policy"].str.startswith(C3) & (part["policy"] != ORACLE)]
    return lowest(says, by_seed(part, ["logging", "history"]), C3)


def _exploring(final: "pd.DataFrame") -> Claim:
    says = (
        f"In the mean over all data sets, sizes and ways of logging, C3 (Thompson sampling) has at most "
        f"{DEAREST:g} % more regret than greedy C3."
    )
    part = final[final["policy"].isin((C3, GREEDY))]
    return at_most(says, by_seed(part, ["data", "logging", "history"]), C3, over=GREEDY, per_cent=DEAREST)


def _calibrated(bins: "pd.DataFrame | None", data: str) -> Claim:
    says = (
        f"With 40 % of {_title(data)} logged (label-aware), the expected calibration error of C3's posterior "
        f"mean of the played arm is at most {MISCALIBRATED} (all seeds pooled)."
    )
    rows = None if bins is None else _longest(bins, data)
    if rows is None or rows.empty:
        return untold(says)
    count = rows["count"].sum()
    error = (rows["rewards"] - rows["predicted"]).abs().sum() / count
    # A perfect forecaster errs too: by the mean absolute deviation of each bin's number of rewards.
    chances = rows["predicted"] / rows["count"]
    luck = np.sqrt(2 / np.pi * rows["count"] * chances * (1 - chances)).sum() / count
    return expectation(
        says,
        f"{error:.3f} over {count:,} steps in {len(rows)} bins of about equally many.",
        reached=error <= MISCALIBRATED,
        refuted=error > MISCALIBRATED,
        note=f"Luck alone makes about {luck:.3f}.",
    )
