"""Contextual bandits whose arms have features and whose rewards drift."""

from tercet.checkpoint import CheckpointError
from tercet.embedding.options import LeaveOneOut, Training
from tercet.encode import Encoder
from tercet.policies.c3 import C3
from tercet.posterior import propensities
from tercet.reference.exact import Estimate, ReferenceSet
from tercet.reference.forgetting import Decay, RandomDrop, Window
from tercet.types import Choice, Feedback, Posterior, Round, stable_ids

__all__ = [
    "C3",
    "CheckpointError",
    "Choice",
    "Decay",
    "Encoder",
    "Estimate",
    "Feedback",
    "LeaveOneOut",
    "Posterior",
    "RandomDrop",
    "ReferenceSet",
    "Round",
    "Training",
    "Window",
    "propensities",
    "stable_ids",
]
