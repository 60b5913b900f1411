from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import lapack

from tercet import Feedback
from tercet.policies.ridge import Features, Ridges, at_least_zero, check_features, faded_count, pair_features

KINDS: list[Features] = ["shared", "disjoint"]


def some(n: int, seed: int = 0, *, size: float = 1.0) -> Feedback:
    rng = np.random.default_rng(seed)
    contexts, arms = size * rng.normal(size=(n, 2)), np.eye(3)[rng.integers(3, size=n)]
    return Feedback(contexts=contexts, arms=arms, rewards=rng.random(n), times=rng.random(n))


def written_out(context: np.ndarray, arm: np.ndarray, features: Features) -> np.ndarray:
    """One vector for all regressions together: disjoint ones are a single one on x ⊗ e_a."""
    if features == "shared":
        return np.array([1.0, *context, *arm, *(c * a for c in context for a in arm)])
    return np.kron(arm, [1.0, *context])


def recompute(
    feedback: Feedback, features: Features, *, penalty: float = 1.0, discount: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """V⁻¹ and b of all regressions together, from sums over the outcomes."""
    size = 12 if features == "shared" else 9
    precision, response = penalty * np.eye(size), np.zeros(size)
    for age, row in enumerate(reversed(range(len(feedback)))):
        x = written_out(feedback.contexts[row], feedback.arms[row], features)
        precision += discount**age * np.outer(x, x)
        response += discount**age * feedback.rewards[row] * x
    return np.linalg.inv(precision), response


def assert_equal_to_a_recompute(known: Ridges, feedback: Feedback, **options: float) -> None:
    inverse, response = recompute(feedback, known.features, **options)
    context, arms = np.array([0.3, -0.7]), np.eye(3)
    view = known.view(context, arms)
    inputs = np.array([written_out(context, arm, known.features) for arm in arms])
    np.testing.assert_allclose(view.means, inputs @ inverse @ response, rtol=1e-8, atol=1e-8)
    spreads = np.sqrt(np.einsum("ad,de,ae->a", inputs, inverse, inputs))
    np.testing.assert_allclose(view.spreads, spreads, rtol=1e-8)
    assert view.parameters == len(response)


@pytest.mark.parametrize("features", KINDS)
@given(
    st.lists(st.integers(0, 30), max_size=6),
    st.sampled_from([1.0, 0.99, 0.5]),
    st.floats(0.1, 10),
)
@settings(max_examples=30)
def test_the_state_equals_a_recompute_however_the_outcomes_are_batched(
    features: Features, batches: list[int], discount: float, penalty: float
) -> None:
    known = Ridges(features=features, penalty=penalty, discount=discount)
    feedback, start = some(sum(batches)), 0
    for count in batches:
        known, start = known.learn(feedback[start : start + count]), start + count
    assert known.seen == len(feedback)
    assert_equal_to_a_recompute(known, feedback, penalty=penalty, discount=discount)


@pytest.mark.parametrize("features", KINDS)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.sampled_from([1.0, 30.0]))
@settings(max_examples=30)
def test_the_state_equals_a_recompute_after_any_outcomes_come_and_go(
    features: Features, steps: list[tuple[int, int]], size: float
) -> None:
    known, feedback = Ridges(features=features), some(sum(step[0] for step in steps), size=size)
    first = last = 0
    for coming, going in steps:
        known, last = known.learn(feedback[last : last + coming]), last + coming
        going = min(going, last - first)
        known, first = known.unlearn(feedback[first : first + going]), first + going
    assert known.seen == last - first
    assert_equal_to_a_recompute(known, feedback[first:last])


@pytest.mark.parametrize("features", KINDS)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e2])  # V's condition number is 1e7 at most
def test_the_state_equals_a_recompute_after_many_single_outcomes(features: Features, size: float) -> None:
    known, feedback = Ridges(features=features), some(700, size=size)
    for row in range(len(feedback)):
        known = known.learn(feedback[row : row + 1])
    assert_equal_to_a_recompute(known, feedback)


def factorisations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    done: list[int] = []
    factor = lapack.dpotrf

    def counted(precision: np.ndarray, **options: Any) -> Any:
        done.append(len(precision))
        return factor(precision, **options)

    monkeypatch.setattr(lapack, "dpotrf", counted)
    return done


