from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.embedding.options import Training
from tercet.environments import tables as data_tables
from tercet.environments.base import MissingDataError, Scenario
from tercet.environments.drift import Drift
from tercet.executors import Serial
from tercet.paper import ablation_worlds as worlds
from tercet.paper import ablations, style
from tercet.paper.ablations import Pair
from tercet.paper.ablations_pictures import TITLES
from tercet.paper.base import Claim, Order
from tercet.policies.base import Policy, fresh
from tercet.policies.c3 import C3
from tercet.reference.forgetting import Decay, RandomDrop
from tercet.statistics import interval
from tercet.types import Feedback

TINY = worlds.Sizes(interval=30, logged=120, steps=20, epochs=1, rows=60, evaluated=20)


def made_up(cost: Callable[[Pair], float], *, half: float = 0.01) -> dict[str, pd.DataFrame]:
    """Make up differences, and read them back from CSV."""
    rows = [
        pair._asdict() | {"cost": cost(pair), "half": half, "level": 0.3, "seeds": 10}
        for pair in ablations.pairs()
    ]
    return {"differences": pd.read_csv(StringIO(pd.DataFrame(rows).to_csv(index=False)))}


def harmless(pair: Pair) -> bool:
    return pair.what in ("φ of poor log", "φ of another season")


def verdicts(tables: dict[str, pd.DataFrame]) -> list[str]:
    return [claim.verdict for claim in ablations.claims(tables)]


def test_all_claims_hold_where_parts_pay_and_what_should_be_harmless_is() -> None:
    assert verdicts(made_up(lambda pair: 0.0 if harmless(pair) else 0.05)) == ["reproduced"] * 7


def test_no_claim_holds_where_parts_cost_and_what_should_be_harmless_is_not() -> None:
    assert verdicts(made_up(lambda pair: 0.05 if harmless(pair) else -0.05)) == ["not reproduced"] * 7


def test_an_interval_around_zero_bears_out_nothing() -> None:
    wide = verdicts(made_up(lambda pair: 0.0 if harmless(pair) else 0.05, half=0.06))
    assert wide == ["undecided"] * 7
    unknown = verdicts(made_up(lambda pair: 0.0 if harmless(pair) else 0.05, half=np.nan))
    assert unknown == ["undecided"] * 7


@pytest.mark.parametrize(("cost", "verdict"), [(-0.05, "not reproduced"), (0.0, "undecided")])
def test_one_world_against_a_claim_is_enough(cost: float, verdict: str) -> None:
    told = verdicts(made_up(lambda pair: 0.0 if harmless(pair) else cost if pair.world == "abrupt" else 0.05))
    assert told == [
        verdict,  # weights
        "reproduced",  # calibration
        verdict,  # intervals
        "reproduced",  # logging
        verdict,  # reuse
        "reproduced",  # cold start
        verdict,  # forgetting
    ]


def claim_on(ablation: str, table: pd.DataFrame) -> Claim:
    places = [statement.ablation for statement in ablations.STATEMENTS]
    return ablations.claims({"differences": table})[places.index(ablation)]


def test_cold_start_is_judged_by_all_steps_and_not_by_impressions_that_policies_chose() -> None:
    def only(what: str) -> pd.DataFrame:
        return made_up(lambda pair: 0.05 if pair.what == what else -0.05)["differences"]

    assert claim_on("cold start", only("all steps")).verdict == "reproduced"
    assert claim_on("cold start", only("first impressions")).verdict == "not reproduced"


def test_without_its_data_a_claim_is_not_testable_and_names_them() -> None:
    table = made_up(lambda pair: 0.0 if harmless(pair) else 0.05)["differences"]
    for lost in (worlds.DATA, worlds.DATA[:1]):
        left = table[~table["world"].isin(lost)]
        for ablation in ("calibration", "logging"):
            claim = claim_on(ablation, left)
            assert claim.verdict == "not testable"
            assert all((name in claim.note) == (name in lost) for name in worlds.DATA)
        assert claim_on("weights", left).verdict == "reproduced"


