import lightgbm
import numpy as np

from tercet.policies.forest import Forest

RNG = np.random.default_rng
INPUTS = RNG(0).normal(size=(200, 3))
REWARDS = (INPUTS[:, 0] * INPUTS[:, 1] > 0).astype(float)


def test_equal_rngs_grow_equal_trees() -> None:
    one, two = (Forest.grow(INPUTS, REWARDS, RNG(1), trees=5) for _ in range(2))
    np.testing.assert_array_equal(one.text, two.text)


def test_a_forest_read_back_predicts_to_the_last_bit() -> None:
    forest = Forest.grow(INPUTS, REWARDS, RNG(1), trees=20)
    np.testing.assert_array_equal(Forest.read(forest.text).predict(INPUTS), forest.predict(INPUTS))


def test_graded_rewards_are_predicted_within_the_unit_interval() -> None:
    predicted = Forest.grow(INPUTS, 0.2 + 0.5 * REWARDS, RNG(1), trees=50).predict(INPUTS)
    assert predicted.min() > 0
    assert predicted.max() < 1
    assert np.abs(predicted - 0.2 - 0.5 * REWARDS).mean() < 0.1


def test_predictions_are_lightgbms() -> None:
    forest = Forest.grow(INPUTS, REWARDS, RNG(1), trees=5)
    booster = lightgbm.Booster(model_str=forest.text.tobytes().decode())
    np.testing.assert_allclose(forest.predict(INPUTS), booster.predict(INPUTS))