def test_single_outcomes_are_absorbed_with_few_factorisations(monkeypatch: pytest.MonkeyPatch) -> None:
    done, known, feedback = factorisations(monkeypatch), Ridges(), some(240)
    for row in range(240):
        known = known.learn(feedback[row : row + 1])
        known.view([0.0, 0.0], np.eye(3))
    assert len(done) <= 240 / 12 + 1  # twelve inputs: as many corrections between two factorisations


def test_with_a_discount_a_factorisation_waits_for_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    done, known, feedback = factorisations(monkeypatch), Ridges(discount=0.9, features="disjoint"), some(40)
    for row in range(40):
        known = known.learn(feedback[row : row + 1])
    assert not done
    for _ in range(2):
        known.view([0.0, 0.0], np.eye(3)[:2])
    assert done == [3, 3]  # one for each of the two arms offered


def test_an_untried_direction_stays_well_defined_after_long_fading() -> None:
    known = Ridges(discount=0.5)
    for _ in range(200):  # .5^200 of the first outcome is left: nothing but the regulariser holds V up
        known = known.learn(Feedback.one(context=[1.0], arm=[1.0, 0.0], reward=1.0))
    np.testing.assert_allclose(known.blocks[0].inverse[3, 3], 1.0)  # the arm never shown


def test_refit_forgets_what_came_before_and_learns_in_the_order_of_times() -> None:
    feedback = some(30)
    assert feedback.times is not None
    known = Ridges(discount=0.9).learn(some(5, seed=1)).refit(feedback, remember=True)
    assert_equal_to_a_recompute(known, feedback[np.argsort(feedback.times)], discount=0.9)
    assert_equal_to_a_recompute(known.refit(feedback, remember=False), feedback[:0])


@pytest.mark.parametrize("features", KINDS)
@pytest.mark.parametrize("size", [1e6, 1e9, 1e38])
def test_a_monstrous_outcome_leaves_what_is_known_within_its_bounds(features: Features, size: float) -> None:
    known = Ridges(features=features, penalty=0.5).learn(some(40))
    for row in range(40):
        monster = Feedback.one(context=[size, -size], arm=np.eye(3)[0], reward=1.0)
        known = known.learn(monster).learn(some(40)[row : row + 1])
        view = known.view([0.3, -0.7], np.eye(3))
        lengths = np.linalg.norm(view.inputs.rows, axis=1)
        assert np.isfinite(view.means).all()
        assert (view.spreads <= 1.001 * lengths / np.sqrt(0.5)).all()  # V is at least λI


def test_pair_features_are_all_products_of_context_and_arm() -> None:
    rng = np.random.default_rng(0)
    contexts, arms = rng.normal(size=(4, 2)), rng.normal(size=(4, 3))
    expected = [written_out(c, a, "shared") for c, a in zip(contexts, arms, strict=True)]
    np.testing.assert_allclose(pair_features(contexts, arms), expected)


@given(st.integers(0, 50), st.floats(0.1, 1))
def test_the_faded_count_is_the_sum_of_what_is_left(seen: int, discount: float) -> None:
    assert faded_count(seen, discount) == pytest.approx(sum(discount**age for age in range(seen)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": 0.0}, "penalty must be"),
        ({"discount": 0.0}, "discount must lie above 0 and not above 1; got 0"),
        ({"discount": 1.1}, "discount must lie"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ridges(**options)  # type: ignore[arg-type]


def test_only_two_kinds_of_features_exist() -> None:
    with pytest.raises(ValueError, match='features must be "shared" or "disjoint"; got \'hybrid\''):
        check_features("hybrid")


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_width_below_zero_or_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="width must be"):
        at_least_zero("width", value)


def test_features_of_another_width_are_refused() -> None:
    known = Ridges().learn(some(3))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(1, 3\)"):
        known.view([0.0], np.eye(3))
    with pytest.raises(ValueError, match=r"must have \(2, 3\) features, as before; got \(2, 2\)"):
        known.learn(Feedback.one(context=[0.0, 0.0], arm=[1.0, 0.0], reward=1.0))
