"""Who wins and who ties: a table of standings for each environment of a result folder."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from tercet import metrics
from tercet.checks import Vector
from tercet.results import ResultError, Results
from tercet.statistics import Interval, Lift, holm, interval, lift, p_value

if TYPE_CHECKING:
    import pandas as pd

Measure = Literal["regret", "dynamic_regret", "reward"]
SIGNIFICANT = 0.05
BLOCKS = 20  # of time, where all seeds replay one log


@dataclass(frozen=True, kw_only=True, eq=False)
class Standing:
    """A policy in an environment; `behind` and `p` are against the reference, `lift` is over the baseline."""

    policy: str
    value: Interval
    seeds: int
    oracle: bool
    behind: Interval
    p: float  # Holm-corrected
    lift: Lift
    recovery_steps: float
    figures: dict[str, float]  # of all steps of all seeds: see metrics.summarise
    fit_seconds: float
    budget_seconds: float
    tried: float  # settings, on average over seeds


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """All standings of an environment, best first, and what they mean in a sentence."""

    environment: str
    measure: Measure
    reference: str  # the policy that the others are compared with
    baseline: str  # the policy over which lifts are
    units: str
    standings: list[Standing]
    verdict: str


def compare(
    results: Results,
    *,
    measure: Measure | None = None,
    reference: str | None = None,
    baseline: str | None = None,
) -> list[Table]:
    """Return a table for each environment.

    Without a `measure` it is the expected (dynamic) regret where the environment knows it and luck plays
    a part, else the realised regret. Without a `reference` it is the best policy, and the p-values are
    corrected for all pairs, because any of them could have been the best. Lifts are over `baseline`, by
    default the runner-up.
    """
    rows, summaries = results.rows(), results.summaries()
    known = list(dict.fromkeys(summaries["policy"]))
    for name in (reference, baseline):
        if name is not None and name not in known:
            raise ValueError(f"there is no policy {name!r} in the results; there are {', '.join(known)}")
    tables = []
    for environment, part in rows.groupby("environment", sort=False):
        runs = summaries[summaries["environment"] == environment]
        tables.append(
            _Arena.of(part, runs, measure or _measure(part)).table(str(environment), reference, baseline)
        )
    return tables


def frame(tables: list[Table]) -> "pd.DataFrame":
    """Return all standings as one table with plain columns."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "environment": table.environment,
                "policy": row.policy,
                "oracle": row.oracle,
                "seeds": row.seeds,
                "measure": table.measure,
                "mean": row.value.mean,
                "half_width": row.value.half,
                "reference": table.reference,
                "behind": row.behind.mean,
                "behind_half_width": row.behind.half,
                "p_holm": row.p,
                "baseline": table.baseline,
                "lift": row.lift.mean,
                "lift_low": row.lift.low,
                "lift_high": row.lift.high,
                **row.figures,
                "recovery_steps": row.recovery_steps,
                "fit_seconds": row.fit_seconds,
                "budget_seconds": row.budget_seconds,
                "tried": row.tried,
            }
            for table in tables
            for row in table.standings
        ]
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Arena:
    """The runs of one environment, cut into units on which all policies can be paired."""

    measure: Measure
    rows: "pd.DataFrame"
    runs: "pd.DataFrame"
    one_log: bool
    values: "pd.DataFrame"  # of the measure: units x policies
    rewards: "pd.DataFrame"
    ranking: list[str]  # best first
    oracles: set[str]

    @classmethod
    def of(cls, rows: "pd.DataFrame", runs: "pd.DataFrame", measure: Measure) -> Self:
        one_log = _one_log(runs)
        values = _units(rows, measure, one_log=one_log)
        losses = values.mean() * (-1 if measure == "reward" else 1)
        return cls(
            measure=measure,
            rows=rows,
            runs=runs,
            one_log=one_log,
            values=values,
            rewards=_units(rows, "reward", one_log=one_log),
            ranking=[str(name) for name in losses.sort_values(kind="stable").index],
            oracles=set(runs.loc[runs["oracle"], "policy"]),
        )

    def table(self, environment: str, reference: str | None, baseline: str | None) -> Table:
        rivals = [name for name in self.ranking if name not in self.oracles] or self.ranking
        chosen = reference if reference in self.ranking else rivals[0]
        others = [name for name in rivals if name != chosen]
        base = baseline if baseline in self.ranking else (others or [chosen])[0]
        pairs = [(chosen, name) for name in others] if reference else list(combinations(rivals, 2))
        p_values = self._p_values(pairs)
        standings = [
            self._standing(name, chosen, base, p_values.get(frozenset((chosen, name)), float("nan")))
            for name in self.ranking
        ]
        return Table(
            environment=environment,
            measure=self.measure,
            reference=chosen,
            baseline=base,
            units=f"{BLOCKS} blocks of time of one log" if self.one_log else "seeds",
            standings=standings,
            verdict=_verdict(standings, chosen, self.measure),
        )

    def _p_values(self, pairs: list[tuple[str, str]]) -> dict[frozenset[str], float]:
        raw = np.array([p_value(self._behind(two, one)) for one, two in pairs])
        return {frozenset(pair): float(p) for pair, p in zip(pairs, holm(raw), strict=True)}

    def _behind(self, name: str, reference: str) -> Vector:
        return (self.values[name] - self.values[reference]).dropna().to_numpy()

    def _standing(self, name: str, reference: str, baseline: str, p: float) -> Standing:
        rows, runs = self.rows[self.rows["policy"] == name], self.runs[self.runs["policy"] == name]
        rewards = (
            self.rewards[[name, baseline]].dropna()
            if name != baseline
            else self.rewards[[name, name]].dropna()
        )
        traces = [run for _, run in rows.groupby("seed")]
        return Standing(
            policy=name,
            value=interval(self.values[name].dropna().to_numpy()),
            seeds=len(runs),
            oracle=name in self.oracles,
            behind=interval(self._behind(name, reference)),
            p=p,
            lift=lift(rewards.iloc[:, 0].to_numpy(), rewards.iloc[:, 1].to_numpy()),
            recovery_steps=metrics.recovery_steps(
                [run["dynamic_regret"].to_numpy() for run in traces],
                [run["changed"].to_numpy() for run in traces],
            ),
            figures=metrics.summarise(rows),
            fit_seconds=float(runs["fit_seconds"].mean()),
            budget_seconds=float(runs["budget_seconds"].max()),
            tried=float(runs["tried"].mean()),
        )


