"""MIND, Microsoft's news log, as the C3 paper replays it ("News Recommendation" and its appendix)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from tercet.checks import Array, Matrix, Vector
from tercet.environments import news
from tercet.environments.embedders import Embedder, Hashing, principal
from tercet.environments.news import Folder, Place, Replay, Shown
from tercet.types import Ids

HOME = "https://msnews.github.io (MINDsmall; research use only)"
FILES = "MINDsmall_train and MINDsmall_dev"
LAYOUTS = {
    FILES: [f"MINDsmall_{part}/{table}.tsv" for part in ("train", "dev") for table in ("behaviors", "news")],
    "a sample": ["mind_sample_impressions.parquet", "mind_sample_news.parquet"],
}
# Table "augprob" of the paper, 9 to 15 November: the chance that a click is changed, by day.
DRIFT = (0.0, 0.0, 0.10, 0.15, 0.20, 0.25, 0.30)
RISING = "sports"


@final
@dataclass(frozen=True, kw_only=True)
class Mind:
    """Replays of MIND: a visitor's reading habits, up to eight articles, and a taste that turns to sports.

    The context is the share of each category in what the visitor has read (zeros for a new visitor), the
    arms are title embeddings on the principal axes of the articles shown in the history. Impressions with
    more than `most` candidates are skipped, a `share` of the rest is drawn; those of the first
    `history_days` are the history, and `points` evenly spaced ones of the other days are the rounds (None:
    all of them). On each day no click on sports becomes a click, and a click on anything else none, with
    that day's chance in `drift` (after its end the last one goes on; an empty one changes nothing).

    Times are hours since the midnight before the first impression. The share and the changed clicks are
    drawn, all else is the same whatever the seed. An article without a title is known by the name of its
    category, and one without either is an empty text; the unknown category counts for nobody's habits and
    is not sports. (In MINDsmall nothing is missing; in the sample most titles are.)
    """

    folder: Folder = field(default=None, repr=False, compare=False)
    embedder: Embedder = field(default_factory=Hashing)
    dims: int = 64
    most: int = 8
    share: float = 0.2
    history_days: int = 3
    points: int | None = 500
    drift: tuple[float, ...] = DRIFT

    def __post_init__(self) -> None:
        for name in ("dims", "most", "history_days"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}")
        if self.points is not None and self.points < 1:
            raise ValueError(f"points must be at least 1, or None for all; got {self.points}")
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1; got {self.share}")
        if not all(0 <= chance <= 1 for chance in self.drift):
            raise ValueError(f"drift must be chances within [0, 1]; got {self.drift}")

    def draw(self, rng: np.random.Generator) -> Replay:
        """Draw the share of the impressions and the changed clicks."""
        place = news.find(self.folder, LAYOUTS, home=HOME)
        log = _read(place, self.most)
        total = len(log.shown)
        sampled = np.sort(rng.permutation(total)[: max(round(self.share * total), 1)])
        early = log.shown.times[sampled] < 24 * self.history_days
        history, pool = sampled[early], sampled[~early]
        if not (history.size and pool.size):
            raise ValueError(
                f"{place.folder} must have impressions in and after the first {self.history_days} days; "
                f"of {total} impressions {sampled.size} were drawn, {history.size} of them in these days"
            )
        chosen = np.concatenate([history, pool[news.spaced(len(pool), self.points)]])
        shown, articles = log.shown.take(chosen), log.articles[log.shown.rows(chosen)]
        vectors = _embedded(place, self.most, self.embedder)
        known = np.unique(articles[: shown.starts[history.size]])
        return Replay(
            shown=shown.with_clicks(self._drifted(shown, log.rising[articles], rng)),
            contexts=log.habits[chosen],
            arms=principal(vectors, vectors[known], self.dims)[articles],
            logged=len(history),
        )

    def _drifted(self, shown: Shown, rising: Array, rng: np.random.Generator) -> Vector:
        days = (np.repeat(shown.times, shown.sizes) // 24).astype(np.int64)
        chances = np.array(self.drift or (0.0,))
        struck = rng.random(len(days)) < chances[np.minimum(days, len(chances) - 1)]
        return np.where(struck, rising, shown.clicks)


class Article(NamedTuple):
    """What is known of an article; empty where it is not."""

    category: str
    title: str


class Visit(NamedTuple):
    """One impression: when, what the visitor had read before, what was shown and clicked."""

    time: datetime
    read: list[str]
    candidates: list[str]
    clicks: list[int]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """The impressions in order of time, each with the visitor's habits, and the articles shown in them."""

    shown: Shown
    habits: Matrix  # one row an impression, one column a category
    articles: Ids  # the number of each row's article
    texts: list[str]  # one an article
    rising: Array  # whether an article is about sports


