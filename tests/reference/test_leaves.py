from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.reference.leaves import Leaves

TREES, EACH = 4, 5  # leaves of a tree


def fallen(n: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Where outcomes fall, and what they earned."""
    rng = np.random.default_rng(seed)
    return rng.integers(EACH, size=(n, TREES)) + EACH * np.arange(TREES), rng.random(n)


def memory(points: Any = (), rewards: Any = ()) -> Leaves:
    made = Leaves(trees=TREES, leaves=TREES * EACH)
    if len(points):
        made.append(points, rewards)
    return made


def brute_force(points: np.ndarray, rewards: np.ndarray, query: np.ndarray) -> tuple[float, float]:
    """Eq. 2 and 5 for the kernel of each tree, then the means over trees."""
    masses, means = [], []
    for tree, leaf in enumerate(query):
        kappa = (points[:, tree] == leaf).astype(float)
        densities = (points[:, tree][:, None] == points[:, tree]).sum(axis=1)
        masses.append(kappa.sum())
        if kappa.any():
            means.append((kappa / densities) @ rewards / (kappa / densities).sum())
    return float(np.mean(masses)), float(np.mean(means)) if means else 0.5


@given(seed=st.integers(0, 1000), n=st.integers(0, 40))
def test_estimates_equal_the_equations(seed: int, n: int) -> None:
    (points, rewards), (queries, _) = fallen(n, seed=seed), fallen(6, seed=seed + 1)
    found = memory(points, rewards).estimate(queries)
    expected = [brute_force(points, rewards, query) for query in queries]
    np.testing.assert_allclose(np.column_stack([found.mass, found.mean]), expected, rtol=1e-9)


@given(seed=st.integers(0, 1000), parts=st.lists(st.integers(0, 9), max_size=6))
def test_memory_is_that_of_what_is_left_after_any_appends_and_forgets(seed: int, parts: list[int]) -> None:
    points, rewards = fallen(sum(parts), seed=seed)
    queries, _ = fallen(6, seed=seed + 1)
    rng, seen, start = np.random.default_rng(seed), memory(), 0
    alive = np.zeros(0, int)
    for size in parts:
        rows = np.arange(start, start + size)
        seen.append(points[rows], rewards[rows], ids=rows)
        gone = rng.random(len(seen)) < 0.4
        seen.forget(gone)
        alive, start = np.append(alive, rows)[~gone], start + size
        np.testing.assert_array_equal(seen.ids, alive)
    fresh = memory(points[alive], rewards[alive])
    for one, other in zip(*(vars(m.estimate(queries)).values() for m in (seen, fresh)), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(seen.points, points[alive])
    np.testing.assert_array_equal(seen.rewards, rewards[alive])


def test_the_order_of_outcomes_changes_nothing() -> None:
    (points, rewards), (queries, _) = fallen(300), fallen(20, seed=1)
    order = np.random.default_rng(2).permutation(300)
    one, other = memory(points, rewards), memory(points[order], rewards[order])
    np.testing.assert_array_equal(one.estimate(queries).mean, other.estimate(queries).mean)


@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
def test_equal_rewards_give_that_mean(reward: float) -> None:
    points, _ = fallen(50)
    found = memory(points, np.full(50, reward)).estimate(points)
    np.testing.assert_allclose(found.mean, reward, atol=1e-9)


def test_shares_are_weights_of_the_mean() -> None:
    (points, rewards), (queries, _) = fallen(40), fallen(6, seed=1)
    seen = memory(points, rewards)
    shares = seen.shares(queries)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares @ rewards, seen.estimate(queries).mean, atol=1e-9)


def test_without_some_is_the_estimate_of_the_others() -> None:
    (points, rewards), (queries, _) = fallen(40), fallen(1, seed=1)
    found = memory(points, rewards).without(np.array([3, 11]), queries[0].astype(float))
    others = np.delete(np.arange(40), [3, 11])
    assert vars(found) == vars(memory(points[others], rewards[others]).estimate(queries))


def test_a_kernel_is_the_share_of_trees_that_agree() -> None:
    points, _ = fallen(9)
    kernel = memory().kernel(points, points)
    np.testing.assert_allclose(kernel, (points[:, None] == points).mean(axis=2))


@given(seed=st.integers(0, 1000), n=st.integers(0, 30), supposed=st.integers(0, 30))
def test_what_is_supposed_counts_like_an_outcome_but_is_none(seed: int, n: int, supposed: int) -> None:
    (points, rewards), (more, theirs), (queries, _) = (
        fallen(size, seed=seed + number) for number, size in enumerate((n, supposed, 6))
    )
    seen, both = memory(points, rewards), memory(np.vstack([points, more]), np.append(rewards, theirs))
    seen.suppose(more, theirs)
    np.testing.assert_array_equal(seen.estimate(queries).mean, both.estimate(queries).mean)
    np.testing.assert_array_equal(seen.estimate(queries).mass, both.estimate(queries).mass)
    assert (len(seen), len(seen.rewards), seen.shares(queries).shape) == (n, n, (6, n))
    np.testing.assert_allclose(seen.shares(queries), both.shares(queries)[:, :n])


def test_what_is_supposed_outlasts_forgetting_and_files() -> None:
    (points, rewards), (more, theirs), (queries, _) = fallen(30), fallen(9, seed=1), fallen(6, seed=2)
    seen, alone = memory(points, rewards), memory(more, theirs)
    seen.suppose(more, theirs)
    without = seen.without(np.arange(30), queries[0].astype(float))
    seen.forget(np.ones(30, bool))
    again = Leaves.from_arrays(*seen.to_arrays())
    for one in (seen, again):
        np.testing.assert_array_equal(one.estimate(queries).mean, alone.estimate(queries).mean)
    assert vars(without) == vars(alone.estimate(queries[:1]))


def test_what_no_leaf_knows_has_no_evidence_and_leaves_none() -> None:
    seen = memory([[-1, -1, -1, -1]], [1.0])
    found = seen.estimate([[-1, -1, -1, -1], [0, 5, 10, 15]])
    assert (len(seen), found.mass.tolist(), found.mean.tolist()) == (1, [0, 0], [0.5, 0.5])
    seen.forget(np.array([True]))
    assert len(seen) == 0


def test_arrays_make_the_same_memory_again() -> None:
    (points, rewards), (queries, _) = fallen(30), fallen(6, seed=1)
    seen = memory(points, rewards)
    seen.forget(np.arange(30) < 10)
    again = Leaves.from_arrays(*seen.to_arrays())
    for one in (seen, again):
        one.append(points[:3], rewards[:3])
    np.testing.assert_array_equal(again.ids, seen.ids)
    np.testing.assert_array_equal(again.times, seen.times)
    np.testing.assert_array_equal(again.estimate(queries).mean, seen.estimate(queries).mean)


@pytest.mark.parametrize(
    ("points", "rewards", "wrong"),
    [
        ([[0, 5, 10]], [1.0], "4 columns"),
        ([[0, 5, 10, 20]], [1.0], "numbers of leaves"),
        ([[0, 5, 10, -2]], [1.0], "numbers of leaves"),
        ([[0, 5, 10, 1e12]], [1.0], "numbers of leaves"),
        ([[0, 5, 10, 15.5]], [1.0], "numbers of leaves"),
        ([[0, 5, 10, np.nan]], [1.0], "finite"),
        ([[0, 5, 10, 15]], [1.5], r"\[0, 1\]"),
        ([[0, 5, 10, 15]], [1.0, 0.0], "length"),
    ],
)
def test_bad_outcomes_are_refused_and_change_nothing(points: Any, rewards: Any, wrong: str) -> None:
    seen = memory(*fallen(5))
    with pytest.raises(ValueError, match=wrong):
        seen.append(points, rewards)
    with pytest.raises(ValueError, match=wrong):
        seen.suppose(points, rewards)
    assert len(seen) == 5
    np.testing.assert_array_equal(
        seen.estimate(fallen(5)[0]).mass, memory(*fallen(5)).estimate(fallen(5)[0]).mass
    )
    with pytest.raises(ValueError, match="mask of 5"):
        seen.forget([0, 1])


@pytest.mark.parametrize("wrong", [np.zeros((2, 3), np.int64), np.zeros((2, 20)), np.full((2, 20), -1)])
def test_sums_that_fit_no_leaves_are_refused(wrong: np.ndarray) -> None:
    arrays, spec = memory(*fallen(5)).to_arrays()
    with pytest.raises(ValueError, match="two counts for each of 20 leaves"):
        Leaves.from_arrays(arrays | {"supposed": wrong}, spec)
