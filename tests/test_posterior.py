import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.special import betainc, betaln, expit

from tercet import iwkr
from tercet.posterior import draw, posterior, with_floor

LAWS = settings(max_examples=50, deadline=None)
MASSES = arrays(np.float64, 6, elements=st.floats(1e-6, 1e6))
MEANS = arrays(np.float64, 6, elements=st.floats(0, 1))


# --- posterior -------------------------------------------------------------------------------------------


@LAWS
@given(MASSES, MEANS)
def test_the_raw_parameters_add_up_to_the_mass_and_keep_the_mean(mass, mean):
    beliefs = posterior(mass, mean)
    np.testing.assert_allclose(beliefs.alpha + beliefs.beta, mass)
    np.testing.assert_allclose(beliefs.mean, mean, atol=1e-12)
    np.testing.assert_array_equal(beliefs.mass, mass)


@LAWS
@given(MASSES, MEANS, st.permutations(range(6)))
def test_the_order_of_the_arms_does_not_matter(mass, mean, order):
    beliefs, permuted = posterior(mass, mean), posterior(mass[order], mean[order])
    np.testing.assert_array_equal(permuted.alpha, beliefs.alpha[order])
    np.testing.assert_array_equal(permuted.beta, beliefs.beta[order])


@LAWS
@given(MASSES, MEANS, st.floats(0.1, 50), st.floats(0, 5), st.floats(0, 5))
def test_sharpness_multiplies_the_evidence_and_the_prior_is_added(mass, mean, sharpness, ones, zeros):
    beliefs = posterior(mass, mean, sharpness=sharpness, prior=(ones, zeros))
    raw = posterior(mass, mean)
    np.testing.assert_allclose(beliefs.alpha, sharpness * raw.alpha + ones)
    np.testing.assert_allclose(beliefs.beta, sharpness * raw.beta + zeros)
    np.testing.assert_allclose(beliefs.mean, beliefs.alpha / (beliefs.alpha + beliefs.beta))
    np.testing.assert_array_equal(beliefs.mass, mass)


def sample(rng, rewards):
    """Mass and mean of twenty queries among sixty references."""
    points, queries = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
    weights = 1 / iwkr.densities(iwkr.rbf(points, points, 0.7))
    kappa = iwkr.rbf(queries, points, 0.7)
    return iwkr.mass(kappa), iwkr.iwkr(kappa, weights, rewards), kappa, weights


def test_the_parameters_are_the_papers_weighted_counts():
    rewards = np.random.default_rng(1).random(60)
    mass, mean, kappa, weights = sample(np.random.default_rng(0), rewards)
    beliefs = posterior(mass, mean)
    eta, total = kappa.sum(axis=1), kappa @ weights
    np.testing.assert_allclose(beliefs.alpha, eta * (kappa @ (weights * rewards)) / total)  # Eq. 7
    np.testing.assert_allclose(beliefs.beta, eta * (kappa @ (weights * (1 - rewards))) / total)  # Eq. 8


def test_flipping_the_rewards_swaps_alpha_and_beta():
    rewards = np.random.default_rng(1).random(60)
    beliefs = posterior(*sample(np.random.default_rng(0), rewards)[:2])
    flipped = posterior(*sample(np.random.default_rng(0), 1 - rewards)[:2])
    np.testing.assert_allclose(flipped.alpha, beliefs.beta)
    np.testing.assert_allclose(flipped.beta, beliefs.alpha)


def test_a_constant_reward_is_the_mean_of_every_posterior():
    beliefs = posterior(*sample(np.random.default_rng(0), np.full(60, 0.3))[:2])
    np.testing.assert_allclose(beliefs.mean, 0.3)


def test_an_arm_that_nobody_knows_is_uniform():
    beliefs = posterior([0.0, 0.0, 5e-324], [0.5, 1.0, 0.5])
    assert beliefs.alpha.tolist() == beliefs.beta.tolist() == [1.0, 1.0, 1.0]
    assert beliefs.mean.tolist() == [0.5, 0.5, 0.5]


