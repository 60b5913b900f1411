from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import C3, CheckpointError, Feedback
from tercet import checkpoint as checkpoints
from tercet.embedding.apart import MOST, Apart
from tercet.embedding.inference import Perceptron
from tercet.embedding.options import LeaveOneOut

QUICK = LeaveOneOut(epochs=1, steps=5, width=8)


def blind(columns: int) -> Perceptron:
    """A phi that sees nothing of an arm but its first feature."""
    weights = np.zeros((columns, 1))
    weights[0] = 1.0
    return Perceptron(
        weights=[weights],
        biases=[np.zeros(1)],
        centre=np.zeros(columns),
        scale=np.ones(columns),
        context_dim=0,
    )


def log(arms: np.ndarray, *, seed: int = 0) -> Feedback:
    rng = np.random.default_rng(seed)
    return Feedback(
        contexts=np.empty((len(arms), 0)),
        arms=arms,
        rewards=(rng.random(len(arms)) < 0.5).astype(float),
        times=np.arange(len(arms), dtype=float),
    )


def fitted(history: Feedback, **options: Any) -> C3:
    policy = C3(training=QUICK, progress=False, **options)
    policy.fit(history, np.random.default_rng(0))
    return policy


def one_hot(count: int = 60, *, width: int = 5, shown: int = 3) -> np.ndarray:
    return np.eye(width)[np.arange(count) % shown]


def test_where_every_column_varied_phi_stays_as_it_is() -> None:
    phi = blind(2)
    assert Apart.of(phi, np.eye(2), distance=3.0) is phi
    assert Apart.of(phi, np.empty((0, 2)), distance=3.0) is phi


@pytest.mark.parametrize("columns", [1, 2, MOST, MOST + 1, 100])
def test_newcomers_are_far_from_known_arms_and_from_each_other(columns: int) -> None:
    known = np.hstack([np.arange(4.0)[:, None], np.zeros((4, columns))])
    phi = Apart.of(blind(1 + columns), known, distance=3.0)
    newcomers = np.hstack([np.zeros((columns, 1)), np.eye(columns)])
    old, new = phi.candidates([], known), phi.candidates([], newcomers)
    assert old.shape[1] == 1 + min(columns, MOST)
    np.testing.assert_allclose(old[:, 1:], 0.0)
    np.testing.assert_allclose(np.linalg.norm(new - old[0], axis=1), 3.0)
    apart = np.linalg.norm(new[:, None] - new, axis=2)[~np.eye(columns, dtype=bool)]
    assert (apart > 1.0).all()
    np.testing.assert_array_equal(phi(np.empty((columns, 0)), newcomers), new)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_no_value_is_farther_than_the_distance(usual: float, value: float) -> None:
    known = np.array([[0.0, usual], [1.0, usual]])
    phi = Apart.of(blind(2), known, distance=3.0)
    assert abs(phi.candidates([], [[0.0, value]])[0, 1]) <= 3.0


def test_a_number_that_moves_a_little_is_no_news() -> None:
    phi = Apart.of(blind(2), np.array([[0.0, 100.0], [1.0, 100.0]]), distance=3.0)
    assert abs(phi.candidates([], [[0.0, 101.0]])[0, 1]) < 0.05


def test_the_evidence_of_others_is_next_to_none_for_an_arm_that_no_log_knew() -> None:
    beliefs = fitted(log(one_hot())).beliefs([], np.eye(5))
    assert beliefs.mass[3:].max() < 0.1 * beliefs.mass[:3].min()
    counts = beliefs.alpha + beliefs.beta
    assert counts[3:].max() < counts[:3].min()


def test_outcomes_of_a_newcomer_are_its_own() -> None:
    policy, rng = fitted(log(one_hot()), recalibrate=False), np.random.default_rng(0)
    before = policy.beliefs([], np.eye(5)).mean
    for time in range(60, 63):  # views are not yet chosen anew
        policy.update(Feedback.one(context=[], arm=np.eye(5)[3], reward=1.0, time=float(time)), rng)
    after = policy.beliefs([], np.eye(5)).mean
    assert after[3] > before[3] + 0.2
    assert after[:3] == pytest.approx(before[:3], abs=0.1)


def test_where_all_arms_move_alike_their_order_stays() -> None:
    rng = np.random.default_rng(3)
    arms = np.column_stack([rng.normal(size=200), np.zeros(200)])
    history = Feedback(
        contexts=np.empty((200, 0)), arms=arms, rewards=(arms[:, 0] > 0).astype(float), times=np.arange(200.0)
    )
    policy = fitted(history)
    menu = np.column_stack([np.linspace(-2, 2, 5), np.zeros(5)])
    usual, moved = (policy.beliefs([], menu + np.array([0.0, shift])).mean for shift in (0.0, 1.0))
    assert (np.argsort(moved) == np.argsort(usual)).all()
    assert moved[-1] - moved[0] > 0.2


def test_a_saved_policy_keeps_newcomers_apart(tmp_path: Path) -> None:
    policy = fitted(log(one_hot(600)))
    policy.save(tmp_path / "c3")
    again = C3.load(tmp_path / "c3")
    assert all(isinstance(view.embed, Apart) for view in again.state.views)
    np.testing.assert_array_equal(
        again.embed(np.empty((5, 0)), np.eye(5)), policy.embed(np.empty((5, 0)), np.eye(5))
    )
    np.testing.assert_array_equal(again.beliefs([], np.eye(5)).mean, policy.beliefs([], np.eye(5)).mean)


@pytest.mark.parametrize("wrong", [np.array([0, 9]), np.array([3])])
def test_columns_that_no_arm_has_are_refused(tmp_path: Path, wrong: np.ndarray) -> None:
    fitted(log(one_hot())).save(tmp_path / "c3")
    arrays, spec = checkpoints.read(tmp_path / "c3", "tercet.C3")
    arrays = dict(arrays) | {"0.phi.apart.columns": wrong}
    checkpoints.write(tmp_path / "c3", "tercet.C3", arrays, spec)
    with pytest.raises(CheckpointError, match="can not be loaded"):
        C3.load(tmp_path / "c3")