@cache
def _read(place: Place, most: int) -> Log:
    if place.layout == FILES:
        folders = [place.folder / name for name in FILES.split(" and ")]
        articles = {name: article for folder in folders for name, article in _news(folder / "news.tsv")}
        visits = [visit for folder in folders for visit in _behaviours(folder / "behaviors.tsv", most)]
    else:
        articles = dict(_sample_news(place.folder / "mind_sample_news.parquet"))
        visits = list(_sample_behaviours(place.folder / "mind_sample_impressions.parquet", most))
    visits.sort(key=lambda visit: visit.time)
    times = [visit.time for visit in visits]
    shown = Shown.of(
        news.hours(times, since=news.midnight(times)),
        [visit.candidates for visit in visits],
        [visit.clicks for visit in visits],
    )
    names, numbers = np.unique(shown.arm_ids, return_inverse=True)
    known = [articles.get(name, Article("", "")) for name in names.tolist()]
    return Log(
        shown=shown,
        habits=_habits(visits, articles),
        articles=numbers,
        texts=[article.title or article.category for article in known],
        rising=np.array([article.category == RISING for article in known]),
    )


def _habits(visits: list[Visit], articles: dict[str, Article]) -> Matrix:
    categories = sorted({article.category for article in articles.values()} - {""})
    columns = {category: column for column, category in enumerate(categories)}
    column_of = {name: columns.get(article.category) for name, article in articles.items()}
    habits = np.zeros((len(visits), len(categories)))
    for row, visit in zip(habits, visits, strict=True):
        for name in visit.read:
            column = column_of.get(name)
            if column is not None:
                row[column] += 1
    return habits / np.maximum(habits.sum(1, keepdims=True), 1)


@cache
def _embedded(place: Place, most: int, embedder: Embedder) -> Matrix:
    texts = _read(place, most).texts
    vectors = np.asarray(embedder(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise ValueError(
            f"an embedder must return a row for each of {len(texts)} texts; got shape {vectors.shape}"
        )
    return vectors


def _lines(path: Path, fields: int) -> Iterator[tuple[str, list[str]]]:
    """Yield each line's place (for errors) and its fields."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            row = line.rstrip("\n").split("\t")
            if len(row) != fields:
                raise ValueError(
                    f"{path}, line {number}: {fields} fields between tabs were expected, got {len(row)}; "
                    f"download the file again"
                )
            yield f"{path}, line {number}", row


def _news(path: Path) -> Iterator[tuple[str, Article]]:
    for _, (name, category, _, title, *_) in _lines(path, fields=8):
        yield name, Article(category, title)


def _behaviours(path: Path, most: int) -> Iterator[Visit]:
    for place, (_, _, time, read, shown) in _lines(path, fields=5):
        pairs = [pair.rpartition("-") for pair in shown.split()]
        if len(pairs) > most:
            continue
        try:
            moment = datetime.strptime(time, "%m/%d/%Y %I:%M:%S %p")
            clicks = [int(click) for _, _, click in pairs]
        except ValueError as error:
            raise ValueError(
                f"{place}: expected a time like 11/9/2019 9:05:58 AM and candidates like N1-0 N2-1; {error}"
            ) from error
        yield Visit(moment, read.split(), [name for name, _, _ in pairs], clicks)


def _sample_news(path: Path) -> Iterator[tuple[str, Article]]:
    table = news.read_parquet(path, ["news_id", "category", "title"])
    for name, category, title in zip(*table.values(), strict=True):
        yield name, Article(category or "", title or "")


def _sample_behaviours(path: Path, most: int) -> Iterator[Visit]:
    table: dict[str, list[Any]] = news.read_parquet(path, ["time", "history", "candidates", "clicked"])
    for visit in map(Visit, *table.values()):
        if len(visit.candidates) <= most:
            yield visit
