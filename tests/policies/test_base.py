import numpy as np
import pytest

from tercet.policies.base import highest, offered


def test_ties_share_the_probability_and_the_draw() -> None:
    rng = np.random.default_rng(0)
    choices = [highest(np.array([1.0, 0.0, 1.0]), rng) for _ in range(400)]
    np.testing.assert_array_equal(choices[0].propensities, [0.5, 0, 0.5])
    counts = np.bincount([choice.arm for choice in choices], minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 200) < 5 * np.sqrt(400 / 4)


def test_one_highest_score_takes_all_and_no_randomness() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    choice = highest(np.array([0.1, 0.7, 0.3]), rng)
    assert choice.arm == 1
    np.testing.assert_array_equal(choice.propensities, [0, 1, 0])
    assert rng.bit_generator.state == before


def test_a_decision_without_arms_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one row to choose from; got none"):
        offered([0.0], np.empty((0, 2)))
