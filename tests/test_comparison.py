from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.comparison import Measure, Table, compare, frame
from tercet.results import Job, ResultError, Results


def columns(rewards: np.ndarray, best: np.ndarray, **more: Any) -> dict[str, np.ndarray]:
    n = len(rewards)
    return {
        "time": np.arange(float(n)), "reward": rewards, "regret": best - rewards, "dynamic_regret": 0.9 * (best - rewards),
        "predicted": np.full(n, 0.5), "impression": np.full(n, -1), "changed": np.zeros(n, dtype=bool),
        "decide_seconds": np.full(n, 1e-3), "learn_seconds": np.full(n, 1e-3),
    } | more  # fmt: skip


SUMMARY = {
    "world_digest": "", "oracle": False, "fit_seconds": 1.0, "budget_seconds": 0.0, "settings": [], "tried": 0,
}  # fmt: skip


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
    assert by_name["low"].behind.mean > 0 > by_name["high"].behind.mean  # less reward is behind
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


@pytest.mark.parametrize("seeds", [1, 2])
def test_one_or_two_seeds_give_no_verdict(tmp_path: Path, seeds: int) -> None:
    table = only(compare(results(tmp_path, seeds=seeds, good=0.7, bad=0.3)))
    assert table.verdict == "Fewer than 3 common seeds do not tell who is better; play more."
    assert np.isnan([row.p for row in table.standings]).all()
    assert np.isnan(table.standings[0].lift.low)


def test_seeds_that_replay_one_log_are_compared_over_blocks_of_time(tmp_path: Path) -> None:
    table = only(compare(results(tmp_path, one_log=True, good=0.7, bad=0.3)))
    assert table.units == "20 blocks of time of one log"
    good = table.standings[0]
    rows = Results(tmp_path).rows()
    regret = rows[rows["policy"] == "good"].groupby("seed")["dynamic_regret"].sum().mean()
    assert good.value.mean == pytest.approx(regret)


def replays(tmp_path: Path, *, lengths: list[int], **chances: float) -> Results:
    """Every seed draws other moments of one week, in which nothing happens on the last day but its end."""
    folder = Results(tmp_path)
    for seed, length in enumerate(lengths):
        moments = np.random.default_rng(seed).uniform(0, 144, size=length - 1)
        times, best = np.append(np.sort(moments), 168.0), np.ones(length)
        for number, (name, chance) in enumerate(chances.items()):
            hits = (np.random.default_rng([number, seed]).random(length) < chance).astype(float)
            summary = SUMMARY | {"world_digest": str(seed), "one_log": True}
            folder.write(Job(name, "week", seed), columns(hits, best, time=times), summary)
    return folder


@pytest.mark.parametrize("measure", ["regret", "reward"])
def test_seeds_that_draw_from_one_log_are_compared_over_blocks_of_calendar_time(
    tmp_path: Path, measure: Measure
) -> None:
    table = only(compare(replays(tmp_path, lengths=[300, 350, 200], good=0.7, bad=0.3), measure=measure))
    assert table.units == "19 blocks of time of one log"  # of twenty; the last but one is empty
    rows = Results(tmp_path).rows()
    runs = rows[rows["policy"] == "good"].groupby("seed")[measure]
    expected = runs.mean().mean() if measure == "reward" else runs.sum().mean()
    good = table.standings[0]
    assert good.value.mean == pytest.approx(expected)
    assert table.verdict.startswith("good wins against bad (")


def test_what_one_week_happened_to_favour_is_no_win_however_many_seeds_draw_from_it(tmp_path: Path) -> None:
    times = np.arange(2000.0)
    quirks = np.where(
        times // 100 % 2 == 0, 0.2, -0.15
    )  # of twenty stretches of time, the same for every seed
    verdicts = {}
    for one_log in (False, True):
        folder = Results(tmp_path / str(one_log))
        for seed in range(8):
            seen = np.sort(np.random.default_rng(seed).permutation(2000)[:400])
            for name, regrets in (("one", np.full(400, 0.5)), ("two", 0.5 + quirks[seen])):
                rows = columns(1 - regrets, np.ones(400), time=times[seen])
                summary = SUMMARY | {"world_digest": str(seed), "one_log": one_log}
                folder.write(Job(name, "week", seed), rows, summary)
        verdicts[one_log] = only(compare(folder)).verdict
    assert verdicts[False].startswith("one wins against two")
    assert verdicts[True].startswith("one ties with two")


def test_one_run_of_one_log_is_enough_for_a_verdict(tmp_path: Path) -> None:
    table = only(compare(replays(tmp_path, lengths=[300], good=0.7, bad=0.3)))
    assert table.verdict.startswith("good wins against bad (")


def test_a_log_of_few_steps_has_few_blocks(tmp_path: Path) -> None:
    folder = Results(tmp_path)
    for seed in range(3):
        folder.write(Job("p", "world", seed), columns(np.zeros(7), np.ones(7)), SUMMARY)
    table = only(compare(folder, measure="regret"))
    assert table.units == "7 blocks of time of one log"
    assert table.standings[0].value.mean == pytest.approx(7)


def test_draws_from_one_log_are_paired_by_seed(tmp_path: Path) -> None:
    folder = replays(tmp_path, lengths=[300, 100, 100], good=0.7, slow=0.7)
    for seed in range(1, 3):
        folder.path(Job("slow", "week", seed)).unlink()
    rows = folder.rows()
    regrets = rows[rows["seed"] == 0].groupby("policy")["regret"].sum()
    slow = next(
        row
        for row in only(compare(folder, reference="good", measure="regret")).standings
        if row.policy == "slow"
    )
    assert slow.behind.mean == pytest.approx(regrets["slow"] - regrets["good"])


