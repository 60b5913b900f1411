"""What a network sees of a feature: unit scale, pieces that saturate, and nothing wild."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.checks import Array, Matrix
from tercet.embedding import encoding
from tercet.embedding.encoding import FARTHEST, HEIGHT, MOST_PIECES, Encoding

EPS = float(np.finfo(np.float32).eps)


def skewed(n: int = 200, seed: int = 0) -> Matrix:
    """A bell, a long tail, and a few whole numbers."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(5, 3, size=n), rng.exponential(size=n), rng.integers(4, size=n)])


def assert_equal(a: Encoding, b: Encoding) -> None:
    for name, array in vars(a).items():
        assert array.dtype == vars(b)[name].dtype, name
        np.testing.assert_array_equal(array, vars(b)[name], err_msg=name)


@pytest.mark.parametrize("pieces", [0, 5])
def test_columns_come_out_with_mean_0_and_deviation_1(pieces: int) -> None:
    inputs = skewed()
    plain = Encoding.of(inputs, pieces=pieces)(inputs)[:, :3]
    assert plain.dtype == np.float32
    np.testing.assert_allclose(plain.mean(axis=0, dtype=float), 0, atol=FARTHEST * EPS)
    np.testing.assert_allclose(plain.std(axis=0, dtype=float), 1, atol=FARTHEST * EPS)


@given(
    values=st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)),
    ones=st.lists(st.booleans(), min_size=2, max_size=30).filter(lambda ones: 0 < sum(ones) < len(ones)),
    pieces=st.sampled_from([0, 4]),
)
def test_columns_of_two_values_become_0_and_1_however_rare_one_is(
    values: tuple[float, float], ones: list[bool], pieces: int
) -> None:
    low, high = values[0], values[0] + values[1]
    inputs = np.where(ones, high, low)[:, None]
    np.testing.assert_array_equal(Encoding.of(inputs, pieces=pieces)(inputs), np.float32(ones)[:, None])


@settings(max_examples=40)
@given(value=st.floats(-1e9, 1e9), n=st.integers(1, 40), pieces=st.sampled_from([0, 4]))
def test_a_constant_column_says_nothing(value: float, n: int, pieces: int) -> None:
    fitted = Encoding.of(np.full((n, 1), value), pieces=pieces)
    assert fitted.outputs == 1
    # The mean of n equal numbers may be off by some roundings.
    assert abs(fitted([[value]]).item()) <= n * np.spacing(abs(value))
    assert fitted([[value + 1]]).item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("roundings", [[0, 1], [0, 1, 2, 3]])
def test_a_column_that_is_constant_up_to_rounding_says_nothing(roundings: list[int]) -> None:
    inputs = (0.3 + np.tile(roundings, 5) * np.spacing(0.3))[:, None]
    np.testing.assert_allclose(Encoding.of(inputs, pieces=4)(inputs)[:, :1], 0, atol=1e-6)
    assert Encoding.of(inputs, pieces=4).outputs == 1


@settings(max_examples=60)
@given(
    column=st.lists(st.integers(-20, 20).map(lambda k: k / 4), min_size=3, max_size=60).filter(
        lambda column: len(set(column)) > 2
    ),
    pieces=st.integers(2, 12),
)
def test_pieces_rise_by_their_height_one_after_the_other(column: list[float], pieces: int) -> None:
    fitted = Encoding.of(np.array(column)[:, None], pieces=pieces)
    span = max(column) - min(column)
    grid = np.linspace(min(column) - span, max(column) + span, 301)
    crossed = fitted(grid[:, None])[:, 1:] / HEIGHT
    assert crossed.shape[1] <= pieces
    assert (np.diff(crossed, axis=0) >= 0).all()
    assert (np.diff(crossed, axis=1) <= 0).all()  # a piece starts where the one before it ends
    assert (crossed[grid <= min(column)] == -1).all()
    assert (crossed[grid >= max(column)] > 1 - 1e-5).all()
    # Rounding may leave an edge in neither piece or a little in both.
    assert ((np.abs(crossed) < 1 - 1e-5).sum(axis=1) <= 1).all()


