from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tercet import Feedback, stable_ids

TABLE = {
    "age": [31.0, 45.0, 22.0],
    "price": [9.5, 1.0, 3.0],
    "weight": [1, 2, 3],
    "clicked": [1, 0, 1],
    "at": [datetime(2026, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)],
    "event": ["a", "b", "c"],
    "product": ["ski", "board", "ski"],
    "chance": [0.5, 0.25, 1.0],
}  # fmt: skip


def columns(n: int = 3, **changes: Any) -> dict[str, Any]:
    return {"contexts": np.ones((n, 2)), "arms": np.zeros((n, 1)), "rewards": np.full(n, 0.5)} | changes


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_either_library_becomes_feedback(make: Any) -> None:
    feedback = Feedback.from_frame(
        make(TABLE), context=["age"], arm=["price", "weight"], reward="clicked", time="at", id="event",
        arm_id="product", propensity="chance",
    )  # fmt: skip
    np.testing.assert_array_equal(feedback.contexts, [[31], [45], [22]])
    np.testing.assert_array_equal(feedback.arms, [[9.5, 1], [1, 2], [3, 3]])
    np.testing.assert_array_equal(feedback.rewards, [1, 0, 1])
    np.testing.assert_array_equal(feedback.times, [1767225600, -2, 1767312000])
    np.testing.assert_array_equal(feedback.ids, stable_ids(["a", "b", "c"]))
    np.testing.assert_array_equal(feedback.arm_ids, ["ski", "board", "ski"])
    np.testing.assert_array_equal(feedback.propensities, [0.5, 0.25, 1])


def test_numbers_serve_as_times_and_a_context_may_be_absent() -> None:
    feedback = Feedback.from_frame(
        pd.DataFrame(TABLE), context=[], arm=["price"], reward="clicked", time="weight"
    )
    assert feedback.contexts.shape == (3, 0)
    np.testing.assert_array_equal(feedback.times, [1, 2, 3])


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match=r"no column \['colour'\]; it has \['age'"):
        Feedback.from_frame(pd.DataFrame(TABLE), context=["colour"], arm=["price"], reward="clicked")


def test_a_column_of_words_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match=r"tercet\.Encoder"):
        Feedback.from_frame(pd.DataFrame(TABLE), context=["product"], arm=["price"], reward="clicked")


@pytest.mark.parametrize(
    "times",
    [
        pd.Series(pd.date_range("2026-01-01", periods=3, freq="s")),
        np.array(["2026-01-01T00:00:00", "2026-01-01T00:00:01", "2026-01-01T00:00:02"], "M8[s]"),
        [datetime(2026, 1, 1, 0, 0, second) for second in range(3)],
        pd.date_range("2026-01-01T02:00", periods=3, freq="s", tz="Europe/Helsinki"),
    ],
)
def test_dates_of_any_kind_are_seconds(times: Any) -> None:
    assert list(Feedback(**columns(times=times)).times) == [1767225600.0, 1767225601.0, 1767225602.0]  # type: ignore[arg-type]


def test_objects_that_are_numbers_stay_numbers() -> None:
    frame = pd.DataFrame(TABLE | {"n": pd.Series([1, 2, 3], dtype=object)})
    feedback = Feedback.from_frame(frame, context=[], arm=["price"], reward="clicked", time="n")
    np.testing.assert_array_equal(feedback.times, [1, 2, 3])


def test_feedback_does_not_change_with_the_callers_arrays() -> None:
    rewards = np.array([0.0, 0.5, 1.0])
    feedback = Feedback(**columns(rewards=rewards))
    rewards[0] = 7
    assert feedback.rewards[0] == 0


def test_one_row_is_taken_as_a_slice() -> None:
    with pytest.raises(TypeError, match=r"\[i : i \+ 1\]"):
        Feedback(**columns())[0]  # type: ignore[index]


def test_a_missing_time_is_refused() -> None:
    frame = pd.DataFrame(TABLE | {"at": [datetime(2026, 1, 1), None, datetime(2026, 1, 2)]})
    with pytest.raises(ValueError, match="row 1"):
        Feedback.from_frame(frame, context=[], arm=["price"], reward="clicked", time="at")


