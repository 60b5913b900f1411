import copy
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import C3, CheckpointError, Decay, Feedback, RandomDrop, ReferenceSet, Window
from tercet import checkpoint as checkpoints
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.unlearned import log_loss
from tercet.policies import surprises as module
from tercet.policies.surprises import DOUBT, LEAST, SMALLEST, Surprises, noticed
from tercet.policies.views import View, combined
from tercet.reference.forgetting import VANISHED
from tercet.types import Posterior
from tests.laws.policies import contents

FLIP = 100  # outcomes
ARMS = np.array([[-1.0], [0.0], [1.0]])
CONTEXT = np.array([0.3, -0.4])


def together(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return np.hstack([contexts, arms])


def world(
    n: int = 800, *, seed: int = 0, flip: int | None = FLIP, first: int = 0, **changes: Any
) -> Feedback:
    """What an arm earns depends on the context; whenever `flip` outcomes have passed, levels change sides."""
    rng = np.random.default_rng([seed, first])
    contexts, arms, times = (
        rng.uniform(-1, 1, size=(n, 2)),
        ARMS[rng.integers(3, size=n)],
        first + np.arange(n),
    )
    level = np.where(arms[:, 0] < 0, -0.3, 0.3) * (0.0 if flip is None else (-1.0) ** (times // flip))
    means = 0.5 + 0.15 * np.sign(contexts[:, 0]) * arms[:, 0] + level
    columns: dict[str, Any] = {
        "contexts": contexts,
        "arms": arms,
        "rewards": (rng.random(n) < means).astype(float),
        "times": times.astype(float),
    }
    return Feedback(**(columns | changes))


def found(history: Feedback, *, remember: bool = True) -> Surprises | None:
    view = View(embed=together, weight=1.0, bandwidth=0.7, sharpness=1.0, counts=(0.4, 0.4), pull=1.0)
    return noticed([view], history, importance=True, remember=remember, engine="auto")


def sure(history: Feedback, *, remember: bool = True) -> Surprises:
    surprises = found(history, remember=remember)
    assert surprises is not None
    return surprises


def half_life(surprises: Surprises) -> float:
    assert surprises.references.half_life is not None
    return surprises.references.half_life


def settings(surprises: Surprises) -> list[float]:
    """All but the half-life."""
    values = [getattr(surprises, field.name) for field in fields(surprises)]
    return [value for value in values if isinstance(value, float)] + surprises.embed.weights[
        0
    ].ravel().tolist()


def fitted(history: Feedback, *, remember: bool = True, **options: Any) -> C3:
    policy = C3(phi=together, bandwidth=0.7, **options)
    policy.fit(history, np.random.default_rng(0), remember=remember)
    return policy


def surprises_of(policy: C3) -> Surprises:
    assert policy.state.surprises is not None
    return policy.state.surprises


def usual(policy: C3, context: np.ndarray, arms: np.ndarray) -> Posterior:
    """What the views believe."""
    return combined(policy.state.views, [view.queries(context, arms) for view in policy.state.views], None)


def counts(beliefs: Posterior) -> np.ndarray:
    return beliefs.alpha + beliefs.beta


def corrections(
    surprises: Surprises, beliefs: Posterior, points: np.ndarray, time: float | None
) -> np.ndarray:
    return surprises.corrected(beliefs, points, time).mean - beliefs.mean


@pytest.mark.parametrize("rosy", [0.8, -0.8])
def test_what_is_always_wrong_in_the_same_way_is_no_surprise(rosy: float) -> None:
    rng, n = np.random.default_rng(1), 3_000
    logits = rng.normal(size=n)
    foretold, chances = (1 / (1 + np.exp(-logits - wrong)) for wrong in (rosy, 0.0))
    rows = Feedback(
        contexts=rng.normal(size=(n, 2)),
        arms=ARMS[rng.integers(3, size=n)],
        rewards=(rng.random(n) < chances).astype(float),
        times=np.arange(n, dtype=float),
    )
    assert module._best(rows, foretold, rows.contexts, rows.arms) is None


@pytest.fixture(scope="module")
def surprised() -> C3:
    """Not to be changed: take a copy."""
    policy = fitted(world())
    assert policy.state.surprises is not None
    return policy


@pytest.fixture(scope="module")
def committee() -> C3:
    """The same with five views, hastily trained. Not to be changed: take a copy."""
    policy = C3(dim=4, training=LeaveOneOut(epochs=1, steps=5), progress=False)
    policy.fit(world(), np.random.default_rng(0))
    assert len(policy.state.views) == 5
    assert policy.state.surprises is not None
    return policy


def asked(seed: int, policy: C3) -> tuple[Posterior, np.ndarray]:
    """Any beliefs, and places for them: some amid the surprises, some far off."""
    rng = np.random.default_rng(seed)
    mean, total = rng.random(20), rng.lognormal(sigma=2.0, size=20)
    beliefs = Posterior(mean=mean, mass=rng.random(20), alpha=total * mean, beta=total * (1 - mean))
    points = rng.normal(size=(20, surprises_of(policy).embed.dim)) * rng.choice([1.0, 30.0], size=(20, 1))
    return beliefs, points


def test_a_world_that_stays_is_no_surprise() -> None:
    histories = [world(n, seed=seed, flip=None) for n in (LEAST, 400) for seed in range(8)]
    # One in 160 is surprising by chance, and several half-lives and scales are tried.
    assert sum(found(history) is not None for history in histories) <= 1


@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
def test_equal_rewards_are_no_surprise(reward: float) -> None:
    assert found(world(rewards=np.full(800, reward))) is None


def gains(seed: int) -> np.ndarray:
    """How much better later outcomes are foretold than by the views alone."""
    policy, later = fitted(world(seed=seed)), world(300, seed=seed, first=800)
    assert half_life(surprises_of(policy)) <= 2 * FLIP
    foretold = np.empty((2, len(later)))
    for i in range(len(later)):
        now = later[i : i + 1]
        assert now.times is not None
        foretold[0, i] = usual(policy, now.contexts[0], now.arms).mean[0]
        foretold[1, i] = policy.beliefs(now.contexts[0], now.arms, time=now.times[0]).mean[0]
        policy.update(now, np.random.default_rng(0))
    alone, corrected = (log_loss(means, later.rewards) for means in foretold)
    return alone - corrected


def test_a_level_that_flips_is_noticed_and_what_comes_then_is_foretold_better() -> None:
    gain = np.concatenate([gains(seed) for seed in range(3)])
    assert gain.mean() > 3 * gain.std() / len(gain) ** 0.5


def test_fewer_outcomes_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    history = world(400)
    for least, tells in ((400, True), (401, False)):
        monkeypatch.setattr(module, "LEAST", least)
        assert (found(history) is not None) == tells


def test_without_times_or_in_one_moment_nothing_is_noticed() -> None:
    history = world()
    timeless = Feedback(contexts=history.contexts, arms=history.arms, rewards=history.rewards)
    assert found(history) is not None
    assert found(timeless) is None
    assert found(world(times=np.full(800, 3.0))) is None


@pytest.mark.parametrize("rule", [None, Decay(half_life=50.0), Window(count=300), RandomDrop()])
def test_who_decides_how_to_forget_has_no_surprises(rule: Any) -> None:
    policy = fitted(world(), forgetting=rule)
    assert policy.state.surprises is None
    policy.update(world(3, first=800), np.random.default_rng(0))
    assert policy.state.surprises is None


def test_the_order_of_rows_does_not_matter() -> None:
    history = world()
    one, two = sure(history), sure(history[np.random.default_rng(1).permutation(800)])
    assert half_life(two) == pytest.approx(half_life(one))
    np.testing.assert_allclose(settings(two), settings(one), rtol=1e-4)
    points = one.queries(CONTEXT, ARMS)
    found, expected = (each.references.estimate(points) for each in (two, one))
    np.testing.assert_allclose(found.mass, expected.mass, rtol=1e-3)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-3)


@pytest.mark.parametrize(("unit", "start"), [(1000.0, 0.0), (1.0, 5e6), (60.0, 1.7e9), (1 / 3600, -40.0)])
def test_a_half_life_comes_in_the_users_unit_of_time(unit: float, start: float) -> None:
    history = world()
    assert history.times is not None
    one, two = sure(history), sure(world(times=start + unit * history.times))
    assert half_life(two) == pytest.approx(unit * half_life(one), rel=1e-6)
    np.testing.assert_allclose(settings(two), settings(one), rtol=1e-4)
    points = one.queries(CONTEXT, ARMS)
    for now in (799.0, 850.0):
        found, expected = (
            two.references.estimate(points, start + unit * now),
            one.references.estimate(points, now),
        )
        np.testing.assert_allclose(found.mass, expected.mass, rtol=1e-3)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-3)


def test_only_the_newest_outcomes_of_a_history_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT", 300)
    surprises, history = sure(world()), world()
    assert history.times is not None
    np.testing.assert_array_equal(np.sort(surprises.references.times), history.times[-300:])
    # A world that has come to rest is no surprise.
    rewards = np.append(world(1600).rewards[:800], world(1600, flip=None).rewards[800:])
    assert found(world(1600, rewards=rewards)) is None
    # What was before tells what is usual.
    rewards = np.append(world().rewards[:500][::-1], world().rewards[500:])
    other = sure(world(rewards=rewards)).references
    np.testing.assert_array_equal(other.times, surprises.references.times)
    assert not np.allclose(other.rewards, surprises.references.rewards, atol=1e-3)


ODD: dict[str, dict[str, Any]] = {
    "two moments": {"times": np.repeat([0.0, 1.0], 200)},
    "a pause of ages": {"times": np.append(np.arange(399.0), 1e12)},
    "times ever farther apart": {"times": np.exp(np.linspace(0, 60, 400))},
    "whole nanoseconds": {"times": 1_700_000_000_000_000_000 + np.arange(400) * 60_000_000_000},
    "backwards": {"times": np.arange(400.0)[::-1]},
    "constant features": {"contexts": np.ones((400, 2)), "arms": np.zeros((400, 1))},
    "no context": {"contexts": np.empty((400, 0))},
    "equal rewards": {"rewards": np.ones(400)},
    "shares as rewards": {"rewards": np.random.default_rng(0).random(400)},
    "many columns": {"contexts": np.random.default_rng(0).normal(size=(400, 40))},
}


@pytest.mark.parametrize("name", ODD)
def test_whatever_the_history_beliefs_are_finite_and_go_on_learning(name: str) -> None:
    history, rng = world(400, **ODD[name]), np.random.default_rng(0)
    policy = fitted(history)
    assert history.times is not None
    now = float(history.times.max())
    for _ in range(5):
        choice = policy.choose(history.contexts[0], history.arms[:2], rng, time=now)
        assert choice.posterior is not None
        for values in (choice.posterior.mean, choice.posterior.alpha, choice.posterior.beta):
            assert np.isfinite(values).all()
            assert (values >= 0).all()
        assert (choice.posterior.mean <= 1).all()
        assert choice.propensities.sum() == pytest.approx(1)
        arm = history.arms[choice.arm]
        policy.update(Feedback.one(context=history.contexts[0], arm=arm, reward=0.0, time=now), rng)


@given(seed=st.integers(0, 1000))
def test_a_correction_leaves_some_of_every_chance(surprised: C3, seed: int) -> None:
    beliefs, points = asked(seed, surprised)
    corrected = surprises_of(surprised).corrected(beliefs, points, None)
    assert (corrected.mean >= SMALLEST * beliefs.mean - 1e-12).all()
    assert (1 - corrected.mean >= SMALLEST * (1 - beliefs.mean) - 1e-12).all()
    np.testing.assert_allclose(corrected.alpha, counts(corrected) * corrected.mean, rtol=1e-12)
    np.testing.assert_array_equal(corrected.mass, beliefs.mass)


@given(seed=st.integers(0, 1000))
def test_two_errors_add_up(surprised: C3, seed: int) -> None:
    """That of what is usual, and that of how it differs: no corrected belief is surer than either."""
    surprises, (beliefs, points) = surprises_of(surprised), asked(seed, surprised)
    mass = surprises.references.estimate(points).mass
    total = counts(surprises.corrected(beliefs, points, None))
    late = DOUBT / (1 / total - 1 / counts(beliefs)) - surprises.counts
    assert (late >= -1e-6).all()
    assert (late <= np.minimum(mass, (2 - surprises.rate) / surprises.rate) + 1e-6).all()
    assert (total <= counts(beliefs)).all()


def test_where_no_surprise_is_near_the_views_mean_stays(surprised: C3) -> None:
    surprises, (beliefs, points) = surprises_of(surprised), asked(0, surprised)
    nowhere = replace(surprises, references=empty(surprises))
    for each, where in ((surprises, points + 1e4), (nowhere, points)):
        corrected = each.corrected(beliefs, where, None)
        np.testing.assert_allclose(corrected.mean, beliefs.mean, rtol=1e-12)
        harmonic = 1 / (1 / counts(beliefs) + DOUBT / surprises.counts)
        np.testing.assert_allclose(counts(corrected), harmonic, rtol=1e-12)


def believed(mean: float) -> Posterior:
    """One outcome's worth of it, for one arm."""
    return Posterior(
        mean=np.array([mean]), mass=np.ones(1), alpha=np.array([mean]), beta=np.array([1 - mean])
    )


def empty(surprises: Surprises) -> ReferenceSet:
    return ReferenceSet(
        dim=surprises.embed.dim, bandwidth=1.0, half_life=half_life(surprises), importance=False
    )


def shared_changes(rng: np.random.Generator, places: np.ndarray, changing: np.ndarray) -> float:
    """What is found where halves were foretold, but chances were high, and then low, at the changing places."""
    times = np.arange(float(len(places)))
    chance = np.where(changing, np.where(times < len(times) / 2, 0.95, 0.05), 0.5)
    rewards = (rng.random(len(times)) < chance).astype(float)
    return module._shared(places[:, None], times, rewards, np.full(len(times), 0.5), half_life=100.0)


def test_changes_at_rare_places_count_as_much_as_none_at_common_ones() -> None:
    """Where few have been few surprises are near: how sure to be there must not be learned elsewhere."""
    rng = np.random.default_rng(0)
    rare = rng.random(2000) < 0.15
    there = 0.45**2 / 0.25  # of the variance of an outcome, at the rare place
    assert 0.3 * there < shared_changes(rng, 10.0 * rare, rare) < 0.7 * there


@pytest.mark.parametrize("changing", [True, False])
def test_a_few_lonely_outcomes_do_not_tell_how_much_changes(changing: bool) -> None:
    """Two of them, each other's only neighbour, weigh as much as a whole place."""
    rng = np.random.default_rng(0)
    places, usual = np.where(rng.random(2000) < 0.3, 10.0, 0.0), np.ones(2000, dtype=bool)
    expected = shared_changes(np.random.default_rng(1), places, usual & changing)
    for lonely in rng.choice(1999, size=8, replace=False):
        places[lonely : lonely + 2] = 100.0 + lonely
    found = shared_changes(np.random.default_rng(1), places, usual & changing)
    assert abs(found - expected) < 0.1


def test_more_surprises_nearby_make_surer(surprised: C3) -> None:
    surprises, (beliefs, points) = copy.deepcopy(surprises_of(surprised)), asked(1, surprised)
    memory = surprises.references
    near = memory.estimate(points).mass > 1e-6
    assert near.any()
    before = counts(surprises.corrected(beliefs, points, None))
    memory.append(memory.points, memory.rewards, memory.times)
    after = counts(surprises.corrected(beliefs, points, None))
    assert (after[near] > before[near]).all()
    assert (after >= before).all()


@given(seed=st.integers(0, 1000))
def test_a_correction_fades_while_nothing_comes(surprised: C3, seed: int) -> None:
    surprises, (beliefs, points) = surprises_of(surprised), asked(seed, surprised)
    ages = np.array([0.0, 0.5, 1.0, 3.0, 10.0, 80.0, 1e6])
    moved = np.abs(
        [corrections(surprises, beliefs, points, 799.0 + age * half_life(surprises)) for age in ages]
    )
    assert (np.diff(moved, axis=0) <= 1e-12).all()
    assert moved[0].max() > 1e-3
    np.testing.assert_allclose(moved[-2:], 0.0, atol=1e-12)


def test_a_clock_that_runs_behind_makes_no_surprise_greater(surprised: C3) -> None:
    beliefs, points = asked(2, surprised)
    behind, now = (corrections(surprises_of(surprised), beliefs, points, time) for time in (-500.0, None))
    np.testing.assert_array_equal(behind, now)


@pytest.mark.parametrize("reward", [0.0, 0.4, 1.0])
def test_a_surprise_is_measured_before_its_outcome_is_remembered(surprised: C3, reward: float) -> None:
    policy = copy.deepcopy(surprised)
    foretold, lasting = (
        beliefs.mean[0]
        for beliefs in (policy.beliefs(CONTEXT, ARMS[:1], time=800.0), usual(policy, CONTEXT, ARMS[:1]))
    )
    policy.update(
        Feedback.one(context=CONTEXT, arm=ARMS[0], reward=reward, time=800.0), np.random.default_rng(0)
    )
    memory = surprises_of(policy).references
    (newest,) = memory.rewards[memory.times == 800.0]
    assert 2 * newest - 1 == pytest.approx(reward - foretold, abs=1e-6)
    assert usual(policy, CONTEXT, ARMS[:1]).mean[0] != lasting


def test_a_replay_of_the_history_foretells_what_learning_it_would_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BLOCKS", 1000)  # one row at a time
    surprises, history = sure(world(300)), world(300)
    again = replace(surprises, references=empty(surprises))
    points = surprises.embed(history.contexts, history.arms)
    view = View(embed=together, weight=1.0, bandwidth=0.7, sharpness=1.0, counts=(0.4, 0.4), pull=1.0)
    means = module._foretold([view], history, len(history), importance=True)
    for i, mean in enumerate(means):
        beliefs = believed(mean)
        again.learn(points[i : i + 1], history[i : i + 1], beliefs)
    np.testing.assert_allclose(again.references.rewards, surprises.references.rewards, atol=1e-5)


def test_a_good_surprise_lifts_and_a_bad_one_lowers_what_is_near(surprised: C3) -> None:
    after = {}
    for reward in (0.0, 1.0):
        policy = copy.deepcopy(surprised)
        for step in range(10):
            outcome = Feedback.one(context=CONTEXT, arm=ARMS[0], reward=reward, time=800.0 + step)
            policy.update(outcome, np.random.default_rng(0))
        beliefs = policy.beliefs(CONTEXT, ARMS[:1], time=810.0)
        after[reward] = beliefs.mean[0] - usual(policy, CONTEXT, ARMS[:1]).mean[0]
    assert after[0.0] < after[1.0]


@pytest.mark.parametrize("n", [2, 5, 40])
def test_a_batch_leaves_the_same_policy_as_its_outcomes_one_by_one(
    surprised: C3, n: int, tmp_path: Path
) -> None:
    batch, single = (copy.deepcopy(surprised) for _ in range(2))
    later, rng = world(n, first=800), np.random.default_rng(0)
    batch.update(later, rng)
    for i in range(n):
        single.update(later[i : i + 1], rng)
    assert contents(tmp_path / "a", batch) == contents(tmp_path / "b", single)


@pytest.mark.parametrize("name", ["surprised", "committee"])
def test_a_saved_policy_goes_on_the_same(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    policy: C3 = copy.deepcopy(request.getfixturevalue(name))
    policy.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3", phi=policy.phi)
    for step in range(3):
        later, rng = world(3, first=800 + 3 * step), np.random.default_rng(0)
        one, two = (each.beliefs(CONTEXT, ARMS, time=801.0 + 3 * step) for each in (policy, again))
        for part in ("mean", "mass", "alpha", "beta"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part))
        for each in (policy, again):
            each.update(later, rng)
    assert contents(tmp_path / "a", policy) == contents(tmp_path / "b", again)


def test_a_policy_without_surprises_comes_back_without(tmp_path: Path) -> None:
    fitted(world(flip=None)).save(tmp_path / "c3")
    assert C3.load(tmp_path / "c3", phi=together).state.surprises is None


Damage = Callable[[dict[str, Any], dict[str, Any]], Any]


def less(arrays: dict[str, Any], start: str) -> dict[str, Any]:
    return {name: array for name, array in arrays.items() if not name.startswith(start)}


def fading(spec: dict[str, Any], half_life: Any) -> dict[str, Any]:
    return {"references": spec["references"] | {"half_life": half_life}}


DAMAGES: dict[str, tuple[str, Damage]] = {
    "no half-life": ("surprises must fade", lambda a, s: (a, fading(s, None))),
    "a half-life below 0": ("half_life must be", lambda a, s: (a, fading(s, -1.0))),
    "no references": ("high|reward|density", lambda a, s: (less(a, "surprises.references."), {})),
    "a short column": (
        "equally long",
        lambda a, s: (a | {"surprises.references.time": a["surprises.references.time"][1:]}, {}),
    ),
    "no phi": ("lacks the arrays", lambda a, s: (less(a, "surprises.phi."), {})),
    "a phi of another kind": ("kind", lambda a, s: (a, {"phi": s["phi"] | {"kind": "residual"}})),
}


def damaged(surprised: C3, path: Path, damage: Damage) -> None:
    surprised.save(path)
    arrays, spec = checkpoints.read(path, "tercet.C3")
    arrays, changes = damage(arrays, spec["surprises"])
    checkpoints.write(path, "tercet.C3", arrays, spec | {"surprises": spec["surprises"] | changes})


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_surprises_are_refused(surprised: C3, name: str, tmp_path: Path) -> None:
    message, damage = DAMAGES[name]
    damaged(surprised, tmp_path / "c3", damage)
    with pytest.raises(CheckpointError, match=f"can not be loaded as a C3 policy: .*({message})"):
        C3.load(tmp_path / "c3", phi=together)


NUMBERS = [field.name for field in fields(Surprises) if field.type is float]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [-1.0, 0.0, "many", None])
def test_senseless_numbers_are_refused(surprised: C3, name: str, value: Any, tmp_path: Path) -> None:
    damaged(surprised, tmp_path / "c3", lambda arrays, _: (arrays, {name: value}))
    with pytest.raises(CheckpointError, match=f"(?s)can not be loaded as a C3 policy: .*{name}"):
        C3.load(tmp_path / "c3", phi=together)


