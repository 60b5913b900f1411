"""The features themselves as phi: their units say nothing, and what does not help is turned down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import iwkr
from tercet.checks import Array, Matrix, Vector
from tercet.embedding.inference import Perceptron
from tercet.embedding.unlearned import LIKELY, MOST_COLUMNS, Directions, log_loss, scaled, unlearned
from tercet.types import Feedback


def history(n: int, contexts: int = 3, arms: int = 2, seed: int = 0) -> Feedback:
    """Random features and rewards."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, contexts + arms))
    return Feedback(contexts=inputs[:, :contexts], arms=inputs[:, contexts:], rewards=rng.random(n))


def fitted(rows: Feedback, seed: int = 0) -> Perceptron:
    return unlearned(rows, np.random.default_rng(seed))


def squares(phi: Perceptron, contexts: Matrix, arms: Matrix) -> Matrix:
    """Squared distances between the rows' embeddings."""
    points = phi(contexts, arms)
    return iwkr.squared_distances(points, points)


def held_out_loss(rows: Feedback, asked: Feedback) -> float:
    """The loss where the asked rows are predicted by the others, with a little of the mean."""
    phi = fitted(rows)
    points = phi(rows.contexts, rows.arms)
    kappa = iwkr.rbf(phi(asked.contexts, asked.arms), points, 1.0)
    estimate = iwkr.iwkr(kappa, 1 / iwkr.densities(iwkr.rbf(points, points, 1.0)), rows.rewards)
    mass = iwkr.mass(kappa)
    return float(log_loss((mass * estimate + 0.5 * rows.rewards.mean()) / (mass + 0.5), asked.rewards).mean())


def arm_scale(phi: Perceptron) -> float:
    """How far an arm moves its embedding."""
    return float(np.abs(phi.weights[0][phi.context_dim :]).max())


@pytest.mark.parametrize("n", [0, 1, 3, 4, 60])
@pytest.mark.parametrize(("contexts", "arms"), [(3, 2), (0, 2), (3, 0), (30, 26)])
def test_any_history_gives_a_perceptron_of_its_features(n: int, contexts: int, arms: int) -> None:
    phi = fitted(history(n, contexts, arms))
    assert isinstance(phi, Perceptron)
    assert (phi.context_dim, phi.arm_dim) == (contexts, arms)
    asked = history(7, contexts, arms, seed=1)
    assert np.isfinite(phi(asked.contexts, asked.arms)).all()


@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize(("contexts", "arms"), [(3, 2), (0, 2), (3, 0), (30, 26)])
def test_contexts_and_arms_come_side_by_side_each_times_its_factor(n: int, contexts: int, arms: int) -> None:
    rows, asked = history(n, contexts, arms), history(7, contexts, arms, seed=1)
    maps = Directions.of(rows.contexts), Directions.of(rows.arms)
    points = scaled(*maps, 0.5, 3.0)(asked.contexts, asked.arms)
    expected = np.hstack([0.5 * maps[0].mapped(asked.contexts), 3.0 * maps[1].mapped(asked.arms)])
    assert points.shape[1] == min(contexts, MOST_COLUMNS) + min(arms, MOST_COLUMNS) or n == 0
    np.testing.assert_allclose(points, expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=30)
@given(
    n=st.sampled_from([3, 40]),
    width=st.sampled_from([1, 4, 30]),
    seed=st.integers(0, 1000),
)
def test_the_units_of_a_column_change_nothing(n: int, width: int, seed: int) -> None:
    rows = history(n, width, 3, seed)
    rng = np.random.default_rng(seed)
    factors, shifts = (2.0 ** rng.integers(-20, 20, size=width + 3) for _ in range(2))
    factors *= rng.choice([-1, 1], size=width + 3)
    contexts, arms = np.split(rows.joint() * factors + shifts * np.abs(factors), [width], axis=1)
    other = Feedback(contexts=contexts, arms=arms, rewards=rows.rewards)
    near = squares(fitted(rows), rows.contexts, rows.arms)
    # Shifts up to a million deviations cost float64 six of its sixteen digits; float32 keeps seven.
    np.testing.assert_allclose(squares(fitted(other), contexts, arms), near, rtol=1e-3, atol=1e-4)


def test_a_constant_column_changes_nothing_but_the_share_of_the_others() -> None:
    rows = history(3, contexts=2)
    wider = Feedback(
        contexts=np.hstack([rows.contexts, np.full((3, 2), 7.0)]), arms=rows.arms, rewards=rows.rewards
    )
    same_arm = np.zeros((3, 2))
    np.testing.assert_allclose(
        2 * squares(fitted(wider), wider.contexts, same_arm),
        squares(fitted(rows), rows.contexts, same_arm),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("width", [1, 5, MOST_COLUMNS, 60])
def test_two_rows_are_equally_far_apart_on_average_however_many_columns_there_are(width: int) -> None:
    rows = history(3, width, width)  # so few that the scales are the likely ones, and two directions are all
    phi = fitted(rows)
    for part, scale in enumerate(LIKELY):
        columns = [rows.contexts, rows.arms]
        columns[1 - part] = np.zeros((3, width))
        # Squared differences of a column have twice its variance as their mean, over all pairs.
        assert squares(phi, *columns).mean() == pytest.approx(2 * scale**2, rel=1e-4)


def low_rank(n: int, width: int, rank: int, rng: np.random.Generator) -> Matrix:
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, width))


