"""The classification experiments: who plays what, and the tables made of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.executors import Serial
from tercet.paper import openml, press, style
from tercet.paper.base import Order


def test_c3_has_the_layers_of_the_papers_appendix() -> None:
    layers = {data: openml.contenders(data)[openml.OURS].policy for data in openml.DATA}
    assert {data: (c3.hidden, c3.dim) for data, c3 in layers.items()} == {
        "shuttle": ((32,), 4),
        "MagicTelescope": ((64,), 8),
        "covertype": ((64,), 8),
        "mnist_784": ((64,), 8),
    }
    assert not any(c3.scale for c3 in layers.values())


def test_the_papers_experiment_streams_raw_rows() -> None:
    for protocol in openml.PROTOCOLS:
        experiment = openml.over_time("covertype", protocol, ["LinUCB"], seeds=2)
        world = experiment.environments["covertype"]
        assert (world.streaming, world.scale, world.protocol) == (True, False, protocol)
        assert experiment.steps == 1000


def test_everybody_plays_early_or_late_and_nobody_twice() -> None:
    for data in openml.DATA:
        everybody = set(openml.contenders(data))
        assert set(openml.slow(data)) < everybody
        assert set(openml.BY_SIZE) <= everybody
        assert set(openml.QUICK) <= everybody


@pytest.mark.slow
def test_tables_and_pictures_come_from_runs_and_a_stop_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=6000)
    features = np.column_stack([labels + rng.normal(size=6000), rng.normal(size=6000)])
    for name in ("shuttle", "magic", "covertype", "mnist"):
        np.savez(tmp_path / f"{name}.npz", X=features, y=labels)
    monkeypatch.setenv("TERCET_DATA", str(tmp_path))
    monkeypatch.setattr(openml, "QUICK", ("LinUCB", "uniform"))
    monkeypatch.setattr(openml, "QUICK_STEPS", 20)
    order = Order(folder=tmp_path / "out", seeds=2, quick=True, executor=Serial())
    with pytest.raises(KeyboardInterrupt):
        openml.measure(replace(order, advance=_stopping(after=5)))
    so_far = openml.measure(replace(order, finished=True))
    press.run(openml.ITEM, replace(order, finished=True))  # the parts that have begun
    assert list(press.about(order.folder)["pictures"]) == ["openml", "openml-all"]  # type: ignore[index]
    tables = openml.measure(order)
    assert 0 < len(so_far["final"]) < len(tables["final"]) == 4 * 2 * 2
    merged = tables["final"].merge(so_far["final"])
    assert len(merged) == len(so_far["final"])  # what was finished is kept as it was
    read = {}
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        read[name] = pd.read_csv(tmp_path / f"{name}.csv")
    with style.used():
        pictures = openml.ITEM.draw(read)
    assert [picture.name for picture in pictures] == ["openml", "openml-all", "openml-history"]
    assert all("2 seeds" in picture.caption for picture in pictures)


def _stopping(*, after: int):
    calls = 0

    def advance(_what: str, _done: int, _total: int) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt

    return advance
