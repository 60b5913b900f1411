from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tercet import Choice, Feedback
from tercet.policies.linear import LinUCB
from tercet.policies.simple import Uniform
from tercet.tuning import Offers, Tuning, replay, split, tune
from tests.worlds import ARMS, Signs, chances

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


def test_the_replay_estimates_what_a_policy_earns() -> None:
    log = Signs(logged=6000).history(np.random.default_rng(1))
    offers = Offers.of(log, np.random.default_rng(2))
    for policy, expected in ((Sign(), 0.9), (Sign(wrong=True), 0.1), (Uniform(), 0.5)):
        value = replay(policy, log, offers, np.random.default_rng(3))
        # A third of 6,000 rows: five standard errors are .056.
        assert value == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(2000))


def test_the_replay_undoes_a_log_that_knew_better() -> None:
    """A log that shows the good arm most of the time makes every arm look good: its propensities say so."""
    rng, n = np.random.default_rng(0), 8000
    contexts = rng.uniform(-1, 1, size=(n, 2))
    best = 1 + (contexts[:, 0] <= 0)
    informed = rng.random(n) < 0.7
    arms = np.where(informed, best, rng.integers(3, size=n))
    means = chances(contexts)[np.arange(n), arms]
    log = Feedback(
        contexts=contexts, arms=ARMS[arms], rewards=(rng.random(n) < means).astype(float),
        propensities=np.where(arms == best, 0.8, 0.1),
    )  # fmt: skip
    value = replay(Uniform(), log, Offers.of(log, rng), rng)
    assert value == pytest.approx(0.5, abs=0.06)  # weights up to 10 on a tenth of the rows
    assert log.rewards.mean() > 0.7


def test_a_policy_learns_only_where_it_would_have_shown_the_logged_arm() -> None:
    policy = Sign()
    replay(policy, HISTORY, Offers.of(HISTORY, np.random.default_rng(0)), np.random.default_rng(0))
    shown = Feedback.concat(policy.learned)
    np.testing.assert_array_equal(shown.arms.argmax(1), 1 + (shown.contexts[:, 0] <= 0))
    assert 100 < len(shown) < 300


def test_the_better_setting_is_chosen_and_nothing_is_fitted_twice() -> None:
    settings = (Sign(wrong=True), Sign())
    tuned = tune(settings, HISTORY, np.random.default_rng(0), Tuning())
    assert tuned.policy is settings[1]
    assert tuned.values[1] > 0.7 > 0.3 > tuned.values[0]
    assert all(not setting.learned for setting in settings)


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
        assert tuned.values == ()


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
    np.testing.assert_allclose(offers.chances, 0.2)


def test_bad_budgets_are_refused() -> None:
    for options in ({"seconds": 0.0}, {"rows": 3}, {"share": 1.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Tuning(**options)
