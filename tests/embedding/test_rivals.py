"""What rewards say of other arms: the rest of a reward, never too much of it, and only where it is news."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import Feedback
from tercet.embedding.rivals import MOST, SEEN, SHARE, Implied, implied


def log(n: int = 300, *, count: int = 4, seed: int = 0, known: float = 0.5, **changes: Any) -> Feedback:
    """A context has one right arm, which is often known; no two contexts are alike."""
    rng = np.random.default_rng(seed)
    played, right = rng.integers(count, size=(2, n))
    played = np.where(rng.random(n) < known, right, played)
    columns: dict[str, Any] = {
        "contexts": rng.normal(size=(n, 2)),
        "arms": np.eye(count)[played],
        "rewards": (played == right).astype(float),
    }
    return Feedback(**(columns | changes))


def found(history: Feedback, *, seed: int = 0) -> Implied:
    more = implied(history, np.random.default_rng(seed))
    assert more is not None
    return more


def pairs(more: Implied) -> list[tuple[int, int]]:
    return list(zip(more.sources.tolist(), more.outcomes.arms.argmax(axis=1).tolist(), strict=True))


@given(seed=st.integers(0, 500), arms=st.integers(2, 7), n=st.integers(150, 400))
def test_another_arm_would_have_earned_the_rest_of_a_reward(seed: int, arms: int, n: int) -> None:
    history = log(n, count=arms, seed=seed)
    more = found(history, seed=seed)
    np.testing.assert_array_equal(more.outcomes.contexts, history.contexts[more.sources])
    np.testing.assert_array_equal(more.outcomes.rewards, 1 - history.rewards[more.sources])
    assert len(set(pairs(more))) == len(more)
    assert (more.outcomes.arms != history.arms[more.sources]).any(axis=1).all()
    if arms > 2:  # of several others, a failure does not tell which would have paid
        assert (history.rewards[more.sources] == 1).all()


@given(seed=st.integers(0, 500), rare=st.integers(0, 60))
def test_what_is_implied_never_outweighs_what_was_seen_of_an_arm(seed: int, rare: int) -> None:
    history = log(400, seed=seed)
    played = history.arms.argmax(axis=1)
    kept = np.flatnonzero((played != 3) | (np.cumsum(played == 3) <= rare))
    history = history[kept]
    seen = np.bincount(played[kept], minlength=4)
    count = np.bincount([arm for _, arm in pairs(found(history, seed=seed))], minlength=4)
    assert (count <= np.where(seen < SEEN, 0, SHARE * seen)).all()


@given(seed=st.integers(0, 500), arms=st.integers(3, 7), known=st.floats(0.0, 1.0))
def test_implied_failures_never_make_a_reward_rarer_than_by_chance(
    seed: int, arms: int, known: float
) -> None:
    history = log(count=arms, seed=seed, known=known)
    more = implied(history, np.random.default_rng(seed))
    assert more is None or history.rewards.sum() >= (len(history) + len(more)) / arms


def test_of_two_arms_each_outcome_tells_of_the_other() -> None:
    history = log(100, count=2)
    more = found(history)
    assert pairs(more) == [(row, 1 - arm) for row, arm in enumerate(history.arms.argmax(axis=1).tolist())]


@pytest.mark.parametrize(
    "history",
    [
        log(0),
        log(count=1),
        log(10 * MOST, count=MOST + 1),
        log(count=2, rewards=np.full(300, 0.5)),
        log(rewards=np.zeros(300)),
        log(rewards=np.arange(300) % 4 == 0),
        log(SEEN, count=3),
        log(arms=np.random.default_rng(0).normal(size=(300, 2))),
    ],
    ids=[
        "nothing",
        "one arm",
        "many arms",
        "parts of a reward",
        "nothing paid",
        "paid as often as by chance",
        "hardly seen",
        "all arms new",
    ],
)
def test_there_may_be_no_rivals(history: Feedback) -> None:
    assert implied(history, np.random.default_rng(0)) is None


@given(rows=st.lists(st.integers(0, 299), unique=True))
def test_some_outcomes_and_all_others_imply_what_all_do(rows: list[int]) -> None:
    more = found(log())
    theirs, others = more.by(np.asarray(rows, int), most=10_000), more.without(np.asarray(rows, int))
    assert sorted(pairs(theirs) + pairs(others)) == sorted(pairs(more))
    assert set(theirs.sources.tolist()) <= set(rows)
    assert not set(others.sources.tolist()) & set(rows)


@given(most=st.integers(1, 1_000))
def test_at_most_so_many_are_taken(most: int) -> None:
    more = found(log())
    for fewer in (more.some(most, np.random.default_rng(0)), more.by(np.arange(300), most=most)):
        assert len(fewer) <= most
        assert set(pairs(fewer)) <= set(pairs(more))
    assert len(more.some(most, np.random.default_rng(0))) == min(most, len(more))
