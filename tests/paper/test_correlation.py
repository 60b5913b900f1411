from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.anchors import SLOPES, pearson
from tercet.executors import Serial
from tercet.paper import correlation, style
from tercet.paper.base import Order, Tables

SEEDS = 4


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder: Path = tmp_path_factory.mktemp("correlation")
    measured = correlation.measure(Order(folder=folder, seeds=SEEDS, quick=True, executor=Serial()))
    return {
        name: pd.read_csv(StringIO(table.to_csv(index=False, float_format="%.6g")))
        for name, table in measured.items()
    }


def example(opposite: float, near: float) -> pd.DataFrame:
    """Shares near .1 for rho = -1 and near .9 for rho = .6, the same in both seeds."""
    return pd.DataFrame(
        [
            {
                "rho": rho,
                "seed": seed,
                "mean": 0.5,
                "near_anchor": near if rho == 0.6 else 0.5,
                "near_opposite": opposite if rho == -1 else 0.5,
            }
            for rho in SLOPES
            for seed in range(2)
        ]
    )


def fits(gap: float, variances: dict[float, float]) -> pd.DataFrame:
    """Correlations that are off rho by a gap."""
    return pd.DataFrame(
        [
            {"c": c, "rho": rho, "seed": seed, "pearson": rho + gap, "slope": rho, "residual_variance": v}
            for c, v in variances.items()
            for rho in SLOPES
            for seed in range(2)
        ]
    )


FALLING, RISING = {5.0: 0.02, 50.0: 0.002}, {5.0: 0.002, 50.0: 0.02}


def test_measured_correlations_are_near_their_closed_form(tables: Tables) -> None:
    for (c, rho), part in tables["fits"].groupby(["c", "rho"]):
        exact = pearson(rho, c)
        # Fisher: the standard error is (1 - r²)/√n for normal samples; ours are not, hence six of them.
        error = (1 - exact**2) / np.sqrt(correlation.SAMPLES * SEEDS)
        assert part["pearson"].mean() == pytest.approx(exact, abs=6 * error)


def test_rho_is_the_slope(tables: Tables) -> None:
    for (c, rho), part in tables["fits"].groupby(["c", "rho"]):
        # Var μᵢ given μ₀ is at most ¼/(2c + 1), and μ₀ has variance 1/12.
        error = np.sqrt(12 * 0.25 / (2 * c + 1) / (correlation.SAMPLES * SEEDS))
        assert part["slope"].mean() == pytest.approx(rho, abs=4 * error)


def test_each_panel_has_the_papers_number_of_samples(tables: Tables) -> None:
    assert (tables["samples"].groupby("c").size() == 500).all()


def test_the_example_has_the_mean_of_the_papers_formula(tables: Tables) -> None:
    means = tables["example"].groupby("rho")["mean"].mean()
    for rho in SLOPES:
        error = np.sqrt(0.25 / 101 / (correlation.SAMPLES * SEEDS))
        assert means[rho] == pytest.approx(0.5 + rho * 0.4, abs=4 * error)


@pytest.mark.parametrize(("share", "verdict"), [(0.95, "reproduced"), (0.3, "not reproduced")])
def test_the_example_holds_if_most_draws_lie_there(share: float, verdict: str) -> None:
    tables = {"example": example(share, 1 - share), "fits": fits(0.0, FALLING)}
    opposite, vicinity, *_ = correlation.claims(tables)
    assert opposite.verdict == verdict
    assert vicinity.verdict != "reproduced"
    tables = {"example": example(1 - share, share), "fits": fits(0.0, FALLING)}
    assert correlation.claims(tables)[1].verdict == verdict


@pytest.mark.parametrize(("gap", "verdict"), [(0.01, "reproduced"), (0.2, "not reproduced")])
def test_rho_is_a_correlation_if_the_measured_one_rounds_to_it(gap: float, verdict: str) -> None:
    claim = correlation.claims({"example": example(1, 1), "fits": fits(gap, FALLING)})[2]
    assert claim.verdict == verdict


@pytest.mark.parametrize(("variances", "verdict"), [(FALLING, "reproduced"), (RISING, "not reproduced")])
def test_the_variance_must_fall_with_c(variances: dict[float, float], verdict: str) -> None:
    claim = correlation.claims({"example": example(1, 1), "fits": fits(0.0, variances)})[3]
    assert claim.verdict == verdict


def test_notes_have_the_mean_of_the_papers_formula() -> None:
    claim = correlation.claims({"example": example(1, 1), "fits": fits(0.0, FALLING)})[1]
    assert "= 0.74" in claim.note
    assert "μ₅" in claim.paper


def test_one_seed_decides_nothing_about_shares() -> None:
    tables = {"example": example(1, 0), "fits": fits(0.2, FALLING)}
    alone = {key: table[table["seed"] == 0] for key, table in tables.items()}
    assert [claim.verdict for claim in correlation.claims(alone)[:3]] == ["undecided"] * 3


def test_the_picture_has_a_panel_for_each_rho_and_c(tables: Tables) -> None:
    with style.used():
        (picture,) = correlation.draw(tables)
    assert len(picture.figure.axes) == len(SLOPES) * len(correlation.CONCENTRATIONS)
    assert "500 samples" in picture.caption
    assert f"{SEEDS} seeds" in picture.caption
