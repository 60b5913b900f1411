from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from tercet import Feedback
from tercet.policies.neighbours import NeighbourUCB

RNG = np.random.default_rng  # made anew for each call
ARMS = np.eye(3)
CONTEXT = np.array([0.1, -0.3])


def some(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    arms = ARMS[rng.integers(3, size=n)]
    return Feedback(contexts=rng.normal(size=(n, 2)), arms=arms, rewards=rng.random(n), times=rng.random(n))


def brute(memory: Feedback, history: Feedback, policy: NeighbourUCB) -> tuple[list[float], list[float]]:
    """Means and indices as the paper writes them: every k over the neighbours of all arms, nearest first."""
    centre, spread = history.joint().mean(0), history.joint().std(0)
    points = (memory.joint() - centre) / spread / np.sqrt(5)
    means, indices = [], []
    for arm in ARMS:
        query = (np.concatenate([CONTEXT, arm]) - centre) / spread / np.sqrt(5)
        distances = np.sqrt(((points - query) ** 2).sum(1))
        options = []
        for k in range(1, len(memory) + 1):
            near = np.argsort(distances)[:k]
            own = near if policy.pooled else near[(memory.arms[near] == arm).all(1)]
            if 0 < len(own) <= policy.neighbours:
                uncertainty = policy.width * np.sqrt(np.log(len(memory)) / len(own))
                uncertainty += policy.slope * distances[near[-1]]
                options.append((uncertainty, memory.rewards[own].mean()))
        smallest, mean = min(options, default=(np.inf, memory.rewards.mean()))
        means.append(mean)
        indices.append(mean + smallest)
    return means, indices


@given(
    n=st.integers(2, 40),
    pooled=st.booleans(),
    neighbours=st.integers(1, 12),
    width=st.floats(0.01, 1),
    slope=st.just(0.0) | st.floats(0.01, 1),
)
@settings(max_examples=40)
def test_scores_equal_the_paper_written_out(
    n: int, pooled: bool, neighbours: int, width: float, slope: float
) -> None:
    history, memory = some(50, seed=9), some(n)
    policy = NeighbourUCB(neighbours=neighbours, width=width, slope=slope, pooled=pooled)
    policy.fit(history, RNG(0), remember=False)
    policy.update(memory, RNG(0))
    means, indices = brute(memory, history, policy)
    choice = policy.choose(CONTEXT, ARMS, RNG(0))
    np.testing.assert_allclose(choice.means, means, atol=1e-9)
    assert indices[choice.arm] == max(indices)


def test_neighbours_and_distances_equal_those_of_scikit_learn() -> None:
    policy, history = NeighbourUCB(neighbours=7, pooled=True), some(200)
    policy.fit(history, RNG(0))
    contexts, arms = policy._memory.scaled(CONTEXT[None], ARMS)
    nearest, distances = policy._nearest(contexts[0], arms, np.zeros(3, dtype=np.int64))
    peer = NearestNeighbors(n_neighbors=7).fit(policy._memory.joint())
    queries = np.hstack([np.tile(contexts, (3, 1)), arms])
    expected_distances, expected = peer.kneighbors(queries)
    np.testing.assert_array_equal(nearest, expected)
    np.testing.assert_allclose(distances, expected_distances, atol=1e-9)


def test_an_arm_without_outcomes_is_tried_first_and_expected_to_be_average() -> None:
    policy = NeighbourUCB()
    policy.fit(some(30), RNG(0))
    arms = np.vstack([ARMS, np.full(3, 0.5)])
    choice = policy.choose(CONTEXT, arms, RNG(0))
    assert choice.arm == 3
    assert choice.means is not None
    assert choice.means[3] == pytest.approx(some(30).rewards.mean())


def test_arms_go_by_their_ids_where_they_have_some() -> None:
    policy = NeighbourUCB(width=0.0, slope=0.01)
    for reward, name in ((1.0, "good"), (0.0, "bad")):
        policy.update(Feedback.one(context=CONTEXT, arm=ARMS[0], reward=reward, arm_id=name), RNG(0))
    choice = policy.choose(CONTEXT, ARMS[1:], RNG(0), arm_ids=["bad", "good"])
    np.testing.assert_array_equal(choice.means, [0, 1])


def test_only_the_newest_outcomes_count_within_a_window() -> None:
    short, fresh, feedback = NeighbourUCB(window=10), NeighbourUCB(), some(40)
    short.update(feedback, RNG(0))
    fresh.update(feedback[-10:], RNG(0))
    one, two = (policy.choose(CONTEXT, ARMS, RNG(0)) for policy in (short, fresh))
    np.testing.assert_array_equal(one.means, two.means)
    np.testing.assert_array_equal(one.propensities, two.propensities)


def test_fit_remembers_only_if_asked() -> None:
    policy = NeighbourUCB()
    policy.fit(some(30), RNG(0), remember=False)
    choice = policy.choose(CONTEXT, ARMS, RNG(0))
    np.testing.assert_allclose(choice.propensities, 1 / 3)
    np.testing.assert_array_equal(choice.means, 0.5)


def test_an_untrained_policy_decides_and_can_be_saved(tmp_path: Path) -> None:
    NeighbourUCB(neighbours=3, window=9).save(tmp_path / "policy")
    again = NeighbourUCB.load(tmp_path / "policy")
    np.testing.assert_allclose(again.choose([0.0, 0.0], ARMS, RNG(0)).propensities, 1 / 3)
    assert (again.neighbours, again.window) == (3, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"neighbours": 0}, "neighbours must be a whole number, 1 or more; got 0"),
        ({"width": -1.0}, "width must be a number of at least 0; got -1"),
        ({"slope": float("inf")}, "slope must be finite"),
        ({"window": 0}, "window must be a whole number"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeighbourUCB(**options)