def test_many_columns_become_few_and_distances_of_low_rank_stay() -> None:
    rng = np.random.default_rng(2)
    contexts, arms = low_rank(80, 100, 10, rng), low_rank(80, 40, 6, rng)
    rows = Feedback(contexts=contexts, arms=arms, rewards=(contexts[:, 0] > 0).astype(float))
    phi = fitted(rows)
    assert phi.dim == 2 * MOST_COLUMNS
    for part, inputs in enumerate((contexts, arms)):
        columns = [contexts, arms]
        columns[1 - part] = np.zeros_like(columns[1 - part])
        standard = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
        found, expected = squares(phi, *columns), iwkr.squared_distances(standard, standard)
        off = ~np.eye(80, dtype=bool)
        if part == 0:
            assert found[off].min() > 0
        # One factor for all pairs, the scale that was chosen (0 is one of those for arms).
        factor = found[off].sum() / expected[off].sum()
        np.testing.assert_allclose(found, factor * expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("width", [MOST_COLUMNS, MOST_COLUMNS + 1, 60])
def test_full_rank_keeps_no_more_than_the_strongest_directions(width: int) -> None:
    rng = np.random.default_rng(3)
    hidden = rng.normal(size=(200, 2))
    contexts = hidden @ rng.normal(size=(2, width)) + 0.1 * rng.normal(size=(200, width))
    rows = Feedback(contexts=contexts, arms=np.ones((200, 1)), rewards=(hidden[:, 0] > 0).astype(float))
    phi = fitted(rows)
    assert phi.dim == MOST_COLUMNS + 1
    standard = (contexts - contexts.mean(axis=0)) / contexts.std(axis=0)
    found, expected = squares(phi, contexts, rows.arms), iwkr.squared_distances(standard, standard)
    # The two hidden directions hold nearly all of a distance, and are the last that may be lost.
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.99


def by_arm(n: int, seed: int, *, useful: bool) -> Feedback:
    """Four arms, of which half pay always; or contexts decide alone and arm features are noise."""
    rng = np.random.default_rng(seed)
    contexts, arm = rng.normal(size=(n, 2)), rng.integers(4, size=n)
    good = arm < 2 if useful else contexts[:, 0] > 0
    arms = np.eye(4)[arm] if useful else rng.normal(size=(n, 6))
    return Feedback(contexts=contexts, arms=arms, rewards=good.astype(float))


@pytest.mark.parametrize("seed", range(3))
def test_arm_features_that_tell_the_reward_are_used(seed: int) -> None:
    rows = by_arm(200, seed, useful=True)
    assert arm_scale(fitted(rows)) > 0
    assert held_out_loss(rows, by_arm(200, seed + 10, useful=True)) < 0.2  # a guess costs log 2


@pytest.mark.parametrize("seed", range(3))
def test_arm_features_that_tell_nothing_do_no_harm(seed: int) -> None:
    rows, asked = (by_arm(200, number, useful=False) for number in (seed, seed + 10))
    assert arm_scale(fitted(rows)) == 0

    def bare(part: Feedback) -> Feedback:
        return Feedback(contexts=part.contexts, arms=np.empty((len(part), 0)), rewards=part.rewards)

    assert held_out_loss(rows, asked) == pytest.approx(held_out_loss(bare(rows), bare(asked)), abs=1e-4)


def test_rewards_that_change_faster_ask_for_a_larger_scale() -> None:
    rng = np.random.default_rng(4)
    contexts, luck, arms = rng.uniform(-1, 1, size=(600, 1)), rng.random(600), np.ones((600, 1))
    spread = []
    for waves in (0.5, 4):
        rewards = (luck < 0.5 + 0.4 * np.sin(waves * np.pi * contexts[:, 0])).astype(float)
        phi = fitted(Feedback(contexts=contexts, arms=arms, rewards=rewards))
        spread.append(np.ptp(phi(contexts, arms)))
    assert spread[1] > 1.5 * spread[0]


def test_the_rng_only_decides_which_rows_of_a_long_history_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = history(80)
    short = [fitted(rows, seed).weights[0] for seed in range(8)]
    monkeypatch.setattr("tercet.embedding.unlearned.ROWS", 12)
    long = [fitted(rows, seed).weights[0] for seed in range(8)]
    assert len(np.unique(short, axis=0)) == 1 < len(np.unique(long, axis=0))
    np.testing.assert_array_equal(fitted(rows, 3).weights[0], long[3])
    assert len({fitted(rows, seed).centre.tobytes() for seed in range(3)}) == 1  # of all rows


@given(p=st.floats(0, 1), r=st.floats(0, 1))
def test_the_loss_is_finite_and_least_at_the_truth(p: float, r: float) -> None:
    def loss(predicted: float, reward: Array | float = r) -> Vector:
        return log_loss(np.array([predicted]), np.array([reward]))

    assert 0 < loss(p)[0] < 10
    # The squeeze moves the best prediction by 1e-4 at most.
    assert loss(p)[0] >= loss(r)[0] - 1e-3
    assert loss(p)[0] == pytest.approx(loss(1 - p, 1 - r)[0], rel=1e-6)


def test_the_loss_is_the_cross_entropy() -> None:
    p, r = np.array([0.1, 0.8, 0.5]), np.array([0.0, 1.0, 0.3])
    exact = -(r * np.log(p) + (1 - r) * np.log(1 - p))
    np.testing.assert_allclose(log_loss(p, r), exact, rtol=0, atol=1e-3)
