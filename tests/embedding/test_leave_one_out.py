"""Leave-one-out: each row is predicted as if it had never been there, and the best state is kept."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tercet import iwkr
from tercet.checks import Array, Matrix, Vector
from tercet.embedding import leave_one_out
from tercet.embedding.leave_one_out import Course, Room, _Groups, entropy, predictions, regression
from tercet.embedding.network import linear
from tercet.embedding.objective import EDGE
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.samples import Samples

KINDS = pytest.mark.parametrize("importance", [True, False])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a training; more would wait for each other
    yield
    torch.set_num_threads(before)


def estimated(
    queries: Matrix,
    references: Matrix,
    rewards: Vector,
    *,
    mean: float = 0.4,
    prior: float = 0.1,
    importance: bool = True,
) -> Vector:
    """The paper's estimate, and as much of the mean as the prior says."""
    kappa = iwkr.rbf(queries, references, 1.0)
    density = iwkr.densities(iwkr.rbf(references, references, 1.0))
    w = 1 / density if importance else np.ones(len(references))
    total = (kappa * w).sum(axis=1)
    return (total * iwkr.iwkr(kappa, w, rewards) + prior * mean) / (total + prior)


def predicted(points: Array, rewards: Array, **changes: Any) -> Array:
    """Leave-one-out of groups, in float64."""
    options = {"mean": 0.4, "prior": 0.1, "importance": True} | changes
    return predictions(torch.tensor(points), torch.tensor(rewards), **options).numpy()


def drawn(groups: int, n: int, dim: int, seed: int) -> tuple[Array, Array]:
    """Random points and rewards."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(groups, n, dim)), rng.random((groups, n))


def rows(n: int, *, intervals: int = 1, seed: int = 0) -> Samples:
    """Two arms; arm 1 pays where the first feature of the context is positive, arm 0 elsewhere."""
    rng = np.random.default_rng(seed)
    contexts, arm = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    return Samples.of(
        contexts,
        np.eye(2)[arm],
        (arm == (contexts[:, 0] > 0)).astype(float),
        np.arange(n) % intervals,
        dtype=torch.float32,
        device="cpu",
    )


class Bent(nn.Module):
    """A small phi that is not ours."""

    def __init__(self, seed: int = 0, kind: torch.dtype = torch.float32) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layers = nn.Sequential(linear(4, 16, generator), nn.Tanh(), linear(16, 2, generator)).to(kind)

    def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
        return self.layers(torch.cat([contexts, arms], dim=1))


class Raw(nn.Module):
    """Contexts are embeddings already; nothing is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
        return contexts + 0 * self.unused


def course(phi: nn.Module, seed: int = 0, **changes: Any) -> Course:
    options = LeaveOneOut(**{"epochs": 1, "steps": 40, "batch": 32, **changes})
    return Course(phi=phi, options=options, rng=np.random.default_rng(seed))


def always() -> bool:
    return True


def ignore(loss: float) -> None:
    pass


def state(phi: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in phi.state_dict().items()}


def averaged(taught: Course) -> dict[str, Tensor]:
    names = (name for name, _ in taught.phi.named_parameters())
    return {name: mean.clone() for name, mean in zip(names, taught.means, strict=True)}


def assert_state(phi: nn.Module, expected: dict[str, Tensor]) -> None:
    for name, value in phi.state_dict().items():
        assert torch.equal(value, expected[name]), name


