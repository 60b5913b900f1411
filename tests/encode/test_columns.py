from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from tercet.encode.columns import CYCLES, PARTS, Date, Number, calendar, word_ngrams

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)  # lone surrogates included


@given(ANY_TEXT, st.sampled_from([(1, 1), (1, 3), (3, 4), (2, 5), (6, 6)]))
@settings(max_examples=200, deadline=None)
def test_ngrams_are_those_of_scikit_learn(text, sizes):
    analyse = CountVectorizer(analyzer="char_wb", ngram_range=sizes).build_analyzer()
    assert list(word_ngrams(text, *sizes)) == analyse(text)


@given(st.datetimes())
@settings(max_examples=200, deadline=None)
def test_the_calendar_is_that_of_numpy(moment):
    parts = dict(zip((*PARTS, *CYCLES), calendar(moment), strict=True))
    stamp = np.datetime64(moment, "us")
    year, day = stamp.astype("datetime64[Y]"), stamp.astype("datetime64[D]")
    length = int(((year + 1).astype("datetime64[D]") - year.astype("datetime64[D]")).astype(int))
    of_year = float((stamp - year).astype("timedelta64[us]").astype(float)) / (length * 86_400e6)
    assert parts["year"] == int(year.astype(int)) + 1970
    assert parts["day"] == int((day - stamp.astype("datetime64[M]")).astype(int)) + 1
    assert parts["weekday"] == (int(day.astype(int)) + 3) % 7  # 1970 began on a Thursday
    assert parts["seconds"] == pytest.approx(stamp.astype(np.int64) / 1e6, rel=1e-15)
    # An angle of up to 2 pi carries a rounding error of a few units in the last place of 6.28.
    assert parts["sin of year"] == pytest.approx(np.sin(2 * np.pi * of_year), abs=1e-14)
    assert parts["cos of year"] == pytest.approx(np.cos(2 * np.pi * of_year), abs=1e-14)


def test_cycles_turn_once_a_day_a_week_and_a_year():
    monday_morning = dict(zip((*PARTS, *CYCLES), calendar(datetime(2024, 1, 1, 6)), strict=True))
    assert monday_morning["sin of day"] == pytest.approx(1.0)
    assert monday_morning["sin of week"] == pytest.approx(np.sin(2 * np.pi / 28))
    assert monday_morning["cos of year"] == pytest.approx(np.cos(2 * np.pi * 0.25 / 366))


def test_a_pandas_timestamp_has_the_calendar_of_its_datetime():
    moment = datetime(1912, 4, 15, 2, 20, 1, 5)
    assert calendar(pd.Timestamp(moment)) == calendar(moment)


@pytest.mark.parametrize(
    "column",
    [
        Number(name="x", gaps=False, mean=0.0, scale=1e-3),
        Date(name="x", gaps=False, parts=("seconds",), means=(0.0,), scales=(1e-35,)),
    ],
    ids=lambda column: type(column).__name__,
)
def test_a_value_too_far_from_the_history_is_refused(column):
    far = 1e38 if isinstance(column, Number) else "2024-01-01"
    with pytest.raises(ValueError, match="too far from the history's mean"):
        column.write(far, np.zeros(1), 0)
