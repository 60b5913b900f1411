"""How expectations are judged, on made-up tables."""

import numpy as np
import pandas as pd
import pytest

from tercet.studies.expectations import at_most, below, by_seed, expectation, lowest, scaled, untold

NOISE = np.array([-1.0, 0.5, 1.0, -0.5, 0.0])


def table(ours: float, rival: float = 100.0, *, noise: float = 1.0, seeds: int = 5) -> pd.DataFrame:
    """Return regrets of ours, of a rival and of somebody hopeless, in worlds that are hard for all alike."""
    worlds = 20 * np.arange(seeds)
    return pd.DataFrame(
        {"ours": ours + worlds + noise * NOISE[:seeds], "rival": rival + worlds, "hopeless": 500.0 + worlds}
    )


def rows(**regrets: dict[tuple[int, str], float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"policy": policy, "seed": seed, "task": task, "regret": regret}
            for policy, runs in regrets.items()
            for (seed, task), regret in runs.items()
        ]
    )


def test_an_expectation_is_reached_refuted_or_neither() -> None:
    found = [expectation("s", "o", reached=r, refuted=f).verdict for r, f in ((1, 0), (0, 1), (0, 0))]
    assert found == ["reached", "not reached", "undecided"]
    assert untold("s").verdict == "not testable"


@pytest.mark.parametrize(
    ("ours", "noise", "verdict"),
    [(90.0, 1.0, "reached"), (101.0, 5.0, "reached"), (110.0, 1.0, "not reached")],
    ids=["below", "a tie", "surely above"],
)
def test_the_lowest_is_below_or_ties_with_the_best(ours: float, noise: float, verdict: str) -> None:
    claim = lowest("s", table(ours, noise=noise), "ours")
    assert claim.verdict == verdict
    assert "of rival" in claim.ours  # the best of the others, by name
    assert claim.note.startswith("A tie") == (noise == 5.0)


def test_pairs_decide_where_worlds_differ_more_than_policies() -> None:
    # Worlds differ by 80, policies by 3: without pairs this would be a tie.
    assert lowest("s", table(103.0), "ours").verdict == "not reached"


@pytest.mark.parametrize(
    ("ours", "noise", "verdict"),
    [(102.0, 1.0, "reached"), (120.0, 1.0, "not reached"), (104.0, 9.0, "undecided")],
)
def test_at_most_so_much_more_is_sure_either_way_or_undecided(
    ours: float, noise: float, verdict: str
) -> None:
    for over in ("rival", None):
        assert at_most("s", table(ours, noise=noise), "ours", over=over, per_cent=5.0).verdict == verdict


def test_below_a_limit_is_about_the_upper_end_of_the_interval() -> None:
    assert below("s", 10 + NOISE, 12.0).verdict == "reached"
    assert below("s", 10 + NOISE, 10.1).verdict == "not reached"  # the mean is below, the upper end is not
    assert below("s", NOISE[:0], 12.0).verdict == "not testable"


def test_two_seeds_decide_nothing() -> None:
    few = table(90.0, seeds=2)
    assert lowest("s", few, "ours").verdict == "undecided"
    assert at_most("s", few, "ours", over="rival", per_cent=5.0).verdict == "undecided"
    assert below("s", NOISE[:2], 12.0).verdict == "undecided"


def test_nobody_to_compare_with_is_not_testable() -> None:
    full = table(90.0)
    for part in (full[["ours"]], full[["rival", "hopeless"]], full[:0]):
        assert lowest("s", part, "ours").verdict == "not testable"
        assert at_most("s", part, "ours", over=None, per_cent=5.0).verdict == "not testable"
    assert at_most("s", full, "ours", over="absent", per_cent=5.0).verdict == "not testable"


def test_two_without_regret_are_equal() -> None:
    nothing = pd.DataFrame({"ours": np.zeros(4), "rival": np.zeros(4)})
    assert lowest("s", nothing, "ours").verdict == "reached"
    assert at_most("s", nothing, "ours", over="rival", per_cent=2.0).verdict == "reached"


def test_only_seeds_that_all_have_played_everywhere_count() -> None:
    every = {(seed, task): 10.0 * seed for seed in range(3) for task in "ab"}
    begun = {key: value + 1 for key, value in every.items() if key != (2, "b")}
    found = by_seed(rows(ours=every, rival=begun), ["task"])
    assert found.index.tolist() == [0, 1]
    assert found["rival"].tolist() == [1.0, 11.0]


def test_tasks_count_alike() -> None:
    runs = {(0, "a"): 10.0, (0, "b"): 30.0}
    assert by_seed(rows(ours=runs), ["task"])["ours"].tolist() == [20.0]


def test_in_units_of_a_policy_worlds_weigh_alike() -> None:
    table = pd.DataFrame(
        [
            {"world": world, "policy": policy, "seed": seed, "regret": size * regret}
            for world, size in (("hard", 100.0), ("easy", 1.0))
            for policy, regret in (("ours", 1.0), ("rival", 2.0))
            for seed in range(3)
        ]
    )
    for by, ours, rival in (("ours", 1.0, 2.0), ("rival", 0.5, 1.0)):
        found = scaled(table, by=by).groupby("policy")["regret"].unique()
        assert found.map(list).to_dict() == {"ours": [ours], "rival": [rival]}
