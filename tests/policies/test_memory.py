from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback, checkpoint
from tercet.policies.base import arm_keys
from tercet.policies.memory import COLUMNS, Outcomes, Scale, in_time, offered_keys

LIMITS = st.none() | st.integers(1, 200)
SIZES = st.lists(st.integers(0, 150), max_size=8)


def some(n: int, seed: int = 0, *, timed: bool = True, named: bool = False) -> Feedback:
    rng = np.random.default_rng(seed)
    return Feedback(
        contexts=rng.normal(size=(n, 2)),
        arms=rng.integers(2, size=(n, 3)),
        rewards=rng.random(n),
        times=rng.random(n) if timed else None,
        arm_ids=rng.integers(9, size=n) if named else None,
    )


def plain(parts: list[Feedback]) -> dict[str, list[Any]]:
    """All columns as lists, without a limit."""
    lists: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for part in parts:
        times = (np.arange(len(part)) + len(lists["times"])).tolist()
        lists["times"] += times if part.times is None else part.times.tolist()
        lists["keys"] += arm_keys(part.arms, part.arm_ids).tolist()
        for name in ("contexts", "arms", "rewards"):
            lists[name] += getattr(part, name).tolist()
    return lists


def through_a_file(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    with TemporaryDirectory() as folder:
        checkpoint.write(Path(folder) / "memory", "memory", arrays, {})
        return checkpoint.read(Path(folder) / "memory", "memory")[0]


@given(LIMITS, SIZES, st.booleans(), st.booleans())
@settings(max_examples=60)
def test_columns_equal_a_plain_list_of_the_newest_rows_after_any_appends(
    limit: int | None, sizes: list[int], timed: bool, named: bool
) -> None:
    memory = Outcomes(limit=limit)
    parts = [some(size, seed, timed=timed, named=named) for seed, size in enumerate(sizes)]
    for part in parts:
        memory.append(part)
    lists = plain(parts)
    assert memory.seen == sum(sizes)
    assert len(memory) == min(sum(sizes), limit or sum(sizes))
    if sum(sizes):
        for name in COLUMNS:
            assert getattr(memory, name).tolist() == lists[name][-limit if limit else None :]


@given(LIMITS, SIZES, SIZES)
@settings(max_examples=40)
def test_a_memory_read_back_from_a_file_goes_on_alike(
    limit: int | None, before: list[int], after: list[int]
) -> None:
    memory = Outcomes(limit=limit)
    for seed, size in enumerate(before):
        memory.append(some(size, seed, timed=False))
    again = Outcomes.from_arrays(through_a_file(memory.to_arrays()), limit=limit)
    for seed, size in enumerate(after):
        for each in (memory, again):
            each.append(some(size, 100 + seed, timed=False))
    one, two = memory.to_arrays(), again.to_arrays()
    assert one.keys() == two.keys()
    for name, column in one.items():
        np.testing.assert_array_equal(column, two[name])


def test_arrays_are_copies_that_later_appends_leave_alone() -> None:
    memory = Outcomes(limit=2)
    memory.append(some(2))
    arrays = memory.to_arrays()
    before = arrays["rewards"].copy()
    memory.append(some(50, seed=1))
    np.testing.assert_array_equal(arrays["rewards"], before)


def test_outcomes_of_another_width_are_refused_and_change_nothing() -> None:
    memory = Outcomes()
    memory.append(some(2))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(1, 3\)"):
        memory.append(Feedback.one(context=[0.0], arm=[1.0, 0.0, 0.0], reward=1.0))
    assert len(memory) == memory.seen == 2


def test_an_empty_memory_has_no_columns_to_read() -> None:
    with pytest.raises(ValueError, match="no outcomes yet"):
        _ = Outcomes().rewards


def test_a_memory_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be a whole number"):
        Outcomes(limit=0)


def test_scaled_pairs_have_the_spread_of_one_feature_however_many_there_are() -> None:
    history = some(500)
    contexts, arms = Scale.of(history).apply(history.contexts, history.arms)
    points = np.hstack([contexts, arms])
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose((points**2).sum(1).mean(), 1)


def test_an_empty_history_scales_by_the_number_of_features_alone() -> None:
    contexts, arms = Scale.of(some(0)).apply(np.ones((1, 2)), np.ones((4, 3)))
    np.testing.assert_allclose(contexts, np.full((1, 2), 5**-0.5))
    np.testing.assert_allclose(arms, np.full((4, 3), 5**-0.5))


def test_a_standard_scale_gives_each_feature_of_the_history_mean_zero_and_spread_one() -> None:
    history = some(400)
    for columns in Scale.standard(history).apply(history.contexts, history.arms):
        np.testing.assert_allclose(columns.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose(columns.std(0), 1)
    contexts, arms = Scale.standard(history, arms=False).apply(history.contexts, history.arms)
    np.testing.assert_allclose(contexts.std(0), 1)
    np.testing.assert_array_equal(arms, history.arms)


def test_a_standard_scale_without_a_history_leaves_features_and_cuts_monsters() -> None:
    contexts, arms = Scale.standard(some(0)).apply(np.full((1, 2), 0.7), np.array([[1e38, -1e38, 0.0]]))
    np.testing.assert_array_equal(contexts, 0.7)
    np.testing.assert_array_equal(arms, [[10, -10, 0]])


def test_a_memory_with_a_scale_keeps_scaled_features_and_the_keys_of_the_arms() -> None:
    history, scale = some(20), Scale.of(some(20))
    memory = Outcomes(limit=5, scale=scale)
    memory.append(history)
    contexts, arms = scale.apply(history.contexts, history.arms)
    np.testing.assert_array_equal(memory.joint(), np.hstack([contexts, arms])[-5:])
    np.testing.assert_array_equal(memory.keys, arm_keys(history.arms)[-5:])
    np.testing.assert_array_equal(memory.scaled(contexts, arms)[1], scale.apply(contexts, arms)[1])


@pytest.mark.parametrize("measure", [Scale.of, Scale.standard])
def test_a_scale_goes_with_its_memory_through_a_file(measure: Any) -> None:
    memory, history = Outcomes(scale=measure(some(20))), some(5, seed=1)
    wild = history.contexts * 1e37  # beyond any reach
    again = Outcomes.from_arrays(through_a_file(memory.to_arrays()))
    for one, two in zip(
        memory.scaled(wild, history.arms),
        again.scaled(wild, history.arms),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


def test_a_scale_knows_the_widths_before_the_first_outcome() -> None:
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(3, 2\)"):
        Outcomes(scale=Scale.of(some(4))).scaled(np.ones((1, 3)), np.ones((1, 2)))


def test_outcomes_are_put_in_the_order_of_their_times() -> None:
    history = some(30)
    assert (np.diff(in_time(history).times) >= 0).all()
    untimed = some(30, timed=False)
    np.testing.assert_array_equal(in_time(untimed).rewards, untimed.rewards)


def test_ids_must_be_as_many_as_the_arms() -> None:
    with pytest.raises(ValueError, match="arm_ids must have length 3, one for each arm; got 2"):
        offered_keys(np.eye(3), ["a", "b"])
