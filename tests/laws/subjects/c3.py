from typing import Any

import numpy as np

from tercet import C3, Decay
from tests.laws.policies import Subject


def beside(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Arms far apart, contexts within an arm: a phi that needs no training."""
    return np.hstack([3 * arms, contexts])


def c3(**options: Any) -> Subject:
    return Subject(lambda: C3(phi=beside, bandwidth=0.3, **options), lambda path: C3.load(path, phi=beside))


SUBJECTS = {
    "C3": c3(),
    "C3 with decay and a floor": c3(forgetting=Decay(half_life=30.0), floor=0.1),
    "greedy C3": c3(explore="greedy"),
    "C3 with coupled draws": c3(draws="coupled"),
    "NWKR-C3": c3(importance=False),
}
