"""What every reference set must satisfy: subclass the laws and say how to make one."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet import iwkr
from tercet.checks import Vector

# The masses and means of a decision are float32 sums over blocks: 24 bits, 512 terms a block in 16 lanes.
DECISION = 2e-5
DENSITY = 1e-10


class World:
    """Random outcomes, and the brute-force answers about them."""

    def __init__(
        self, seed: int, n: int, dim: int = 3, bandwidth: float = 0.7, *, shift: float = 0.0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.rng, self.bandwidth = rng, bandwidth
        self.points = rng.normal(size=(n, dim)) + shift
        self.rewards = rng.uniform(size=n)
        self.queries = rng.normal(size=(7, dim)) + shift

    def densities(self) -> Vector:
        return iwkr.densities(iwkr.rbf(self.points, self.points, self.bandwidth))

    def estimate(self, *, importance: bool = True) -> tuple[Vector, Vector]:
        kappa = iwkr.rbf(self.queries, self.points, self.bandwidth)
        w = 1 / self.densities() if importance else np.ones(len(self.points))
        return iwkr.mass(kappa), iwkr.iwkr(kappa, w, self.rewards)


def by_id(references: Any) -> Vector:
    return references.densities[np.argsort(references.ids)]


class ReferenceLaws:
    """Append, forget and estimate are the paper's sums, whatever the order of events."""

    def make(self, *, dim: int = 3, bandwidth: float = 0.7, **options: Any) -> Any:
        raise AssertionError("say how to make the reference set under test")

    def reload(self, references: Any) -> Any:
        return type(references).from_arrays(*references.to_arrays())

    def filled(self, world: World, **options: Any) -> Any:
        references = self.make(dim=world.points.shape[1], bandwidth=world.bandwidth, **options)
        references.append(world.points, world.rewards)
        return references

    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(0, 40), min_size=1, max_size=5))
    def test_densities_equal_a_recompute_after_any_appends_and_forgets(
        self, seed: int, sizes: list[int]
    ) -> None:
        world = World(seed, sum(sizes))
        references = self.make()
        alive = np.zeros(0, int)
        start = 0
        for size in sizes:
            part = slice(start, start + size)
            references.append(world.points[part], world.rewards[part], ids=np.arange(start, start + size))
            alive, start = np.append(alive, np.arange(start, start + size)), start + size
            gone = world.rng.random(len(references)) < world.rng.uniform(0, 0.7)
            alive = np.setdiff1d(alive, references.ids[gone])
            references.forget(gone)
            np.testing.assert_array_equal(np.sort(references.ids), alive)
            points = world.points[alive]
            brute = iwkr.densities(iwkr.rbf(points, points, world.bandwidth))
            np.testing.assert_allclose(by_id(references), brute, rtol=DENSITY)

    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 2**32), n=st.integers(1, 60), importance=st.booleans())
    def test_estimates_equal_the_equations(self, seed: int, n: int, importance: bool) -> None:
        world = World(seed, n)
        estimate = self.filled(world, importance=importance).estimate(world.queries)
        mass, mean = world.estimate(importance=importance)
        np.testing.assert_allclose(estimate.mass, mass, rtol=DECISION)
        np.testing.assert_allclose(estimate.mean, mean, atol=DECISION)

    def test_estimates_equal_the_equations_across_blocks_and_dimensions(self) -> None:
        for dim in (1, 2, 4, 5, 8, 17):
            world = World(dim, 1100, dim, bandwidth=0.5 * dim**0.5)
            estimate = self.filled(world).estimate(world.queries)
            mass, mean = world.estimate()
            np.testing.assert_allclose(estimate.mass, mass, rtol=DECISION)
            np.testing.assert_allclose(estimate.mean, mean, atol=DECISION)

    def test_the_others_keep_their_order_when_some_are_forgotten(self) -> None:
        world = World(10, 90)
        references, alive = self.make(), np.zeros(0, int)
        for start in range(0, 90, 30):
            part = slice(start, start + 30)
            references.append(world.points[part], world.rewards[part], ids=np.arange(start, start + 30) * 7)
            alive = np.append(alive, np.arange(start, start + 30))
            gone = world.rng.random(len(alive)) < 0.4
            references.forget(gone)
            alive = alive[~gone]
            np.testing.assert_array_equal(references.ids, alive * 7)
            np.testing.assert_allclose(references.points, world.points[alive], rtol=1e-12)
            np.testing.assert_allclose(references.rewards, world.rewards[alive], atol=1e-7)
            points = world.points[alive]
            brute = iwkr.densities(iwkr.rbf(points, points, world.bandwidth))
            np.testing.assert_allclose(references.densities, brute, rtol=DENSITY)

    def test_append_then_forget_is_the_identity(self) -> None:
        world = World(1, 300)
        references = self.filled(world)
        before, estimate = by_id(references), references.estimate(world.queries)
        references.append(world.rng.normal(size=(200, 3)), np.ones(200), ids=np.arange(1000, 1200))
        references.forget(references.ids >= 1000)
        np.testing.assert_allclose(by_id(references), before, rtol=DENSITY)
        np.testing.assert_allclose(references.estimate(world.queries).mean, estimate.mean, atol=DECISION)

    def test_a_lone_point_repeated_m_times_has_weight_one_over_m(self) -> None:
        references = self.make()
        references.append(np.repeat([[5.0, 5.0, 5.0], [-500.0, 0.0, 0.0]], [9, 1], axis=0), np.ones(10))
        np.testing.assert_allclose(references.densities, np.repeat([9.0, 1.0], [9, 1]), rtol=DENSITY)

    def test_running_sums_do_not_drift(self) -> None:
        world = World(2, 40)
        references = self.filled(world)
        for step in range(150):
            references.append(
                world.rng.normal(size=(20, 3)), np.zeros(20), ids=np.arange(20) + 1000 + 20 * step
            )
            references.forget(references.ids >= 1000)
        np.testing.assert_allclose(by_id(references), world.densities(), rtol=DENSITY)

    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 2**32))
    def test_flipping_rewards_mirrors_the_mean_and_a_constant_reward_is_the_mean(self, seed: int) -> None:
        world = World(seed, 30)
        mean = self.filled(world).estimate(world.queries).mean
        world.rewards = 1 - world.rewards
        np.testing.assert_allclose(self.filled(world).estimate(world.queries).mean, 1 - mean, atol=DECISION)
        world.rewards = np.full(30, 0.3)
        np.testing.assert_allclose(self.filled(world).estimate(world.queries).mean, 0.3, atol=DECISION)

    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 2**32), factor=st.floats(1e-3, 1e3))
    def test_order_scale_and_rigid_motions_change_nothing(self, seed: int, factor: float) -> None:
        world = World(seed, 30)
        before = self.filled(world).estimate(world.queries)
        order = world.rng.permutation(30)
        rotation = np.linalg.qr(world.rng.normal(size=(3, 3)))[0]
        shift = world.rng.normal(size=3)
        world.points, world.rewards = world.points[order], world.rewards[order]
        world.points, world.queries = (factor * (x @ rotation + shift) for x in (world.points, world.queries))
        world.bandwidth *= factor
        after = self.filled(world).estimate(world.queries)
        np.testing.assert_allclose(after.mass, before.mass, rtol=DECISION)
        np.testing.assert_allclose(after.mean, before.mean, atol=DECISION)

    @pytest.mark.parametrize("shift", [1000.0, -1e6])
    def test_points_far_from_the_origin_are_as_good_as_near_ones(self, shift: float) -> None:
        world = World(3, 200, shift=shift * 0.7)
        references = self.filled(world)
        mass, mean = world.estimate()
        estimate = references.estimate(world.queries)
        # Shifting rounds the points themselves: 53 bits, so 1e6 bandwidths away by 1e-10 of a bandwidth.
        np.testing.assert_allclose(references.densities, world.densities(), rtol=1e-8)
        np.testing.assert_allclose(estimate.mass, mass, rtol=DECISION)
        np.testing.assert_allclose(estimate.mean, mean, atol=DECISION)

    def test_two_clusters_a_thousand_bandwidths_apart_are_both_right(self) -> None:
        world = World(4, 400)
        world.points[200:] += 700.0
        world.queries[3:] += 700.0
        references = self.filled(world)
        estimate = references.estimate(world.queries)
        mass, mean = world.estimate()
        np.testing.assert_allclose(references.densities, world.densities(), rtol=DENSITY)
        # At 1,000 bandwidths a float32 coordinate is good to 2^-15, and the slope of log κ is at most ~8.
        np.testing.assert_allclose(estimate.mass, mass, rtol=1e-3)
        np.testing.assert_allclose(estimate.mean, mean, atol=1e-3)

    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 2**32), half_life=st.floats(0.5, 50), late=st.floats(0, 30))
    def test_decay_weights_mass_regression_and_densities_by_age(
        self, seed: int, half_life: float, late: float
    ) -> None:
        world = World(seed, 50)
        times = world.rng.uniform(-20, 20, size=50)
        references = self.make(half_life=half_life)
        references.append(world.points[:20], world.rewards[:20], times[:20])
        references.append(world.points[20:], world.rewards[20:], times[20:])
        now = times.max() + late
        g = 2 ** (-(now - times) / half_life)
        w = 1 / (iwkr.rbf(world.points, world.points, 0.7) @ g)
        kappa = iwkr.rbf(world.queries, world.points, 0.7)
        estimate = references.estimate(world.queries, time=now)
        np.testing.assert_allclose(estimate.mass, kappa @ g, rtol=DECISION)
        np.testing.assert_allclose(estimate.mean, iwkr.iwkr(kappa * g, w, world.rewards), atol=DECISION)
        newest = 2 ** (late / half_life)
        np.testing.assert_allclose(references.densities, 1 / w * newest, rtol=DENSITY)

    def test_a_clock_that_runs_behind_does_not_multiply_evidence(self) -> None:
        references = self.make(half_life=1.0)
        references.append(np.zeros((5, 3)), np.ones(5), np.full(5, 200.0))
        for time in (200.0, 190.0, -1e6):
            np.testing.assert_allclose(references.estimate(np.zeros((1, 3)), time).mass, 5, rtol=DECISION)

    def test_forgetting_fresh_evidence_leaves_the_old_exact(self) -> None:
        references = self.make(dim=1, bandwidth=1.0, half_life=1.0)
        references.append([[0.0], [0.5], [1.0]], [1, 0, 0], [0, 0, 0])
        references.append([[0.1], [0.2], [50.0]], [0, 0, 0], [60, 60, 0])
        references.forget(references.times == 60)
        points = np.array([[0.0], [0.5], [1.0], [50.0]])
        kappa, w = iwkr.rbf(np.zeros((1, 1)), points, 1.0), 1 / iwkr.densities(iwkr.rbf(points, points, 1.0))
        mean = iwkr.iwkr(kappa, w, np.array([1.0, 0, 0, 0]))
        np.testing.assert_allclose(references.estimate([[0.0]]).mean, mean, atol=DECISION)

    @pytest.mark.parametrize("first", [[[1e6]], [[1e6 + 0.1]], [[1e6], [1e8], [1e6 + 1]]])
    def test_the_first_points_do_not_spoil_later_ones(self, first: Any) -> None:
        rng = np.random.default_rng(0)
        points = 1e6 + rng.normal(size=(200, 1)) * 0.2
        rewards = (points[:, 0] > 1e6) * 1.0
        references = self.make(dim=1, bandwidth=0.1)
        references.append(first, np.zeros(len(first)))
        references.forget(np.ones(len(first), bool))
        references.append(points, rewards)
        query = np.array([[1e6 + 0.03]])
        w = 1 / iwkr.densities(iwkr.rbf(points, points, 0.1))
        mean = iwkr.iwkr(iwkr.rbf(query, points, 0.1), w, rewards)
        np.testing.assert_allclose(references.estimate(query).mean, mean, atol=1e-3)

    def test_a_copy_lives_its_own_life(self) -> None:
        world = World(11, 50)
        references = self.filled(world)
        twin = pickle.loads(pickle.dumps(references))  # as a process pool does
        copied = copy.deepcopy(references)
        references.forget(np.ones(50, bool))
        for each in (twin, copied):
            np.testing.assert_allclose(each.densities, world.densities(), rtol=DENSITY)
            assert each.engine == references.engine

    def test_any_layout_and_number_type_will_do(self) -> None:
        world = World(12, 60)
        expected = self.filled(world).estimate(world.queries).mean
        references = self.make()
        references.append(np.asfortranarray(world.points), world.rewards)
        mean = references.estimate(np.asfortranarray(world.queries)).mean
        np.testing.assert_array_equal(mean, expected)
        references.append([[1, 2, 3]], [True], [5], [7])
        assert references.ids[-1] == 7

    def test_decay_over_thousands_of_half_lives_stays_finite_and_right(self) -> None:
        references = self.make(half_life=1.0)
        world = World(5, 20)
        for day in range(0, 5000, 100):
            references.append(world.points, world.rewards, np.full(20, float(day)))
            estimate = references.estimate(world.queries)
            assert np.isfinite(estimate.mass).all()
            assert np.isfinite(estimate.mean).all()
        mass, mean = world.estimate()
        np.testing.assert_allclose(estimate.mass, mass, rtol=DECISION)
        np.testing.assert_allclose(estimate.mean, mean, atol=DECISION)

    def test_an_empty_or_distant_memory_has_no_mass_and_a_neutral_mean(self) -> None:
        references = self.make()
        far = [[1e30, -1e30, 0.0], [1e6, 0.0, 0.0]]
        for _ in range(2):
            estimate = references.estimate(far)
            np.testing.assert_array_equal(estimate.mass, 0)
            np.testing.assert_array_equal(estimate.mean, 0.5)
            references.append([[0.0, 0.0, 0.0]], [1.0])

    def test_the_truncated_kernel_ends_at_one_bandwidth(self) -> None:
        world = World(6, 200)
        references = self.filled(world, truncated=True)
        kappa = iwkr.truncated_rbf(world.points, world.points, 0.7)
        np.testing.assert_allclose(references.densities, iwkr.densities(kappa), rtol=DENSITY)
        queries = iwkr.truncated_rbf(world.queries, world.points, 0.7)
        np.testing.assert_allclose(references.estimate(world.queries).mass, queries.sum(1), rtol=DECISION)

    def test_rebuild_changes_nothing(self) -> None:
        world = World(7, 700)
        references = self.filled(world)
        references.forget(world.rng.random(700) < 0.2)
        before = references.densities
        references.rebuild()
        np.testing.assert_allclose(references.densities, before, rtol=DENSITY)

    def test_arrays_rebuild_the_set_bit_for_bit(self) -> None:
        world = World(8, 700)
        references = self.filled(world, half_life=100.0)
        references.forget(world.rng.random(700) < 0.3)
        again = self.reload(references)
        for name in ("points", "rewards", "times", "ids", "densities"):
            np.testing.assert_array_equal(getattr(again, name), getattr(references, name))
        for each in (references, again):
            each.append([[0.1, 0.2, 0.3]], [1.0])
        mine, theirs = references.estimate(world.queries), again.estimate(world.queries)
        np.testing.assert_array_equal(mine.mass, theirs.mass)
        np.testing.assert_array_equal(mine.mean, theirs.mean)

    BAD_APPENDS: tuple[tuple[str, dict[str, Any]], ...] = (
        ("points must be finite", {"points": [[np.nan, 0, 0]]}),
        ("points must be finite", {"points": [[0, np.inf, 0]]}),
        ("within float32's range", {"points": [[0, 1e39, 0]]}),
        ("points must lie within", {"points": [[0, 1e38, 0]]}),
        ("points must have 3 columns", {"points": [[0, 0]]}),
        ("points must be a matrix", {"points": [0, 0, 0]}),
        ("rewards must lie in", {"rewards": [1.5]}),
        ("rewards must lie in", {"rewards": [-0.1]}),
        ("rewards must be finite", {"rewards": [np.nan]}),
        ("rewards must have length 1", {"rewards": [1, 1]}),
        ("times must be finite", {"times": [np.nan]}),
        ("times must have length 1", {"times": [1, 2]}),
        ("ids must have length 1", {"ids": [1, 2]}),
        ("ids must be integers", {"ids": ["a"]}),
    )

    @pytest.mark.parametrize(("message", "bad"), BAD_APPENDS)
    def test_a_bad_append_is_refused_and_changes_nothing(self, message: str, bad: dict[str, Any]) -> None:
        world = World(9, 20)
        references = self.filled(world)
        before = references.to_arrays()
        with pytest.raises(ValueError, match=message):
            references.append(**({"points": [[0.0, 0.0, 0.0]], "rewards": [1.0]} | bad))
        for name, array in references.to_arrays()[0].items():
            np.testing.assert_array_equal(array, before[0][name])
        assert references.to_arrays()[1] == before[1]

    @pytest.mark.parametrize("gone", [[True], np.zeros(20, int), np.zeros((20, 1), bool)])
    def test_a_bad_mask_is_refused(self, gone: Any) -> None:
        references = self.filled(World(9, 20))
        with pytest.raises(ValueError, match="mask of 20 booleans"):
            references.forget(gone)
        assert len(references) == 20

    @pytest.mark.parametrize("queries", [[[np.nan, 0, 0]], [[0, 0]], [0, 0, 0], [[np.inf, 0, 0]]])
    def test_bad_queries_are_refused(self, queries: Any) -> None:
        with pytest.raises(ValueError, match="queries must"):
            self.filled(World(9, 20)).estimate(queries)

    def test_a_bad_time_is_refused(self) -> None:
        with pytest.raises(ValueError, match="time must be finite"):
            self.filled(World(9, 20)).estimate([[0.0, 0.0, 0.0]], time=np.nan)
