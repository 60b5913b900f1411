from tercet.policies.oracle import Supervised
from tests.laws.policies import Subject


def supervised(*candidates: str) -> Subject:
    # The toy's 60 logged outcomes are too few for trees, its products too much for a line, and there
    # are no updates; tests/policies/test_oracle.py shows what it learns.
    return Subject(lambda: Supervised(candidates=candidates), Supervised.load, learns=False)


SUBJECTS = {"Supervised trees": supervised("trees"), "Supervised line": supervised("linear")}
