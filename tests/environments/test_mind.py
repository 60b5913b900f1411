import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tercet.environments.base import Scenario
from tercet.environments.embedders import Hashing, principal
from tercet.environments.mind import DRIFT, Mind
from tercet.environments.news import Replay

START = datetime(2019, 11, 9)
CATEGORIES = ("health", "news", "sports")
WORDS = ("rain", "goal", "senate", "diet", "storm", "match", "budget", "heart", "flood", "cup")
ARTICLES = {f"N{i}": (CATEGORIES[i % 3], f"{WORDS[i % 10]} {WORDS[i // 10]} story") for i in range(60)}


@dataclass(frozen=True)
class Visit:
    time: datetime
    read: list[str]
    candidates: list[str]
    clicks: list[int]


def visits(count: int = 700) -> list[Visit]:
    """Draw a week of impressions; every tenth list is too long."""
    rng = np.random.default_rng(5)
    names = np.array(list(ARTICLES))
    result = []
    for i in range(count):
        size = 9 if i % 10 == 0 else int(rng.integers(2, 9))
        clicks = np.zeros(size, dtype=int)
        clicks[rng.integers(size)] = 1
        read = rng.choice(names, rng.integers(0, 5)).tolist()
        time = START + timedelta(seconds=int(i * 7 * 86_400 / count))
        result.append(Visit(time, read, rng.choice(names, size, replace=False).tolist(), clicks.tolist()))
    return result


def write_files(folder: Path, log: Sequence[Visit]) -> Path:
    """Write the log as MIND comes: the last days are the dev part, and neither part is in order."""
    parts = {
        "train": [visit for visit in log if visit.time < START + timedelta(days=6)],
        "dev": [visit for visit in log if visit.time >= START + timedelta(days=6)],
    }
    news = "".join(f"{name}\t{a}\tsub\t{b}\tabstract\turl\t[]\t[]\n" for name, (a, b) in ARTICLES.items())
    for part, rows in parts.items():
        root = folder / f"MINDsmall_{part}"
        root.mkdir(parents=True)
        (root / "news.tsv").write_text(news)
        lines = []
        for i, visit in enumerate(reversed(rows)):
            time = visit.time.strftime("%m/%d/%Y %I:%M:%S %p")
            shown = " ".join(f"{a}-{c}" for a, c in zip(visit.candidates, visit.clicks, strict=True))
            lines.append(f"{i}\tU{i}\t{time}\t{' '.join(visit.read)}\t{shown}\n")
        (root / "behaviors.tsv").write_text("".join(lines))
    return folder


def write_sample(
    folder: Path, log: Sequence[Visit], articles: dict[str, tuple[str | None, str | None]] = ARTICLES
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "time": [visit.time for visit in log],
        "history": [visit.read for visit in log],
        "candidates": [visit.candidates for visit in log],
        "clicked": [visit.clicks for visit in log],
    }
    parquet.write_table(pa.table(table), folder / "mind_sample_impressions.parquet")
    columns = {
        "news_id": list(articles),
        "category": [category for category, _ in articles.values()],
        "title": [title for _, title in articles.values()],
    }
    parquet.write_table(pa.table(columns), folder / "mind_sample_news.parquet")
    return folder


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("sample"), visits())


def draw(folder: Path, seed: int = 0, **options: object) -> Replay:
    return Mind(folder=folder, **({"share": 1.0, "dims": 4} | options)).draw(np.random.default_rng(seed))


def assert_equal(one: Replay, two: Replay) -> None:
    np.testing.assert_array_equal(one.contexts, two.contexts)
    np.testing.assert_array_equal(one.arms, two.arms)
    for name in ("times", "starts", "arm_ids", "clicks"):
        np.testing.assert_array_equal(getattr(one.shown, name), getattr(two.shown, name))
    assert one.logged == two.logged


def test_a_recipe_is_a_value_that_travels() -> None:
    recipe = Mind(folder="/data/mind", points=None)
    assert isinstance(recipe, Scenario)
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert hash(recipe) == hash(Mind(folder="/data/mind", points=None))


def test_equal_seeds_draw_equal_replays_and_others_differ(sample: Path) -> None:
    assert_equal(draw(sample, 3, share=0.5), draw(sample, 3, share=0.5))
    assert not np.array_equal(draw(sample, 3, share=0.5).shown.times, draw(sample, 4, share=0.5).shown.times)


def test_without_a_share_and_drift_nothing_is_random(sample: Path) -> None:
    assert_equal(draw(sample, 1, drift=()), draw(sample, 2, drift=()))


def test_the_original_files_and_the_sample_give_the_same_replay(sample: Path, tmp_path: Path) -> None:
    assert_equal(draw(write_files(tmp_path, visits())), draw(sample))


def test_lists_with_more_than_eight_candidates_are_skipped_and_a_share_is_drawn(sample: Path) -> None:
    everything = draw(sample, points=None)
    assert len(everything.shown) == sum(len(visit.candidates) <= 8 for visit in visits())
    assert everything.shown.sizes.max() == 8
    assert len(draw(sample, points=None, share=0.2).shown) == round(0.2 * len(everything.shown))


def test_the_first_three_days_are_the_history_and_the_rounds_are_evenly_spaced(sample: Path) -> None:
    everything, replay = draw(sample, points=None), draw(sample, points=50)
    days = everything.shown.times // 24
    assert everything.logged == replay.logged == (days < 3).sum()
    pool, times = everything.shown.times[days >= 3], replay.shown.times[replay.logged :]
    assert len(times) == 50
    assert (times[0], times[-1]) == (pool[0], pool[-1])
    places = np.searchsorted(pool, times)
    assert np.ptp(np.diff(places)) <= 1


