from typing import Any

import numpy as np
import pytest

from tercet.reference.exact import ReferenceSet, _available
from tests.laws.references import ReferenceLaws, World, by_id


class TestNumba(ReferenceLaws):
    def make(self, *, dim: int = 3, bandwidth: float = 0.7, **options: Any) -> ReferenceSet:
        return ReferenceSet(dim=dim, bandwidth=bandwidth, engine="numba", **options)


class TestNumpy(ReferenceLaws):
    def make(self, *, dim: int = 3, bandwidth: float = 0.7, **options: Any) -> ReferenceSet:
        return ReferenceSet(dim=dim, bandwidth=bandwidth, engine="numpy", **options)

    def reload(self, references: ReferenceSet) -> ReferenceSet:
        return ReferenceSet.from_arrays(*references.to_arrays(), engine="numpy")


@pytest.mark.parametrize("bad", [{"dim": 0}, {"bandwidth": 0.0}, {"bandwidth": np.nan}, {"half_life": -1.0}])
def test_bad_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ReferenceSet(**({"dim": 2, "bandwidth": 1.0} | bad))


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="engine must be"):
        _available("fortran")


def test_rows_survive_in_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tercet.reference.layout.CHUNK_NUMBERS", 3 * 512)  # one block of 512 rows a chunk
    world = World(0, 2000)
    references = ReferenceSet(dim=3, bandwidth=0.7)
    references.append(world.points[:700], world.rewards[:700])
    references.append(world.points[700:], world.rewards[700:])
    assert len(references._storage.chunks) == 4
    np.testing.assert_allclose(references.densities, world.densities(), rtol=1e-10)
    gone = np.arange(2000) % 3 != 0
    references.forget(gone)
    assert len(references._storage.chunks) == 2
    world.points = world.points[~gone]
    np.testing.assert_allclose(by_id(references), world.densities(), rtol=1e-10)


@pytest.mark.parametrize("bandwidth", [1e-30, 1e-3, 1e30])
def test_any_bandwidth_works(bandwidth: float) -> None:
    world = World(1, 50, bandwidth=1.0)
    references = ReferenceSet(dim=3, bandwidth=bandwidth)
    references.append(world.points * bandwidth, world.rewards)
    mass, _ = world.estimate()
    np.testing.assert_allclose(references.estimate(world.queries * bandwidth).mass, mass, rtol=2e-5)


def test_float32_embeddings_need_no_second_half() -> None:
    world = World(2, 100)
    references = ReferenceSet(dim=3, bandwidth=0.7)
    references.append(world.points.astype(np.float32), world.rewards)
    assert not references._storage.split
    world.points = world.points.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(references.densities, world.densities(), rtol=1e-10)


@pytest.mark.parametrize("half_life", [None, 7.0])
def test_moved_outcomes_are_those_that_were_appended_there(half_life: float | None) -> None:
    world, elsewhere = World(4, 60), np.random.default_rng(0).normal(size=(60, 2))
    references = ReferenceSet(dim=3, bandwidth=0.7, half_life=half_life)
    references.append(world.points, world.rewards)
    gone = np.arange(60) % 5 == 0
    references.forget(gone)
    kept = np.flatnonzero(~gone)
    moved = references.moved(elsewhere[kept], bandwidth=1.3)
    expected = ReferenceSet(dim=2, bandwidth=1.3, half_life=half_life)
    expected.append(elsewhere[kept], world.rewards[kept], kept.astype(float), kept)
    np.testing.assert_array_equal(moved.ids, kept)
    np.testing.assert_array_equal(moved.times, kept)
    np.testing.assert_array_equal(moved.rewards, expected.rewards)
    np.testing.assert_allclose(moved.densities, expected.densities, rtol=1e-10)
    moved.append(elsewhere[:1], [1.0])
    assert (moved.ids[-1], moved.newest) == (60, 60.0)  # the count goes on
    with pytest.raises(ValueError, match="as many as the references, 48; got 60"):
        references.moved(elsewhere, bandwidth=1.0)


def test_an_empty_memory_can_be_moved() -> None:
    references = ReferenceSet(dim=3, bandwidth=0.7).moved(np.empty((0, 2)), bandwidth=1.0)
    assert (len(references), references.dim, references.bandwidth) == (0, 2, 1.0)


@pytest.mark.soak
def test_a_long_random_life_stays_exact() -> None:
    world = World(3, 20_000)
    references = ReferenceSet(dim=3, bandwidth=0.7)
    for start in range(0, 20_000, 50):
        part = slice(start, start + 50)
        references.append(world.points[part], world.rewards[part])
        references.forget(world.rng.random(len(references)) < 0.02)
    world.points = world.points[np.sort(references.ids)]
    np.testing.assert_allclose(by_id(references), world.densities(), rtol=1e-10)
