"""The history as tensors."""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from tercet.checks import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Outcomes, with the number of each row's time interval."""

    contexts: Tensor
    arms: Tensor
    rewards: Tensor
    interval: Tensor

    @classmethod
    def of(
        cls, contexts: Array, arms: Array, rewards: Array, interval: Array, *, dtype: torch.dtype, device: str
    ) -> Self:
        """Return rows of inputs, rewards and intervals as tensors on a device."""
        return cls(
            contexts=torch.tensor(contexts, dtype=dtype, device=device),
            arms=torch.tensor(arms, dtype=dtype, device=device),
            rewards=torch.tensor(rewards, dtype=torch.float32, device=device),
            interval=torch.as_tensor(interval, device=device),
        )

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(**{name: column[rows] for name, column in vars(self).items()})

    def take(self, rows: Tensor) -> Self:
        """Return the rows of these numbers: the same as by index, faster."""
        return type(self)(**{name: column.index_select(0, rows) for name, column in vars(self).items()})


def embedded(phi: nn.Module, contexts: Tensor, arms: Tensor, *, rate: float) -> Tensor:
    """Return phi of pairs: one finite row for each, or an error that says what to do."""
    points: Tensor = phi(contexts, arms)
    if points.ndim != 2 or len(points) != len(arms):
        raise ValueError(
            f"phi must return one row per pair, a matrix; got a tensor of shape {tuple(points.shape)} "
            f"for {len(arms)} pairs"
        )
    if not points.isfinite().all():
        raise ValueError(
            f"phi returned infinite or missing values; try a rate below {rate:g}, or scale the inputs"
        )
    return points