@settings(max_examples=60)
@given(
    groups=st.integers(1, 3),
    n=st.integers(1, 12),
    dim=st.integers(1, 4),
    spread=st.sampled_from([0.1, 1.0, 3.0]),
    prior=st.floats(1e-3, 3.0),
    mean=st.floats(0, 1),
    importance=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_each_row_is_predicted_as_if_it_had_never_been_there(
    groups: int,
    n: int,
    dim: int,
    spread: float,
    prior: float,
    mean: float,
    importance: bool,
    seed: int,
) -> None:
    points, rewards = drawn(groups, n, dim, seed)
    points *= spread
    options: dict[str, Any] = {"mean": mean, "prior": prior, "importance": importance}
    found = predicted(points, rewards, **options)
    for group in range(groups):
        for row in range(n):
            others = np.arange(n) != row
            expected = estimated(
                points[group, [row]], points[group, others], rewards[group, others], **options
            )
            assert found[group, row] == pytest.approx(expected[0], abs=1e-9)


@KINDS
@pytest.mark.parametrize("prior", [0.01, 1.0])
def test_predictions_carry_the_true_gradient(importance: bool, prior: float) -> None:
    points, rewards = (torch.tensor(array) for array in drawn(3, 6, 2, seed=1))
    points[1] *= 3.0
    points[2, 1] = points[2, 0]  # two rows at the same place

    def function(x: Tensor) -> Tensor:
        return predictions(x, rewards, mean=0.4, prior=prior, importance=importance)

    assert torch.autograd.gradcheck(function, (points.requires_grad_(),))


@pytest.mark.parametrize(("n", "spread"), [(1, 1.0), (2, 1.0), (70, 0.1), (70, 1.0), (70, 10.0)])
def test_compiled_loops_give_the_predictions_and_gradients_of_torch(n: int, spread: float) -> None:
    points, rewards = drawn(3, n, 4, seed=7)
    gradients = torch.tensor(drawn(3, n, 1, seed=8)[0][..., 0])
    found = []
    for kind in (torch.float32, torch.float64):  # only the former is compiled
        x = torch.tensor(spread * points, dtype=kind, requires_grad=True)
        means = predictions(x, torch.tensor(rewards, dtype=kind), mean=0.4, prior=0.1, importance=True)
        means.backward(gradients.to(kind))
        found.append((means.detach(), x.grad))
    # Exponents up to 100 are rounded by 1e-5, and a gradient by as much for each unit of distance.
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=0, atol=1e-4)


def test_without_numba_torch_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    points, rewards = (torch.tensor(array, dtype=torch.float32) for array in drawn(2, 30, 3, seed=9))
    with_numba = predictions(points, rewards, mean=0.4, prior=0.1, importance=True)
    monkeypatch.setattr(leave_one_out, "_kernels", lambda: None)
    without = predictions(points, rewards, mean=0.4, prior=0.1, importance=True)
    torch.testing.assert_close(with_numba, without, rtol=0, atol=1e-5)


@KINDS
def test_groups_do_not_see_each_other(importance: bool) -> None:
    points, rewards = drawn(3, 8, 2, seed=2)
    together = predicted(points, rewards, importance=importance)
    for group in range(3):
        alone = predicted(points[[group]], rewards[[group]], importance=importance)
        np.testing.assert_allclose(together[[group]], alone, rtol=0, atol=1e-12)
    x = torch.tensor(points, requires_grad=True)
    found = predictions(x, torch.tensor(rewards), mean=0.4, prior=0.1, importance=importance)
    found[1].sum().backward()
    moved = x.grad.abs().sum(dim=(1, 2))
    assert moved[0] == moved[2] == 0 < moved[1]


@KINDS
@given(reward=st.floats(0, 1), seed=st.integers(0, 100))
def test_a_reward_that_all_rows_share_is_predicted_everywhere(
    importance: bool, reward: float, seed: int
) -> None:
    points, _ = drawn(2, 10, 2, seed)
    found = predicted(points, np.full((2, 10), reward), mean=1 - reward, prior=1e-9, importance=importance)
    # The farthest of 10 rows has a mass above 1e-4 in two dimensions, 1e5 times the prior.
    np.testing.assert_allclose(found, reward, rtol=0, atol=1e-4)


@KINDS
def test_rows_in_another_order_have_their_predictions_in_that_order(importance: bool) -> None:
    points, rewards = drawn(2, 9, 3, seed=3)
    order = np.random.default_rng(4).permutation(9)
    found = predicted(points, rewards, importance=importance)
    np.testing.assert_allclose(
        predicted(points[:, order], rewards[:, order], importance=importance),
        found[:, order],
        rtol=0,
        atol=1e-12,
    )


