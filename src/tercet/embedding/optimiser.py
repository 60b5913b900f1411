"""How phi's weights follow their gradients in leave-one-out training."""

from typing import final

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from tercet.embedding.options import LeaveOneOut
from tercet.embedding.residual_network import ResidualNetwork

MOMENTUM = 0.95
NEWTON_SCHULZ, ROUNDS = (3.4445, -4.7750, 2.0315), 5  # of Keller Jordan's Muon
TINY = 1e-7


@final
class Optimiser:
    """Muon for the matrices between hidden layers, AdamW for all else; both rates rise and fall once."""

    def __init__(self, phi: nn.Module, options: LeaveOneOut, steps: int) -> None:
        rate = options.hidden_rate
        hidden = phi.hidden() if isinstance(phi, ResidualNetwork) and rate is not None else []
        known = {id(weights) for weights in hidden}
        others = [weights for weights in phi.parameters() if id(weights) not in known]
        self._adam = torch.optim.AdamW(others, lr=options.rate, weight_decay=options.decay, fused=True)
        self._cycle = OneCycleLR(self._adam, options.rate, total_steps=steps)
        self._muon = _Muon(hidden, options.decay) if hidden else None
        self._ratio = (rate or 0.0) / options.rate

    def step(self) -> None:
        """Move the parameters by their gradients."""
        if self._muon is not None:
            self._muon.step(self._ratio * self._adam.param_groups[0]["lr"])
        self._adam.step()
        self._cycle.step()


@final
class _Muon:
    """torch.optim.Muon for square matrices of one size, all in one product, which is faster."""

    def __init__(self, matrices: list[nn.Parameter], decay: float) -> None:
        self._matrices, self._decay = matrices, decay
        self._momentum = torch.zeros_like(torch.stack([*matrices]), requires_grad=False)

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move the matrices by their gradients, made orthogonal."""
        gradients = torch.stack([matrix.grad for matrix in self._matrices if matrix.grad is not None])
        self._momentum.lerp_(gradients, 1 - MOMENTUM)
        moves = _orthogonal(gradients.lerp(self._momentum, MOMENTUM))
        for matrix, move in zip(self._matrices, moves, strict=True):
            matrix.mul_(1 - rate * self._decay).add_(move, alpha=-rate)


def _orthogonal(matrices: Tensor) -> Tensor:
    """Return matrices of the same singular vectors whose singular values are all near 1."""
    a, b, c = NEWTON_SCHULZ
    short = matrices.bfloat16()
    short /= short.norm(dim=(1, 2), keepdim=True).clamp(min=TINY)
    for _ in range(ROUNDS):
        square = short @ short.mT
        short = torch.baddbmm(short, torch.baddbmm(square, square, square, beta=b, alpha=c), short, beta=a)
    return short
