from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import block_diag

from tercet import Feedback, ReferenceSet, iwkr
from tercet.embedding.grove import grown
from tercet.embedding.rivals import implied
from tercet.embedding.unlearned import log_loss
from tercet.policies import calibration
from tercet.policies.calibration import (
    BANDWIDTHS,
    BLUNTEST,
    DOUBT,
    LUCK,
    PRIOR_WEIGHT,
    PULLS,
    SHARPEST,
    STACKING,
    Fixed,
    Trained,
    _lowest,
    _sharpness,
    _stacked,
    convene,
    together,
    weighed,
    weighed_trees,
)
from tercet.policies.held_out import Glade, Sight
from tercet.policies.views import View, combined


def arms_only(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return arms


def blind(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return np.zeros((len(arms), 1))


def signs(n: int, *, seed: int = 0, flip: int | None = None, gap: float = 0.8, **changes: Any) -> Feedback:
    """Arms above and below 0 earn differently, and change places whenever `flip` outcomes have passed."""
    rng = np.random.default_rng(seed)
    arms, times = rng.uniform(-2, 2, size=(n, 1)), np.arange(n)
    turn = 1.0 if flip is None else (-1.0) ** (times // flip)
    means = 0.5 + gap / 2 * np.sign(arms[:, 0]) * turn
    columns: dict[str, Any] = {
        "contexts": np.zeros((n, 0)),
        "arms": arms,
        "rewards": (rng.random(n) < means).astype(float),
        "times": times.astype(float),
    }
    return Feedback(**(columns | changes))


def timeless(history: Feedback) -> Feedback:
    return Feedback(contexts=history.contexts, arms=history.arms, rewards=history.rewards)


def two_folds(
    n: int, *, embed: Any = arms_only, kind: int = 0, seed: int = 0, **options: Any
) -> list[Trained]:
    order, size = np.random.default_rng(seed).permutation(n), n // 4
    return [
        Trained(embed=embed, kind=kind, held=order[i * size : (i + 1) * size], **options) for i in range(2)
    ]


def fixed(**changes: Any) -> Fixed:
    usual: dict[str, Any] = {
        "bandwidth": None,
        "sharpness": None,
        "prior": None,
        "importance": True,
        "half_life": None,
    }
    return Fixed(**(usual | changes))


def numbers(views: list[View]) -> list[tuple[float, ...]]:
    return [(v.weight, v.bandwidth, v.sharpness, *v.counts, v.pull or 0.0) for v in views]


def places(
    factor: float, *, seed: int, count: int = 400, rows: int = 60
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """At each place the truth is drawn from a Beta distribution around the estimate, and many rows share it."""
    rng = np.random.default_rng(seed)
    means, counts = rng.uniform(0.1, 0.9, size=count), rng.uniform(1, 10, size=count)
    total = factor * counts + PRIOR_WEIGHT
    truth = means if np.isinf(factor) else rng.beta(total * means, total * (1 - means))
    rewards = (rng.random((count, rows)) < truth[:, None]).astype(float)
    return np.repeat(means, rows), np.repeat(counts, rows), rewards.ravel(), [np.ones((rows, rows))] * count


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0, 10.0, 30.0])
def test_the_width_of_the_truth_around_the_estimates_is_found(factor: float) -> None:
    found = np.mean([np.log(_sharpness(*places(factor, seed=seed))) for seed in range(8)])
    assert np.exp(np.abs(found - np.log(factor))) < 1.5


@pytest.mark.parametrize("seed", range(5))
def test_luck_alone_is_no_reason_to_explore(seed: int) -> None:
    means, counts, rewards, near = places(np.inf, seed=seed)
    # With one count the Beta at SHARPEST would make the neighbours' products 7 standard errors above 0.
    assert _sharpness(means, np.ones_like(counts), rewards, near) == pytest.approx(SHARPEST)


def test_neighbours_that_err_against_each_other_are_sharp_and_those_that_err_alike_are_not() -> None:
    means, counts, near = np.full(40, 0.5), np.ones(40), [np.ones((40, 40))]
    assert _sharpness(means, counts, np.tile([0.0, 1.0], 20), near) == pytest.approx(SHARPEST)
    assert _sharpness(means, counts, np.ones(40), near) == pytest.approx(BLUNTEST)


def test_rows_without_neighbours_say_nothing_of_the_estimate() -> None:
    rng = np.random.default_rng(0)
    means, counts, rewards, near = places(2.0, seed=1, count=50)
    alone = _sharpness(means, counts, rewards, near)
    lonely = _sharpness(
        np.append(means, rng.random(30)),
        np.append(counts, rng.random(30)),
        np.append(rewards, np.repeat([0.0, 1.0], 15)),
        [*near, np.eye(30)],
    )
    assert lonely == pytest.approx(alone, rel=1e-9)


def test_kernels_in_parts_or_in_one_matrix_give_the_same_sharpness() -> None:
    means, counts, rewards, near = places(2.0, seed=2, count=20, rows=15)
    whole = _sharpness(means, counts, rewards, [block_diag(*near)])
    assert whole == pytest.approx(_sharpness(means, counts, rewards, near), rel=1e-9)


def test_counts_in_another_unit_take_the_opposite_factor() -> None:
    means, counts, rewards, near = places(3.0, seed=3)
    assert 5 * _sharpness(means, 5 * counts, rewards, near) == pytest.approx(
        _sharpness(means, counts, rewards, near), rel=1e-6
    )


@given(seed=st.integers(0, 500), kinds=st.integers(1, 5), n=st.integers(0, 60))
def test_stacking_gives_shares(seed: int, kinds: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    means, rewards = list(rng.random((kinds, n))), rng.integers(2, size=n).astype(float)
    weights = _stacked(means, rewards)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() > 0
    order = rng.permutation(kinds)
    np.testing.assert_allclose(_stacked([means[i] for i in order], rewards), weights[order], rtol=1e-9)


def test_stacking_prefers_who_foretells_better() -> None:
    rng = np.random.default_rng(0)
    truth = rng.choice([0.1, 0.9], size=300)
    rewards = (rng.random(300) < truth).astype(float)
    better, worse = 0.2 * rng.random(300) + 0.8 * truth, np.full(300, 0.5)
    first, second = _stacked([better, worse], rewards)
    assert first > 0.9
    np.testing.assert_allclose(_stacked([worse, better], rewards), [second, first], rtol=1e-9)
    np.testing.assert_allclose(_stacked([worse, worse], rewards), 0.5)


def test_no_other_shares_make_the_rewards_likelier() -> None:
    rng = np.random.default_rng(1)
    rewards = rng.integers(2, size=80).astype(float)
    # Each knows one half of the rows.
    means = [np.where(np.arange(80) % 3 > 0, 0.2 + 0.6 * rewards, 0.5), np.where(rewards > 0, 0.6, 0.4)]
    likelihoods = np.exp([-log_loss(mean, rewards) for mean in means])

    def plausibility(first: float) -> float:
        shares = np.array([first, 1 - first])
        return float(np.log(shares @ likelihoods).sum() + STACKING / 2 * np.log(shares).sum())

    found = float(_stacked(means, rewards)[0])
    assert plausibility(found) >= max(plausibility(w) for w in np.linspace(0.01, 0.99, 99)) - 1e-6


@pytest.mark.parametrize("importance", [True, False])
def test_no_other_bandwidth_and_pull_foretell_the_held_rows_better(importance: bool) -> None:
    history = timeless(signs(120))
    trained = two_folds(120)
    (view,) = convene(trained, history, fixed(importance=importance))
    mean = (history.rewards.sum() + 1) / 122
    losses = {}
    for bandwidth in BANDWIDTHS:
        for pull in PULLS:
            total = 0.0
            for one in trained:
                seen = np.setdiff1d(np.arange(120), one.held)
                kappa = iwkr.rbf(history.arms[one.held], history.arms[seen], bandwidth)
                w = 1 / iwkr.densities(iwkr.rbf(history.arms[seen], history.arms[seen], bandwidth))
                rewards = history.rewards[seen]
                mu = iwkr.iwkr(kappa, w, rewards) if importance else iwkr.nwkr(kappa, rewards)
                shrunk = (iwkr.mass(kappa) * mu + pull * mean) / (iwkr.mass(kappa) + pull)
                total += log_loss(shrunk, history.rewards[one.held]).mean()
            losses[bandwidth, pull] = total
    assert view.pull is not None
    assert losses[view.bandwidth, view.pull] <= min(losses.values()) + 1e-5


def test_where_more_outcomes_decide_than_chose_kernels_are_narrower(monkeypatch: pytest.MonkeyPatch) -> None:
    history, trained = timeless(signs(480)), two_folds(480)
    (all_chose,) = convene(trained, history, fixed())
    monkeypatch.setattr(calibration, "REFERENCES", 24)
    (few_chose,) = convene(trained, history, fixed())
    (decided,) = convene(trained, history, fixed(bandwidth=0.7))
    assert all_chose.bandwidth in BANDWIDTHS
    fifteenth = 15 ** (-1 / 6)  # of 360 rows 24 chose
    assert few_chose.bandwidth in [pytest.approx(fifteenth * width) for width in BANDWIDTHS]
    assert decided.bandwidth == 0.7


def test_views_of_a_kind_share_all_but_their_phi() -> None:
    history = timeless(signs(80))

    def mirrored(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
        return -arms

    first, second = two_folds(80)
    twins = [first, Trained(embed=mirrored, kind=0, held=second.held)]
    views = convene([*twins, *two_folds(80, embed=blind, kind=1)], history, fixed())
    assert [v.embed for v in views] == [
        arms_only,
        mirrored,
        blind,
    ]  # a phi that serves both folds is one view
    assert numbers(views)[0] == numbers(views)[1]
    assert sum(v.weight for v in views) == pytest.approx(1)
    assert views[0].weight + views[1].weight > 0.6  # the blind one knows the mean alone
    for view in views:
        assert LUCK * BLUNTEST <= view.sharpness * DOUBT <= SHARPEST
        mean = (history.rewards.sum() + 1) / 82
        np.testing.assert_allclose(view.counts, PRIOR_WEIGHT / DOUBT * np.array([mean, 1 - mean]))


def variance(trained: list[Trained], history: Feedback) -> float:
    """The mean variance of the posteriors of arms from end to end, once the views remember the history."""
    views = convene(trained, history, fixed())
    for view in views:
        points = view.embed(history.contexts, history.arms)
        view.references = ReferenceSet(dim=1, bandwidth=view.bandwidth)
        view.references.append(points, history.rewards)
    arms = np.linspace(-3, 3, 50)[:, None]
    beliefs = combined(views, [view.queries(np.empty(0), arms) for view in views], None)
    return float(np.mean(beliefs.mean * (1 - beliefs.mean) / (beliefs.alpha + beliefs.beta + 1)))


def test_a_view_of_the_mean_alone_does_not_make_the_others_sure() -> None:
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        arms = rng.uniform(-3, 3, size=(300, 1))
        rewards = rng.random(300) < 0.5 + 0.4 * np.sin(3 * arms[:, 0])
        history = timeless(signs(300, arms=arms, rewards=rewards.astype(float)))
        alone, beside = two_folds(300, seed=seed), two_folds(300, embed=blind, kind=1, seed=seed)
        ratios.append(variance([*alone, *beside], history) / variance(alone, history))
    # The same errors of the same rows: what is added knows nothing of where the first view is wrong.
    assert min(ratios) > 1 / 10


@pytest.mark.parametrize("seed", range(4))
def test_no_view_is_sharper_than_luck_allows(seed: int) -> None:
    history, trained = timeless(signs(120, seed=seed, gap=0.0)), two_folds(120, seed=seed)
    (view,) = convene(trained, history, fixed())
    sights = [Sight.of(arms_only, history, one.held, importance=True) for one in trained]
    luck = np.median([s.sharpest(view.bandwidth, None) for s in sights])
    assert view.sharpness * DOUBT <= luck * (1 + 1e-9)


def test_doubt_widens_posteriors_and_moves_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    history, trained = timeless(signs(120)), two_folds(120)
    (usual,) = convene(trained, history, fixed())
    monkeypatch.setattr(calibration, "DOUBT", 2 * DOUBT)
    (wary,) = convene(trained, history, fixed())
    assert (wary.weight, wary.bandwidth, wary.pull) == (usual.weight, usual.bandwidth, usual.pull)
    assert 2 * wary.sharpness == pytest.approx(usual.sharpness)
    np.testing.assert_allclose(2 * np.array(wary.counts), usual.counts)


@pytest.mark.parametrize("flip", [None, 30])
def test_what_the_user_has_decided_stays_as_it_is(flip: int | None) -> None:
    history, trained = signs(120, flip=flip), two_folds(120)
    decided = {"bandwidth": 0.123, "sharpness": 4.56, "prior": (0.7, 0.0)}
    for view in convene(trained, history, fixed(**decided)):
        assert (view.bandwidth, view.sharpness, view.counts, view.pull) == (0.123, 4.56, (0.7, 0.0), None)
    (view,) = convene(trained, history, fixed(half_life=7.0, bandwidth=0.123))
    assert view.bandwidth == 0.123


def test_without_a_half_life_times_mean_nothing() -> None:
    history, trained = signs(200, flip=100), two_folds(200)
    kept, timed = (numbers(convene(trained, h, fixed())) for h in (timeless(history), history))
    assert kept == timed
    assert numbers(convene(trained, history, fixed(half_life=30.0))) != kept


def test_a_decided_bandwidth_is_kept_where_no_held_row_is_new() -> None:
    old = [Trained(embed=arms_only, kind=0, held=np.arange(5))]
    (view,) = convene(old, signs(40), fixed(bandwidth=0.123, half_life=7.0))
    assert view.bandwidth == 0.123


def test_a_decided_half_life_needs_no_times_and_then_decides_nothing() -> None:
    history, trained = timeless(signs(40)), two_folds(40)
    fading, kept = (numbers(convene(trained, history, fixed(half_life=h))) for h in (7.0, None))
    assert fading == kept


def test_a_half_life_is_in_the_users_unit_of_time() -> None:
    history, trained = signs(400, flip=100), two_folds(400)
    assert history.times is not None
    hours = signs(400, flip=100, times=history.times / 3600 + 5e5)
    seconds = convene(trained, history, fixed(half_life=50.0))
    same = convene(trained, hours, fixed(half_life=50.0 / 3600))
    np.testing.assert_allclose(numbers(seconds), numbers(same), rtol=1e-4)


@pytest.mark.parametrize("half_life", [None, 20.0])
def test_the_order_of_rows_does_not_matter(half_life: float | None) -> None:
    history, trained = signs(160, flip=80), two_folds(160)
    order = np.random.default_rng(1).permutation(160)
    place = np.argsort(order)
    moved = [Trained(embed=arms_only, kind=0, held=place[one.held]) for one in trained]
    one = convene(trained, history, fixed(half_life=half_life))
    two = convene(moved, history[order], fixed(half_life=half_life))
    np.testing.assert_allclose(numbers(one), numbers(two), rtol=1e-3)


@given(best=st.integers(0, 8), slope=st.floats(0.1, 3.0))
def test_the_walk_downhill_ends_at_the_lowest_loss_and_asks_for_no_bandwidth_twice(
    best: int, slope: float
) -> None:
    asked = []

    def loss(bandwidth: float) -> tuple[float, float]:
        asked.append(bandwidth)
        place = BANDWIDTHS.index(bandwidth)
        return abs(place - best) * slope, 10.0 * place

    assert _lowest(loss, BANDWIDTHS) == (BANDWIDTHS[best], 10.0 * best)
    assert len(asked) == len(set(asked))


def glades_of(history: Feedback, trained: list[Trained]) -> list[Glade]:
    found = []
    for one in trained:
        seen = history[np.delete(np.arange(len(history)), one.held)]
        found.append(Glade.of(grown(seen, np.random.default_rng(1), trees=20), history, one.held))
    return found


@pytest.mark.parametrize("embed", [arms_only, blind])
def test_trees_weigh_more_where_the_other_phi_is_blind(embed: Any) -> None:
    history, trained = signs(400), two_folds(400, embed=embed)
    whole = grown(history, np.random.default_rng(0), trees=20)
    kind = weighed_trees(whole, glades_of(history, trained))
    first, trees = together([*weighed(trained, history, fixed()), kind], history, fixed())
    assert first.weight + trees.weight == pytest.approx(1)
    assert (trees.weight > 0.9) == (embed is blind)
    assert trees.curve is not None
    assert trees.pull in PULLS


def test_what_foretells_held_rows_is_bent_to_their_rewards() -> None:
    history, trained = signs(2_000, gap=0.5), two_folds(2_000)
    whole = grown(history, np.random.default_rng(0), trees=20)
    kind = weighed_trees(whole, glades_of(history, trained))
    # Trees of single outcomes are too sure of themselves; on the whole their means then agree with rewards.
    assert kind.curve is not None
    assert kind.curve.slope < 0.9
    assert kind.means.mean() == pytest.approx(kind.rewards.mean(), abs=0.01)
    high = kind.means > 0.6
    luck = 3 * (0.25 / high.sum()) ** 0.5
    assert kind.means[high].mean() == pytest.approx(kind.rewards[high].mean(), abs=luck)


def test_what_the_user_has_decided_holds_for_trees_too() -> None:
    history, trained = signs(200), two_folds(200)
    whole = grown(history, np.random.default_rng(0), trees=20)
    kind = weighed_trees(whole, glades_of(history, trained))
    decided = fixed(sharpness=3.0, prior=(1.0, 2.0))
    *_, trees = together([*weighed(trained, history, decided), kind], history, decided)
    assert (trees.sharpness, trees.counts, trees.pull, trees.curve) == (3.0, (1.0, 2.0), None, None)


def right(n: int = 400, *, seed: int = 0) -> Feedback:
    """Of three arms one pays: which it is, the context says."""
    rng = np.random.default_rng(seed)
    contexts, arm = rng.normal(size=(n, 1)), rng.integers(3, size=n)
    which = np.searchsorted([-0.5, 0.5], contexts[:, 0])
    return Feedback(contexts=contexts, arms=np.eye(3)[arm], rewards=(arm == which).astype(float))


def beside(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return np.hstack([contexts, 3 * arms])


def test_what_is_implied_tells_which_kind_is_right_but_not_how_sure_it_is() -> None:
    history, trained = right(), two_folds(400, embed=beside) + two_folds(400, embed=arms_only, kind=1)
    more = implied(history, np.random.default_rng(0))
    assert more is not None
    alone, together_ = (weighed(trained, history, fixed(bandwidth=0.5), each) for each in (None, more))
    for before, after in zip(alone, together_, strict=True):
        assert before.real.all()
        np.testing.assert_array_equal(after.rewards[after.real], before.rewards)
        assert after.real.sum() < len(after.real)
        assert len(after.means) == len(after.masses) == len(after.rewards) == len(after.real)
        assert [kernel.shape for kernel in after.near] == [kernel.shape for kernel in before.near]
        # The same references answer: what is implied is asked for, and never in memory here.
        if before.pull == after.pull:
            np.testing.assert_allclose(after.means[after.real], before.means)
    few, many = (together(kinds, history, fixed(bandwidth=0.5))[0].weight for kinds in (alone, together_))
    assert many > few > 0.5
