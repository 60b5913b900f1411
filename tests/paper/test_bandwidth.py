import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.environments.classification import Classification
from tercet.executors import Serial
from tercet.paper import bandwidth, style
from tercet.paper.bandwidth import BANDWIDTHS, DATA, ITEM, SETTINGS, UNIFORM, name
from tercet.paper.base import Order

SEEDS = 6


def tables(regrets: Mapping[float, float], seeds: int = SEEDS, noise: float = 5.0) -> dict[str, pd.DataFrame]:
    """Tables as they are read back, in which these are the regrets of every setting, with a little noise."""
    rng = np.random.default_rng(0)
    everybody = {name(sigma): regret for sigma, regret in regrets.items()} | {UNIFORM: 850.0}
    final = pd.DataFrame(
        [
            {"setting": setting, "policy": policy, "seed": seed, "steps": 1000,
             "regret": regret + rng.normal(0, noise), "propensity": 0.2, "arms": 7}
            for setting in SETTINGS for policy, regret in everybody.items() for seed in range(seeds)
        ]
    )  # fmt: skip
    curves = pd.DataFrame(
        [
            {"setting": setting, "policy": policy, "step": step, "mean": regret * step / 1000, "sd": 5.0, "seeds": seeds}
            for setting in SETTINGS for policy, regret in everybody.items() for step in range(100, 1001, 100)
        ]
    )  # fmt: skip
    return {key: reread(table) for key, table in {"final": final, "curves": curves}.items()}


def reread(table: pd.DataFrame) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(table.to_csv(index=False, float_format="%.6g")))


def verdicts(regrets: Mapping[float, float], seeds: int = SEEDS, noise: float = 5.0) -> list[str]:
    """Of the two claims on the paper's own setting, which are the same in the others."""
    all_claims = [claim.verdict for claim in ITEM.claims(tables(regrets, seeds, noise))]
    assert all_claims == all_claims[:2] * len(SETTINGS)
    return all_claims[:2]


def regrets_like(smallest: float, **others: float) -> dict[float, float]:
    return dict(zip(BANDWIDTHS, [smallest, *[500.0] * 4], strict=True)) | {
        float(key.removeprefix("b")): value for key, value in others.items()
    }


def test_a_failing_bandwidth_among_equal_ones_is_what_the_paper_says() -> None:
    assert verdicts(regrets_like(850.0)) == ["reproduced", "reproduced"]


def test_the_smallest_bandwidth_is_no_failure_where_it_does_as_well_as_the_others() -> None:
    assert verdicts(regrets_like(500.0)) == ["not reproduced", "reproduced"]


def test_a_bandwidth_that_is_worse_and_still_learns_is_no_failure_to_learn() -> None:
    assert verdicts(regrets_like(600.0))[0] == "not reproduced"


def test_one_other_bandwidth_that_differs_ends_the_invariance() -> None:
    assert verdicts(regrets_like(850.0, b3=600.0)) == ["reproduced", "not reproduced"]


def test_bandwidths_that_all_fail_show_neither_an_outlier_nor_an_advantage() -> None:
    assert verdicts(dict.fromkeys(BANDWIDTHS, 850.0)) == ["not reproduced", "not reproduced"]


def test_a_significant_difference_within_the_margin_is_still_alike() -> None:
    margin = bandwidth.MARGIN * 850
    assert verdicts(regrets_like(850.0, b3=500.0 + margin / 2), noise=1.0)[1] == "reproduced"
    assert verdicts(regrets_like(850.0, b3=500.0 + 2 * margin), noise=1.0)[1] == "not reproduced"


def test_noise_that_hides_a_difference_does_not_show_that_there_is_none() -> None:
    found = [claim.verdict for claim in ITEM.claims(tables(regrets_like(850.0), seeds=3, noise=80.0))]
    assert set(found[1::2]) == {"undecided"}


@pytest.mark.parametrize("seeds", [1, 2])
def test_two_seeds_are_too_few_to_decide_on_likeness(seeds: int) -> None:
    found = [claim.verdict for claim in ITEM.claims(tables(dict.fromkeys(BANDWIDTHS, 850.0), seeds))]
    assert set(found[1::2]) == {"undecided"}


def test_a_setting_without_all_bandwidths_is_left_out() -> None:
    some = tables(regrets_like(850.0))
    begun = [table[(table["setting"] == "raw") | (table["policy"] == name(0.5))] for table in some.values()]
    partial = dict(zip(some, begun, strict=True))
    assert len(ITEM.claims(partial)) == 2
    with style.used():
        ITEM.draw(partial)[0].figure.canvas.draw()


def test_seeds_that_one_bandwidth_lacks_are_left_out_of_the_pairs() -> None:
    some = tables(regrets_like(850.0))
    final = some["final"]
    missing = (final["policy"] == name(3.0)) & (final["seed"] == SEEDS - 1)
    claims = ITEM.claims(some | {"final": final[~missing]})
    assert f"{SEEDS - 1} seeds" in claims[0].ours


def test_the_picture_is_drawn_from_tables_that_were_read_back() -> None:
    with style.used():
        (picture,) = ITEM.draw(tables(regrets_like(850.0)))
        picture.figure.canvas.draw()
    assert picture.name == ITEM.name
    assert f"{SEEDS} seeds" in picture.caption
    assert "standard errors of the mean" in picture.caption


def test_a_single_seed_is_drawn_without_bars() -> None:
    alone = tables(regrets_like(850.0), seeds=1)
    alone["curves"]["sd"] = float("nan")
    with style.used():
        ITEM.draw(alone)[0].figure.canvas.draw()


def test_every_setting_meets_the_same_rows() -> None:
    worlds = [setting.experiment(seeds=1, quick=False).environments[DATA] for setting in SETTINGS.values()]
    assert all(isinstance(world, Classification) and world.protocol == "text" for world in worlds)
    assert [world.streaming for world in worlds] == [True, True, False]
    assert [world.scale for world in worlds] == [False, True, False]


@pytest.mark.slow
def test_a_tiny_order_gives_a_row_for_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=1400)
    np.savez(tmp_path / "covertype.npz", X=np.eye(3)[labels] + rng.normal(0, 0.1, (1400, 3)), y=labels)
    monkeypatch.setenv("TERCET_DATA", str(tmp_path))
    monkeypatch.setattr(bandwidth, "BANDWIDTHS", (0.33, 1.0))
    monkeypatch.setattr(bandwidth, "QUICK_STEPS", 40)
    measured = ITEM.measure(Order(folder=tmp_path / "out", seeds=1, quick=True, executor=Serial()))
    final = measured["final"]
    assert len(final) == len(SETTINGS) * 3
    assert (final["steps"] == 40).all()
    assert (final["arms"] == 3).all()
    last = measured["curves"].groupby(["setting", "policy"])["mean"].last()
    assert np.allclose(last, final.set_index(["setting", "policy"])["regret"].loc[last.index])
    uniform = final["policy"] == UNIFORM
    assert np.allclose(final.loc[uniform, "propensity"], 1 / 3)
    ours = final["setting"] == "ours"
    assert final.loc[ours & ~uniform, "regret"].max() < final.loc[ours & uniform, "regret"].min()
