from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tercet.environments import news
from tercet.environments.base import DATA_VARIABLE, Environment
from tercet.environments.news import Replay, Shown

SHOWN = Shown.of(np.array([0.5, 7.0, 25.0]), [["a", "b"], ["c"], ["b", "d", "e"]], [[0, 1], [0], [1, 0, 1]])
REPLAY = Replay(shown=SHOWN, contexts=np.eye(3), arms=np.arange(12.0).reshape(6, 2), logged=2)
RNG = np.random.default_rng(0)


def test_a_replay_is_an_environment_of_one_log_whose_history_does_not_come_again() -> None:
    assert isinstance(REPLAY, Environment)
    assert REPLAY.one_log
    assert not REPLAY.streaming


def test_the_history_has_every_shown_candidate_with_its_context_time_and_click() -> None:
    history = REPLAY.history(RNG)
    np.testing.assert_array_equal(history.contexts, np.eye(3)[[0, 0, 1]])
    np.testing.assert_array_equal(history.arms, REPLAY.arms[:3])
    np.testing.assert_array_equal(history.rewards, [0, 1, 0])
    np.testing.assert_array_equal(history.times, [0.5, 0.5, 7.0])
    np.testing.assert_array_equal(history.arm_ids, ["a", "b", "c"])
    assert history.propensities is None


def test_the_rounds_are_the_other_impressions_with_all_their_clicks() -> None:
    (only,) = REPLAY.rounds(RNG)
    np.testing.assert_array_equal(only.context, [0, 0, 1])
    np.testing.assert_array_equal(only.arms, REPLAY.arms[3:])
    np.testing.assert_array_equal(only.rewards, [1, 0, 1])
    np.testing.assert_array_equal(only.arm_ids, ["b", "d", "e"])
    assert only.time == 25.0
    assert only.logged is None


def test_an_empty_history_keeps_the_widths_of_contexts_and_arms() -> None:
    history = Replay(shown=SHOWN, contexts=np.eye(3), arms=REPLAY.arms, logged=0).history(RNG)
    assert (history.contexts.shape, history.arms.shape) == ((0, 3), (0, 2))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"logged": 3}, "logged must be 0 to 2"),
        ({"logged": -1}, "logged must be 0 to 2"),
        ({"contexts": np.eye(2)}, "a context for each of 3"),
        ({"arms": np.full((6, 2), np.nan)}, "arms must be finite"),
    ],
)
def test_a_replay_that_can_not_be_played_is_refused(changes: dict[str, object], words: str) -> None:
    parts = {"shown": SHOWN, "contexts": np.eye(3), "arms": REPLAY.arms, "logged": 1}
    with pytest.raises(ValueError, match=words):
        Replay(**(parts | changes))


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=8), data=st.data())
def test_taking_impressions_takes_their_rows(sizes: list[int], data: st.DataObject) -> None:
    names = iter(range(sum(sizes)))
    lists = [[next(names) for _ in range(size)] for size in sizes]
    shown = Shown.of(np.arange(float(len(sizes))), lists, [[name % 2 for name in row] for row in lists])
    chosen = sorted(data.draw(st.sets(st.integers(0, len(sizes) - 1))))
    taken = shown.take(np.array(chosen, dtype=np.int64))
    kept = [taken.arm_ids[a:b].tolist() for a, b in zip(taken.starts, taken.starts[1:], strict=False)]
    assert kept == [lists[i] for i in chosen]
    np.testing.assert_array_equal(taken.clicks, taken.arm_ids % 2)
    np.testing.assert_array_equal(taken.times, chosen)


@pytest.mark.parametrize(
    ("times", "candidates", "clicks", "words"),
    [
        ([0.0], [[]], [[]], "number 0 has 0 candidates"),
        ([0.0], [[1, 2]], [[1]], "2 candidates and 1 clicks"),
        ([0.0], [[1]], [[2]], r"clicks must lie in \[0, 1\]"),
        ([1.0, 0.0], [[1], [1]], [[0], [0]], "in order of time"),
    ],
)
def test_lists_that_do_not_fit_are_refused(
    times: list[float], candidates: list[list[int]], clicks: list[list[int]], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Shown.of(np.array(times), candidates, clicks)


def test_the_clock_starts_at_the_first_midnight() -> None:
    times = [datetime(2023, 5, 19, 1), datetime(2023, 5, 18, 7, 30)]
    np.testing.assert_array_equal(news.hours(times, since=news.midnight(times)), [25.0, 7.5])


def test_missing_times_and_empty_logs_are_refused() -> None:
    with pytest.raises(ValueError, match="row 0 has none"):
        news.hours([None], since=np.datetime64("2023-05-18"))
    with pytest.raises(ValueError, match="row 1 has none"):
        news.midnight([datetime(2023, 5, 18), None])
    with pytest.raises(ValueError, match="at least one impression"):
        news.midnight([])


LAYOUTS = {"new": ["a/x.tsv"], "old": ["x.parquet"]}


def test_the_folder_given_comes_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, file in (("one", "a/x.tsv"), ("two", "x.parquet")):
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / file).touch()
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "two"))
    assert news.find(tmp_path / "one", LAYOUTS, home="") == (tmp_path / "one", "new")
    assert news.find(None, LAYOUTS, home="") == (tmp_path / "two", "old")


def test_data_that_are_not_there_are_named_with_their_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    for folder in (None, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"a/x\.tsv .*or x\.parquet .*example\.org"):
            news.find(folder, LAYOUTS, home="example.org")


def test_a_parquet_file_gives_its_columns_as_lists(tmp_path: Path) -> None:
    table = {"time": [datetime(2019, 11, 9)], "lists": [["N1", "N2"]], "more": [None]}
    parquet.write_table(pa.table(table), tmp_path / "x.parquet")
    assert news.read_parquet(tmp_path / "x.parquet", ["lists", "time"]) == {
        "lists": [["N1", "N2"]],
        "time": [datetime(2019, 11, 9)],
    }
    with pytest.raises(ValueError, match=r"no column \['clicks'\]; it has"):
        news.read_parquet(tmp_path / "x.parquet", ["clicks"])


def test_a_corrupt_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(ValueError, match="can not be read as Parquet"):
        news.read_parquet(tmp_path / "x.parquet", ["time"])


@given(st.integers(2, 300), st.integers(2, 300))
def test_spaced_points_are_even_and_have_both_ends(count: int, points: int) -> None:
    places = news.spaced(count, points)
    assert len(places) == min(count, points)
    assert (places[0], places[-1]) == (0, count - 1)
    assert np.ptp(np.diff(places)) <= 1
