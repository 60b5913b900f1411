from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor

from tercet import C3, CheckpointError, Feedback
from tercet import checkpoint as checkpoints
from tercet.embedding import grove as module
from tercet.embedding.grove import UNKNOWN, Grove, descended, grown, scaled
from tercet.embedding.options import LeaveOneOut

QUICK = LeaveOneOut(epochs=1, steps=5, width=8)
KERNELS = module.compiled.load(module.KERNELS)


def log(n: int = 200, *, seed: int = 0, **changes: Any) -> Feedback:
    """An arm pays where its feature has the sign of the context's."""
    rng = np.random.default_rng(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    columns: dict[str, Any] = {
        "contexts": contexts,
        "arms": arms,
        "rewards": (contexts[:, 0] * arms[:, 0] > 0).astype(float),
    }
    return Feedback(**(columns | changes))


def planted(history: Feedback, *, trees: int = 7, seed: int = 0) -> Grove:
    return grown(history, np.random.default_rng(seed), trees=trees)


@given(seed=st.integers(0, 1000), n=st.integers(1, 60))
def test_leaves_are_those_of_scikit_learn(seed: int, n: int) -> None:
    history = log(n, seed=seed)
    centre, scale = np.array([0.5, 0.0, 0.0]), np.array([1.0, 2.0, 1.0])
    inputs = scaled(history.contexts, history.arms, centre, scale)
    model = ExtraTreesRegressor(5, random_state=seed).fit(inputs, history.rewards)
    ours = Grove(
        **module._nodes(model),
        centre=centre,
        scale=scale,
        same=np.empty(0, int),
        usual=np.empty(0),
        context_dim=2,
        arm_dim=1,
    )
    asked = log(40, seed=seed + 1)
    theirs = model.apply(scaled(asked.contexts, asked.arms, centre, scale)) + ours.roots
    np.testing.assert_array_equal(ours(asked.contexts, asked.arms), ours.beyond[theirs])


@pytest.mark.skipif(KERNELS is None, reason="Numba can not cache here, so that NumPy is all there is")
def test_numpy_and_numba_walk_alike() -> None:
    grove, asked = planted(log()), log(50, seed=1)
    inputs = scaled(asked.contexts, asked.arms, grove.centre, grove.scale)
    one, other = np.empty((2, 50, grove.trees), np.int32)
    one, other = one.astype(np.int32), other.astype(np.int32)
    parts = grove.columns, grove.thresholds, grove.beyond, grove.roots, inputs
    descended(*parts, one)
    KERNELS.descend(*parts, other)
    np.testing.assert_array_equal(one, other)


def test_one_context_with_many_arms_is_like_many_pairs() -> None:
    grove, asked = planted(log()), log(9, seed=1)
    tiled = np.tile(asked.contexts[0], (9, 1))
    np.testing.assert_array_equal(grove.candidates(asked.contexts[0], asked.arms), grove(tiled, asked.arms))


def test_equal_generators_grow_equal_trees() -> None:
    one, other, third = (planted(log(), seed=seed) for seed in (3, 3, 4))
    for name in module.ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert len(third.columns) != len(one.columns) or (third.thresholds != one.thresholds).any()


def test_leaves_hold_equal_rewards() -> None:
    history = log()
    leaves = planted(history)(history.contexts, history.arms).astype(int)
    for tree in leaves.T:
        for leaf in np.unique(tree):
            assert len(np.unique(history.rewards[tree == leaf])) == 1


def test_a_long_history_is_learned_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEARNED", 50)
    assert planted(log()).leaves <= 7 * 50


def test_a_date_in_seconds_is_told_apart_by_the_second() -> None:
    history, asked = log(), log(50, seed=1)

    def dated(rows: Feedback) -> Feedback:
        return replace(rows, contexts=1.7e9 + 10 * rows.contexts)

    late, plain = planted(dated(history)), planted(history)
    one = late(dated(asked).contexts, asked.arms)
    assert (one == plain(asked.contexts, asked.arms)).mean() > 0.99


def test_equal_rewards_need_one_leaf() -> None:
    grove = planted(log(30, rewards=np.ones(30)))
    assert (grove.leaves, grove.trees) == (7, 7)


@pytest.mark.parametrize(("value", "known"), [(5.0, True), (5.4, True), (6.0, False), (-5.0, False)])
def test_no_leaf_knows_an_arm_that_differs_in_what_never_varied(value: float, known: bool) -> None:
    history = log()
    history = replace(history, arms=np.column_stack([history.arms, np.full(200, 5.0)]))
    leaves = planted(history).candidates([0.1, 0.2], [[0.3, value]])
    assert (leaves != UNKNOWN).all() if known else (leaves == UNKNOWN).all()


@pytest.mark.parametrize(
    ("contexts", "arms", "wrong"),
    [
        (np.zeros((2, 2)), np.zeros((3, 1)), "equal lengths"),
        (np.zeros((2, 3)), np.zeros((2, 1)), "2 columns"),
        (np.full((2, 2), np.nan), np.zeros((2, 1)), "finite"),
    ],
)
def test_bad_pairs_are_refused(contexts: np.ndarray, arms: np.ndarray, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        planted(log())(contexts, arms)


def test_arrays_make_the_same_trees_again() -> None:
    grove, asked = planted(log()), log(50, seed=1)
    again = Grove.from_arrays(*grove.to_arrays())
    np.testing.assert_array_equal(again(asked.contexts, asked.arms), grove(asked.contexts, asked.arms))


@pytest.mark.parametrize("name", ["columns", "beyond", "roots", "same", "scale"])
@pytest.mark.parametrize("value", [-5, 10**6])
def test_damaged_trees_are_refused(name: str, value: int) -> None:
    arrays, spec = planted(log()).to_arrays()
    damaged = np.append(arrays[name], np.int32(0))[: max(len(arrays[name]), 1)].copy()
    damaged[0] = min(value, 0) if name == "scale" else value
    with pytest.raises(ValueError, match=r"grove|never varied"):
        Grove.from_arrays(arrays | {name: damaged}, spec)


@given(seed=st.integers(0, 10**6))
def test_no_damage_makes_a_walk_without_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays, spec = planted(log(40), trees=2).to_arrays()
    beyond = arrays["beyond"].copy()
    beyond[rng.integers(len(beyond))] = rng.integers(-2, len(beyond) + 2)
    try:
        grove = Grove.from_arrays(arrays | {"beyond": beyond}, spec)
    except ValueError:
        return
    leaves = grove.candidates([0.1, 0.2], rng.normal(size=(20, 1)))
    assert ((leaves >= 0) & (leaves < grove.leaves)).all()


@pytest.mark.slow
def test_a_policy_with_trees_goes_on_from_its_file(tmp_path: Path) -> None:
    policy, rng = C3(training=QUICK, progress=False, trees=5), np.random.default_rng(0)
    policy.fit(log(1_000), rng)
    assert isinstance(policy.state.views[-1].embed, Grove)
    policy.save(tmp_path / "policy.tercet")
    loaded, asked = C3.load(tmp_path / "policy.tercet"), log(20, seed=1)
    for row in range(20):
        outcome = asked[row : row + 1]
        first, second = (
            p.choose(asked.contexts[row], asked.arms, np.random.default_rng(row)) for p in (policy, loaded)
        )
        np.testing.assert_array_equal(first.means, second.means)
        np.testing.assert_array_equal(first.propensities, second.propensities)
        for one in (policy, loaded):
            one.update(outcome, rng)


@pytest.mark.slow
def test_trees_and_outcomes_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    policy = C3(training=QUICK, progress=False, trees=5)
    policy.fit(log(1_000), np.random.default_rng(0))
    path = tmp_path / "policy.tercet"
    policy.save(path)
    arrays, spec = checkpoints.read(path, "tercet.C3")
    spec["views"][-1]["references"]["leaves"] += 1
    checkpoints.write(path, "tercet.C3", arrays, spec)
    with pytest.raises(CheckpointError, match="leaves"):
        C3.load(path)
