"""Algorithm 1: train phi so that kernel regression on a random part of the history predicts the rest."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor, nn

from tercet import checks
from tercet.checks import Array
from tercet.embedding import intervals
from tercet.embedding.objective import estimate, loss
from tercet.embedding.options import Training
from tercet.types import Feedback

__all__ = ["Report", "estimate", "loss", "train"]

# Validation holds at most this many rows against at most as many references: its loss is then good to
# about a hundredth, and it costs less than an epoch.
VALIDATED = 2_048


@dataclass(frozen=True, kw_only=True)
class Report:
    """The losses of each epoch, and the epoch (counted from 0) that phi was left at.

    `best_epoch` is None where no epoch came to its end: under two rows to learn from, or interrupted.
    """

    losses: tuple[float, ...]
    validation_losses: tuple[float, ...]
    best_epoch: int | None
    interrupted: bool


def train(
    phi: nn.Module,
    history: Feedback,
    rng: np.random.Generator,
    *,
    bandwidth: float,
    options: Training | None = None,
    progress: bool = True,
    device: str = "cpu",
) -> Report:
    """Train any module with `forward(contexts, arms)` in place, and leave it at its best epoch.

    phi is moved to `device` and stays there, in evaluation mode. Ctrl-C ends the training early and keeps
    the best epoch so far.
    """
    options = Training() if options is None else options
    bandwidth = checks.positive("bandwidth", bandwidth)
    samples = _Samples.of(history, options.partitions, dtype=_input_type(phi), device=device)
    order = rng.permutation(len(samples))
    held = min(round(options.validation * len(samples)), VALIDATED)
    mean_reward = float(history.rewards.mean()) if len(history) else 0.5
    course = _Course(phi.to(device), options, bandwidth, mean_reward, rng)
    with _own_randomness(rng, device), _bar(options.epochs, shown=progress) as advance:
        try:
            course.run(samples[order[held:]], samples[order[:held]], advance)
        except KeyboardInterrupt:
            course.interrupted = True
        finally:
            course.restore()
    return course.report()


class _Course:
    """One training: its optimiser, its record and a copy of its best state."""

    def __init__(
        self,
        phi: nn.Module,
        options: Training,
        bandwidth: float,
        mean_reward: float,
        rng: np.random.Generator,
    ) -> None:
        self.phi, self.options, self.bandwidth, self.rng = phi, options, bandwidth, rng
        self.mean_reward = mean_reward
        self.optimiser = torch.optim.Adam(phi.parameters(), lr=options.rate)
        self.losses: list[float] = []
        self.validation_losses: list[float] = []
        self.best: dict[str, Tensor] = {}
        self.best_epoch: int | None = None
        self.interrupted = False

    def run(self, learned: "_Samples", held: "_Samples", advance: Callable[[float], None]) -> None:
        """Run epochs until the last, or until patience ends."""
        schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimiser, gamma=self.options.decay)
        for epoch in range(self.options.epochs if len(learned) > 1 else 0):
            self.losses.append(self._epoch(learned))
            schedule.step()
            if len(held):
                self.validation_losses.append(self._validate(held, learned[:VALIDATED]))
            if not len(held) or self.validation_losses[-1] <= min(self.validation_losses):
                self.best_epoch = epoch
                # A state dict holds the live tensors; the next step would change an uncloned one.
                self.best = {name: value.clone() for name, value in self.phi.state_dict().items()}
            elif self.options.patience and epoch - (self.best_epoch or 0) >= self.options.patience:
                break
            advance((self.validation_losses or self.losses)[-1])

    def restore(self) -> None:
        """Leave phi at its best epoch."""
        if self.best:
            self.phi.load_state_dict(self.best)
        self.phi.eval()

    def report(self) -> Report:
        """Return the record."""
        return Report(
            losses=tuple(self.losses),
            validation_losses=tuple(self.validation_losses),
            best_epoch=self.best_epoch,
            interrupted=self.interrupted,
        )

    def _epoch(self, learned: "_Samples") -> float:
        self.phi.train()
        references, queries = self._split(len(learned))
        total, count = 0.0, 0
        for start in range(0, len(queries), self.options.batch):
            batch = learned[queries[start : start + self.options.batch]]
            mean, rewards = self._answers(batch, learned[references])
            if not len(mean):
                continue
            value = loss(mean, rewards, calibration=self.options.calibration, bins=self.options.bins)
            if not value.isfinite():
                raise ValueError(
                    f"training diverged in epoch {len(self.losses)}: its loss is {value.item()}; "
                    f"try a rate below {self.options.rate:g}, or scaled inputs"
                )
            self.optimiser.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            total, count = total + value.item() * len(mean), count + len(mean)
        return total / count if count else math.log(2)  # unanswered, the estimate is 1/2

    def _split(self, n: int) -> tuple[Array, Array]:
        used = min(n, self.options.limit or n, max(2, round(self.options.usage * n)))
        references = min(max(1, round(self.options.reference * used)), used - 1)
        drawn = self.rng.permutation(n)[:used]
        return drawn[:references], drawn[references:]

    @torch.no_grad()
    def _validate(self, held: "_Samples", references: "_Samples") -> float:
        self.phi.eval()
        mean, rewards = self._answers(held, references)
        if not len(mean):
            return math.log(2)
        return loss(mean, rewards, calibration=self.options.calibration, bins=self.options.bins).item()

    def _answers(self, queries: "_Samples", references: "_Samples") -> tuple[Tensor, Tensor]:
        """Estimates and rewards of the queries that have a reference in their own interval."""
        queries = queries[torch.isin(queries.interval, references.interval)]
        references = references[torch.isin(references.interval, queries.interval)]
        if not len(queries):
            return queries.rewards, queries.rewards
        embeddings = self.phi(
            torch.cat([queries.contexts, references.contexts]), torch.cat([queries.arms, references.arms])
        )
        here, real = _grid(queries.interval)
        there, known = _grid(references.interval)
        one = len(here) == 1
        mass, mean = estimate(
            embeddings[: len(queries)][here],
            embeddings[len(queries) :][there],
            references.rewards[there],
            bandwidth=self.bandwidth,
            same=None if one else known.unsqueeze(1).expand(-1, here.shape[1], -1),
            reference_same=None if one else known.unsqueeze(1) & known.unsqueeze(2),
            importance=self.options.importance,
        )
        if self.options.prior:  # not merely for speed: 0/0 has no gradient
            mean = (mass * mean + self.options.prior * self.mean_reward) / (mass + self.options.prior)
        return mean[real], queries.rewards[here][real]


@dataclass(frozen=True, kw_only=True)
class _Samples:
    """The history as tensors, with the number of each row's time interval."""

    contexts: Tensor
    arms: Tensor
    rewards: Tensor
    interval: Tensor

    @classmethod
    def of(cls, history: Feedback, partitions: int | None, *, dtype: torch.dtype, device: str) -> Self:
        def tensor(array: Array) -> Tensor:
            return torch.as_tensor(array, dtype=dtype, device=device)

        return cls(
            contexts=tensor(history.contexts),
            arms=tensor(history.arms),
            rewards=torch.as_tensor(history.rewards, dtype=torch.float32, device=device),
            interval=torch.as_tensor(intervals.of(history, partitions), device=device),
        )

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(**{name: column[rows] for name, column in vars(self).items()})


