from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.environments.anchors import SLOPES
from tercet.environments.drift import KINDS, Drift, DriftingWorld, Nature

COUPLED = ("seasonal", "abrupt", "rotation", "anchors", "conditional", "lying")


def drawn(kind: str | Nature, seed: int = 0, **options: Any) -> DriftingWorld:
    return Drift(kind=kind, **options).draw(np.random.default_rng(seed))


def paths(world: DriftingWorld, context: list[float]) -> np.ndarray:
    """The log-odds of every arm (columns) over time, in one context."""
    times = np.arange(0.0, 10_000, 50)
    arms = np.tile(np.arange(len(world.groups)), (len(times), 1))
    means = world.means(times, np.tile(context, (len(times), 1)), arms)
    return np.log(means) - np.log1p(-means)


def mean_correlations(kind: str, context: list[float]) -> tuple[float, float]:
    """Of two arms within a group, and of two arms of different groups, over ten worlds."""
    within, across = [], []
    for seed in range(10):
        world = drawn(kind, seed)
        correlations = np.corrcoef(paths(world, context).T)
        same = world.groups[:, None] == world.groups
        within.append(correlations[same & ~np.eye(len(same), dtype=bool)].mean())
        across.append(correlations[~same].mean())
    return float(np.mean(within)), float(np.mean(across))


@pytest.mark.parametrize("kind", COUPLED)
def test_arms_of_a_group_move_together_and_groups_do_not(kind: str) -> None:
    within, across = mean_correlations(kind, [-0.5, 1.0, 0.3, -1.0])
    assert within == pytest.approx(1)
    # Waves spread evenly over their phases correlate by -1/5 on average, six slopes from -1 to 1 too.
    assert -0.3 < across < 0.2


def test_uncoupled_arms_move_on_their_own() -> None:
    within, across = mean_correlations("uncoupled", [-0.5, 1.0, 0.3, -1.0])
    assert abs(within) < 0.1
    assert abs(across) < 0.1


@pytest.mark.parametrize("kind", ["stationary", "arrivals"])
def test_where_only_arms_come_and_go_their_rewards_stay(kind: str) -> None:
    assert np.ptp(paths(drawn(kind), [-0.5, 1.0, 0.3, -1.0]), axis=0).max() < 1e-9


@pytest.mark.parametrize(("first", "coupled"), [(0.5, True), (-0.5, False)])
def test_neighbouring_groups_are_coupled_in_one_context_and_not_in_another(
    first: float, coupled: bool
) -> None:
    world = drawn("conditional")
    levels = paths(world, [first, 0.0, 0.0, 0.0])
    one_of_each = [int(np.flatnonzero(world.groups == group)[0]) for group in range(6)]
    gaps = np.ptp(levels[:, one_of_each[0::2]] - levels[:, one_of_each[1::2]], axis=0)
    assert ((gaps < 1e-9) == coupled).all()


def test_lying_features_tell_nothing_and_honest_ones_tell_the_group() -> None:
    for kind, low, high in (("seasonal", 0.8, 1.0), ("lying", 0.0, 0.15)):
        world = drawn(kind)
        means = np.array([world.features[world.groups == group].mean(0) for group in range(6)])
        # The share of variance between groups: 5/149 by chance.
        between = ((means[world.groups] - world.features.mean(0)) ** 2).sum()
        assert low <= between / ((world.features - world.features.mean(0)) ** 2).sum() <= high


def test_lying_and_seasonal_worlds_differ_by_their_features_alone() -> None:
    honest, lying = drawn("seasonal"), drawn("lying")
    assert not np.array_equal(honest.features, lying.features)
    rounds = (list(world.rounds(np.random.default_rng(1))) for world in (honest, lying))
    for one, two in zip(*rounds, strict=True):
        np.testing.assert_array_equal(one.rewards, two.rewards)


def test_waves_have_their_period() -> None:
    world = drawn("seasonal", period=1000.0)
    levels = paths(world, [0.0] * 4)
    np.testing.assert_allclose(levels[20:], levels[:-20], atol=1e-9)  # 20 steps of 50
    assert np.ptp(levels, axis=0).min() > 1.9 * KINDS["seasonal"].swing


@pytest.mark.parametrize("kind", ["abrupt", "anchors"])
def test_levels_change_exactly_where_rounds_are_marked(kind: str) -> None:
    world = drawn(kind, logged=130, steps=300, interval=100)
    rounds = list(world.rounds(np.random.default_rng(0)))
    assert [round_.time for round_ in rounds if round_.changed] == [200.0, 300.0, 400.0]
    times = np.arange(430.0)
    level = world.means(times, np.zeros((430, 4)), np.zeros((430, 1), dtype=np.int64))[:, 0]
    np.testing.assert_array_equal(np.flatnonzero(np.diff(level)) + 1, [100, 200, 300, 400])