def test_contexts_are_the_shares_of_the_categories_read(sample: Path) -> None:
    kept = [visit for visit in visits() if len(visit.candidates) <= 8]
    for context, visit in zip(draw(sample, points=None).contexts, kept, strict=True):
        read = [ARTICLES[name][0] for name in visit.read]
        expected = [read.count(category) / max(len(read), 1) for category in CATEGORIES]
        np.testing.assert_allclose(context, expected)


def test_arms_are_titles_on_the_principal_axes_of_the_articles_of_the_history(sample: Path) -> None:
    replay = draw(sample)
    known = sorted(set(replay.shown.arm_ids[: replay.shown.starts[replay.logged]].tolist()))
    vectors = Hashing()([ARTICLES[name][1] for name in known])
    shown = Hashing()([ARTICLES[name][1] for name in replay.shown.arm_ids.tolist()])
    np.testing.assert_allclose(replay.arms, principal(shown, vectors, 4), atol=1e-8)


def test_titles_that_appear_after_the_history_do_not_move_its_arms(tmp_path: Path) -> None:
    log = visits()
    late = [visit for visit in log if visit.time >= START + timedelta(days=3)]
    early = [visit for visit in log if visit.time < START + timedelta(days=3)]
    renamed = [
        Visit(visit.time, visit.read, [f"late-{i}-{j}" for j in range(len(visit.clicks))], visit.clicks)
        for i, visit in enumerate(late)
    ]
    articles = ARTICLES | {
        name: ("news", f"unheard {name}") for visit in renamed for name in visit.candidates
    }
    one = draw(write_sample(tmp_path / "one", log))
    two = draw(write_sample(tmp_path / "two", [*early, *renamed], articles))
    end = one.shown.starts[one.logged]
    np.testing.assert_allclose(one.arms[:end], two.arms[:end], atol=1e-12)


def test_drift_makes_clicks_on_sports_and_unmakes_others_at_the_rates_of_the_day(sample: Path) -> None:
    calm = draw(sample, drift=(), points=None).shown
    sports = np.array([ARTICLES[name][0] == "sports" for name in calm.arm_ids.tolist()])
    days = np.repeat(calm.times // 24, calm.sizes)
    seeds = 40
    drifted = np.array([draw(sample, seed, points=None).shown.clicks for seed in range(seeds)])
    assert (drifted[:, sports] >= calm.clicks[sports]).all()
    assert (drifted[:, ~sports] <= calm.clicks[~sports]).all()
    for day, chance in enumerate(DRIFT):
        for open_to_change in (sports & (calm.clicks == 0), ~sports & (calm.clicks == 1)):
            rows = open_to_change & (days == day)
            changed = (drifted[:, rows] != calm.clicks[rows]).mean()
            spread = np.sqrt(chance * (1 - chance) / (seeds * rows.sum()))
            assert abs(changed - chance) <= 4 * spread


def test_days_after_the_last_rate_keep_it(sample: Path) -> None:
    replay = draw(sample, drift=(0.0, 1.0), points=None)
    sports = np.array([ARTICLES[name][0] == "sports" for name in replay.shown.arm_ids.tolist()])
    days = np.repeat(replay.shown.times // 24, replay.shown.sizes)
    np.testing.assert_array_equal(replay.shown.clicks[days >= 1], sports[days >= 1])


def test_what_is_unknown_of_an_article_is_filled(tmp_path: Path) -> None:
    articles: dict[str, tuple[str | None, str | None]] = dict(ARTICLES)
    articles |= {"N1": ("news", None), "N2": (None, None), "N5": (None, "goal")}
    del articles["N3"]
    days = [START + timedelta(days=day) for day in range(5)]
    log = [Visit(time, ["N2", "N3", "N4"], ["N1", "N2", "N3", "N5"], [1, 1, 1, 1]) for time in days]
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        asked.extend(texts)
        return np.eye(len(texts))

    replay = draw(write_sample(tmp_path, log, articles), embedder=embed, drift=(1.0,))
    assert asked == ["news", "", "", "goal"]
    np.testing.assert_array_equal(replay.contexts[0], [0, 1, 0])  # N4 is the only one known
    assert not replay.shown.clicks.any()  # no unknown category counts as sports


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dims": 0}, "dims must be at least 1"),
        ({"share": 0.0}, "share must be above 0"),
        ({"points": 0}, "points must be at least 1"),
        ({"drift": (1.5,)}, "drift must be chances"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Mind(**options)


def test_an_embedder_that_loses_rows_is_refused(sample: Path) -> None:
    with pytest.raises(ValueError, match="a row for each of 60 texts"):
        draw(sample, embedder=lambda texts: np.zeros((3, 2)))


def test_a_log_without_both_periods_is_refused(sample: Path) -> None:
    with pytest.raises(ValueError, match="in and after the first 7 days"):
        draw(sample, history_days=7)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1\tU1\t11/9/2019 9:00:00 AM\tN1", "line 2: 5 fields between tabs were expected, got 4"),
        ("1\tU1\tyesterday\tN1\tN2-0", "line 2: expected a time like"),
        ("1\tU1\t11/9/2019 9:00:00 AM\tN1\tN2", "candidates like N1-0"),
        ("1\tU1\t11/9/2019 9:00:00 AM\tN1\tN2-7", r"clicks must lie in \[0, 1\]"),
    ],
)
def test_broken_lines_are_named(line: str, words: str, tmp_path: Path) -> None:
    write_files(tmp_path, visits(20))
    path = tmp_path / "MINDsmall_train" / "behaviors.tsv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")
    with pytest.raises(ValueError, match=words):
        draw(tmp_path)


def test_missing_data_say_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"MINDsmall_train/behaviors\.tsv.*msnews\.github\.io"):
        draw(tmp_path)
