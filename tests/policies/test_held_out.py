from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback, ReferenceSet, iwkr
from tercet.embedding.grove import grown
from tercet.embedding.rivals import implied
from tercet.policies import held_out
from tercet.policies.held_out import Glade, Sight
from tercet.reference.exact import Estimate

BANDWIDTH = 0.6


def arms_only(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return arms


def outcomes(n: int = 60, *, seed: int = 0, **changes: Any) -> Feedback:
    """Outcomes in no order of time, several at once."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        "contexts": np.zeros((n, 0)),
        "arms": rng.normal(size=(n, 2)),
        "rewards": rng.random(n),
        "times": rng.integers(n // 2, size=n).astype(float),
    }
    return Feedback(**(columns | changes))


def sight(history: Feedback, held: Any = range(0, 60, 3), *, importance: bool = True) -> Sight:
    return Sight.of(arms_only, history, np.asarray(held, dtype=np.int64), importance=importance)


def brute_force(
    history: Feedback, known: Any, asked: Any, *, half_life: float | None, importance: bool
) -> Estimate:
    """Eq. 3 and 5 over the known rows, with evidence that halves in every half-life."""
    times = np.asarray(history.times)
    now = max(float(times[asked].mean()), float(times[known].max(initial=-np.inf)))
    g = np.ones(len(history)) if half_life is None else np.exp2((times - now) / half_life)
    points, g = history.arms[known], g[known]
    kappa = iwkr.rbf(history.arms[asked], points, BANDWIDTH) * g
    w = 1 / (iwkr.rbf(points, points, BANDWIDTH) @ g) if importance else np.ones(len(g))
    return Estimate(mass=iwkr.mass(kappa), mean=iwkr.iwkr(kappa, w, history.rewards[known]))


@pytest.mark.parametrize("importance", [True, False])
@given(held=st.lists(st.integers(0, 59), min_size=1, max_size=40, unique=True))
def test_held_rows_are_estimated_from_the_others_alone(importance: bool, held: list[int]) -> None:
    history, others = outcomes(), np.setdiff1d(np.arange(60), held)
    found = sight(history, held, importance=importance).estimate(BANDWIDTH, most=1000)
    memory = ReferenceSet(dim=2, bandwidth=BANDWIDTH, importance=importance)
    memory.append(history.arms[others], history.rewards[others])
    expected = memory.estimate(history.arms[held])
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    # As much evidence as decisions begin with: all rows.
    np.testing.assert_allclose(found.mass, expected.mass * 60 / len(others), rtol=1e-12)


@pytest.mark.parametrize("half_life", [None, 5.0])
def test_the_rewards_of_held_rows_move_no_estimate(half_life: float | None) -> None:
    history, held = outcomes(), np.arange(0, 60, 3)
    rewards = history.rewards.copy()
    rewards[held] = 1 - rewards[held]
    one, two = (sight(h, held) for h in (history, outcomes(rewards=rewards)))
    pairs = [
        (one.estimate(BANDWIDTH, most=1000), two.estimate(BANDWIDTH, most=1000)),
        (one.late().replay(BANDWIDTH, half_life), two.late().replay(BANDWIDTH, half_life)),
    ]
    for first, second in pairs:
        np.testing.assert_array_equal(first.mean, second.mean)
        np.testing.assert_array_equal(first.mass, second.mass)


@pytest.mark.parametrize("most", [1, 7, 39, 40, 41])
def test_fewer_references_say_how_much_all_rows_would_weigh(most: int) -> None:
    same = outcomes(arms=np.zeros((60, 2)))
    before = sight(same).estimate(BANDWIDTH, most=most)
    np.testing.assert_allclose(before.mass, 60.0, rtol=1e-6)  # 60 rows, all at one place
    used = 0
    for row in range(60):
        rewards = same.rewards.copy()
        rewards[row] = 1 - rewards[row]
        after = sight(outcomes(arms=same.arms, rewards=rewards)).estimate(BANDWIDTH, most=most)
        used += not np.array_equal(before.mean, after.mean)
    assert min(most, 40) / 2 <= used <= most  # of the 40 that are not held


def test_only_so_many_held_rows_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "QUERIES", 5)
    held = [9, 3, 27, 0, 12, 18, 30]
    some = sight(outcomes(), held)
    np.testing.assert_array_equal(some.asked, held[:5])
    np.testing.assert_array_equal(some.seen, np.setdiff1d(np.arange(60), held))


@given(seed=st.integers(0, 200), n=st.integers(4, 80))
def test_late_asks_only_for_the_newer_half_and_in_order(seed: int, n: int) -> None:
    history = outcomes(n, seed=seed)
    held = np.random.default_rng(seed).permutation(n)[: n // 3]
    late, times = sight(history, held).late(), np.asarray(history.times)
    seen = np.setdiff1d(np.arange(n), held)
    new = [row for row in held if (times[seen] <= times[row]).sum() > len(seen) // 2]
    assert sorted(late.asked) == sorted(new)
    np.testing.assert_array_equal(np.sort(late.seen), seen)
    for rows in (late.asked, late.seen):
        assert (np.diff(times[rows]) >= 0).all()


def test_late_looks_at_the_newest_rows_of_a_long_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "NEWEST", 20)
    order = np.random.default_rng(5).permutation(60)
    times = order.astype(float)
    late = sight(outcomes(times=times), np.flatnonzero(order % 2)).late()
    np.testing.assert_array_equal(times[late.seen], np.arange(20, 60, 2))
    np.testing.assert_array_equal(times[late.asked], np.arange(41, 60, 2))


@pytest.mark.parametrize("half_life", [None, 5.0])
@settings(max_examples=40)
@given(seed=st.integers(0, 50), cut=st.integers(10, 29))
def test_a_replay_never_looks_ahead(half_life: float | None, seed: int, cut: int) -> None:
    history, rng = outcomes(seed=seed), np.random.default_rng(seed + 1)
    held = rng.permutation(60)[:20]
    times = np.asarray(history.times)
    now, later = times >= cut, times > cut
    other = outcomes(
        arms=np.where(later[:, None], rng.normal(size=(60, 2)), history.arms),
        rewards=np.where(now, rng.random(60), history.rewards),
        times=times,
    )
    one, two = (sight(h, held).late() for h in (history, other))
    asked_before = times[one.asked] <= cut
    for name in ("mass", "mean"):
        found = [getattr(s.replay(BANDWIDTH, half_life), name)[asked_before] for s in (one, two)]
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("importance", [True, False])
@pytest.mark.parametrize("half_life", [None, 4.0])
@pytest.mark.parametrize("blocks", [1, 10_000])
def test_a_replay_knows_what_was_seen_before_each_block(
    half_life: float | None, importance: bool, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "BLOCKS", blocks)
    history = outcomes()
    late, times = sight(history, importance=importance).late(), np.asarray(history.times)
    parts = [late.asked] if blocks == 1 else late.asked[:, None]  # all at once, or one by one
    each = []
    for part in parts:
        known = late.seen[times[late.seen] < times[part].min()]
        each.append(brute_force(history, known, part, half_life=half_life, importance=importance))
    found = late.replay(BANDWIDTH, half_life)
    assert len(late.asked) > 5
    np.testing.assert_allclose(found.mean, np.concatenate([e.mean for e in each]), rtol=1e-4)
    # Evidence as if the 20 held rows of 60 were in memory too.
    np.testing.assert_allclose(found.mass, np.concatenate([e.mass for e in each]) * 60 / 40, rtol=1e-4)


@pytest.mark.parametrize("blocks", [2, 3, 7])
def test_a_block_remembers_what_the_blocks_before_it_knew(
    blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "BLOCKS", blocks)
    history = outcomes(arms=np.zeros((60, 2)), times=np.arange(60.0))
    late = sight(history, np.arange(1, 60, 2)).late()
    known = late.replay(BANDWIDTH, None).mass  # all at one place: twice the number of even rows in memory
    starts = [block[0] for block in np.array_split(late.asked, blocks)]
    np.testing.assert_allclose(np.unique(known.round(3)), np.array(starts) + 1)


def test_a_replay_of_nothing_is_empty() -> None:
    history = outcomes(times=np.arange(60.0))
    found = sight(history, [1, 2, 3]).late().replay(BANDWIDTH, 5.0)
    assert (len(found.mass), len(found.mean)) == (0, 0)


@pytest.mark.parametrize("importance", [True, False])
@pytest.mark.parametrize("half_life", [None, 8.0])
def test_the_sharpest_posterior_is_as_wide_as_luck_makes_estimates(
    half_life: float | None, importance: bool
) -> None:
    history, rng = outcomes(), np.random.default_rng(0)
    some = sight(history, importance=importance)
    times = np.asarray(history.times)
    memory = ReferenceSet(dim=2, bandwidth=BANDWIDTH, half_life=half_life, importance=importance)
    memory.append(history.arms[some.seen], rng.random(40), times[some.seen])
    masses = memory.estimate(history.arms[some.asked]).mass
    drawn = []
    for _ in range(500):  # the same places, other luck
        memory = ReferenceSet(dim=2, bandwidth=BANDWIDTH, half_life=half_life, importance=importance)
        memory.append(history.arms[some.seen], rng.integers(2, size=40).astype(float), times[some.seen])
        drawn.append(memory.estimate(history.arms[some.asked]).mean)
    worth = 0.25 / np.var(drawn, axis=0)  # outcomes of which a plain mean would vary as much
    known = masses > held_out.LITTLE
    expected = np.median(worth[known] / masses[known])
    # A variance of 500 draws is off by 6 %; the median of so many more rarely so.
    assert some.sharpest(BANDWIDTH, half_life) == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize("importance", [True, False])
def test_at_one_place_every_outcome_counts_once(importance: bool) -> None:
    same = sight(outcomes(arms=np.zeros((60, 2))), importance=importance)
    assert same.sharpest(BANDWIDTH, None) == pytest.approx(1, rel=1e-6)


def test_rows_that_nothing_is_known_of_say_nothing_of_luck() -> None:
    history = outcomes()
    arms = history.arms.copy()
    arms[:6] += 1e3 * np.arange(1, 7)[:, None]  # far from all and from each other
    strangers = outcomes(arms=arms)
    known, held = np.arange(8, 60, 3), np.arange(6)
    away = np.concatenate([held, known])
    with_them, alone = (
        replace(sight(strangers, away), asked=asked).sharpest(BANDWIDTH, None) for asked in (away, known)
    )
    assert with_them == alone
    assert replace(sight(strangers, away), asked=held).sharpest(BANDWIDTH, None) == 1.0


def glade(history: Feedback, held: np.ndarray) -> Glade:
    seen = np.delete(np.arange(len(history)), held)
    return Glade.of(grown(history[seen], np.random.default_rng(0), trees=20), history, held)


def test_trees_estimate_held_rows_from_the_others_alone() -> None:
    history, held = outcomes(), np.arange(0, 60, 3)
    rewards = history.rewards.copy()
    rewards[held] = 1 - rewards[held]
    one, two = glade(history, held), glade(outcomes(rewards=rewards), held)
    np.testing.assert_array_equal(one.estimate().mean, two.estimate().mean)
    np.testing.assert_allclose(one.estimate().mass, one.seen.estimate(one.queries).mass * 60 / 40)
    assert one.sharpest() == two.sharpest()


def test_luck_in_leaves_is_that_of_the_outcomes_in_them() -> None:
    # Where rewards are all alike a tree is one leaf, and its mean that of all 40 outcomes.
    assert glade(outcomes(rewards=np.ones(60)), np.arange(0, 60, 3)).sharpest() == pytest.approx(1.0)
    # Leaves of one outcome each: a mean of as many as trees disagree about.
    alone = glade(outcomes(), np.arange(0, 60, 3))
    shares = alone.seen.shares(alone.queries)
    assert alone.sharpest() == pytest.approx(np.median(1 / (shares**2).sum(axis=1)))


def test_rows_are_as_near_as_trees_have_them_together() -> None:
    near = glade(outcomes(), np.arange(0, 60, 3)).near()
    assert near.shape == (20, 20)
    np.testing.assert_array_equal(near, near.T)
    np.testing.assert_allclose(near.diagonal(), 1.0)


def played(n: int = 60, *, seed: int = 0) -> Feedback:
    """Three arms, of which some pay."""
    rng = np.random.default_rng(seed)
    return Feedback(
        contexts=rng.normal(size=(n, 1)),
        arms=np.eye(3)[np.arange(n) % 3],
        rewards=rng.integers(2, size=n).astype(float),
    )


def beside(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return np.hstack([contexts, arms])


def test_what_held_rows_imply_is_asked_for_too() -> None:
    history, held = played(), np.arange(0, 60, 3)
    more = implied(history, np.random.default_rng(0))
    assert more is not None
    theirs = more.by(held, most=1000).outcomes
    plain, both = (Sight.of(beside, history, held, each, importance=True) for each in (None, more))
    np.testing.assert_array_equal(both.rewards, np.append(plain.rewards, theirs.rewards))
    np.testing.assert_array_equal(both.queries[both.real], plain.queries)
    np.testing.assert_array_equal(both.queries[~both.real], beside(theirs.contexts, theirs.arms))
    found = [some.estimate(BANDWIDTH, most=1000) for some in (plain, both)]
    np.testing.assert_array_equal(found[1].mean[both.real], found[0].mean)
    np.testing.assert_array_equal(both.near(BANDWIDTH, None), plain.near(BANDWIDTH, None))


def test_trees_know_what_others_imply_and_nothing_of_held_rows() -> None:
    history, held = played(), np.arange(0, 60, 3)
    more = implied(history, np.random.default_rng(0))
    assert more is not None
    others = more.without(held)
    grove = grown(history[np.delete(np.arange(60), held)], np.random.default_rng(0), trees=20, implied=others)
    some = Glade.of(grove, history, held, more, others)
    known = some.seen.estimate(grove(history.contexts, history.arms)).mass.sum()
    alone = (
        Glade.of(grove, history, held, more).seen.estimate(grove(history.contexts, history.arms)).mass.sum()
    )
    assert known > alone
    assert some.real.sum() == len(held) < len(some.real)
    np.testing.assert_array_equal(some.rewards[some.real], history.rewards[held])
    assert some.near().shape == (20, 20)
