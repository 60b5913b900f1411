"""Train phi so that, in random groups of the history, each outcome is predicted by all the others."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from tercet import compiled
from tercet.checks import Array
from tercet.embedding.objective import EDGE, FAINT, exponents
from tercet.embedding.optimiser import Optimiser
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.recording import Recording
from tercet.embedding.residual_network import ResidualNetwork
from tercet.embedding.samples import Samples, embedded

CHECKS = 20  # times in a training that the held-out rows are looked at
CHECKED = 2_048  # of them, and of the references that predict them, at most
CALM = 0.98  # of the running mean of the weights, which is what is kept, by step
STEEPEST = 1.0  # longer gradients are cut to this length


@dataclass(kw_only=True, eq=False)
class Course:
    """One training, its record so far and a copy of its best state."""

    phi: nn.Module
    options: LeaveOneOut
    rng: np.random.Generator
    bandwidth: float = 1.0
    losses: list[float] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    means: list[Tensor] = field(default_factory=list)  # of the weights, over the last steps
    room: "Room" = field(default_factory=lambda: Room())

    def run(
        self,
        learned: Samples,
        held: Samples,
        *,
        real: int | None = None,
        go_on: Callable[[], bool],
        advance: Callable[[float], None],
    ) -> None:
        """Train, and leave phi where it predicts the held-out rows best.

        If only the first rows are `real`, all others are learned from too, in as many steps as without them,
        but they are no references later.
        """
        try:
            self._train(learned, learned[:real], held, go_on, advance)
        finally:
            if self.best:
                self.phi.load_state_dict(self.best)
            self.phi.eval()

    def _train(
        self,
        learned: Samples,
        real: Samples,
        held: Samples,
        go_on: Callable[[], bool],
        advance: Callable[[float], None],
    ) -> None:
        mean = float(real.rewards.mean()) if len(real) else 0.5
        groups = _Groups(learned.interval.cpu().numpy(), self.options)
        if groups.size < 2:
            return
        assert self.options.epochs is not None
        steps = max(self.options.steps, math.ceil(self.options.epochs * len(real) / groups.batch))
        optimiser, weights = Optimiser(self.phi, self.options, steps), list(self.phi.parameters())
        drawn = torch.empty((groups.count, groups.size), dtype=torch.int64, device=learned.rewards.device)
        # Only our own network is known to look at no value on its way.
        phi = self.phi if isinstance(self.phi, ResidualNetwork) and drawn.is_cuda else None

        def descend() -> None:
            rows = learned.take(drawn.ravel())
            points = self._embed(rows, checked=phi is None).reshape(*drawn.shape, -1)
            rewards = rows.rewards.reshape(drawn.shape).to(points.dtype)
            predicted = predictions(points, rewards, mean=mean, prior=self.options.prior,
                                    importance=self.options.importance, room=self.room)  # fmt: skip
            loss = entropy(predicted, rewards)
            self.phi.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(weights, STEEPEST, foreach=True)

        descent = descend if phi is None else Recording(descend, phi)
        for step in range(steps):
            if not go_on():
                break
            drawn.copy_(torch.from_numpy(groups.draw(self.rng)))
            self.phi.train()
            descent()
            optimiser.step()
            self._average(weights)
            if (step + 1) % max(1, steps // CHECKS) == 0 or step + 1 == steps:
                self._check(real, held, mean)
                advance(self.losses[-1])

    @torch.no_grad()
    def _average(self, weights: list[nn.Parameter]) -> None:
        self.means = self.means or [each.clone() for each in weights]
        torch._foreach_lerp_(self.means, [*weights], 1 - CALM)  # all in one launch of a GPU

    def _exchange(self) -> None:
        """Make phi's weights their running means, or back."""
        for number, weights in enumerate(self.phi.parameters()):
            weights.data, self.means[number] = self.means[number], weights.data

    def _check(self, real: Samples, held: Samples, mean: float) -> None:
        self._exchange()
        try:
            self._judge(real, held, mean)
        finally:
            self._exchange()

    @torch.no_grad()
    def _judge(self, real: Samples, held: Samples, mean: float) -> None:
        self.phi.eval()
        references, queries = real[:CHECKED], held[:CHECKED]
        points, asked = self._embed(references), self._embed(queries) if len(queries) else None
        total, count = 0.0, 0
        for interval in torch.unique(queries.interval):
            here, there = references.interval == interval, queries.interval == interval
            if asked is None or not here.any():
                continue
            known, wanted = (rows.rewards.to(points.dtype) for rows in (references[here], queries[there]))
            predicted = regression(asked[there], points[here], known, mean=mean, prior=self.options.prior,
                                   importance=self.options.importance)  # fmt: skip
            total += float(entropy(predicted, wanted)) * len(wanted)
            count += len(wanted)
        self.losses.append(total / count if count else math.nan)
        if not count or self.losses[-1] <= min(self.losses):
            # A state dict holds the live tensors: without a clone, the next step would change them.
            self.best = {name: value.clone() for name, value in self.phi.state_dict().items()}

    def _embed(self, rows: Samples, *, checked: bool = True) -> Tensor:
        if not checked:
            points: Tensor = self.phi(rows.contexts, rows.arms)
            return points / self.bandwidth
        return embedded(self.phi, rows.contexts, rows.arms, rate=self.options.rate) / self.bandwidth


