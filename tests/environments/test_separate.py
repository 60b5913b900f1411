"""Arms that share nothing: what the log shows, who comes and goes, and when chances change."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.environments.separate import Separate, SeparateArms
from tercet.types import Round

MANY = 20_000


def drawn(seed: int = 0, **options: Any) -> SeparateArms:
    return Separate(**options).draw(np.random.default_rng(seed))


def played(world: SeparateArms, seed: int = 1) -> list[Round]:
    return list(world.rounds(np.random.default_rng(seed)))


@given(
    arms=st.integers(2, 6),
    logged=st.integers(0, 60),
    steps=st.integers(1, 60),
    usual=st.none() | st.integers(0, 5),
    arriving=st.none() | st.integers(1, 70),
    interval=st.none() | st.integers(1, 150),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_worlds_of_any_size_are_sound(seed: int, **options: Any) -> None:
    if options["usual"] is not None:
        options["logged"] = max(options["logged"], options["usual"] * options["arms"])
    one, two = (drawn(seed, **options) for _ in range(2))
    logs = [world.history(np.random.default_rng(seed)) for world in (one, two)]
    np.testing.assert_array_equal(logs[0].rewards, logs[1].rewards)
    np.testing.assert_array_equal(logs[0].arms, logs[1].arms)
    assert logs[0].contexts.shape == (options["logged"], 0)
    assert logs[0].arms.shape == (options["logged"], one.recipe.width)
    rounds = [played(world, seed) for world in (one, two)]
    assert len(rounds[0]) == options["steps"]
    for number, (left, right) in enumerate(zip(*rounds, strict=True)):
        assert left.time == options["logged"] + number
        assert left.context.shape == (0,)
        np.testing.assert_array_equal(left.rewards, right.rewards)
        np.testing.assert_array_equal(left.arms, np.eye(one.recipe.width)[left.arm_ids])
        assert len(set(np.asarray(left.arm_ids))) == options["arms"]


def test_chances_spread_around_those_of_a_usual_arm() -> None:
    chances = drawn(arms=MANY).chances
    odds = np.log(chances) - np.log1p(-chances)
    assert odds.mean() == pytest.approx(-0.5, abs=4 * 1.1 / np.sqrt(MANY))
    assert odds.std() == pytest.approx(1.1, abs=4 * 1.1 / np.sqrt(2 * MANY))


def test_an_even_log_shows_arms_as_often_as_its_propensities_say() -> None:
    history = drawn(logged=MANY).history(np.random.default_rng(1))
    assert history.arm_ids is not None
    np.testing.assert_array_equal(history.propensities, 1 / 5)
    assert (np.abs(np.bincount(history.arm_ids) - MANY / 5) < 4 * np.sqrt(MANY / 5)).all()


def test_a_usual_log_shows_each_other_arm_so_many_times_at_random_places() -> None:
    world = drawn(arms=4, logged=100, usual=3)
    places = []
    for seed in range(400):
        history = world.history(np.random.default_rng(seed))
        assert history.arm_ids is not None
        np.testing.assert_array_equal(np.bincount(history.arm_ids), [91, 3, 3, 3])
        np.testing.assert_array_equal(history.propensities, np.where(history.arm_ids == 0, 0.91, 0.03))
        places.append(np.flatnonzero(history.arm_ids == 1))
    # 1,200 places, each uniform on 0 to 99.
    assert np.mean(np.array(places) < 50) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(1200))


def test_propensities_are_the_odds_of_a_row_over_many_logs() -> None:
    world = drawn(arms=3, logged=10, usual=2)
    rows = np.array([world.history(np.random.default_rng(seed)).arm_ids for seed in range(2000)])
    share = (rows == 2).mean(0)  # at each place
    assert (np.abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 2000)).all()


def test_rows_of_the_log_earn_the_chances_of_their_time() -> None:
    world = drawn(logged=MANY, interval=5000)
    history = world.history(np.random.default_rng(1))
    assert history.times is not None
    assert history.arm_ids is not None
    means = world.chances[(history.times // 5000).astype(int), history.arm_ids]
    for part in np.split(np.arange(MANY), 4):
        assert abs((history.rewards - means)[part].sum()) < 4 * np.sqrt((means * (1 - means))[part].sum())


def test_the_oldest_arm_leaves_to_one_that_the_log_never_showed() -> None:
    world = drawn(arms=3, logged=200, steps=50, arriving=20)
    log = world.history(np.random.default_rng(1))
    assert set(np.asarray(log.arm_ids)) == {0, 1, 2}
    assert log.arms.shape[1] == world.recipe.width == 5
    offers = [tuple(map(int, np.asarray(round_.arm_ids))) for round_ in played(world)]
    # A newcomer takes the place of the one that left.
    assert offers == [(0, 1, 2)] * 20 + [(3, 1, 2)] * 20 + [(3, 4, 2)] * 10


@pytest.mark.parametrize(("steps", "newcomers"), [(200, 0), (201, 1), (1000, 4)])
def test_every_newcomer_is_played(steps: int, newcomers: int) -> None:
    world = drawn(logged=0, steps=steps, arriving=200)
    assert world.recipe.width == 5 + newcomers
    assert max(int(np.asarray(round_.arm_ids).max()) for round_ in played(world)) == 4 + newcomers


def test_chances_change_exactly_where_rounds_are_marked() -> None:
    rounds = played(drawn(logged=130, steps=300, interval=100))
    assert [round_.time for round_ in rounds if round_.changed] == [200.0, 300.0, 400.0]
    means = np.array([round_.means for round_ in rounds])
    moved = (np.diff(means, axis=0) != 0).all(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(moved) + 131, [200, 300, 400])
    assert not np.diff(means, axis=0)[~moved].any()


def test_the_start_is_no_change_and_without_an_interval_nothing_changes() -> None:
    assert not played(drawn(logged=0, steps=10, interval=10))[0].changed
    rounds = played(drawn(logged=10, steps=50))
    assert not any(round_.changed for round_ in rounds)
    assert not np.ptp([round_.means for round_ in rounds], axis=0).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arms": 1}, "arms must be a whole number, 2 or more; got 1"),
        ({"logged": -1}, "logged must be a whole number, 0 or more; got -1"),
        ({"steps": 0}, "steps must be a whole number, 1 or more; got 0"),
        ({"usual": -1}, "usual must be a whole number, 0 or more; got -1"),
        ({"arriving": 0}, "arriving must be a whole number, 1 or more; got 0"),
        ({"interval": 0}, "interval must be a whole number, 1 or more; got 0"),
        ({"usual": 61}, "usual must leave the first arm .* 300 logged steps .* 60 at most; got 61"),
        ({"logged": 0, "usual": 3}, "usual must leave the first arm .* 0 at most; got 3"),
    ],
)
def test_impossible_worlds_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Separate(**options)
