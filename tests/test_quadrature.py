import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv, betaln, expit

from tercet import compiled, quadrature
from tercet.posterior import draw
from tercet.quadrature import propensities, quick_propensities

LAWS = settings(max_examples=40, deadline=None)


def scattered(rng, arms, low, high):
    """Both parameters of every arm anywhere between two powers of ten."""
    return 10 ** rng.uniform(low, high, arms), 10 ** rng.uniform(low, high, arms)


def contended(rng, arms, low, high):
    """Arms of the most different sharpness whose draws all overlap."""
    evidence, centre = 10 ** rng.uniform(low, high, arms), rng.normal(0, 3)
    width = 1 / np.sqrt(evidence * expit(centre) * expit(-centre) + 0.3)
    mean = expit(centre + rng.normal(0, 1.5, arms) * width)
    return (evidence * np.stack([mean, 1 - mean])).clip(10.0**low, 10.0**high)


def cdf(alpha, beta, y):
    """P(log-odds <= y), by the leading term of its power series where exp(y) underflows."""
    if y < 0:
        return tail(alpha, beta, -y)
    return 1 - tail(beta, alpha, y)


def tail(alpha, beta, distance):
    if distance < 600:
        return betainc(alpha, beta, expit(-distance))
    return np.exp(-alpha * distance - np.log(alpha) - betaln(alpha, beta))


def beta_parameters(low, high):
    return st.floats(low, high).map(lambda power: 10**power)


def arms_of(low, high, most=12):
    pair = st.tuples(beta_parameters(low, high), beta_parameters(low, high))
    return st.lists(pair, min_size=2, max_size=most).map(np.transpose)


# --- oracles ---------------------------------------------------------------------------------------------


@LAWS
@given(st.tuples(*[st.integers(1, 300)] * 4))
def test_two_arms_with_whole_parameters_agree_with_the_closed_form(counts):
    a, b, c, d = counts
    i = np.arange(a)
    # P(Beta(a, b) > Beta(c, d)) = Σ_i B(c + i, b + d) / ((b + i) B(1 + i, b) B(c, d)), i < a
    terms = betaln(c + i, b + d) - np.log(b + i) - betaln(1 + i, b) - betaln(c, d)
    expected = np.exp(terms).sum()
    np.testing.assert_allclose(propensities([a, c], [b, d]), [expected, 1 - expected], atol=1e-8)


def precise_cdf(alpha, beta, y):
    """P(log-odds <= y) by a series of positive terms; mpmath's own betainc cancels for large parameters."""
    if y > mpmath.log(alpha / beta):
        return 1 - precise_cdf(beta, alpha, -y)
    x = 1 / (1 + mpmath.exp(-y))
    series = mpmath.hyp2f1(alpha + beta, 1, alpha + 1, x, maxterms=10**6)
    return precise_density(alpha, beta, y) / alpha * series


def precise_density(alpha, beta, y):
    x, rest = 1 / (1 + mpmath.exp(-y)), 1 / (1 + mpmath.exp(y))
    return mpmath.exp(alpha * mpmath.log(x) + beta * mpmath.log(rest)) / mpmath.beta(alpha, beta)


def precise(alpha, beta, arm):
    """The integral over densities with 25 digits, cut into pieces at every arm's own scale."""
    pairs = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(alpha, beta, strict=True)]
    edges = {mpmath.mpf(0)}
    for a, b in pairs:
        mode, width = mpmath.log(a / b), mpmath.sqrt((a + b) / (a * b))
        edges |= {mode + z * width for z in (-8, -3, -1, 0, 1, 3, 8)}
        edges |= {-60 / a, -5 / a, 5 / b, 60 / b}

    def integrand(y):
        value = precise_density(*pairs[arm], y)
        if value < 1e-15:
            return mpmath.mpf(0)
        for other, pair in enumerate(pairs):
            value *= 1 if other == arm else precise_cdf(*pair, y)
        return value

    return mpmath.quad(integrand, sorted(edges), method="gauss-legendre", maxdegree=4)


