"""Algorithm 1: train phi so that kernel regression on a random part of the history predicts the rest."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import final

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor, nn

from tercet import checks
from tercet.checks import Array
from tercet.embedding import intervals
from tercet.embedding.network import input_type
from tercet.embedding.objective import estimate, loss
from tercet.embedding.options import Training
from tercet.embedding.samples import Samples, embedded
from tercet.types import Feedback

# Validation holds at most this many rows against at most as many references: its loss is then good to
# about a hundredth, and it costs less than an epoch.
VALIDATED = 2_048


@final
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
    samples = Samples.of(
        history.contexts,
        history.arms,
        history.rewards,
        intervals.of(history, options.partitions),
        dtype=input_type(phi),
        device=device,
    )
    order = rng.permutation(len(samples))
    held = min(round(options.validation * len(samples)), VALIDATED)
    course = _Course(
        phi=phi.to(device),
        options=options,
        bandwidth=bandwidth,
        mean_reward=float(history.rewards.mean()) if len(history) else 0.5,
        rng=rng,
    )
    with _one_thread(), own_randomness(rng, device), bar(options.epochs, shown=progress) as advance:
        try:
            course.run(samples[order[held:]], samples[order[:held]], advance)
        except KeyboardInterrupt:
            course.interrupted = True
        finally:
            course.restore()
    return Report(
        losses=tuple(course.losses),
        validation_losses=tuple(course.validation_losses),
        best_epoch=course.best_epoch,
        interrupted=course.interrupted,
    )


@dataclass(kw_only=True, eq=False)
class _Course:
    """One training, its record so far and a copy of its best state."""

    phi: nn.Module
    options: Training
    bandwidth: float
    mean_reward: float
    rng: np.random.Generator
    losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_epoch: int | None = None
    interrupted: bool = False

    def run(self, learned: Samples, held: Samples, advance: Callable[[float], None]) -> None:
        """Run epochs until the last, or until patience ends."""
        optimiser = torch.optim.Adam(self.phi.parameters(), lr=self.options.rate)
        for epoch in range(self.options.epochs if len(learned) > 1 else 0):
            for group in optimiser.param_groups:
                group["lr"] = self.options.rate * self.options.decay**epoch
            self.losses.append(self._epoch(learned, optimiser))
            if len(held):
                self.validation_losses.append(self._validate(held, learned[:VALIDATED]))
            if not len(held) or self.validation_losses[-1] <= min(self.validation_losses):
                # A state dict holds the live tensors: without a clone, the next step would change them.
                copy = {name: value.clone() for name, value in self.phi.state_dict().items()}
                self.best, self.best_epoch = copy, epoch
            elif self.options.patience and epoch - (self.best_epoch or 0) >= self.options.patience:
                break
            advance((self.validation_losses or self.losses)[-1])

    def restore(self) -> None:
        """Leave phi at its best epoch."""
        if self.best:
            self.phi.load_state_dict(self.best)
        self.phi.eval()

    def _epoch(self, learned: Samples, optimiser: torch.optim.Optimizer) -> float:
        self.phi.train()
        references, queries = self._split(len(learned))
        total, count = 0.0, 0
        for start in range(0, len(queries), self.options.batch):
            batch = learned[queries[start : start + self.options.batch]]
            mean, rewards = self._answers(batch, learned[references])
            if len(mean):
                value = loss(mean, rewards, calibration=self.options.calibration, bins=self.options.bins)
                optimiser.zero_grad()
                value.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                total, count = total + value.item() * len(mean), count + len(mean)
        return total / count if count else math.log(2)  # that of 1/2, the estimate without a reference

    def _split(self, n: int) -> tuple[Array, Array]:
        used = min(n, self.options.limit or n, max(2, round(self.options.usage * n)))
        references = min(max(1, round(self.options.reference * used)), used - 1)
        drawn = self.rng.permutation(n)[:used]
        return drawn[:references], drawn[references:]

    @torch.no_grad()
    def _validate(self, held: Samples, references: Samples) -> float:
        self.phi.eval()
        mean, rewards = self._answers(held, references)
        if not len(mean):
            return math.log(2)
        return loss(mean, rewards, calibration=self.options.calibration, bins=self.options.bins).item()

    def _answers(self, queries: Samples, references: Samples) -> tuple[Tensor, Tensor]:
        """Estimates and rewards of those queries that have a reference in their own interval."""
        queries = queries[torch.isin(queries.interval, references.interval)]
        references = references[torch.isin(references.interval, queries.interval)]
        if not len(queries):
            return queries.rewards, queries.rewards
        points = self._embed(queries, references)
        here, real = _grid(queries.interval)
        there, known = _grid(references.interval)
        single = len(here) == 1
        mass, mean = estimate(
            points[: len(queries)][here],
            points[len(queries) :][there],
            references.rewards[there].to(points.dtype),
            bandwidth=self.bandwidth,
            same=None if single else known.unsqueeze(1).expand(-1, here.shape[1], -1),
            reference_same=None if single else known.unsqueeze(1) & known.unsqueeze(2),
            importance=self.options.importance,
        )
        if self.options.prior:
            mean = (mass * mean + self.options.prior * self.mean_reward) / (mass + self.options.prior)
        return mean[real], queries.rewards[here][real].to(mean.dtype)

    def _embed(self, queries: Samples, references: Samples) -> Tensor:
        return embedded(
            self.phi,
            torch.cat([queries.contexts, references.contexts]),
            torch.cat([queries.arms, references.arms]),
            rate=self.options.rate,
        )


def _grid(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Row numbers, one line per label in rising order, padded to equal lengths; and which are real."""
    counts = torch.unique(labels, return_counts=True)[1]
    real = torch.arange(int(counts.max()), device=labels.device) < counts.unsqueeze(1)
    rows = torch.zeros(real.shape, dtype=torch.long, device=labels.device)
    rows[real] = torch.argsort(labels, stable=True)
    return rows, real


@contextmanager
def _one_thread() -> Iterator[None]:
    # A batch is small: more threads gain little, cost much where they wait for a busy core, and would
    # make the weights depend on their number.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def own_randomness(rng: np.random.Generator, device: str) -> Iterator[None]:
    """Seed torch's global random state from ours, and put it back after."""
    # Dropout and its like draw from the global state.
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        seed = int(rng.integers(2**63))
        torch.default_generator.manual_seed(seed)
        for place in cuda:
            with torch.cuda.device(place):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def bar(epochs: int, *, shown: bool) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on a terminal; the value is called with a loss after each epoch."""
    visible = shown and sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=not visible) as progress:
        task = progress.add_task("training phi", total=epochs)
        yield lambda value: progress.update(task, advance=1, description=f"training phi, loss {value:.4f}")
