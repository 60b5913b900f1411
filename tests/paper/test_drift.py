from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.anchors import degree_of_coupling
from tercet.executors import Serial
from tercet.paper import drift, style
from tercet.paper.base import Order, Tables


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    measured = drift.measure(Order(folder=tmp_path, seeds=3, quick=True, executor=Serial()))
    return {
        name: pd.read_csv(StringIO(table.to_csv(index=False, float_format="%.6g")))
        for name, table in measured.items()
    }


def made_up(strong: float, weak: float, mirror: float, unrelated: float) -> Tables:
    pairs = [("arm 2", strong, 0.9), ("arm 3", weak, 0.1), ("arm 4", mirror, -1.0)]
    return {
        "degrees": pd.DataFrame(
            [{"first": "arm 1", "second": arm, "degree": d, "pearson": p} for arm, d, p in pairs]
        ),
        "unrelated": pd.DataFrame({"seed": [0, 1], "degree": [unrelated, unrelated]}),
    }


def test_trends_are_chances_that_drift() -> None:
    means = drift.trends(np.linspace(0, 1, 500))
    assert ((means > 0) & (means < 1)).all()
    assert (np.ptp(means, axis=0) > 0.3).all()


def test_the_fourth_arm_mirrors_the_first() -> None:
    means = drift.trends(np.linspace(0, 1, 50))
    np.testing.assert_allclose(means[:, 0] + means[:, 3], 1)


def test_degrees_are_those_of_equation_one(tables: Tables) -> None:
    degrees = degree_of_coupling(tables["trends"][list(drift.ARMS)].to_numpy())
    for _, row in tables["degrees"].iterrows():
        i, j = (drift.ARMS.index(row[side]) for side in ("first", "second"))
        assert row["degree"] == pytest.approx(degrees[i, j], abs=1e-5)


def test_each_seed_has_its_own_shuffle(tables: Tables) -> None:
    assert tables["unrelated"]["degree"].nunique() == 3


@pytest.mark.parametrize(
    ("strong", "weak", "unrelated", "verdict"),
    [
        (0.99, 0.9, 0.92, "reproduced"),
        (0.90, 0.99, 0.80, "not reproduced"),
        (0.91, 0.9, 0.92, "not reproduced"),  # as near as by chance
    ],
)
def test_strong_is_above_weak_and_above_chance(
    strong: float, weak: float, unrelated: float, verdict: str
) -> None:
    assert drift.claims(made_up(strong, weak, 0.5, unrelated))[0].verdict == verdict


@pytest.mark.parametrize(("mirror", "verdict"), [(0.8, "not reproduced"), (0.95, "reproduced")])
def test_a_mirror_image_is_coupled_if_above_chance(mirror: float, verdict: str) -> None:
    claim = drift.claims(made_up(0.99, 0.9, mirror, 0.9))[1]
    assert claim.verdict == verdict
    assert f"{mirror:.3f}" in claim.ours


def test_a_sketch_that_we_made_up_is_no_evidence() -> None:
    claim = drift.claims(made_up(0.99, 0.9, 0.5, 0.9))[0]
    assert claim.paper.startswith("Implied: ")
    assert "not evidence" in claim.note


def test_the_picture_has_the_degrees_in_it(tables: Tables) -> None:
    with style.used():
        (picture,) = drift.draw(tables)
    titles = " ".join(axes.get_title() for axes in picture.figure.axes)
    for arm in ("arm 2", "arm 3", "arm 4"):
        rows = tables["degrees"]
        degree = rows.loc[(rows["first"] == "arm 1") & (rows["second"] == arm), "degree"].iloc[0]
        assert f"{degree:.3f}" in titles
    assert "3 shuffles" in picture.caption
