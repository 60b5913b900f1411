import numpy as np
import pandas as pd
import pytest

from tercet.paper import mind_claims
from tercet.paper.mind_pictures import KEPT, MIND, OURS, SUBSTITUTE, TOWERS

STEPS = np.arange(0, 501, 25)


def curves(world: str, rates: dict[str, tuple[float, float]], *, seeds: int = 6) -> pd.DataFrame:
    """Make up runs: regret a step until step 200 and after it, each seed a little off."""
    rng = np.random.default_rng(0)
    tables = []
    for policy, (early, late) in rates.items():
        for seed in range(seeds):
            regret = early * np.minimum(STEPS, 200) + late * np.maximum(STEPS - 200, 0)
            regret = regret * (1 + 0.005 * rng.normal())
            columns = {"step": STEPS, "regret": regret, "clicks": STEPS - regret}
            tables.append(pd.DataFrame({"policy": policy, "seed": seed, **columns}))
    return pd.concat(tables, ignore_index=True).assign(world=world)


ADAPTS = {
    OURS: (0.60, 0.40),
    KEPT: (0.60, 0.60),
    "two towers, small": (0.55, 0.58),
    "two towers, large": (0.55, 0.57),
    "uniform": (0.80, 0.80),
}
FAILS = ADAPTS | {OURS: (0.60, 0.62), KEPT: (0.60, 0.61)}


def verdicts(world: str, rates: dict[str, tuple[float, float]]) -> list[str]:
    return [claim.verdict for claim in mind_claims.claims({"curves": curves(world, rates)})]


def test_the_claims_hold_where_c3_changes_places_with_the_two_towers() -> None:
    assert verdicts(MIND, ADAPTS) == ["reproduced"] * 3


def test_the_claims_fail_where_it_does_not() -> None:
    assert verdicts(MIND, FAILS) == ["not reproduced"] * 3


def test_two_seeds_decide_nothing() -> None:
    few = mind_claims.claims({"curves": curves(MIND, ADAPTS, seeds=2)})
    assert few[0].verdict == "undecided"
    alone = mind_claims.claims({"curves": curves(MIND, ADAPTS, seeds=1)})
    assert [claim.verdict for claim in alone] == ["undecided"] * 3


def test_a_lift_that_is_sure_but_far_below_the_papers_does_not_reproduce_it() -> None:
    small = ADAPTS | {OURS: (0.55, 0.56)}
    assert verdicts(MIND, small)[0] == "not reproduced"


def test_a_lift_that_may_be_none_or_the_papers_is_undecided() -> None:
    wide = curves(MIND, ADAPTS)
    wide.loc[(wide["policy"] == OURS) & (wide["seed"] < 3), "clicks"] *= 0.7
    assert mind_claims.claims({"curves": wide})[0].verdict == "undecided"


def test_without_mind_everything_is_told_but_not_judged() -> None:
    claims = mind_claims.claims({"curves": curves(SUBSTITUTE, ADAPTS)})
    assert [claim.verdict for claim in claims] == ["not testable"] * 3
    assert all("MINDsmall" in claim.note and SUBSTITUTE in claim.ours for claim in claims)
    clicks = {name: 500 - 200 * early - 300 * late for name, (early, late) in ADAPTS.items()}
    gain = 100 * (clicks[OURS] / clicks["two towers, large"] - 1)
    best, mean, *_ = claims[0].ours.split("; ")
    assert float(best.split(": ")[1].split()[0]) == pytest.approx(gain, abs=1.0)
    assert "two towers, large" in best
    average = (clicks["two towers, large"] + clicks["two towers, small"]) / 2
    assert float(mean.split()[0]) == pytest.approx(100 * (clicks[OURS] / average - 1), abs=1.0)


def test_the_best_rival_is_one_who_has_played_all_seeds_and_the_others_are_named() -> None:
    table = curves(MIND, ADAPTS | {"Gaussian process": (0.1, 0.1)})
    few = table[(table["policy"] != "Gaussian process") | (table["seed"] < 3)]
    claim = mind_claims.claims({"curves": few})[0]
    assert "Gaussian process" not in claim.ours
    assert "Gaussian process (3)" in claim.note
    assert "best of the paper's baselines, Gaussian process" in mind_claims.claims({"curves": table})[0].ours


def test_a_seed_that_only_the_quick_have_played_so_far_does_not_make_them_the_best() -> None:
    table = curves(MIND, ADAPTS)
    going_on = table[(table["seed"] < 5) | table["policy"].isin([OURS, "uniform"])]
    claim = mind_claims.claims({"curves": going_on})[0]
    assert "best of all other policies, two towers, large" in claim.ours
    assert "6 seeds" not in claim.ours


def test_the_change_of_every_baselines_rate_is_told() -> None:
    told = mind_claims.claims({"curves": curves(MIND, ADAPTS)})[1].ours
    changes = told.split("changes by ")[1]
    assert changes.startswith("-0.2")  # C3's own: from .6 to .4
    assert "two towers, small +0.03" in changes
    assert "two towers, large +0.02" in changes
    assert "uniform" not in changes


def test_claims_whose_policies_have_not_played_are_left_out() -> None:
    rates = {name: rate for name, rate in ADAPTS.items() if name not in (KEPT, *TOWERS)}
    assert mind_claims.claims({"curves": curves(MIND, rates)}) == []
