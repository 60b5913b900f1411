import numpy as np
import pandas as pd
import pytest

from tercet.paper import regret_games
from tercet.paper.regret_games import PLAIN


def test_the_slope_of_a_power_is_its_exponent() -> None:
    horizons = np.array([100.0, 200.0, 400.0])
    table = np.outer([1.0, 2.0, 4.0], horizons**0.6)
    found = regret_games.slope_interval(horizons, table)
    np.testing.assert_allclose(found, 0.6)


@pytest.mark.parametrize(("dim", "power"), [(1, 2 / 3), (2, 3 / 4)])
def test_the_bound_has_the_powers_of_the_theorem(dim: int, power: float) -> None:
    assert regret_games.bound(dim, 1e4) == pytest.approx(1e4**power * np.log(1e4) ** (1 / (dim + 2)))
    # The log factor adds 1/((d + 2) log T) to the slope.
    near = np.array([1e4, 1.001e4])
    expected = power + 1 / ((dim + 2) * np.log(1e4))
    assert regret_games.bound_slope(dim, near) == pytest.approx(expected, rel=1e-3)


def test_regret_grows_with_every_step_and_is_the_same_twice() -> None:
    path = regret_games.regrets(60, 2, 0.3, seed=1)
    assert (np.diff(path) >= 0).all()
    np.testing.assert_array_equal(path, regret_games.regrets(60, 2, 0.3, seed=1))


def test_a_fixed_kernel_reports_one_game_at_every_horizon() -> None:
    rows = regret_games.games((PLAIN, 1, 0, (20, 40)))
    path = regret_games.regrets(40, 1, regret_games.NARROW, 0, truncated=False)
    assert [row["regret"] for row in rows] == [path[19], path[39]]


def test_without_a_prior_regret_is_nearly_linear() -> None:
    bare, prior = ([row["regret"] for row in regret_games.lock_out((count, 0))] for count in (0.0, 1.0))
    # A third or so of the games are locked out, so that late regret goes on at a steady pace.
    assert bare[-1] / bare[-2] > 1.7 > prior[-1] / prior[-2]


def test_beta_tails_keep_below_both_bounds() -> None:
    grid = pd.DataFrame(regret_games.lemma())
    large = grid[(grid["alpha"] >= 1) & (grid["beta"] >= 1)]
    assert large["lemma"].max() <= 1
    assert grid["stronger"].max() <= 1
