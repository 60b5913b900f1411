"""Hidden matrices move as Muon moves them, all else by AdamW."""

import numpy as np
import torch

from tercet.embedding.optimiser import Optimiser
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.residual_network import ResidualNetwork


def test_the_hidden_rate_moves_the_matrices_between_hidden_layers_and_nothing_else() -> None:
    spreads = {"context": np.ones(4), "arm": np.ones(2)}
    moved = {}
    for rate in (1e-12, 1e-2):
        phi = ResidualNetwork(**spreads, width=8, blocks=1, dim=2, rng=np.random.default_rng(0))
        before = {name: value.clone() for name, value in phi.state_dict().items()}
        optimiser = Optimiser(phi, LeaveOneOut(hidden_rate=rate), 2)
        for weights in phi.parameters():
            weights.grad = torch.ones_like(weights)
        optimiser.step()
        after = phi.state_dict()
        moved[rate] = {
            name for name, value in before.items() if not torch.allclose(value, after[name], atol=1e-9)
        }
    assert moved[1e-2] == set(before)
    assert moved[1e-2] - moved[1e-12] == {"inner.0.weight", "outer.0.weight"}


def test_hidden_matrices_move_as_by_the_muon_of_torch_on_a_cycle_of_its_own() -> None:
    spreads = {"context": np.ones(3), "arm": np.ones(2)}
    phi, twin = (
        ResidualNetwork(**spreads, width=8, blocks=2, dim=2, rng=np.random.default_rng(0)) for _ in range(2)
    )
    options, generator = LeaveOneOut(), torch.Generator().manual_seed(0)
    optimiser = Optimiser(phi, options, 12)
    muon = torch.optim.Muon(twin.hidden(), lr=options.hidden_rate, weight_decay=options.decay)
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        muon, options.hidden_rate, total_steps=12, cycle_momentum=False
    )
    for _ in range(11):
        for weights in phi.parameters():
            weights.grad = torch.randn(weights.shape, generator=generator)
        for weights, other in zip(phi.hidden(), twin.hidden(), strict=True):
            other.grad = weights.grad.clone()
        optimiser.step()
        muon.step()
        cycle.step()
    for weights, other in zip(phi.hidden(), twin.hidden(), strict=True):
        # 11 steps of at most 1e-2, each rounded to 8 bits at five rounds.
        torch.testing.assert_close(weights, other, rtol=0, atol=1e-3)
