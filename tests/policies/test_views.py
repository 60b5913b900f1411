from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import ReferenceSet, iwkr
from tercet.embedding.grove import UNKNOWN, Grove, grown
from tercet.policies.reliability import Reliability
from tercet.policies.views import View, combined, overlap
from tercet.reference.leaves import Leaves
from tercet.types import Feedback, Posterior

CONTEXT = np.array([0.3, -0.2])
NOWHERE = np.full((1, 2), 1e6)  # so far from all references that no kernel reaches it


def turned(seed: int) -> Any:
    """A phi of its own for each seed: context and arm, linearly mixed."""
    mix = np.random.default_rng(seed).normal(size=(4, 3))
    return lambda contexts, arms: np.hstack([contexts, arms]) @ mix


def view(seed: int = 0, *, n: int = 30, half_life: float | None = None, **changes: Any) -> View:
    rng = np.random.default_rng(seed)
    options = {"weight": 1.0, "bandwidth": 1.5, "sharpness": 2.0, "counts": (0.5, 0.25), **changes}
    memory = ReferenceSet(dim=3, bandwidth=options["bandwidth"], half_life=half_life)
    inputs = rng.normal(size=(2, n, 2))
    memory.append(turned(seed)(*inputs), rng.random(n), np.arange(float(n)))
    return View(embed=turned(seed), references=memory, **options)