def test_easy_seeds_make_nobody_the_best(tmp_path: Path) -> None:
    folder = Results(tmp_path)
    for seed in range(6):
        hard = 0.2 if seed < 3 else 0.8
        for name, more in (("steady", 0.0), ("lucky", 0.05), ("bad", 0.4)):
            if name == "lucky" and seed >= 3:
                continue
            rewards = 1 - np.full(50, hard * (1 + more)) - 0.01 * seed
            folder.write(
                Job(name, "world", seed), columns(rewards, np.ones(50)), SUMMARY | {"world_digest": str(seed)}
            )
    table = only(compare(folder))
    values = {row.policy: row.value.mean for row in table.standings}
    assert values["lucky"] < values["steady"]
    assert [row.policy for row in table.standings] == ["steady", "lucky", "bad"]
    assert (table.reference, table.baseline) == ("steady", "bad")


def test_who_wins_on_few_seeds_is_listed_first_and_is_not_the_reference(tmp_path: Path) -> None:
    folder = results(tmp_path, good=0.7, slow=0.8, bad=0.3)
    for seed in range(3, 6):
        folder.path(Job("slow", "world", seed)).unlink()
    table = only(compare(folder))
    assert [row.policy for row in table.standings] == ["slow", "good", "bad"]
    assert table.reference == "good"


def test_policies_without_a_common_seed_are_not_compared(tmp_path: Path) -> None:
    folder = results(tmp_path, good=0.7, bad=0.3, late=0.5)
    for seed in range(6):
        folder.path(Job("late" if seed < 4 else "good", "world", seed)).unlink()
    late = {row.policy: row for row in only(compare(folder, reference="good")).standings}["late"]
    assert np.isnan([*late.behind, late.p]).all()


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


def test_a_reference_that_did_not_play_here_is_told_and_buys_no_smaller_correction(tmp_path: Path) -> None:
    folder = results(tmp_path, a=0.6, b=0.58, c=0.5)
    best = np.ones(400)
    folder.write(Job("x, tuned", "elsewhere", 0), columns(best, best), SUMMARY)
    asked, unasked = (compare(folder, reference=name)[-1] for name in ("x, tuned", None))
    assert asked.environment == "world"
    assert (
        asked.verdict
        == f"“x, tuned” did not play here; compared with {asked.reference} instead. {unasked.verdict}"
    )
    np.testing.assert_array_equal([row.p for row in asked.standings], [row.p for row in unasked.standings])


def test_names_with_commas_are_quoted(tmp_path: Path) -> None:
    folder = results(tmp_path, **{"C3, tuned": 0.8, "LinUCB, tuned": 0.5, "uniform": 0.3, "twin": 0.8})
    verdict = only(compare(folder, reference="C3, tuned")).verdict
    assert verdict.startswith("“C3, tuned” wins against “LinUCB, tuned” and “uniform”; it ties with twin (")


def test_a_measure_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    folder = Results(tmp_path)
    unknown = columns(np.zeros(10), np.ones(10), dynamic_regret=np.full(10, np.nan))
    folder.write(Job("p", "replay", 0), unknown, SUMMARY)
    with pytest.raises(ValueError, match="dynamic regret in replay is unknown"):
        compare(folder, measure="dynamic_regret")


@pytest.mark.parametrize("name", ["world_digest", "tried"])
def test_runs_of_another_version_are_refused(tmp_path: Path, name: str) -> None:
    folder = results(tmp_path, good=0.7, bad=0.3)
    old = {key: value for key, value in SUMMARY.items() if key != name}
    folder.write(Job("old", "world", 4), columns(np.zeros(9), np.ones(9)), old)
    with pytest.raises(ResultError, match=f"run of old in world, seed 4, does not tell its {name}"):
        compare(folder)


def test_the_policy_itself_is_one_of_its_settings(tmp_path: Path) -> None:
    folder = Results(tmp_path)
    summary = SUMMARY | {"settings": ["other"] * 17}
    folder.write(Job("p", "world", 0), columns(np.zeros(9), np.ones(9)), summary)
    assert only(compare(folder)).standings[0].settings == 18


def test_runs_that_met_different_worlds_are_not_compared(tmp_path: Path) -> None:
    folder = results(tmp_path, good=0.7, bad=0.3)
    best = np.ones(400)
    folder.write(Job("bad", "world", 2), columns(best, best), SUMMARY | {"world_digest": "other data"})
    with pytest.raises(ResultError, match="seed 2, met different worlds"):
        compare(folder)


def test_a_lead_that_the_correction_overrules_is_neither_a_win_nor_a_tie(tmp_path: Path) -> None:
    chances = {"good": 0.62} | {f"rival {n}": 0.5 for n in range(6)}
    table = only(compare(results(tmp_path, seeds=3, **chances)))
    leads = [row for row in table.standings[1:] if row.p >= 0.05 and row.behind.mean > row.behind.half]
    assert leads
    said = table.verdict.split("is ahead, short of proof, of ")[1].split("; it")[0]
    assert all(row.policy in said for row in leads)
    assert not any(row.policy in table.verdict.replace(said, "") for row in leads)


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
