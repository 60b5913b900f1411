"""Our phi as a torch module on encoded inputs, and its export to NumPy."""

from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from tercet.checks import Vector
from tercet.embedding.encoding import Encoding
from tercet.embedding.network import linear
from tercet.embedding.residual import EPSILON, Block, Layer, Residual

# Spread of a hidden value by the context and by the arm, before training.
CONTEXT, ARM = 0.6, 0.3


@final
class ResidualNetwork(nn.Module):
    """Blocks that add max(Linear(normalised), 0) to their input, each behind a normalisation."""

    def __init__(
        self,
        context: Vector,
        arm: Vector,
        *,
        width: int,
        blocks: int,
        dim: int,
        dropout: float = 0.0,
        rng: np.random.Generator,
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        self.first = linear(len(context) + len(arm), width, generator)
        starts = (
            (self.first.weight[:, : len(context)], context, CONTEXT),
            (self.first.weight[:, len(context) :], arm, ARM),
        )
        for weights, spreads, strength in starts:
            total = float(np.sqrt(np.square(spreads).sum())) or 1.0
            nn.init.normal_(weights, std=strength / total, generator=generator)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=EPSILON) for _ in range(blocks + 1))
        self.inner = nn.ModuleList(linear(width, width, generator) for _ in range(blocks))
        self.outer = nn.ModuleList(linear(width, width, generator) for _ in range(blocks))
        for values in self.outer.parameters():  # blocks add nothing at first
            nn.init.zeros_(values)
        self.last = linear(width, dim, generator)
        self.dropout = min(round(256 * dropout), 255)
        self.short = _multiplies_short_floats()
        self.rng = rng
        self.generator: torch.Generator | None = None  # of a GPU

    def hidden(self) -> list[nn.Parameter]:
        """Return the matrices between hidden layers."""
        return [layer.weight for layer in (*self.inner, *self.outer)]

    def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
        """Embed pairs of encoded rows."""
        contexts = self._thinned(contexts, self.dropout)
        # Sums, norms and embeddings stay as they are: distances between the latter need all their bits.
        with torch.autocast("cpu", torch.bfloat16, enabled=self.short and self.training):
            values: Tensor = self.first(torch.cat([contexts, arms], dim=1)).float()
            for norm, inner, outer in zip(self.norms, self.inner, self.outer, strict=False):
                values = values + outer(torch.relu(inner(norm(values))))
        embeddings: Tensor = self.last(self.norms[-1](values))
        return embeddings

    def _thinned(self, values: Tensor, share: int) -> Tensor:  # in 256ths
        # Dropout with our own generator: several networks may train at once, each reproducibly. Random bytes
        # cost a tenth of torch's Bernoulli draws.
        if not self.training or share == 0:
            return values
        if values.is_cuda:
            if self.generator is None:  # bytes from the CPU would take longer than all the rest
                self.generator = torch.Generator(values.device).manual_seed(int(self.rng.integers(2**63)))
            empty = torch.empty(values.shape, dtype=torch.uint8, device=values.device)
            kept = (empty.random_(generator=self.generator) >= share).to(values.dtype)
        else:
            words = self.rng.bit_generator.random_raw(-(-values.numel() // 8))
            bytes_ = words.view(np.uint8)[: values.numel()].reshape(values.shape)
            kept = torch.from_numpy((bytes_ >= share).astype(np.float32)).to(values.dtype)
        kept *= 256 / (256 - share)
        return values * kept


def _multiplies_short_floats() -> bool:
    """Whether this CPU multiplies matrices of 16-bit floats, faster than others."""
    known: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # of torch 2.13 and later
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


def export(network: ResidualNetwork, context: Encoding, arm: Encoding) -> Residual:
    """Return the torch-free twin of a network and the encodings before it."""
    plain = [_layer(layer) for layer in network.outer]
    folded = [_behind(norm, layer) for norm, layer in zip(network.norms, network.inner, strict=False)]
    return Residual(
        context=context,
        arm=arm,
        first=_layer(network.first),
        blocks=[Block(*layers) for layers in zip(folded, plain, strict=True)],
        last=_behind(network.norms[-1], network.last),
    )


def _layer(layer: nn.Module) -> Layer:
    weights, bias = (np.asarray(p.detach().cpu().numpy(), dtype=np.float32) for p in layer.parameters())
    return Layer(np.ascontiguousarray(weights.T), bias.copy())


def _behind(norm: nn.Module, layer: nn.Module) -> Layer:
    """The layer with the gains and shifts of the normalisation before it."""
    weights, bias = _layer(layer)
    gains, shifts = (p.detach().cpu().numpy() for p in norm.parameters())
    return Layer(weights * gains[:, None], bias + shifts @ weights)
