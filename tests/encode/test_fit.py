from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.encode import Encoder, EncoderOptions
from tercet.encode import fit as fitting
from tercet.encode.columns import word_ngrams

KINDS = {"user.age": "number", "colour": "category", "posted": "date", "title": "text"}
OPTIONS = EncoderOptions(max_categories=3, text_components=4, max_ngrams=60)

ZONES = st.none() | st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes)))
DATES = st.datetimes(min_value=datetime(1500, 1, 1), max_value=datetime(2500, 1, 1), timezones=ZONES)
# Six decimals keep the scales away from zero, where any new value is too far from the history.
NUMBERS = st.integers(-1000, 1000) | st.floats(-1e6, 1e6).map(lambda x: round(x, 6)) | st.just(float("nan"))
LABELS = st.sampled_from(["red", "green", "blue", "", "a=b"]) | st.text(max_size=2) | st.integers(0, 3)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=15) | st.sampled_from(
    ["Rain in Ulm", "rain  ulm"]
)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "user": st.fixed_dictionaries({}, optional={"age": st.none() | NUMBERS}),
        "colour": st.none() | LABELS,
        "posted": st.none() | DATES | DATES.map(datetime.isoformat),
        "title": st.none() | TEXTS,
    },
)
FIRST = {"user": {"age": 1}, "colour": "red", "posted": "1969-07-20", "title": "Rain in Ulm"}


def text_tolerance(library, rows):
    """Skrub sums m products of unit vectors in float32, then divides by its scaling factor."""
    fitted = library.pipeline.named_transformers_
    scales = [
        fitted[str(i)].scaling_factor_ for i, f in enumerate(library.fields) if f.kind == "text" and f.varies
    ]
    longest = max((len(list(word_ngrams(row.get("title") or "", 3, 4))) for row in rows), default=0)
    return (longest + 2) * 2.0**-24 / min(scales, default=1.0)


@given(st.lists(ROWS, max_size=12), st.lists(ROWS, max_size=5))
@settings(max_examples=100, deadline=None)
def test_the_encoder_agrees_with_the_library_on_any_table(history, fresh):
    history = [FIRST, *history]
    library = fitting.fit(history, kinds=KINDS, options=OPTIONS)
    encoder = Encoder(fitting.export(library))
    rows = history + fresh
    ours, theirs = encoder.transform(rows), library.transform(rows)
    is_text = np.array([name.startswith("title[") for name in encoder.names], dtype=bool)
    np.testing.assert_allclose(ours[:, ~is_text], theirs[:, ~is_text], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        ours[:, is_text], theirs[:, is_text], rtol=1e-6, atol=text_tolerance(library, rows)
    )


def titles(count, rng):
    words = ["sun", "moon", "river", "market", "police", "storm", "team", "city", "bridge", "tram", "vote"]
    return [" ".join(rng.choice(words, size=rng.integers(4, 9))) for _ in range(count)]


def test_the_encoder_agrees_with_the_library_on_a_catalogue():
    rng = np.random.default_rng(5)
    rows = [
        {
            "price": price,
            "shop": f"shop {shop}",
            "posted": int(day) * np.timedelta64(1, "h") + np.datetime64("2023-11-01"),
            "title": title,
        }
        for price, shop, day, title in zip(
            rng.normal(20, 5, 400),
            rng.geometric(0.05, 400),
            rng.integers(0, 9000, 400),
            titles(400, rng),
            strict=True,
        )
    ]
    library = fitting.fit(rows[:300], kinds={"shop": "category"}, options=EncoderOptions())
    encoder = Encoder(fitting.export(library))
    assert {type(column).__name__ for column in encoder.columns} == {"Number", "Category", "Date", "Text"}
    assert "shop is rare" in encoder.names
    text = encoder.names.index("title[0]")
    ours, theirs = encoder.transform(rows), library.transform(rows)
    np.testing.assert_allclose(ours[:, :text], theirs[:, :text], rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours[:, text:], theirs[:, text:], rtol=0, atol=1e-6)


def test_equal_histories_give_equal_encoders():
    rows = [{"title": title} for title in titles(60, np.random.default_rng(1))]
    assert Encoder.fit(rows).version == Encoder.fit(rows).version


def test_numbers_have_mean_zero_and_deviation_one_in_the_history():
    rows = [{"price": float(x)} for x in np.random.default_rng(2).normal(50, 7, 200)]
    features = Encoder.fit(rows).transform(rows)[:, 0]
    assert abs(features.mean()) < 1e-12
    assert features.std() == pytest.approx(1.0, abs=1e-12)


def test_constant_and_empty_columns_leave_nothing():
    rows = [
        {"same": 1, "none": None, "word": "a", "day": "2024-01-01", "title": text} for text in ("A  b", "a B")
    ]
    encoder = Encoder.fit(rows, kinds={"title": "text"})
    assert encoder.names == ()
    assert encoder.transform(rows).shape == (2, 0)
    assert fitting.fit(rows, kinds={"title": "text"}, options=OPTIONS).transform(rows).shape == (2, 0)


def test_parts_of_a_date_that_never_varied_leave_nothing():
    rows = [{"day": "2024-03-04"}, {"day": "2024-03-11"}]  # two Mondays of one month
    assert Encoder.fit(rows).names == ("day day", "day seconds", "day sin of year", "day cos of year")


@pytest.mark.parametrize("texts", [["", " ", "\t"], ["a", ""], ["a b", "b a"], ["a", "a a"]], ids=repr)
def test_texts_with_next_to_nothing_in_them_are_encoded(texts):
    rows = [{"title": text} for text in texts]
    encoder = Encoder.fit(rows, kinds={"title": "text"})
    assert np.isfinite(encoder.transform(rows)).all()


def test_repeated_texts_stay_apart():
    rows = [{"title": title} for title in ("storm in the city", "sun in the city")] * 10
    first, second = Encoder.fit(rows).transform(rows[:2])
    assert np.linalg.norm(first - second) > 0.5


def test_the_number_of_ngrams_and_components_is_bounded():
    rows = [{"title": title} for title in titles(100, np.random.default_rng(3))]
    options = EncoderOptions(max_ngrams=50, text_components=5)
    (column,) = Encoder.fit(rows, options=options).columns
    assert column.components.shape == (50, 5)


def test_spellings_of_one_text_are_one_direction():
    rows = [{"title": title} for title in ("rain in ulm", "Rain in Ulm", "RAIN in  Ulm", "sun over the lake")]
    (column,) = Encoder.fit(rows, kinds={"title": "text"}).columns
    assert column.components.shape[1] == 2


def test_dates_a_microsecond_apart_are_encoded():
    rows = [{"day": datetime(9000, 1, 1, 0, 0, 0, micro)} for micro in (1, 2)]
    assert np.isfinite(Encoder.fit(rows).transform(rows)).all()
