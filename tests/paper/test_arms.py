from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.anchors import SLOPES
from tercet.executors import Serial
from tercet.paper import anchor_training, arms, style
from tercet.paper.anchor_training import TRAINERS
from tercet.paper.base import Order, Tables

DISTANCES = {
    "sorted": (6.0, 5.0, 4.0, 3.0, 2.0, 1.0),
    "reversed": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    "half": (1.0, 3.5, 6.0, 2.0, 3.0, 5.0),  # the positive arm is nearer in five of nine pairs
    "other half": (2.0, 3.0, 5.0, 1.0, 3.5, 6.0),  # in four
}


def made_up(before: tuple[str, ...], after: tuple[str, ...]) -> Tables:
    """One entry a seed."""
    rng = np.random.default_rng(0)
    rows = []
    for trainer in TRAINERS:
        for stage, orders in (("before", before), ("after", after)):
            for seed, order in enumerate(orders):
                for arm, (rho, distance) in enumerate(
                    zip((1.0, *SLOPES), (0.0, *DISTANCES[order]), strict=True)
                ):
                    angle = rng.uniform(0, 2 * np.pi)
                    row = {"trainer": trainer, "seed": seed, "stage": stage, "arm": arm, "rho": rho}
                    place = {"x": 7 + distance * np.cos(angle), "y": distance * np.sin(angle)}
                    rows.append(row | place | {"distance": distance})
    return arms.tables_of(pd.DataFrame(rows))


CHANCE = ("half", "other half", "half", "other half")


@pytest.mark.parametrize(("order", "share"), [("sorted", 1.0), ("reversed", 0.0), ("half", 5 / 9)])
def test_the_share_counts_pairs_whose_positive_arm_is_nearer(order: str, share: float) -> None:
    nearer = made_up((order,), (order,))["nearer"]
    assert nearer["share"].to_numpy() == pytest.approx(share)


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (("sorted",) * 4, "reproduced"),
        (CHANCE, "undecided"),
        (("reversed",) * 4, "not reproduced"),
        (("sorted",), "undecided"),
    ],
)
def test_arms_must_be_in_order_after_training(after: tuple[str, ...], verdict: str) -> None:
    (claim,) = arms.claims(made_up(CHANCE[: len(after)], after))
    assert claim.verdict == verdict


def test_the_picture_labels_each_arm_with_its_rho() -> None:
    tables = {
        name: pd.read_csv(StringIO(table.to_csv(index=False, float_format="%.6g")))
        for name, table in made_up(CHANCE, ("sorted",) * 4).items()
    }
    with style.used():
        (picture,) = arms.draw(tables)
    assert len(picture.figure.axes) == 3
    for axes in picture.figure.axes:
        assert {text.get_text() for text in axes.texts} >= {f"{rho:g}" for rho in SLOPES}
    assert "of 4" in picture.caption


@pytest.mark.slow
def test_all_seven_arms_are_measured_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchor_training, "QUICK_EPISODES", 3)
    monkeypatch.setattr(anchor_training, "QUICK_EPOCHS", 1)
    tables = arms.measure(Order(folder=tmp_path, seeds=1, quick=True, executor=Serial()))
    assert len(tables["places"]) == len(TRAINERS) * 2 * 7
    assert len(tables["nearer"]) == len(TRAINERS) * 2