def test_who_does_not_remember_the_history_still_learns_from_it_how_to_be_surprised() -> None:
    kept, fresh = sure(world()), sure(world(), remember=False)
    assert (half_life(fresh), settings(fresh)) == (half_life(kept), settings(kept))
    assert (len(fresh.references), len(kept.references) > 0) == (0, True)


def test_surprises_begin_with_the_first_outcome_of_an_empty_memory() -> None:
    policy, rng = fitted(world(), remember=False), np.random.default_rng(0)
    beliefs = policy.beliefs(CONTEXT, ARMS, time=800.0)
    np.testing.assert_allclose(beliefs.mean, usual(policy, CONTEXT, ARMS).mean)
    policy.update(world(5, first=800), rng)
    assert len(surprises_of(policy).references) == len(policy) == 5


def test_times_go_with_surprises_from_the_start(tmp_path: Path) -> None:
    policy, later = fitted(world(), remember=False), world(3)
    before = contents(tmp_path / "a", policy)
    timeless = Feedback(contexts=later.contexts, arms=later.arms, rewards=later.rewards)
    with pytest.raises(ValueError, match="times must come with every outcome"):
        policy.update(timeless, np.random.default_rng(0))
    assert contents(tmp_path / "a", policy) == before


def test_faded_surprises_leave_memory(surprised: C3) -> None:
    policy, rng = copy.deepcopy(surprised), np.random.default_rng(0)
    memory, step = surprises_of(policy).references, half_life(surprises_of(policy))
    for number in range(1, 2 * VANISHED):
        time = 799.0 + number * step
        policy.update(Feedback.one(context=CONTEXT, arm=ARMS[0], reward=1.0, time=time), rng)
        assert memory.times.min() >= time - VANISHED * step
    assert len(memory) <= VANISHED + 1
    assert len(policy) == 800 + 2 * VANISHED - 1  # what lasts is kept


