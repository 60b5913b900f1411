"""Who wins and who ties: a table of standings for each environment of a result folder."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from tercet import metrics
from tercet.checks import Array, Vector
from tercet.results import ResultError, Results
from tercet.statistics import FEWEST, Interval, Lift, holm, interval, lift, p_value

if TYPE_CHECKING:
    import pandas as pd

Measure = Literal["regret", "dynamic_regret", "reward"]
SIGNIFICANT = 0.05
# What every run's summary has.
NEEDED = ["world_digest", "oracle", "fit_seconds", "budget_seconds", "settings", "tried"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Standing:
    """A policy in an environment; `behind` and `p` are against the reference, `lift` is over the baseline.

    `behind` is positive where the reference is better, whatever the measure.
    """

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
    settings: float  # that there were to try


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
    a part, else the realised regret. Without a `reference` it is the best policy of those that have played
    everything, and the p-values are corrected for all pairs, because any of them could have been the best.
    Lifts are over `baseline`, by default the runner-up.
    """
    rows, summaries = results.rows(), _checked(results.summaries())
    known = list(dict.fromkeys(summaries["policy"]))
    for name in (reference, baseline):
        if name is not None and name not in known:
            raise ValueError(f"there is no policy {name!r} in the results; there are {', '.join(known)}")
    tables = []
    for environment, part in rows.groupby("environment", sort=False):
        runs = summaries[summaries["environment"] == environment]
        arena = _Arena.of(part, runs, _measure(str(environment), part, measure))
        tables.append(arena.table(str(environment), reference, baseline))
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
                "settings": row.settings,
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
    values: "pd.DataFrame"  # of the measure: see metrics.totals
    rewards: "pd.DataFrame"
    ranking: list[str]  # best first
    oracles: set[str]

    @classmethod
    def of(cls, rows: "pd.DataFrame", runs: "pd.DataFrame", measure: Measure) -> Self:
        one_log = _one_log(runs)
        rows = rows.assign(block=metrics.blocks(rows["time"].to_numpy()) if one_log else 0)
        values = metrics.totals(rows, measure)
        return cls(
            measure=measure,
            rows=rows,
            runs=runs,
            one_log=one_log,
            values=values,
            rewards=metrics.totals(rows, "reward"),
            ranking=_ranking(-values if measure == "reward" else values),
            oracles=set(runs.loc[runs["oracle"], "policy"]),
        )

    @property
    def unit(self) -> str:
        return "blocks of time" if self.one_log else "seeds"

    def table(self, environment: str, reference: str | None, baseline: str | None) -> Table:
        rivals = [name for name in self.ranking if name not in self.oracles] or self.ranking
        played = self.values[rivals].count()
        # Only who has played everything can be the best of all.
        complete = [name for name in rivals if played[name] == played.max()]
        named = reference in self.ranking
        chosen = reference if reference is not None and named else complete[0]
        others = [name for name in rivals if name != chosen]
        runners_up = [name for name in complete if name != chosen] or others or [chosen]
        base = baseline if baseline is not None and baseline in self.ranking else runners_up[0]
        p_values = self._p_values([(chosen, name) for name in others] if named else combinations(rivals, 2))
        standings = [
            self._standing(name, chosen, base, p_values.get(frozenset((chosen, name)), float("nan")))
            for name in self.ranking
        ]
        absent = f"{_names([str(reference)])} did not play here; compared with {_names([chosen])} instead. "
        blocks = self.values.index.get_level_values("block").nunique()
        return Table(
            environment=environment,
            measure=self.measure,
            reference=chosen,
            baseline=base,
            units=f"{blocks} {self.unit} of one log" if self.one_log else self.unit,
            standings=standings,
            verdict=("" if reference is None or named else absent) + _verdict(standings, chosen, self.unit),
        )

    def _p_values(self, pairs: Iterable[tuple[str, str]]) -> dict[frozenset[str], float]:
        pairs = list(pairs)
        raw = np.array([p_value(self._behind(two, one)) for one, two in pairs])
        return {frozenset(pair): float(p) for pair, p in zip(pairs, holm(raw), strict=True)}

    def _behind(self, name: str, reference: str) -> Vector:
        """Return how much worse a policy is, in each unit."""
        sign = -1 if self.measure == "reward" else 1
        return sign * self._units(self.values[name] - self.values[reference])

    def _units(self, values: "pd.DataFrame | pd.Series[float]") -> Array:
        """Return the value of each unit, of the seeds that have one."""
        return values.dropna().groupby(level="block" if self.one_log else "seed").mean().to_numpy()

    def _standing(self, name: str, reference: str, baseline: str, p: float) -> Standing:
        rows, runs = self.rows[self.rows["policy"] == name], self.runs[self.runs["policy"] == name]
        traces = [run for _, run in rows.groupby("seed")]
        return Standing(
            policy=name,
            value=interval(self._units(self.values[name])),
            seeds=len(runs),
            oracle=name in self.oracles,
            behind=interval(self._behind(name, reference)),
            p=p,
            lift=lift(*self._units(self.rewards[[name, baseline]]).T),
            recovery_steps=metrics.recovery_steps(
                [run["dynamic_regret"].to_numpy() for run in traces],
                [run["changed"].to_numpy() for run in traces],
            ),
            figures=metrics.summarise(rows),
            fit_seconds=float(runs["fit_seconds"].mean()),
            budget_seconds=float(runs["budget_seconds"].max()),
            tried=float(runs["tried"].mean()),
            settings=1.0 + runs["settings"].map(len).max(),
        )


