import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet import Feedback
from tercet.policies.squarecb import SquareCB, inverse_gap

RNG = np.random.default_rng


def some(n: int) -> Feedback:
    rng = RNG(0)
    return Feedback(
        contexts=rng.normal(size=(n, 2)), arms=np.eye(3)[rng.integers(3, size=n)], rewards=rng.random(n)
    )


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=8), st.floats(0, 1000))
def test_propensities_are_the_inverse_gaps_and_the_best_gets_the_rest(
    means: list[float], gamma: float
) -> None:
    chances = inverse_gap(np.array(means), gamma)
    assert chances.sum() == pytest.approx(1)
    best = [arm for arm, mean in enumerate(means) if mean == max(means)]
    others = {arm: 1 / (len(means) + gamma * (max(means) - means[arm])) for arm in range(len(means))}
    for arm, chance in others.items():
        if arm not in best:
            assert chances[arm] == pytest.approx(chance)
    rest = 1 - sum(chance for arm, chance in others.items() if arm not in best)
    np.testing.assert_allclose(chances[best], rest / len(best))


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_it_decides_by_the_closed_form_on_a_ridge_regression(discount: float) -> None:
    feedback, policy = some(40), SquareCB(features="disjoint", discount=discount)
    policy.update(feedback, RNG(0))
    worth = discount ** np.arange(39, -1, -1.0)
    context, means = np.array([1.0, 0.2, -0.4]), []
    for arm in range(3):
        mine = feedback.arms[:, arm] == 1
        inputs = np.insert(feedback.contexts[mine], 0, 1.0, axis=1)
        weighted = inputs * worth[mine, None]
        means.append(
            context @ np.linalg.solve(weighted.T @ inputs + np.eye(3), weighted.T @ feedback.rewards[mine])
        )
    best = int(np.argmax(means))
    gamma = 10 * np.sqrt(worth.sum())  # without a discount: 10 √40
    expected = 1 / (3 + gamma * (means[best] - np.array(means)))
    expected[best] = 0
    expected[best] = 1 - expected.sum()
    choice = policy.choose(context[1:], np.eye(3), RNG(0))
    np.testing.assert_allclose(choice.means, means, atol=1e-9)
    np.testing.assert_allclose(choice.propensities, expected, atol=1e-9)


def test_before_any_outcome_all_arms_are_equally_likely() -> None:
    policy = SquareCB()
    policy.fit(some(40), RNG(0), remember=False)
    np.testing.assert_allclose(policy.choose([1.0, 2.0], np.eye(3), RNG(0)).propensities, 1 / 3)


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ValueError, match="gamma_scale must be a finite number of at least 0; got -1"):
        SquareCB(gamma_scale=-1.0)