@KINDS
def test_a_row_far_from_all_others_has_the_mean_and_a_finite_gradient(importance: bool) -> None:
    points, rewards = (torch.tensor(array, dtype=torch.float32) for array in drawn(1, 9, 2, seed=5))
    points[0, 0] = 300.0
    points.requires_grad_()
    found = predictions(points, rewards, mean=0.4, prior=0.1, importance=importance)
    found.sum().backward()
    assert found[0, 0].item() == pytest.approx(0.4, abs=1e-6)
    assert points.grad.isfinite().all()


@KINDS
def test_far_from_the_origin_the_predictions_are_the_same(importance: bool) -> None:
    points, rewards = (torch.tensor(array, dtype=torch.float32) for array in drawn(2, 20, 3, seed=6))
    options: dict[str, Any] = {"mean": 0.4, "prior": 0.1, "importance": importance}
    for of in (
        lambda points: predictions(points, rewards, **options),
        lambda points: regression(points[0], points[1], rewards[1], **options),
    ):
        # float32 keeps 1000 to 6e-5, which moves exponents of some units by 1e-3 at most.
        np.testing.assert_allclose(of(points + 1000), of(points), rtol=2e-3, atol=1e-4)


@settings(max_examples=40)
@given(
    queries=st.integers(1, 5),
    n=st.integers(1, 12),
    prior=st.floats(1e-3, 3.0),
    importance=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_other_rows_are_predicted_by_all_references(
    queries: int, n: int, prior: float, importance: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    asked, references, rewards = rng.normal(size=(queries, 2)), rng.normal(size=(n, 2)), rng.random(n)
    options: dict[str, Any] = {"mean": 0.3, "prior": prior, "importance": importance}
    found = regression(*(torch.tensor(array) for array in (asked, references, rewards)), **options)
    np.testing.assert_allclose(found, estimated(asked, references, rewards, **options), rtol=0, atol=1e-9)


def test_the_loss_is_the_mean_cross_entropy_and_finite_where_all_is_wrong() -> None:
    p, r = torch.tensor([0.1, 0.8, 0.5]), torch.tensor([0.0, 1.0, 0.3])
    exact = -(r * p.log() + (1 - r) * (1 - p).log()).mean()
    assert entropy(p, r).item() == pytest.approx(exact.item(), abs=1e-3)
    wrong = entropy(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0])).item()
    assert wrong == pytest.approx(-math.log(EDGE), rel=1e-3)


def test_all_columns_of_samples_move_together() -> None:
    samples = rows(20, intervals=3)
    for chosen in (slice(2, 9, 3), torch.tensor([5, 1, 1]), np.array([7, 0]), samples.interval == 1):
        part = samples[chosen]
        assert len(part) == len(samples.rewards[chosen])
        for name, column in vars(samples).items():
            assert torch.equal(getattr(part, name), column[chosen])


def test_samples_are_copies_in_the_type_that_phi_takes() -> None:
    contexts, rewards = np.ones((3, 2)), np.ones(3)
    samples = Samples.of(
        contexts, np.ones((3, 1)), rewards, np.array([0, 1, 1]), dtype=torch.float64, device="cpu"
    )
    contexts[:], rewards[:] = 5, 5
    assert samples.contexts.dtype == samples.arms.dtype == torch.float64
    assert samples.contexts.max() == samples.rewards.max() == 1
    assert samples.interval.tolist() == [0, 1, 1]


