from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.checks import LARGEST
from tercet.encode import cells

MISSING = [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NaT, pd.NA, Decimal("nan")]


@pytest.mark.parametrize("value", MISSING, ids=repr)
@pytest.mark.parametrize("reader", [cells.number, cells.label, cells.moment])
def test_every_reader_knows_every_missing_value(reader, value):
    assert cells.missing(value)
    assert reader(value) is None


@pytest.mark.parametrize("value", [0, "", False, "nan", [], np.zeros(3), datetime(1970, 1, 1)], ids=repr)
def test_an_empty_value_is_not_a_missing_one(value):
    assert not cells.missing(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.bool_(False), 0.0),
        (Decimal("1.5"), 1.5),
        ("2e3", 2000.0),
    ],
)
def test_numbers_of_any_type_are_read(value, expected):
    assert cells.number(value) == expected


@pytest.mark.parametrize("value", ["", "cheap", [1.0], {}, datetime(2024, 1, 1), 1j], ids=repr)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="expected a number; got"):
        cells.number(value)


@pytest.mark.parametrize("value", [np.inf, -np.inf, "inf", 10 * LARGEST, 1e300], ids=repr)
def test_numbers_beyond_float32_are_refused(value):
    with pytest.raises(ValueError, match="float32"):
        cells.number(value)


def test_an_integer_beyond_any_float_is_refused():
    with pytest.raises(ValueError, match="expected a number"):
        cells.number(10**400)


@pytest.mark.parametrize("value", [7, 7.0, np.int32(7), np.float64(7), Decimal(7), "7"], ids=repr)
def test_a_whole_number_has_one_label_whatever_its_type(value):
    assert cells.label(value) == "7"


def test_big_integers_keep_their_digits_as_labels():
    assert cells.label(2**60 + 1) == str(2**60 + 1)


@pytest.mark.parametrize("value", [["a"], ("a",), {"a": 1}, b"a", np.array(["a"])], ids=repr)
def test_what_is_no_label_is_refused(value):
    with pytest.raises(ValueError, match="expected a string"):
        cells.label(value)


@pytest.mark.parametrize(
    "value",
    [
        datetime(2024, 2, 29, 23, 15, 0, 250_000),
        "2024-02-29T23:15:00.25",
        "2024-02-29 23:15:00.250000Z",
        "2024-03-01T00:15:00.25+01:00",
        datetime(2024, 2, 29, 18, 15, 0, 250_000, tzinfo=timezone(timedelta(hours=-5))),
        np.datetime64("2024-02-29T23:15:00.250"),
        np.datetime64("2024-02-29T23:15:00.250000000"),
        pd.Timestamp("2024-02-29T23:15:00.25"),
        pd.Timestamp("2024-02-29T18:15:00.25", tz=timezone(timedelta(hours=-5))),
    ],
    ids=repr,
)
def test_one_moment_is_read_from_every_spelling(value):
    assert cells.moment(value) == datetime(2024, 2, 29, 23, 15, 0, 250_000)


@pytest.mark.parametrize("value", [date(1969, 7, 20), "1969-07-20", np.datetime64("1969-07-20")], ids=repr)
def test_a_date_is_its_midnight(value):
    assert cells.moment(value) == datetime(1969, 7, 20)


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)), st.integers(-840, 840))
@settings(max_examples=50, deadline=None)
def test_zones_are_converted_as_pandas_converts_them(utc, minutes):
    local = utc.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    theirs = pd.Timestamp(local).tz_convert("UTC").tz_localize(None).to_pydatetime()
    assert cells.moment(local.isoformat()) == cells.moment(local) == theirs == utc


@pytest.mark.parametrize(
    "value", ["", "yesterday", "2024-13-01", 1_700_000_000, True, timedelta(1), ["2024"]], ids=repr
)
def test_what_is_no_date_is_refused(value):
    with pytest.raises(ValueError, match="expected a date"):
        cells.moment(value)


def test_a_date_that_leaves_the_calendar_in_utc_is_refused():
    with pytest.raises(ValueError, match="years 1 to 9999"):
        cells.moment("0001-01-01T00:00:00+05:00")
