"""What C3's defaults promise on any history, however odd."""

from typing import Any

import numpy as np
import pytest

from tercet import C3, Decay, Feedback
from tercet.embedding.options import LeaveOneOut
from tercet.policies import c3_fit, early

COLUMNS = {
    "contexts": np.random.default_rng(0).normal(size=(40, 3)),
    "arms": np.eye(3)[np.random.default_rng(1).integers(3, size=40)],
    "rewards": (np.random.default_rng(2).random(40) < 0.4).astype(float),
    "times": np.arange(40.0),
}
ARMS = np.eye(3)


def history(*, rows: int = 40, **changes: Any) -> Feedback:
    return Feedback(**{name: column[:rows] for name, column in (COLUMNS | changes).items()})


def fitted(past: Feedback, **options: Any) -> C3:
    policy = C3(training=LeaveOneOut(epochs=1, steps=5), progress=False, **options)
    policy.fit(past, np.random.default_rng(0))
    return policy


def with_column(factor: float, shift: float = 0.0) -> np.ndarray:
    contexts = COLUMNS["contexts"].copy()
    contexts[:, 0] = contexts[:, 0] * factor + shift
    return contexts


ODD: dict[str, dict[str, Any]] = {
    "no context": {"contexts": np.zeros((40, 0))},
    "arms without features": {"arms": np.zeros((40, 0))},
    "one arm": {"arms": ARMS[np.zeros(40, dtype=int)]},
    "constant contexts": {"contexts": np.full((40, 2), 7.3)},
    "constant columns": {"contexts": np.hstack([COLUMNS["contexts"], np.full((40, 5), 7.3)])},
    "scales far apart": {"contexts": COLUMNS["contexts"] * [1e9, 1e-6, 1.0]},
    "a heavy tail": {"contexts": np.sinh(20 * COLUMNS["contexts"])},
    "800 features": {"contexts": np.random.default_rng(3).normal(size=(40, 800))},
    "500 arms": {"arms": np.eye(500)[np.random.default_rng(4).integers(500, size=40)]},
    "only failures": {"rewards": np.zeros(40)},
    "only successes": {"rewards": np.ones(40)},
    "one success": {"rewards": np.eye(40)[0]},
    "all rewards a half": {"rewards": np.full(40, 0.5)},
    "graded rewards": {"rewards": np.linspace(0, 1, 40)},
    "one outcome, again and again": {
        name: np.repeat(column[:1], 40, axis=0) for name, column in COLUMNS.items()
    },
    "no times": {"times": None},
    "equal times": {"times": np.full(40, 5.0)},
    "two times": {"times": np.repeat([0.0, 1.0], 20)},
    "times in whole nanoseconds": {"times": 1_700_000_000_000_000_000 + np.arange(40) * 60_000_000_000},
    "times backwards": {"times": np.arange(40.0)[::-1]},
    "times ever farther apart": {"times": np.exp(np.linspace(0, 60, 40))},
}


@pytest.mark.parametrize("name", ODD)
def test_what_holds_without_trees_holds_with_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c3_fit, "TREES_FROM", 40)  # as if these histories were long
    monkeypatch.setattr(early, "LAST", 40)
    test_whatever_the_history_beliefs_are_finite_and_go_on_learning(name, 40)


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 19, 40])
@pytest.mark.parametrize("name", ODD)
def test_whatever_the_history_beliefs_are_finite_and_go_on_learning(name: str, rows: int) -> None:
    columns = {key: column for key, column in (COLUMNS | ODD[name]).items() if column is not None}
    past = Feedback(**{key: column[:rows] for key, column in columns.items()})
    policy, rng = fitted(past), np.random.default_rng(0)
    arms, time = np.unique(columns["arms"], axis=0), float(np.max(columns.get("times", 0.0)))
    context = columns["contexts"][0]
    before = policy.beliefs(context, arms, time=time)
    now = None if "times" not in columns else time
    for _ in range(30):
        policy.update(Feedback.one(context=context, arm=arms[0], reward=1.0, time=now), rng)
    choice = policy.choose(context, arms, rng, time=time)
    after = choice.posterior
    assert after is not None
    for beliefs in (before, after):
        for values in (beliefs.mean, beliefs.mass, beliefs.alpha, beliefs.beta):
            assert np.isfinite(values).all()
            assert (values >= 0).all()
        assert (beliefs.mean <= 1).all()
    assert choice.propensities.sum() == pytest.approx(1)
    assert sum(view.weight for view in policy.state.views) == pytest.approx(1)
    if before.mean[0] < 1:  # thirty successes in the same place are noticed
        assert after.mean[0] > before.mean[0]
        assert after.mean[0] > 0.5


