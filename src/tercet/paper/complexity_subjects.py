"""The policies whose cost is measured, and how they come to have learned n outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tercet.checks import Matrix
from tercet.paper.growth import filled
from tercet.policies.c3 import C3
from tercet.policies.kernel import KernelUCB
from tercet.policies.linear import LinTS, LinUCB
from tercet.policies.neighbours import NeighbourUCB
from tercet.policies.neural import NeuralTS, NeuralUCB
from tercet.policies.squarecb import SquareCB
from tercet.reference.exact import ReferenceSet
from tercet.reference.forgetting import Window
from tercet.types import Feedback

ARMS, WIDTH = 10, 4  # arms of a decision; features of a context, and of an arm: 8 dimensions together
KEPT = 10_000  # outcomes in the bounded memory
FACTS = ("non_linear", "non_stationary", "arm_features")  # what a policy can do
PART = 2**16  # outcomes learned at a time


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A policy of the table.

    family : its row in the paper's table; empty for those the paper does not have.
    policy : what is timed, unfitted.
    sizes : the powers of two between which n is, at most.
    facts : non-linear rewards, non-stationary tasks, arm features: what our implementation can do.
    """

    family: str
    policy: Any
    sizes: tuple[int, int]
    facts: tuple[str, str, str]


def joined(contexts: Matrix, arms: Matrix) -> Matrix:
    """Return context and arm side by side: a phi that needs no training."""
    return np.hstack([contexts, arms])


WHOLE = "NeuralUCB, a step an outcome"
LINEAR_FACTS = ("no", "with a discount", "yes")
NEURAL_FACTS = ("yes", "with a window", "yes")
# Train at every update, as the paper does for its first 2,000 steps; the fit is not what is timed.
ALWAYS = {"eager": 10**9, "epochs": 1}
SUBJECTS: Mapping[str, Subject] = {
    "C3": Subject(family="C3", policy=C3(phi=joined), sizes=(10, 20), facts=("yes", "yes", "yes")),
    f"C3, last {KEPT:,}": Subject(
        family="", policy=C3(phi=joined, forgetting=Window(count=KEPT)), sizes=(14, 20), facts=("yes",) * 3
    ),
    "LinUCB": Subject(family="Linear", policy=LinUCB(), sizes=(10, 20), facts=LINEAR_FACTS),
    "LinTS": Subject(family="Linear", policy=LinTS(), sizes=(10, 20), facts=LINEAR_FACTS),
    "SquareCB": Subject(family="Linear", policy=SquareCB(), sizes=(10, 20), facts=LINEAR_FACTS),
    "NeuralUCB": Subject(family="Neural", policy=NeuralUCB(**ALWAYS), sizes=(8, 12), facts=NEURAL_FACTS),
    "NeuralTS": Subject(family="Neural", policy=NeuralTS(**ALWAYS), sizes=(8, 12), facts=NEURAL_FACTS),
    WHOLE: Subject(family="", policy=NeuralUCB(**ALWAYS, steps=10**9), sizes=(8, 12), facts=NEURAL_FACTS),
    "kNN-UCB": Subject(
        family="", policy=NeighbourUCB(pooled=True), sizes=(10, 16), facts=("yes", "with a window", "yes")
    ),
    "KernelUCB": Subject(
        family="", policy=KernelUCB(window=10**6), sizes=(7, 11), facts=("yes", "with a window", "yes")
    ),
}
STEPS: int = SUBJECTS["NeuralUCB"].policy.steps  # the most that an update takes


def outcomes(n: int, rng: np.random.Generator) -> Feedback:
    """Return n random outcomes."""
    return Feedback(
        contexts=rng.normal(size=(n, WIDTH)),
        arms=rng.normal(size=(n, WIDTH)),
        rewards=rng.integers(2, size=n),
    )


def after(name: str, n: int, rng: np.random.Generator) -> Any:
    """Return a policy that has learned n outcomes."""
    policy = replace(SUBJECTS[name].policy)
    if isinstance(policy, C3):
        # To append a million outcomes takes half a million million kernels: C3 gets a memory made at once.
        count = min(n, KEPT) if policy.forgetting else n
        policy.state.views[0].references, policy.state.timed = _memory(count, rng), False
        return policy
    policy.fit(outcomes(min(n, PART), rng), rng)
    for start in range(PART, n, PART):
        policy.update(outcomes(min(PART, n - start), rng), rng)
    return policy


def _memory(count: int, rng: np.random.Generator) -> ReferenceSet:
    return filled(count, rng, dim=2 * WIDTH)
