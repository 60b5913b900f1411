"""From a history to phi as a function of NumPy arrays; torch is imported only where a network is trained."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet.embedding.inference import Phi, scaling
from tercet.embedding.options import LeaveOneOut, Training
from tercet.embedding.residual import Residual
from tercet.embedding.rivals import Implied
from tercet.types import Feedback, Ids


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What network to build: its hidden layers, its outputs, and whether inputs are standardised first."""

    hidden: Sequence[int]
    dim: int
    scale: bool


def learn(
    phi: Any,
    history: Feedback,
    rng: np.random.Generator,
    *,
    shape: Shape,
    bandwidth: float,
    options: Training | LeaveOneOut,
    progress: bool,
    held: Ids | None = None,
) -> Phi:
    """Return phi: trained on the history if it is a torch module or None (then built), else as it is.

    Leave-one-out keeps `held` rows aside (none: too few to train on); Algorithm 1 holds out its own.
    """
    if phi is not None and not is_module(phi):
        return as_function(phi)
    with _torch_needed():
        from tercet.embedding import committee, network, training

    module = phi
    if phi is None:
        contexts, arms = history.contexts.shape[1], history.arms.shape[1]
        centre, spread = scaling(history.joint()) if shape.scale and len(history) else (None, None)
        module = network.build(
            contexts, arms, rng, hidden=shape.hidden, dim=shape.dim, centre=centre, scale=spread
        )
    if isinstance(options, LeaveOneOut):
        if held is not None:
            pupil = committee.Pupil(phi=module, contexts=history.contexts, arms=history.arms, held=held)
            committee.teach([pupil], history, rng, bandwidth=bandwidth, options=options, progress=progress)
        return network.export(module) if phi is None else as_function(module)
    report = training.train(module, history, rng, bandwidth=bandwidth, options=options, progress=progress)
    if report.interrupted and report.best_epoch is None:
        raise KeyboardInterrupt  # not one epoch was finished: there is nothing to keep
    if report.interrupted:
        warnings.warn(f"training was interrupted; phi is kept as of epoch {report.best_epoch}", stacklevel=4)
    return network.export(module) if phi is None else as_function(module)


def learn_committee(
    history: Feedback,
    plans: Sequence[tuple[int, Ids]],
    rng: np.random.Generator,
    *,
    dim: int,
    bandwidth: float,
    options: LeaveOneOut,
    implied: Implied | None,
    followed: bool,
    progress: bool,
) -> list[tuple[Residual, float]]:
    """Return for each plan (pieces of a column, rows to hold out) a network and its held-out loss."""
    with _torch_needed():
        from tercet.embedding import committee
    return committee.learn(
        history,
        plans,
        rng,
        dim=dim,
        bandwidth=bandwidth,
        options=options,
        implied=implied,
        followed=followed,
        progress=progress,
    )


def on_gpu() -> bool:
    """Whether networks are trained on a GPU here."""
    with _torch_needed():
        import torch
    return torch.cuda.is_available()


@contextmanager
def _torch_needed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "training phi needs torch: pip install 'tercet[train]', or give C3 a phi of your own",
            name=error.name,
        ) from error


def as_function(phi: Any) -> Phi:
    """Return phi as a function of NumPy arrays."""
    if not is_module(phi):
        return phi
    from tercet.embedding import network

    return network.frozen(phi)


def is_module(phi: Any) -> bool:
    """Whether phi is a torch module, by name: deciding must not import torch."""
    return any(base.__module__ == "torch.nn.modules.module" for base in type(phi).__mro__)