class _Groups:
    """Which rows are compared: groups of equally many, each of one time interval."""

    def __init__(self, intervals: Array, options: LeaveOneOut) -> None:
        order = np.argsort(intervals, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(intervals[order])) + 1)
        # Equal times share an interval, so some may be short: those under half of the usual size stay out,
        # where the usual row, not the usual interval, decides.
        sizes = np.asarray([len(part) for part in parts])
        usual = np.median(np.repeat(sizes, sizes)) if len(intervals) else 0
        self.parts = [part for part in parts if 2 * len(part) >= usual]
        rows = min(options.batch, *(len(part) for part in self.parts))
        self.count = min(len(self.parts), max(1, options.batch // max(rows, 1)))
        self.size = rows
        self.batch = self.count * self.size

    def draw(self, rng: np.random.Generator) -> Array:
        chosen = rng.choice(len(self.parts), size=self.count, replace=False)
        return np.stack([rng.choice(self.parts[i], size=self.size, replace=False) for i in chosen])


def entropy(predicted: Tensor, rewards: Tensor) -> Tensor:
    """Return the mean log-loss; predictions are squeezed a little, so that it stays finite."""
    return functional.binary_cross_entropy(EDGE + (1 - 2 * EDGE) * predicted, rewards)


def regression(
    queries: Float[Tensor, "q d"],
    references: Float[Tensor, "n d"],
    rewards: Float[Tensor, "n"],
    *,
    mean: float,
    prior: float,
    importance: bool,
) -> Float[Tensor, "q"]:
    """Return the estimate at queries that are not among the references, with a little of the mean."""
    shift = references.mean(dim=0)  # distances cancel less near the origin
    queries, references = queries - shift, references - shift
    kernel = exponents(queries, references).clamp_(FAINT, 0).exp_()
    if importance:
        kernel /= exponents(references, references).clamp_(FAINT, 0).exp_().sum(dim=1)
    return (kernel @ rewards + prior * mean) / (kernel.sum(dim=1) + prior)


def predictions(
    points: Float[Tensor, "g n d"],
    rewards: Float[Tensor, "g n"],
    *,
    mean: float,
    prior: float,
    importance: bool,
    room: "Room | None" = None,
) -> Float[Tensor, "g n"]:
    """Return for each point the estimate by the others of its group, as if it had never been there.

    With κ_ij the kernel and W_j = Σ_i κ_ij the density of j, the density of j without i is W_j - κ_ij, so

        mean_i = (Σ_j w_ij r_j + prior·mean) / (Σ_j w_ij + prior),   w_ij = κ_ij / (W_j - κ_ij),   j ≠ i

    and w_ij = κ_ij without importance weights. What is computed in a `room` can be differentiated until the
    room is used again.
    """
    room = room or Room()
    quick = importance and points.device.type == "cpu" and points.dtype == torch.float32
    kernels = _kernels() if quick else None
    result: Tensor = (
        _Predictions.apply(points, rewards, mean, prior, importance, room)  # type: ignore[no-untyped-call]
        if kernels is None
        else _Compiled.apply(points, rewards, mean, prior, kernels, room)  # type: ignore[no-untyped-call]
    )
    return result


@cache
def _kernels() -> ModuleType | None:
    return compiled.load("tercet.embedding.pair_kernels")


class Room:
    """Matrices that each step writes over: to get new ones takes longer than all that is done with them."""

    def __init__(self) -> None:
        self._matrices: list[Tensor] = []

    def matrices(self, points: Tensor) -> list[Tensor]:
        """Return three matrices with a row and a column for each point, and anything in them."""
        shape = (*points.shape[:-1], points.shape[-2])
        if not self._matrices or self._matrices[0].shape != shape:
            self._matrices = [points.new_empty(shape) for _ in range(3)]
        return self._matrices


class _Predictions(torch.autograd.Function):
    """One kernel matrix serves estimates, densities and gradient; autograd would make a dozen of its size."""

    @staticmethod
    def forward(
        ctx: Any, points: Tensor, rewards: Tensor, mean: float, prior: float, importance: bool, room: Room
    ) -> Tensor:
        points = points - points.mean(dim=-2, keepdim=True)  # distances cancel less near the origin
        kernel, slopes, weights = room.matrices(points)
        exponents(points, points, out=kernel).clamp_(FAINT, 0).exp_()
        kernel.diagonal(dim1=-2, dim2=-1).zero_()
        density = None
        if importance:
            density = 1 + kernel.sum(dim=-1)  # with itself
            others = torch.sub(density.unsqueeze(-2), kernel, out=slopes)
            torch.div(kernel, others, out=weights)
            torch.div(weights, others, out=slopes)  # κ/(W - κ)²
        else:
            slopes = weights = kernel
        total = weights.sum(dim=-1) + prior
        estimates = ((weights @ rewards.unsqueeze(-1)).squeeze(-1) + prior * mean) / total
        ctx.save_for_backward(points, rewards, kernel, slopes, density, total, estimates)
        return estimates

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        # dL/dw_ij = g_i (r_j - mean_i) / total_i, dw/dκ = W/(W - κ)², dw/dW = -κ/(W - κ)²; W_j = 1 + Σ κ_ij,
        # so with C = κ/(W - κ)², u = g / total and v = u·mean each pair is pulled together by
        #     Q_ij = (u_i r_j - v_i) C_ij W_j - κ_ij s_j,   s_j = Σ_i (u_i r_j - v_i) C_ij
        # (without importance C = κ, W = 1, s = 0), and dL/dx = (Q + Qᵀ) x minus its row sums times x.
        # Q has rank-one factors around two matrices, so products with thin matrices are all it takes.
        points, rewards, kernel, slopes, density, total, estimates = ctx.saved_tensors
        x = torch.cat([points, torch.ones_like(points[..., :1])], dim=-1)
        u, r = (gradients[0] / total).unsqueeze(-1), rewards.unsqueeze(-1)
        v = u * estimates.unsqueeze(-1)
        width = x.shape[-1]
        columns = slopes.mT @ torch.cat([u * x, v * x], dim=-1)
        by_u, by_v = columns[..., :width], columns[..., width:]
        heavy = torch.ones_like(r) if density is None else density.unsqueeze(-1)
        rows = slopes @ torch.cat([heavy * r * x, heavy * x], dim=-1)
        moved = u * rows[..., :width] - v * rows[..., width:] + heavy * (r * by_u - by_v)
        if density is not None:
            sinking = r * by_u[..., -1:] - by_v[..., -1:]
            around = kernel @ torch.cat([sinking * x, x], dim=-1)
            moved = moved - around[..., :width] - sinking * around[..., width:]
        return moved[..., :-1] - moved[..., -1:] * points, None, None, None, None, None


class _Compiled(torch.autograd.Function):
    """The same with importance, faster: torch only multiplies, Numba does the rest at once."""

    @staticmethod
    def forward(
        ctx: Any, points: Tensor, rewards: Tensor, mean: float, prior: float, kernels: ModuleType, room: Room
    ) -> Tensor:
        points, rewards = points - points.mean(dim=-2, keepdim=True), rewards.contiguous()
        kernel, ctx.pulls, _ = room.matrices(points)
        kappa = torch.bmm(points, points.mT, out=kernel).numpy()
        density = kernels.densities(kappa, np.float32(FAINT))
        total, earned = map(torch.from_numpy, kernels.weighted(kappa, density, rewards.numpy()))
        total += prior
        estimates: Tensor = (earned + prior * mean) / total
        ctx.kernels = kernels
        ctx.save_for_backward(points, rewards, kernel, torch.from_numpy(density), total, estimates)
        return estimates

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        points, rewards, kernel, density, total, estimates = ctx.saved_tensors
        u = gradients[0] / total
        given = [values.numpy() for values in (kernel, density, rewards, u, u * estimates)]
        ctx.kernels.pulls(*given, ctx.kernels.sinking(*given), ctx.pulls.numpy())
        # Far from the origin both terms are large: sums of rows by the same product err alike, and cancel.
        moved = ctx.pulls @ torch.cat([points, torch.ones_like(points[..., :1])], dim=-1)
        return moved[..., :-1] - moved[..., -1:] * points, None, None, None, None, None