@pytest.mark.parametrize(
    ("alpha", "beta", "arm"),
    [
        ([2.5, 1.5], [1.5, 4.0], 0),
        ([0.05, 0.05], [0.05, 2.0], 0),
        ([0.05, 0.05], [0.05, 2.0], 1),
        ([1e6, 0.05], [1e6, 0.05], 0),
        ([5e5, 0.05], [1e6, 0.07], 0),
        ([1e6, 0.3, 2.0], [1e6, 0.3, 3.0], 0),
        ([0.05, 1e6, 30.0], [0.05, 3e5, 10.0], 1),
        ([2e4, 1.99e4], [1e4, 1e4], 0),
        ([3.0, 500.0, 40.0, 0.2], [7.0, 1100.0, 90.0, 0.9], 1),
        ([3.0, 500.0, 40.0, 0.2], [7.0, 1100.0, 90.0, 0.9], 3),
    ],
)
def test_propensities_agree_with_25_digit_quadrature(alpha, beta, arm):
    with mpmath.workdps(25):
        expected = float(precise(alpha, beta, arm))
    assert propensities(alpha, beta)[arm] == pytest.approx(expected, abs=1e-9)


def by_quantiles(alpha, beta, arm):
    """∫₀¹ Π_{b≠a} F_b(F_a⁻¹(u)) du, 32 nodes between any two of all the arms' quantiles."""
    levels = {1e-7, 1e-5, 1e-3, 0.05, 0.5, 0.95, 1 - 1e-3, 1 - 1e-5, 1 - 1e-7}
    own, others = (alpha[arm], beta[arm]), np.delete(np.stack([alpha, beta]), arm, axis=1)
    breaks = {cdf(*own, quantile(*other, level)) for other in others.T for level in levels}
    edges = np.array(sorted(breaks | levels | {0.0, 1.0}))
    edges = edges[np.append(True, np.diff(edges) > 1e-9)]
    nodes, weights = np.polynomial.legendre.leggauss(32)
    half = np.diff(edges)[:, None] / 2
    u = (edges[:-1, None] + half * (1 + nodes)).ravel()
    y = np.array([quantile(*own, level) for level in u])[:, None]
    low, high = betainc(*others, expit(y)), 1 - betainc(*others[::-1], expit(-y))
    return (half * weights).ravel() @ np.where(y < 0, low, high).prod(axis=1)


def quantile(alpha, beta, level):
    if level > 0.5:
        return -quantile(beta, alpha, 1 - level)
    x = betaincinv(alpha, beta, level)
    return np.log(x) - np.log1p(-x)


@pytest.mark.parametrize("cases", [scattered, contended])
@pytest.mark.parametrize("arms", [2, 3, 8, 50])
def test_propensities_agree_with_quadrature_over_quantiles(cases, arms):
    rng = np.random.default_rng(arms)
    for _ in range(6 if arms < 50 else 2):
        alpha, beta = cases(rng, arms, np.log10(0.05), 6.0)
        result = propensities(alpha, beta)
        for arm in {int(result.argmax()), int(rng.integers(arms))}:
            assert result[arm] == pytest.approx(by_quantiles(alpha, beta, arm), abs=1e-6)


def fine_grid(alpha, beta, rng):
    """CDFs at places so close that no arm's step times the step of the others' product exceeds 1e-6."""
    # Simulated maxima know the scales that matter.
    maxima = draw(np.tile(alpha, 300), np.tile(beta, 300), rng).reshape(300, -1).max(axis=1)
    span = maxima.max() - maxima.min()
    grid = np.unique(np.append(maxima, [maxima.min() - 3 * span, maxima.max() + 3 * span]))
    cdfs = np.stack([cdf(alpha, beta, y) for y in grid]).clip(1e-300, 1)
    while True:
        others = cdfs.prod(axis=1)[:, None] / cdfs
        wide = np.flatnonzero((np.diff(cdfs, axis=0) * np.diff(others, axis=0)).max(axis=1) > 1e-6)
        if not len(wide):
            return cdfs
        places = (grid[wide] + grid[wide + 1]) / 2
        new = np.stack([cdf(alpha, beta, y) for y in places]).clip(1e-300, 1)
        grid, cdfs = np.insert(grid, wide + 1, places), np.insert(cdfs, wide + 1, new, axis=0)


