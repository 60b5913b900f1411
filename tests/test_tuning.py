from dataclasses import dataclass, field
from time import sleep
from typing import Any

import numpy as np
import pytest

from tercet import Choice, Feedback
from tercet.environments.drift import Drift
from tercet.policies.linear import LinUCB
from tercet.policies.simple import Uniform
from tercet.tuning import Offers, Tuning, replay, split, tune
from tests.worlds import ARMS, Signs

HISTORY = Signs(logged=600).history(np.random.default_rng(0))


@dataclass(kw_only=True)
class Sign:
    """Play by the sign of the first feature, the right way or the wrong way."""

    wrong: bool = False
    learned: list[Feedback] = field(default_factory=list, init=False)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None: ...

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        wanted = ARMS[1 + int((context[0] > 0) == self.wrong)]
        place = int(np.flatnonzero((arms == wanted).all(1))[0])
        return Choice(arm=place, propensities=np.eye(len(arms))[place])

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        self.learned.append(feedback)

    def save(self, path: Any) -> None: ...

    @classmethod
    def load(cls, path: Any) -> "Sign":
        raise NotImplementedError


def value(policy: Any, log: Feedback) -> float:
    offers, rng = Offers.of(log, np.random.default_rng(2)), np.random.default_rng(3)
    weights = np.array([replay(policy, log, offers, row, rng) for row in range(len(log))])
    return float(weights @ log.rewards / weights.sum())


def test_the_replay_estimates_what_a_policy_earns() -> None:
    log = Signs(logged=6000).history(np.random.default_rng(1))
    for policy, expected in ((Sign(), 0.9), (Sign(wrong=True), 0.1), (Uniform(), 0.5)):
        # A third of 6,000 rows: five standard errors are .056.
        assert value(policy, log) == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(2000))


def informed_log(n: int, catalogue: np.ndarray) -> Feedback:
    """A log that shows what suits the sign of a visitor's feature four times as often as what does not."""
    rng = np.random.default_rng(0)
    contexts = rng.choice([-1.0, 1.0], size=(n, 1))
    suits = contexts * catalogue[:, 1] > 0
    odds = np.where(suits, 4.0, 1.0)
    odds /= odds.sum(1, keepdims=True)
    arms = np.array([rng.choice(len(catalogue), p=row) for row in odds])
    rows = np.arange(n)
    rewards = (rng.random(n) < np.where(suits[rows, arms], 0.8, 0.2)).astype(float)
    return Feedback(
        contexts=contexts, arms=catalogue[arms], rewards=rewards, propensities=odds[rows, arms]
    )  # fmt: skip


@pytest.mark.parametrize("count", [10, 30])
def test_the_replay_undoes_a_log_that_knew_better(count: int) -> None:
    """Uniform choice earns .5 there, and the log itself .68."""
    catalogue = np.column_stack([np.arange(count), np.where(np.arange(count) % 2, 1.0, -1.0)])
    log = informed_log(4000, catalogue)
    assert log.rewards.mean() == pytest.approx(0.68, abs=0.04)
    assert value(Uniform(), log) == pytest.approx(0.5, abs=0.04)  # weights within a factor of 4


def test_every_logged_outcome_is_learned_once_and_after_its_decision() -> None:
    policy = Sign()
    value(policy, HISTORY)
    np.testing.assert_array_equal(Feedback.concat(policy.learned).contexts, HISTORY.contexts)


def test_the_better_setting_is_chosen_and_nothing_is_fitted_twice() -> None:
    settings = (Sign(wrong=True), Sign())
    tuned = tune(settings, HISTORY, np.random.default_rng(0), Tuning())
    assert tuned.policy is settings[1]
    assert tuned.values[1] > 0.7 > 0.3 > tuned.values[0]
    assert (tuned.tried, tuned.rows) == (2, 240)
    assert all(not setting.learned for setting in settings)


def test_how_fast_to_forget_is_told_from_the_history() -> None:
    world = Drift(kind="abrupt", logged=3000, steps=1, interval=300)
    history = world.draw(np.random.default_rng(0)).history(np.random.default_rng(1))
    settings = [LinUCB(width=0.3), LinUCB(width=0.3, discount=0.99)]
    assert tune(settings, history, np.random.default_rng(0), Tuning()).policy is settings[1]


def test_equal_rngs_choose_equally_and_equal_settings_are_worth_the_same() -> None:
    settings = (LinUCB(), LinUCB(), LinUCB(width=0.1))
    one, two = (tune(settings, HISTORY, np.random.default_rng(0), Tuning()) for _ in range(2))
    assert one.values == two.values
    assert one.values[0] == one.values[1]


def test_without_time_or_history_the_first_setting_stays() -> None:
    settings = (Sign(wrong=True), Sign())
    for history, options in ((HISTORY, Tuning(seconds=1e-9)), (HISTORY[:0], Tuning())):
        tuned = tune(settings, history, np.random.default_rng(0), options)
        assert tuned.policy is settings[0]
        assert (tuned.tried, tuned.rows) == (0, 0)


@dataclass(kw_only=True)
class Slow(Sign):
    """The right way, slowly."""

    def choose(self, context: Any, arms: Any, rng: np.random.Generator, **more: Any) -> Choice:
        sleep(0.02)
        return super().choose(context, arms, rng, **more)


def test_a_slow_setting_keeps_no_other_from_being_tried() -> None:
    settings = (Slow(), Sign(wrong=True), Sign())
    tuned = tune(settings, HISTORY, np.random.default_rng(0), Tuning(seconds=1.0))
    assert tuned.policy is settings[2]
    assert np.isnan(tuned.values[0])
    assert tuned.tried == 2


def test_the_newest_rows_are_replayed_whatever_their_order() -> None:
    shuffled = HISTORY[np.random.default_rng(0).permutation(len(HISTORY))]
    past, tail = split(shuffled, Tuning(rows=100, share=0.3))
    np.testing.assert_array_equal(past.times, np.arange(500.0, 570.0))
    np.testing.assert_array_equal(tail.times, np.arange(570.0, 600.0))


def test_of_many_arms_those_logged_nearby_are_on_offer() -> None:
    rng, n = np.random.default_rng(0), 400
    log = Feedback(
        contexts=np.zeros((n, 1)), arms=np.arange(n, dtype=float)[:, None] // 4, rewards=np.zeros(n),
        propensities=np.full(n, 0.2),
    )  # fmt: skip
    offers = Offers.of(log, rng)
    for row, pick in enumerate(offers.picks):
        arms = offers.arms[pick, 0]
        assert arms[offers.logged[row]] == log.arms[row, 0]
        assert len(set(arms)) == len(arms) == 5  # as many as the propensities say, no arm twice
        assert np.abs(pick - row).max() <= 100
    assert len(set(offers.logged.tolist())) == 5  # the logged arm may be anywhere
    np.testing.assert_allclose(offers.chances, offers.chances[0])


def test_bad_budgets_are_refused() -> None:
    for options in ({"seconds": 0.0}, {"rows": 3}, {"share": 1.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Tuning(**options)
