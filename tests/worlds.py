"""A tiny world for tests of the loop: three one-hot arms, and the best depends on the sign of a feature."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tercet import Feedback, Round
from tercet.environments.base import Revealed

ARMS = np.eye(3)


def chances(contexts: np.ndarray) -> np.ndarray:
    """Arm 0 pays .5 to everybody, arms 1 and 2 pay .9 or .1 by the sign of the first feature."""
    right = contexts[..., :1] > 0
    return np.concatenate(
        [np.full(right.shape, 0.5), np.where(right, 0.9, 0.1), np.where(right, 0.1, 0.9)], -1
    )


@dataclass(frozen=True, kw_only=True)
class Signs:
    """A scenario and, having no hidden parameters, its own environment."""

    logged: int = 200
    rounds_: int = 60
    streaming: bool = False
    one_log: bool = False

    def draw(self, rng: np.random.Generator) -> "Signs":
        return self

    def history(self, rng: np.random.Generator) -> Feedback:
        contexts = rng.uniform(-1, 1, size=(self.logged, 2))
        arms = rng.integers(3, size=self.logged)
        means = chances(contexts)[np.arange(self.logged), arms]
        return Feedback(
            contexts=contexts, arms=ARMS[arms], rewards=(rng.random(self.logged) < means).astype(float),
            times=np.arange(float(self.logged)), propensities=np.full(self.logged, 1 / 3),
        )  # fmt: skip

    def revealed(self, rng: np.random.Generator) -> Revealed:
        contexts = rng.uniform(-1, 1, size=(self.logged, 2))
        rewards = (rng.random((self.logged, 3)) < chances(contexts)).astype(float)
        return Revealed(contexts=contexts, arms=ARMS, rewards=rewards)

    def rounds(self, rng: np.random.Generator) -> Iterator[Round]:
        for step in range(self.rounds_):
            context = rng.uniform(-1, 1, size=2)
            means = chances(context)
            yield Round(
                context=context, arms=ARMS, time=float(self.logged + step), means=means,
                rewards=(rng.random(3) < means).astype(float),
            )  # fmt: skip