def _units(rows: "pd.DataFrame", column: str, *, one_log: bool) -> "pd.DataFrame":
    """Return a row a unit and a column a policy: totals over a run, or means where it is the reward."""
    how: Literal["mean", "sum"] = "mean" if column == "reward" else "sum"
    if not one_log:
        return rows.pivot_table(index="seed", columns="policy", values=column, aggfunc=how)
    length = rows["step"].max() + 1
    blocks = rows.assign(block=rows["step"] * BLOCKS // length)
    per_seed = blocks.groupby(["block", "policy", "seed"])[column].agg(how)
    # A block counts as if the whole run went as it did, so that the mean over blocks is the total.
    scale = 1 if how == "mean" else BLOCKS
    return scale * per_seed.groupby(level=["block", "policy"]).mean().unstack()


def _measure(rows: "pd.DataFrame") -> Measure:
    known = rows["dynamic_regret"].notna().all() and (rows["dynamic_regret"] != rows["regret"]).any()
    return "dynamic_regret" if known else "regret"


def _one_log(runs: "pd.DataFrame") -> bool:
    """Whether the seeds replay one log: then they are not independent, but stretches of time nearly are."""
    mixed = runs.groupby("seed")["world_digest"].nunique() > 1
    if mixed.any():
        raise ResultError(
            f"the policies of {runs['environment'].iloc[0]}, seed {mixed.idxmax()}, met different worlds: "
            "its data or code changed between runs; delete the older files, and they will be run again"
        )
    return runs["seed"].nunique() > 1 and runs["world_digest"].nunique() == 1


def _verdict(standings: list[Standing], reference: str, measure: Measure) -> str:
    """Say plainly how the reference stands."""
    rivals = [row for row in standings if not row.oracle and row.policy != reference]
    if not rivals:
        return f"{reference} played alone."
    tested = [row for row in rivals if not np.isnan(row.p)]
    if not tested:
        return "One seed tells nothing about who is better; play more."
    sign = -1 if measure == "reward" else 1
    clear = [row for row in tested if row.p < SIGNIFICANT]
    outcomes = {
        "wins against": [row.policy for row in clear if sign * row.behind.mean > 0],
        "loses to": [row.policy for row in clear if sign * row.behind.mean < 0],
        "ties with": [row.policy for row in tested if row.p >= SIGNIFICANT],
        "shares too few seeds to tell with": [row.policy for row in rivals if np.isnan(row.p)],
    }
    parts = [
        f"{what} {f'all {len(rivals)} others' if len(names) == len(rivals) > 1 else _names(names)}"
        for what, names in outcomes.items()
        if names
    ]
    return f"{reference} " + "; it ".join(parts) + f" (paired t-tests, Holm-corrected, p < {SIGNIFICANT})."


def _names(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
