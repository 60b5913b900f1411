from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.drift import Drift
from tercet.paper import time
from tercet.paper.base import Tables
from tercet.policies.base import fresh
from tercet.reference.forgetting import RandomDrop


def made_up(
    *, towers: float = 9.0, at_once: float = 500.0, drop: float = 1.0, decay: float = 1.0, ours: float = 0.5
) -> Tables:
    """Tables with this warm-up of the large two towers, these costs of every 100th step, this step of C3."""
    fits = dict.fromkeys(time.PAPER, 1.0) | {"two towers, large": towers, time.OURS: 5.0}
    policies = [
        {
            "policy": name, "world": "a world", "seed": 0, "steps": 500, "warm_up_seconds": fit, "decide_ms": 0.5,
            "learn_ms": 0.5, "mean_step_ms": ours if name == time.OURS else 1.0, "online_seconds": 0.5,
        }
        for name, fit in fits.items()
    ]  # fmt: skip
    curves = [
        {"policy": name, "seed": 0, "step": step, "seconds": fit + step / 1e3}
        for name, fit in fits.items()
        for step in range(0, 501, 10)
    ]
    costs = {time.AT_ONCE: at_once, time.DROP: drop, time.DECAY: decay, time.KEEP: 1.0}
    forgetting = [
        {
            "rule": rule,
            "seed": 0,
            "step": step,
            "decide_ms": 1.0,
            "learn_ms": cost if step % 100 == 0 else 1.0,
        }
        for rule, cost in costs.items()
        for step in range(1, 501)
    ]
    tables = {"policies": policies, "curves": curves, "forgetting": forgetting}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def verdicts(tables: Tables) -> list[str]:
    return [claim.verdict for claim in time.claims(tables)]


def test_jumps_are_what_the_drops_cost_beyond_a_usual_step() -> None:
    rows = made_up(at_once=101.0)["forgetting"]
    found = time.jumps(rows[rows["rule"] == time.AT_ONCE])
    assert found.ratio == pytest.approx(101.0)
    assert found.share == pytest.approx(5 * 100 / (1000 + 5 * 100))


def test_every_step_of_every_rule_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "STEPS", 12)
    for name, policy in time.forgetful(half_life=300.0).items():
        rows = list(time.forgotten(name, fresh(policy), Drift(logged=80, steps=20), seed=0))
        assert [row["step"] for row in rows] == list(range(1, 13))
        assert all(row["learn_ms"] > 0 for row in rows)


def test_the_embedding_is_as_wide_as_the_papers() -> None:
    points = time.waves(np.zeros((3, 4)), np.ones((3, 8)))
    assert points.shape == (3, 128)


def test_curves_begin_with_the_time_of_the_fit() -> None:
    steps = pd.DataFrame({"decide_seconds": [0.1] * 20, "learn_seconds": [0.2] * 20})
    rows = list(time._curve({"policy": "x", "seed": 0, "fit_seconds": 5.0}, steps))
    assert [row["seconds"] for row in rows] == pytest.approx([5.0, 8.0, 11.0])


def test_a_quick_measurement_is_in_a_simulated_world_with_the_papers_policies() -> None:
    assert isinstance(time.world(quick=True).scenario, Drift)
    assert set(time.contenders(quick=True)) == set(time.PAPER)
    assert set(time.PAPER) < set(time.contenders(quick=False))


def test_without_data_the_world_is_simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TERCET_DATA", str(tmp_path))
    assert isinstance(time.world(quick=False).scenario, Drift)


def test_claims_hold_where_only_random_drops_cost() -> None:
    assert verdicts(made_up()) == ["reproduced"] * 4


def test_claims_fall_with_the_rows_that_bear_them() -> None:
    assert verdicts(made_up(towers=2.0))[0] == "not reproduced"
    assert verdicts(made_up(at_once=2.0))[1] == "not reproduced"
    assert verdicts(made_up(drop=500.0))[2] == "not reproduced"
    assert verdicts(made_up(decay=500.0))[2] == "not reproduced"
    assert verdicts(made_up(ours=3.0))[3] == "not reproduced"


def test_a_drop_that_is_short_beside_all_others_but_no_usual_step_is_still_a_pattern() -> None:
    # 15 times the usual step, yet less than a tenth of all time: both conditions must hold.
    tables = made_up(drop=15.0)
    rows = tables["forgetting"]
    found = time.jumps(rows[rows["rule"] == time.DROP])
    assert found.ratio > time.OUTLIER
    assert found.share < time.SHARE
    assert verdicts(tables)[2] == "not reproduced"


def test_notes_name_the_world_and_both_conditions() -> None:
    warm_up, _, gone, online = time.claims(made_up())
    assert "a world" in warm_up.note
    assert "a world" in online.note
    assert f"{time.OUTLIER:g} times" in gone.note
    assert f"{time.SHARE:.0%}" in gone.note


def test_the_timed_c3_drops_one_by_one_as_the_deviations_say() -> None:
    forgetting = time.contenders(quick=True)[time.OURS].policy.forgetting
    assert forgetting == RandomDrop()
    assert not forgetting.at_once


def test_tables_are_drawn_as_read_from_files(tmp_path: Path) -> None:
    tables = made_up()
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    pictures = time.draw({name: pd.read_csv(tmp_path / name) for name in tables})
    assert [picture.name for picture in pictures] == ["time", "time-policies"]
