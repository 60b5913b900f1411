import numpy as np
import pytest

from tercet.paper import complexity_subjects
from tercet.paper.complexity_subjects import SUBJECTS


@pytest.mark.parametrize("name", ["C3", "LinUCB", "kNN-UCB", "NeuralUCB", "KernelUCB"])
def test_policies_have_learned_as_many_outcomes_as_said(name: str) -> None:
    rng = np.random.default_rng(0)
    policy = complexity_subjects.after(name, 300, rng)
    policy.update(complexity_subjects.outcomes(1, rng), rng)
    if name == "C3":
        assert len(policy) == 301
    choice = policy.choose(rng.normal(size=4), rng.normal(size=(10, 4)), rng)
    assert choice.propensities.shape == (10,)


def test_a_bounded_memory_keeps_its_bound() -> None:
    rng = np.random.default_rng(0)
    policy = complexity_subjects.after(f"C3, last {complexity_subjects.KEPT:,}", 2**14, rng)
    policy.update(complexity_subjects.outcomes(1, rng), rng)
    assert len(policy) == complexity_subjects.KEPT


def test_two_policies_of_a_kind_share_nothing() -> None:
    rng = np.random.default_rng(0)
    one, other = complexity_subjects.after("C3", 100, rng), complexity_subjects.after("C3", 200, rng)
    assert (len(one), len(other)) == (100, 200)
    assert len(SUBJECTS["C3"].policy) == 0
