import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vowpalwabbit
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import Feedback
from tercet.policies.vowpal import Vowpal

RNG = np.random.default_rng  # made anew for each call
ARMS = np.eye(3)
RULES = {
    "squarecb": "--squarecb --gamma_scale 10",
    "regcb": "--regcb --mellowness 0.1",
    "cover": "--cover 3 --adaptive --invariant --learning_rate 0.5",  # without --normalized it would be 10
}


def some(n: int, *, arms: np.ndarray = ARMS, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    contexts, shown = rng.uniform(-1, 1, size=(n, 2)).round(3), rng.integers(3, size=n)
    rewards = (shown == 1 + (contexts[:, 0] > 0)).astype(float)
    propensities = rng.uniform(0.1, 1, size=n).round(3)
    return Feedback(contexts=contexts, arms=arms[shown], rewards=rewards, propensities=propensities)


class Peer:
    """Vowpal Wabbit by hand: whole lists of arms, as its own documentation feeds it."""

    def __init__(self, explore: str) -> None:
        arguments = f"--cb_explore_adf --cb_type mtr {RULES[explore]} -q ca --quiet"
        self.workspace = vowpalwabbit.Workspace(arguments)

    def learn(self, context: Any, arms: Any, *, played: int, reward: float, propensity: float) -> None:
        lines = self.lines(context, arms)
        lines[1 + played] = f"0:{1 - reward}:{propensity} {lines[1 + played]}"
        self.workspace.learn(lines)

    def predict(self, context: Any, arms: Any) -> np.ndarray:
        return np.array(self.workspace.predict(self.lines(context, arms)))

    def lines(self, context: Any, arms: Any) -> list[str]:
        def words(row: Any) -> str:
            return " ".join(f"{column}:{np.float32(value)}" for column, value in enumerate(row) if value)

        return [f"shared |c {words(context)}", *(f"|a {words(arm)}" for arm in arms)]


@pytest.mark.parametrize("explore", RULES)
def test_probabilities_equal_those_of_vowpal_wabbit_fed_by_hand(explore: Any) -> None:
    feedback, policy, peer = some(80), Vowpal(explore=explore), Peer(explore)
    assert feedback.propensities is not None
    policy.update(feedback, RNG(0))
    for row in range(80):
        arm = int(feedback.arms[row].argmax())
        first = 0 if explore == "cover" else arm
        peer.learn(
            feedback.contexts[row],
            ARMS[[first, (first + 1) % 3, (first + 2) % 3]],
            played=arm - first,
            reward=feedback.rewards[row],
            propensity=feedback.propensities[row],
        )
    order = np.lexsort(ARMS.T)
    for context in some(30, seed=1).contexts:
        expected = peer.predict(context, ARMS[order])
        np.testing.assert_allclose(
            policy.choose(context, ARMS, RNG(0)).propensities[order], expected, atol=1e-6
        )


@pytest.mark.parametrize("explore", RULES)
def test_arms_told_by_features_are_learned_as_lists_of_one(explore: Any) -> None:
    arms = RNG(3).normal(size=(3, 4)).round(3)
    feedback, policy, peer = some(60, arms=arms), Vowpal(explore=explore), Peer(explore)
    policy.update(feedback, RNG(0))
    assert feedback.propensities is not None
    for row in range(60):
        propensity = feedback.propensities[row] if explore == "cover" else 1.0
        peer.learn(
            feedback.contexts[row],
            feedback.arms[row : row + 1],
            played=0,
            reward=feedback.rewards[row],
            propensity=propensity,
        )
    order = np.lexsort(arms.T)
    for context in some(20, seed=1).contexts:
        expected = peer.predict(context, arms[order])
        chosen = policy.choose(context, arms, RNG(0)).propensities[order]
        np.testing.assert_allclose(chosen, expected, atol=1e-5)


@pytest.mark.parametrize("explore", ["squarecb", "regcb"])
def test_two_rules_learn_from_the_played_arm_alone_whatever_else_was_on_offer(explore: str) -> None:
    """Vowpal Wabbit itself: three times the played arm teaches what the whole list teaches.

    The propensity does not matter either, unless the played arm is the last of the list.
    """
    feedback, whole, alone = some(80), Peer(explore), Peer(explore)
    for row in range(80):
        arm = int(feedback.arms[row].argmax())
        context, reward = feedback.contexts[row], feedback.rewards[row]
        others = [other for other in range(3) if other != arm]
        whole.learn(context, ARMS[[arm, *others]], played=0, reward=reward, propensity=0.5)
        alone.learn(context, ARMS[[arm, arm, arm]], played=0, reward=reward, propensity=0.9)
    for context in some(30, seed=1).contexts:
        np.testing.assert_allclose(alone.predict(context, ARMS), whole.predict(context, ARMS), atol=1e-6)


def state(policy: Vowpal, path: Path) -> bytes:
    policy.save(path)
    return path.read_bytes()


def test_only_a_cover_weighs_outcomes_by_their_propensities(tmp_path: Path) -> None:
    for explore in RULES:
        one, other = Vowpal(explore=explore), Vowpal(explore=explore)  # type: ignore[arg-type]
        one.update(some(40), RNG(0))
        other.update(replace(some(40), propensities=None), RNG(0))
        same = state(one, tmp_path / "one") == state(other, tmp_path / "other")
        assert same == (explore != "cover")


@pytest.mark.parametrize("explore", RULES)
def test_a_batch_teaches_what_its_outcomes_teach_one_by_one(explore: Any, tmp_path: Path) -> None:
    one, many = Vowpal(explore=explore), Vowpal(explore=explore)
    many.update(some(30), RNG(0))
    for row in range(30):
        one.choose([0.1, 0.2], ARMS, RNG(0))  # changes nothing that is learned afterwards
        one.update(some(30)[row : row + 1], RNG(0))
    assert state(one, tmp_path / "one") == state(many, tmp_path / "many")


@pytest.mark.parametrize("explore", RULES)
def test_it_does_not_mind_the_scale_of_the_features(explore: Any) -> None:
    plain, scaled = Vowpal(explore=explore), Vowpal(explore=explore)
    plain.fit(some(80), RNG(0))
    scaled.fit(replace(some(80), contexts=some(80).contexts * 1024), RNG(0))
    for context in some(20, seed=1).contexts:
        one, other = plain.choose(context, ARMS, RNG(0)), scaled.choose(context * 1024, ARMS, RNG(0))
        np.testing.assert_array_equal(one.propensities, other.propensities)


@pytest.mark.parametrize("explore", ["squarecb", "regcb"])
def test_where_vowpal_wabbit_learns_the_scale_itself_that_of_the_history_changes_nothing(
    explore: Any,
) -> None:
    fitted, raw = Vowpal(explore=explore), Vowpal(explore=explore)
    history = replace(some(80), contexts=some(80).contexts * [3.0, 1000.0])
    fitted.fit(history, RNG(0))
    raw.update(history, RNG(0))
    for context in some(20, seed=1).contexts * [3.0, 1000.0]:
        one, other = fitted.choose(context, ARMS, RNG(0)), raw.choose(context, ARMS, RNG(0))
        np.testing.assert_allclose(one.propensities, other.propensities, atol=1e-4)


def test_an_outlier_beyond_the_squares_of_float32_leaves_probabilities() -> None:
    policy = Vowpal()
    policy.fit(Feedback.one(context=[1e-20, 1.0], arm=[1.0, 0.0], reward=0.0), RNG(0))
    for step in range(4):
        choice = policy.choose([1e30, 1.0], np.eye(2), RNG(step))
        assert choice.propensities.sum() == pytest.approx(1)
        policy.update(
            Feedback.one(context=[1e30, 1.0], arm=np.eye(2)[choice.arm], reward=step % 2), RNG(step)
        )


@pytest.mark.parametrize("explore", RULES)
@given(seed=st.integers(0, 2**32 - 1), fitted=st.booleans(), featured=st.booleans())
@settings(max_examples=25)
def test_features_of_any_size_leave_probabilities(
    explore: Any, seed: int, fitted: bool, featured: bool
) -> None:
    rng, policy = RNG(seed), Vowpal(explore=explore, bits=8)

    def wild(*shape: int) -> np.ndarray:
        return rng.choice([-1.0, 1.0], size=shape) * 10 ** rng.uniform(-38, 38, size=shape)

    if fitted:
        policy.fit(Feedback(contexts=wild(2, 2), arms=wild(2, 3), rewards=np.ones(2)), rng)
    for _ in range(10):
        context, arms = wild(2), wild(3, 3) if featured else ARMS
        choice = policy.choose(context, arms, rng)
        assert choice.propensities.sum() == pytest.approx(1)
        policy.update(Feedback.one(context=context, arm=arms[choice.arm], reward=float(rng.integers(2))), rng)


def test_a_number_too_small_to_square_counts_as_zero() -> None:
    policy = Vowpal()
    policy.update(some(40), RNG(0))
    tiny, none = policy.choose([0.5, 1e-40], ARMS, RNG(0)), policy.choose([0.5, 0.0], ARMS, RNG(0))
    np.testing.assert_array_equal(tiny.propensities, none.propensities)


def test_fit_forgets_and_a_streamed_history_is_not_learned_twice(tmp_path: Path) -> None:
    policy, new = Vowpal(), Vowpal()
    policy.fit(some(50), RNG(0))
    policy.fit(some(20, seed=1), RNG(0), remember=False)
    new.fit(some(20, seed=1), RNG(0), remember=False)
    assert new._model is None
    assert state(policy, tmp_path / "a") == state(new, tmp_path / "b")
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features"):
        policy.choose([0.0], ARMS, RNG(0))


def test_an_unfitted_policy_travels_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Vowpal(explore="cover", bits=12))).bits == 12


def test_importing_the_policies_loads_no_heavy_package() -> None:
    code = (
        "import sys, tercet.policies.trees, tercet.policies.vowpal, tercet.policies.oracle;"
        "print({'lightgbm', 'vowpalwabbit', 'torch', 'sklearn'} & set(sys.modules))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "set()\n"


@pytest.mark.parametrize(
    ("message", "bad"),
    [
        ("rate must be", {"rate": 0.0}),
        ("power must lie in", {"power": 2.0}),
        ("bits must lie between", {"bits": 40}),
        ("gamma must be", {"gamma": -1.0}),
        ("covers must be at least 1", {"covers": 0}),
        ("mellowness must be", {"mellowness": 0.0}),
    ],
)
def test_bad_options_are_refused(message: str, bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=message):
        Vowpal(**bad)


def test_a_missing_vowpal_wabbit_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tercet\[bench\]'"):
        Vowpal().update(some(1), RNG(0))
