from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import ReferenceSet
from tercet.reference.evidence import explain
from tercet.reference.exact import Estimate

N, NEWEST = 40, 39.0
OPTIONS: list[dict[str, Any]] = [
    {},
    {"importance": False},
    {"half_life": 10.0},
    {"half_life": 10.0, "importance": False},
    {"truncated": True},
]
Views = list[tuple[float, ReferenceSet, np.ndarray]]


def views(count: int, *, seed: int = 0, gone: Any = (), **options: Any) -> Views:
    """Memories of the same outcomes, each with a space, a bandwidth and a weight of its own."""
    rng = np.random.default_rng(seed)
    rewards, times = rng.random(N), rng.permutation(N).astype(float)
    kept = np.setdiff1d(np.arange(N), gone)
    made: Views = []
    for weight in rng.dirichlet(np.ones(count)):
        points, query = rng.normal(size=(N, 3)), rng.normal(scale=0.3, size=3)
        memory = ReferenceSet(dim=3, bandwidth=float(rng.uniform(1, 2)), **options)
        memory.append(points[kept], rewards[kept], times[kept], 100 + kept)
        made.append((float(weight), memory, query))
    return made


def estimate(of: Views, time: float | None) -> Estimate:
    each = [(weight, memory.estimate(query[None], time)) for weight, memory, query in of]
    return Estimate(
        mass=np.sum([weight * found.mass for weight, found in each], axis=0),
        mean=np.sum([weight * found.mean for weight, found in each], axis=0),
    )


def assert_close(one: Estimate, other: Estimate) -> None:
    np.testing.assert_allclose(one.mass, other.mass, rtol=1e-4)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-4)


@pytest.mark.parametrize("options", OPTIONS)
@given(count=st.integers(1, 4), seed=st.integers(0, 100), most=st.integers(1, N))
def test_weights_are_shares_heaviest_first(options: dict[str, Any], count: int, seed: int, most: int) -> None:
    seen = views(count, seed=seed, **options)
    whole, some = explain(seen, most=N), explain(seen, most=most)
    assert whole.weights.sum() == pytest.approx(1)
    assert (np.diff(whole.weights) <= 0).all()
    assert whole.weights.min() >= 0
    for name in ("ids", "weights", "rewards", "times"):
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[:most])


@pytest.mark.parametrize("options", OPTIONS)
def test_a_share_is_what_the_mean_owes_to_a_reward(options: dict[str, Any]) -> None:
    seen = views(3, **options)
    evidence = explain(seen, most=N)
    np.testing.assert_allclose(evidence.weights @ evidence.rewards, evidence.estimate.mean[0], rtol=1e-4)
    first = seen[0][1]
    place = {number: row for row, number in enumerate(first.ids)}
    rows = [place[number] for number in evidence.ids]
    np.testing.assert_array_equal(evidence.rewards, first.rewards[rows])
    np.testing.assert_array_equal(evidence.times, first.times[rows])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("time", [None, NEWEST, NEWEST + 7])
def test_the_estimate_is_the_views_weighted_mean(
    options: dict[str, Any], count: int, time: float | None
) -> None:
    seen = views(count, **options)
    assert_close(explain(seen, time=time).estimate, estimate(seen, time))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("most", [1, 5, 30])
def test_without_is_what_the_others_alone_would_say(options: dict[str, Any], count: int, most: int) -> None:
    evidence = explain(views(count, **options), time=NEWEST + 7, most=most)
    others = views(count, gone=evidence.ids - 100, **options)
    assert_close(evidence.without, estimate(others, NEWEST + 7))


def test_a_clock_that_runs_behind_makes_no_evidence_heavier() -> None:
    seen = views(2, half_life=10.0)
    early, now = explain(seen, time=NEWEST - 20), explain(seen, time=NEWEST)
    np.testing.assert_allclose(early.estimate.mass, now.estimate.mass)
    np.testing.assert_allclose(early.without.mass, now.without.mass)


def test_without_all_there_is_no_evidence() -> None:
    for count in (1, 3):
        without = explain(views(count), most=N).without
        assert without.mass[0] == 0
        assert without.mean[0] == pytest.approx(0.5)


def test_an_emptied_memory_gives_no_evidence() -> None:
    seen = views(2)
    for _, memory, _ in seen:
        memory.forget(np.ones(N, bool))
    evidence = explain(seen)
    assert len(evidence.ids) == 0
    assert (evidence.estimate.mass[0], evidence.without.mass[0]) == (0, 0)
