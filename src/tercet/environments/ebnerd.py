"""EB-NeRD, the log of a Danish newspaper: a replay of who was shown what and clicked which article.

Each impression has at least one click, so a replay measures ranking (how often the chosen article is the
clicked one), not lift.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from tercet import checks
from tercet.checks import Matrix, Vector
from tercet.environments import news
from tercet.environments.embedders import Clicks, tastes
from tercet.environments.news import Folder, Place, Replay, Shown
from tercet.types import Ids

HOME = "https://recsys.eb.dk (the demo or the small bundle; research use only)"
BUNDLE = "a bundle as it comes"
SPLITS = ("train", "validation")
LAYOUTS = {
    BUNDLE: [
        *(f"{split}/{table}.parquet" for split in SPLITS for table in ("behaviors", "history")),
        "articles.parquet",
    ],
    "compact tables": [f"ebnerd_demo_{table}.parquet" for table in ("impressions", "history", "articles")],
}
DEVICES = (1, 2, 3)  # desktop, phone, tablet
PROFILE_HALF_LIFE = 72.0  # hours: what a reader clicked three days ago counts half

KNOWN = ("device_type", "is_subscriber", "is_sso_user", "page_article_id")
# The names of a bundle's columns, and ours.
BEHAVIOURS = {name: name for name in ("user_id", *KNOWN[:3])} | {
    "article_id": "page_article_id",
    "impression_time": "time",
    "article_ids_inview": "candidates",
    "article_ids_clicked": "clicked",
}

Table = dict[str, list[Any]]


@final
@dataclass(frozen=True, kw_only=True)
class Ebnerd:
    """The replay of EB-NeRD: a choice earns 1 where the reader clicked it. Only a `share` is random.

    Impressions with more than `most` candidates are skipped, and a `share` of the rest is drawn; those of the
    first `history_days` are the history (seven days are the train split), and `points` evenly spaced ones of
    the others are the rounds (None: all of them). Times are hours since the midnight before the first
    impression. Whatever describes a round was known before it, from the whole log and not only from what was
    drawn of it:

    - the context: desktop, phone or tablet; subscriber; signed in; on the front page; sine and cosine of
      the hour; log10 of 1 + the number of articles clicked so far; and the reader's profile, the direction
      of the mean taste vector of the clicked articles, of which old ones fade;
    - an arm: log10 of 1 + its hours since it was first seen, of 1 + how far its number is behind the newest
      (numbers grow with publication) and of 1 + its length; whether it is premium; whether it has a taste
      vector; and that vector (`embedders.tastes`, `dims` wide), zeros for a new article.

    Taste vectors are made anew every `refresh` hours, from all clicks before. They hold what every reader
    clicked, shown by the policy or not: with a refresh of an hour they tell much of an article's success
    that a policy should find out by itself; with a day they tell little of the articles of the day.
    """

    folder: Folder = field(default=None, repr=False, compare=False)
    most: int = 8
    history_days: int = 7
    dims: int = 16
    refresh: float = 24.0
    share: float = 1.0
    points: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("most", 1), ("history_days", 0), ("dims", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}")
        checks.positive("refresh", self.refresh)
        if self.points is not None and self.points < 1:
            raise ValueError(f"points must be at least 1, or None for all; got {self.points}")
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1; got {self.share}")

    def draw(self, rng: np.random.Generator) -> Replay:
        """Draw the share of the impressions; the whole log is the same for every rng."""
        place = news.find(self.folder, LAYOUTS, home=HOME)
        log = _read(place, self.most)
        contexts, arms = _features(place, self.most, self.dims, self.refresh)
        chosen, logged = self._chosen(log, rng)
        if len(chosen) == len(log.shown):
            return Replay(shown=log.shown, contexts=contexts, arms=arms, logged=logged)
        rows = log.shown.rows(chosen)
        return Replay(shown=log.shown.take(chosen), contexts=contexts[chosen], arms=arms[rows], logged=logged)

    def _chosen(self, log: "Log", rng: np.random.Generator) -> tuple[Ids, int]:
        """Return the impressions that are replayed, and how many of them are the history."""
        total = len(log.shown)
        drawn = np.sort(rng.permutation(total)[: max(round(self.share * total), 1)])
        # The splits change at the hour at which the log begins, not at midnight.
        logged = int(np.searchsorted(log.shown.times[drawn], log.begins + 24 * self.history_days))
        if logged == len(drawn):
            raise ValueError(
                f"history_days must leave rounds to play; {self.history_days} days are the whole log"
                + (f", or the {len(drawn)} impressions drawn of it" if self.share < 1 else "")
            )
        played = drawn[logged:]
        played = played[news.spaced(len(played), self.points)]
        return np.concatenate([drawn[:logged], played]), logged


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """The impressions in order of time, with what needs no taste vectors, and everybody's clicks."""

    begins: float  # the hour of the first impression of all
    shown: Shown
    readers: Ids  # the number of each impression's reader
    visits: Matrix  # what is known of each impression but the reader's past
    articles: Ids  # the number of each row's article
    offers: Matrix  # what is known of each row's article but its taste vector
    clicks: Clicks
    article_count: int


