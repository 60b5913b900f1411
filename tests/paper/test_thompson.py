from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.executors import Serial
from tercet.paper import style, thompson
from tercet.paper.base import Order, Tables
from tercet.reference.exact import ReferenceSet

SEEDS = 4


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder: Path = tmp_path_factory.mktemp("thompson")
    measured = thompson.measure(Order(folder=folder, seeds=SEEDS, quick=True, executor=Serial()))
    return {
        name: pd.read_csv(StringIO(table.to_csv(index=False, float_format="%.6g")))
        for name, table in measured.items()
    }


def made_up(*, importance: float, plain: float, known: float = 0.05, other: float = 0.1) -> Tables:
    """Means that are off .6 by these errors, and standard deviations of the two arms, with some noise."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "world": world,
            "seed": seed,
            "arm": arm,
            "estimator": estimator,
            "mass": 10.0,
            "mean": 0.6 + error + rng.normal(scale=1e-3),
            "sd": sd + rng.normal(scale=1e-3),
        }
        for world in thompson.WORLDS
        for seed in range(5)
        for arm, sd in zip(thompson.PLACES, (known, other), strict=True)
        for estimator, error in zip(thompson.ESTIMATORS, (importance, plain), strict=True)
    ]
    return {"posteriors": pd.DataFrame(rows)}


def test_the_truth_is_the_same_at_both_arms() -> None:
    places = np.array(list(thompson.PLACES.values()))
    np.testing.assert_allclose(thompson.expected(places), thompson.TRUTH)


@pytest.mark.parametrize("estimator", thompson.ESTIMATORS)
def test_posteriors_are_those_of_the_reference_set(estimator: str) -> None:
    points, rewards = thompson.sample(3, "varying")
    memory = ReferenceSet(dim=2, bandwidth=1.0, importance=estimator == "IWKR", engine="numpy")
    memory.append(points, rewards)
    estimate = memory.estimate(np.array(list(thompson.PLACES.values())))
    rows = [row for row in thompson.posteriors(3, "varying") if row["estimator"] == estimator]
    # The store keeps coordinates in float32.
    np.testing.assert_allclose([row["mass"] for row in rows], estimate.mass, rtol=1e-5)
    np.testing.assert_allclose([row["mean"] for row in rows], estimate.mean, rtol=1e-5)


def test_both_worlds_have_the_same_references(tables: Tables) -> None:
    masses = tables["posteriors"].pivot_table("mass", ["seed", "arm"], ["world", "estimator"])
    np.testing.assert_allclose(masses.to_numpy(), masses.to_numpy()[:, :1].repeat(4, axis=1))


def test_the_seed_shown_is_the_one_nearest_to_the_average() -> None:
    rows = made_up(importance=0.0, plain=0.1)["posteriors"]
    rows.loc[rows["seed"] != 2, "mean"] += np.where(rows.loc[rows["seed"] != 2, "seed"] % 2, 0.2, -0.2)
    # Seeds 0 and 4 are lower, 1 and 3 higher by as much: 2 is in the middle.
    assert thompson.typical_seed(rows) == 2


@pytest.mark.parametrize(
    ("importance", "plain", "verdict"),
    [
        (0.01, 0.1, "reproduced"),
        (-0.01, 0.1, "reproduced"),
        (0.1, 0.01, "not reproduced"),
        (0.05, 0.05, "undecided"),
    ],
)
def test_the_estimator_nearer_to_the_truth_wins(importance: float, plain: float, verdict: str) -> None:
    assert thompson.claims(made_up(importance=importance, plain=plain))[1].verdict == verdict


@pytest.mark.parametrize(
    ("known", "other", "verdict"), [(0.05, 0.1, "reproduced"), (0.1, 0.05, "not reproduced")]
)
def test_the_better_known_arm_must_be_more_peaked(known: float, other: float, verdict: str) -> None:
    tables = made_up(importance=0.0, plain=0.1, known=known, other=other)
    assert thompson.claims(tables)[0].verdict == verdict


def test_one_seed_decides_nothing() -> None:
    rows = made_up(importance=0.0, plain=0.1)["posteriors"]
    claims = thompson.claims({"posteriors": rows[rows["seed"] == 0]})
    assert [claim.verdict for claim in claims] == ["undecided", "undecided"]


def test_the_picture_shows_the_space_the_posteriors_and_all_seeds(tables: Tables) -> None:
    with style.used():
        (picture,) = thompson.draw(tables)
    assert len(picture.figure.axes) == 3
    assert f"{SEEDS} seeds" in picture.caption
    assert f"({tables['references']['seed'].iloc[0]})" in picture.caption
