"""C3's first outcomes: a policy that begins with few of them, or none, sees better as they come."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet import C3, CheckpointError, Decay, Feedback, RandomDrop, Training, Window, checkpoint
from tercet.embedding.options import LeaveOneOut
from tercet.policies import c3_fit, early, watch
from tercet.policies.calibration import convene
from tests.laws.policies import contents

ARMS = np.eye(4)
QUICK = LeaveOneOut(epochs=1, steps=5)
RULES = ["auto", None, Window(count=11), Window(duration=9.0), Decay(half_life=3.0), RandomDrop(every=7)]


def outcomes(n: int, *, first: int = 0, scale: float = 1.0, seed: int = 0, timed: bool = True) -> Feedback:
    """Arm 1 + (x > 0) always wins."""
    rng = np.random.default_rng(seed + 100 * first + 1)
    contexts, arms = rng.normal(size=(n, 2)) * scale, rng.integers(4, size=n)
    rewards = (arms == 1 + (contexts[:, 0] > 0)).astype(float)
    times = np.arange(first, first + n, dtype=float) if timed else None
    return Feedback(contexts=contexts, arms=ARMS[arms], rewards=rewards, times=times)


def begun(n: int = 0, *, timed: bool = True, remember: bool = True, **options: Any) -> C3:
    policy = C3(progress=False, **options)
    policy.fit(outcomes(n, timed=timed), np.random.default_rng(0), remember=remember)
    return policy


def one_by_one(policy: C3, feedback: Feedback) -> None:
    for row in range(len(feedback)):
        policy.update(feedback[row : row + 1], np.random.default_rng(row))


@pytest.mark.parametrize(("n", "scale"), [(0, 1.0), (0, 100.0), (1, 1e-3), (10, 100.0), (19, 1.0)])
def test_a_policy_of_few_outcomes_learns_on_in_any_unit(n: int, scale: float) -> None:
    policy, rng, right = C3(progress=False), np.random.default_rng(0), []
    policy.fit(outcomes(n, scale=scale), rng)
    for step in range(n, n + 180):
        context = rng.normal(size=2) * scale
        arm = policy.choose(context, ARMS, rng, time=float(step)).arm
        right.append(arm == 1 + int(context[0] > 0))
        outcome = {"context": context, "arm": ARMS[arm], "reward": float(right[-1]), "time": float(step)}
        policy.update(Feedback.one(**outcome), rng)
    assert np.mean(right[-60:]) > 0.6  # by chance 0.25


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("n", [0, 19])
def test_a_batch_leaves_the_same_state_as_its_outcomes_one_by_one(n: int, rule: Any, tmp_path: Path) -> None:
    batch, parts, single = (begun(n, forgetting=rule) for _ in range(3))
    new, rng = outcomes(40, first=n), np.random.default_rng(0)
    batch.update(new, rng)
    for part in (new[:2], new[2:31], new[31:]):
        parts.update(part, rng)
    one_by_one(single, new)
    expected = contents(tmp_path / "single", single)
    assert contents(tmp_path / "batch", batch) == expected
    assert contents(tmp_path / "parts", parts) == expected


def test_the_view_changes_where_the_number_of_outcomes_has_doubled_and_nowhere_else() -> None:
    policy, changes = begun(3), []
    for count in range(4, 70):
        before = policy.state.views[0].embed
        policy.update(outcomes(1, first=count), np.random.default_rng(0))
        if policy.state.views[0].embed is not before:
            changes.append(count)
    assert changes == [4, 8, 16, 32, 64]


@pytest.mark.parametrize("timed", [True, False])
def test_the_view_is_the_one_that_the_outcomes_so_far_give(timed: bool) -> None:
    policy, new = begun(timed=timed), outcomes(32, first=1, timed=timed)
    policy.update(new, np.random.default_rng(0))
    (expected,) = c3_fit.renewed(policy, [], new, np.random.default_rng(32), first=0)
    (view,) = policy.state.views
    found = [view.bandwidth, view.sharpness, view.pull, *view.counts]
    assert found == [expected.bandwidth, expected.sharpness, expected.pull, *expected.counts]
    assert view.references is not None
    np.testing.assert_allclose(view.references.points, expected.embed(new.contexts, new.arms), atol=1e-6)
    assert view.references.bandwidth == view.bandwidth


def test_what_the_user_has_decided_stays() -> None:
    policy = begun(bandwidth=0.7, sharpness=2.5, prior=(1.0, 4.0), forgetting=Decay(half_life=5.0))
    policy.update(outcomes(40), np.random.default_rng(0))
    (view,) = policy.state.views
    assert (view.bandwidth, view.sharpness, view.counts, view.pull) == (0.7, 2.5, (1.0, 4.0), None)
    assert policy.state.forgetting == Decay(half_life=5.0)
    assert view.references is not None
    assert view.references.half_life == 5.0


def test_the_papers_training_learns_scales_and_nothing_else() -> None:
    policy = begun(training=Training(epochs=1))
    policy.update(outcomes(40), np.random.default_rng(0))
    (view,) = policy.state.views
    assert (view.bandwidth, view.sharpness, view.pull) == (c3_fit.BANDWIDTH, c3_fit.SHARPNESS, None)
    assert view.embed.scale[0] != 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [0, 1, 5, 30, 40])
def test_a_policy_saved_in_its_early_days_goes_on_the_same(count: int, tmp_path: Path) -> None:
    policy, rng = begun(2, forgetting=RandomDrop(every=9)), np.random.default_rng(0)
    policy.update(outcomes(count, first=2), rng)
    policy.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3")
    assert contents(tmp_path / "again", again) == (tmp_path / "c3").read_bytes()
    one_by_one(policy, outcomes(40, first=50))
    one_by_one(again, outcomes(40, first=50))
    assert contents(tmp_path / "again", again) == contents(tmp_path / "c3", policy)


def without(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: array for key, array in arrays.items() if key != name}


DAMAGES: dict[str, Any] = {
    "a column is missing": lambda a: without(a, "early.rewards"),
    "the times are missing": lambda a: without(a, "early.times"),
    "a column is short": lambda a: a | {"early.times": a["early.times"][:-1]},
    "a row is missing": lambda a: a | {f"early.{name}": a[f"early.{name}"][:-1] for name in watch.COLUMNS},
    "a feature is missing": lambda a: a | {"early.contexts": a["early.contexts"][:, :1]},
    "a context is not a number": lambda a: a | {"early.contexts": a["early.contexts"] * np.nan},
    "a reward is too high": lambda a: a | {"early.rewards": a["early.rewards"] + 2},
    "the rewards are others": lambda a: a | {"early.rewards": 1 - a["early.rewards"]},
    "a stranger": lambda a: a | {"early.colours": a["early.times"]},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_early_outcomes_are_refused(damage: str, tmp_path: Path) -> None:
    policy = begun(5)
    policy.save(tmp_path / "c3")
    arrays, spec = checkpoint.read(tmp_path / "c3", "tercet.C3")
    checkpoint.write(tmp_path / "c3", "tercet.C3", DAMAGES[damage](arrays), spec)
    with pytest.raises(CheckpointError, match="can not be loaded as a C3 policy"):
        C3.load(tmp_path / "c3")


@pytest.mark.parametrize("change", [{"logged": 1100}, {"learned": -9}, {"logged": None}])
def test_early_outcomes_beyond_the_early_days_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    begun(5).save(tmp_path / "c3")
    arrays, spec = checkpoint.read(tmp_path / "c3", "tercet.C3")
    checkpoint.write(tmp_path / "c3", "tercet.C3", arrays, spec | change)
    with pytest.raises(CheckpointError, match="can not be loaded as a C3 policy"):
        C3.load(tmp_path / "c3")


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_is_kept_as_it_came_is_what_is_remembered(rule: Any) -> None:
    policy, rng = begun(13, forgetting=rule), np.random.default_rng(0)
    for first in range(13, 60, 3):
        policy.update(outcomes(3, first=first), rng)
        state = policy.state
        assert state.early is not None
        assert state.references is not None
        np.testing.assert_array_equal(state.early.times, state.references.times)
        np.testing.assert_array_equal(state.early.rewards, state.references.rewards)
        points = policy.embed(state.early.contexts, state.early.arms)
        np.testing.assert_allclose(points, state.references.points, atol=1e-5)
    assert len(policy) == 61 or rule not in ("auto", None)


def test_a_memory_that_forgets_nearly_all_keeps_its_view() -> None:
    policy = begun(10, forgetting=Window(count=2))
    before = policy.state.views[0].embed
    policy.update(outcomes(30, first=10), np.random.default_rng(0))
    assert policy.state.views[0].embed is before
    assert len(policy) == 2


def test_a_history_that_is_not_remembered_counts_but_is_not_kept() -> None:
    policy = begun(12, remember=False)
    assert policy.state.early is not None
    assert len(policy.state.early) == len(policy) == 0
    before = policy.state.views[0].embed
    policy.update(outcomes(3, first=12), np.random.default_rng(0))
    assert policy.state.views[0].embed is before
    policy.update(outcomes(1, first=15), np.random.default_rng(0))
    assert policy.state.views[0].embed is not before
    assert len(policy.state.early) == len(policy) == 4


def test_the_early_days_end() -> None:
    policy, rng = begun(10), np.random.default_rng(0)
    policy.update(outcomes(early.LAST - 11, first=10), rng)
    assert policy.state.early is not None
    policy.update(outcomes(1, first=early.LAST), rng)
    assert policy.state.early is None
    (view,), state = policy.state.views, policy.state
    settings = (view.embed, view.bandwidth, view.sharpness, view.counts, view.pull)
    policy.update(outcomes(2 * early.LAST, first=early.LAST + 1), rng)
    assert policy.state is state
    assert (view.embed, view.bandwidth, view.sharpness, view.counts, view.pull) == settings
    assert len(policy) == 3 * early.LAST


def test_a_batch_may_go_beyond_the_early_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "LAST", 16)
    batch, single, new = begun(), begun(), outcomes(40)
    batch.update(new, np.random.default_rng(0))
    one_by_one(single, new)
    assert batch.state.early is single.state.early is None
    for policy in (batch, single):
        assert len(policy) == 40
    np.testing.assert_array_equal(batch.embed(new.contexts, new.arms), single.embed(new.contexts, new.arms))
    found, expected = (policy.beliefs([0.3, 0.1], ARMS) for policy in (batch, single))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-5)


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (early.LAST // 2 + 1, {"training": QUICK}),
        (c3_fit.LEAST, {"training": Training(epochs=1)}),
        (5, {"hidden": (4,), "training": Training(epochs=1)}),
        (5, {"phi": lambda contexts, arms: np.hstack([contexts, arms])}),
    ],
)
def test_a_policy_of_enough_outcomes_or_of_another_phi_has_no_early_days(
    n: int, options: dict[str, Any]
) -> None:
    policy = begun(n, **options)
    assert policy.state.early is None
    state, phis = policy.state, [view.embed for view in policy.state.views]
    policy.update(outcomes(40, first=n), np.random.default_rng(0))
    assert policy.state is state
    assert [view.embed for view in state.views] == phis


def test_beliefs_and_explanations_work_from_the_first_outcome_on() -> None:
    policy, new = begun(), outcomes(40)
    for row in range(40):
        policy.update(new[row : row + 1], np.random.default_rng(0))
        beliefs = policy.beliefs(new.contexts[row], ARMS, time=float(row))
        for values in (beliefs.mean, beliefs.mass, beliefs.alpha, beliefs.beta):
            assert np.isfinite(values).all()
        evidence = policy.explain(new.contexts[row], new.arms[row], time=float(row), most=1)
        assert 0 <= evidence.estimate.mean[0] <= 1
        assert len(policy) == row + 1


def test_an_outcome_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    policy = begun(5)
    before = contents(tmp_path / "a", policy)
    narrow = Feedback(
        contexts=np.zeros((9, 1)), arms=ARMS[[0] * 9], rewards=np.zeros(9), times=np.arange(9.0)
    )
    for bad in (outcomes(20, timed=False), narrow):
        with pytest.raises(ValueError, match=r"times must come|features, as before"):
            policy.update(bad, np.random.default_rng(0))
    assert contents(tmp_path / "a", policy) == before


@pytest.mark.parametrize("number", [1, 2])
def test_ctrl_c_while_a_view_is_made_leaves_the_policy_as_it_was(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed, calls = c3_fit.renewed, []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return renewed(*arguments, **options)

    policy = begun(5)
    before = contents(tmp_path / "a", policy)
    monkeypatch.setattr(c3_fit, "renewed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policy.update(outcomes(20, first=5), np.random.default_rng(0))
    assert contents(tmp_path / "a", policy) == before


def test_views_with_networks_are_chosen_anew_when_own_outcomes_are_as_many_as_logged_ones() -> None:
    policy, changes = begun(24, training=QUICK), []
    networks = [view.embed for view in policy.state.views[:-1]]
    assert len(networks) == 4
    for count in range(25, 260):
        before = policy.state.views[-1].embed
        policy.update(outcomes(1, first=count), np.random.default_rng(0))
        if policy.state.views[-1].embed is not before:
            changes.append(count)
    assert changes == [64, 128, 256]  # not at 32, of which 8 are own
    assert [view.embed for view in policy.state.views[:-1]] == networks
    assert policy.state.early is not None
    points = policy.embed(policy.state.early.contexts, policy.state.early.arms)
    seen = [view.references.points for view in policy.state.views if view.references is not None]
    widths = [view.weight**0.5 / view.bandwidth for view in policy.state.views]
    scaled = np.hstack([part * width for part, width in zip(seen, widths, strict=True)])
    np.testing.assert_allclose(points, scaled, atol=1e-5)


@pytest.mark.parametrize("rule", ["auto", Decay(half_life=30.0), RandomDrop(every=7)], ids=str)
@pytest.mark.parametrize("remember", [True, False])
def test_a_batch_is_as_good_as_its_outcomes_with_networks_too(
    remember: bool, rule: Any, tmp_path: Path
) -> None:
    batch, single = (begun(24, training=QUICK, forgetting=rule, remember=remember) for _ in range(2))
    new = outcomes(120, first=24)
    batch.update(new, np.random.default_rng(0))
    one_by_one(single, new)
    expected = contents(tmp_path / "single", single)
    assert contents(tmp_path / "batch", batch) == expected
    C3.load(tmp_path / "single").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == expected


def test_networks_are_not_judged_by_outcomes_that_they_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, asked = begun(24, training=QUICK), []

    def noted(trained: Any, history: Feedback, fixed: Any) -> Any:
        asked.append((len(history), min(one.held.min() for one in trained)))
        return convene(trained, history, fixed)

    monkeypatch.setattr(c3_fit, "convene", noted)
    policy.update(outcomes(110, first=24), np.random.default_rng(0))
    assert [rows for rows, _ in asked] == [64, 128]
    assert all(first >= 24 for _, first in asked)


def test_drift_that_a_short_log_could_not_show_is_noticed_later() -> None:
    """One arm of four pays, another one every 60 outcomes."""
    right: dict[Any, list[bool]] = {"auto": [], None: []}
    for rule, found in right.items():
        policy, rng = begun(0, forgetting=rule), np.random.default_rng(0)
        for step in range(900):
            time = float(step)
            arm = policy.choose([1.0, 0.0], ARMS, rng, time=time).arm
            found.append(arm == step // 60 % 4)
            outcome = {"context": [1.0, 0.0], "arm": ARMS[arm], "reward": float(found[-1]), "time": time}
            policy.update(Feedback.one(**outcome), rng)
        assert (policy.state.surprises is not None) == (rule == "auto")
    assert np.mean(right["auto"][600:]) > np.mean(right[None][600:]) + 0.1


def test_a_batch_that_fails_half_way_leaves_surprises_as_they_were(tmp_path: Path) -> None:
    policy = begun(0)
    rng = np.random.default_rng(1)
    arms = rng.integers(4, size=300)
    rewards = (arms == np.arange(300) // 60 % 4).astype(float)
    drifting = Feedback(contexts=np.ones((300, 2)), arms=ARMS[arms], rewards=rewards, times=np.arange(300.0))
    policy.update(drifting, rng)
    assert policy.state.surprises is not None
    before = contents(tmp_path / "a", policy)
    draft = early.draft(policy.state)
    policy._learn(draft, drifting[:5])
    assert contents(tmp_path / "a", policy) == before
