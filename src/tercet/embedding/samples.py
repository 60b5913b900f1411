"""The history as tensors."""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

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
