"""Regrets that an independent prototype measured on the same data; they need the data sets themselves."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.environments.base import DATA_VARIABLE
from tercet.environments.classification import Classification
from tercet.loop import play
from tercet.policies.linear import LinUCB
from tercet.policies.trees import Boosting

DATA = Path(os.environ.get(DATA_VARIABLE, "/nowhere"))
LINEAR, TREES = LinUCB(width=1.96, features="disjoint"), Boosting(refit=None, epsilon=0.0)


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "covertype.npz").exists(), reason=f"needs the data sets in ${DATA_VARIABLE}")
@pytest.mark.parametrize(
    ("policy", "data", "published"),
    [
        (LINEAR, "shuttle", 151), (LINEAR, "magic", 209), (LINEAR, "covertype", 294),
        (TREES, "shuttle", 2), (TREES, "magic", 119), (TREES, "covertype", 213),
    ],
)  # fmt: skip
def test_regrets_are_those_measured_elsewhere(policy: Any, data: str, published: float) -> None:
    world, luck = np.random.default_rng(0).spawn(2)
    regret = play(policy, Classification(data=data).draw(world), luck, steps=1000).regrets.sum()
    # Theirs is a mean of three seeds, ours one: both have the luck of 1,000 errors and hits.
    error = np.sqrt(published * (1 - published / 1000) * (1 + 1 / 3))
    assert abs(regret - published) < 4 * error
