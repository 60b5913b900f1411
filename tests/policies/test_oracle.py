from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from tercet import Feedback
from tercet.embedding.inference import scaling
from tercet.policies.base import Oracle
from tercet.policies.forest import Forest
from tercet.policies.oracle import Network, Supervised

RNG = np.random.default_rng  # made anew for each call
ARMS = np.eye(3)


@dataclass(frozen=True)
class Shown:
    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray


def labels(contexts: np.ndarray) -> np.ndarray:
    """The product of two features decides: no line tells the classes apart."""
    return np.where(contexts[:, 0] * contexts[:, 1] > 0, 1, 2 * (contexts[:, 0] > 0))


def shown(n: int, *, order: tuple[int, ...] = (0, 1, 2)) -> Shown:
    contexts = RNG(0).uniform(-1, 1, size=(n, 2))
    arms = ARMS[list(order)]
    return Shown(contexts, arms, arms.T[labels(contexts)])


def accuracy(policy: Supervised) -> float:
    contexts = RNG(1).uniform(-1, 1, size=(200, 2))
    played = [policy.choose(context, ARMS, RNG(0)).arm for context in contexts]
    return float((played == labels(contexts)).mean())


@pytest.mark.parametrize("name", ["trees", "large trees", "network"])
def test_it_learns_the_right_arm_of_every_context(name: str, tmp_path: Path) -> None:
    policy = Supervised(candidates=(name,))
    policy.reveal(shown(600), RNG(0))
    assert accuracy(policy) > 0.9
    policy.save(tmp_path / "policy")
    again = Supervised.load(tmp_path / "policy")
    for context in RNG(2).uniform(-1, 1, size=(20, 2)):
        one, other = (each.choose(context, ARMS, RNG(0)).means for each in (policy, again))
        np.testing.assert_array_equal(one, other)


def test_labels_belong_to_the_arms_in_whatever_order_they_come() -> None:
    policy = Supervised(candidates=("trees",))
    policy.reveal(shown(600, order=(2, 0, 1)), RNG(0))
    assert policy._classes == 3
    assert accuracy(policy) > 0.9


def test_it_takes_the_model_that_predicts_best_where_it_was_not_trained() -> None:
    policy = Supervised(candidates=("linear", "trees"))
    policy.reveal(shown(600), RNG(0))
    assert isinstance(policy._model, Forest)  # no line can
    contexts = RNG(0).normal(size=(60, 5))
    sides = (contexts.sum(1) > 0).astype(int)
    policy.reveal(Shown(contexts, np.eye(2), np.eye(2)[sides]), RNG(0))
    assert isinstance(policy._model, Network)  # few rows, a slanted border: nothing for trees


def test_graded_rewards_and_arms_with_features_are_learned_in_pairs() -> None:
    rng = RNG(0)
    contexts, arms = rng.uniform(-1, 1, size=(300, 2)), rng.uniform(-1, 1, size=(4, 2))
    rewards = 1 / (1 + np.exp(-3 * contexts @ arms.T))
    policy = Supervised(candidates=("trees",))
    policy.reveal(Shown(contexts, arms, rewards), RNG(0))
    assert policy._classes == 0
    played = [policy.choose(context, arms, RNG(0)).arm for context in contexts[:100]]
    lost = rewards[:100].max(1) - rewards[np.arange(100), played]
    assert lost.mean() < 0.02


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("hidden", [(), (7, 5)])
def test_a_network_predicts_what_scikit_learn_predicts(classes: int, hidden: tuple[int, ...]) -> None:
    inputs = RNG(0).normal(size=(200, 4)) * [1, 10, 100, 0.1] + 5
    targets = RNG(1).integers(classes, size=200) if classes else RNG(1).random(200)
    network = Network.train(hidden, inputs, targets, RNG(2), classes)
    centre, spread = scaling(inputs)
    scaled = (inputs - centre) / spread
    settings = {
        "hidden_layer_sizes": hidden,
        "batch_size": 200,
        "learning_rate_init": 0.001 if hidden else 0.01,
    }
    luck = np.random.RandomState(int(RNG(2).integers(2**31)))
    if classes:
        peer = MLPClassifier(**settings, random_state=luck)
        for _ in range(300):
            peer.partial_fit(scaled, targets, classes=np.arange(classes))
        expected = peer.predict_proba(scaled)
    else:
        peer = MLPRegressor(**settings, random_state=luck)
        for _ in range(300):
            peer.partial_fit(scaled, targets)
        expected = peer.predict(scaled)
    np.testing.assert_allclose(network.predict(inputs), expected, atol=1e-6)


def test_it_is_an_oracle_that_outcomes_do_not_change(tmp_path: Path) -> None:
    policy = Supervised(candidates=("linear",))
    assert isinstance(policy, Oracle)
    policy.reveal(shown(100), RNG(0))
    policy.save(tmp_path / "before")
    policy.update(Feedback.one(context=[0.0, 0.0], arm=ARMS[0], reward=1.0), RNG(0))
    policy.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_it_plays_any_arm_where_there_is_nothing_to_learn() -> None:
    policy = Supervised(candidates=("trees",))
    nothing = (
        shown(0),
        Shown(np.zeros((5, 2)), ARMS, np.ones((5, 3))),
        Shown(np.zeros((5, 2)), ARMS, ARMS[[0] * 5]),
    )
    for revealed in nothing:
        policy.reveal(revealed, RNG(0))
        np.testing.assert_allclose(policy.choose([0.0, 0.0], ARMS, RNG(0)).propensities, 1 / 3)


@pytest.mark.parametrize(
    ("message", "bad"),
    [
        ("rewards must have 3 columns", Shown(np.zeros((2, 2)), ARMS, np.zeros((2, 2)))),
        ("rewards must have length 6", Shown(np.zeros((2, 2)), ARMS, np.zeros((1, 3)))),
        ("rewards must lie in", Shown(np.zeros((1, 2)), ARMS, np.full((1, 3), 2.0))),
    ],
)
def test_a_bad_revelation_is_refused(message: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=message):
        Supervised().reveal(bad, RNG(0))


def test_unknown_candidates_and_other_widths_are_refused() -> None:
    for bad in ((), ("forest",)):
        with pytest.raises(ValueError, match="candidates must be some of"):
            Supervised(candidates=bad)
    policy = Supervised(candidates=("linear",))
    policy.reveal(shown(50), RNG(0))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features"):
        policy.choose([0.0], ARMS, RNG(0))
    with pytest.raises(ValueError, match="one-hot"):
        policy.choose([0.0, 0.0], np.full((1, 3), 0.5), RNG(0))
