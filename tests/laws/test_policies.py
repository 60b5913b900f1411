import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import tercet.policies
from tercet.policies.base import Policy
from tests.laws import subjects
from tests.laws.policies import PolicyLaws, Subject


def modules(package: ModuleType) -> list[ModuleType]:
    names = [info.name for info in pkgutil.iter_modules(package.__path__)]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


SUBJECTS: dict[str, Subject] = {}
for module in modules(subjects):
    assert not SUBJECTS.keys() & module.SUBJECTS.keys()
    SUBJECTS |= module.SUBJECTS


class TestPolicies(PolicyLaws):
    @pytest.fixture(params=SUBJECTS, ids=str)
    def subject(self, request: pytest.FixtureRequest) -> Subject:
        return SUBJECTS[request.param]


def test_no_policy_is_missing_from_the_laws() -> None:
    methods = {name for name in vars(Policy) if not name.startswith("_")}
    found = {
        kind
        for module in modules(tercet.policies)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__ and kind is not Policy and methods <= set(dir(kind))
    }
    assert found == {type(subject.make()) for subject in SUBJECTS.values()}