@pytest.mark.parametrize("cases", [scattered, contended])
@pytest.mark.parametrize(
    ("arms", "low", "high"), [(2, -3, 0), (20, -3, 6), (500, -3, 6), (500, -3, -1), (500, 1, 3)]
)
def test_propensities_lie_between_the_sums_that_enclose_the_integral(cases, arms, low, high):
    """F_a and the product of the others both grow, so sums over any grid enclose ∫ Π_{b≠a} F_b dF_a."""
    rng = np.random.default_rng(arms)
    for _ in range(3):
        alpha, beta = cases(rng, arms, low, high)
        cdfs = fine_grid(alpha, beta, rng)
        steps, others = np.diff(cdfs, axis=0), cdfs.prod(axis=1)[:, None] / cdfs
        least, most = (steps * others[:-1]).sum(axis=0), (steps * others[1:]).sum(axis=0)
        beyond = 1 - cdfs[-1] + cdfs[0] * others[0]
        result = propensities(alpha, beta)
        assert (least - 1e-9 <= result).all()
        assert (result <= most + beyond + 1e-9).all()
        assert (most + beyond - least).max() < 1e-3  # the enclosure is a narrow one
        np.testing.assert_allclose(result, (least + most) / 2, atol=1e-5)  # the trapezoidal rule


@pytest.mark.parametrize("cases", [scattered, contended])
@pytest.mark.parametrize(("arms", "low", "high"), [(3, -1, 2), (8, -3, 6), (200, -3, 6), (200, 0, 3)])
def test_propensities_are_the_frequencies_with_which_draws_win(cases, arms, low, high):
    rng = np.random.default_rng(arms)
    alpha, beta = cases(rng, arms, low, high)
    trials = 20_000
    draws = draw(np.tile(alpha, trials), np.tile(beta, trials), rng).reshape(trials, arms)
    wins = np.bincount(draws.argmax(axis=1), minlength=arms) / trials
    expected = propensities(alpha, beta)
    # Five standard deviations, and a few wins for the arms that hardly ever win (Poisson).
    assert (np.abs(wins - expected) <= 5 * np.sqrt(expected / trials) + 5 / trials).all()


# --- laws ------------------------------------------------------------------------------------------------


@LAWS
@given(arms_of(-3, 6), st.randoms(use_true_random=False))
def test_permuting_the_arms_permutes_the_propensities(arms, random):
    order = random.sample(range(arms.shape[1]), arms.shape[1])
    for method in (propensities, quick_propensities):
        np.testing.assert_allclose(method(*arms[:, order]), method(*arms)[order], atol=1e-6)


@LAWS
@given(arms_of(-3, 6, most=50))
def test_propensities_add_up_to_one_without_being_normalised(arms):
    result = propensities(*arms)
    assert ((result >= 0) & (result <= 1)).all()
    assert result.sum() == pytest.approx(1, abs=1e-6)


@LAWS
@given(arms_of(-3, 6), st.integers(2, 6))
def test_identical_arms_share_equally(arms, copies):
    result = propensities(*np.append(arms, np.repeat(arms[:, -1:], copies - 1, axis=1), axis=1))
    np.testing.assert_allclose(result[-copies:], result[-1], atol=1e-9)
    alike = propensities(*np.repeat(arms[:, :1], copies, axis=1))
    np.testing.assert_allclose(alike, 1 / copies, atol=1e-6)


@LAWS
@given(arms_of(-1, 3))
def test_a_hopeless_arm_changes_nothing(arms):
    # It exceeds 1e-8 with a probability of 1e-3 at most; each other arm stays below with 1e-5 at most.
    better = np.add(arms, [[1.0], [0.0]])
    crowd = np.append(better, [[1e-3], [1e9]], axis=1)
    np.testing.assert_allclose(propensities(*crowd)[:-1], propensities(*better), atol=1e-6)


@LAWS
@given(arms_of(-3, 6))
def test_one_more_arm_never_helps_the_others(arms):
    assert (propensities(*arms)[:-1] <= propensities(*arms[:, :-1]) + 1e-6).all()


@LAWS
@given(arms_of(-3, 6, most=30))
def test_quick_propensities_are_the_exact_ones_normalised(arms):
    quick = quick_propensities(*arms)
    assert ((quick >= 0) & (quick <= 1)).all()
    np.testing.assert_allclose(quick, propensities(*arms), atol=1e-6)
    assert quick.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("arms", [2, 8, 50, 500])
def test_quick_propensities_stay_within_their_stated_error_where_arms_contend(arms):
    rng = np.random.default_rng(arms)
    for low, high in [(-3, 0), (-3, 6), (0, 3), (5, 6)] * (5 if arms < 500 else 1):
        alpha, beta = contended(rng, arms, low, high)
        np.testing.assert_allclose(quick_propensities(alpha, beta), propensities(alpha, beta), atol=2e-7)


