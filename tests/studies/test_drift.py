"""The study of drift: who plays what, and the tables made of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.drift import KINDS
from tercet.executors import Serial
from tercet.paper import press, style
from tercet.paper.base import Order
from tercet.studies import drift
from tercet.studies.drift_claims import CONTROLS, COUPLED
from tercet.words import words


def test_there_is_an_expectation_for_every_kind() -> None:
    assert set(COUPLED) | set(CONTROLS) == set(KINDS)
    assert not set(COUPLED) & set(CONTROLS)


def test_everybody_who_can_be_tuned_is_and_has_a_look() -> None:
    contenders = drift.contenders()
    assert tuple(contenders) == drift.NAMES
    for name, contender in contenders.items():
        assert bool(contender.settings) == name.endswith(", tuned")
        assert contender.seeds is None
        style.look(name)


def test_c3_and_its_variant_differ_in_forgetting_alone() -> None:
    ours, keeping = (drift.contenders()[name].policy for name in ("C3", "C3, keeping everything"))
    assert (ours.forgetting, keeping.forgetting) == ("auto", None)
    assert words(replace(ours, forgetting=None)) == words(keeping)


def test_a_quick_look_is_a_part_of_the_whole() -> None:
    assert set(drift.QUICK) < set(drift.NAMES)
    assert set(drift.QUICK_KINDS) < set(KINDS)
    for quick in (False, True):
        for kind in drift.QUICK_KINDS:
            [scenario] = drift.experiment(kind, seeds=1, quick=quick).environments.values()
            assert scenario.nature == KINDS[kind]


@pytest.mark.slow
def test_a_run_becomes_tables_a_picture_and_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "QUICK", ("Thompson per arm, tuned", "uniform"))
    monkeypatch.setattr(drift, "QUICK_KINDS", ("abrupt", "stationary"))
    monkeypatch.setattr(drift, "QUICK_LOGGED", 300)
    monkeypatch.setattr(drift, "QUICK_STEPS", 250)
    press.run(drift.ITEM, Order(folder=tmp_path, seeds=2, quick=True, executor=Serial()))
    found = press.tables(tmp_path)
    assert len(found["final"]) == 2 * 2 * 2  # kinds, policies, seeds
    last = found["curves"][found["curves"]["step"] == 250].set_index(["kind", "policy"])["mean"]
    means = found["final"].groupby(["kind", "policy"])["regret"].mean()
    pd.testing.assert_series_equal(last.sort_index(), means, check_names=False, rtol=1e-4)
    recovery = found["recovery"]
    assert set(recovery["kind"]) == {"abrupt"}
    for _, rows in recovery.groupby("policy"):
        assert rows["without"].fillna(-1).tolist() == [-1, 0, 1]
    facts = press.about(tmp_path)
    assert facts is not None
    assert facts["command"] == "tercet study run drift --seeds 2 --quick"
    assert "2 kinds of drift, 2 seeds" in facts["pictures"]["drift"]
    assert {claim.verdict for claim in press.claims(drift.ITEM, tmp_path)} == {"not testable"}  # no C3


def test_a_recovery_without_a_world_is_that_of_the_others() -> None:
    def steps(recovers: int) -> pd.DataFrame:
        regret = np.zeros(800)
        regret[400 : 400 + recovers] = 1.0
        return pd.DataFrame({"dynamic_regret": regret, "changed": np.arange(800) == 400})

    runs = [({"policy": "C3", "seed": seed}, steps(length)) for seed, length in enumerate((50, 350, 350))]
    rows = pd.DataFrame(drift._recoveries(runs)).set_index("without")["steps"]
    assert rows.loc[0.0] > 300
    assert rows.loc[2.0] < 60  # half of the jump is gone with that of one of the two
    assert rows[rows.index.isna()].item() > 300
