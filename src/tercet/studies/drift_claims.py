"""What we expected of C3 under drift, and what the rows say."""

from typing import TYPE_CHECKING

import numpy as np

from tercet.paper.base import Claim, Tables
from tercet.statistics import FEWEST
from tercet.studies.expectations import at_most, between, by_seed, expectation, lowest, untold

if TYPE_CHECKING:
    import pandas as pd

C3, KEEPING = "C3", "C3, keeping everything"
COUPLED = ("seasonal", "abrupt", "rotation", "arrivals", "anchors", "conditional")
CONTROLS = ("uncoupled", "lying", "stationary")
NEAR, DEAREST = 10.0, 3.0  # per cent
FASTER = 2
COVERED = (0.85, 0.95)  # of the chances, by intervals that should hold nine in ten


def claims(tables: Tables) -> list[Claim]:
    """Judge every expectation; what was not played is not testable."""
    final = tables["final"]
    by_kind = {kind: by_seed(final[final["kind"] == kind], ["kind"]) for kind in (*COUPLED, *CONTROLS)}
    found = [_lowest(by_kind[kind], kind) for kind in COUPLED]
    found += [_near(by_kind[kind], kind) for kind in CONTROLS]
    found += [_recovers(tables.get("recovery")), _cheap(by_kind["stationary"])]
    ours = final[final["policy"] == C3].pivot(index="seed", columns="kind", values="covered")
    covered = ours.reindex(columns=[*by_kind])
    found += [_honest(f"{kind.capitalize()}:", covered[kind]) for kind in by_kind]
    return [*found, _honest("In the mean of all kinds", covered.mean(axis=1, skipna=False))]


def _lowest(table: "pd.DataFrame", kind: str) -> Claim:
    says = (
        f"{kind.capitalize()}: C3 has the lowest mean dynamic regret of all, its own variants included, or "
        "ties with the best within the paired 95 % interval."
    )
    return lowest(says, table, C3)


def _near(table: "pd.DataFrame", kind: str) -> Claim:
    says = f"{kind.capitalize()} (a control): C3's mean dynamic regret is within {NEAR:g} % of the best."
    return at_most(says, table, C3, over=None, per_cent=NEAR)


def _recovers(rows: "pd.DataFrame | None") -> Claim:
    says = (
        "Abrupt: after a change, half of C3's jump in regret is gone at least twice as fast as that of C3 "
        "keeping everything."
    )
    if rows is None or not {C3, KEEPING} <= set(rows.loc[rows["kind"] == "abrupt", "policy"]):
        return untold(says)
    part = rows[rows["kind"] == "abrupt"]
    wide = part.assign(without=part["without"].fillna(-1)).pivot(
        index="without", columns="policy", values="steps"
    )
    ours, theirs = wide[C3], wide[KEEPING]
    if np.isnan(ours[-1]) or np.isnan(theirs[-1]):
        return untold(says, "One of the two has no jump in regret to recover from.")
    # One number comes of all changes in all worlds: it must not hang on a single world.
    fast = (np.isfinite(ours) & (FASTER * ours <= theirs)).to_numpy()
    worlds = len(wide) - 1
    return expectation(
        says,
        f"{_steps(ours[-1])} against {_steps(theirs[-1])}, all changes of {worlds} worlds together.",
        reached=worlds >= FEWEST and fast.all(),
        refuted=worlds >= FEWEST and not fast.any(),
        note="Decided if it is the same whichever world is left out.",
    )


def _cheap(table: "pd.DataFrame") -> Claim:
    says = f"Stationary: C3 costs at most {DEAREST:g} % more dynamic regret than C3 keeping everything."
    return at_most(says, table, C3, over=KEEPING, per_cent=DEAREST)


def _honest(where: str, covered: "pd.Series[float]") -> Claim:
    low, high = (f"{100 * share:.0f}" for share in COVERED)
    says = (
        f"{where} {low} to {high} % of the offered arms' expected rewards lie in the 90 % intervals of C3's "
        "posteriors."
    )
    return between(says, covered.dropna().to_numpy(), *COVERED)


def _steps(count: float) -> str:
    return f"{count:.0f} steps" if np.isfinite(count) else "not before the next change"
