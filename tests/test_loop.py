from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tercet import C3, Choice, Feedback, Round
from tercet.environments.base import Revealed
from tercet.environments.simulated import Shop
from tercet.loop import Streams, play
from tercet.policies.simple import ArmThompson, Uniform


@dataclass
class Spy:
    """Play a fixed arm and keep everything that comes in."""

    arm: int
    fitted: list[Feedback] = field(default_factory=list)
    remembers: list[bool] = field(default_factory=list)
    learned: list[Feedback] = field(default_factory=list)
    offered: list[np.ndarray] = field(default_factory=list)

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        rng.random(3)  # a policy's own randomness must not move the world
        self.fitted.append(history)
        self.remembers.append(remember)

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        rng.random(self.arm)
        self.offered.append(arms)
        return Choice(arm=self.arm, propensities=np.eye(len(arms))[self.arm])

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        self.learned.append(feedback)

    def save(self, path: Any) -> None: ...

    @classmethod
    def load(cls, path: Any) -> "Spy":
        raise NotImplementedError


@dataclass
class Ladder:
    """Two rounds of three arms, the second after a late logged outcome; no means, no ids."""

    rounds_: int = 2
    streaming: bool = False
    one_log: bool = False

    def history(self, rng: np.random.Generator) -> Feedback:
        return Feedback(contexts=np.zeros((4, 1)), arms=np.eye(3)[[0, 1, 2, 0]], rewards=np.zeros(4))

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        late = Feedback.one(context=[9.0], arm=[1.0, 0.0, 0.0], reward=1.0, time=0.5)
        for step in range(self.rounds_):
            yield Round(
                context=np.zeros(1), arms=np.eye(3), time=float(step), rewards=np.array([0.0, 0.25, 1.0]),
                logged=late if step == 1 else None,
            )  # fmt: skip


def test_a_policy_learns_its_own_action_and_what_was_logged_and_nothing_else() -> None:
    spy = Spy(arm=1)
    trace = play(spy, Ladder(), np.random.default_rng(0))
    assert [len(history) for history in spy.fitted] == [4]
    own, late, again = spy.learned
    np.testing.assert_array_equal(late.contexts, [[9.0]])
    for outcome in (own, again):
        np.testing.assert_array_equal(outcome.arms, [[0, 1, 0]])
        np.testing.assert_array_equal(outcome.rewards, [0.25])
        np.testing.assert_array_equal(outcome.propensities, [1.0])
    np.testing.assert_array_equal(np.concatenate([own.ids, again.ids]), [4, 5])  # after the history's four
    np.testing.assert_array_equal(trace.columns["arm"], [1, 1])
    assert trace.columns["arm_id"].tolist() == [None, None]


def test_without_means_regret_is_against_the_realised_rewards() -> None:
    trace = play(Spy(arm=1), Ladder(), np.random.default_rng(0))
    np.testing.assert_array_equal(trace.regrets, [0.75, 0.75])
    np.testing.assert_array_equal(trace.rewards, [0.25, 0.25])
    assert len(trace) == 2


def test_regret_is_the_best_mean_less_the_chosen_mean() -> None:
    shop = Shop.draw(np.random.default_rng(0), visits=30)
    trace = play(Spy(arm=2), shop, np.random.default_rng(1))
    year = shop.year(Streams.of(np.random.default_rng(1)).rounds)
    np.testing.assert_allclose(trace.regrets, year.means.max(1) - year.means[:, 2])
    np.testing.assert_array_equal(trace.rewards, year.rewards[:, 2])
    np.testing.assert_array_equal(trace.columns["arm_id"], year.offers[:, 2])
    np.testing.assert_array_equal(trace.times, year.times)


def test_policies_that_draw_differently_see_the_same_world() -> None:
    shop = Shop.draw(np.random.default_rng(0), visits=20)
    one, two = Spy(arm=0), Spy(arm=5)
    for spy in (one, two):
        play(spy, shop, np.random.default_rng(1))
    np.testing.assert_array_equal(one.fitted[0].rewards, two.fitted[0].rewards)
    np.testing.assert_array_equal(one.offered, two.offered)


def test_the_digest_of_a_world_is_the_same_for_all_policies_and_no_two_worlds() -> None:
    def world(seed: int, policy: Any) -> str:
        return play(policy, Shop.draw(np.random.default_rng(0), visits=9), np.random.default_rng(seed)).world

    assert world(1, Uniform()) == world(1, ArmThompson())
    assert world(1, Uniform()) != world(2, Uniform())


