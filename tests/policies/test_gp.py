import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet import Feedback
from tercet.policies.gp import ForgetfulGP, Hyperparameters, loss_gradient
from tercet.policies.memory import in_time

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import gpytorch

RNG = np.random.default_rng  # made anew for each call
CONTEXT, ARMS = RNG(8).normal(size=2), RNG(9).normal(size=(5, 3))


def some(n: int, seed: int = 0) -> Feedback:
    rng = RNG(seed)
    contexts, arms = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    rewards = 1 / (1 + np.exp(-contexts[:, 0] - arms[:, 1]))
    return Feedback(contexts=contexts, arms=arms, rewards=rewards, times=rng.random(n))


def queries(policy: ForgetfulGP) -> np.ndarray:
    return np.hstack(policy._memory.scaled(np.tile(CONTEXT, (len(ARMS), 1)), ARMS))


class Peer(gpytorch.models.ExactGP):
    """The paper's baseline as gpytorch's users write it."""

    def __init__(self, points: np.ndarray, rewards: np.ndarray) -> None:
        super().__init__(
            torch.tensor(points), torch.tensor(rewards), gpytorch.likelihoods.GaussianLikelihood()
        )
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        self.double()

    def forward(self, points: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean(points), self.kernel(points))

    def train_by_adam(self, steps: int, rate: float) -> None:
        optimiser = torch.optim.Adam(self.parameters(), lr=rate)
        likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self)
        for _ in range(steps):
            optimiser.zero_grad()
            (-likelihood(self(*self.train_inputs), self.train_targets)).backward()
            optimiser.step()


def test_training_and_posterior_equal_those_of_a_gpytorch_model() -> None:
    policy = ForgetfulGP(share=1.0, epochs=12, rate=0.1)
    policy.fit(some(60), RNG(0))
    peer = Peer(policy._memory.joint(), policy._memory.rewards.copy())
    peer.train_by_adam(12, 0.1)
    height, length, noise = policy._hyper.positive
    assert policy._hyper.constant == pytest.approx(peer.mean.constant.item(), rel=1e-9)
    assert height == pytest.approx(peer.kernel.outputscale.item(), rel=1e-9)
    assert length == pytest.approx(peer.kernel.base_kernel.lengthscale.item(), rel=1e-9)
    assert noise == pytest.approx(peer.likelihood.noise.item(), rel=1e-9)
    with torch.no_grad():
        expected = peer.eval()(torch.tensor(queries(policy)))
        mean, deviation = policy._posterior(queries(policy))
        np.testing.assert_allclose(mean, expected.mean.numpy(), rtol=1e-8)
        np.testing.assert_allclose(deviation**2, expected.variance.numpy(), rtol=1e-6)


