"""The Open Bandit Dataset of the fashion shop ZOZOTOWN: a loader of its logs.

There is no replay of it: what an item that was not shown would have earned is unknown. Its logs are for
off-policy evaluation, for which they have exact propensities. The small sample (10,000 rows and some
40 clicks a log) is too small for claims.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np

from tercet import checks
from tercet.checks import Array, Matrix
from tercet.environments import news
from tercet.environments.news import Folder, Place
from tercet.types import Feedback, Ids

HOME = "https://research.zozo.com/data.html (CC BY 4.0)"
POLICIES = ("random", "bts")
CAMPAIGNS = ("all", "men", "women")
POSITIONS = (1, 2, 3)
SAMPLE = "the sample's tables"
USER = tuple(f"user_feature_{i}" for i in range(4))
ITEM = tuple(f"item_feature_{i}" for i in range(4))
LOGGED = ("timestamp", "item_id", "position", "click", "propensity_score", *USER)

Table = dict[str, Array]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OpenBanditLog:
    """A log, in order of time, and the items that could have been shown.

    `feedback` has a row for each item shown. Its context is the visitor's four features, one-hot, and the
    place among the three of the page, one-hot: the places are filled at once and each has propensities of
    its own, so a row is a decision about one place. Its arm is the item's features (the first is a number,
    the others are one-hot) and, last, the visitor's affinity to the item. Times are hours since the
    midnight (UTC) before the first row, and arm ids are item numbers. Hashed features differ between the
    logs of the two policies, so their columns do too: never mix them.
    """

    feedback: Feedback
    items: Matrix  # one row an item
    affinities: Matrix  # one row an outcome, one column an item

    def arms(self, row: int) -> Matrix:
        """Return all items as the visitor of a row meets them, in the order of their numbers."""
        return np.column_stack([self.items, self.affinities[row]])


def load(*, policy: str = "random", campaign: str = "all", folder: Folder = None) -> OpenBanditLog:
    """Read the log of a policy (uniform "random" or Thompson sampling, "bts") in a campaign.

    >>> log = load(campaign="men", folder="/data/open_bandit")  # doctest: +SKIP
    >>> len(log.feedback), log.arms(0).shape  # doctest: +SKIP
    (10000, (34, 29))
    """
    for name, value, known in (("policy", policy, POLICIES), ("campaign", campaign, CAMPAIGNS)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")
    files = [f"{policy}/{campaign}/{campaign}.csv", f"{policy}/{campaign}/item_context.csv"]
    layouts = {"as it comes": files, SAMPLE: ["obd_sample.parquet", "obd_items.parquet"]}
    return _read(news.find(folder, layouts, home=HOME), policy, campaign)


@cache
def _read(place: Place, policy: str, campaign: str) -> OpenBanditLog:
    read = _sample if place.layout == SAMPLE else _original
    logged, affinities, items = read(place.folder, policy, campaign)
    numbers = items["item_id"].astype(np.int64)
    order = np.argsort(numbers)
    if not np.array_equal(numbers[order], np.arange(len(numbers))) or affinities.shape[1] != len(numbers):
        raise ValueError(
            f"items must be numbered from 0, with an affinity each; {place.folder} has the numbers "
            f"{numbers[order][:3]} ... {numbers[order][-3:]} and {affinities.shape[1]} affinities"
        )
    described = np.column_stack(
        [items[ITEM[0]].astype(np.float64), *(_one_hot(items[name]) for name in ITEM[1:])]
    )[order]
    by_time = np.argsort(logged["timestamp"], kind="stable")
    logged = {name: column[by_time] for name, column in logged.items()}
    return OpenBanditLog(
        feedback=_feedback(logged, described, affinities[by_time]),
        items=described,
        affinities=affinities[by_time],
    )


def _feedback(logged: Table, items: Matrix, affinities: Matrix) -> Feedback:
    shown, rows = _within(logged["item_id"], len(items)), np.arange(len(affinities))
    positions = logged["position"][:, None] == POSITIONS
    if not positions.any(1).all():
        raise ValueError(f"positions must be among {POSITIONS}; got {np.unique(logged['position'])}")
    since = logged["timestamp"].min().astype("datetime64[D]")
    return Feedback(
        contexts=np.column_stack([*(_one_hot(logged[name]) for name in USER), positions]),
        arms=np.column_stack([items[shown], affinities[rows, shown]]),
        rewards=logged["click"],
        times=(logged["timestamp"] - since) / np.timedelta64(1, "h"),
        ids=rows,
        arm_ids=shown,
        propensities=logged["propensity_score"],
    )


def _within(item_ids: Array, count: int) -> Ids:
    numbers = item_ids.astype(np.int64)
    strange = np.flatnonzero((numbers < 0) | (numbers >= count))
    if strange.size:
        raise ValueError(
            f"shown items must be 0 to {count - 1}; got {numbers[strange[0]]} in row {strange[0]}"
        )
    return numbers


def _one_hot(column: Array) -> Matrix:
    words = column.astype(str)
    return (words[:, None] == np.unique(words)).astype(np.float64)


def _sample(folder: Path, policy: str, campaign: str) -> tuple[Table, Matrix, Table]:
    def part(file: str, columns: tuple[str, ...]) -> dict[str, list[Any]]:
        table = news.read_parquet(folder / file, ["policy", "campaign", *columns])
        ours = [pair == (policy, campaign) for pair in zip(table["policy"], table["campaign"], strict=True)]
        if not any(ours):
            raise ValueError(f"{folder / file} has no rows of the policy {policy} in the campaign {campaign}")
        return {name: [value for value, ok in zip(table[name], ours, strict=True) if ok] for name in columns}

    logged = part("obd_sample.parquet", (*LOGGED, "user_item_affinity"))
    affinities = checks.matrix("user_item_affinity", logged.pop("user_item_affinity"))
    # NumPy's dates know no zone: these are UTC.
    logged["timestamp"] = [time.replace(tzinfo=None) for time in logged["timestamp"]]
    items = part("obd_items.parquet", ("item_id", *ITEM))
    return _columns(logged), affinities, _columns(items)


def _columns(table: dict[str, list[Any]]) -> Table:
    types = {"timestamp": "datetime64[us]"}
    return {name: np.array(values, dtype=types.get(name)) for name, values in table.items()}


def _original(folder: Path, policy: str, campaign: str) -> tuple[Table, Matrix, Table]:
    items = _csv(folder / policy / campaign / "item_context.csv", ("item_id", *ITEM))
    names = tuple(f"user-item_affinity_{i}" for i in range(len(items["item_id"])))
    logged = _csv(folder / policy / campaign / f"{campaign}.csv", (*LOGGED, *names))
    affinities = checks.matrix("affinities", np.column_stack([logged.pop(name) for name in names]))
    return logged, affinities, items


def _csv(path: Path, columns: tuple[str, ...]) -> Table:
    import pandas as pd

    try:
        frame = pd.read_csv(path)
        if "timestamp" in frame:
            times = pd.to_datetime(frame["timestamp"], format="ISO8601", utc=True)
            frame["timestamp"] = times.dt.tz_localize(None)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can not be read as CSV; download it again ({error})") from error
    missing = sorted(set(columns) - set(frame.columns))
    if missing:
        raise ValueError(f"{path} has no column {missing}; it has {list(frame.columns)}")
    return {name: frame[name].to_numpy() for name in columns}