def test_an_arm_that_nobody_knows_is_its_prior_where_there_is_one():
    beliefs = posterior([0.0, 4.0], [0.5, 1.0], prior=(0.5, 1.5))
    assert beliefs.alpha.tolist() == [0.5, 4.5]
    assert beliefs.beta.tolist() == [1.5, 1.5]
    assert beliefs.mean.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("mass", "mean", "options", "message"),
    [
        ([1.0, -2.0], [0.5, 0.5], {}, "got -2 in row 1"),
        ([1.0], [1.5], {}, "mean must lie in"),
        ([1.0], [np.nan], {}, "mean must be finite"),
        ([np.inf], [0.5], {}, "mass must be finite"),
        ([1.0, 2.0], [0.5], {}, "mean must have length 2"),
        ([[1.0]], [[0.5]], {}, "one-dimensional"),
        ([1.0], [0.5], {"sharpness": 0.0}, "sharpness"),
        ([1.0], [0.5], {"sharpness": np.nan}, "sharpness"),
        ([1.0], [0.5], {"prior": (1.0,)}, "prior must have length 2"),
        ([1.0], [0.5], {"prior": (1.0, -1.0)}, "at least 0"),
    ],
)
def test_bad_evidence_is_named(mass, mean, options, message):
    with pytest.raises(ValueError, match=message):
        posterior(mass, mean, **options)


def test_beta_tails_keep_the_lemmas_bound_and_a_stronger_one():
    grid = np.array([0.05, 0.3, 0.7, 1.0, 1.4, 2.5, 7.3, 40.0, 333.3, 5000.0])
    alpha, beta, share = (x.ravel() for x in np.meshgrid(grid, grid, np.linspace(0.01, 0.99, 25)))
    mean = alpha / (alpha + beta)
    above, below = share * (1 - mean), share * mean
    law = stats.beta(alpha, beta)
    for tail, distance in ((law.sf(mean + above), above), (law.cdf(mean - below), below)):
        assert (tail <= np.exp(-2 * (alpha + beta + 1) * distance**2) * (1 + 1e-9)).all()
        both = (alpha >= 1) & (beta >= 1)  # where the paper's lemma speaks
        assert (tail <= np.exp(-2 * (alpha + beta - 1) * distance**2) * (1 + 1e-9))[both].all()


# --- draw ------------------------------------------------------------------------------------------------


def log_odds_cdf(alpha, beta, y):
    """P(log-odds <= y), by the leading term of its power series where exp(y) underflows."""
    distance = np.abs(y)
    near, far = np.where(y < 0, alpha, beta), np.where(y < 0, beta, alpha)
    power = np.exp(np.minimum(-near * distance - np.log(near) - betaln(alpha, beta), 0.0))
    tail = np.where(distance < 600, betainc(near, far, expit(-distance)), power)
    return np.where(y < 0, tail, 1 - tail)


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [(1, 1), (2.5, 0.7), (0.05, 0.05), (1e-3, 1e-3), (1e-3, 40), (300, 1e-2), (1e6, 3e5), (0.5, 1e6)],
)
def test_draws_have_the_beta_distribution(alpha, beta):
    n = 20_000
    draws = draw(np.full(n, alpha), np.full(n, beta), np.random.default_rng(0))
    # Massart: sqrt(n) times the largest distance between the CDFs exceeds x with probability 2 exp(-2x²).
    distance = stats.ks_1samp(draws, lambda y: log_odds_cdf(alpha, beta, y)).statistic
    assert distance < np.sqrt(np.log(2 / 1e-6) / 2 / n)


@pytest.mark.parametrize("tiny", [1e-3, 1e-30, 1e-300])
def test_tiny_parameters_neither_tie_nor_vanish(tiny):
    n = 20_000
    draws = draw(np.full(n, tiny), np.full(n, 3 * tiny), np.random.default_rng(0))
    assert np.isfinite(draws).all()
    assert len(np.unique(draws)) == n
    # In the limit: -alpha y is exponential below, beta y above, and above comes with alpha / (alpha + beta).
    assert np.mean(draws > 0) == pytest.approx(0.25, abs=5 * np.sqrt(0.25 * 0.75 / n) + tiny)
    if tiny < 1e-20:
        assert stats.kstest(-draws[draws < 0] * tiny, "expon").pvalue > 1e-6
        assert stats.kstest(draws[draws > 0] * 3 * tiny, "expon").pvalue > 1e-6


def test_draws_of_different_arms_are_independent():
    n = 20_000
    draws = draw(np.full(2 * n, 0.5), np.full(2 * n, 2.0), np.random.default_rng(0)).reshape(n, 2)
    # A sample correlation of independent pairs has standard deviation 1 / sqrt(n).
    assert abs(stats.spearmanr(*draws.T).statistic) < 5 / np.sqrt(n)