def several(count: int, *, seed: int = 0) -> list[View]:
    """Views that differ in everything, with and without a pull."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(count))
    return [
        view(
            seed + number,
            weight=float(weights[number]),
            bandwidth=float(rng.uniform(0.5, 2)),
            sharpness=float(rng.uniform(0.3, 30)),
            counts=tuple(rng.uniform(0.1, 2, size=2).tolist()),
            pull=None if number % 2 else float(rng.uniform(0.01, 2)),
        )
        for number in range(count)
    ]


def judged(views: list[View], arms: np.ndarray, time: float | None) -> Posterior:
    return combined(views, [one.queries(CONTEXT, arms) for one in views], time)


def assert_equal(one: Posterior, other: Posterior, *, rtol: float) -> None:
    for name in ("mean", "mass", "alpha", "beta"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, err_msg=name)


@given(
    seed=st.integers(0, 1000),
    sharpness=st.floats(0.1, 100),
    bandwidth=st.floats(0.3, 5),
    counts=st.tuples(st.floats(0, 10), st.floats(0.01, 10)),
)
def test_one_view_is_the_papers_posterior(
    seed: int, sharpness: float, bandwidth: float, counts: tuple[float, float]
) -> None:
    one = view(seed, sharpness=sharpness, bandwidth=bandwidth, counts=counts)
    arms = np.random.default_rng(seed).normal(size=(5, 2))
    beliefs = judged([one], arms, None)
    assert one.references is not None
    points = one.references.points
    kappa = iwkr.rbf(turned(seed)(np.tile(CONTEXT, (5, 1)), arms), points, bandwidth)
    w = 1 / iwkr.densities(iwkr.rbf(points, points, bandwidth))
    eta, mu = iwkr.mass(kappa), iwkr.iwkr(kappa, w, one.references.rewards)
    np.testing.assert_allclose(beliefs.mass, eta, rtol=1e-4, atol=1e-20)
    np.testing.assert_allclose(beliefs.alpha, sharpness * eta * mu + counts[0], rtol=1e-3)
    np.testing.assert_allclose(beliefs.beta, sharpness * eta * (1 - mu) + counts[1], rtol=1e-3)
    np.testing.assert_allclose(beliefs.mean, beliefs.alpha / (beliefs.alpha + beliefs.beta), rtol=1e-12)


@pytest.mark.parametrize("pull", [None, 0.3])
def test_an_estimate_from_memory_is_judged_as_the_view_judges_its_own(pull: float | None) -> None:
    one, queries = view(pull=pull), np.random.default_rng(4).normal(size=(5, 3))
    assert one.references is not None
    assert_equal(one.judged(one.references.estimate(queries)), one.beliefs(queries, None), rtol=0.0)


@pytest.mark.parametrize("pull", [None, 0.3])
@given(weights=st.lists(st.floats(0.01, 1), min_size=2, max_size=6))
def test_equal_views_say_what_one_says(pull: float | None, weights: list[float]) -> None:
    arms = np.random.default_rng(1).normal(size=(4, 2))
    alone = judged([view(pull=pull)], arms, None)
    many = [view(pull=pull, weight=weight / sum(weights)) for weight in weights]
    assert_equal(judged(many, arms, None), alone, rtol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_means_masses_and_counts_are_the_views_weighted_means(count: int) -> None:
    views, arms = several(count), np.random.default_rng(2).normal(size=(6, 2))
    together = judged(views, arms, None)
    each = [judged([one], arms, None) for one in views]
    weights = np.array([one.weight for one in views])
    np.testing.assert_allclose(together.mean, weights @ [b.mean for b in each], rtol=1e-12)
    np.testing.assert_allclose(together.mass, weights @ [b.mass for b in each], rtol=1e-12)
    counts = weights @ [b.alpha + b.beta for b in each]
    np.testing.assert_allclose(together.alpha + together.beta, counts, rtol=1e-12)
    np.testing.assert_allclose(together.alpha, counts * together.mean, rtol=1e-12)


@given(order=st.permutations(range(5)))
def test_the_order_of_views_does_not_matter(order: list[int]) -> None:
    views, arms = several(5), np.random.default_rng(3).normal(size=(4, 2))
    straight = judged(views, arms, None)
    assert_equal(judged([views[i] for i in order], arms, None), straight, rtol=1e-12)


@given(pull=st.floats(1e-3, 100), seed=st.integers(0, 100))
def test_a_pull_moves_the_mean_and_leaves_the_counts(pull: float, seed: int) -> None:
    arms = np.random.default_rng(seed).normal(size=(5, 2))
    free, pulled = (judged([view(seed, pull=each)], arms, None) for each in (None, pull))
    np.testing.assert_array_equal(pulled.mass, free.mass)
    np.testing.assert_allclose(pulled.alpha + pulled.beta, free.alpha + free.beta, rtol=1e-12)
    estimate = (free.alpha - 0.5) / (2.0 * free.mass)  # of the references alone
    usual = 0.5 / (0.5 + 0.25)
    shrunk = (free.mass * estimate + pull * usual) / (free.mass + pull)
    np.testing.assert_allclose(pulled.mean, shrunk, rtol=1e-9)
    np.testing.assert_allclose(pulled.alpha, (pulled.alpha + pulled.beta) * shrunk, rtol=1e-9)


@given(
    pull=st.none() | st.floats(1e-3, 100),
    counts=st.tuples(st.floats(0.01, 10), st.floats(0.01, 10)),
    remembers=st.booleans(),
)
def test_an_arm_without_evidence_has_the_priors_counts(
    pull: float | None, counts: tuple[float, float], remembers: bool
) -> None:
    one = view(counts=counts, pull=pull)
    if not remembers:
        one.references = None
    beliefs = judged([one], NOWHERE, None)
    assert beliefs.mass[0] == 0
    np.testing.assert_allclose([beliefs.alpha[0], beliefs.beta[0]], counts, rtol=1e-12)
    np.testing.assert_allclose(beliefs.mean[0], counts[0] / sum(counts), rtol=1e-12)


def test_rounding_of_the_weights_never_leaves_the_unit_interval() -> None:
    sizes = [size for size in range(2, 200) if sum([1 / size] * size) > 1]
    for size in sizes[:3]:
        sure = view(n=1, counts=(1.0, 0.0), weight=1 / size)
        sure.references = None  # the prior alone: a mean of exactly 1
        beliefs = judged([sure] * size, np.zeros((1, 2)), None)
        assert (beliefs.mean[0], beliefs.beta[0]) == (1.0, 0.0)
    assert sizes


def test_every_view_is_asked_as_of_the_same_time() -> None:
    views = [view(seed, half_life=10.0, weight=0.5) for seed in (1, 2)]
    arms = np.random.default_rng(4).normal(size=(3, 2))
    now, later = (judged(views, arms, time) for time in (29.0, 39.0))
    np.testing.assert_allclose(later.mass, now.mass / 2, rtol=1e-6)
    np.testing.assert_allclose(judged(views, arms, None).mass, now.mass, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_arms_overlap_as_the_views_say_together(count: int) -> None:
    views, arms = several(count), np.random.default_rng(5).normal(size=(7, 2))
    arms[3] = arms[0]
    queries = [one.queries(CONTEXT, arms) for one in views]
    expected = sum(
        one.weight * iwkr.rbf(points, points, np.sqrt(2) * one.bandwidth)
        for one, points in zip(views, queries, strict=True)
    )
    common = overlap(views, queries)
    np.testing.assert_allclose(common, expected, rtol=1e-9)
    np.testing.assert_allclose(common.diagonal(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(common[3], common[0], rtol=1e-12)
    assert np.linalg.eigvalsh(common).min() > -1e-12


def of_trees(*, weight: float = 0.4, **changes: Any) -> View:
    """A view of trees, which knows no arm whose second feature is not 0."""
    rng = np.random.default_rng(7)
    arms = np.column_stack([rng.normal(size=40), np.zeros(40)])
    past = Feedback(contexts=rng.normal(size=(40, 2)), arms=arms, rewards=rng.random(40).round())
    grove = grown(past, rng, trees=5)
    memory = Leaves(trees=5, leaves=grove.leaves)
    memory.append(grove(past.contexts, past.arms), past.rewards)
    options = {"bandwidth": 1.0, "sharpness": 2.0, "counts": (0.5, 0.25), "pull": 0.1, **changes}
    return View(embed=grove, weight=weight, references=memory, **options)


def test_trees_that_know_nothing_of_an_arm_leave_it_to_the_others() -> None:
    trees, other = of_trees(), view(weight=0.6)
    known, unknown = np.array([[0.3, 0.0]]), np.array([[0.3, 1.0]])
    assert (trees.queries(CONTEXT, unknown) == UNKNOWN).all()
    alone = judged([view(weight=1.0)], unknown, None)
    assert_equal(judged([other, trees], unknown, None), alone, rtol=1e-12)
    both = judged([other, trees], known, None)
    expected = 0.6 * judged([view()], known, None).mean + 0.4 * judged([of_trees()], known, None).mean
    np.testing.assert_allclose(both.mean, expected)


def test_forgotten_trees_say_nothing() -> None:
    trees, arms = of_trees(), np.array([[0.3, 0.0]])
    assert isinstance(trees.references, Leaves)
    trees.references.forget(np.ones(40, bool))
    assert_equal(
        judged([view(weight=0.6), trees], arms, None), judged([view(weight=1.0)], arms, None), rtol=1e-12
    )


def test_arms_overlap_as_far_as_trees_have_them_in_one_leaf() -> None:
    trees = of_trees(weight=1.0)
    arms = np.array([[0.3, 0.0], [0.3, 0.0], [-2.0, 0.0], [0.3, 1.0], [0.3, 2.0]])
    points = trees.queries(CONTEXT, arms)
    common = overlap([trees], [points])
    np.testing.assert_array_equal(common, common.T)
    np.testing.assert_array_equal(common.diagonal(), 1.0)
    assert common[0, 1] == 1.0
    assert common[0, 2] == (points[0] == points[2]).mean()
    assert common[3, 4] == 0.0  # two newcomers, of which no tree knows anything
    assert isinstance(trees.embed, Grove)


def test_a_curve_bends_the_mean_and_not_the_evidence() -> None:
    curve = Reliability(offset=0.5, slope=1.7)
    plain, bent = of_trees(weight=1.0), of_trees(weight=1.0, curve=curve)
    arms = np.column_stack([np.linspace(-2, 2, 9), np.zeros(9)])
    one, other = judged([plain], arms, None), judged([bent], arms, None)
    np.testing.assert_allclose(other.mean, curve.mean(one.mean))
    np.testing.assert_allclose(other.alpha + other.beta, one.alpha + one.beta)
