"""Contextual bandits whose arms have features and whose rewards drift."""

from tercet.types import Choice, Feedback, Posterior, Round, stable_ids

__all__ = ["Choice", "Feedback", "Posterior", "Round", "stable_ids"]
