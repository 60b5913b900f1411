"""What every policy must satisfy: the laws, and a small world to check them in."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet import Feedback

ARMS = np.eye(3)


@dataclass(frozen=True)
class Subject:
    """A policy under test: how to make one, how to load one, and whether it can learn the toy at all."""

    make: Callable[[], Any]
    load: Callable[[Path], Any]
    learns: bool = True
    needs_context: bool = True  # whether it uses the visitor; else it learns only which arm is best overall
    one_hot: bool = False  # whether it keeps one model an arm, and refuses arms that are told by features
    draws: int = 1500  # decisions in the Monte Carlo: fewer for slow policies


def reward(context: np.ndarray, arm: int, *, needs_context: bool) -> float:
    """Arm 1 or 2 wins by the sign of the first feature; for policies without context, arm 1 always."""
    return float(arm == (1 + (context[0] > 0) if needs_context else 1))


def history(seed: int = 0, n: int = 120, *, needs_context: bool = True) -> Feedback:
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1, 1, size=(n, 2))
    arms = rng.integers(3, size=n)
    rewards = [reward(c, a, needs_context=needs_context) for c, a in zip(contexts, arms, strict=True)]
    return Feedback(contexts=contexts, arms=ARMS[arms], rewards=np.array(rewards), times=np.arange(n) * 0.1)


def contents(path: Path, policy: Any) -> bytes:
    policy.save(path)
    return path.read_bytes()


class PolicyLaws:
    """Subclass with a `subject` fixture."""

    @pytest.fixture
    def policy(self, subject: Subject) -> Any:
        policy = subject.make()
        policy.fit(history(needs_context=subject.needs_context), np.random.default_rng(1))
        return policy

    def test_choosing_changes_nothing(self, policy: Any, tmp_path: Path) -> None:
        before = contents(tmp_path / "a", policy)
        policy.choose([0.3, -0.2], ARMS, np.random.default_rng(0), time=13.0)
        assert contents(tmp_path / "a", policy) == before

    def test_the_same_rng_gives_the_same_choice(self, policy: Any) -> None:
        for seed in range(20):
            one, two = (
                policy.choose([0.3, -0.2], ARMS, np.random.default_rng(seed), time=13.0) for _ in range(2)
            )
            assert one.arm == two.arm
            np.testing.assert_array_equal(one.propensities, two.propensities)

    def test_it_learns_a_separable_toy_from_its_own_actions(self, subject: Subject) -> None:
        policy, rng = subject.make(), np.random.default_rng(2)
        policy.fit(history(n=60, needs_context=subject.needs_context), rng)
        earned = []
        for step in range(240):
            context = rng.uniform(-1, 1, size=2)
            choice = policy.choose(context, ARMS, rng, time=10 + step / 10)
            earned.append(reward(context, choice.arm, needs_context=subject.needs_context))
            policy.update(
                Feedback.one(context=context, arm=ARMS[choice.arm], reward=earned[-1], time=10 + step / 10),
                rng,
            )
        # Uniform choice earns 1/3; five standard errors above it over 120 steps is .55.
        assert (np.mean(earned[-120:]) > 0.55) == subject.learns

    def test_propensities_are_a_distribution_that_follows_the_arms(self, policy: Any) -> None:
        order = np.array([2, 0, 1])
        straight = policy.choose([0.3, -0.2], ARMS, np.random.default_rng(0), time=13.0).propensities
        turned = policy.choose([0.3, -0.2], ARMS[order], np.random.default_rng(0), time=13.0).propensities
        assert straight.min() >= 0
        assert straight.sum() == pytest.approx(1, abs=1e-9)
        np.testing.assert_allclose(turned, straight[order], atol=1e-9)

    def test_propensities_match_a_monte_carlo_of_its_own_draws(self, policy: Any, subject: Subject) -> None:
        rng, n = np.random.default_rng(3), subject.draws
        choices = [policy.choose([0.02, -0.2], ARMS, rng, time=13.0) for _ in range(n)]
        counts = np.bincount([choice.arm for choice in choices], minlength=3)
        p = choices[0].propensities
        # Five standard errors, and what the decision-time grid may be off.
        assert (np.abs(counts / n - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-4).all()

    def test_the_set_of_arms_may_change(self, policy: Any, subject: Subject) -> None:
        rng = np.random.default_rng(4)
        new = np.vstack([ARMS, np.full((1, 3), 0.5)])
        for arms in (ARMS[:1], ARMS[[2, 0]]) if subject.one_hot else (ARMS[:1], ARMS[[2, 0]], new):
            choice = policy.choose([0.3, -0.2], arms, rng, time=13.0)
            assert 0 <= choice.arm < len(arms)
            assert choice.propensities.shape == (len(arms),)
        if subject.one_hot:
            with pytest.raises(ValueError, match="one-hot"):
                policy.choose([0.3, -0.2], new, rng, time=13.0)

    def test_expected_rewards_follow_the_arms(self, policy: Any) -> None:
        order = np.array([2, 0, 1])
        straight = policy.choose([0.3, -0.2], ARMS, np.random.default_rng(0), time=13.0).means
        turned = policy.choose([0.3, -0.2], ARMS[order], np.random.default_rng(0), time=13.0).means
        if straight is None:
            assert turned is None
            return
        assert straight.shape == (3,)
        assert np.isfinite(straight).all()
        np.testing.assert_allclose(turned, straight[order], atol=1e-6)

    def test_it_can_start_with_an_empty_memory_or_an_empty_history(self, subject: Subject) -> None:
        known = history(n=30, needs_context=subject.needs_context)
        for past, remember in ((known, False), (known[:0], True)):
            policy, rng = subject.make(), np.random.default_rng(6)
            policy.fit(past, rng, remember=remember)
            for _ in range(2):
                choice = policy.choose([0.3, -0.2], ARMS, rng, time=13.0)
                assert choice.propensities.sum() == pytest.approx(1, abs=1e-9)
                policy.update(known, rng)

    def test_a_fresh_copy_has_the_options_and_has_learned_nothing(
        self, subject: Subject, policy: Any, tmp_path: Path
    ) -> None:
        assert contents(tmp_path / "a", replace(policy)) == contents(tmp_path / "b", subject.make())

    def test_a_reloaded_policy_goes_on_bit_for_bit(
        self, policy: Any, subject: Subject, tmp_path: Path
    ) -> None:
        policy.save(tmp_path / "policy")
        again = subject.load(tmp_path / "policy")
        rng = np.random.default_rng(5)
        for step in range(30):
            context = rng.uniform(-1, 1, size=2)
            one, two = (
                p.choose(context, ARMS, np.random.default_rng(step), time=13.0 + step)
                for p in (policy, again)
            )
            assert one.arm == two.arm
            np.testing.assert_array_equal(one.propensities, two.propensities)
            outcome = Feedback.one(context=context, arm=ARMS[one.arm], reward=1.0, time=13.0 + step)
            for each in (policy, again):
                each.update(outcome, np.random.default_rng(step))
        assert contents(tmp_path / "a", policy) == contents(tmp_path / "b", again)

    BAD_CHOICES: tuple[tuple[str, Any, Any, float], ...] = (
        ("context", [np.nan, 0.0], ARMS, 13.0),
        ("context", [np.inf, 0.0], ARMS, 13.0),
        ("context", [1e39, 0.0], ARMS, 13.0),
        ("arms", [0.0, 0.0], [[np.nan, 0, 0]], 13.0),
        ("arms", [0.0, 0.0], np.empty((0, 3)), 13.0),
        ("arms", [0.0, 0.0], [1.0, 0.0, 0.0], 13.0),
    )

    @pytest.mark.parametrize(("what", "context", "arms", "time"), BAD_CHOICES)
    def test_a_bad_question_is_refused(
        self, policy: Any, tmp_path: Path, what: str, context: Any, arms: Any, time: float
    ) -> None:
        before = contents(tmp_path / "a", policy)
        with pytest.raises(ValueError, match=what):
            policy.choose(context, arms, np.random.default_rng(0), time=time)
        assert contents(tmp_path / "a", policy) == before

    def test_a_truncated_or_foreign_checkpoint_is_refused(
        self, policy: Any, subject: Subject, tmp_path: Path
    ) -> None:
        path = tmp_path / "policy"
        policy.save(path)
        path.write_bytes(path.read_bytes()[:-1] if path.stat().st_size > 200 else b"")
        with pytest.raises(ValueError, match="can not be"):
            subject.load(path)
        path.write_text("something else entirely, of no format that anybody knows")
        with pytest.raises(ValueError, match="can not be"):
            subject.load(path)