def test_rows_that_were_not_played_leave_a_claim_undecided() -> None:
    table = made_up(lambda pair: 0.0 if harmless(pair) else 0.05)["differences"]
    for lost, ablation in (
        ({"calibration"}, "calibration"),
        ({"drift"}, "intervals"),
        ({"drift"}, "weights"),
    ):
        claim = claim_on(ablation, table[~table["play"].isin(lost)])
        assert claim.verdict == "undecided"
        assert "not yet played" in claim.note


def test_a_row_against_a_claim_counts_whatever_is_missing() -> None:
    table = made_up(lambda pair: 0.05 if harmless(pair) else -0.05)["differences"]
    assert claim_on("logging", table[table["world"] != worlds.DATA[0]]).verdict == "not reproduced"


def test_differences_are_paired_by_seed() -> None:
    pair = next(pair for pair in ablations.pairs() if pair.ablation == "intervals")
    hard = np.array([0.1, 0.5, 0.9])  # seeds differ far more than policies
    gaps = np.array([0.01, 0.02, 0.03])
    runs = pd.DataFrame(
        [
            {"play": pair.play, "world": pair.world, "policy": policy, "seed": seed, "regret": value}
            for policy, values in ((pair.kept, hard), (pair.changed, hard + gaps))
            for seed, value in enumerate(values)
        ]
    )
    runs["early_regret"] = runs["calibration_error"] = np.nan
    row = ablations.differences(runs.sample(frac=1, random_state=0)).set_index("ablation").loc["intervals"]
    assert (row["cost"], row["half"]) == pytest.approx(interval(gaps))
    assert (row["level"], row["seeds"]) == (pytest.approx(0.5), 3)


def test_every_pair_has_been_played() -> None:
    plays = worlds.plays(worlds.FULL)
    for pair in ablations.pairs():
        play = plays[pair.play]
        assert {pair.kept, pair.changed} <= set(play.policies)
        assert pair.world in play.worlds


def test_every_ablation_has_a_panel_and_a_statement() -> None:
    names = {pair.ablation for pair in ablations.pairs()}
    assert names == set(TITLES) == {statement.ablation for statement in ablations.STATEMENTS}


def test_the_picture_has_a_panel_for_each_ablation_and_names_the_seeds() -> None:
    with style.used():
        (picture,) = ablations.draw(made_up(lambda _: 0.05))
    titles = [axes.get_title() for axes in picture.figure.axes if axes.axison]
    assert titles == list(TITLES.values())
    assert "10 seeds" in picture.caption
    assert "but fading" in picture.caption


def test_what_is_said_of_the_policies_is_so() -> None:
    plays = worlds.plays(worlds.FULL)
    fading = Decay(half_life=worlds.HALF_LIFE)
    assert plays["drift"].policies[worlds.PAPER].forgetting == fading
    assert all(policy.policy.forgetting == fading for policy in plays["periods"].policies.values())
    assert plays["logs"].policies[worlds.PAPER].forgetting is None
    assert plays["drift"].policies[f"{worlds.PAPER}, random drop"].forgetting == ablations.DROP
    assert all(world.scale and not world.streaming for world in plays["calibration"].worlds.values())


def test_random_drops_halve_the_memory_in_their_half_life() -> None:
    assert 0.8 ** (worlds.halving(RandomDrop(fraction=0.2, every=100)) / 100) == pytest.approx(0.5)
    assert worlds.HALF_LIFE == 311.0


def test_worlds_and_policies_are_scenarios_and_policies() -> None:
    for play in worlds.plays(TINY).values():
        assert all(isinstance(world, Scenario) for world in play.worlds.values())
        assert all(isinstance(fresh(policy), Policy) for policy in play.policies.values())


def test_without_classification_data_only_the_other_worlds_are_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(name: str) -> None:
        raise MissingDataError(name)

    monkeypatch.setattr(data_tables, "load", refuse)
    assert ablations.at_hand() == []
    empty = [name for name, play in worlds.plays(TINY, []).items() if not play.worlds]
    assert empty == ["calibration", "loggers"]


