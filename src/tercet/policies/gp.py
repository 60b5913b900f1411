"""A Gaussian process that forgets: exact regression on the newest outcomes, its kernel trained online."""

# ruff: noqa: ARG002 - the protocol hands every policy more than some of them use
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Self, final

import numpy as np

from tercet import checkpoint, checks
from tercet.checks import Matrix, Vector
from tercet.policies.base import highest, offered, options
from tercet.policies.kernel import rbf
from tercet.policies.memory import Outcomes, Scale, in_time
from tercet.types import Choice, Feedback

FEWEST = 100  # rows taken of a history whose share would be smaller: a handful can not shape a kernel
NOISE_FLOOR = 1e-4  # gpytorch's, which keeps K + noise·I invertible


@dataclass(frozen=True, kw_only=True, eq=False)
class Hyperparameters:
    """Constant mean, output scale, length scale and noise, with the state of Adam that trains them.

    `raw` are gpytorch's unconstrained numbers in that order: the last three are softplus⁻¹ of their values
    (the noise's less its floor). Zero is where gpytorch starts.
    """

    raw: Vector = field(default_factory=lambda: np.zeros(4))
    first: Vector = field(default_factory=lambda: np.zeros(4))
    second: Vector = field(default_factory=lambda: np.zeros(4))
    steps: int = 0

    @property
    def constant(self) -> float:
        return float(self.raw[0])

    @property
    def positive(self) -> tuple[float, float, float]:
        """Output scale, length scale and noise."""
        height, length, noise = np.logaddexp(0, self.raw[1:]).tolist()
        return height, length, noise + NOISE_FLOOR

    def stepped(self, gradient: Vector, rate: float) -> Self:
        """Return them after a step of Adam (Kingma & Ba, 2015, Algorithm 1)."""
        steps = self.steps + 1
        first = 0.9 * self.first + 0.1 * gradient
        second = 0.999 * self.second + 0.001 * gradient**2
        size = np.sqrt(second / (1 - 0.999**steps)) + 1e-8
        raw = self.raw - rate * first / (1 - 0.9**steps) / size
        return replace(self, raw=raw, first=first, second=second, steps=steps)


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """The posterior, ready to be asked: K + noise·I = R'R, and (K + noise·I)⁻¹(y - constant)."""

    points: Matrix
    root: Matrix
    weights: Vector