def test_the_posterior_equals_the_closed_form() -> None:
    policy = ForgetfulGP(width=0.7)
    policy.fit(some(30), RNG(0))
    height, length, noise = policy._hyper.positive

    def kernel(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        squares = ((one[:, None, :] - two[None, :, :]) ** 2).sum(2)
        return height * np.exp(-squares / (2 * length**2))

    points, asked = policy._memory.joint(), queries(policy)
    inverse = np.linalg.inv(kernel(points, points) + noise * np.eye(len(points)))
    centred = policy._memory.rewards - policy._hyper.constant
    mean = policy._hyper.constant + kernel(asked, points) @ inverse @ centred
    variance = np.diag(kernel(asked, asked) - kernel(asked, points) @ inverse @ kernel(points, asked))
    choice = policy.choose(CONTEXT, ARMS, RNG(0))
    np.testing.assert_allclose(choice.means, mean, atol=1e-10)
    assert choice.arm == np.argmax(mean + 0.7 * np.sqrt(variance))


def test_the_gradient_is_exact_beyond_the_size_where_gpytorch_would_estimate_it() -> None:
    feedback, hyper = some(850), Hyperparameters(raw=np.array([0.4, -1.0, 0.5, -2.0]))
    points = feedback.joint() / np.sqrt(5)
    one, two = (loss_gradient(points, feedback.rewards, hyper) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    height, length, noise = hyper.positive
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(2)
    shape = np.exp(-squares / (2 * length**2))
    inverse = np.linalg.inv(height * shape + noise * np.eye(len(points)))
    weights = inverse @ (feedback.rewards - hyper.constant)
    inner = inverse - np.outer(weights, weights)
    # Rasmussen & Williams (2006), Eq. 5.9, times the slope of softplus at each raw number.
    slopes = 1 / (1 + np.exp(-hyper.raw[1:]))
    parts = [inner * shape, inner * shape * height * squares / length**3, inner * np.eye(len(points))]
    expected = [
        -weights.sum(),
        *(0.5 * part.sum() * slope for part, slope in zip(parts, slopes, strict=True)),
    ]
    np.testing.assert_allclose(one, np.array(expected) / len(points), rtol=1e-6)


def test_the_memory_is_a_share_of_the_history_in_the_order_of_time() -> None:
    history = some(400)
    for share, limit, size in ((0.5, 1000, 200), (0.05, 1000, 100), (0.5, 50, 50)):
        policy = ForgetfulGP(share=share, limit=limit, epochs=1)
        policy.fit(history, RNG(0))
        assert len(policy._memory) == size
        assert (np.diff(policy._memory.times) > 0).all()
        assert set(policy._memory.rewards) <= set(history.rewards)


def test_with_all_of_the_history_the_limit_is_a_window() -> None:
    policy, feedback = ForgetfulGP(share=1.0, limit=20, epochs=1, train_every=100), some(60)
    policy.fit(feedback[:50], RNG(0))
    newest = in_time(feedback[:50])[-20:]
    np.testing.assert_array_equal(policy._memory.rewards, newest.rewards)
    policy.update(feedback[50:], RNG(0))
    np.testing.assert_array_equal(policy._memory.rewards, [*newest.rewards[10:], *feedback.rewards[50:]])


def test_a_new_outcome_replaces_the_oldest() -> None:
    policy, news = ForgetfulGP(limit=20, epochs=1), some(3, seed=1)
    policy.fit(some(30), RNG(0))
    before = policy._memory.rewards.copy()
    policy.update(news, RNG(0))
    np.testing.assert_array_equal(policy._memory.rewards, [*before[3:], *news.rewards])


def test_a_history_that_is_not_remembered_still_shapes_the_kernel() -> None:
    policy = ForgetfulGP()
    policy.fit(some(30), RNG(0), remember=False)
    assert len(policy._memory) == 0
    assert policy._hyper.steps == 5
    choice = policy.choose(CONTEXT, ARMS, RNG(0))
    np.testing.assert_array_equal(choice.means, policy._hyper.constant)
    np.testing.assert_allclose(choice.propensities, 1 / 5)


def test_training_goes_on_after_every_so_many_outcomes() -> None:
    policy = ForgetfulGP(epochs=2, train_every=3)
    policy.fit(some(0), RNG(0))
    steps = []
    for row in range(7):
        policy.update(some(7)[row : row + 1], RNG(0))
        steps.append(policy._hyper.steps)
    assert steps == [0, 0, 1, 1, 1, 2, 2]


def test_no_thread_setting_or_random_state_of_torch_is_left_changed() -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    ForgetfulGP().fit(some(30), RNG(0))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_a_missing_gpytorch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    with pytest.raises(ModuleNotFoundError, match=r"gpytorch: pip install 'tercet\[bench\]'"):
        ForgetfulGP().fit(some(30), RNG(0))


def test_an_untrained_policy_decides_and_can_be_saved(tmp_path: Path) -> None:
    ForgetfulGP(width=0.5, limit=9).save(tmp_path / "policy")
    again = ForgetfulGP.load(tmp_path / "policy")
    np.testing.assert_allclose(again.choose([0.0, 0.0], np.eye(3), RNG(0)).propensities, 1 / 3)
    assert (again.width, again.limit) == (0.5, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": -1.0}, "width must be a number of at least 0; got -1"),
        ({"share": 1.5}, r"share must lie in \[0, 1\]; got 1.5"),
        ({"limit": 0}, "limit must be a whole number"),
        ({"rate": 0.0}, "rate must be a finite number above 0"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"train_every": 0}, "train_every must be a whole number"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ForgetfulGP(**options)