def test_a_room_changes_nothing_and_refuses_the_gradient_of_what_was_written_over() -> None:
    points, rewards = torch.randn(2, 9, 3), torch.rand(2, 9)
    options: dict[str, Any] = {"mean": 0.4, "prior": 0.1, "importance": True}
    room = Room()
    for scale in (1.0, 2.0, 0.5):
        found, alone = [
            (scale * points).requires_grad_() for _ in range(2)
        ]  # the same, with and without a room
        with_room = predictions(found, rewards, **options, room=room)
        without = predictions(alone, rewards, **options)
        with_room.sum().backward()
        without.sum().backward()
        assert torch.equal(with_room, without)
        assert torch.equal(found.grad, alone.grad)
    stale = predictions(points.requires_grad_(), rewards, **options, room=room)
    predictions(2 * points, rewards, **options, room=room)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        stale.sum().backward()


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    batch=st.integers(2, 60),
    seed=st.integers(0, 1000),
)
def test_groups_hold_different_rows_of_one_interval_each_and_no_more_than_a_batch(
    sizes: list[int], batch: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # Numbers of intervals may have gaps, where equal times share one.
    intervals = rng.permutation(np.repeat(3 * np.arange(len(sizes)), sizes))
    groups = _Groups(intervals, LeaveOneOut(batch=batch))
    for _ in range(3):
        found = groups.draw(rng)
        labels = intervals[found]
        assert (labels == labels[:, :1]).all()
        assert len(np.unique(labels[:, 0])) == len(labels)
        assert len(np.unique(found)) == found.size == groups.batch <= batch
        for label in labels[:, 0]:
            assert 2 * (intervals == label).sum() >= int(np.median(sizes))


def test_short_intervals_are_left_out_and_all_other_rows_have_their_turn() -> None:
    intervals = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, 3], [10, 3, 8, 9]))
    groups = _Groups(intervals, LeaveOneOut(batch=16))
    rng = np.random.default_rng(1)
    seen = np.unique(np.concatenate([groups.draw(rng).ravel() for _ in range(60)]))
    np.testing.assert_array_equal(seen, np.flatnonzero(intervals != 1))


def test_a_single_interval_gives_batches_of_full_size() -> None:
    def shape(rows: int) -> tuple[int, ...]:
        groups = _Groups(np.zeros(rows, dtype=np.int64), LeaveOneOut(batch=32))
        return groups.draw(np.random.default_rng(0)).shape

    assert [shape(rows) for rows in (100, 10)] == [(1, 32), (1, 10)]


def test_rows_of_different_intervals_never_predict_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = rows(60, intervals=4)
    samples.rewards[:] = samples.interval / 4  # so that a reward tells its interval
    compared: list[Tensor] = []

    def watched(points: Tensor, rewards: Tensor, **options: Any) -> Tensor:
        compared.append(rewards)
        return predictions(points, rewards, **options)

    monkeypatch.setattr(leave_one_out, "predictions", watched)
    course(Bent()).run(samples, rows(0), go_on=always, advance=ignore)
    assert compared[0].shape == (2, 15)
    for rewards in compared:
        assert (rewards == rewards[:, :1]).all()
        assert rewards[0, 0] != rewards[1, 0]


@KINDS
def test_a_check_is_the_loss_of_held_out_rows_by_the_references_of_their_own_interval(
    importance: bool,
) -> None:
    learned, held = rows(40, intervals=3, seed=1), rows(15, intervals=4, seed=2)
    losses = []
    for interval in range(3):  # those of interval 3 have no reference
        here, there = (part[part.interval == interval] for part in (learned, held))
        p = estimated(
            there.contexts.double().numpy(),
            here.contexts.double().numpy(),
            here.rewards.double().numpy(),
            importance=importance,
        )
        r, squeezed = there.rewards.numpy(), EDGE + (1 - 2 * EDGE) * p
        losses.append(-(r * np.log(squeezed) + (1 - r) * np.log(1 - squeezed)))
    found = course(Raw(), importance=importance)
    found._judge(learned, held, 0.4)
    assert found.losses == [pytest.approx(np.concatenate(losses).mean(), abs=1e-5)]


@KINDS
def test_training_lowers_the_loss_on_a_separable_task(importance: bool) -> None:
    taught = course(Bent(), batch=256, rate=0.1, epochs=40, importance=importance)
    taught.run(rows(400), rows(100, seed=1), go_on=always, advance=ignore)
    assert min(taught.losses) < 0.4 < 0.6 < taught.losses[0]


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_modules_of_either_type_can_be_trained(kind: torch.dtype) -> None:
    samples = rows(60)
    samples = Samples.of(
        samples.contexts.numpy(),
        samples.arms.numpy(),
        samples.rewards.numpy(),
        samples.interval.numpy(),
        dtype=kind,
        device="cpu",
    )
    phi = Bent(kind=kind)
    before = state(phi)
    course(phi).run(samples[:45], samples[45:], go_on=always, advance=ignore)
    assert not torch.equal(phi.layers[0].weight, before["layers.0.weight"])


