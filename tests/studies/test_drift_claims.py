"""What we expected under drift, judged on made-up tables."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest

from tercet.studies.drift_claims import CONTROLS, COUPLED, claims

GOOD = {"C3": 100.0, "C3, keeping everything": 101.0, "LinUCB, tuned": 150.0, "uniform": 300.0}


def final(
    regrets: dict[str, float], kinds: tuple[str, ...] = (*COUPLED, *CONTROLS), *, covered: float = 0.9
) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"kind": kind, "policy": policy, "seed": seed, "steps": 100, "covered": covered + 0.001 * seed}
            | {"regret": regret + 5 * seed + 0.1 * (seed * len(policy) % 3)}
            for kind in kinds
            for policy, regret in regrets.items()
            for seed in range(5)
        ]
    )


def recovery(ours: list[float], theirs: list[float]) -> pd.DataFrame:
    """Return the table as it is read back: the first of each is of all worlds."""
    rows = [
        {"kind": "abrupt", "policy": policy, "without": np.nan if number < 0 else number, "steps": steps}
        for policy, values in (("C3", ours), ("C3, keeping everything", theirs))
        for number, steps in enumerate(values, start=-1)
    ]
    return pd.read_csv(StringIO(pd.DataFrame(rows).to_csv(index=False)))


FAST = recovery([40.0] * 5, [100.0] * 5)


def verdicts(regrets: dict[str, float], table: pd.DataFrame = FAST) -> dict[str, str]:
    found = claims({"final": final(regrets), "recovery": table})
    honest = (f"{kind} covered" for kind in (*COUPLED, *CONTROLS, "all"))
    names = (*COUPLED, *CONTROLS, "recovery", "cheap", *honest)
    return dict(zip(names, (claim.verdict for claim in found), strict=True))


def test_everything_can_be_reached() -> None:
    assert set(verdicts(GOOD).values()) == {"reached"}


def test_each_is_about_its_own_kind() -> None:
    for claim, kind in zip(claims({"final": final(GOOD)}), (*COUPLED, *CONTROLS), strict=False):
        assert claim.paper.startswith(kind.capitalize())


def test_a_better_rival_refutes_where_c3_should_be_best_and_may_be_near_in_controls() -> None:
    found = verdicts(GOOD | {"LinUCB, tuned": 95.0})
    assert {found[kind] for kind in COUPLED} == {"not reached"}
    assert {found[kind] for kind in CONTROLS} == {"reached"}
    far = verdicts(GOOD | {"LinUCB, tuned": 80.0})
    assert {far[kind] for kind in CONTROLS} == {"not reached"}


def test_variants_of_c3_count_as_rivals() -> None:
    assert verdicts(GOOD | {"C3, greedy": 90.0})["seasonal"] == "not reached"


def test_forgetting_must_be_cheap_where_nothing_changes() -> None:
    found = verdicts(GOOD | {"C3, keeping everything": 94.0})
    assert found["cheap"] == "not reached"
    assert found["stationary"] == "reached"  # 3 % is for this, 10 % for that


@pytest.mark.parametrize(
    ("covered", "verdict"),
    [
        (0.9, "reached"),
        (0.8, "not reached"),
        (0.97, "not reached"),
        (0.849, "undecided"),
        (0.949, "undecided"),
    ],
)
def test_intervals_may_neither_be_too_narrow_nor_too_wide(covered: float, verdict: str) -> None:
    found = claims({"final": final(GOOD, covered=covered)})[-len((*COUPLED, *CONTROLS, "all")) :]
    assert {claim.verdict for claim in found} == {verdict}


def test_kinds_that_err_to_either_side_are_right_in_the_mean_of_all() -> None:
    rows = final(GOOD)
    rows.loc[rows["kind"] == "seasonal", "covered"] = 0.97
    rows.loc[rows["kind"] == "rotation", "covered"] = 0.83
    *kinds, everywhere = claims({"final": rows})[-len((*COUPLED, *CONTROLS, "all")) :]
    assert [kinds[COUPLED.index(kind)].verdict for kind in ("seasonal", "rotation")] == ["not reached"] * 2
    assert everywhere.verdict == "reached"
    assert claims({"final": rows[rows["kind"] != "rotation"]})[-1].verdict == "not testable"


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([40.0] * 5, [100.0] * 5, "reached"),
        ([40.0] * 5, [np.inf] * 5, "reached"),
        ([60.0] * 5, [100.0] * 5, "not reached"),
        ([np.inf] * 5, [np.inf] * 5, "not reached"),
        ([40.0, 40.0, 40.0, 40.0, 60.0], [100.0] * 5, "undecided"),  # it hangs on one world
        ([40.0] * 2, [100.0] * 2, "undecided"),  # a single world
        ([np.nan] * 5, [100.0] * 5, "not testable"),  # no jump
    ],
)
def test_recovery_is_twice_as_fast_whichever_world_is_left_out(
    ours: list[float], theirs: list[float], verdict: str
) -> None:
    assert verdicts(GOOD, recovery(ours, theirs))["recovery"] == verdict


def test_what_was_not_played_is_not_testable() -> None:
    found = claims({"final": final(GOOD, ("seasonal",))})
    told = [claim for claim in found if claim.verdict != "not testable"]
    assert len(found) == len(claims({"final": final(GOOD), "recovery": FAST}))
    assert [claim.verdict for claim in told] == 2 * ["reached"]
    assert {claim.paper[:8] for claim in told} == {"Seasonal"}
