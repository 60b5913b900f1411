from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

from tercet import metrics
from tercet.types import Posterior


def rows(**columns: object) -> pd.DataFrame:
    base = {
        "reward": [1.0, 0.0, 1.0, 0.0], "regret": [0.0, 1.0, 0.0, 0.0], "dynamic_regret": [0.1, 0.2, 0.3, 0.4],
        "predicted": [0.9, 0.2, 0.6, 0.5], "impression": [-1, -1, -1, -1],
        "decide_seconds": [0.001] * 4, "learn_seconds": [0.002] * 4,
    }  # fmt: skip
    return pd.DataFrame(base | columns)


def test_sums_and_means_are_those_of_the_rows() -> None:
    figures = metrics.summarise(rows())
    assert figures["regret_per_step"] == 0.25
    assert figures["dynamic_regret_per_step"] == pytest.approx(0.25)
    assert figures["reward"] == 0.5
    assert figures["decide_ms"] == pytest.approx(1)
    assert figures["learn_ms"] == pytest.approx(2)
    assert np.isnan(figures["new_arm_reward"])


def test_log_loss_and_brier_equal_scikit_learns() -> None:
    figures = metrics.summarise(rows())
    truth, guess = rows()["reward"], rows()["predicted"]
    assert figures["log_loss"] == pytest.approx(log_loss(truth, guess))
    assert figures["brier"] == pytest.approx(brier_score_loss(truth, guess))


def test_what_nobody_predicted_or_knows_is_nan() -> None:
    figures = metrics.summarise(rows(predicted=[np.nan] * 4, dynamic_regret=[np.nan] * 4))
    assert all(
        np.isnan(figures[name])
        for name in ("log_loss", "brier", "calibration_error", "dynamic_regret_per_step")
    )


def test_only_the_first_hundred_impressions_of_new_arms_count() -> None:
    rewards = np.array([1.0, 0.0, 1.0, 0.0])
    assert metrics.new_arm_reward(rewards, np.array([-1, 0, 99, 100])) == 0.5


def test_honest_predictions_are_calibrated_and_exaggerated_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    chances = rng.uniform(0.2, 0.8, size=20_000)
    rewards = (rng.random(20_000) < chances).astype(float)
    # Ten bins of 2,000: the mean absolute error of a bin's frequency is about .009.
    assert metrics.calibration_error(rewards, chances) < 0.02
    bold = 0.5 + 2 * (chances - 0.5)
    assert metrics.calibration_error(rewards, bold) == pytest.approx(0.15, abs=0.02)  # E|c - .5|


def test_a_constant_prediction_of_the_frequency_is_calibrated_in_any_order() -> None:
    rewards = np.repeat([0.0, 1.0], [60, 40])
    assert metrics.calibration_error(rewards, np.full(100, 0.4)) == pytest.approx(0)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([-1, 0, 0.2, 0.5, 2])), min_size=1),
    st.randoms(),
)
def test_calibration_does_not_depend_on_the_order(pairs: list[tuple[float, float]], random: Random) -> None:
    shuffled = random.sample(pairs, len(pairs))
    one, two = (metrics.calibration_error(*np.array(rows).T) for rows in (pairs, shuffled))
    assert one == pytest.approx(two)


def test_recovery_is_when_half_of_the_jump_is_gone() -> None:
    steps = np.arange(1000)
    since = steps % 500
    regret = 0.1 + np.where(steps >= 500, 0.8 * 0.5 ** (since / 60), 0.0)
    changed = since == 0
    # A jump that halves every 60 steps; the change at step 0 has nothing before it and does not count.
    assert metrics.recovery_steps([regret], [changed]) == pytest.approx(60, abs=1)
    slow = 0.1 + np.where(steps >= 500, 0.8, 0.0)
    assert metrics.recovery_steps([slow], [changed]) == np.inf
    assert np.isnan(metrics.recovery_steps([np.full(1000, 0.1)], [changed]))
    assert np.isnan(metrics.recovery_steps([regret], [np.zeros(1000, dtype=bool)]))


def test_a_change_shortly_before_the_end_does_not_hide_the_others() -> None:
    steps = np.arange(1500)
    regret = 0.1 + np.where(steps >= 500, 0.8 * 0.5 ** (steps % 500 / 60), 0.0)
    changed = steps % 500 == 0
    for left in (1, 20, 30, 400):
        end = 1000 + left
        assert metrics.recovery_steps([regret[:end]], [changed[:end]]) == pytest.approx(60, abs=1)
    short, long = slice(0, 510), slice(0, 900)  # of two runs with one change each
    both = [regret[short], regret[long]], [changed[short], changed[long]]
    assert metrics.recovery_steps(*both) == pytest.approx(60, abs=1)


def test_recovery_is_unknown_where_the_regret_is() -> None:
    assert np.isnan(metrics.recovery_steps([np.full(1000, np.nan)], [np.arange(1000) % 500 == 0]))


def test_blocks_are_equal_stretches_of_time() -> None:
    times = np.array([10.0, 10.4, 10.5, 15.0, 19.9, 20.0])
    np.testing.assert_array_equal(metrics.blocks(times), [0, 0, 1, 10, 19, 19])
    np.testing.assert_array_equal(metrics.blocks(np.full(3, 7.0)), [0, 0, 0])


def test_a_quiet_block_is_zero_for_who_played_the_seed_and_unknown_for_others() -> None:
    steps = pd.DataFrame(
        [("one", 0, 3, 1.0), ("one", 0, 3, 2.0), ("one", 1, 3, 4.0), ("one", 1, 8, 5.0), ("two", 1, 8, 6.0)],
        columns=["policy", "seed", "block", "regret"],
    )
    totals = metrics.totals(steps, "regret")
    # Twice each block's, for there are two: the mean over blocks is the total of the run.
    np.testing.assert_array_equal(totals.loc[3], [[6, np.nan], [8, 0]])
    np.testing.assert_array_equal(totals.loc[8], [[0, np.nan], [10, 12]])


@pytest.mark.parametrize("counts", [0.5, 3.0, 1e4])
def test_an_honest_posterior_covers_nine_in_ten(counts: float) -> None:
    rng = np.random.default_rng(0)
    alpha, beta = counts * rng.uniform(0.1, 0.9, 20_000), counts * rng.uniform(0.1, 0.9, 20_000)
    beliefs = Posterior(mean=alpha / (alpha + beta), mass=alpha, alpha=alpha, beta=beta)
    assert metrics.covered(beliefs, rng.beta(alpha, beta)) == pytest.approx(0.9, abs=0.01)
    assert metrics.covered(replace(beliefs, alpha=9 * alpha, beta=9 * beta), rng.beta(alpha, beta)) < 0.75
