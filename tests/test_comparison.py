from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.comparison import Table, compare, frame
from tercet.results import Job, ResultError, Results


def columns(rewards: np.ndarray, best: np.ndarray, **more: Any) -> dict[str, np.ndarray]:
    n = len(rewards)
    return {
        "time": np.arange(float(n)), "reward": rewards, "regret": best - rewards, "dynamic_regret": 0.9 * (best - rewards),
        "predicted": np.full(n, 0.5), "impression": np.full(n, -1), "changed": np.zeros(n, dtype=bool),
        "decide_seconds": np.full(n, 1e-3), "learn_seconds": np.full(n, 1e-3),
    } | more  # fmt: skip


SUMMARY = {"world_digest": "", "oracle": False, "fit_seconds": 1.0, "budget_seconds": 0.0, "tried": 0}


def results(tmp_path: Path, *, seeds: int = 6, one_log: bool = False, **chances: float) -> Results:
    """Bernoulli rewards with these chances; a policy whose name starts with `oracle` is one."""
    folder = Results(tmp_path)
    for number, (name, chance) in enumerate(chances.items()):
        for seed in range(seeds):
            world = np.random.default_rng(0 if one_log else seed)
            best = (world.random(400) < 0.9).astype(float)
            hits = np.random.default_rng([number, seed, 1]).random(400) < chance
            digest = "same" if one_log else str(seed)
            summary = SUMMARY | {"oracle": name.startswith("oracle"), "world_digest": digest}
            folder.write(Job(name, "world", seed), columns(best * hits, best), summary)
    return folder


def only(tables: list[Table]) -> Table:
    assert len(tables) == 1
    return tables[0]


def test_the_best_comes_first_and_wins_where_the_gap_is_clear(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, low=0.3, high=0.8, middle=0.5)))
    assert [row.policy for row in table.standings] == ["high", "middle", "low"]
    assert table.measure == "dynamic_regret"
    assert table.verdict == "high wins against all 2 others (paired t-tests, Holm-corrected, p < 0.05)."
    high, middle, low = table.standings
    assert middle.behind.mean == pytest.approx(middle.value.mean - high.value.mean)
    assert high.behind.mean == 0
    assert np.isnan(high.p)
    assert max(middle.p, low.p) < 0.05
    assert high.lift.mean > high.lift.low > 0


def test_equals_tie(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, one=0.6, two=0.6, bad=0.2)))
    best, second = table.standings[0].policy, table.standings[1].policy
    assert table.verdict.startswith(f"{best} wins against bad; it ties with {second} (")


def test_a_reference_may_lose(tmp_path: Path) -> None:
    folder = results(tmp_path, low=0.3, high=0.8, middle=0.5)
    table = only(compare(folder, reference="middle", baseline="low", measure="reward"))
    assert table.verdict.startswith("middle wins against low; it loses to high (")
    by_name = {row.policy: row for row in table.standings}
    assert by_name["high"].behind.mean > 0  # more reward
    assert by_name["low"].lift.mean == 0
    assert [row.policy for row in table.standings] == ["high", "middle", "low"]


def test_comparing_every_pair_is_corrected_for_more_tests_than_comparing_with_one(tmp_path: Path) -> None:
    folder = results(tmp_path, a=0.6, b=0.58, c=0.5, d=0.4)
    every = {row.policy: row.p for row in only(compare(folder)).standings}
    one = {row.policy: row.p for row in only(compare(folder, reference="a")).standings}
    assert all(every[name] >= one[name] for name in "bcd")
    assert any(every[name] > one[name] for name in "bcd")


def test_an_oracle_is_shown_and_does_not_compete(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, oracle_all=0.95, good=0.7, bad=0.3)))
    assert table.standings[0].oracle
    assert table.reference == "good"
    assert np.isnan(table.standings[0].p)
    assert "oracle" not in table.verdict


def test_one_seed_gives_no_verdict(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, seeds=1, good=0.7, bad=0.3)))
    assert table.verdict == "One seed tells nothing about who is better; play more."
    assert np.isnan(table.standings[0].value.half)


def test_seeds_that_replay_one_log_are_compared_over_blocks_of_time(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, one_log=True, good=0.7, bad=0.3)))
    assert table.units == "20 blocks of time of one log"
    good = table.standings[0]
    rows = Results(tmp_path).rows()
    regret = rows[rows["policy"] == "good"].groupby("seed")["dynamic_regret"].sum().mean()
    assert good.value.mean == pytest.approx(regret)


def test_policies_with_fewer_seeds_are_compared_on_those(tmp_path: Path) -> None:
    folder = results(tmp_path, good=0.7, slow=0.5)
    for seed in range(3, 6):
        folder.path(Job("slow", "world", seed)).unlink()
    slow = only(compare(folder)).standings[1]
    assert slow.seeds == 3
    assert np.isfinite(slow.behind.half)


def test_a_rival_with_one_common_seed_is_neither_beaten_nor_tied(tmp_path: Path) -> None:
    folder = results(tmp_path, good=0.7, bad=0.3, slow=0.5)
    for seed in range(1, 6):
        folder.path(Job("slow", "world", seed)).unlink()
    verdict = only(compare(folder, reference="good")).verdict
    assert verdict.startswith("good wins against bad; it shares too few seeds to tell with slow (")


def test_runs_that_met_different_worlds_are_not_compared(tmp_path: Path) -> None:
    folder = results(tmp_path, good=0.7, bad=0.3)
    best = np.ones(400)
    folder.write(Job("bad", "world", 2), columns(best, best), SUMMARY | {"world_digest": "other data"})
    with pytest.raises(ResultError, match="seed 2, met different worlds"):
        compare(folder)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    folder = results(tmp_path, good=0.7, bad=0.3)
    with pytest.raises(ValueError, match="no policy 'C4' in the results; there are bad, good"):
        compare(folder, reference="C4")


def test_the_frame_has_a_row_a_standing(tmp_path: Path) -> None:
    tables = compare(results(tmp_path, good=0.7, bad=0.3))
    table = frame(tables)
    assert table["policy"].tolist() == ["good", "bad"]
    assert table["mean"].tolist() == [row.value.mean for row in tables[0].standings]


def test_without_luck_or_expectations_regret_is_just_regret(tmp_path: Path) -> None:
    best, hits = np.ones(10), np.zeros(10)
    for name, expected in (("sure", best - hits), ("unknown", np.full(10, np.nan))):
        folder = Results(tmp_path / name)
        folder.write(Job("p", "world", 0), columns(hits, best, dynamic_regret=expected), SUMMARY)
        assert only(compare(folder)).measure == "regret"