def test_no_round_of_a_smooth_world_is_marked() -> None:
    for kind in ("seasonal", "rotation", "stationary"):
        assert not any(round_.changed for round_ in drawn(kind).rounds(np.random.default_rng(0)))


def test_anchored_groups_have_the_papers_slopes() -> None:
    world = drawn("anchors", logged=0, steps=200_000, interval=100)
    chances = 1 / (1 + np.exp(-world.heights))
    correlations = np.corrcoef(chances.T)
    signs = np.sign(SLOPES)
    np.testing.assert_array_equal(np.sign(correlations), np.outer(signs, signs))
    assert correlations[0, -1] < -0.95  # two Pearson correlations of .990 with the anchor, one negative


def test_rotation_turns_every_groups_weights_alike_and_keeps_their_length() -> None:
    world = drawn("rotation", period=1000.0)
    arms = np.arange(len(world.groups))[None, :]

    def weights(time: float) -> np.ndarray:
        """Each arm's log-odds at the unit vectors, less those at 0."""
        at = [world.means(np.array([time]), context[None], arms)[0] for context in (np.zeros(4), *np.eye(4))]
        levels = np.log(at) - np.log1p(-np.array(at))
        return (levels[1:] - levels[0]).T

    start, later, back = weights(0.0), weights(170.0), weights(1000.0)
    np.testing.assert_allclose(later @ later.T, start @ start.T, atol=1e-9)
    np.testing.assert_allclose((later * start).sum(1), np.cos(0.34 * np.pi) * (start**2).sum(1), atol=1e-9)
    np.testing.assert_allclose(back, start, atol=1e-9)


@given(
    kind=st.sampled_from(list(KINDS)),
    groups=st.integers(1, 4),
    members=st.integers(2, 5),
    context_features=st.sampled_from([2, 4]),
    logged=st.integers(0, 40),
    steps=st.integers(1, 40),
    interval=st.integers(1, 50),
    lifetime=st.integers(1, 30),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_worlds_of_any_size_are_sound(
    kind: str, groups: int, members: int, lifetime: int, seed: int, **options: int
) -> None:
    recipe = Drift(
        kind=replace(KINDS[kind], lifetime=lifetime),
        groups=groups,
        alive=groups * members,
        offered=2,
        **options,  # type: ignore[arg-type]
    )
    one, two = (recipe.draw(np.random.default_rng(seed)) for _ in range(2))
    assert len(one.history(np.random.default_rng(seed))) == recipe.logged
    rounds = [list(world.rounds(np.random.default_rng(seed))) for world in (one, two)]
    assert len(rounds[0]) == recipe.steps
    for left, right in zip(*rounds, strict=True):
        np.testing.assert_array_equal(left.rewards, right.rewards)
        np.testing.assert_array_equal(left.arms, right.arms)
        assert ((left.means > 0) & (left.means < 1)).all()  # type: ignore[operator]


@pytest.mark.parametrize(("kind", "lifetime"), [("seasonal", 3000), ("arrivals", 300)])
def test_arms_live_as_long_as_they_should(kind: str, lifetime: int) -> None:
    world = drawn(kind)
    seen: dict[int, list[float]] = {}
    for round_ in world.rounds(np.random.default_rng(0)):
        for arm in np.asarray(round_.arm_ids):
            seen.setdefault(int(arm), []).append(round_.time)
    spans = [times[-1] - times[0] for times in seen.values()]
    assert 0.9 * lifetime < max(spans) < lifetime
    arrived = [arm for arm, times in seen.items() if times[0] > 6050]
    assert len(arrived) == pytest.approx(30 * 4000 / lifetime, rel=0.25)


def test_groups_are_offered_evenly_and_logged_arms_were_drawn_evenly() -> None:
    world = drawn("seasonal")
    history = world.history(np.random.default_rng(0))
    assert history.arm_ids is not None
    assert history.propensities is not None
    np.testing.assert_array_equal(history.propensities, 0.1)
    counts = np.bincount(world.groups[history.arm_ids], minlength=6)
    assert (np.abs(counts - 1000) < 4 * np.sqrt(1000)).all()


def test_logged_rewards_come_at_the_means_of_their_time() -> None:
    world = drawn("abrupt")
    history = world.history(np.random.default_rng(0))
    assert history.times is not None
    assert history.arm_ids is not None
    means = world.means(history.times, history.contexts, history.arm_ids[:, None])[:, 0]
    for part in np.split(np.arange(6000), 12):  # one an interval
        surprise = (history.rewards - means)[part].sum()
        assert abs(surprise) < 4 * np.sqrt((means * (1 - means))[part].sum())


@pytest.mark.parametrize("kind", ["seasonal", "abrupt", "stationary", "lying"])
def test_choosing_evenly_misses_about_three_rewards_in_ten(kind: str) -> None:
    costs = []
    for seed in range(5):
        means = np.array([round_.means for round_ in drawn(kind, seed).rounds(np.random.default_rng(seed))])
        costs.append((means.max(1) - means.mean(1)).mean())
    # Stationary worlds spread by 23 % of their mean: four standard errors of five worlds are 41 %.
    assert np.mean(costs) == pytest.approx(0.3, rel=4 * 0.23 / np.sqrt(5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "weekly"}, "kind must be one of seasonal, .* or a Nature; got 'weekly'"),
        ({"alive": 31}, r"alive must be a multiple of groups \(6\) .* got 31"),
        ({"alive": 6}, r"at least offered \(10\); got 6"),
        ({"groups": 0}, "groups must be at least 1; got 0"),
        ({"offered": 1}, "offered must be at least 2; got 1"),
        ({"steps": 0}, "steps must be at least 1; got 0"),
        ({"logged": -1}, "logged must be at least 0; got -1"),
        ({"interval": 0}, "interval must be at least 1; got 0"),
        ({"period": 0.0}, "period must be a finite number above 0"),
        ({"kind": "rotation", "context_features": 3}, "context_features must be even"),
    ],
)
def test_impossible_drifts_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Drift(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"swing": -1.0}, "swing must be at least 0; got -1.0"),
        ({"height": float("nan")}, "height must be finite"),
        ({"coupling": "strong"}, "coupling must be one of groups, none, conditional; got 'strong'"),
        ({"lifetime": 0}, "lifetime must be at least 1 step; got 0"),
    ],
)
def test_impossible_natures_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Nature(**options)


