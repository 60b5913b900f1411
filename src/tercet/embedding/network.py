"""phi as a torch module, and its export to NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tercet import checks
from tercet.checks import Matrix
from tercet.embedding.inference import REACH, Perceptron, Phi


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
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        layers += [_linear(inputs, outputs, generator), nn.Softplus()]
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
    """Return any module of (contexts, arms) as a function of NumPy arrays, in evaluation mode."""
    module.eval()
    sample = next(module.parameters(), torch.empty(0))

    def embed(contexts: Matrix, arms: Matrix) -> Matrix:
        with torch.no_grad():
            inputs = [torch.as_tensor(rows).to(sample.device, sample.dtype) for rows in (contexts, arms)]
            embeddings: Tensor = module(*inputs)
        return embeddings.double().cpu().numpy()

    return embed


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)  # nn.Linear would use global random state
    bound = inputs**-0.5
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return layer
