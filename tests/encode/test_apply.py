import json
import subprocess
import sys
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from tercet import checkpoint
from tercet.encode import Encoder, EncoderOptions

HISTORY = [
    {
        "price": 1.0,
        "colour": "red",
        "posted": "2024-01-01",
        "title": "Rain in Ulm again",
        "user": {"age": 30},
    },
    {
        "price": 3.0,
        "colour": "blue",
        "posted": "2024-03-05",
        "title": "No rain in Bonn",
        "user": {"age": None},
    },
    {"price": 2.0, "colour": None, "posted": "2025-07-09", "title": "Sun over the lake", "user": {"age": 50}},
    {"price": 2.0, "colour": "red", "posted": "2025-07-10", "title": "Sun over Ulm", "user": {}},
]
KINDS = {"title": "text"}


@pytest.fixture(scope="module")
def encoder():
    return Encoder.fit(HISTORY, kinds=KINDS)


def value(encoder, row, name):
    return encoder.transform_one(row)[encoder.names.index(name)]


def test_every_feature_has_a_readable_name(encoder):
    assert encoder.names[:4] == ("price", "colour=blue", "colour=red", "colour is missing")
    assert encoder.names[-2:] == ("user.age", "user.age is missing")
    assert {"posted seconds", "posted sin of year", "title[0]"} <= set(encoder.names)
    assert encoder.width == len(encoder.names) == encoder.transform(HISTORY).shape[1]


def test_one_row_and_a_table_agree_to_the_bit(encoder):
    table = encoder.transform(HISTORY)
    assert table.dtype == np.float64
    np.testing.assert_array_equal(table, [encoder.transform_one(row) for row in HISTORY])


def test_frames_and_dicts_agree_to_the_bit():
    rows = [
        {"price": 1.5, "n": 3, "colour": "red", "posted": date(2024, 1, 1)},
        {"price": None, "n": None, "colour": None, "posted": None},
        {"price": 2.5, "n": 5, "colour": "blue", "posted": date(2025, 2, 3)},
    ]
    pandas = pd.DataFrame(rows).astype({"posted": "datetime64[ns]", "n": "Int64", "colour": "category"})
    polars = pl.DataFrame(rows)
    expected = Encoder.fit(rows)
    for frame in (pandas, polars):
        encoder = Encoder.fit(frame)
        assert encoder.version == expected.version
        np.testing.assert_array_equal(encoder.transform(frame), expected.transform(rows))


def test_unknown_names_are_ignored_and_absent_ones_are_missing(encoder):
    row = {"price": 2.0, "surprise": [1, 2], "user": {"shoe": 44}}
    missing = {"price": 2.0, "colour": None, "posted": None, "title": None, "user": {"age": None}}
    np.testing.assert_array_equal(encoder.transform_one(row), encoder.transform_one(missing))


def test_a_missing_number_is_the_mean_and_is_marked_where_the_history_had_gaps(encoder):
    assert value(encoder, {}, "price") == 0.0
    assert "price is missing" not in encoder.names
    assert value(encoder, {}, "user.age") == 0.0
    assert value(encoder, {}, "user.age is missing") == 1.0
    assert value(encoder, {"user": {"age": 40}}, "user.age is missing") == 0.0


def test_an_unseen_category_is_none_of_the_known(encoder):
    vector = encoder.transform_one({"colour": "mauve"})
    assert not vector[[name.startswith("colour") for name in encoder.names]].any()


def test_rare_and_unseen_categories_share_a_feature():
    history = [{"c": label} for label in ["a"] * 5 + ["b"] * 4 + ["x", "y", None]]
    encoder = Encoder.fit(history, options=EncoderOptions(max_categories=3))
    assert encoder.names == ("c=a", "c=b", "c is rare", "c is missing")
    np.testing.assert_array_equal(encoder.transform_one({"c": "x"}), [0, 0, 1, 0])
    np.testing.assert_array_equal(encoder.transform_one({"c": "new"}), [0, 0, 1, 0])
    np.testing.assert_array_equal(encoder.transform_one({"c": None}), [0, 0, 1, 1])


def test_a_missing_date_is_zero_and_marked_where_the_history_had_gaps():
    encoder = Encoder.fit([{"d": "2024-01-01"}, {"d": "2024-02-02"}, {"d": None}])
    vector = encoder.transform_one({})
    assert encoder.names[-1] == "d is missing"
    assert vector[-1] == 1.0
    assert not vector[:-1].any()


def test_a_column_of_one_value_with_gaps_tells_whether_it_is_there():
    encoder = Encoder.fit([{"coupon": True}, {}])
    assert encoder.names == ("coupon is missing",)
    assert encoder.transform([{"coupon": True}, {"coupon": None}]).tolist() == [[0.0], [1.0]]