def test_a_log_that_neglects_groups_shows_them_as_seldom_as_its_propensities_say() -> None:
    world = drawn("stationary", logged=20_000, neglected=3, seldom=0.05)
    history = world.history(np.random.default_rng(1))
    assert history.arm_ids is not None
    assert history.propensities is not None
    # Half of the arms are neglected, and ten of thirty offered: about 1 in 21 rows shows one of them.
    assert (world.groups[history.arm_ids] < 3).mean() == pytest.approx(1 / 21, rel=0.15)
    # Rows weighted against their propensities are as if arms had been drawn evenly.
    weights = 1 / (10 * history.propensities)
    assert weights.mean() == pytest.approx(1, abs=0.1)
    assert np.average(world.groups[history.arm_ids] < 3, weights=weights) == pytest.approx(0.5, abs=0.05)


def test_a_group_that_was_never_shown_is_offered_all_the_same() -> None:
    world = drawn("stationary", logged=2000, steps=100, neglected=3, seldom=1e-6)
    history = world.history(np.random.default_rng(1))
    assert history.arm_ids is not None
    assert (world.groups[history.arm_ids] >= 3).mean() > 0.99
    offered = np.concatenate([round_.arm_ids for round_ in world.rounds(np.random.default_rng(2))])
    assert set(world.groups[offered]) == set(range(6))


@pytest.mark.parametrize("options", [{"neglected": -1}, {"seldom": 0.0}, {"seldom": float("nan")}])
def test_neglect_is_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Drift(**options)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_while_a_world_is_still_nothing_moves_and_then_all_is_as_without(kind: str) -> None:
    still, moving, context = drawn(kind, still=3000), drawn(kind), [-0.5, 1.0, 0.3, -1.0]
    waited, moved = paths(still, context), paths(moving, context)  # every 50 steps
    assert np.ptp(waited[:61], axis=0).max() < 1e-9
    np.testing.assert_array_equal(waited[60:], moved[60:])


def test_a_change_is_marked_where_a_still_world_first_moves_and_not_before() -> None:
    world = drawn("abrupt", logged=800, steps=1700, still=1000)
    changed = [round_.time for round_ in world.rounds(np.random.default_rng(0)) if round_.changed]
    assert changed == [1500.0, 2000.0]


def test_stillness_is_checked() -> None:
    with pytest.raises(ValueError, match="still must be at least 0; got -1"):
        Drift(still=-1)
