"""How expectations are judged: by 95 % intervals over seeds, paired where policies met the same worlds."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from tercet.checks import Vector
from tercet.paper.base import Claim
from tercet.statistics import FEWEST, Interval, interval

if TYPE_CHECKING:
    import pandas as pd


def expectation(says: str, ours: str, *, reached: object, refuted: object, note: str = "") -> Claim:
    """Return an expectation that is reached, refuted, or neither."""
    return Claim(
        paper=says,
        ours=ours,
        verdict="reached" if reached else "not reached" if refuted else "undecided",
        note=note,
    )


def untold(says: str, why: str = "The runs that would tell are not there.") -> Claim:
    """Return an expectation of which the rows say nothing."""
    return Claim(paper=says, ours=why, verdict="not testable")


def by_seed(rows: "pd.DataFrame", tasks: list[str]) -> "pd.DataFrame":
    """Return mean regret over tasks: a row a seed and a column a policy.

    Only seeds count that everybody has played everywhere: the best of few seeds would be the luckiest.
    """
    pivot = rows.pivot_table(index=["seed", *tasks], columns="policy", values="regret").dropna()
    played = pivot.groupby("seed").size()
    return pivot.groupby("seed").mean()[played == len(rows[tasks].drop_duplicates())]


def complete(rows: "pd.DataFrame", worlds: Collection[str]) -> "pd.DataFrame":
    """Return the rows, or none if a world is missing: without it, a mean of all would be another mean."""
    return rows if set(worlds) == set(rows["world"]) else rows[:0]


def scaled(rows: "pd.DataFrame", *, by: str) -> "pd.DataFrame":
    """Return regret in units of a policy's mean in the same world: no world outweighs the others."""
    units = rows[rows["policy"] == by].groupby("world")["regret"].mean()
    return rows.assign(regret=rows["regret"] / rows["world"].map(units))


def below(says: str, values: Vector, limit: float) -> Claim:
    """Expect the upper end of a mean's interval to be at most a limit."""
    if not len(values):
        return untold(says)
    mean, half = _sure(values)
    return _level(says, values, reached=mean + half <= limit, refuted=mean + half > limit)


def between(says: str, values: Vector, low: float, high: float) -> Claim:
    """Expect a mean to lie between two limits, its interval included."""
    if not len(values):
        return untold(says)
    mean, half = _sure(values)
    reached, refuted = low <= mean - half and mean + half <= high, mean + half < low or mean - half > high
    return _level(says, values, reached=reached, refuted=refuted)


def lowest(says: str, table: "pd.DataFrame", ours: str) -> Claim:
    """Expect ours to be the lowest mean of all, or not surely above whoever has it."""
    best = _best(table, ours)
    if best is None:
        return untold(says)
    more = surplus(table, ours, best)
    tie = abs(more.mean) <= more.half
    return expectation(
        says,
        _compared(table, ours, best, more),
        reached=more.mean - more.half <= 0,
        refuted=more.mean - more.half > 0,
        note="A tie: nobody is surely lower. Few seeds make ties easy." if tie else "",
    )


def at_most(says: str, table: "pd.DataFrame", ours: str, *, over: str | None, per_cent: float) -> Claim:
    """Expect ours to cost at most so much more than another, or than the best of all others."""
    other = _best(table, ours) if over is None else over
    if other is None or other not in table or ours not in table or not len(table):
        return untold(says)
    more = surplus(table, ours, other)
    return expectation(
        says,
        _compared(table, ours, other, more),
        reached=more.mean + more.half <= per_cent,
        refuted=more.mean - more.half > per_cent,
    )


def dearer(says: str, table: "pd.DataFrame", other: str, *, than: str) -> Claim:
    """Expect another to cost surely more than ours."""
    if not {other, than} <= set(table) or not len(table):
        return untold(says)
    more = surplus(table, other, than)
    return expectation(
        says,
        f"{_told(more, '+')} %, {_seeds(len(table))}.",
        reached=more.mean - more.half > 0,
        refuted=more.mean + more.half < 0,
    )


def pays(rows: "pd.DataFrame", where: str, ours: str, *, than: str, called: str | None = None) -> Claim:
    """Expect ours to have surely less regret than another (`called` so), in the mean of the rows' worlds."""
    pair = rows[rows["policy"].isin((ours, than))]
    says = f"{where} {ours} has surely less regret than {called or than}."
    return dearer(says, by_seed(pair, ["world"]), than, than=ours)


def _level(says: str, values: Vector, *, reached: bool, refuted: bool) -> Claim:
    ours = f"{_told(_sure(values))}, {_seeds(len(values))}."
    return expectation(says, ours, reached=reached, refuted=refuted)


def _best(table: "pd.DataFrame", ours: str) -> str | None:
    if ours not in table or len(table.columns) < 2 or not len(table):
        return None
    return str(table.drop(columns=ours).mean().idxmin())


def surplus(table: "pd.DataFrame", ours: str, other: str) -> Interval:
    """Return by how much ours is above the other, in per cent of the other's mean."""
    scale = float(table[other].mean()) or 1.0  # two that regret nothing are equal
    return _sure((100 * (table[ours] - table[other]) / scale).to_numpy(dtype=np.float64))


def _sure(values: Vector) -> Interval:
    """Return the interval; two seeds have one too, but so wide that it would make a tie of anything."""
    found = interval(values)
    return found if len(values) >= FEWEST else found._replace(half=float("nan"))


def _compared(table: "pd.DataFrame", ours: str, other: str, more: Interval) -> str:
    means = f"{table[ours].mean():.4g} against {table[other].mean():.4g} of {other}"
    return f"{means}: {_told(more, '+')} %, {_seeds(len(table))}."


def _told(value: Interval, sign: str = "") -> str:
    mean = f"{value.mean:{sign}.3g}"
    return mean if np.isnan(value.half) else f"{mean} ± {value.half:.2g}"


def _seeds(count: int) -> str:
    return f"{count} seed{'s' * (count != 1)}"
