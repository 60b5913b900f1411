from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Decay, RandomDrop, ReferenceSet, Window


def memory(times: Any, ids: Any = None) -> ReferenceSet:
    references = ReferenceSet(dim=1, bandwidth=1.0)
    references.append(np.zeros((len(times), 1)), np.zeros(len(times)), times, ids)
    return references


@settings(max_examples=30)
@given(
    times=st.lists(st.integers(0, 9), min_size=1, max_size=40),
    count=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_a_window_keeps_exactly_the_newest(times: list[int], count: int, seed: int) -> None:
    ids = np.random.default_rng(seed).permutation(len(times))
    references = memory(times, ids)
    gone = Window(count=count).stale(references, 0)
    kept = set(range(len(times))) if gone is None else set(references.ids[~gone])
    newest = sorted(zip(times, ids, strict=True))[-count:]
    assert kept == {i for _, i in newest}


def test_a_window_of_time_keeps_the_last_stretch() -> None:
    references = memory([0.0, 1.0, 2.0, 5.0])
    gone = Window(duration=3.0).stale(references, 0)
    assert gone is not None
    np.testing.assert_array_equal(gone, [True, True, False, False])
    assert Window(duration=5.0).stale(references, 0) is None


def test_decay_drops_what_has_vanished() -> None:
    references = memory([0.0, 15.0, 50.0])
    gone = Decay(half_life=1.0).stale(references, 0)
    assert gone is not None
    np.testing.assert_array_equal(gone, [True, False, False])
    assert Decay(half_life=2.0).stale(references, 0) is None


def test_random_drop_at_once_takes_its_share_at_the_end_of_each_round_only() -> None:
    references = memory(np.zeros(20_000))
    rule = RandomDrop(fraction=0.2, every=100, at_once=True)
    assert [rule.until_next(n) for n in (0, 1, 99, 100)] == [100, 99, 1, 100]
    assert rule.stale(references, 0) is None
    assert rule.stale(references, 150) is None
    first, second = rule.stale(references, 100), rule.stale(references, 200)
    assert first is not None
    assert second is not None
    deviation = 4 * np.sqrt(0.2 * 0.8 / 20_000)
    assert first.mean() == pytest.approx(0.2, abs=deviation)
    assert second.mean() == pytest.approx(0.2, abs=deviation)
    assert (first & second).mean() == pytest.approx(0.04, abs=4 * np.sqrt(0.04 * 0.96 / 20_000))


def test_random_drop_lets_rows_leave_one_by_one_and_the_same_are_gone_after_each_round() -> None:
    slowly, at_once = memory(np.zeros(5_000)), memory(np.zeros(5_000))
    rule = RandomDrop(fraction=0.2, every=100)
    for learned in range(1, 301):
        for references in (slowly, at_once):  # rows that come in the middle of a round leave with the others
            references.append(np.zeros((1, 1)), [0.0], [1.0], [5_000 + learned])
        before = len(slowly)
        for references, how in ((slowly, rule), (at_once, replace(rule, at_once=True))):
            gone = how.stale(references, learned)
            if gone is not None:
                references.forget(gone)
        # In one outcome of a hundred: 10 of 5,000 on average, and never many more.
        assert before - len(slowly) < 10 + 6 * np.sqrt(10)
        if learned % 100 == 0:
            assert set(slowly.ids) == set(at_once.ids)


def test_random_drop_looks_at_ids_not_at_the_order() -> None:
    order = np.random.default_rng(0).permutation(500)
    straight, shuffled = memory(np.zeros(500), np.arange(500)), memory(np.zeros(500), order)
    rule = RandomDrop()
    a, b = rule.stale(straight, 100), rule.stale(shuffled, 100)
    assert a is not None
    assert b is not None
    assert set(straight.ids[a]) == set(shuffled.ids[b])


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (RandomDrop, {"fraction": 0.0}),
        (RandomDrop, {"fraction": 1.0}),
        (RandomDrop, {"every": 0}),
        (Window, {}),
        (Window, {"count": 3, "duration": 1.0}),
        (Window, {"count": 0}),
        (Window, {"duration": -1.0}),
        (Decay, {"half_life": 0.0}),
        (Decay, {"half_life": float("nan")}),
    ],
)
def test_senseless_rules_are_refused(rule: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|either"):
        rule(**options)
