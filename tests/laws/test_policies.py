import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np
import pytest

import tercet.policies
from tercet import C3, Decay
from tercet.policies.base import Policy
from tercet.policies.linear import LinUCB
from tercet.policies.simple import ArmThompson, Uniform
from tests.laws.policies import PolicyLaws, Subject


def beside(contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Arms far apart, contexts within an arm: a phi that needs no training."""
    return np.hstack([3 * arms, contexts])


def c3(**options: Any) -> Subject:
    return Subject(lambda: C3(phi=beside, bandwidth=0.3, **options), lambda path: C3.load(path, phi=beside))


SUBJECTS = {
    "C3": c3(),
    "C3 with decay and a floor": c3(forgetting=Decay(half_life=30.0), floor=0.1),
    "greedy C3": c3(explore="greedy"),
    "NWKR-C3": c3(importance=False),
    "LinUCB": Subject(LinUCB, LinUCB.load),
    "discounted LinUCB": Subject(lambda: LinUCB(discount=0.99), LinUCB.load),
    "ArmThompson": Subject(ArmThompson, ArmThompson.load, needs_context=False),
    "ArmThompson with decay": Subject(
        lambda: ArmThompson(half_life=20.0), ArmThompson.load, needs_context=False
    ),
    "Uniform": Subject(Uniform, Uniform.load, learns=False),
}


class TestPolicies(PolicyLaws):
    @pytest.fixture(params=SUBJECTS, ids=str)
    def subject(self, request: pytest.FixtureRequest) -> Subject:
        return SUBJECTS[request.param]


def test_no_policy_is_missing_from_the_laws() -> None:
    methods = {name for name in vars(Policy) if not name.startswith("_")}
    found = set()
    for info in pkgutil.iter_modules(tercet.policies.__path__):
        module = importlib.import_module(f"tercet.policies.{info.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and kind is not Policy and methods <= set(dir(kind)):
                found.add(kind)
    assert found == {type(subject.make()) for subject in SUBJECTS.values()}