def test_point_masses_draw_infinite_log_odds():
    draws = draw([0.0, 3.0, 2.0], [3.0, 0.0, 2.0], np.random.default_rng(0))
    assert draws[0] == -np.inf
    assert draws[1] == np.inf
    assert np.isfinite(draws[2])


@LAWS
@given(
    arrays(np.float64, 5, elements=st.floats(1e-300, 1e6)), arrays(np.float64, 5, elements=st.floats(0, 1e6))
)
def test_the_generator_moves_on_by_the_same_amount_whatever_the_arms(alpha, beta):
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first = draw(alpha, beta, one)
    draw(np.ones(5), np.ones(5), other)
    assert one.random() == other.random()
    np.testing.assert_array_equal(first, draw(alpha, beta, np.random.default_rng(3)))
    assert not np.isnan(first).any()


@pytest.mark.parametrize(
    ("alpha", "beta", "message"),
    [([], [], "at least one arm"), ([0.0], [0.0], "both be zero"), ([-1.0], [1.0], "negative")],
)
def test_bad_parameters_are_named(alpha, beta, message):
    with pytest.raises(ValueError, match=message):
        draw(alpha, beta, np.random.default_rng(0))


# --- Thompson sampling on the two of them ----------------------------------------------------------------


def regrets(prior, *, runs=2000, halfway=300):
    """Regret of each run, after `halfway` steps and after twice as many, with two arms of .6 and .4."""
    rng = np.random.default_rng(0)
    mass, earned, regret = np.zeros((runs, 2)), np.zeros((runs, 2)), np.zeros(runs)
    rows = np.arange(runs)
    for step in range(2 * halfway):
        if step == halfway:
            early = regret.copy()
        mean = np.divide(earned, mass, out=np.full((runs, 2), 0.5), where=mass > 0)
        beliefs = posterior(mass.ravel(), mean.ravel(), prior=prior)
        draws = draw(beliefs.alpha, beliefs.beta, rng).reshape(runs, 2)
        arm = np.where(draws[:, 0] == draws[:, 1], rng.integers(2, size=runs), draws.argmax(axis=1))
        mass[rows, arm] += 1
        earned[rows, arm] += rng.random(runs) < np.where(arm == 0, 0.6, 0.4)
        regret += np.where(arm == 0, 0.0, 0.2)
    return early, regret


@pytest.mark.parametrize(
    ("prior", "expected"), [((0.0, 0.0), (15.6, 29.9)), ((1.0, 1.0), (6.4, 7.6))], ids=["none", "one"]
)
def test_without_a_prior_arms_are_locked_out_and_regret_grows_linearly(prior, expected):
    early, late = regrets(prior)
    for regret, known in zip((early, late), expected, strict=True):
        # The known figures are averages too, taken to be no more exact than ours: hence the root of two.
        assert regret.mean() == pytest.approx(known, abs=4 * np.sqrt(2) * regret.std() / np.sqrt(len(regret)))
    # The second half costs what the first did (linear), or a small part of it.
    excess = (late - early) - 0.5 * early
    z = excess.mean() / (excess.std() / np.sqrt(len(excess)))
    assert z > 5 if prior == (0.0, 0.0) else z < -5


# --- floor -----------------------------------------------------------------------------------------------


@LAWS
@given(arrays(np.float64, 6, elements=st.floats(0.01, 1)), st.floats(0, 1))
def test_a_floor_mixes_in_uniform_choice(weights, floor):
    chances = weights / weights.sum()
    mixed = with_floor(chances, floor)
    assert mixed.sum() == pytest.approx(1)
    assert (mixed >= floor / 6).all()
    np.testing.assert_allclose(mixed - floor / 6, (1 - floor) * chances, atol=1e-15)


def test_no_floor_changes_nothing_and_a_full_one_is_uniform():
    assert with_floor([0.75, 0.25], 0.0).tolist() == [0.75, 0.25]
    assert with_floor([1.0, 0.0], 1.0).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("chances", "floor", "message"),
    [
        ([0.5, 0.5], -0.1, "floor"),
        ([0.5, 0.5], np.nan, "floor"),
        ([1.5], 0.1, "propensities"),
        ([], 0.1, "one arm"),
    ],
)
def test_bad_floors_are_named(chances, floor, message):
    with pytest.raises(ValueError, match=message):
        with_floor(chances, floor)
