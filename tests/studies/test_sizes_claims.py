"""What we expected on classification bandits, judged on made-up tables."""

import pandas as pd
import pytest

from tercet.studies.sizes_claims import LIMITS, claims

GOOD = {"C3": 2.0, "C3, greedy": 2.0, "LinUCB": 9.0, "kNN-UCB": 8.0, "supervised": 0.5}


def final(regrets: dict[str, float]) -> pd.DataFrame:
    """Return runs in which seeds differ, and policies a little from seed to seed."""
    return pd.DataFrame(
        [
            {"data": data, "logging": logging, "history": history, "policy": policy, "seed": seed}
            | {"steps": 1000, "regret": regret + 0.1 * seed + 0.01 * (seed * len(policy) % 3)}
            for data in LIMITS
            for logging in ("label-aware", "uniform")
            for history in (100.0, 0.4)
            for policy, regret in regrets.items()
            for seed in range(4)
            if policy != "supervised" or (logging, history) == ("label-aware", 0.4)
        ]
    )


def bins(gap: float) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"data": data, "logging": logging, "history": history, "policy": policy, "bin": number}
            | {"count": 100, "predicted": 80.0, "rewards": 80.0 + 100 * gap * (-1) ** number}
            for data in LIMITS
            for logging in ("label-aware", "uniform")
            for history in (100.0, 0.4)
            for policy in ("C3", "LinUCB")
            for number in range(10)
        ]
    )


def verdicts(regrets: dict[str, float], gap: float = 0.01) -> dict[str, str]:
    found = claims({"final": final(regrets), "calibration": bins(gap)})
    assert len(found) == 3 * len(LIMITS) + 1
    words = ("upper end", "lowest", "greedy", "calibration")
    by_word: dict[str, set[str]] = {
        word: {claim.verdict for claim in found if word in claim.paper} for word in words
    }
    return {word: " and ".join(sorted(found)) for word, found in by_word.items()}


def test_everything_can_be_reached() -> None:
    assert set(verdicts(GOOD).values()) == {"reached"}


@pytest.mark.parametrize(
    ("changed", "gap", "failed"),
    [
        ({"C3": 200.0, "C3, greedy": 200.0, "LinUCB": 900.0, "kNN-UCB": 900.0}, 0.01, "upper end"),
        ({"kNN-UCB": 1.0}, 0.01, "lowest"),
        ({"C3, greedy": 1.8}, 0.01, "greedy"),
        ({}, 0.03, "calibration"),
    ],
)
def test_each_expectation_can_fail_alone(changed: dict[str, float], gap: float, failed: str) -> None:
    found = verdicts(GOOD | changed, gap)
    assert [word for word, verdict in found.items() if verdict == "not reached"] == [failed]
    assert set(found.values()) == {"reached", "not reached"}


def test_gaps_of_either_sign_do_not_cancel() -> None:
    one = claims({"final": final(GOOD), "calibration": bins(0.03)})[-1]
    assert "0.030 over 1,000 steps" in one.ours
    assert one.note == "Luck alone makes about 0.032."  # √(2/π · .8 · .2 / 100)


def test_oracles_and_variants_of_c3_are_no_rivals() -> None:
    better = GOOD | {"C3, greedy": 1.99, "C3, as in the paper": 0.1}
    assert verdicts(better)["lowest"] == "reached"


def test_limits_are_for_each_data_set() -> None:
    found = claims({"final": final(GOOD | {"C3": 100.0})})[: len(LIMITS)]
    by_data = dict(zip(LIMITS, (claim.verdict for claim in found), strict=True))
    assert by_data == {
        "shuttle": "not reached",
        "MagicTelescope": "reached",
        "covertype": "reached",
        "mnist_784": "not reached",
    }


def test_only_the_longest_label_aware_history_counts_for_the_limits() -> None:
    rows = final(GOOD)
    elsewhere = (rows["history"] != 0.4) | (rows["logging"] == "uniform")
    rows.loc[elsewhere, "regret"] += 500
    assert {claim.verdict for claim in claims({"final": rows})[: len(LIMITS)]} == {"reached"}


def test_what_was_not_played_is_not_testable() -> None:
    rows = final(GOOD)
    found = claims({"final": rows[rows["data"] == "shuttle"]})
    assert [claim.verdict for claim in found].count("not testable") == 3 + 3 + 4
    assert {claim.verdict for claim in claims({"final": rows[rows["policy"] == "LinUCB"]})} == {
        "not testable"
    }