def test_the_pieces_of_a_column_hold_equally_many_rows() -> None:
    inputs = np.random.default_rng(1).exponential(size=(400, 1)) ** 2
    crossed = Encoding.of(inputs, pieces=8)(inputs)[:, 1:] / HEIGHT
    inside = (crossed > -1).sum(axis=1)  # pieces that have begun
    assert crossed.shape[1] == 8
    assert np.abs(np.bincount(inside, minlength=9)[1:] - 50).max() <= 1


@pytest.mark.parametrize("usual", [0.0, -3.0, 1e9])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.49])
def test_the_rare_values_of_a_column_that_mostly_has_one_are_no_giants(share: float, usual: float) -> None:
    rng = np.random.default_rng(0)
    column = np.full(1000, usual)
    rare = rng.permutation(1000)[: round(1000 * share)]
    column[rare] += 200 * rng.uniform(0.5, 1.5, size=len(rare))
    found = Encoding.of(column[:, None])(column[:, None])[:, 0]
    assert (np.delete(found, rare) == 0).all()
    assert np.sqrt(np.square(found[rare]).mean()) == pytest.approx(1)


def test_each_piece_looks_at_its_own_column() -> None:
    inputs = skewed()
    fitted = Encoding.of(inputs, pieces=6)
    centre = np.median(inputs, axis=0)
    for column in range(3):
        moved = np.tile(centre, (2, 1))
        moved[1, column] = inputs[:, column].max()
        changed = np.flatnonzero(np.diff(fitted(moved), axis=0)[0])
        owners = np.concatenate([np.arange(3), fitted.columns])
        assert len(changed) > 1
        assert set(owners[changed]) == {column}


def test_only_columns_of_more_than_two_values_have_pieces() -> None:
    rng = np.random.default_rng(2)
    inputs = np.column_stack([rng.integers(2, size=50), rng.normal(size=50), np.ones(50)])
    assert set(Encoding.of(inputs, pieces=4).columns) == {1}


@pytest.mark.parametrize("pieces", [0, 5])
@pytest.mark.parametrize("wild", [1e12, 3e38])
def test_wild_values_are_cut_and_the_historys_own_are_not(wild: float, pieces: int) -> None:
    inputs = skewed()
    fitted = Encoding.of(inputs, pieces=pieces)
    for sign in (-1, 1):
        encoded = fitted(np.full((1, 3), sign * wild))[0]
        np.testing.assert_array_equal(encoded[:3], sign * FARTHEST)
        np.testing.assert_allclose(encoded[3:], sign * HEIGHT, rtol=0, atol=1e-6)
    # A value that is alone far out stretches its column, so that it stays within.
    inputs = np.vstack([np.random.default_rng(3).normal(size=(500, 1)), [[wild]]])
    assert 0.9 * FARTHEST < np.abs(Encoding.of(inputs)(inputs)).max() <= FARTHEST


@pytest.mark.parametrize("pieces", [0, 6])
def test_a_date_in_seconds_cancels_exactly(pieces: int) -> None:
    # 64 whole numbers: their mean is exact, with or without the shift.
    seconds = np.random.default_rng(4).integers(1_000, size=(64, 2)).astype(float)
    there = seconds + np.array([1.7e9, -4e8])
    near, far = Encoding.of(seconds, pieces=pieces), Encoding.of(there, pieces=pieces)
    np.testing.assert_array_equal(near(seconds), far(there))
    assert len(np.unique(far(there)[:, 0])) == len(np.unique(seconds[:, 0]))