@pytest.mark.parametrize("rows", [2, 5, 19, 40])
@pytest.mark.parametrize(("factor", "shift"), [(1e9, 0.0), (1e-6, 0.0), (3.0, 1e3)])
def test_the_unit_of_a_feature_does_not_matter(rows: int, factor: float, shift: float) -> None:
    contexts = with_column(factor, shift)
    one, two = fitted(history(rows=rows)), fitted(history(rows=rows, contexts=contexts))
    for row in range(rows, 40, 7) if rows < 40 else range(0, 40, 7):
        expected = one.beliefs(COLUMNS["contexts"][row], ARMS)
        found = two.beliefs(contexts[row], ARMS)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-3)


@pytest.mark.parametrize("rows", [5, 40])
@pytest.mark.parametrize("forgetting", ["auto", 8.0])
@pytest.mark.parametrize(("unit", "start"), [(60.0, 1.7e9), (0.25, -1000.0)])
def test_the_clock_may_begin_anywhere_and_tick_in_any_unit(
    rows: int, forgetting: Any, unit: float, start: float
) -> None:
    rules = ["auto", "auto"]
    if forgetting != "auto":
        rules = [Decay(half_life=forgetting), Decay(half_life=unit * forgetting)]
    one = fitted(history(rows=rows), forgetting=rules[0])
    two = fitted(history(rows=rows, times=start + unit * COLUMNS["times"]), forgetting=rules[1])
    for row in range(0, 40, 7):
        expected = one.beliefs(COLUMNS["contexts"][row], ARMS, time=42.0)
        found = two.beliefs(COLUMNS["contexts"][row], ARMS, time=start + unit * 42.0)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-3)
        np.testing.assert_allclose(found.mass, expected.mass, rtol=1e-3)


def test_a_history_told_backwards_fades_by_its_times_and_not_by_its_order() -> None:
    past, rule = history(rows=15), Decay(half_life=2.0)
    one, two = fitted(past, forgetting=rule), fitted(past[np.arange(15)[::-1]], forgetting=rule)
    for context in COLUMNS["contexts"][20:24]:
        expected, found = (policy.beliefs(context, ARMS, time=16.0) for policy in (one, two))
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-4)
        np.testing.assert_allclose(found.mass, expected.mass, rtol=1e-3)


def test_rewards_that_depend_on_nothing_are_no_surprise_and_are_not_told_apart() -> None:
    rng = np.random.default_rng(0)
    n = 600
    past = Feedback(
        contexts=rng.normal(size=(n, 3)),
        arms=ARMS[rng.integers(3, size=n)],
        rewards=(rng.random(n) < 0.3).astype(float),
        times=np.arange(float(n)),
    )
    policy = fitted(past)
    assert policy.state.surprises is None
    means = np.array([policy.beliefs(context, ARMS).mean for context in rng.normal(size=(50, 3))])
    # A kernel that reaches few neighbours would follow their luck: three outcomes spread by 0.26.
    assert means.std() < 0.13
    assert means.mean() == pytest.approx(past.rewards.mean(), abs=0.05)


@pytest.mark.parametrize("earned", [0.0, 1.0])
@pytest.mark.parametrize("rows", [10, 30])
def test_a_history_of_equal_rewards_does_not_hide_what_differs_later(rows: int, earned: float) -> None:
    policy, rng = fitted(history(rows=rows, rewards=np.full(40, earned))), np.random.default_rng(0)
    right = []
    for step in range(200):
        arm = policy.choose(COLUMNS["contexts"][step % 40], ARMS, rng, time=40.0 + step).arm
        outcome = {"context": COLUMNS["contexts"][step % 40], "arm": ARMS[arm], "time": 40.0 + step}
        policy.update(Feedback.one(reward=float(arm == 1), **outcome), rng)
        right.append(arm == 1)
    assert np.mean(right[100:]) > 0.8  # by chance 1/3