@final
@dataclass(kw_only=True, eq=False)
class ForgetfulGP:
    """Play the arm with the highest mean plus `width` standard deviations of a Gaussian process.

    The prior has a constant mean and a scaled RBF kernel on context and arm, scaled by the history. Adam
    fits its four hyper-parameters to the marginal likelihood (gpytorch, float64): `epochs` steps in `fit`,
    then one after every `train_every` outcomes (a batch counts as one step). The memory starts as a random
    `share` of the history (at least 100 rows), in the order of time, and holds its newest `limit` outcomes:
    from there on each new one replaces the oldest. So with share=1.0, `limit` is the window that other
    policies have. A step costs O(limit³).

    Needs `pip install 'tercet[bench]'` to train.
    """

    width: float = 1.96
    share: float = 0.05
    limit: int = 1000
    rate: float = 0.1
    epochs: int = 5
    train_every: int = 1
    _memory: Outcomes = field(init=False, repr=False)
    _hyper: Hyperparameters = field(default_factory=Hyperparameters, init=False, repr=False)
    _solution: Solution | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if checks.number("width", self.width) < 0:
            raise ValueError(f"width must be a number of at least 0; got {self.width}")
        checks.unit("share", [self.share])
        checks.positive("rate", self.rate)
        checks.whole("epochs", self.epochs)
        checks.whole("train_every", self.train_every)
        self._memory = Outcomes(limit=checks.whole("limit", self.limit))

    def fit(self, history: Feedback, rng: np.random.Generator, *, remember: bool = True) -> None:
        """Forget everything, train on a random share of the history, and remember that share."""
        size = min(max(round(self.share * len(history)), FEWEST), len(history))
        sample = in_time(history[rng.choice(len(history), size, replace=False)])
        self._memory = Outcomes(limit=self.limit, scale=Scale.of(history))
        self._memory.append(sample)
        self._hyper = Hyperparameters()
        self._train(self.epochs)
        if not remember:
            self._memory = Outcomes(limit=self.limit, scale=self._memory.scale)
        self._solve()

    def choose(
        self,
        context: Any,
        arms: Any,
        rng: np.random.Generator,
        *,
        time: float | None = None,
        arm_ids: Any = None,
    ) -> Choice:
        """Score every arm and pick the best."""
        features, matrix = offered(context, arms)
        contexts, matrix = self._memory.scaled(np.tile(features, (len(matrix), 1)), matrix)
        mean, deviation = self._posterior(np.hstack([contexts, matrix]))
        return highest(mean + self.width * deviation, rng, means=mean)

    def update(self, feedback: Feedback, rng: np.random.Generator) -> None:
        """Put outcomes in the place of the oldest, and train a step when it is time."""
        done = self._memory.seen // self.train_every
        self._memory.append(feedback)
        if self._memory.seen // self.train_every > done:
            self._train(1)
        self._solve()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the outcomes, the hyper-parameters, Adam's state and the options."""
        hyper = {name: getattr(self._hyper, name) for name in ("raw", "first", "second")}
        spec = {"options": options(self), "steps": self._hyper.steps}
        checkpoint.write(path, "ForgetfulGP", self._memory.to_arrays() | hyper, spec)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        arrays, spec = checkpoint.read(path, "ForgetfulGP")
        policy = cls(**spec["options"])
        policy._memory = Outcomes.from_arrays(arrays, limit=policy.limit)
        policy._hyper = Hyperparameters(
            raw=arrays["raw"], first=arrays["first"], second=arrays["second"], steps=spec["steps"]
        )
        policy._solve()
        return policy

    def _train(self, steps: int) -> None:
        if len(self._memory):
            points, rewards = self._memory.joint(), self._memory.rewards
            for _ in range(steps):
                self._hyper = self._hyper.stepped(loss_gradient(points, rewards, self._hyper), self.rate)

    def _solve(self) -> None:
        if not len(self._memory):
            self._solution = None
            return
        from scipy.linalg import cho_solve, cholesky

        height, length, noise = self._hyper.positive
        points = self._memory.joint()
        root = cholesky(height * rbf(points, points, length) + noise * np.eye(len(points)))
        weights = cho_solve((root, False), self._memory.rewards - self._hyper.constant)
        self._solution = Solution(points=points, root=root, weights=weights)

    def _posterior(self, points: Matrix) -> tuple[Vector, Vector]:
        """Return mean and deviation of the latent function (Rasmussen & Williams, 2006, Eq. 2.25-26)."""
        height, length, _ = self._hyper.positive
        if self._solution is None:
            return np.full(len(points), self._hyper.constant), np.full(len(points), np.sqrt(height))
        from scipy.linalg import solve_triangular

        near = height * rbf(points, self._solution.points, length)
        known = (solve_triangular(self._solution.root, near.T, trans="T") ** 2).sum(0)
        mean = self._hyper.constant + near @ self._solution.weights
        return mean, np.sqrt(np.maximum(height - known, 0))


def loss_gradient(points: Matrix, rewards: Vector, hyper: Hyperparameters) -> Vector:
    """Return the gradient of the negative log marginal likelihood an outcome, by gpytorch."""
    with warnings.catch_warnings():
        # linear_operator compiles with torch.jit.script at import, which torch has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            import gpytorch
            import torch
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "a Gaussian process needs gpytorch: pip install 'tercet[bench]'", name=error.name
            ) from error

    mean = gpytorch.means.ConstantMean()
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = torch.nn.ModuleList([mean, kernel, likelihood]).double()
    parameters = list(model.parameters())
    torch.nn.utils.vector_to_parameters(torch.tensor(hyper.raw), parameters)
    inputs, outputs = torch.tensor(points), torch.tensor(rewards)
    # Above 800 rows gpytorch would estimate the determinant with random vectors, unless told not to.
    with _one_thread(), gpytorch.settings.fast_computations(False, False, False):
        prior = gpytorch.distributions.MultivariateNormal(mean(inputs), kernel(inputs))
        loss = -likelihood(prior).log_prob(outputs) / len(outputs)
        gradients = torch.autograd.grad(loss, parameters)
    return torch.cat([gradient.reshape(-1) for gradient in gradients]).numpy()


@contextmanager
def _one_thread() -> Iterator[None]:
    # More threads would make the last bits depend on their number, and two runs wait for each other.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