def test_equal_rngs_replay_the_same_trace() -> None:
    shop = Shop.draw(np.random.default_rng(0), visits=50)
    one, two = (play(ArmThompson(half_life=30.0), shop, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one.columns["arm"], two.columns["arm"])
    np.testing.assert_array_equal(one.columns["propensity"], two.columns["propensity"])


def test_a_streaming_environment_wants_an_empty_memory() -> None:
    for streaming in (False, True):
        spy = Spy(arm=0)
        play(spy, Ladder(streaming=streaming), np.random.default_rng(0))
        assert spy.remembers == [not streaming]


def test_only_so_many_steps_are_played() -> None:
    assert len(play(Uniform(), Ladder(rounds_=9), np.random.default_rng(0), steps=4)) == 4


def test_a_function_may_choose_the_policy_and_moves_nothing_else() -> None:
    shop = Shop.draw(np.random.default_rng(0), visits=20)
    seen: list[Feedback] = []

    def choose(history: Feedback, rng: np.random.Generator) -> Uniform:
        rng.random(7)
        seen.append(history)
        return Uniform()

    chosen = play(choose, shop, np.random.default_rng(1))
    plain = play(Uniform(), shop, np.random.default_rng(1))
    assert len(seen[0]) == 60
    np.testing.assert_array_equal(chosen.columns["arm"], plain.columns["arm"])


@dataclass
class Seer(Spy):
    """Learn from what is revealed."""

    seen: list[Revealed] = field(default_factory=list)

    def reveal(self, revealed: Revealed, rng: np.random.Generator) -> None:
        self.seen.append(revealed)


@dataclass
class Open(Ladder):
    """The ladder with its history's rewards laid open; they depend on the rng as the history does."""

    def history(self, rng: np.random.Generator) -> Feedback:
        return Feedback(contexts=rng.random((4, 1)), arms=np.eye(3)[[0, 1, 2, 0]], rewards=np.zeros(4))

    def revealed(self, rng: np.random.Generator) -> Revealed:
        return Revealed(contexts=rng.random((4, 1)), arms=np.eye(3), rewards=np.zeros((4, 3)))


def test_an_oracle_is_shown_the_same_history_with_all_rewards() -> None:
    seer, spy = Seer(arm=0), Spy(arm=0)
    for policy in (seer, spy):
        play(policy, Open(), np.random.default_rng(0))
    assert seer.fitted == []
    np.testing.assert_array_equal(seer.seen[0].contexts, spy.fitted[0].contexts)


def test_an_oracle_needs_an_environment_that_can_show_all() -> None:
    with pytest.raises(ValueError, match="play it without the oracle"):
        play(Seer(arm=0), Ladder(), np.random.default_rng(0))


def test_impressions_count_the_showings_of_arms_that_the_history_did_not_know() -> None:
    shop = Shop.draw(np.random.default_rng(0), visits=300)
    trace = play(Uniform(), shop, np.random.default_rng(1))
    known = set(shop.history(Streams.of(np.random.default_rng(1)).history).arm_ids.tolist())
    counts: dict[int, int] = {}
    for arm, impression in zip(trace.columns["arm_id"].tolist(), trace.columns["impression"], strict=True):
        if arm in known:
            assert impression == -1
        else:
            assert impression == counts.get(arm, 0)
            counts[arm] = counts.get(arm, 0) + 1
    assert max(counts.values()) > 1


def test_predictions_are_of_the_chosen_arm_and_made_before_its_outcome() -> None:
    shop = Shop.draw(np.random.default_rng(0), visits=30)
    trace = play(ArmThompson(prior=(1.0, 1.0)), shop, np.random.default_rng(3))
    assert (trace.columns["predicted"] > 0).all()
    assert np.isnan(play(Uniform(), shop, np.random.default_rng(3)).columns["predicted"]).all()


def test_intervals_are_compared_with_the_means_of_all_offered_arms_where_both_are_known() -> None:
    shop, rng = Shop.draw(np.random.default_rng(0), visits=30), np.random.default_rng
    trace = play(C3(phi=lambda contexts, arms: arms), shop, rng(3))
    shares = trace.columns["covered"] * trace.columns["offered"]
    np.testing.assert_allclose(shares, shares.round(), atol=1e-9)
    assert 0 < trace.columns["covered"].mean() <= 1
    assert np.isnan(play(Uniform(), shop, rng(3)).columns["covered"]).all()

    class Unknown(Ladder):
        def history(self, rng: np.random.Generator) -> Feedback:
            return shop.history(rng)

        def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
            return (replace(round_, means=None) for round_ in shop.rounds(rng))

    unknown = play(C3(phi=lambda contexts, arms: arms), Unknown(), rng(3))
    assert np.isnan(unknown.columns["covered"]).all()


@dataclass
class Vandal(Spy):
    """Change whatever comes in."""

    def choose(self, context: Any, arms: Any, rng: np.random.Generator, **more: Any) -> Choice:
        arms *= 0.5
        return super().choose(context, arms, rng, **more)


def test_a_policy_can_not_change_the_world() -> None:
    with pytest.raises(ValueError, match="read-only"):
        play(Vandal(arm=0), Ladder(), np.random.default_rng(0))


@dataclass
class Liar(Spy):
    """Return a choice that can not be."""

    odds: tuple[float, ...] = ()

    def choose(self, context: Any, arms: Any, rng: np.random.Generator, **more: Any) -> Choice:
        return Choice(arm=self.arm, propensities=np.array(self.odds))


@pytest.mark.parametrize(
    ("arm", "odds"),
    [
        (-1, (0.5, 0.5, 0.0)),
        (3, (1.0, 0.0, 0.0)),
        (0, (0.0, 1.0, 0.0)),
        (0, (1.0, 0.0)),
        (0, (0.9, 0.0, 0.0)),
    ],
)
def test_a_choice_that_can_not_be_is_refused(arm: int, odds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="Liar must choose one of 3 arms"):
        play(Liar(arm=arm, odds=odds), Ladder(), np.random.default_rng(0))


@dataclass
class Generous(Ladder):
    """Pay more than one."""

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        for round_ in super().rounds(rng):
            yield replace(round_, rewards=2 * round_.rewards)


def test_rewards_beyond_the_unit_interval_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rewards must lie in \[0, 1\]; got 2.0 at time 0.0"):
        play(Spy(arm=2), Generous(), np.random.default_rng(0))


def test_an_environment_without_rounds_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one round"):
        play(Uniform(), Ladder(rounds_=0), np.random.default_rng(0))
