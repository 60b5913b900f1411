"""Algorithm 1: it learns, keeps its best state, can be interrupted, and finds which arms are coupled."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor, nn

from tercet.embedding import network, training
from tercet.embedding.objective import estimate
from tercet.embedding.options import Training
from tercet.embedding.samples import Samples
from tercet.embedding.training import Report, train
from tercet.types import Feedback

QUICK = {"epochs": 8, "batch": 64, "reference": 0.4}


def separable(n: int, seed: int = 0) -> Feedback:
    """Two arms; arm 1 pays where the first feature of the context is positive, arm 0 elsewhere."""
    rng = np.random.default_rng(seed)
    contexts, arm = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    return Feedback(
        contexts=contexts, arms=np.eye(2)[arm], rewards=(arm == (contexts[:, 0] > 0)).astype(float)
    )


def flipping(n: int) -> Feedback:
    """Two arms and no context; one pays in the first half of the time, the other in the second."""
    rng = np.random.default_rng(0)
    arm, times = rng.integers(2, size=n), rng.permutation(n).astype(float)
    rewards = (arm == (times >= n / 2)).astype(float)
    return Feedback(contexts=np.empty((n, 0)), arms=np.eye(2)[arm], rewards=rewards, times=times)


def trained(history: Feedback, seed: int = 0, **changes: Any) -> tuple[network.Network, Report]:
    """A small network after training with these options."""
    rng = np.random.default_rng(seed)
    phi = network.build(history.contexts.shape[1], history.arms.shape[1], rng, hidden=(16,), dim=3)
    report = train(phi, history, rng, bandwidth=1.0, options=Training(**{**QUICK, **changes}))
    return phi, report


def assert_equal_weights(a: nn.Module, b: nn.Module) -> None:
    for (name, left), right in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        assert torch.equal(left, right), name


def finite(phi: nn.Module) -> bool:
    return all(value.isfinite().all().item() for value in phi.state_dict().values())


class Tripwire(nn.Module):
    """Embeds like a network, but does something else at one of its calls."""

    def __init__(self, history: Feedback, at: int, deed: Any) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.inner = network.build(history.contexts.shape[1], history.arms.shape[1], rng, hidden=(16,), dim=3)
        self.calls, self.at, self.deed = 0, at, deed

    def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
        self.calls += 1
        embeddings = self.inner(contexts, arms)
        return self.deed(embeddings) if self.calls == self.at else embeddings


def press_ctrl_c(embeddings: Tensor) -> Tensor:
    raise KeyboardInterrupt


@pytest.mark.parametrize("changes", [{}, {"importance": False}, {"prior": 0.0, "calibration": 2.0}])
def test_training_lowers_the_loss_on_a_separable_task(changes: dict[str, Any]) -> None:
    _, report = trained(separable(600), epochs=25, **changes)
    assert report.losses[-1] < 0.3 < 0.6 < report.losses[0]
    assert min(report.validation_losses) < 0.35
    assert not report.interrupted


def test_the_papers_options_learn_too() -> None:
    _, report = trained(separable(1200), **vars(Training.paper(usage=0.5, epochs=30)))
    assert report.losses[-1] < 0.7 * report.losses[0]
    assert len(report.losses) == len(report.validation_losses) == 30


def test_graded_rewards_are_learned() -> None:
    rng = np.random.default_rng(1)
    contexts = rng.uniform(-1, 1, size=(600, 1))
    history = Feedback(contexts=contexts, arms=np.ones((600, 1)), rewards=(contexts[:, 0] + 1) / 2)
    _, report = trained(history, epochs=25)
    # The least possible is the mean entropy of a reward u uniform in [0, 1], 1/2; that of its mean is log 2.
    assert min(report.validation_losses) < 0.55 < math.log(2)


def test_the_best_state_is_a_true_copy() -> None:
    options = {"rate": 0.3, "decay": 1.0, "patience": None}  # so fast that the last epoch is not the best
    phi, report = trained(separable(300), epochs=20, **options)
    best = report.best_epoch
    assert best is not None
    assert best == int(np.argmin(report.validation_losses)) < 19
    assert report.validation_losses[-1] > report.validation_losses[best]
    # The same rng takes the same steps, so a training that ends at that epoch has those very weights.
    assert_equal_weights(phi, trained(separable(300), epochs=best + 1, **options)[0])


def test_without_validation_the_last_epoch_is_kept() -> None:
    phi, report = trained(separable(100), validation=0.0)
    assert report.best_epoch == len(report.losses) - 1 == 7
    assert report.validation_losses == ()
    assert not phi.training


def test_patience_ends_training() -> None:
    _, report = trained(separable(300), epochs=60, rate=0.3, decay=1.0, patience=3)
    assert report.best_epoch is not None
    assert len(report.losses) == report.best_epoch + 4 < 60


def test_the_same_rng_gives_the_same_weights_bit_for_bit() -> None:
    assert_equal_weights(trained(separable(200), seed=5)[0], trained(separable(200), seed=5)[0])
    first, other = (trained(separable(200), seed=seed)[0].layers[0].weight for seed in (5, 6))
    assert not torch.equal(first, other)


def test_global_random_state_is_left_alone_and_dropout_is_seeded_by_the_rng() -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
            for parameter in self.layers.parameters():
                nn.init.constant_(parameter, 0.1)

        def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
            return self.layers(torch.cat([contexts, arms], dim=1))

    modules = [Dropping(), Dropping()]
    for number, module in enumerate(modules):
        torch.manual_seed(number)
        before = torch.get_rng_state()
        options = Training(**QUICK)
        train(module, separable(200), np.random.default_rng(0), bandwidth=1.0, options=options)
        assert torch.equal(torch.get_rng_state(), before)
    assert_equal_weights(*modules)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_any_module_can_be_trained(kind: torch.dtype) -> None:
    class TwoTowers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(2, 4, dtype=kind), nn.Linear(2, 4, dtype=kind)

        def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
            return self.left(contexts) * self.right(arms)

    torch.manual_seed(0)
    options = Training(**{**QUICK, "epochs": 25, "rate": 0.03})
    report = train(TwoTowers(), separable(600), np.random.default_rng(0), bandwidth=1.0, options=options)
    assert report.losses[-1] < 0.4 < 0.6 < report.losses[0]


# 170 rows to learn from, of which 102 are queries: an epoch is 2 calls for batches and 1 for validation.
@pytest.mark.parametrize(("call", "finished"), [(7, 2), (8, 2), (9, 2), (10, 3)])
def test_ctrl_c_keeps_the_best_epoch_so_far(call: int, finished: int) -> None:
    history = separable(200)
    options = Training(**QUICK)
    phi = Tripwire(history, call, press_ctrl_c)
    report = train(phi, history, np.random.default_rng(1), bandwidth=1.0, options=options)
    assert report.interrupted
    assert phi.calls == call
    assert len(report.validation_losses) == finished
    assert report.best_epoch == int(np.argmin(report.validation_losses))
    reached = Training(**{**QUICK, "epochs": report.best_epoch + 1})
    undisturbed = Tripwire(history, -1, press_ctrl_c)
    train(undisturbed, history, np.random.default_rng(1), bandwidth=1.0, options=reached)
    assert_equal_weights(phi, undisturbed)


def test_ctrl_c_before_the_first_epoch_ends_leaves_phi_usable() -> None:
    history = separable(200)
    phi = Tripwire(history, 1, press_ctrl_c)
    report = train(phi, history, np.random.default_rng(1), bandwidth=1.0, options=Training(**QUICK))
    assert report == Report(losses=(), validation_losses=(), best_epoch=None, interrupted=True)
    assert_equal_weights(phi, Tripwire(history, 1, press_ctrl_c))


def test_a_phi_that_goes_astray_is_reported_and_left_at_its_best() -> None:
    history, options = separable(200), Training(**QUICK)
    phi = Tripwire(history, 7, lambda embeddings: embeddings * torch.nan)
    with pytest.raises(ValueError, match=r"infinite or missing values; try a rate below 0\.01"):
        train(phi, history, np.random.default_rng(1), bandwidth=1.0, options=options)
    assert finite(phi)
    for deed in (lambda embeddings: embeddings[:, 0], lambda embeddings: embeddings[1:]):
        with pytest.raises(ValueError, match="phi must return one row per pair"):
            train(
                Tripwire(history, 1, deed),
                history,
                np.random.default_rng(1),
                bandwidth=1.0,
                options=options,
            )


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("partitions", [1, 3, None])
@pytest.mark.parametrize("reward", [None, 0.0, 1.0])
def test_tiny_and_one_sided_histories_do_no_harm(
    n: int, partitions: int | None, reward: float | None
) -> None:
    rng = np.random.default_rng(2)
    rewards = rng.random(n) if reward is None else np.full(n, reward)
    history = Feedback(
        contexts=rng.normal(size=(n, 1)), arms=np.eye(2)[[i % 2 for i in range(n)]], rewards=rewards,
        times=np.arange(n, dtype=float),
    )  # fmt: skip
    for changes in ({"prior": 0.0, "calibration": 2.0}, {"validation": 0.4}, {"usage": 0.1}):
        phi, report = trained(history, partitions=partitions, **changes)
        assert finite(phi)
        assert np.isfinite(report.losses).all()
        assert np.isfinite(report.validation_losses).all()
        learned = n - round(changes.get("validation", 0.15) * n)
        assert len(report.losses) == (8 if learned > 1 else 0)


def test_queries_without_a_reference_in_their_interval_are_skipped() -> None:
    history = flipping(40)
    phi, report = trained(history, partitions=40)  # every row is alone
    assert set(report.losses) == {math.log(2)}
    rng = np.random.default_rng(0)
    assert_equal_weights(phi, network.build(0, 2, rng, hidden=(16,), dim=3))


def test_a_query_learns_from_its_own_interval_only() -> None:
    # In each half one arm always pays and the other never; over all time both pay half of the time.
    divided, whole = (min(trained(flipping(600), partitions=k, epochs=20)[1].losses) for k in (2, 1))
    assert divided < 0.2
    assert whole > 0.65


def test_intervals_of_unequal_sizes_give_what_masks_give() -> None:
    class Arms(nn.Module):
        def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
            return arms

    rng = torch.Generator().manual_seed(0)
    interval = torch.tensor([0, 3, 5, 0, 1, 3, 5, 0, 0, 3, 0, 1, 0, 4, 0, 3, 0])
    points, rewards = torch.rand(17, 2, generator=rng), torch.rand(17, generator=rng)
    samples = Samples(contexts=torch.empty(17, 0), arms=points, rewards=rewards, interval=interval)
    course = training._Course(
        phi=Arms(), options=Training(prior=0.0), bandwidth=0.5, mean_reward=0.5, rng=np.random.default_rng(0)
    )
    queries, references = torch.arange(8), torch.arange(8, 17)
    mean, outcomes = course._answers(samples[queries], samples[references])
    mass, expected = estimate(
        points[queries],
        points[references],
        rewards[references],
        bandwidth=0.5,
        same=interval[queries][:, None] == interval[references],
        reference_same=interval[references][:, None] == interval[references],
    )
    known = torch.isin(interval[queries], interval[references])
    assert known.sum() == 6  # interval 5 has no reference
    assert (mass[~known] == 0).all()
    order = torch.argsort(interval[queries][known], stable=True)
    np.testing.assert_allclose(mean, expected[known][order], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(outcomes, rewards[queries][known][order])


def test_the_number_of_intervals_is_found_from_the_data() -> None:
    chosen, given = (trained(flipping(800), partitions=k)[1] for k in (None, 2))
    assert chosen == given


def test_bad_arguments_are_refused() -> None:
    rng = np.random.default_rng(3)
    phi = network.build(2, 2, rng)
    for bandwidth in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="bandwidth must be"):
            train(phi, separable(10), rng, bandwidth=bandwidth)
    with pytest.raises(ValueError, match="need a history with times"):
        train(phi, separable(10), rng, bandwidth=1.0, options=Training(partitions=2))
    with pytest.raises(ValueError, match="takes 2 context and 2 arm features; got 0 and 2"):
        train(phi, flipping(10), rng, bandwidth=1.0)


def test_nothing_is_shown_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    trained(separable(50))
    assert capfd.readouterr() == ("", "")


def distances(phi: network.Network, arms: int) -> np.ndarray[Any, Any]:
    points = network.export(phi)(np.empty((arms, 0)), np.eye(arms))
    return np.linalg.norm(points[:, None] - points, axis=2)


def test_time_intervals_bring_coupled_arms_together() -> None:
    # Twelve arms in three groups; in each of 40 intervals every group pays .1 or .9, on average the same.
    rng = np.random.default_rng(4)
    group, arm, times = np.arange(12) % 3, rng.integers(12, size=2400), np.repeat(np.arange(40), 60)
    level = rng.choice([0.1, 0.9], size=(40, 3))[times, group[arm]]
    rewards = (rng.random(2400) < level).astype(float)
    history = Feedback(
        contexts=np.empty((2400, 0)), arms=np.eye(12)[arm], rewards=rewards, times=times.astype(float)
    )
    same = (group[:, None] == group) & ~np.eye(12, dtype=bool)
    apart = {}
    for partitions in (40, 1):
        phi, _ = trained(history, partitions=partitions, epochs=20, reference=0.2, batch=256)
        between = distances(phi, 12)
        apart[partitions] = between[group[:, None] != group].min() / between[same].max()
    assert apart[40] > 1  # any arm of its own group is nearer than any of another
    assert apart[1] < 1


@pytest.mark.parametrize("seed", [0, 1])
def test_the_better_an_arm_follows_the_anchor_the_nearer_it_is_embedded(seed: int) -> None:
    """The paper's simulation (its section 5.1), with larger batches."""
    rng = np.random.default_rng(seed)
    rho = np.array([-1.0, -0.6, -0.2, 0.2, 0.6, 1.0])
    anchor = rng.random(200)[:, None]
    follow = rng.beta(100 * (rho * (anchor - 0.5) + 0.5), 100 * (rho * (0.5 - anchor) + 0.5))
    means = np.hstack([anchor, follow])
    times, arm = np.repeat(np.arange(200), 100), rng.integers(7, size=20_000)
    rewards = (rng.random(20_000) < means[times, arm]).astype(float)
    history = Feedback(
        contexts=np.empty((20_000, 0)), arms=np.eye(7)[arm], rewards=rewards, times=times.astype(float)
    )
    phi = network.build(0, 7, rng, hidden=(256,), dim=2)
    options = Training.paper(epochs=4, usage=0.5, calibration=5.0, partitions=200, validation=0.0, batch=64)
    train(phi, history, rng, bandwidth=1.0, options=options)
    assert spearmanr(rho, distances(phi, 7)[0, 1:]).statistic < -0.7
