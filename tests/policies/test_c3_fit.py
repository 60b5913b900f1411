from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import C3, Decay, Feedback, RandomDrop, Training, Window
from tercet.embedding.inference import Perceptron
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.residual import Residual
from tercet.environments import tables
from tercet.environments.classification import Classification
from tercet.environments.drift import Drift
from tercet.loop import Streams
from tercet.policies import c3_fit
from tercet.reference.leaves import Leaves
from tests.laws.policies import ARMS, contents, history
from tests.test_package import modules_after

QUICK = LeaveOneOut(epochs=1, steps=5)


def arms_only(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    return arms


class Times:
    """The arms, times a factor."""

    def __init__(self, size: float) -> None:
        self.size = size

    def __call__(self, contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
        return self.size * arms


def chance(arms: np.ndarray) -> np.ndarray:
    return 0.5 + 0.45 * np.sin(2 * arms[:, 0])


def waves(n: int, *, seed: int = 0, flip: int | None = None, **changes: Any) -> Feedback:
    """Arms on a line, good and bad ones in turn; whenever `flip` outcomes have passed they change places."""
    rng = np.random.default_rng(seed)
    arms = rng.uniform(-3, 3, size=(n, 1))
    turned = np.zeros(n, bool) if flip is None else np.arange(n) // flip % 2 == 1
    means = np.where(turned, 1 - chance(arms), chance(arms))
    columns: dict[str, Any] = {
        "contexts": np.zeros((n, 0)),
        "arms": arms,
        "rewards": (rng.random(n) < means).astype(float),
        "times": np.arange(float(n)),
    }
    return Feedback(**(columns | changes))


def fitted(past: Feedback, *, seed: int = 0, remember: bool = True, **options: Any) -> C3:
    policy = C3(**({"training": QUICK, "progress": False, "dim": 4} | options))
    policy.fit(past, np.random.default_rng(seed), remember=remember)
    return policy


def surprised(policy: C3) -> tuple[float | None, ...] | None:
    """How surprises are to be remembered."""
    found = policy.state.surprises
    if found is None:
        return None
    return found.references.half_life, found.rate, found.counts, *found.embed.weights[0].ravel()


def decisions(policy: C3) -> tuple[Any, list[bytes]]:
    """All that a fit has decided: numbers, and the arrays of each phi."""
    views = policy.state.views
    numbers = [(v.weight, v.bandwidth, v.sharpness, v.counts, v.pull) for v in views]
    arrays = [array.tobytes() for v in views for _, array in sorted(v.embed.to_arrays()[0].items())]  # type: ignore[attr-defined]
    return (numbers, surprised(policy)), arrays


def test_a_short_history_is_served_without_torch() -> None:
    code = f"""
import numpy as np, tercet
from tests.laws.policies import ARMS, history
for rows in (0, 1, {c3_fit.LEAST - 1}):
    policy, rng = tercet.C3(), np.random.default_rng(0)
    policy.fit(history(n=rows), rng)
    assert len(policy.state.views) == 1 and len(policy) == rows
    for _ in range(5):
        choice = policy.choose([0.1, 0.2], ARMS, rng, time=9.0)
        assert abs(choice.propensities.sum() - 1) < 1e-9
        arm = ARMS[choice.arm]
        policy.update(tercet.Feedback.one(context=[0.1, 0.2], arm=arm, reward=1.0, time=9.0), rng)
"""
    assert "torch" not in modules_after(code)


def test_a_phi_of_ones_own_is_fitted_without_torch() -> None:
    code = """
import numpy as np, tercet
from tercet.policies import c3_fit
from tests.laws.policies import ARMS, history
c3_fit.SMALL = 59  # as if this history were long
policy, rng = tercet.C3(phi=lambda contexts, arms: np.hstack([contexts, arms])), np.random.default_rng(0)
policy.fit(history(n=60), rng)
policy.choose([0.1, 0.2], ARMS, rng)
"""
    assert "torch" not in modules_after(code)


def test_a_history_is_seen_by_four_networks_and_by_its_features() -> None:
    policy = fitted(history(n=60))
    kinds = [type(view.embed) for view in policy.state.views]
    assert kinds == [Residual] * 4 + [Perceptron]
    assert sum(view.weight for view in policy.state.views) == pytest.approx(1)
    assert min(view.weight for view in policy.state.views) > 0
    for view in policy.state.views:
        assert view.references is not None
        assert (len(view.references), view.references.bandwidth) == (60, view.bandwidth)


@pytest.mark.parametrize(("losses", "better"), [((0.5, 0.4), 48), ((0.4, 0.401), 0)])
@pytest.mark.parametrize("ample", [False, True])
def test_a_long_history_is_seen_by_one_network_of_each_kind_or_by_four_of_the_better(
    losses: tuple[float, float], better: int, ample: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c3_fit, "SMALL", 59)
    monkeypatch.setattr(c3_fit, "on_gpu", lambda: ample)
    learn, calls = c3_fit.learn_committee, []

    def watched(history: Feedback, plans: Any, rng: np.random.Generator, **options: Any) -> Any:
        calls.append(plans)
        found = learn(history, plans, rng, **options)
        return [(phi, loss) for (phi, _), loss in zip(found, losses * 2, strict=False)]

    monkeypatch.setattr(c3_fit, "learn_committee", watched)
    policy = fitted(history(n=60), training=LeaveOneOut(epochs=4, steps=5, width=8))
    first, *more = calls
    assert [count for count, _ in first] == [0, 48]
    assert np.array_equal(first[0][1], first[1][1])  # or they could not be compared
    assert [[count for count, _ in plans] for plans in more] == ([[better] * 3] if ample else [])
    assert [type(view.embed) for view in policy.state.views] == [Residual] * (4 if ample else 2)
    held = {tuple(rows) for plans in calls for count, rows in plans if count == better}
    assert len(held) == (2 if ample else 1)
    if ample:
        assert len({view.bandwidth for view in policy.state.views}) == 1


@pytest.mark.parametrize(
    ("gpu", "n", "given", "width", "count"),
    [(False, 60, None, 128, 2), (True, 60, None, 384, 4), (True, 59, None, 128, 4), (True, 60, 12, 12, 4)],
)
def test_only_a_gpu_trains_four_wide_networks_unless_asked_to_on_a_long_history(
    gpu: bool, n: int, given: int | None, width: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c3_fit, "SMALL", 59)
    monkeypatch.setattr(c3_fit, "on_gpu", lambda: gpu)
    policy = fitted(history(n=n), training=replace(QUICK, width=given))
    networks = [view.embed for view in policy.state.views if isinstance(view.embed, Residual)]
    assert [network.first.bias.size for network in networks] == [width] * count


def test_hidden_layers_make_a_single_view_whose_numbers_are_learned() -> None:
    (view,) = fitted(history(n=80), hidden=(8,)).state.views
    assert isinstance(view.embed, Perceptron)
    assert (view.weight, view.embed.dim) == (1.0, 4)
    assert view.pull is not None


def test_equal_seeds_give_equal_policies(tmp_path: Path) -> None:
    one, two, other = (fitted(history(n=40), seed=seed) for seed in (0, 0, 1))
    assert contents(tmp_path / "a", one) == contents(tmp_path / "b", two)
    assert decisions(one) != decisions(other)


def test_a_fit_without_remembering_decides_the_same(tmp_path: Path) -> None:
    one, two = (fitted(history(n=40), remember=remember) for remember in (True, False))
    assert decisions(one) == decisions(two)
    assert all(view.references is None for view in two.state.views)


@given(n=st.integers(c3_fit.LEAST, 100_000), count=st.integers(1, c3_fit.FOLDS), seed=st.integers(0, 9))
def test_folds_share_no_row_and_leave_at_least_half_of_them_in_all(n: int, count: int, seed: int) -> None:
    folds = c3_fit._folds(n, np.random.default_rng(seed), count=count)
    together = np.concatenate(folds)
    assert len(folds) == count
    assert len(np.unique(together)) == len(together) <= n / 2
    assert 0 <= together.min() <= together.max() < n
    assert all(1 <= len(fold) == len(folds[0]) <= c3_fit.MOST_HELD for fold in folds)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_phi_of_any_size_gets_a_bandwidth_that_fits(size: float) -> None:
    past, new = waves(120), np.linspace(-3, 3, 150)[:, None]

    def error(bandwidth: float | None) -> float:
        policy = fitted(past, phi=Times(size), bandwidth=bandwidth)
        return float(np.mean((policy.beliefs([], new).mean - chance(new)) ** 2))

    best = min(error(size * share) for share in np.geomspace(0.03, 10, 8))
    assert error(None) < best + 0.01
    assert error(None) < np.var(chance(new)) / 4


@pytest.mark.parametrize("size", [1e-3, 1e3])
@pytest.mark.parametrize("flip", [None, 100])
def test_the_size_of_a_phi_matters_to_nothing_but_the_bandwidth(size: float, flip: int | None) -> None:
    past = waves(120 if flip is None else 800, flip=flip)
    one, two = (fitted(past, phi=Times(each)) for each in (3.0, 3.0 * size))
    (first,), (second,) = one.state.views, two.state.views
    assert (surprised(one) is None) == (flip is None)
    assert surprised(two) == (None if flip is None else pytest.approx(surprised(one), rel=1e-3))
    assert second.bandwidth == pytest.approx(size * first.bandwidth, rel=1e-6)
    assert (second.pull, second.counts) == (first.pull, first.counts)
    assert second.sharpness == pytest.approx(first.sharpness, rel=1e-2)


DECIDED: dict[str, Any] = {"bandwidth": 0.37, "sharpness": 4.2, "prior": (0.6, 0.2)}


WAYS: list[tuple[dict[str, Any], Any]] = [
    ({}, None),
    ({}, Decay(half_life=7.0)),
    ({"hidden": (8,)}, Decay(half_life=7.0)),
    ({"training": Training(epochs=1)}, Decay(half_life=7.0)),
    ({"phi": arms_only}, None),
    ({"phi": arms_only}, Decay(half_life=7.0)),
    ({"phi": arms_only}, Window(count=30)),
    ({"phi": arms_only}, RandomDrop(every=9)),
]


@pytest.mark.parametrize(("options", "rule"), WAYS)
def test_what_the_user_has_decided_is_used_as_given(options: dict[str, Any], rule: Any) -> None:
    policy = fitted(waves(60, flip=15), forgetting=rule, **DECIDED, **options)
    assert policy.state.forgetting == rule
    for view in policy.state.views:
        assert (view.bandwidth, view.sharpness, view.counts, view.pull) == (0.37, 4.2, (0.6, 0.2), None)
        assert view.references is not None
        assert view.references.bandwidth == 0.37
        assert view.references.half_life == (7.0 if isinstance(rule, Decay) else None)
        assert len(view.references) == (30 if isinstance(rule, Window) else 60)


@pytest.mark.parametrize("name", ["bandwidth", "sharpness", "prior"])
def test_one_decision_leaves_the_others_open(name: str) -> None:
    free, bound = (
        fitted(waves(120), phi=arms_only),
        fitted(waves(120), phi=arms_only, **{name: DECIDED[name]}),
    )
    (learned,), (view,) = free.state.views, bound.state.views
    assert (view.counts if name == "prior" else getattr(view, name)) == DECIDED[name]
    if name != "bandwidth":
        assert view.bandwidth == learned.bandwidth
    if name == "sharpness":
        assert (view.counts, view.pull) == (learned.counts, learned.pull)


def test_a_world_that_flips_surprises_unless_the_user_has_decided() -> None:
    past = waves(800, flip=100)
    auto, never, fading = (
        fitted(past, phi=arms_only, bandwidth=0.4, forgetting=rule)
        for rule in ("auto", None, Decay(half_life=50.0))
    )
    assert auto.state.surprises is not None
    assert never.state.surprises is None
    assert fading.state.surprises is None
    assert fitted(waves(120), phi=arms_only).state.surprises is None
    for policy, half_life in ((auto, None), (never, None), (fading, 50.0)):
        assert policy.state.references is not None
        assert policy.state.references.half_life == half_life


def test_another_history_is_surprising_or_not_by_itself() -> None:
    policy = fitted(waves(800, flip=100), phi=arms_only, bandwidth=0.4)
    assert policy.state.surprises is not None
    policy.fit(waves(120), np.random.default_rng(0))
    assert policy.state.surprises is None


@pytest.mark.parametrize("options", [{}, {"phi": arms_only}])
def test_a_half_life_of_ones_own_needs_no_times(options: dict[str, Any]) -> None:
    past = waves(40)
    timeless = Feedback(contexts=past.contexts, arms=past.arms, rewards=past.rewards)
    policy = fitted(timeless, forgetting=Decay(half_life=7.0), **options)
    assert policy.state.forgetting == Decay(half_life=7.0)
    assert np.isfinite(policy.choose([], [[0.0], [1.0]], np.random.default_rng(0)).propensities).all()


def test_the_paper_learns_nothing_but_its_phi() -> None:
    settings = C3.paper()
    assert (settings.spread, settings.forgetting, settings.training) == (1.0, None, Training.paper())
    past = waves(400, flip=100)
    policy = C3.paper(training=Training.paper(epochs=1), progress=False)
    policy.fit(past, np.random.default_rng(0))
    (view,) = policy.state.views
    assert isinstance(view.embed, Perceptron)
    assert [layer.shape for layer in view.embed.weights] == [(1, 64), (64, 8)]
    assert (view.weight, view.bandwidth, view.sharpness, view.counts, view.pull) == (1, 1, 1, (1, 1), None)
    assert (policy.state.forgetting, policy.state.surprises) == (None, None)


def test_algorithm_1_alone_leaves_the_numbers_at_their_usual_values() -> None:
    past = waves(400, flip=100)
    policy = fitted(past, training=Training(epochs=1, partitions=1))
    (view,) = policy.state.views
    mean = (past.rewards.sum() + 1) / 402
    assert (view.bandwidth, view.sharpness, view.pull) == (c3_fit.BANDWIDTH, c3_fit.SHARPNESS, None)
    assert view.counts == pytest.approx((c3_fit.PRIOR_WEIGHT * mean, c3_fit.PRIOR_WEIGHT * (1 - mean)))


@pytest.mark.parametrize("importance", [True, False])
def test_memories_regress_as_the_policy_says(importance: bool) -> None:
    for view in fitted(history(n=40), importance=importance).state.views:
        assert view.references is not None
        assert view.references.importance == importance


def test_features_that_say_nothing_are_no_trouble() -> None:
    rng = np.random.default_rng(0)
    for rewards in (np.zeros(40), (np.arange(40) % 2).astype(float)):
        past = Feedback(contexts=np.zeros((40, 2)), arms=np.ones((40, 1)), rewards=rewards)
        for options in ({}, {"phi": arms_only}):
            policy = fitted(past, **options)
            choice = policy.choose([0.0, 0.0], [[1.0], [2.0]], rng)
            assert choice.propensities.sum() == pytest.approx(1)


def class_worlds(folder: Path) -> Iterator[Any]:
    """A world of classes, and the same with other labels and features in its evaluated rows."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(150, 3))
    labels = (features[:, 0] > 0) + (features[:, 1] > 0.5).astype(int)
    recipe = Classification(data="toy", folder=folder / "a")
    for name in ("a", "b"):
        (folder / name).mkdir()
        np.savez(folder / name / "toy.npz", X=features, y=labels)
        world = replace(recipe, folder=folder / name).draw(np.random.default_rng(1))
        yield world
        labels, features = labels.copy(), features.copy()
        labels[world.evaluated] = rng.permutation(labels[world.evaluated])
        features[world.evaluated] = rng.normal(scale=5, size=(len(world.evaluated), 3))


def drifting_worlds(folder: Path) -> Iterator[Any]:
    """A world that is redrawn now and then, and the same with another future."""
    world = Drift(kind="abrupt", logged=60, steps=20, interval=20).draw(np.random.default_rng(0))
    yield world
    heights = world.heights.copy()
    heights[3:] = np.random.default_rng(1).normal(scale=3, size=heights[3:].shape)
    yield replace(world, heights=heights)


@pytest.mark.parametrize("worlds", [class_worlds, drifting_worlds])
@pytest.mark.parametrize("options", [{}, {"hidden": (8,)}, {"trees": 4}])
def test_a_fit_never_peeks_at_what_is_evaluated(
    worlds: Any, options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c3_fit, "TREES_FROM", 60 if "trees" in options else 1_000)
    found, futures = [], []
    for number, world in enumerate(worlds(tmp_path)):
        policy = C3(dim=4, training=QUICK, progress=False, **options)
        streams = Streams.of(np.random.default_rng(2))
        policy.fit(world.history(streams.history), streams.fit)
        futures.append(np.array([round_.rewards for round_ in world.rounds(np.random.default_rng(3))]))
        found.append((decisions(policy), contents(tmp_path / str(number), policy)))
    assert not np.array_equal(*futures)
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{}, {"hidden": (8,)}])
def test_a_fit_does_look_at_the_history(options: dict[str, Any]) -> None:
    past = history(n=60)
    columns = {"contexts": past.contexts, "arms": past.arms, "times": past.times}
    rewards = np.random.default_rng(0).permutation(past.rewards)
    one, two = fitted(past, **options), fitted(Feedback(**columns, rewards=rewards), **options)
    assert decisions(one)[0] != decisions(two)[0]
    assert decisions(one)[1] != decisions(two)[1]


def test_choices_after_a_fit_are_better_than_chance() -> None:
    policy, rng = fitted(history(n=120)), np.random.default_rng(0)
    right = [
        policy.choose(context, ARMS, rng, time=12.0).arm == 1 + (context[0] > 0)
        for context in rng.uniform(-1, 1, size=(60, 2))
    ]
    # Chance is a third: five standard errors above it is .64.
    assert np.mean(right) > 0.64


def test_networks_learn_in_the_bandwidth_that_is_given(rng: np.random.Generator) -> None:
    arms = rng.normal(size=(120, 2))
    rewards = (arms[:, 0] > 0).astype(float)
    history = Feedback(contexts=np.empty((120, 0)), arms=arms, rewards=rewards)
    spreads = []
    for bandwidth in (0.1, 10.0):
        policy = C3(bandwidth=bandwidth, training=LeaveOneOut(epochs=20, steps=5), progress=False)
        policy.fit(history, np.random.default_rng(0))
        points = policy.state.views[0].embed(history.contexts, arms)
        apart = points[rewards == 1].mean(axis=0) - points[rewards == 0].mean(axis=0)
        spreads.append(np.linalg.norm(apart))
    assert spreads[1] > 2 * spreads[0]


def long(n: int = c3_fit.TREES_FROM, **changes: Any) -> Feedback:
    return waves(n, **changes)


def sees_trees(policy: C3) -> list[bool]:
    return [view.trees for view in policy.state.views]


@pytest.mark.slow
def test_a_history_of_a_thousand_is_seen_by_trees_too() -> None:
    policy = fitted(long(), trees=8)
    assert sees_trees(policy) == [False] * 5 + [True]
    assert policy.state.surprises is None
    trees = policy.state.views[-1]
    assert isinstance(trees.references, Leaves)
    assert (len(trees.references), trees.references.dim) == (c3_fit.TREES_FROM, 8)
    assert sum(view.weight for view in policy.state.views) == pytest.approx(1)
    # A place in a space is what networks and features have.
    places = policy.embed(long().contexts[:3], long().arms[:3])
    assert places.shape == (
        3,
        sum(view.embed(long().contexts[:1], long().arms[:1]).shape[1] for view in policy.state.views[:-1]),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("past", "options"),
    [
        (long(c3_fit.TREES_FROM - 1), {}),
        (long(), {"trees": 0}),
        (long(), {"hidden": (8,)}),
        (long(), {"forgetting": Decay(half_life=300.0)}),
        (long(2_000, flip=400), {}),
    ],
    ids=["short", "none wanted", "one network", "fading", "drift"],
)
def test_trees_are_not_for(past: Feedback, options: dict[str, Any]) -> None:
    policy = fitted(past, **({"trees": 8} | options))
    assert not any(sees_trees(policy))
    if len(past) == 2_000:
        assert policy.state.surprises is not None  # which trees would have to take turns with


@pytest.mark.slow
def test_without_trees_all_else_is_as_it_is_with_them() -> None:
    one, other = fitted(long(), trees=0), fitted(long(), trees=8)
    for mine, theirs in zip(one.state.views, other.state.views, strict=False):
        assert mine.bandwidth == theirs.bandwidth
        np.testing.assert_array_equal(
            mine.embed(long().contexts, long().arms), theirs.embed(long().contexts, long().arms)
        )


@pytest.mark.slow
@pytest.mark.parametrize("rule", [None, Window(count=900), RandomDrop(fraction=0.2, every=50)])
def test_trees_remember_what_the_others_remember(rule: Any) -> None:
    policy, rng = fitted(long(), trees=8, forgetting=rule), np.random.default_rng(0)
    later = long(60, seed=1, times=np.arange(60.0) + c3_fit.TREES_FROM)
    policy.update(later, rng)
    first, *_, trees = [view.references for view in policy.state.views]
    assert isinstance(trees, Leaves)
    assert first is not None
    for name in ("ids", "times"):
        np.testing.assert_array_equal(getattr(trees, name), getattr(first, name))
    evidence = policy.explain([], [0.7], most=len(first))
    assert evidence.weights.sum() == pytest.approx(1)
    assert evidence.estimate.mean[0] == pytest.approx(evidence.weights @ evidence.rewards, abs=1e-4)


@pytest.mark.slow
def test_ctrl_c_while_trees_grow_keeps_the_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    expected = decisions(fitted(long(), trees=0))
    monkeypatch.setattr(c3_fit, "grown", interrupted)
    with pytest.warns(UserWarning, match="does without"):
        policy = fitted(long(), trees=8)
    assert decisions(policy) == expected
    assert len(policy) == c3_fit.TREES_FROM


@pytest.mark.parametrize("trees", [-1, True])
def test_a_bad_number_of_trees_is_refused(trees: int) -> None:
    with pytest.raises(ValueError, match="trees must be a whole number"):
        C3(trees=trees)


def classes(n: int = c3_fit.TREES_FROM, *, seed: int = 0, alone: bool = False) -> Feedback:
    """Of four arms one pays, which is often known; or each by itself, whatever the others do."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(n, 2))
    right = (contexts[:, 0] > 0) + 2 * (contexts[:, 1] > 0)
    arm = np.where(rng.random(n) < 0.5, right, rng.integers(4, size=n))
    chances = 0.5 + 0.4 * np.sin(contexts[:, 0] + arm) if alone else (arm == right).astype(float)
    return Feedback(contexts=contexts, arms=np.eye(4)[arm], rewards=(rng.random(n) < chances).astype(float))


def believed(past: Feedback, **options: Any) -> int | None:
    found = c3_fit._implied(C3(**options), past, np.random.default_rng(0))
    return None if found is None else len(found)


def test_rivals_are_found_where_a_context_has_one_right_arm() -> None:
    assert believed(classes()) == believed(classes())
    assert believed(classes()) is not None


@pytest.mark.parametrize(
    ("past", "options"),
    [
        (classes(alone=True), {}),
        (classes(c3_fit.TREES_FROM - 1), {}),
        (classes(), {"rivals": False}),
        (classes(), {"forgetting": Window(count=900)}),
        (classes(), {"forgetting": Decay(half_life=300.0)}),
        (waves(c3_fit.TREES_FROM), {}),
    ],
    ids=["no rivals", "short", "not wanted", "a window", "fading", "arms on a line"],
)
def test_nothing_is_implied_where(past: Feedback, options: dict[str, Any]) -> None:
    assert believed(past, **options) is None


@pytest.mark.slow
def test_where_arms_are_no_rivals_all_is_as_if_nobody_had_asked() -> None:
    one, other = (fitted(classes(alone=True), trees=8, rivals=rivals) for rivals in (True, False))
    assert decisions(one) == decisions(other)


@pytest.mark.slow
def test_who_knows_of_rivals_errs_less_and_goes_on_from_a_file(tmp_path: Path) -> None:
    rng, table = np.random.default_rng(0), tables.load("digits")
    logged, asked = np.split(rng.permutation(len(table))[:1_500], [1_200])
    right = table.labels[logged]
    arm = np.where(rng.random(len(right)) < 0.5, right, rng.integers(10, size=len(right)))
    past = Feedback(
        contexts=table.contexts(logged), arms=np.eye(10)[arm], rewards=(arm == right).astype(float)
    )
    errors = {}
    for rivals in (True, False):
        policy = fitted(past, trees=20, rivals=rivals)
        policy.save(tmp_path / "policy.tercet")
        loaded = C3.load(tmp_path / "policy.tercet")
        assert loaded.rivals == rivals
        means, again = (
            np.array([each.beliefs(context, np.eye(10)).mean for context in table.contexts(asked)])
            for each in (policy, loaded)
        )
        np.testing.assert_array_equal(means, again)
        errors[rivals] = np.mean((means - np.eye(10)[table.labels[asked]]) ** 2)
    assert errors[True] < errors[False] / 2