def unchanged(policy: C3, path: Path, before: bytes) -> bool:
    return contents(path, policy) == before


def test_a_batch_with_one_bad_outcome_leaves_no_surprise(surprised: C3, tmp_path: Path) -> None:
    policy, later = copy.deepcopy(surprised), world(4, first=800)
    before = contents(tmp_path / "a", policy)
    monstrous = later.contexts.copy()
    monstrous[2, 0] = 1e38
    wide = np.zeros((4, 3))
    for message, changes in (
        ("points must lie within", {"contexts": monstrous}),
        ("features, as before", {"contexts": wide}),
    ):
        with pytest.raises(ValueError, match=message):
            policy.update(world(4, first=800, **changes), np.random.default_rng(0))
        assert unchanged(policy, tmp_path / "b", before)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite"):
            policy.update(world(4, first=800, contexts=np.full((4, 2), bad)), np.random.default_rng(0))
    assert unchanged(policy, tmp_path / "b", before)


def test_a_phi_that_fails_on_the_last_outcome_leaves_no_surprise(surprised: C3, tmp_path: Path) -> None:
    policy, later = copy.deepcopy(surprised), world(4, first=800)
    before = contents(tmp_path / "a", policy)
    (view,) = policy.state.views
    view.embed = lambda contexts, arms: together(contexts, arms) * np.array([[1], [1], [1], [np.nan]])
    with pytest.raises(ValueError, match="phi's result must be finite"):
        policy.update(later, np.random.default_rng(0))
    view.embed = together
    assert unchanged(policy, tmp_path / "b", before)