def _grid(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Row numbers, one line per label in rising order, padded to equal lengths; and which are real."""
    counts = torch.unique(labels, return_counts=True)[1]
    real = torch.arange(int(counts.max()), device=labels.device) < counts.unsqueeze(1)
    rows = torch.zeros(real.shape, dtype=torch.long, device=labels.device)
    rows[real] = torch.argsort(labels, stable=True)
    return rows, real


def _input_type(phi: nn.Module) -> torch.dtype:
    # The widest that the module holds: our own network keeps its centre in float64.
    kinds = [value.dtype for value in phi.state_dict().values() if value.is_floating_point()]
    return max(kinds, key=lambda kind: torch.finfo(kind).bits, default=torch.float32)


@contextmanager
def _own_randomness(rng: np.random.Generator, device: str) -> Iterator[None]:
    # Dropout and its like draw from the global state: they get a seed of ours, and it is put back after.
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        seed = int(rng.integers(2**63))
        torch.default_generator.manual_seed(seed)
        for place in cuda:
            with torch.cuda.device(place):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def _bar(epochs: int, *, shown: bool) -> Iterator[Callable[[float], None]]:
    visible = shown and sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=not visible) as progress:
        task = progress.add_task("training phi", total=epochs)
        yield lambda value: progress.update(task, advance=1, description=f"training phi, loss {value:.4f}")
