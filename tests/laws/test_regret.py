"""The rate of the regret theorem, as a hypothesis to check by experiment: its proof has gaps."""

import numpy as np
import pytest

from tercet.paper.regret_games import regrets, schedule, slope

HORIZONS = (250, 1000, 4000)


def measured(dim: int, horizons: tuple[int, ...], seeds: int, bandwidth: float | None = None) -> float:
    """Slope of log regret in log T."""
    table = [
        [regrets(t, dim, bandwidth or schedule(t, dim), seed)[-1] for t in horizons] for seed in range(seeds)
    ]
    return slope(np.array(horizons, float), np.array(table))


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2])
def test_regret_grows_no_faster_than_the_theorem_says(dim: int) -> None:
    # T^((d+1)/(d+2)) without the bound's log factor, which would add up to .05 in our favour.
    assert 0.2 < measured(dim, HORIZONS, seeds=3) < (dim + 1) / (dim + 2)


@pytest.mark.slow
def test_without_the_schedule_regret_stays_nearly_linear() -> None:
    assert measured(1, HORIZONS[:2], seeds=3, bandwidth=0.5) > 0.85
