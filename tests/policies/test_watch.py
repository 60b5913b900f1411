"""Drift that begins after fit: what is foretold of outcomes is watched, and corrected once it is surely wrong."""

import copy
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet import C3, CheckpointError, Decay, Feedback, checkpoint
from tercet.policies import watch as module
from tercet.policies.surprises import among
from tercet.policies.watch import EVERY, LATELY, LEAST, NEWEST, SOONER, Watch
from tests.laws.policies import contents
from tests.policies.test_surprises import ARMS, CONTEXT, FLIP, fitted, together, world

LOGGED = 800


@pytest.fixture(scope="module")
def still() -> C3:
    """A policy whose log stands still."""
    policy = fitted(world(LOGGED, flip=None))
    assert policy.state.surprises is None
    assert policy.state.watch is not None
    return policy


def told(policy: C3, feedback: Feedback) -> C3:
    policy = copy.deepcopy(policy)
    policy.update(feedback, np.random.default_rng(0))
    return policy


def watched(policy: C3) -> Watch:
    assert policy.state.watch is not None
    return policy.state.watch


def off(policy: C3, n: int, *, first: int, flip: int | None) -> float:
    """How far beliefs are from what arms earn next, on average, where levels flip."""
    rng, missed = np.random.default_rng(1), []
    for time in range(first, first + n):
        level = 0.3 * (0.0 if flip is None else (-1.0) ** (time // flip))
        arm = ARMS[rng.integers(3)]
        mean = 0.5 + 0.15 * arm[0] + (-level if arm[0] < 0 else level)
        missed.append(abs(float(policy.beliefs(CONTEXT, [arm], time=float(time)).mean[0]) - mean))
        outcome = {"context": CONTEXT, "arm": arm, "reward": float(rng.random() < mean), "time": float(time)}
        policy.update(Feedback.one(**outcome), rng)
    return float(np.mean(missed))


def test_drift_that_the_log_did_not_show_is_noticed_and_followed(still: C3) -> None:
    later = world(2 * EVERY, first=LOGGED)
    policy, unwatched = told(still, later), copy.deepcopy(still)
    unwatched.state.watch = None
    unwatched = told(unwatched, later)
    assert policy.state.surprises is not None
    assert policy.state.reliability is None
    ahead: dict[str, Any] = {"first": LOGGED + 2 * EVERY, "flip": FLIP}
    assert off(policy, 300, **ahead) < 0.8 * off(unwatched, 300, **ahead)


def test_drift_that_has_ended_is_followed_no_more(still: C3) -> None:
    policy = told(still, world(2 * EVERY, first=LOGGED))
    assert policy.state.surprises is not None
    policy = told(policy, world(NEWEST + EVERY, first=LOGGED + 2 * EVERY, flip=None))
    assert policy.state.surprises is None
    assert policy.state.reliability is not None


def test_what_is_followed_is_chosen_anew_from_look_to_look(still: C3) -> None:
    policy, followed = told(still, world(2 * EVERY + 1, first=LOGGED)), []
    for first in range(LOGGED + 2 * EVERY + 1, LOGGED + 3 * EVERY + 2):
        followed.append(policy.state.surprises)
        policy.update(world(1, first=first), np.random.default_rng(0))
    assert None not in followed
    assert len({id(each) for each in followed}) == 2  # however unlike the newest outcomes are, in between


@pytest.mark.parametrize("seed", range(3))
def test_a_world_that_stays_is_watched_on(seed: int) -> None:
    policy = fitted(world(LOGGED, flip=None, seed=seed))
    policy = told(policy, world(NEWEST + EVERY, first=LOGGED, flip=None, seed=seed))
    assert policy.state.surprises is None
    assert watched(policy).seen == NEWEST + EVERY


def test_looks_come_now_and_then() -> None:
    looks = [seen for seen in range(2 * NEWEST) if seen % EVERY == 0 and Watch(seen=seen).due()]
    assert looks == list(range(EVERY, 2 * NEWEST, EVERY))


@pytest.mark.parametrize(("share", "due"), [(0.8, True), (0.2, True), (0.5, False)])
def test_a_look_comes_sooner_where_the_newest_outcomes_are_unlike_those_before(
    share: float, due: bool
) -> None:
    n = EVERY + SOONER
    shares = np.where(np.arange(n) < n - LATELY, 0.5, share)
    rewards = (np.arange(n) % 10 < 10 * shares).astype(float)
    rows, watch = world(n, rewards=rewards), Watch()
    for i in range(n):
        watch.see(rows[i : i + 1], 0.5)
        assert not watch.due() or watch.seen % SOONER == 0
    assert watch.due() == due


@pytest.mark.parametrize("n", [1, 100, NEWEST, NEWEST + 1, 2 * NEWEST + 100])
def test_the_newest_outcomes_are_kept_in_their_order(n: int) -> None:
    rows, watch = world(n), Watch()
    for i in range(n):
        watch.see(rows[i : i + 1], i / n)
    kept, newest = watch.to_arrays(), rows[max(n - NEWEST, 0) :]
    for name in module.COLUMNS:
        np.testing.assert_array_equal(kept[name], getattr(newest, name))
    np.testing.assert_array_equal(kept["foretold"], np.arange(max(n - NEWEST, 0), n) / n)
    again = Watch.from_arrays(kept, seen=n, widths=(2, 1))
    for each in (watch, again):
        each.see(rows[:1], 0.5)
    for name, column in watch.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], column)