def _ranking(losses: "pd.DataFrame") -> list[str]:
    """Return the policies, best first, by paired differences: a mean over easy seeds makes nobody good."""
    played = losses.count()
    mark = losses.loc[:, played == played.max()].mean().idxmin()
    behind = losses.sub(losses[mark], axis=0).mean()
    return [str(name) for name in behind.sort_values(kind="stable").index]


def _checked(summaries: "pd.DataFrame") -> "pd.DataFrame":
    unknown = summaries.reindex(columns=NEEDED).isna()
    if unknown.any(axis=None):
        column = unknown.any().idxmax()
        run = summaries[unknown[column]].iloc[0]
        raise ResultError(
            f"the run of {run['policy']} in {run['environment']}, seed {run['seed']}, does not tell its "
            f"{column}: another version of tercet wrote it; delete it, and it will be run again"
        )
    return summaries


def _measure(environment: str, rows: "pd.DataFrame", measure: Measure | None) -> Measure:
    unknown = rows["dynamic_regret"].isna().any()
    if measure == "dynamic_regret" and unknown:
        raise ValueError(
            f"the dynamic regret in {environment} is unknown, because nobody knows its expected rewards; "
            "compare regret or reward"
        )
    lucky = (rows["dynamic_regret"] != rows["regret"]).any()
    return measure or ("dynamic_regret" if lucky and not unknown else "regret")


def _one_log(runs: "pd.DataFrame") -> bool:
    """Whether the seeds replay one log: then they are not independent, but stretches of time nearly are."""
    mixed = runs.groupby("seed")["world_digest"].nunique() > 1
    if mixed.any():
        raise ResultError(
            f"the policies of {runs['environment'].iloc[0]}, seed {mixed.idxmax()}, met different worlds: "
            "its data, steps or code changed between runs; delete the older files to have them run again"
        )
    stated = "one_log" in runs and runs["one_log"].eq(True).any()
    return bool(stated) or (runs["seed"].nunique() > 1 and runs["world_digest"].nunique() == 1)


def _verdict(standings: list[Standing], reference: str, unit: str) -> str:
    """Say plainly how the reference stands."""
    rivals = [row for row in standings if not row.oracle and row.policy != reference]
    if not rivals:
        return f"{_names([reference])} played alone."
    tested = [row for row in rivals if not np.isnan(row.p)]
    if not tested:
        return f"Fewer than {FEWEST} common {unit} do not tell who is better; play more."
    clear = [row for row in tested if row.p < SIGNIFICANT]
    # An interval without zero that the correction for many tests overrules is neither a win nor a tie.
    likely = [row for row in tested if row.p >= SIGNIFICANT and abs(row.behind.mean) > row.behind.half]
    outcomes = {
        "wins against": [row.policy for row in clear if row.behind.mean > 0],
        "loses to": [row.policy for row in clear if row.behind.mean < 0],
        "is ahead, short of proof, of": [row.policy for row in likely if row.behind.mean > 0],
        "is behind, short of proof,": [row.policy for row in likely if row.behind.mean < 0],
        "ties with": [row.policy for row in tested if row not in clear and row not in likely],
        f"shares too few {unit} to tell with": [row.policy for row in rivals if np.isnan(row.p)],
    }
    parts = [
        f"{what} {f'all {len(rivals)} others' if len(names) == len(rivals) > 1 else _names(names)}"
        for what, names in outcomes.items()
        if names
    ]
    tests = f"(paired t-tests, Holm-corrected, p < {SIGNIFICANT})"
    return f"{_names([reference])} {'; it '.join(parts)} {tests}."


def _names(names: list[str]) -> str:
    """Join names, quoted where one has a comma of its own."""
    if any("," in name for name in names):
        names = [f"“{name}”" for name in names]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
