import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from tercet.environments.anchors import SLOPES, Anchors, coupled_means, degree_of_coupling, moments, pearson

MANY = 20_000
# Pearson's correlation with the anchor, for the paper's concentration of 50.
PEARSON = {0.2: 0.760, 0.6: 0.966, 1.0: 0.990}


@pytest.mark.parametrize("concentration", [1.0, 50.0])
@pytest.mark.parametrize("anchor", [0.1, 0.5, 0.9])
def test_means_have_the_moments_of_the_papers_beta(anchor: float, concentration: float) -> None:
    slopes, rng = np.array(SLOPES), np.random.default_rng(0)
    draws = coupled_means(np.full(MANY, anchor), slopes, concentration, rng)
    mean, variance = (row[0] for row in moments(np.array([anchor]), slopes, concentration))
    np.testing.assert_allclose(mean, 0.5 + slopes * (anchor - 0.5))
    np.testing.assert_allclose(variance, mean * (1 - mean) / (2 * concentration + 1))
    assert (np.abs(draws.mean(0) - mean) < 4 * np.sqrt(variance / MANY)).all()
    spread = draws.std(0) ** 2
    error = ((draws - mean) ** 2).std(0) / np.sqrt(MANY)
    assert (np.abs(spread - variance) < 4 * error).all()


@pytest.mark.parametrize(("slope", "expected"), PEARSON.items())
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_slope_is_not_the_correlation(slope: float, expected: float, sign: int) -> None:
    assert pearson(sign * slope) == pytest.approx(sign * expected, abs=5e-4)
    rng = np.random.default_rng(1)
    anchors = rng.random(MANY)
    means = coupled_means(anchors, np.array([sign * slope]), 50.0, rng)[:, 0]
    # Fisher: the standard error of a correlation r is about (1 - r²)/√n.
    assert np.corrcoef(anchors, means)[0, 1] == pytest.approx(
        sign * expected, abs=4 * (1 - expected**2) / np.sqrt(MANY) + 5e-4
    )


def test_a_sure_anchor_gives_sure_followers() -> None:
    means = coupled_means(np.array([0.0, 1.0]), np.array([-1.0, 1.0]), 50.0, np.random.default_rng(0))
    np.testing.assert_allclose(means, [[1.0, 0.0], [0.0, 1.0]], atol=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=5))
def test_the_degree_of_coupling_is_one_less_the_mean_divergence(pairs: list[tuple[float, float]]) -> None:
    degrees = degree_of_coupling(np.array(pairs))
    distances = [jensenshannon([p, 1 - p], [q, 1 - q], base=2) for p, q in pairs]
    # SciPy takes a root, which may be of a rounding error below 0.
    expected = 1 - np.mean(np.nan_to_num(distances) ** 2)
    np.testing.assert_allclose(degrees, [[1, expected], [expected, 1]], atol=1e-12)


def test_arms_are_coupled_by_their_slope() -> None:
    world = Anchors().draw(np.random.default_rng(0))
    degrees = degree_of_coupling(world.means)[0]
    assert degrees[0] == pytest.approx(1)
    assert (np.diff(degrees[1:]) > 0).all()


@pytest.mark.parametrize("means", [[[1.2, 0.5]], [[np.nan, 0.5]]])
def test_means_that_are_no_chances_have_no_coupling(means: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="means must"):
        degree_of_coupling(np.array(means))


def test_the_default_is_the_papers_simulation() -> None:
    world = Anchors().draw(np.random.default_rng(0))
    history = world.history(np.random.default_rng(1))
    assert history.arms.shape == (20_000, 7)
    assert history.times is not None
    np.testing.assert_array_equal(np.bincount(history.times.astype(int)), 100)
    anchors = world.means[:, 0]
    assert anchors.mean() == pytest.approx(0.5, abs=4 / np.sqrt(12 * len(anchors)))


def test_logged_arms_are_pulled_evenly_and_earn_their_means() -> None:
    world = Anchors().draw(np.random.default_rng(0))
    history = world.history(np.random.default_rng(1))
    assert history.times is not None
    assert history.arm_ids is not None
    assert history.propensities is not None
    share = history.propensities[0]
    counts = np.bincount(history.arm_ids)
    assert (np.abs(counts - len(history) * share) < 4 * np.sqrt(len(history) * share)).all()
    means = world.means[history.times.astype(int), history.arm_ids]
    assert abs((history.rewards - means).sum()) < 4 * np.sqrt((means * (1 - means)).sum())


def test_each_played_episode_begins_with_a_change() -> None:
    world = Anchors(logged=2, played=3, samples=5).draw(np.random.default_rng(0))
    rounds = list(world.rounds(np.random.default_rng(1)))
    assert [round_.time for round_ in rounds if round_.changed] == [2.0, 3.0, 4.0]
    for round_ in rounds:
        np.testing.assert_array_equal(round_.means, world.means[int(round_.time)])


def test_a_world_without_a_history_can_be_played() -> None:
    world = Anchors(logged=0, played=1).draw(np.random.default_rng(0))
    assert world.history(np.random.default_rng(1)).arms.shape == (0, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slopes": (1.1,)}, "slopes must be at least one"),
        ({"slopes": ()}, "slopes must be at least one"),
        ({"concentration": 0.5}, "concentration must be at least 1"),
        ({"concentration": -1.0}, "concentration must be a finite number above 0"),
        ({"logged": -1}, "logged must be at least 0; got -1"),
        ({"played": 0}, "played must be at least 1; got 0"),
        ({"samples": 0}, "samples must be at least 1; got 0"),
    ],
)
def test_impossible_anchors_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Anchors(**options)
