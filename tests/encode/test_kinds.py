from datetime import date

import numpy as np
import pytest

from tercet.encode import EncoderOptions
from tercet.encode.kinds import infer, study

OPTIONS = EncoderOptions(max_categories=4)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None, np.int8(3)], "number"),
        ([True, False, None], "number"),
        ([None, None], "number"),
        (["2024-01-01", "2024-01-02T10:00:00Z", None], "date"),
        ([date(2024, 1, 1), np.datetime64("2024-01-01")], "date"),
        (["20240101", "20240102"], "category"),
        (["2024-01-01", "soon"], "category"),
        (["2024-99-01"], "category"),
        (["01234", "99999"], "category"),
        (["New York City", "Ulm", None], "category"),
        (["a", 1, True], "category"),
        (["the cat sat on the mat", "a dog was in the fog"] * 50, "text"),
        ([f"name{i}" for i in range(5)], "text"),
        ([f"name{i}" for i in range(4)], "category"),
        ([f"name{i}" for i in range(5)] * 2, "category"),
    ],
)
def test_the_kind_of_a_column_is_guessed_from_its_values(values, kind):
    assert infer("column", values, OPTIONS) == kind


def test_a_column_of_no_known_kind_is_named():
    with pytest.raises(ValueError, match=r"column 'tags' has no known kind.*kinds=\{'tags': 'ignore'\}"):
        infer("tags", [["a", "b"]], OPTIONS)


def test_columns_keep_the_order_in_which_they_first_appear():
    rows = [{"b": 1, "user": {"age": 3}}, {"a": 2}]
    assert [field.name for field in study(rows, {}, OPTIONS)] == ["b", "user.age", "a"]


def test_an_ignored_column_may_hold_anything():
    rows = [{"tags": ["a"], "x": 1}]
    assert [field.name for field in study(rows, {"tags": "ignore"}, OPTIONS)] == ["x"]


@pytest.mark.parametrize(
    ("rows", "kinds", "message"),
    [
        ([], {}, "without rows"),
        ([{"a": 1}], {"b": "text"}, r"kinds names the column 'b'; the history has \['a'\]"),
        ([{"a": 1}], {"a": "colour"}, "the kind of column 'a' must be one of"),
        ([{3: 1}], {}, "column names must be strings; got 3"),
        ([{"a": 1}, {"a": "x"}], {"a": "number"}, "row 1, column 'a': expected a number; got 'x'"),
        ([{"a": 1}, {"a": np.inf}], {}, "row 1, column 'a': expected a finite number"),
    ],
)
def test_a_history_that_can_not_be_read_is_refused(rows, kinds, message):
    with pytest.raises(ValueError, match=message):
        study(rows, kinds, OPTIONS)