@cache
def _read(place: Place, most: int) -> Log:
    tables = (_bundle if place.layout == BUNDLE else _compact)(place.folder)
    since = news.midnight(tables.impressions["time"])
    times = news.hours(tables.impressions["time"], since=since)
    order = np.argsort(times, kind="stable")
    impressions = {name: [column[i] for i in order] for name, column in tables.impressions.items()}
    whole = Shown.of(times[order], impressions["candidates"], impressions["clicked"])
    few = np.flatnonzero(whole.sizes <= most)
    if not few.size:
        raise ValueError(f"{place.folder} has no impression of at most {most} candidates")

    readers = np.array(impressions["user_id"], dtype=np.int64)
    clicks = _clicks(whole, readers, tables.past, since)
    users, reader_numbers = _numbered(readers, clicks.users)
    articles, numbers = _numbered(whole.arm_ids, clicks.articles)
    clicked = np.searchsorted(articles, clicks.articles)
    first_seen = np.full(len(articles), np.inf)
    np.minimum.at(first_seen, numbers, np.repeat(whole.times, whole.sizes))
    np.minimum.at(first_seen, clicked, clicks.times)
    rows = whole.rows(few)
    return Log(
        begins=float(np.floor(whole.times[0])),
        shown=whole.take(few),
        readers=reader_numbers[few],
        visits=_visits(impressions, whole.times)[few],
        articles=numbers[rows],
        offers=_offers(whole, first_seen[numbers], tables.articles)[rows],
        clicks=Clicks.of(np.searchsorted(users, clicks.users), clicked, clicks.times),
        article_count=len(articles),
    )


def _numbered(ids: Ids, others: Ids) -> tuple[Ids, Ids]:
    """Return all ids in order, and the place of each of the first there."""
    names = np.union1d(ids, others)
    return names, np.searchsorted(names, ids)


class RawClicks(NamedTuple):
    """Clicks with the ids of the log."""

    users: Ids
    articles: Ids
    times: Vector


def _clicks(whole: Shown, readers: Ids, past: Table, since: np.datetime64) -> RawClicks:
    """Join the clicks on impressions, dated when the list was shown, and those of the history table."""
    clicked = np.flatnonzero(whole.clicks)
    impressions = np.searchsorted(whole.starts, clicked, side="right") - 1
    lengths = [len(row) for row in past["article_ids"]]
    earlier = np.array(list(chain.from_iterable(past["article_ids"])), dtype=np.int64)
    times = news.hours(list(chain.from_iterable(past["times"])), since=since)
    if len(times) != len(earlier):
        raise ValueError(f"every click of the history needs a time; got {len(earlier)} and {len(times)}")
    past_users = np.repeat(np.array(past["user_id"], dtype=np.int64), lengths)
    return RawClicks(
        users=np.concatenate([readers[impressions], past_users]),
        articles=np.concatenate([whole.arm_ids[clicked], earlier]),
        times=np.concatenate([whole.times[impressions], times]),
    )


