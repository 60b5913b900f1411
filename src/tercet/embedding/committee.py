"""Networks trained by leave-one-out, each on a core of its own and with its own rows held out."""

import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from tercet import threads
from tercet.checks import Array
from tercet.embedding import intervals
from tercet.embedding.encoding import Encoding
from tercet.embedding.leave_one_out import CHECKS, Course
from tercet.embedding.network import input_type
from tercet.embedding.options import LeaveOneOut
from tercet.embedding.residual import Residual
from tercet.embedding.residual_network import ResidualNetwork, export
from tercet.embedding.rivals import Implied
from tercet.embedding.samples import Samples
from tercet.embedding.training import bar, own_randomness
from tercet.types import Feedback, Ids

BLOCKS = 2
MANY, THINNED = 100, 0.2  # columns of a context from which on a fifth of them is left out in a step


@dataclass(frozen=True, kw_only=True, eq=False)
class Pupil:
    """A network, what it sees of the history, and the rows that it must not learn from."""

    phi: nn.Module
    contexts: Array
    arms: Array
    held: Ids
    rivals: Array | None = None  # the arms of implied outcomes


def learn(
    history: Feedback,
    plans: Sequence[tuple[int, Ids]],
    rng: np.random.Generator,
    *,
    dim: int,
    bandwidth: float = 1.0,
    options: LeaveOneOut,
    implied: Implied | None = None,
    followed: bool = False,
    progress: bool,
) -> list[tuple[Residual, float]]:
    """Return for each plan (pieces of a column, rows to hold out) a trained network and its held-out loss."""
    assert options.width is not None
    sides = history.contexts, history.arms

    def encoded(pieces: int) -> tuple[list[Encoding], list[Array]]:
        found = [Encoding.of(inputs, pieces=pieces) for inputs in sides]
        return found, [encoding(inputs) for encoding, inputs in zip(found, sides, strict=True)]

    kinds = sorted({pieces for pieces, _ in plans})
    seen = dict(zip(kinds, threads.each(encoded, kinds), strict=True))
    networks, pupils = [], []
    for pieces, held in plans:
        encodings, (contexts, arms) = seen[pieces]
        network = ResidualNetwork(
            contexts.std(axis=0),
            arms.std(axis=0),
            width=options.width,
            blocks=BLOCKS,
            dim=dim,
            dropout=THINNED if history.contexts.shape[1] >= MANY else 0.0,
            rng=np.random.default_rng(rng.integers(2**63)),
        )
        networks.append(network)
        rivals = None if implied is None else encodings[1](implied.arms)
        pupils.append(Pupil(phi=network, contexts=contexts, arms=arms, held=held, rivals=rivals))
    losses = teach(
        pupils,
        history,
        rng,
        bandwidth=bandwidth,
        options=options,
        implied=implied,
        followed=followed,
        progress=progress,
    )
    phis = [export(network, *seen[pieces][0]) for network, (pieces, _) in zip(networks, plans, strict=True)]
    return list(zip(phis, losses, strict=True))


def teach(
    pupils: Sequence[Pupil],
    history: Feedback,
    rng: np.random.Generator,
    *,
    bandwidth: float = 1.0,
    options: LeaveOneOut,
    implied: Implied | None = None,
    followed: bool = False,
    progress: bool,
) -> list[float]:
    """Train networks in place, as many at once as there are cores, and return their held-out losses.

    The result does not depend on the cores.
    Ctrl-C ends all trainings early and keeps the best states; where a network has none yet, or others are
    to follow these, it goes on up.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    interval = intervals.of(history, options.partitions)
    generators = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(pupils))]
    stop = threading.Event()
    with _threads_kept(), own_randomness(rng, device), bar(len(pupils) * CHECKS, shown=progress) as advance:

        def one(pupil: Pupil, own: np.random.Generator) -> Course:
            torch.set_num_threads(1)  # more gain little on small batches, and cost much on busy cores
            dtype = input_type(pupil.phi)
            samples = Samples.of(
                pupil.contexts, pupil.arms, history.rewards, interval, dtype=dtype, device=device
            )
            seen = own.permutation(np.setdiff1d(np.arange(len(history)), pupil.held))
            if implied is None or pupil.rivals is None:
                learned = samples[seen]
            else:
                known = np.flatnonzero(~np.isin(implied.sources, pupil.held))
                learned = samples[np.concatenate([seen, implied.sources[known]])]
                learned.arms[len(seen) :] = torch.tensor(pupil.rivals[known], dtype=dtype, device=device)
                learned.rewards[len(seen) :] = torch.tensor(
                    implied.rewards[known], dtype=torch.float32, device=device
                )
            course = Course(phi=pupil.phi.to(device), options=options, rng=own, bandwidth=bandwidth)
            course.run(
                learned,
                samples[pupil.held],
                real=len(seen),
                go_on=lambda: not stop.is_set(),
                advance=advance,
            )
            pupil.phi.to("cpu")
            return course

        with ThreadPoolExecutor(threads.cores() if device == "cpu" else 1) as pool:
            futures = [pool.submit(one, *pair) for pair in zip(pupils, generators, strict=True)]
            try:
                courses = [future.result() for future in futures]
            except KeyboardInterrupt:
                stop.set()
                courses = [future.result() for future in futures]
                if followed or not all(course.best for course in courses):
                    raise
                warnings.warn("training was interrupted; each phi is kept at its best so far", stacklevel=5)
            except BaseException:
                stop.set()
                raise
    return [min(course.losses, default=np.nan) for course in courses]


@contextmanager
def _threads_kept() -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
