import pytest

from tercet.encode import EncoderOptions


@pytest.mark.parametrize(
    "bad",
    [
        {"max_categories": 1},
        {"text_components": 0},
        {"max_ngrams": 0},
        {"ngram_sizes": (4, 3)},
        {"ngram_sizes": (0, 3)},
    ],
    ids=repr,
)
def test_an_option_out_of_range_is_named(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        EncoderOptions(**bad)