def _visits(impressions: Table, times: Vector) -> Matrix:
    angles = 2 * np.pi * times / 24  # time 0 is a midnight
    columns = {name: np.array(impressions[name], dtype=np.float64) for name in KNOWN}
    return np.column_stack(
        [
            *(columns["device_type"] == device for device in DEVICES),
            columns["is_subscriber"] == 1,
            columns["is_sso_user"] == 1,
            np.isnan(columns["page_article_id"]),  # no article around the list: the front page
            np.sin(angles),
            np.cos(angles),
        ]
    ).astype(np.float64)


def _offers(whole: Shown, first_seen: Vector, articles: Table) -> Matrix:
    names = np.array(articles["article_id"], dtype=np.int64)
    order = np.argsort(names)
    places = order[np.minimum(np.searchsorted(names, whole.arm_ids, sorter=order), len(names) - 1)]
    unknown = np.flatnonzero(names[places] != whole.arm_ids)
    if unknown.size:
        raise ValueError(
            f"the table of articles must have every one shown; it lacks {whole.arm_ids[unknown[0]]}"
        )
    newest = np.maximum.accumulate(np.maximum.reduceat(whole.arm_ids, whole.starts[:-1]))
    sizes = [np.repeat(whole.times, whole.sizes) - first_seen, np.repeat(newest, whole.sizes) - whole.arm_ids]
    sizes.append(np.array(articles["article_length"], dtype=np.float64)[places])
    premium = np.array(articles["premium"], dtype=np.float64)[places]
    return np.column_stack([*(np.log10(1 + size) for size in sizes), premium])


@cache
def _features(place: Place, most: int, dims: int, refresh: float) -> tuple[Matrix, Matrix]:
    """Return the contexts of the impressions and the arms of their rows."""
    log = _read(place, most)
    read = np.zeros((len(log.shown), 1))
    profiles = np.zeros((len(log.shown), dims))
    vectors = np.zeros((len(log.articles), dims))
    periods = log.shown.times // refresh
    known: Matrix | None = None
    for period in np.unique(periods):
        known = tastes(log.clicks, period * refresh, articles=log.article_count, dims=dims, like=known)
        visits = np.flatnonzero(periods == period)
        for i in visits:
            now = float(log.shown.times[i])
            articles, times = log.clicks.before(int(log.readers[i]), now)
            read[i] = np.log10(1 + len(articles))
            profiles[i] = np.exp2((times - now) / PROFILE_HALF_LIFE) @ known[articles]
        rows = log.shown.rows(visits)
        vectors[rows] = known[log.articles[rows]]
    profiles /= np.maximum(np.linalg.norm(profiles, axis=1, keepdims=True), 1e-9)
    contexts = np.hstack([log.visits, read, profiles])
    return contexts, np.hstack([log.offers, vectors.any(1, keepdims=True), vectors])


class Tables(NamedTuple):
    """The three tables, by the column names of the compact ones."""

    impressions: Table
    past: Table
    articles: Table


def _compact(folder: Path) -> Tables:
    def read(table: str, columns: Sequence[str]) -> Table:
        return news.read_parquet(folder / f"ebnerd_demo_{table}.parquet", columns)

    return Tables(
        read("impressions", [*KNOWN, "user_id", "time", "candidates", "clicked"]),
        read("history", ["user_id", "times", "article_ids"]),
        read("articles", ["article_id", "article_length", "premium"]),
    )


def _bundle(folder: Path) -> Tables:
    def read(table: str, names: dict[str, str]) -> Table:
        parts = [news.read_parquet(folder / split / f"{table}.parquet", [*names]) for split in SPLITS]
        return {new: [*chain.from_iterable(part[old] for part in parts)] for old, new in names.items()}

    impressions = read("behaviors", BEHAVIOURS)
    impressions["clicked"] = [
        [article in clicked for article in candidates]
        for candidates, clicked in zip(impressions["candidates"], impressions["clicked"], strict=True)
    ]
    past = {"user_id": "user_id", "impression_time_fixed": "times", "article_id_fixed": "article_ids"}
    articles = news.read_parquet(folder / "articles.parquet", ["article_id", "body", "premium"])
    articles["article_length"] = [len(body or "") for body in articles.pop("body")]
    return Tables(impressions, read("history", past), articles)