def test_what_is_kept_is_what_was_foretold_before_it_was_learned(still: C3) -> None:
    policy, foretold, later = copy.deepcopy(still), [], world(30, first=LOGGED)
    policy.state.reliability = None  # which moves means, and the watch looks at what the views say
    for i in range(len(later)):
        beliefs = policy.beliefs(later.contexts[i], later.arms[i : i + 1])
        foretold.append(beliefs.mean[0])
        policy.update(later[i : i + 1], np.random.default_rng(0))
    np.testing.assert_allclose(watched(policy).to_arrays()["foretold"], foretold)


@pytest.mark.parametrize("flip", [None, FLIP])
def test_a_batch_leaves_the_same_policy_as_its_outcomes_one_by_one(
    still: C3, flip: int | None, tmp_path: Path
) -> None:
    later, single = world(2 * EVERY + 40, first=LOGGED, flip=flip), copy.deepcopy(still)
    for i in range(len(later)):
        single.update(later[i : i + 1], np.random.default_rng(0))
    expected = contents(tmp_path / "single", single)
    assert contents(tmp_path / "batch", told(still, later)) == expected
    assert contents(tmp_path / "parts", told(told(still, later[:300]), later[300:])) == expected


@pytest.mark.parametrize("n", [0, 1, EVERY - 1, EVERY])
def test_a_saved_policy_watches_on(still: C3, n: int, tmp_path: Path) -> None:
    policy = told(still, world(n, first=LOGGED)) if n else still
    policy.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3", phi=together)
    later = world(2 * EVERY - n, first=LOGGED + n)
    ends = [contents(tmp_path / name, told(each, later)) for name, each in (("a", policy), ("b", again))]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("n", [NEWEST, NEWEST + 300])
def test_a_full_watch_survives_a_file(n: int, tmp_path: Path) -> None:
    policy = told(fitted(world(LOGGED, flip=None)), world(n, first=LOGGED, flip=None))
    policy.save(tmp_path / "c3")
    assert contents(tmp_path / "again", C3.load(tmp_path / "c3", phi=together)) == contents(
        tmp_path / "c3", policy
    )


def shorter(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: array[1:] if name.startswith("watch.") else array for name, array in arrays.items()}


DAMAGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "fewer": (shorter, {}),
    "one column fewer": (lambda a: a | {"watch.foretold": a["watch.foretold"][1:]}, {}),
    "other features": (lambda a: a | {"watch.contexts": a["watch.contexts"][:, :1]}, {}),
    "no chance": (lambda a: a | {"watch.foretold": a["watch.foretold"] + 1}, {}),
    "no number": (lambda a: a | {"watch.arms": a["watch.arms"] * np.nan}, {}),
    "no times": (lambda a: {name: array for name, array in a.items() if name != "watch.times"}, {}),
    "none": (lambda a: {name: array for name, array in a.items() if not name.startswith("watch")}, {}),
    "another count": (lambda a: a, {"watch": 31}),
    "a count below 0": (lambda a: a, {"watch": -1}),
    "words": (lambda a: a, {"watch": "many"}),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_watch_is_refused(still: C3, name: str, tmp_path: Path) -> None:
    told(still, world(30, first=LOGGED)).save(tmp_path / "c3")
    arrays, spec = checkpoint.read(tmp_path / "c3", "tercet.C3")
    damage, changes = DAMAGES[name]
    checkpoint.write(tmp_path / "c3", "tercet.C3", damage(arrays), spec | changes)
    with pytest.raises(CheckpointError, match="can not be loaded as a C3 policy"):
        C3.load(tmp_path / "c3", phi=together)