def test_a_kind_can_be_imposed():
    rows = [{"zip": 89073}, {"zip": 53111}]
    assert Encoder.fit(rows).names == ("zip",)
    assert Encoder.fit(rows, kinds={"zip": "category"}).names == ("zip=53111", "zip=89073")
    assert Encoder.fit(rows, kinds={"zip": "ignore"}).names == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"price": "cheap"}, "row 1, column 'price': expected a number; got 'cheap'"),
        ({"price": np.inf}, "row 1, column 'price': expected a finite number"),
        (
            {"price": 1e39},
            "row 1, column 'price': expected a finite number within float32's range; got 1e.39",
        ),
        ({"user": {"age": [3]}}, "row 1, column 'user.age': expected a number"),
        ({"posted": 7}, "row 1, column 'posted': expected a date"),
        ({"colour": ["red"]}, "row 1, column 'colour': expected a string"),
        ({"title": b"x"}, "row 1, column 'title': expected a string"),
    ],
    ids=repr,
)
def test_a_bad_value_is_named_by_row_and_column(encoder, row, message):
    with pytest.raises(ValueError, match=message):
        encoder.transform([{}, row])
    with pytest.raises(ValueError, match=message.removeprefix("row 1, ")):
        encoder.transform_one(row)


def test_an_empty_history_is_refused():
    for empty in ([], pd.DataFrame({"a": []})):
        with pytest.raises(ValueError, match="without rows"):
            Encoder.fit(empty)


def test_an_empty_table_has_no_vectors(encoder):
    assert encoder.transform([]).shape == (0, encoder.width)


def test_transform_never_learns(encoder):
    before = encoder.version
    encoder.transform([{"price": 1e6, "colour": "mauve", "title": "never seen before"}] * 3)
    assert Encoder.from_state(*encoder.to_state()).version == before


def test_the_state_survives_json(encoder):
    arrays, spec = encoder.to_state()
    again = Encoder.from_state(arrays, json.loads(json.dumps(spec)))
    assert (again.names, again.version) == (encoder.names, encoder.version)
    np.testing.assert_array_equal(again.transform(HISTORY), encoder.transform(HISTORY))


def test_another_history_has_another_version(encoder):
    assert Encoder.fit(HISTORY[:3], kinds=KINDS).version != encoder.version


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=8), min_size=2, max_size=6))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_saved_encoder_transforms_to_the_bit_whatever_the_script(tmp_path, words):
    rows = [{"word": word, "label": word, "price": len(word)} for word in words]
    encoder = Encoder.fit(rows, kinds={"word": "text", "label": "category"})
    encoder.save(tmp_path / "encoder.safetensors")
    again = Encoder.load(tmp_path / "encoder.safetensors")
    assert (again.names, again.version) == (encoder.names, encoder.version)
    np.testing.assert_array_equal(again.transform(rows), encoder.transform(rows))


@pytest.fixture(scope="module")
def saved(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("encoder") / "encoder.safetensors"
    encoder.save(path)
    return path.read_bytes()


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_refused_or_harmless(encoder, saved, tmp_path, data):
    place = data.draw(st.integers(0, len(saved) - 1))
    flip = data.draw(st.integers(1, 255))
    path = tmp_path / "damaged"
    path.write_bytes(saved[:place] + bytes([saved[place] ^ flip]) + saved[place + 1 :])
    try:
        survivor = Encoder.load(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017 - a flip in the padding leaves a sound file
    else:
        assert survivor.version == encoder.version


@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_truncated_file_is_refused(saved, tmp_path, data):
    path = tmp_path / "truncated"
    path.write_bytes(saved[: data.draw(st.integers(0, len(saved) - 1))])
    with pytest.raises(ValueError, match=str(path)):
        Encoder.load(path)


def test_a_foreign_file_is_refused(tmp_path):
    save_file({"weight": np.ones(3)}, tmp_path / "foreign")
    checkpoint.write(tmp_path / "policy", "policy", {}, {})
    for path in (tmp_path / "foreign", tmp_path / "policy", tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=str(path)):
            Encoder.load(path)


def test_a_state_with_another_content_is_refused(encoder):
    arrays, spec = encoder.to_state()
    with pytest.raises(ValueError, match="does not match its version"):
        Encoder.from_state({name: array + 1 for name, array in arrays.items()}, spec)
    with pytest.raises(ValueError, match="does not match its version"):
        Encoder.from_state({}, spec)


def test_deciding_imports_no_table_and_no_learning_package(encoder, tmp_path):
    encoder.save(tmp_path / "encoder")
    script = (
        "import sys; from tercet.encode import Encoder\n"
        "encoder = Encoder.load(sys.argv[1])\n"
        "encoder.transform([{'title': 'Rain', 'posted': '2024-01-01', 'colour': 'red', 'price': 1}])\n"
        "print({'pandas', 'polars', 'narwhals', 'sklearn', 'skrub'} & sys.modules.keys() or 'none')"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "encoder"], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "none"