@pytest.mark.parametrize("pieces", [0, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("width", [0, 1, 4])
def test_few_rows_and_no_columns_do_no_harm(n: int, width: int, pieces: int) -> None:
    rng = np.random.default_rng(5)
    fitted = Encoding.of(rng.normal(size=(n, width)), pieces=pieces)
    encoded = fitted(rng.normal(size=(7, width)))
    assert (fitted.inputs, encoded.shape) == (width, (7, fitted.outputs))
    assert np.isfinite(encoded).all()
    assert fitted(np.empty((0, width))).shape == (0, fitted.outputs)


def test_without_rows_columns_pass_as_they_are() -> None:
    inputs = np.array([[0.25, -3.0]])
    np.testing.assert_array_equal(Encoding.of(np.empty((0, 2)), pieces=4)(inputs), inputs)


@pytest.mark.parametrize(("width", "each"), [(10, 16), (200, 7), (750, 2), (751, 0), (2_000, 0)])
def test_the_pieces_of_all_columns_together_have_a_cap(width: int, each: int) -> None:
    fitted = Encoding.of(np.random.default_rng(6).normal(size=(40, width)), pieces=16)
    assert len(fitted.columns) == width * each <= MOST_PIECES
    assert fitted.outputs == width * (1 + each)


def test_columns_without_pieces_leave_the_cap_to_the_others() -> None:
    rng = np.random.default_rng(7)
    inputs = np.hstack([rng.normal(size=(40, 2)), rng.integers(2, size=(40, 1_000)), np.ones((40, 1_000))])
    np.testing.assert_array_equal(Encoding.of(inputs, pieces=16).columns, np.repeat([0, 1], 16))


def test_the_order_of_the_rows_does_not_matter() -> None:
    # A history by day: the first thousand rows have one and the same.
    days = np.repeat(np.arange(4.0), 1_024)[:, None]
    shuffled = np.random.default_rng(8).permutation(days)
    assert_equal(Encoding.of(days, pieces=4), Encoding.of(shuffled, pieces=4))


def test_quantiles_of_a_sample_are_near_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = np.random.default_rng(9).normal(size=(10_007, 1))
    whole = Encoding.of(inputs, pieces=4)
    monkeypatch.setattr(encoding, "ROWS", 1_000)
    sampled = Encoding.of(inputs, pieces=4)
    np.testing.assert_array_equal(sampled.centre, whole.centre)
    # The quartiles of 1,000 normal values have a deviation of 0.043.
    np.testing.assert_allclose(sampled.lows[1:], whole.lows[1:], rtol=0, atol=0.2)
    assert not np.array_equal(sampled.lows, whole.lows)


@pytest.mark.parametrize("pieces", [0, 6])
def test_a_checkpoint_is_exact(pieces: int) -> None:
    inputs = skewed()
    fitted = Encoding.of(inputs, pieces=pieces)
    again = Encoding.from_arrays(fitted.to_arrays() | {"something": np.ones(3)})
    assert_equal(fitted, again)
    np.testing.assert_array_equal(fitted(inputs), again(inputs))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    inputs = skewed()
    fitted = Encoding.of(inputs, pieces=2)
    broken = inputs.copy()
    broken[7, 1] = bad
    for refused in (lambda: Encoding.of(broken), lambda: fitted(broken)):
        with pytest.raises(ValueError, match=r"inputs must be finite.*at \(7, 1\)"):
            refused()


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="inputs must have 3 columns; got 2"):
        Encoding.of(skewed())(np.zeros((1, 2)))


PARTS: dict[str, Array] = {
    "centre": np.zeros(2),
    "scale": np.ones(2),
    "columns": np.array([0, 1]),
    "lows": np.zeros(2),
    "widths": np.ones(2),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": np.ones(3)}, "scale must have length 2; got 3"),
        ({"lows": np.zeros(1)}, "lows must have length 2; got 1"),
        ({"widths": np.ones(3)}, "widths must have length 2; got 3"),
        ({"scale": np.array([1.0, 0.0])}, "scale and widths must be above 0"),
        ({"widths": np.array([-1.0, 1.0])}, "scale and widths must be above 0"),
        ({"centre": np.array([0.0, np.nan])}, "centre must be finite"),
        ({"columns": np.array([0, 2])}, "columns of pieces must lie below 2; got 0 to 2"),
        ({"columns": np.array([-1, 0])}, "columns of pieces must lie"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    assert Encoding(**PARTS).outputs == 4
    with pytest.raises(ValueError, match=message):
        Encoding(**PARTS | changes)
