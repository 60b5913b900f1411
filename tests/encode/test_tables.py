import pandas as pd
import polars as pl
import pytest

from tercet.encode.tables import flatten, rows_of

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize("table", [ROWS, tuple(ROWS), pd.DataFrame(ROWS), pl.DataFrame(ROWS)], ids=type)
def test_tables_of_every_make_have_the_same_rows(table):
    assert rows_of(table) == ROWS


def test_a_frame_without_columns_still_has_rows():
    assert rows_of(pd.DataFrame(index=range(3))) == [{}, {}, {}]


@pytest.mark.parametrize("table", [3, "abc", {"a": 1}, None])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(ValueError, match="a list of dicts, a pandas or a polars frame; got"):
        rows_of(table)


def test_a_row_that_is_no_dict_is_named():
    with pytest.raises(ValueError, match="row 1 is 7"):
        rows_of([{"a": 1}, 7])


def test_a_flat_row_passes_unchanged():
    assert flatten(ROWS[0]) is ROWS[0]


def test_an_empty_nested_dict_leaves_nothing():
    assert flatten({"user": {}, "a": 1}) == {"a": 1}


@pytest.mark.parametrize("row", [{"a": {"b": 1}, "a.b": 2}, {"a.b": 2, "a": {"b": 1}}])
def test_two_values_of_one_name_are_refused(row):
    with pytest.raises(ValueError, match=r"two values are called 'a\.b'"):
        flatten(row)