def test_without_compiled_code_quick_propensities_are_the_exact_ones_normalised(monkeypatch):
    alpha, beta = contended(np.random.default_rng(0), 20, -3, 6)
    fast = quick_propensities(alpha, beta)
    monkeypatch.setattr(compiled, "load", lambda name: None)
    quadrature._quick.cache_clear()
    try:
        slow = quick_propensities(alpha, beta)
    finally:
        quadrature._quick.cache_clear()
    np.testing.assert_allclose(slow, fast, atol=2e-7)
    np.testing.assert_allclose(slow, propensities(alpha, beta), atol=1e-8)
    assert slow.sum() == pytest.approx(1, abs=1e-12)


# --- edges -----------------------------------------------------------------------------------------------

METHODS = pytest.mark.parametrize("method", [propensities, quick_propensities])


@METHODS
def test_one_arm_is_certain(method):
    assert method([0.3], [1e5]).tolist() == [1.0]


@METHODS
@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [
        ([1.0, 2.0, 3.0], [0.0, 5.0, 0.0], [0.5, 0.0, 0.5]),  # point masses at one beat everything
        ([0.0, 2.0, 0.0], [1.0, 5.0, 9.0], [0.0, 1.0, 0.0]),  # point masses at zero lose to anything
        ([0.0, 0.0], [1.0, 9.0], [0.5, 0.5]),
        ([0.0, 2.0, 2.0], [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    ],
)
def test_point_masses_win_lose_or_share(method, alpha, beta, expected):
    np.testing.assert_allclose(method(alpha, beta), expected, atol=1e-9)


@METHODS
@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [
        ([1e-320, 1.0], [1e-320, 1.0], [0.5, 0.5]),  # a fair coin between zero and one
        ([1e-300, 1e10], [1e-300, 1e-300], [0.25, 0.75]),  # the coin, against one that is nearly one
        ([1e-320, 3e38, 3e38], [1e-320, 1.0, 1.0], [0.5, 0.25, 0.25]),
        ([1e30, 1e30], [1e30, 1.1e30], [1.0, 0.0]),
        ([21.0, 21.0], [1e8 + 1, 1e8 + 1], [0.5, 0.5]),
    ],
)
def test_absurd_parameters_still_give_the_right_limit(method, alpha, beta, expected):
    np.testing.assert_allclose(method(alpha, beta), expected, atol=1e-6)


def test_counts_of_clicks_and_views_take_no_more_panels_than_other_numbers(monkeypatch):
    panels = []

    def counted(arms, left, *rest):
        panels.append(len(left))
        return shares(arms, left, *rest)

    shares = quadrature._shares
    monkeypatch.setattr(quadrature, "_shares", counted)
    propensities([21.0, 25.0, 1000.0], [1e8, 1.2e8, 4e9])
    assert sum(panels) < 100


@METHODS
def test_any_layout_and_number_type_will_do(method):
    whole = np.array([[3, 1], [2, 5], [1, 1]])
    expected = method([3.0, 2.0, 1.0], [1.0, 5.0, 1.0])
    frozen = whole.astype(np.float64)
    frozen.flags.writeable = False
    np.testing.assert_array_equal(method(whole[:, 0], whole[:, 1].tolist()), expected)
    np.testing.assert_array_equal(method(frozen[:, 0], frozen[:, 1]), expected)


@METHODS
@pytest.mark.parametrize(
    ("alpha", "beta", "message"),
    [
        ([], [], "at least one arm"),
        ([1.0, 2.0], [1.0], "length 2"),
        ([[1.0]], [[1.0]], "one-dimensional"),
        ([1.0, -1.0], [1.0, 1.0], "got -1 in row 1"),
        ([1.0, 1.0], [-2.0, 1.0], "got -2 in row 0"),
        ([1.0, 0.0], [1.0, 0.0], "both be zero, as they are in row 1"),
        ([np.nan, 1.0], [1.0, 1.0], "finite"),
        ([1.0, 1.0], [1.0, np.inf], "finite"),
    ],
)
def test_bad_parameters_are_named(method, alpha, beta, message):
    with pytest.raises(ValueError, match=message):
        method(alpha, beta)


def test_compiled_code_leaves_subnormal_numbers_alone():
    quick_propensities([1.0, 2.0], [2.0, 1.0])
    assert np.float64(1e-310) * 0.5 > 0
