from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.anchors import SLOPES
from tercet.executors import Serial
from tercet.paper import anchor_training, coupling, style
from tercet.paper.anchor_training import TRAINERS
from tercet.paper.base import Order, Tables

ORDERS = {  # distances from the lowest rho to the highest
    "falling": (6.0, 5.0, 4.0, 3.0, 2.0, 1.0),
    "rising": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    "but one": (6.0, 5.0, 3.0, 4.0, 2.0, 1.0),
    "mixed": (3.0, 1.0, 6.0, 2.0, 5.0, 4.0),
}


def made_up(before: str, after: str, seeds: int = 4) -> Tables:
    rng = np.random.default_rng(0)
    distances = pd.DataFrame(
        [
            {
                "trainer": trainer,
                "seed": seed,
                "stage": stage,
                "arm": arm + 1,
                "rho": rho,
                "distance": ORDERS[order][arm] + rng.normal(scale=0.01),
            }
            for trainer in TRAINERS
            for stage, order in (("before", before), ("after", after))
            for seed in range(seeds)
            for arm, rho in enumerate(SLOPES)
        ]
    )
    return coupling.tables_of(distances)


def read_back(tables: Tables) -> Tables:
    return {
        name: pd.read_csv(StringIO(table.to_csv(index=False, float_format="%.6g")))
        for name, table in tables.items()
    }


def verdicts(tables: Tables) -> list[str]:
    return [claim.verdict for claim in coupling.claims(tables)]


def test_spearman_is_minus_one_where_distances_fall() -> None:
    rankings = made_up("rising", "falling")["spearman"].groupby("stage")["spearman"]
    assert rankings.max().to_dict() == pytest.approx({"after": -1, "before": 1})


def test_claims_hold_where_training_makes_distances_fall() -> None:
    assert verdicts(made_up("mixed", "falling")) == ["reproduced"] * 3


def test_claims_fail_where_training_makes_distances_rise() -> None:
    assert verdicts(made_up("mixed", "rising")) == ["not reproduced"] * 3


def test_nothing_is_learned_where_distances_fell_before() -> None:
    # The change is 0 in every seed.
    assert verdicts(made_up("falling", "falling")) == ["reproduced", "reproduced", "not reproduced"]


def test_a_single_step_that_rises_is_against_the_figure() -> None:
    assert verdicts(made_up("rising", "but one")) == ["reproduced", "not reproduced", "reproduced"]


def test_one_seed_has_no_interval() -> None:
    assert verdicts(made_up("mixed", "falling", seeds=1)) == ["undecided"] * 3


def test_the_summary_has_mean_spread_and_count_of_the_seeds() -> None:
    tables = made_up("mixed", "falling")
    rows = tables["distances"]
    chosen = (rows["trainer"] == TRAINERS[0]) & (rows["stage"] == "after") & (rows["rho"] == SLOPES[0])
    values = rows.loc[chosen, "distance"]
    summary = tables["summary"].set_index(["trainer", "stage", "rho"]).loc[(TRAINERS[0], "after", SLOPES[0])]
    assert summary["mean"] == pytest.approx(values.mean())
    assert summary["sd"] == pytest.approx(values.std(ddof=1))
    assert summary["n"] == 4


def test_the_picture_has_a_panel_a_trainer_and_counts_its_seeds() -> None:
    with style.used():
        (picture,) = coupling.draw(read_back(made_up("mixed", "falling")))
    assert len(picture.figure.axes) == len(TRAINERS)
    assert "4 seeds" in picture.caption


@pytest.mark.slow
def test_the_anchor_itself_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchor_training, "QUICK_EPISODES", 3)
    monkeypatch.setattr(anchor_training, "QUICK_EPOCHS", 1)
    tables = coupling.measure(Order(folder=tmp_path, seeds=1, quick=True, executor=Serial()))
    assert sorted(tables["distances"]["arm"].unique()) == [1, 2, 3, 4, 5, 6]
    assert len(tables["spearman"]) == 4
