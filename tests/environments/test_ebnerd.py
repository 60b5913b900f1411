import os
import pickle
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tercet.environments.base import DATA_VARIABLE, Scenario
from tercet.environments.ebnerd import PROFILE_HALF_LIFE, Ebnerd
from tercet.environments.news import Replay

START = datetime(2023, 5, 18, 7)
ARTICLES = 60
FIRST_VECTOR = 5  # columns of an arm before its taste vector


@dataclass(frozen=True)
class Log:
    """A tiny EB-NeRD: one entry an impression, and one list of earlier clicks a reader."""

    times: list[datetime]
    users: list[int]
    candidates: list[list[int]]
    clicked: list[list[int]]
    past: dict[int, list[tuple[datetime, int]]]
    devices: list[int] = field(default_factory=list)


def drawn(count: int = 400, days: int = 14) -> Log:
    """Draw a log in which readers of even number like even articles, and one list in ten is too long."""
    rng = np.random.default_rng(11)
    times = [START + timedelta(seconds=float(s)) for s in np.sort(rng.uniform(0, days * 86_400, count))]
    users = rng.integers(100, 130, count).tolist()
    candidates, clicked = [], []
    for i, user in enumerate(users):
        shown = rng.choice(ARTICLES, 9 if i % 10 == 0 else rng.integers(5, 9), replace=False)
        liked = np.flatnonzero(shown % 2 == user % 2)
        clicks = np.zeros(len(shown), dtype=int)
        clicks[rng.choice(liked) if liked.size else 0] = 1
        candidates.append((1000 + shown).tolist())
        clicked.append(clicks.tolist())
    past = {
        user: [
            (START - timedelta(hours=float(h)), 1000 + 2 * int(rng.integers(ARTICLES // 2)) + user % 2)
            for h in np.sort(rng.uniform(0, 500, 12))[::-1]
        ]
        for user in range(100, 130)
    }
    return Log(times, users, candidates, clicked, past, rng.integers(1, 4, count).tolist())


def write(folder: Path, log: Log) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    count = len(log.times)
    tables: dict[str, dict[str, list[Any]]] = {
        "impressions": {
            "time": log.times,
            "user_id": log.users,
            "device_type": log.devices,
            "is_subscriber": [i % 3 == 0 for i in range(count)],
            "is_sso_user": [i % 5 == 0 for i in range(count)],
            "page_article_id": [None if i % 2 else 7 for i in range(count)],
            "candidates": log.candidates,
            "clicked": log.clicked,
        },
        "history": {
            "user_id": list(log.past),
            "times": [[time for time, _ in clicks] for clicks in log.past.values()],
            "article_ids": [[article for _, article in clicks] for clicks in log.past.values()],
        },
        "articles": {
            "article_id": [1000 + i for i in reversed(range(ARTICLES))],
            "article_length": [10 * i for i in reversed(range(ARTICLES))],
            "premium": [i % 2 for i in reversed(range(ARTICLES))],
        },
    }
    for name, table in tables.items():
        parquet.write_table(pa.table(table), folder / f"ebnerd_demo_{name}.parquet")
    return folder


def write_bundle(folder: Path, log: Log) -> Path:
    """Write the same log as the bundle comes: two splits, clicked ids, articles with a body."""
    compact = write(folder / "compact", log)
    rows = parquet.read_table(compact / "ebnerd_demo_impressions.parquet").to_pylist()
    behaviours = [
        {
            "impression_time": row["time"],
            "article_id": row["page_article_id"],
            "article_ids_inview": row["candidates"],
            "article_ids_clicked": [a for a, c in zip(row["candidates"], row["clicked"], strict=True) if c],
        }
        | {name: row[name] for name in ("user_id", "device_type", "is_subscriber", "is_sso_user")}
        for row in rows
    ]
    past = [
        {
            "user_id": user,
            "impression_time_fixed": [time for time, _ in clicks],
            "article_id_fixed": [article for _, article in clicks],
        }
        for user, clicks in log.past.items()
    ]
    for split, part in (("train", slice(None, 150)), ("validation", slice(150, None))):
        (folder / split).mkdir()
        shuffled = behaviours[part][::-1]
        parquet.write_table(pa.Table.from_pylist(shuffled), folder / split / "behaviors.parquet")
        readers = past[:15] if split == "train" else past[15:]
        parquet.write_table(pa.Table.from_pylist(readers), folder / split / "history.parquet")
    articles = [
        {"article_id": 1000 + i, "body": "x" * (10 * i) or None, "premium": bool(i % 2)}
        for i in range(ARTICLES)
    ]
    parquet.write_table(pa.Table.from_pylist(articles), folder / "articles.parquet")
    return folder


def draw(folder: Path, **options: object) -> Replay:
    return Ebnerd(folder=folder, **({"dims": 3} | options)).draw(np.random.default_rng(0))


@pytest.fixture(scope="module")
def log() -> Log:
    return drawn()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, log: Log) -> Path:
    return write(tmp_path_factory.mktemp("ebnerd"), log)


def hour(time: datetime) -> float:
    return (time - datetime(2023, 5, 18)).total_seconds() / 3600


def kept(log: Log) -> list[int]:
    return [i for i, shown in enumerate(log.candidates) if len(shown) <= 8]


def test_a_recipe_is_a_value_that_travels() -> None:
    recipe = Ebnerd(folder="/data", history_days=3)
    assert isinstance(recipe, Scenario)
    assert pickle.loads(pickle.dumps(recipe)) == recipe


def test_impressions_of_at_most_eight_are_replayed_in_order_with_their_clicks(folder: Path, log: Log) -> None:
    replay = draw(folder, history_days=0)
    rounds = list(replay.rounds(np.random.default_rng(0)))
    assert len(replay.history(np.random.default_rng(0))) == 0
    for i, round_ in zip(kept(log), rounds, strict=True):
        assert round_.arm_ids is not None
        assert round_.arm_ids.tolist() == log.candidates[i]
        assert round_.rewards.tolist() == log.clicked[i]
        assert round_.time == pytest.approx(hour(log.times[i]))


def test_the_history_ends_whole_days_after_the_hour_the_log_begins(folder: Path, log: Log) -> None:
    replay = draw(folder)
    assert replay.logged == sum(log.times[i] < START + timedelta(days=7) for i in kept(log))


def test_contexts_tell_the_visit_and_how_much_was_read_before(folder: Path, log: Log) -> None:
    contexts = draw(folder).contexts
    clicks = all_clicks(log)
    for i, context in zip(kept(log), contexts, strict=True):
        angle = 2 * np.pi * hour(log.times[i]) / 24
        before = {a for time, user, a in clicks if user == log.users[i] and time < log.times[i]}
        expected = [log.devices[i] == device for device in (1, 2, 3)]
        expected += [i % 3 == 0, i % 5 == 0, i % 2 == 1]
        np.testing.assert_allclose(context[:6], expected)
        np.testing.assert_allclose(context[6:9], [np.sin(angle), np.cos(angle), np.log10(1 + len(before))])


def all_clicks(log: Log) -> list[tuple[datetime, int, int]]:
    shown = [
        (log.times[i], log.users[i], article)
        for i in range(len(log.times))
        for article, click in zip(log.candidates[i], log.clicked[i], strict=True)
        if click
    ]
    return shown + [(time, user, article) for user, rows in log.past.items() for time, article in rows]


def test_arms_tell_age_number_length_and_premium(folder: Path, log: Log) -> None:
    seen: dict[int, datetime] = {}
    past = sorted((time, article) for rows in log.past.values() for time, article in rows)
    for time, article in past:
        seen.setdefault(article, time)
    newest, row, replay = 0, 0, draw(folder)
    for time, shown in zip(log.times, log.candidates, strict=True):
        newest = max(newest, *shown)
        for article in shown:
            seen.setdefault(article, time)
        if len(shown) > 8:
            continue
        for article in shown:
            age = (time - seen[article]).total_seconds() / 3600
            sizes = [age, newest - article, 10 * (article - 1000)]
            np.testing.assert_allclose(
                replay.arms[row, :4], [*np.log10(1 + np.array(sizes)), article % 2], atol=1e-9
            )
            row += 1


def test_taste_tells_the_two_camps_apart(folder: Path) -> None:
    replay = draw(folder, dims=1)
    vectors, flags = replay.arms[:, FIRST_VECTOR:], replay.arms[:, FIRST_VECTOR - 1]
    np.testing.assert_array_equal(flags, (vectors != 0).any(1))
    affinity = vectors[:, 0] * np.repeat(replay.contexts[:, -1], replay.shown.sizes)
    known = affinity != 0
    assert known.mean() > 0.9
    assert affinity[known & (replay.shown.clicks == 1)].mean() > 0.5 > affinity[known].mean()


def test_profiles_are_the_direction_of_the_fading_mean_of_what_was_clicked(folder: Path, log: Log) -> None:
    replay = draw(folder, refresh=1e6)  # one period, so that an article has one vector
    vectors = dict(zip(replay.shown.arm_ids.tolist(), replay.arms[:, FIRST_VECTOR:], strict=True))
    clicks = sorted(all_clicks(log))
    for i, context in zip(kept(log), replay.contexts, strict=True):
        first: dict[int, datetime] = {}
        for time, user, article in clicks:
            if user == log.users[i] and time < log.times[i]:
                first.setdefault(article, time)
        ages = {article: (log.times[i] - time).total_seconds() / 3600 for article, time in first.items()}
        total = sum((2 ** (-age / PROFILE_HALF_LIFE) * vectors[a] for a, age in ages.items()), np.zeros(3))
        np.testing.assert_allclose(context[9:], total / np.linalg.norm(total), atol=1e-8)


def perturbed(log: Log, after: datetime) -> Log:
    """Click other candidates after a time, and other articles in the click histories."""
    clicked = [
        row if time <= after else row[1:] + row[:1] for time, row in zip(log.times, log.clicked, strict=True)
    ]
    past = {
        user: [(time, article if time <= after else 2059 - article) for time, article in rows]
        for user, rows in log.past.items()
    }
    return replace(log, clicked=clicked, past=past)


@pytest.mark.parametrize("refresh", [24.0, 5.0])
@pytest.mark.parametrize("days", [0, 3, 9])
def test_clicks_after_a_time_change_nothing_until_then(
    days: int, refresh: float, tmp_path: Path, folder: Path, log: Log
) -> None:
    after = START + timedelta(days=days, hours=1)
    one = draw(folder, refresh=refresh)
    two = draw(write(tmp_path, perturbed(log, after)), refresh=refresh)
    until = int(np.searchsorted(one.shown.times, hour(after), side="right"))
    rows = one.shown.starts[until]
    np.testing.assert_array_equal(one.contexts[:until], two.contexts[:until])
    np.testing.assert_array_equal(one.arms[:rows], two.arms[:rows])
    np.testing.assert_array_equal(one.shown.clicks[:rows], two.shown.clicks[:rows])
    assert not np.array_equal(one.contexts, two.contexts)  # but the perturbation is felt
    assert not np.array_equal(one.shown.clicks, two.shown.clicks)


def test_the_own_click_of_an_impression_is_not_in_its_features(
    tmp_path: Path, folder: Path, log: Log
) -> None:
    last = kept(log)[-1]
    clicked = [*log.clicked[:last], log.clicked[last][::-1], *log.clicked[last + 1 :]]
    one, two = draw(folder, refresh=5.0), draw(write(tmp_path, replace(log, clicked=clicked)), refresh=5.0)
    np.testing.assert_array_equal(one.contexts, two.contexts)
    np.testing.assert_array_equal(one.arms, two.arms)


def test_a_share_is_drawn_by_seed_and_described_as_in_the_whole_log(folder: Path) -> None:
    whole = draw(folder)
    parts = [Ebnerd(folder=folder, dims=3, share=0.5).draw(np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert len(parts[0].shown) == round(0.5 * len(whole.shown))
    np.testing.assert_array_equal(parts[0].shown.times, parts[1].shown.times)
    assert not np.array_equal(parts[0].shown.times, parts[2].shown.times)
    for part in parts:
        places = np.searchsorted(whole.shown.times, part.shown.times)
        rows = whole.shown.rows(places)
        np.testing.assert_array_equal(part.contexts, whole.contexts[places])
        np.testing.assert_array_equal(part.arms, whole.arms[rows])
        np.testing.assert_array_equal(part.shown.arm_ids, whole.shown.arm_ids[rows])
        np.testing.assert_array_equal(part.shown.clicks, whole.shown.clicks[rows])
        assert part.logged == np.searchsorted(part.shown.times, whole.shown.times[whole.logged])


def test_points_are_evenly_spaced_rounds_and_leave_the_history_whole(folder: Path) -> None:
    whole, few = draw(folder), draw(folder, points=25)
    assert few.logged == whole.logged
    pool, times = whole.shown.times[whole.logged :], few.shown.times[few.logged :]
    assert (len(times), times[0], times[-1]) == (25, pool[0], pool[-1])
    assert np.ptp(np.diff(np.searchsorted(pool, times))) <= 1
    assert len(draw(folder, points=10_000).shown) == len(whole.shown)


def test_a_share_without_rounds_is_refused(folder: Path) -> None:
    # The only impression that this seed draws is one of the first 13 days.
    with pytest.raises(ValueError, match="or the 1 impressions drawn of it"):
        Ebnerd(folder=folder, dims=3, share=0.001, history_days=13).draw(np.random.default_rng(0))


def test_a_bundle_and_the_compact_tables_give_the_same_replay(tmp_path: Path, folder: Path, log: Log) -> None:
    one, two = draw(folder), draw(write_bundle(tmp_path, log))
    np.testing.assert_array_equal(one.shown.clicks, two.shown.clicks)
    np.testing.assert_array_equal(one.shown.arm_ids, two.shown.arm_ids)
    np.testing.assert_allclose(one.contexts, two.contexts, atol=1e-9)
    np.testing.assert_allclose(one.arms, two.arms, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"most": 0}, "most must be at least 1"),
        ({"history_days": -1}, "history_days must be at least 0"),
        ({"dims": 0}, "dims must be at least 1"),
        ({"refresh": 0.0}, "refresh must be a finite number above 0"),
        ({"share": 0.0}, "share must be above 0"),
        ({"points": 0}, "points must be at least 1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Ebnerd(**options)


def test_options_that_leave_nothing_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="14 days are the whole log"):
        draw(folder, history_days=14)
    with pytest.raises(ValueError, match="no impression of at most 2 candidates"):
        draw(folder, most=2)


def test_an_article_that_is_not_described_is_named(tmp_path: Path, log: Log) -> None:
    strange = [[5, *row[1:]] for row in log.candidates]
    with pytest.raises(ValueError, match="it lacks 5"):
        draw(write(tmp_path, replace(log, candidates=strange)))


def test_missing_data_say_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"ebnerd_demo_history\.parquet.*recsys\.eb\.dk"):
        draw(tmp_path)


DATA = Path(os.environ.get(DATA_VARIABLE, "/nowhere"))


@pytest.mark.slow
@pytest.mark.skipif(
    not (DATA / "ebnerd_demo_history.parquet").exists(), reason=f"needs EB-NeRD's files in ${DATA_VARIABLE}"
)
def test_simple_choices_hit_as_often_as_reported() -> None:
    replay = draw(DATA, history_days=0, dims=2)
    rounds = list(replay.rounds(np.random.default_rng(0)))
    assert len(rounds) == 24_590
    # Figures of an independent replay of the same lists.
    assert np.mean([round_.rewards.mean() for round_ in rounds]) == pytest.approx(0.166, abs=5e-4)
    newest = [round_.rewards[np.argmax(round_.arm_ids)] for round_ in rounds]  # type: ignore[arg-type]
    assert np.mean(newest) == pytest.approx(0.190, abs=5e-4)