def test_rows_move_together() -> None:
    feedback = Feedback(
        **columns(rewards=[0.1, 0.2, 0.3], times=[3.0, 2.0, 1.0], ids=[7, 8, 9], arm_ids=["a", "b", "c"])
    )
    for rows in (slice(1, None), np.array([1, 2]), np.array([False, True, True])):
        part = feedback[rows]
        assert list(part.rewards) == [0.2, 0.3]
        assert part.times is not None
        assert part.ids is not None
        assert part.arm_ids is not None
        assert (list(part.times), list(part.ids), list(part.arm_ids)) == ([2.0, 1.0], [8, 9], ["b", "c"])


def test_one_and_concat_agree_with_the_columns() -> None:
    ones = [
        Feedback.one(context=[1.0, 2.0], arm=[3.0], reward=r, time=t, id=i, arm_id="x", propensity=0.5)
        for r, t, i in [(0.0, 1.0, 10), (1.0, 2.0, 11)]
    ]
    both = Feedback.concat(ones)
    assert both.times is not None
    assert both.ids is not None
    assert len(both) == 2
    assert list(both.times) == [1.0, 2.0]
    assert list(both.ids) == [10, 11]
    np.testing.assert_array_equal(both.joint(), [[1, 2, 3], [1, 2, 3]])


def test_an_empty_feedback_has_no_rows() -> None:
    assert len(Feedback(**columns(0))) == 0


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("contexts must be finite", {"contexts": [[np.nan, 0]] * 3}),
        ("within float32's range", {"contexts": [[1e39, 0]] * 3}),
        ("arms must be finite", {"arms": [[np.inf]] * 3}),
        ("contexts must be a matrix", {"contexts": [1, 2, 3]}),
        ("contexts must be numbers in equal rows", {"contexts": [[1], [2, 3], [4]]}),
        ("equal lengths; got 3 and 2", {"arms": [[1], [2]]}),
        (r"rewards must lie in \[0, 1\]; got 3.2 in row 1", {"rewards": [0, 3.2, 0]}),
        ("rewards must have length 3; got 2", {"rewards": [0, 1]}),
        ("times must be finite", {"times": [0, np.nan, 0]}),
        ("contexts must be numbers", {"contexts": [["1", "2"]] * 3}),
        ("times must be numbers", {"times": np.array([1, 2, 3], "m8[s]")}),
        ("ids must be integers", {"ids": ["a", "b", "c"]}),
        ("ids must have length 3", {"ids": [1]}),
        ("arm_ids must have length 3", {"arm_ids": ["a"]}),
        ("propensities must lie in", {"propensities": [0.5, 1.5, 0.5]}),
    ],
)
def test_bad_columns_are_refused(message: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=message):
        Feedback(**columns(**change))


def test_parts_that_do_not_fit_are_not_joined() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        Feedback.concat([])
    with pytest.raises(ValueError, match="same columns"):
        Feedback.concat([Feedback(**columns()), Feedback(**columns(times=[1, 2, 3]))])
    with pytest.raises(ValueError, match="arms must have the same width"):
        Feedback.concat([Feedback(**columns()), Feedback(**columns(arms=np.zeros((3, 2))))])


def test_stable_ids_are_the_same_everywhere() -> None:
    assert stable_ids(["event-1"])[0] == 2123818840965202205  # b2sum -l 64, little-endian
    np.testing.assert_array_equal(stable_ids([5, -3]), [5, -3])
    with pytest.raises(ValueError, match="floats"):
        stable_ids([1.0, 2.0])
    assert len(np.unique(stable_ids(str(i) for i in range(10_000)))) == 10_000


def test_columns_can_not_be_changed_from_outside() -> None:
    feedback = Feedback.one(context=[1.0], arm=[2.0], reward=0.5)
    with pytest.raises(ValueError, match="read-only"):
        feedback.contexts[0, 0] = 9.0


def test_integers_have_the_same_ids_whatever_the_type_of_their_column() -> None:
    np.testing.assert_array_equal(stable_ids(np.array([5, 6], dtype=object)), [5, 6])
    np.testing.assert_array_equal(stable_ids(np.array([5, 6], dtype=np.uint8)), [5, 6])
