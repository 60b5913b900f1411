from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.environments.base import Revealing
from tercet.environments.classification import FARTHEST, MOST_ROWS, STREAMED, Classification, ClassWorld
from tercet.types import Feedback

ROWS, CLASSES = 6000, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose first column is the number of the row, so that rows can be told apart."""
    rng, place = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    noise = rng.normal(3.0, 2.0, size=(ROWS, 2))
    features = np.column_stack([np.arange(ROWS), noise, np.full(ROWS, 0.1)])
    np.savez(place / "letter.npz", X=features, y=10 + rng.integers(CLASSES, size=ROWS))
    np.savez(place / "iris.npz", X=features[:150], y=np.arange(150) % 3)
    return place


def drawn(folder: Path, seed: int = 0, **options: Any) -> ClassWorld:
    recipe = Classification(**({"data": "letter", "folder": folder} | options))
    return recipe.draw(np.random.default_rng(seed))


def logged(world: ClassWorld) -> Feedback:
    return world.history(np.random.default_rng(1))


def rounds(world: ClassWorld) -> list[Any]:
    return list(world.rounds(np.random.default_rng(2)))


def evaluated(world: ClassWorld) -> np.ndarray:
    return np.array([round_.context for round_ in rounds(world)])


def frozen(feedback: Feedback) -> dict[str, Any]:
    return {name: np.asarray(getattr(feedback, name)).tolist() for name in Feedback.__dataclass_fields__}


@pytest.mark.parametrize(
    ("options", "history", "steps"),
    [
        ({"protocol": "text"}, 4000, 1000),
        ({"protocol": "scripts"}, 2400, 360),
        ({"protocol": "text", "history": 0}, 0, 1000),
        ({"protocol": "text", "history": 100}, 100, 1000),
        ({"protocol": "scripts", "history": 0.1}, 600, 360),
        ({"protocol": "scripts", "history": 5640}, 5640, 360),
    ],
)
def test_a_protocol_has_its_sizes(options: dict[str, Any], history: int, steps: int, folder: Path) -> None:
    world = drawn(folder, **options)
    assert len(logged(world)) == history
    assert len(rounds(world)) == steps


def test_of_a_large_table_so_many_rows_are_drawn(tmp_path: Path) -> None:
    labels = np.arange(MOST_ROWS + 30_000) % 2
    np.savez(tmp_path / "letter.npz", X=np.arange(len(labels))[:, None], y=labels)
    world = drawn(tmp_path, scale=False)
    assert (len(world.logged), len(world.evaluated)) == (50_000, 7500)
    assert np.concatenate([world.logged, world.evaluated]).max() > MOST_ROWS  # drawn, not cut off


@given(
    seed=st.integers(0, 9),
    sizes=st.tuples(st.integers(0, 5000), st.integers(0, 5000)).map(sorted),
    logging=st.sampled_from(["label-aware", "uniform"]),
)
@settings(max_examples=10)
def test_a_smaller_history_is_the_beginning_of_a_larger_and_none_has_evaluated_rows(
    folder: Path, seed: int, sizes: list[int], logging: str
) -> None:
    options = {"protocol": "text", "scale": False, "logging": logging}
    small, large = (drawn(folder, seed, history=size, **options) for size in sizes)
    assert frozen(logged(large)[: sizes[0]]) == frozen(logged(small))
    rows = evaluated(large)[:, 0]
    np.testing.assert_array_equal(evaluated(small)[:, 0], rows)
    assert len({*rows, *logged(large).contexts[:, 0]}) == 1000 + sizes[1]


def test_contexts_labels_and_rewards_are_the_tables(folder: Path) -> None:
    world = drawn(folder, scale=False)
    with np.load(folder / "letter.npz") as file:
        features, labels = file["X"], file["y"] - 10
    history = logged(world)
    rows = history.contexts[:, 0].astype(int)
    np.testing.assert_array_equal(history.contexts, features[rows])
    np.testing.assert_array_equal(history.rewards, history.arms.argmax(1) == labels[rows])
    np.testing.assert_array_equal(history.arm_ids, history.arms.argmax(1))
    for round_ in rounds(world):
        np.testing.assert_array_equal(round_.rewards, np.eye(CLASSES)[labels[int(round_.context[0])]])
        np.testing.assert_array_equal(round_.means, round_.rewards)
        np.testing.assert_array_equal(round_.arms, np.eye(CLASSES))


def test_label_aware_logging_is_right_half_of_the_time_and_else_even(folder: Path) -> None:
    history, truth = logged(drawn(folder)), drawn(folder).revealed(np.random.default_rng(1)).rewards
    assert history.propensities is not None
    n, right = len(history), history.rewards == 1
    assert abs(right.mean() - 0.5) < 4 * 0.5 / np.sqrt(n)
    np.testing.assert_array_equal(history.propensities, np.where(right, 1 / 2, 1 / 6))
    away = (history.arms.argmax(1) - truth.argmax(1))[~right] % CLASSES
    counts = np.bincount(away, minlength=CLASSES)
    assert counts[0] == 0
    assert (np.abs(counts[1:] - len(away) / 3) < 4 * np.sqrt(len(away) / 3)).all()


def test_uniform_logging_takes_any_arm_as_likely(folder: Path) -> None:
    history = logged(drawn(folder, logging="uniform"))
    np.testing.assert_array_equal(history.propensities, 1 / CLASSES)
    counts = history.arms.sum(0)
    assert (np.abs(counts - len(history) / CLASSES) < 4 * np.sqrt(len(history) / CLASSES)).all()


@pytest.mark.parametrize("logging", ["label-aware", "uniform"])
def test_inverse_propensities_give_the_value_of_every_arm(folder: Path, logging: str) -> None:
    world = drawn(folder, logging=logging)
    history, truth = logged(world), world.revealed(np.random.default_rng(1)).rewards
    for arm in range(CLASSES):
        worth = history.arms[:, arm] * history.rewards / np.asarray(history.propensities)
        assert abs(worth.mean() - truth[:, arm].mean()) < 4 * worth.std() / np.sqrt(len(history))


@pytest.mark.parametrize("size", [0, 2, 30, 4000, 5000])
def test_each_logged_outcome_streams_once_and_in_order(size: int, folder: Path) -> None:
    world = drawn(folder, protocol="text", history=size, streaming=True)
    assert world.streaming
    history, steps = logged(world), rounds(world)
    parts = [round_.logged for round_ in steps if round_.logged is not None]
    assert all(len(part) == STREAMED for part in parts[:-1])
    came = min(size, STREAMED * len(steps))
    assert len(parts) == -(-came // STREAMED)
    if parts:
        streamed, expected = frozen(Feedback.concat(parts)), frozen(history[:came])
        times = streamed.pop("times")
        expected.pop("times")
        assert streamed == expected
        # A unit of time is an outcome: each arrives just before the step that it comes with.
        arrived = [time for round_ in steps if round_.logged is not None for time in round_.logged.times]
        assert times == arrived
        assert times == [size + 5 * (n // 4) + n % 4 for n in range(came)]
    assert [round_.time for round_ in steps[:3]] == [size + 4, size + 9, size + 14]
    waiting = drawn(folder, protocol="text", history=size)
    assert all(round_.logged is None for round_ in rounds(waiting))
    np.testing.assert_array_equal(evaluated(waiting), evaluated(world))


def test_contexts_are_scaled_by_the_history_alone(folder: Path) -> None:
    raw, scaled = drawn(folder, scale=False), drawn(folder)
    before = logged(raw).contexts
    centre, spread = before[:, :3].mean(0), before[:, :3].std(0)
    np.testing.assert_allclose(logged(scaled).contexts[:, :3], (before[:, :3] - centre) / spread)
    np.testing.assert_allclose(evaluated(scaled)[:, :3], (evaluated(raw)[:, :3] - centre) / spread)


def test_columns_that_are_constant_in_the_history_become_0(folder: Path) -> None:
    assert (evaluated(drawn(folder))[:, 3] == 0).all()


def test_no_rare_value_outweighs_all_others(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rare = (rng.random((2000, 50)) < 0.002) * rng.exponential(size=(2000, 50)) ** 4
    np.savez(tmp_path / "letter.npz", X=rare, y=np.arange(2000) % 2)
    world = drawn(tmp_path)
    assert np.abs(logged(world).contexts).max() <= FARTHEST * (1 + 1e-12)
    assert np.abs(evaluated(world)).max() <= FARTHEST


@pytest.mark.parametrize("size", [0, 1])
def test_without_a_history_contexts_stay_as_they_are(size: int, folder: Path) -> None:
    world, raw = (drawn(folder, history=size, scale=scale) for scale in (True, False))
    np.testing.assert_array_equal(evaluated(world), evaluated(raw))
    assert logged(world).contexts.shape == (size, 4)


def test_an_oracle_sees_every_arm_of_the_history(folder: Path) -> None:
    world = drawn(folder)
    assert isinstance(world, Revealing)
    history, truth = logged(world), world.revealed(np.random.default_rng(1))
    np.testing.assert_array_equal(truth.contexts, history.contexts)
    np.testing.assert_array_equal(truth.rewards.sum(1), 1)
    chosen = history.arms @ truth.arms.T  # one-hot both ways
    np.testing.assert_array_equal((truth.rewards * chosen).sum(1), history.rewards)


def test_the_place_of_the_data_and_its_alias_do_not_make_another_recipe(folder: Path) -> None:
    assert Classification(data="magic", folder=folder) == Classification(data="MagicTelescope")
    assert "folder" not in repr(Classification(folder=folder))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "talk"}, "protocol must be one of text, scripts; got 'talk'"),
        ({"logging": "greedy"}, "logging must be one of label-aware, uniform; got 'greedy'"),
        ({"history": -1}, r"history must be a number of rows or a share in \[0, 1\); got -1"),
        ({"history": 1.5}, "history must be a number of rows or a share"),
        ({"history": True}, "history must be a number of rows or a share"),
        ({"data": "a/b"}, "data must be the name of an OpenML data set"),
    ],
)
def test_impossible_recipes_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Classification(**options)


@pytest.mark.parametrize("options", [{"protocol": "text"}, {"protocol": "scripts", "history": 150}])
def test_a_table_too_small_for_its_protocol_is_refused(options: dict[str, Any], folder: Path) -> None:
    with pytest.raises(ValueError, match=r"iris has 150 rows to use; .*: take a smaller history"):
        drawn(folder, data="iris", **options)
