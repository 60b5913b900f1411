"""What phi is trained towards: kernel regression that carries gradient, and its loss."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

# Squeezing an estimate into [EDGE, 1 - EDGE] keeps its log-loss finite. A clamp would do that too, but it
# has no gradient at the very queries that are most wrong.
EDGE = 1e-4

# exp is many times slower where its result is denormal, so sums of kernels stop above that: at 2e-35.
FAINT = -80.0


def estimate(
    queries: Float[Tensor, "*g q d"],
    references: Float[Tensor, "*g n d"],
    rewards: Float[Tensor, "*g n"],
    *,
    bandwidth: float,
    same: Bool[Tensor, "*g q n"] | None = None,
    reference_same: Bool[Tensor, "*g n n"] | None = None,
    importance: bool = True,
) -> tuple[Float[Tensor, "*g q"], Float[Tensor, "*g q"]]:
    """Return kernel mass and mean reward of each query, with gradient to queries and references.

    `same` says which references a query may use (those of its own time interval), the symmetric
    `reference_same` which references share an interval; None: all. A query without any has mass 0, mean 1/2
    and no gradient. Leading dimensions hold independent problems.
    """
    if references.shape[-2] == 0:
        return queries.new_zeros(queries.shape[:-1]), queries.new_full(queries.shape[:-1], 0.5)
    shift = references.detach().mean(dim=-2, keepdim=True)  # distances cancel less near the origin
    queries, references = (queries - shift) / bandwidth, (references - shift) / bandwidth
    log_kernel = exponents(queries, references).clamp(max=0)
    if same is not None:
        lonely = ~same.any(dim=-1)
        # A lonely query sees everything until its result is overwritten: a row of -inf would give NaN.
        log_kernel = log_kernel.masked_fill(~(same | lonely.unsqueeze(-1)), -torch.inf)
    log_weight = log_kernel
    if importance:
        # A reference's kernel with itself is 1, so a density is never less, nor its logarithm infinite.
        density: Tensor = _Density.apply(references, reference_same)  # type: ignore[no-untyped-call]
        log_weight = log_kernel - density.clamp(min=1).log().unsqueeze(-2)
    # Only ratios of weights matter, so softmax keeps mean and gradient where every kernel underflows.
    mean = (torch.softmax(log_weight, dim=-1) @ rewards.unsqueeze(-1)).squeeze(-1)
    mass = log_kernel.clamp(min=FAINT).exp().sum(dim=-1)
    if same is not None:
        mean, mass = mean.masked_fill(lonely, 0.5), mass.masked_fill(lonely, 0.0)
    return mass, mean


def loss(
    mean: Float[Tensor, "q"], rewards: Float[Tensor, "q"], *, calibration: float, bins: int
) -> Float[Tensor, ""]:
    """Return binary cross-entropy plus `calibration` times the expected calibration error."""
    squeezed = EDGE + (1 - 2 * EDGE) * mean
    entropy = functional.binary_cross_entropy(squeezed, rewards)
    if calibration == 0:
        return entropy
    # Which bin an estimate falls into is a step function and carries no gradient; the mean confidence
    # within a bin does.
    place = (mean.detach() * bins).long().clamp(max=bins - 1)
    gaps = (mean - rewards) @ functional.one_hot(place, bins).to(mean.dtype)
    return entropy + calibration * gaps.abs().sum() / len(mean)


class _Density(torch.autograd.Function):
    """W of every reference: the row sums of their kernel matrix.

    The matrix is symmetric, so the gradient needs one product with it and no other matrix of its size;
    plain autograd makes several and takes two to five times as long.
    """

    @staticmethod
    def forward(ctx: Any, points: Tensor, same: Tensor | None) -> Tensor:
        kernel = exponents(points, points).clamp_(FAINT, 0).exp_()
        if same is not None:
            kernel *= same
        density = kernel.sum(dim=-1)
        ctx.save_for_backward(points, kernel, density)
        return density

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        # Σ_i g_i dW_i/dx_k = Σ_j κ_kj (g_k + g_j)(x_j - x_k)
        points, kernel, density = ctx.saved_tensors
        given = gradients[0].unsqueeze(-1)
        weighted, plain, sums = (kernel @ torch.cat([given * points, points, given], dim=-1)).split(
            [points.shape[-1], points.shape[-1], 1], dim=-1
        )
        return weighted + given * plain - points * (sums + given * density.unsqueeze(-1)), None


def exponents(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """Return -|a - b|²/2 of each pair of rows; rounding may lift it a little above 0."""
    # -|a - b|²/2 = a·b - |a|²/2 - |b|²/2 as a single product.
    a_half, b_half = (x.square().sum(dim=-1, keepdim=True) / 2 for x in (a, b))
    left = torch.cat([a, -a_half, torch.ones_like(a_half)], dim=-1)
    right = torch.cat([b, torch.ones_like(b_half), -b_half], dim=-1)
    return torch.matmul(left, right.mT, out=out)
