"""phi as a torch module, and its export to NumPy."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from tercet import checks
from tercet.checks import Matrix
from tercet.embedding.inference import REACH, Perceptron, Phi


@final
class Network(nn.Module):
    """Linear layers with Softplus between them, on centred and scaled inputs. Made by `build`."""

    centre: Tensor
    scale: Tensor

    def __init__(self, layers: nn.Sequential, centre: Tensor, scale: Tensor, context_dim: int) -> None:
        super().__init__()
        self.layers = layers
        self.context_dim = context_dim
        # float64, because a large centre (a date in seconds, say) must cancel exactly.
        self.register_buffer("centre", centre)
        self.register_buffer("scale", scale)

    def forward(self, contexts: Tensor, arms: Tensor) -> Tensor:
        """Embed pairs, row by row."""
        inputs = torch.cat([contexts, arms], dim=1)
        expected = (self.context_dim, len(self.centre) - self.context_dim)
        if (contexts.shape[1], arms.shape[1]) != expected:
            raise ValueError(
                f"phi takes {expected[0]} context and {expected[1]} arm features; "
                f"got {contexts.shape[1]} and {arms.shape[1]}"
            )
        scaled = ((inputs - self.centre) / self.scale).clamp(-REACH, REACH)
        embeddings: Tensor = self.layers(scaled.float())
        return embeddings


def build(
    context_dim: int,
    arm_dim: int,
    rng: np.random.Generator,
    *,
    hidden: Sequence[int] = (64,),
    dim: int = 8,
    centre: Any = None,
    scale: Any = None,
) -> Network:
    """Return an untrained phi: context_dim + arm_dim inputs, `hidden` layers, `dim` outputs.

    `centre` and `scale` are those of the inputs, context first (see `inference.scaling`); none by default.
    """
    width = context_dim + arm_dim
    if min(context_dim, arm_dim) < 0 or width < 1:
        raise ValueError(f"phi needs at least one input; got context_dim={context_dim}, arm_dim={arm_dim}")
    sizes = [width, *hidden, dim]
    if min(sizes) < 1:
        raise ValueError(f"hidden and dim must be at least 1; got {tuple(hidden)} and {dim}")
    centre = np.zeros(width) if centre is None else checks.vector("centre", centre, length=width)
    scale = np.ones(width) if scale is None else checks.vector("scale", scale, length=width)
    if not (scale > 0).all():
        raise ValueError(f"scale must be above 0; got {scale.min():g}")
    generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [linear(inputs, outputs, generator), nn.Softplus()]
    return Network(
        nn.Sequential(*layers[:-1]), torch.tensor(centre), torch.tensor(scale), context_dim=context_dim
    )


def export(network: Network) -> Perceptron:
    """Return the torch-free twin of a network."""
    linear = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
    return Perceptron(
        weights=[layer.weight.detach().cpu().numpy().T for layer in linear],
        biases=[layer.bias.detach().cpu().numpy() for layer in linear],
        centre=network.centre.cpu().numpy(),
        scale=network.scale.cpu().numpy(),
        context_dim=network.context_dim,
    )


def frozen(module: nn.Module) -> Phi:
    """Return any module with `forward(contexts, arms)` as a function of NumPy arrays: a copy as of now."""
    if isinstance(module, Network):
        return export(module)
    copy = deepcopy(module).cpu().eval()
    kind = input_type(copy)

    def phi(contexts: Matrix, arms: Matrix) -> Matrix:
        with torch.inference_mode():
            embeddings = copy(torch.tensor(contexts, dtype=kind), torch.tensor(arms, dtype=kind))
        return np.asarray(embeddings.numpy(), dtype=np.float64)

    return phi


def input_type(module: nn.Module) -> torch.dtype:
    """Return the type that a module takes: the widest it holds (our own keeps its centre in float64)."""
    kinds = [value.dtype for value in module.state_dict().values() if value.is_floating_point()]
    return max(kinds, key=lambda kind: torch.finfo(kind).bits, default=torch.float32)


def linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Return a layer with torch's usual start, drawn from a generator."""
    # nn.Linear by itself would draw from the global random state.
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call]
    bound = inputs**-0.5
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return layer
