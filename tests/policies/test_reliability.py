from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import C3, CheckpointError, Feedback
from tercet import checkpoint as checkpoints
from tercet.metrics import calibration_error
from tercet.policies.reliability import FLATTEST, Reliability, _unlikely, filtered, likeliest
from tercet.types import Posterior
from tests.policies.test_surprises import together, world

ARMS = np.array([[-1.0], [0.0], [1.0]])
means = st.floats(0, 1)
outcomes = st.lists(st.tuples(means, means), max_size=60)


def after(seen: list[tuple[float, float]]) -> Reliability:
    curve = Reliability()
    for foretold, reward in seen:
        curve = curve.learned(foretold, reward)
    return curve


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@given(outcomes, st.lists(means, min_size=2, max_size=8))
def test_no_arm_overtakes_another_and_means_stay_chances(
    seen: list[tuple[float, float]], asked: list[float]
) -> None:
    curve = after(seen)
    assert curve.slope >= FLATTEST
    moved = curve.mean(np.sort(asked))
    assert np.isfinite(moved).all()
    assert (np.diff(moved) >= 0).all()
    assert ((moved >= 0) & (moved <= 1)).all()


@pytest.mark.parametrize("seen", [[(0.9, 0.0)] * 20, [(0.2, 1.0)] * 20])
def test_arms_that_hardly_ever_or_nearly_always_pay_keep_their_order(seen: list[tuple[float, float]]) -> None:
    rare = np.array([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
    moved = after(seen).mean(np.concatenate([rare, 1 - rare[::-1]]))
    assert (np.diff(moved) > 0).all()


@given(means)
def test_nothing_is_moved_before_the_first_outcome(mean: float) -> None:
    assert Reliability().mean(mean) == pytest.approx(mean, abs=1e-9)


def test_the_evidence_stays_as_strong() -> None:
    beliefs = Posterior(
        mean=np.array([0.2, 0.7]),
        mass=np.array([3.0, 1.0]),
        alpha=np.array([2.0, 7.0]),
        beta=np.array([8.0, 3.0]),
    )
    moved = after([(0.7, 0.0)] * 5).corrected(beliefs)
    assert moved.mean[1] < 0.7
    assert moved.alpha + moved.beta == pytest.approx(10.0)
    assert moved.alpha / (moved.alpha + moved.beta) == pytest.approx(moved.mean)
    assert (moved.mass == beliefs.mass).all()


@pytest.mark.parametrize(("offset", "slope"), [(0.0, 1.0), (-0.7, 1.0), (0.4, 1.4), (-0.5, 0.7)])
def test_it_finds_what_outcomes_follow(offset: float, slope: float) -> None:
    rng, places = np.random.default_rng(3), np.linspace(-1, 2, 7)
    foretold, truth = sigmoid(places), sigmoid(offset + slope * places)
    found = []
    for _ in range(20):
        curve = Reliability()
        for place in rng.normal(0.5, 1.0, size=600):
            paid = rng.random() < sigmoid(offset + slope * place)
            curve = curve.learned(float(sigmoid(place)), float(paid))
        found.append(curve.mean(foretold))
    assert np.mean(found, axis=0) == pytest.approx(truth, abs=0.04)


def test_what_outcomes_do_not_tell_stays_as_it_was() -> None:
    rng = np.random.default_rng(7)
    curve = Reliability()
    for paid in rng.random(5_000) < 0.9:  # always the same is foretold: it says nothing of a slope
        curve = curve.learned(0.9, float(paid))
    assert curve.mean(0.2) == pytest.approx(0.2, abs=0.03)


def test_it_follows_when_the_curve_changes() -> None:
    rng = np.random.default_rng(5)
    curve = Reliability()
    for chance in np.repeat([0.3, 0.9], 1_500):
        curve = curve.learned(0.6, float(rng.random() < chance))
    assert curve.mean(0.6) == pytest.approx(0.9, abs=0.08)


def test_filtered_means_know_only_what_came_before() -> None:
    rng = np.random.default_rng(2)
    foretold, rewards = rng.random(30), rng.integers(2, size=30).astype(float)
    curve, expected = Reliability(), []
    for mean, reward in zip(foretold, rewards, strict=True):
        expected.append(curve.mean(mean))
        curve = curve.learned(mean, reward)
    np.testing.assert_array_equal(filtered(foretold, rewards), expected)


def plays(policy: C3, *, chance: float, steps: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """What was foretold of the arms that were played, and what they earned: each pays with this chance."""
    rng, foretold, rewards = np.random.default_rng(1), [], []
    for context in rng.uniform(-1, 1, size=(steps, 2)):
        choice = policy.choose(context, ARMS, rng)
        reward = float(rng.random() < chance)
        foretold.append(choice.means[choice.arm])
        rewards.append(reward)
        policy.update(Feedback.one(context=context, arm=ARMS[choice.arm], reward=reward), rng)
    return np.asarray(rewards), np.asarray(foretold)


def rosy(n: int = 1_500) -> Feedback:
    """Outcomes of someone who knew when an arm would pay."""
    rng = np.random.default_rng(0)
    return Feedback(
        contexts=rng.uniform(-1, 1, size=(n, 2)),
        arms=ARMS[rng.integers(3, size=n)],
        rewards=(rng.random(n) < 0.9).astype(float),
    )


def known(**changes: Any) -> C3:
    policy = C3(phi=together, bandwidth=0.5, progress=False, **changes)
    policy.fit(rosy(), np.random.default_rng(0))
    return policy


def test_what_a_rosy_log_promised_is_mended_by_own_outcomes() -> None:
    promised, mended = (
        calibration_error(*plays(known(recalibrate=wanted), chance=0.6)) for wanted in (False, True)
    )
    assert mended < 0.5 * promised


def test_the_best_mean_stays_the_best() -> None:
    policy, context = known(), [0.2, 0.3]
    plays(policy, chance=0.5, steps=50)
    moved = policy.beliefs(context, ARMS).mean
    policy.state.reliability = None
    plain = policy.beliefs(context, ARMS).mean
    assert (moved < plain).all()
    assert (np.argsort(moved) == np.argsort(plain)).all()


def test_many_outcomes_at_once_are_learned_as_one_by_one() -> None:
    rng = np.random.default_rng(6)
    rows = rosy(40)
    at_once, apart = known(), known()
    at_once.update(rows, rng)
    for i in range(len(rows)):
        apart.update(rows[i : i + 1], rng)
    assert at_once.state.reliability == apart.state.reliability


def test_neither_the_paper_nor_a_world_of_surprises_needs_a_curve() -> None:
    rng = np.random.default_rng(0)
    paper, surprised = C3.paper(phi=together, progress=False), C3(phi=together, bandwidth=0.7, progress=False)
    paper.fit(rosy(300), rng)
    surprised.fit(world(), rng)
    assert surprised.state.surprises is not None
    assert (paper.state.reliability, surprised.state.reliability) == (None, None)


def test_a_saved_policy_goes_on_with_its_curve(tmp_path: Path) -> None:
    policy = known()
    plays(policy, chance=0.5, steps=30)
    policy.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3", phi=policy.phi)
    assert again.state.reliability == policy.state.reliability


@pytest.mark.parametrize(
    "wrong",
    [
        {"slope": -1.0},
        {"offset": None},
        {"precision": [1.0, 3.0, 1.0]},
        {"precision": [1.0, 0.0]},
    ],
)
def test_a_curve_that_no_outcomes_make_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    policy = known()
    policy.save(tmp_path / "c3")
    arrays, spec = checkpoints.read(tmp_path / "c3", "tercet.C3")
    spec["reliability"] |= wrong
    checkpoints.write(tmp_path / "c3", "tercet.C3", arrays, spec)
    with pytest.raises(CheckpointError, match="can not be loaded"):
        C3.load(tmp_path / "c3", phi=policy.phi)


def test_a_refused_batch_leaves_the_curve_as_it_was() -> None:
    policy = known()
    before = policy.state.reliability
    rows = rosy(5)
    with pytest.raises(ValueError, match="features"):
        policy.update(replace(rows, arms=np.ones((5, 2))), np.random.default_rng(0))
    assert policy.state.reliability == before


@given(seed=st.integers(0, 100), offset=st.floats(-1, 1), slope=st.floats(0.5, 2))
def test_the_likeliest_curve_is_found(seed: int, offset: float, slope: float) -> None:
    rng = np.random.default_rng(seed)
    foretold = rng.uniform(0.02, 0.98, size=20_000)
    rewards = Reliability(offset=offset, slope=slope).mean(foretold)  # graded, and without luck
    found = likeliest(foretold, rewards)
    assert (found.offset, found.slope) == pytest.approx((offset, slope), abs=0.02)


@given(outcomes)
def test_the_likeliest_curve_of_few_outcomes_is_a_curve(seen: list[tuple[float, float]]) -> None:
    foretold, rewards = np.reshape(seen, (-1, 2)).T
    curve = likeliest(foretold, rewards)
    assert np.isfinite([curve.offset, curve.slope, *curve.precision]).all()
    assert curve.slope >= FLATTEST


@given(foretold=st.floats(0.001, 0.999), paid=st.integers(0, 200))
def test_however_wrong_means_were_their_curve_is_no_less_likely_than_none(foretold: float, paid: int) -> None:
    said, rewards = np.full(200, foretold), (np.arange(200) < paid).astype(float)
    assert _unlikely(likeliest(said, rewards), said, rewards) <= _unlikely(Reliability(), said, rewards)