@pytest.mark.parametrize(
    "options",
    [{}, {"draws": "coupled"}, {"explore": "greedy"}, {"floor": 0.2}, {"importance": False}],
)
@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_every_way_to_choose_uses_what_is_corrected(options: dict[str, Any], engine: Any) -> None:
    policy, rng = fitted(world(), engine=engine, **options), np.random.default_rng(0)
    expected = surprises_of(policy).corrected(
        usual(policy, CONTEXT, ARMS), surprises_of(policy).queries(CONTEXT, ARMS), 805.0
    )
    for _ in range(5):
        choice = policy.choose(CONTEXT, ARMS, rng, time=805.0)
        assert choice.propensities.sum() == pytest.approx(1)
        assert choice.propensities.min() >= 0
        assert choice.posterior is not None
        np.testing.assert_array_equal(choice.posterior.mean, expected.mean)
        np.testing.assert_array_equal(choice.posterior.alpha, expected.alpha)
        if policy.explore == "greedy":
            assert choice.arm == np.argmax(expected.mean)


def test_choosing_changes_nothing(surprised: C3, tmp_path: Path) -> None:
    policy = copy.deepcopy(surprised)
    before = contents(tmp_path / "a", policy)
    policy.choose(CONTEXT, ARMS, np.random.default_rng(0), time=1e9)
    assert unchanged(policy, tmp_path / "b", before)