@pytest.mark.parametrize("rule", [None, Decay(half_life=100.0)], ids=str)
def test_who_decides_how_to_forget_is_not_watched(rule: Any) -> None:
    policy = told(fitted(world(LOGGED, flip=None), forgetting=rule), world(2 * EVERY, first=LOGGED))
    assert policy.state.watch is None
    assert policy.state.surprises is None


def test_without_times_nothing_is_watched() -> None:
    policy = fitted(world(LOGGED, flip=None, times=None))
    policy = told(policy, world(2 * EVERY, first=LOGGED, times=None))
    assert watched(policy).seen == 0
    assert policy.state.surprises is None


@pytest.mark.parametrize("usual", [0.0, 1.0])
def test_a_few_outcomes_unlike_all_others_tell_nothing(still: C3, usual: float) -> None:
    for few, noticed in ((LEAST - 1, False), (3 * LEAST, True)):
        rewards = np.full(EVERY + 1, usual)
        rewards[EVERY - few : EVERY] = 1 - usual  # all of them at once: where there are more, that is drift
        policy = told(still, world(EVERY + 1, first=LOGGED, rewards=rewards))
        assert (policy.state.surprises is not None) == noticed


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_equal_rewards_and_one_moment_tell_nothing(still: C3, reward: float) -> None:
    n = EVERY + 1  # a look comes with the next outcome
    equal = world(n, first=LOGGED, rewards=np.full(n, reward))
    same = world(n, first=LOGGED, times=np.full(n, 900.0))
    for later in (equal, same):
        assert told(still, later).state.surprises is None


def test_a_policy_that_was_never_fitted_watches_too() -> None:
    policy = C3(phi=together, bandwidth=0.7)
    policy.update(world(600, flip=None), np.random.default_rng(0))
    assert policy.state.surprises is None
    policy.update(world(NEWEST, first=600), np.random.default_rng(0))
    assert policy.state.surprises is not None


def test_a_new_fit_watches_anew(still: C3) -> None:
    policy = told(still, world(2 * EVERY, first=LOGGED))
    policy.fit(world(LOGGED, flip=None), np.random.default_rng(0))
    assert watched(policy).seen == 0


def test_ctrl_c_while_looking_waits_for_the_look(
    still: C3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = world(EVERY + 1, first=LOGGED)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return among(*arguments, **options)

    policy, expected = told(still, later[:-1]), contents(tmp_path / "a", told(still, later))
    monkeypatch.setattr(module, "among", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policy.update(later[-1:], np.random.default_rng(0))
    assert contents(tmp_path / "b", policy) == expected


def test_trees_go_on_as_they_were_after_a_look() -> None:
    rng, logged, n = np.random.default_rng(0), 1_100, 1_100 + EVERY + 1
    contexts, arms = rng.normal(size=(n, 2)), ARMS[rng.integers(3, size=n)]
    rewards = (rng.random(n) < 0.5 + 0.3 * np.sign(contexts[:, 0]) * arms[:, 0]).astype(float)
    rows = Feedback(contexts=contexts, arms=arms, rewards=rewards, times=np.arange(n, dtype=float))
    policy = C3(progress=False, trees=5)
    policy.fit(rows[:logged], np.random.default_rng(0))
    assert any(view.trees for view in policy.state.views)
    unwatched = copy.deepcopy(policy)
    unwatched.state.watch = None
    policy, unwatched = told(policy, rows[logged:]), told(unwatched, rows[logged:])
    for view, other in zip(policy.state.views, unwatched.state.views, strict=True):
        assert view.references is not None
        assert other.references is not None
        np.testing.assert_array_equal(view.references.points, other.references.points)
    one, two = (each.beliefs([0.1, 0.2], ARMS) for each in (policy, unwatched))
    np.testing.assert_array_equal(one.mean, two.mean)