def test_a_moving_log_shows_a_favourite_group_in_each_interval() -> None:
    recipe = Drift(kind="stationary", logged=2000, steps=10)
    world = worlds.Favourites(recipe=recipe).draw(np.random.default_rng(0))
    history = world.history(np.random.default_rng(1))
    assert history.times is not None
    assert history.arm_ids is not None
    # Binomial: 8,000 steps, each kept with chance 1/4.
    assert abs(len(history) - 2000) < 4 * np.sqrt(8000 * 0.25 * 0.75)
    shown = world.world.groups[history.arm_ids]
    for interval_, favourite in enumerate(world.favourites[:-1]):
        now = shown[history.times // recipe.interval == interval_]
        # A favourite has 2/3 of the log, the others 1/15 each.
        assert np.bincount(now, minlength=6).argmax() == favourite
        assert abs(np.mean(now == favourite) - 2 / 3) < 4 * np.sqrt(2 / 9 / len(now))
    first = next(world.rounds(np.random.default_rng(2)))
    assert first.time == worlds.THINNED * 2000


@pytest.fixture
def small_data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    np.savez(tmp_path / "magic.npz", X=rng.normal(size=(1200, 4)), y=rng.integers(2, size=1200))
    return tmp_path


def test_two_loggers_log_the_same_rows_and_one_is_more_often_right(
    small_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_DATA", str(small_data))
    np.savez(small_data / "many.npz", X=np.eye(1300), y=np.arange(1300) % 5)
    world = worlds.TwoLoggers(data="many", history=200).draw(np.random.default_rng(0))
    history = world.history(np.random.default_rng(1))
    assert history.times is not None
    np.testing.assert_array_equal(history.times, np.arange(400))
    np.testing.assert_array_equal(history.contexts[:200], history.contexts[200:])
    poor, good = history.rewards[:200].mean(), history.rewards[200:].mean()
    assert poor < 0.35 < good  # 1/5 and 1/2 are expected, with a deviation of .035 at most
    assert next(world.rounds(np.random.default_rng(2))).time >= 400


def test_borrowed_phi_learns_from_one_stretch_and_remembers_another() -> None:
    rng = np.random.default_rng(0)
    history = Feedback(
        contexts=rng.normal(size=(60, 2)),
        arms=rng.normal(size=(60, 3)),
        rewards=rng.integers(2, size=60),
        times=np.arange(60.0),
        ids=np.arange(60),
    )
    options = C3.paper(training=Training.paper(epochs=1), progress=False)
    borrowed = worlds.Borrowed(policy=options, learns=(0.0, 40.0), remembers=(40.0, 60.0))
    borrowed.fit(history, np.random.default_rng(1))
    alone = fresh(options)
    alone.fit(history[:40], np.random.default_rng(1), remember=False)
    np.testing.assert_array_equal(
        borrowed.policy.embed(history.contexts, history.arms), alone.embed(history.contexts, history.arms)
    )
    assert len(borrowed.policy) == 20
    assert borrowed.policy.state.references is not None
    np.testing.assert_array_equal(np.sort(borrowed.policy.state.references.times), np.arange(40.0, 60.0))


def test_a_borrowed_phi_needs_times() -> None:
    borrowed = worlds.Borrowed(policy=C3(phi=worlds.raw), learns=(0.0, 1.0), remembers=(0.0, 1.0))
    with pytest.raises(ValueError, match="needs its times"):
        borrowed.fit(Feedback.one(context=[0.0], arm=[1.0], reward=1.0), np.random.default_rng(0))


@pytest.mark.slow
def test_a_tiny_measurement_has_a_row_for_each_run_and_a_difference_for_each_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = worlds.plays(TINY, [])["logs"]
    few = [name for name in logs.policies if not name.startswith("C3") or name.startswith(worlds.PAPER)]
    play = replace(logs, policies={name: logs.policies[name] for name in few})
    monkeypatch.setattr(ablations, "plays", lambda sizes, data: {"logs": play})
    monkeypatch.setattr(ablations, "at_hand", list)
    tables = ablations.measure(Order(folder=tmp_path, seeds=2, quick=True, executor=Serial()))
    rows = tables["runs"]
    assert len(rows) == 2 * len(play.policies) * len(play.worlds)
    assert rows["regret"].between(0, 1).all()
    assert rows.loc[rows["policy"] == worlds.PAPER, "calibration_error"].between(0, 1).all()
    # IWKR against NWKR, and C3 against counts by arm with both measures.
    assert tables["differences"]["ablation"].tolist() == ["weights", "cold start", "cold start"]
