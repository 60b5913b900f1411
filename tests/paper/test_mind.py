from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.base import DATA_VARIABLE, MissingDataError
from tercet.executors import Serial
from tercet.paper import mind, mind_pictures, style
from tercet.paper.base import Order, Tables
from tests.environments import test_ebnerd as tiny
from tests.environments import test_mind as tiny_mind
from tests.paper.test_mind_claims import ADAPTS, curves


def read_back(tables: Tables) -> dict[str, pd.DataFrame]:
    return {name: pd.read_csv(StringIO(table.to_csv(index=False))) for name, table in tables.items()}


def test_the_best_policy_has_zero_relative_regret_at_every_step_and_nobody_less() -> None:
    relative = mind_pictures.relative(curves(mind.MIND, ADAPTS))
    means = pd.DataFrame({name: rows["mean"] for name, rows in relative.items()})
    np.testing.assert_allclose(means.min(axis=1), 0.0)
    assert means[mind.OURS].iloc[-1] == 0.0
    assert means["two towers, large"].iloc[4] == pytest.approx(0.0, abs=1.0)


def test_a_policy_with_few_seeds_is_compared_on_those_seeds() -> None:
    table = curves(mind.MIND, {mind.OURS: (0.5, 0.5), "uniform": (0.6, 0.6)}, seeds=4)
    table["regret"] += 100 * table["seed"] * (table["step"] > 0)  # later seeds are harder, for everybody
    few = table[(table["policy"] == mind.OURS) | (table["seed"] == 0)]
    assert mind_pictures.relative(few)["uniform"]["mean"].iloc[-1] == pytest.approx(50, abs=6)


def test_a_rate_is_hits_over_steps_and_its_interval_knows_quiet_blocks() -> None:
    hits, steps = np.array([10.0, 20.0, 1.0]), np.array([100.0, 200.0, 10.0])
    assert mind_pictures.rate(hits, steps) == pytest.approx((0.1, 0.0), abs=1e-12)
    assert mind_pictures.rate(hits + np.array([0, 0, 4]), steps).half > 0


def test_pictures_are_drawn_from_tables_read_back() -> None:
    blocks = pd.DataFrame({"block": range(20), "hits": 5.0, "steps": 20})
    hits = pd.concat([blocks.assign(policy=name, seed=0) for name in ("C3", "uniform")])
    tables = read_back(
        {"curves": curves(mind.SUBSTITUTE, ADAPTS), "hits": hits.assign(world=mind.SUBSTITUTE)}
    )
    with style.used():
        figure, rates = mind.draw(tables)
    assert [figure.name, rates.name] == ["mind", "mind-hits"]
    for picture in (figure, rates):
        assert mind.SUBSTITUTE in picture.caption
        assert mind.SUBSTITUTE in picture.figure.axes[0].get_title()
    assert "mean of 6 seeds" in figure.caption
    assert "400 impressions" in rates.caption
    with style.used():
        assert len(mind.draw({"curves": tables["curves"]})) == 1


def test_every_contender_has_a_look_or_is_c3_without_dropping() -> None:
    for name in mind.contenders(None):
        assert name == mind.KEPT or style.look(name)
    assert set(mind.QUICK) | set(mind.WHOLE_LOG) <= set(mind.contenders(None))


def test_only_the_gaussian_process_plays_fewer_seeds() -> None:
    few = {name: who.seeds for name, who in mind.contenders(None).items() if who.seeds is not None}
    assert few == {"Gaussian process": 3}


def test_what_the_deviations_say_of_the_policies_is_so() -> None:
    policies = {name: who.policy for name, who in mind.contenders(None).items()}
    assert policies[mind.OURS].forgetting == mind.DROP
    assert not mind.DROP.at_once
    assert policies[mind.OURS].prior == (1.0, 1.0)
    assert policies[mind.OURS].training.partitions == 3
    assert policies["LightGBM, refitted"].half_life == mind.UNFADING
    assert policies["LightGBM, refitted"].refit >= mind.POINTS
    assert policies["two towers, small"].validation == policies["two towers, large"].validation == 0.1
    bayes, lin = policies["Bayesian linear regression"], policies["LinUCB"]
    assert (bayes.width, bayes.prior_precision * bayes.noise**2) == (lin.width, lin.penalty)
    assert bayes.features == lin.features == "shared"


def test_the_data_are_mind_where_its_files_are_and_missing_data_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with pytest.raises(MissingDataError, match="ebnerd"):
        mind.ITEM.check()
    tiny_mind.write_sample(tmp_path, tiny_mind.visits(20))
    assert mind.data() == mind.SUBSTITUTE  # the sample is not enough
    tiny_mind.write_files(tmp_path, tiny_mind.visits(20))
    mind.ITEM.check()
    assert mind.data() == mind.MIND


@pytest.mark.slow
def test_a_quick_measurement_counts_regret_and_clicks_of_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tiny.write(tmp_path / "data", tiny.drawn())))
    monkeypatch.setattr(mind, "QUICK", (mind.OURS, mind.KEPT, "two towers, small", "uniform"))
    monkeypatch.setattr(mind, "CHEAP", ("uniform", "click counter"))
    monkeypatch.setattr(mind, "QUICK_SHARE", 0.9)
    monkeypatch.setattr(mind, "SHARE", 0.9)
    order = Order(folder=tmp_path / "out", seeds=2, quick=True, executor=Serial())
    tables = mind.measure(order)
    whole, hits = tables["curves"], tables["hits"]
    last = whole[whole["step"] == whole["step"].max()]
    # Every list of this log has one click, so that a step brings a click or a regret of 1.
    np.testing.assert_allclose(last["regret"] + last["clicks"], last["step"])
    assert (whole[whole["step"] == 0][["regret", "clicks"]] == 0).all(axis=None)
    assert set(whole["policy"]) == {mind.OURS, mind.KEPT, "two towers, small", "uniform"}
    assert set(hits["policy"]) == {"uniform", "click counter"}
    assert (hits["hits"] <= hits["steps"]).all()
    assert len(mind.claims(read_back(tables))) == 3
