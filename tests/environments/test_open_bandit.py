from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tercet.environments import open_bandit
from tercet.environments.open_bandit import OpenBanditLog

START = datetime(2019, 11, 24, 6, tzinfo=UTC)
ITEMS = 4


def tables(policy: str = "random", campaign: str = "men", count: int = 30) -> tuple[Any, Any, np.ndarray]:
    """Draw a log, not in order of time, its items, not in order of number, and everybody's affinities."""
    rng = np.random.default_rng([len(policy), len(campaign)])
    log = {
        "timestamp": [START + timedelta(minutes=int(m)) for m in rng.permutation(count)],
        "item_id": rng.integers(0, ITEMS, count).tolist(),
        "position": rng.integers(1, 4, count).tolist(),
        "click": rng.integers(0, 2, count).tolist(),
        "propensity_score": rng.uniform(0.1, 1, count).tolist(),
    } | {f"user_feature_{i}": rng.choice(["ff", "aa", "cc"], count).tolist() for i in range(4)}
    items = {"item_id": [3, 0, 2, 1], "item_feature_0": [0.3, 0.0, 0.2, 0.1]} | {
        f"item_feature_{i}": ["x", "y", "x", "z"] for i in range(1, 4)
    }
    return log, items, rng.random((count, ITEMS))


def write_csv(folder: Path, policy: str = "random", campaign: str = "men") -> Path:
    log, items, affinities = tables(policy, campaign)
    root = folder / policy / campaign
    root.mkdir(parents=True)
    frame = pd.DataFrame(log).assign(**{f"user-item_affinity_{i}": affinities[:, i] for i in range(ITEMS)})
    frame.to_csv(root / f"{campaign}.csv")
    pd.DataFrame(items).to_csv(root / "item_context.csv", index=False)
    return folder


def write_sample(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    logs, catalogues = [], []
    for policy, campaign in (("random", "men"), ("bts", "men")):
        log, items, affinities = tables(policy, campaign)
        ours = {"policy": policy, "campaign": campaign}
        logs.append(pd.DataFrame(log | {"user_item_affinity": affinities.tolist()}).assign(**ours))
        catalogues.append(pd.DataFrame(items).assign(**ours))
    for name, parts in (("obd_sample", logs), ("obd_items", catalogues)):
        parquet.write_table(pa.Table.from_pandas(pd.concat(parts)), folder / f"{name}.parquet")
    return folder


@pytest.fixture
def log(tmp_path: Path) -> OpenBanditLog:
    return open_bandit.load(campaign="men", folder=write_csv(tmp_path))


def test_outcomes_come_in_order_of_time_with_their_propensities(log: OpenBanditLog) -> None:
    raw = pd.DataFrame(tables()[0]).sort_values("timestamp")
    feedback = log.feedback
    np.testing.assert_array_equal(feedback.rewards, raw["click"])
    np.testing.assert_array_equal(feedback.arm_ids, raw["item_id"])
    np.testing.assert_allclose(feedback.propensities, raw["propensity_score"])
    np.testing.assert_allclose(feedback.times, 6 + np.arange(30) / 60)


def test_contexts_are_the_user_features_and_the_place_one_hot(log: OpenBanditLog) -> None:
    raw = pd.DataFrame(tables()[0]).sort_values("timestamp")
    contexts = log.feedback.contexts
    assert contexts.shape == (30, 4 * 3 + 3)
    np.testing.assert_array_equal(contexts.sum(1), 5)
    for i in range(4):
        words = np.array(["aa", "cc", "ff"])[contexts[:, 3 * i : 3 * i + 3].argmax(1)]
        np.testing.assert_array_equal(words, raw[f"user_feature_{i}"])
    np.testing.assert_array_equal(contexts[:, -3:].argmax(1) + 1, raw["position"])


def test_an_arm_is_its_item_with_the_affinity_of_the_visitor(log: OpenBanditLog) -> None:
    np.testing.assert_array_equal(log.items[:, 0], [0.0, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(log.items[:, 1:4], np.eye(3)[[1, 2, 0, 0]])
    assert log.feedback.arm_ids is not None
    for row, item in enumerate(log.feedback.arm_ids.tolist()):
        arms = log.arms(row)
        np.testing.assert_array_equal(arms[item], log.feedback.arms[row])
        np.testing.assert_array_equal(arms[:, -1], log.affinities[row])


def test_the_original_files_and_the_sample_give_the_same_log(log: OpenBanditLog, tmp_path: Path) -> None:
    other = open_bandit.load(campaign="men", folder=write_sample(tmp_path / "sample"))
    for name in ("contexts", "arms", "rewards", "times", "ids", "arm_ids", "propensities"):
        np.testing.assert_array_equal(getattr(log.feedback, name), getattr(other.feedback, name))
    np.testing.assert_array_equal(log.affinities, other.affinities)


def test_each_policy_has_a_log_of_its_own(tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    one, two = (open_bandit.load(policy=p, campaign="men", folder=folder) for p in ("random", "bts"))
    assert not np.array_equal(one.feedback.propensities, two.feedback.propensities)
    with pytest.raises(ValueError, match="no rows of the policy bts in the campaign all"):
        open_bandit.load(policy="bts", campaign="all", folder=folder)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="policy must be one of random, bts; got 'best'"):
        open_bandit.load(policy="best")
    with pytest.raises(ValueError, match="campaign must be one of all, men, women; got 'kids'"):
        open_bandit.load(campaign="kids")


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("item_id", 9, "items must be 0 to 3; got 9"),
        ("position", 4, "positions must be among"),
        ("propensity_score", 1.5, "propensities must lie in"),
        ("click", "yes", "rewards must be numbers"),
        ("timestamp", "then", "can not be read as CSV"),
        ("user-item_affinity_2", None, r"no column \['user-item_affinity_2'\]"),
    ],
)
def test_broken_tables_are_refused(column: str, value: object, words: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path) / "random" / "men" / "men.csv"
    frame = pd.read_csv(path, index_col=0, dtype={column: object})
    frame.loc[3, column] = value
    (frame if value is not None else frame.drop(columns=column)).to_csv(path)
    with pytest.raises(ValueError, match=words):
        open_bandit.load(campaign="men", folder=tmp_path)


def test_items_without_a_number_each_are_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path) / "random" / "men" / "item_context.csv"
    pd.read_csv(path).assign(item_id=[0, 1, 2, 2]).to_csv(path, index=False)
    with pytest.raises(ValueError, match="items must be numbered from 0"):
        open_bandit.load(campaign="men", folder=tmp_path)


def test_missing_data_say_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"random/all/all\.csv.*research\.zozo\.com"):
        open_bandit.load(folder=tmp_path)
