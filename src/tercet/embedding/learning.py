"""From a history to phi as a function of NumPy arrays; torch is imported only where a network is trained."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet.embedding.inference import Phi, scaling
from tercet.embedding.options import Training
from tercet.types import Feedback


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
    options: Training,
    progress: bool,
) -> Phi:
    """Return phi: trained on the history if it is a torch module or None (then built), else as it is."""
    if phi is not None and not is_module(phi):
        return as_function(phi)
    try:
        from tercet.embedding import network, training
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "training phi needs torch: pip install 'tercet[train]', or give C3 a phi of your own",
            name=error.name,
        ) from error

    module = phi
    if phi is None:
        contexts, arms = history.contexts.shape[1], history.arms.shape[1]
        centre, spread = scaling(history.joint()) if shape.scale and len(history) else (None, None)
        module = network.build(
            contexts, arms, rng, hidden=shape.hidden, dim=shape.dim, centre=centre, scale=spread
        )
    report = training.train(module, history, rng, bandwidth=bandwidth, options=options, progress=progress)
    if report.interrupted and report.best_epoch is None:
        raise KeyboardInterrupt  # not one epoch was finished: there is nothing to keep
    if report.interrupted:
        warnings.warn(f"training was interrupted; phi is kept as of epoch {report.best_epoch}", stacklevel=4)
    return network.export(module) if phi is None else as_function(module)


def as_function(phi: Any) -> Phi:
    """Return phi as a function of NumPy arrays."""
    if not is_module(phi):
        return phi
    from tercet.embedding import network

    return network.frozen(phi)


def is_module(phi: Any) -> bool:
    """Whether phi is a torch module, by name: deciding must not import torch."""
    return any(base.__module__ == "torch.nn.modules.module" for base in type(phi).__mro__)