def test_the_best_state_is_kept_and_is_a_true_copy() -> None:
    phi, states = Bent(), []
    taught = course(phi, rate=5.0)  # so fast that the last check is not the best
    taught.run(rows(60), rows(40, seed=1), go_on=always, advance=lambda loss: states.append(averaged(taught)))
    best = int(np.argmin(taught.losses))
    assert len(states) == len(taught.losses) == leave_one_out.CHECKS
    assert taught.losses[-1] > taught.losses[best]
    assert not torch.equal(states[best]["layers.0.weight"], states[-1]["layers.0.weight"])
    assert_state(phi, states[best])
    assert not phi.training


def test_without_rows_held_out_the_last_state_is_kept() -> None:
    phi, states = Bent(), []
    taught = course(phi, rate=5.0)
    taught.run(rows(60), rows(0), go_on=always, advance=lambda loss: states.append(averaged(taught)))
    assert_state(phi, states[-1])
    assert_state(phi, taught.best)
    assert not torch.equal(states[0]["layers.0.weight"], states[-1]["layers.0.weight"])
    assert not phi.training


@pytest.mark.parametrize(
    ("n", "intervals"),
    [pytest.param(0, 1, id="none"), pytest.param(1, 1, id="one"), pytest.param(5, 5, id="alone")],
)
def test_too_few_rows_leave_phi_unchanged_and_ready(n: int, intervals: int) -> None:
    phi = Bent().train()
    before = state(phi)
    taught = course(phi)
    taught.run(rows(n, intervals=intervals), rows(6), go_on=always, advance=ignore)
    assert_state(phi, before)
    assert not phi.training
    assert (taught.losses, taught.best) == ([], {})


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_few_one_sided_rows_do_no_harm(n: int, reward: float) -> None:
    phi, samples = Bent(), rows(n)
    samples.rewards[:] = reward
    taught = course(phi)
    taught.run(samples, samples, go_on=always, advance=ignore)
    assert np.isfinite(taught.losses).all()
    assert all(value.isfinite().all() for value in phi.state_dict().values())


def test_a_training_that_is_told_to_stop_keeps_its_best_state_so_far() -> None:
    phi, states = Bent(), []
    taught = course(phi, rate=5.0)
    taught.run(
        rows(60),
        rows(40, seed=1),
        go_on=lambda: len(states) < 7,
        advance=lambda loss: states.append(averaged(taught)),
    )
    assert len(taught.losses) == 7
    assert_state(phi, states[int(np.argmin(taught.losses))])
    untouched = Bent()
    course(untouched).run(rows(60), rows(40), go_on=lambda: False, advance=ignore)
    assert_state(untouched, Bent().state_dict())
    assert not untouched.training


def test_the_same_rng_gives_the_same_weights_bit_for_bit() -> None:
    first, again, other = Bent(), Bent(), Bent()
    for phi, seed in ((first, 1), (again, 1), (other, 2)):
        course(phi, seed=seed).run(rows(60), rows(20, seed=1), go_on=always, advance=ignore)
    assert_state(first, state(again))
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        (lambda points: points * torch.nan, r"infinite or missing values; try a rate below 0\.003"),
        (lambda points: points[:, 0], "phi must return one row per pair"),
        (lambda points: points[1:], "phi must return one row per pair"),
    ],
)
def test_a_phi_that_goes_astray_is_reported_and_left_at_its_best(
    deed: Callable[[Tensor], Tensor], message: str
) -> None:
    class Tripwire(Bent):
        calls = 0

        def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
            self.calls += 1
            points = super().forward(contexts, arms)
            return deed(points) if self.calls == 30 else points

    phi, states = Tripwire(), []
    taught = course(phi)
    with pytest.raises(ValueError, match=message):
        taught.run(
            rows(60), rows(40, seed=1), go_on=always, advance=lambda loss: states.append(averaged(taught))
        )
    assert_state(phi, states[int(np.argmin(taught.losses))])
    assert not phi.training
