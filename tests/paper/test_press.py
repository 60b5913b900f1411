"""An item of our own, made into files."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tercet import C3, LeaveOneOut
from tercet.environments.base import MissingDataError
from tercet.environments.drift import Drift
from tercet.executors import Serial
from tercet.experiment import Experiment
from tercet.paper import press, style
from tercet.paper.base import HASTE, Claim, Item, Order, Picture, Tables
from tercet.paper.catalogue import PAPER, Catalogue
from tercet.policies.simple import Uniform
from tercet.words import words
from tests.worlds import Signs


def double(seed: int) -> int:
    return 2 * seed


def measure(order: Order) -> Tables:
    values = order.map("doubling", double, range(order.seeds))
    return {
        "rows": pd.DataFrame({"seed": range(order.seeds), "value": values, "third": [1 / 3] * order.seeds})
    }


def draw(tables: Tables) -> list[Picture]:
    figure, axes = style.panels(width=style.COLUMN)
    axes.plot(tables["rows"]["seed"], tables["rows"]["value"])
    return [Picture(name="doubles", figure=figure, caption=f"{len(tables['rows'])} seeds.")]


def judge(tables: Tables) -> list[Claim]:
    mean = tables["rows"]["value"].mean()
    return [
        Claim(
            paper="Values grow.",
            ours=f"mean {mean:g}",
            verdict="reproduced" if mean > 1 else "not reproduced",
        )
    ]


ITEM = Item(
    name="doubles",
    title="Doubles",
    where="nowhere",
    says="Values grow.",
    seeds=3,
    quick_seeds=1,
    measure=measure,
    draw=draw,
    claims=judge,
)


def order(folder: Path, **options: object) -> Order:
    settings = {"seeds": 3, "executor": Serial(), "about": {"revision": "abc", "version": "1"}} | options
    return Order(folder=folder, **settings)  # type: ignore[arg-type]


def test_a_quick_look_trains_our_c3_hastily_and_leaves_all_others_alone(tmp_path: Path) -> None:
    policies = {"ours": C3(progress=False), "paper's": C3.paper(progress=False), "uniform": Uniform()}
    world = Drift(logged=30, steps=2)
    experiment = Experiment(policies=policies, environments={"world": world}, seeds=1)
    made_of = {}
    for quick in (True, False):
        results = order(tmp_path, quick=quick).play("x", experiment)
        made_of[quick] = {run["policy"]: run["made_of"] for run, _ in results.runs()}
    assert {name for name in policies if made_of[True][name] != made_of[False][name]} == {"ours"}
    assert made_of[True]["ours"] == words(replace(policies["ours"], training=LeaveOneOut(**HASTE)))


def test_a_measurement_becomes_tables_pictures_and_what_made_them(tmp_path: Path) -> None:
    press.run(ITEM, order(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {
        "about.json",
        "rows.csv",
        "doubles.pdf",
        "doubles.png",
    }
    facts = json.loads((tmp_path / "about.json").read_text())
    assert facts["command"] == "tercet paper run doubles --seeds 3"
    assert (facts["revision"], facts["seeds"], facts["quick"]) == ("abc", 3, False)
    assert facts["pictures"] == {"doubles": "3 seeds."}
    assert press.tables(tmp_path)["rows"]["value"].tolist() == [0, 2, 4]


def test_equal_rows_give_equal_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        press.run(ITEM, order(tmp_path / name))
    for file in ("rows.csv", "doubles.png", "doubles.pdf"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_pictures_are_drawn_from_the_file_not_from_memory(tmp_path: Path) -> None:
    press.run(ITEM, order(tmp_path))
    (tmp_path / "rows.csv").write_text("seed,value\n0,0\n1,2\n")
    press.draw(ITEM, tmp_path)
    assert press.about(tmp_path)["pictures"] == {"doubles": "2 seeds."}  # type: ignore[index]
    assert press.claims(ITEM, tmp_path)[0].verdict == "not reproduced"


def test_a_quick_look_does_not_replace_a_full_measurement(tmp_path: Path) -> None:
    press.run(ITEM, order(tmp_path))
    with pytest.raises(ValueError, match="give another --out"):
        press.run(ITEM, order(tmp_path, quick=True, seeds=1))
    assert len(press.tables(tmp_path)["rows"]) == 3


def test_a_failed_measurement_leaves_the_earlier_one(tmp_path: Path) -> None:
    press.run(ITEM, order(tmp_path))
    before = (tmp_path / "about.json").read_bytes(), (tmp_path / "rows.csv").read_bytes()

    def fail(_: Order) -> Tables:
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        press.run(replace(ITEM, measure=fail), order(tmp_path))
    assert ((tmp_path / "about.json").read_bytes(), (tmp_path / "rows.csv").read_bytes()) == before


def test_only_the_same_size_of_the_same_clean_revision_is_up_to_date(tmp_path: Path) -> None:
    assert not press.up_to_date(tmp_path, order(tmp_path))
    press.run(ITEM, order(tmp_path))
    assert press.up_to_date(tmp_path, order(tmp_path))
    assert not press.up_to_date(tmp_path, order(tmp_path, seeds=4))
    assert not press.up_to_date(tmp_path, order(tmp_path, about={"revision": "abd", "version": "1"}))
    assert not press.up_to_date(tmp_path, order(tmp_path, about={"revision": None, "version": "1"}))
    press.run(ITEM, order(tmp_path, about={"revision": "abc-dirty", "version": "1"}))
    assert not press.up_to_date(tmp_path, order(tmp_path, about={"revision": "abc-dirty", "version": "1"}))


def test_damage_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no measurement"):
        press.draw(ITEM, tmp_path)
    press.run(ITEM, order(tmp_path))
    (tmp_path / "rows.csv").unlink()
    with pytest.raises(ValueError, match="can not be read"):
        press.tables(tmp_path)
    (tmp_path / "about.json").write_text("{")
    with pytest.raises(ValueError, match="delete it"):
        press.about(tmp_path)


def test_a_part_without_rows_has_no_table_and_nothing_at_all_is_told(tmp_path: Path) -> None:
    def begun(order: Order) -> Tables:
        return dict(measure(order)) | {"later": pd.DataFrame()}

    press.run(replace(ITEM, measure=begun), order(tmp_path))
    assert list(press.tables(tmp_path)) == ["rows"]
    nothing = replace(ITEM, measure=lambda _: {"rows": pd.DataFrame()})
    with pytest.raises(ValueError, match="no run of doubles is finished yet"):
        press.run(nothing, order(tmp_path / "other", finished=True))


def test_what_was_measured_but_not_drawn_is_not_up_to_date(tmp_path: Path) -> None:
    def fail(_: Tables) -> list[Picture]:
        raise RuntimeError("no ink")

    with pytest.raises(RuntimeError, match="no ink"):
        press.run(replace(ITEM, draw=fail), order(tmp_path))
    assert not press.up_to_date(tmp_path, order(tmp_path))
    press.draw(ITEM, tmp_path)
    assert press.up_to_date(tmp_path, order(tmp_path))


def test_what_played_the_runs_is_kept_beside_what_made_the_tables(tmp_path: Path) -> None:
    experiment = Experiment(
        policies={"uniform": Uniform()}, environments={"signs": Signs()}, seeds=2, steps=3
    )

    def played(order: Order) -> Tables:
        return {"rows": pd.DataFrame([summary for summary, _ in order.play("signs", experiment).runs()])}

    item = replace(ITEM, measure=played, draw=lambda _: [], claims=lambda _: [])
    press.run(item, order(tmp_path, about={"revision": "first", "version": "1"}))
    press.run(item, order(tmp_path, about={"revision": "second", "version": "1"}))
    facts = press.about(tmp_path)
    assert facts is not None
    assert (facts["revision"], facts["run_revisions"]) == ("second", ["first"])


def test_only_the_runs_of_the_experiment_count(tmp_path: Path) -> None:
    def seeds(count: int) -> int:
        experiment = Experiment(
            policies={"uniform": Uniform()}, environments={"signs": Signs()}, seeds=count, steps=3
        )
        return len(list(order(tmp_path).play("signs", experiment).runs()))

    assert [seeds(count) for count in (1, 3, 2)] == [1, 3, 2]  # whatever else is in the folder


def test_a_bad_folder_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="give another --out"):
        press.run(
            replace(ITEM, measure=lambda _: pytest.fail("measured")), order(tmp_path / "file" / "doubles")
        )


def test_a_missing_package_is_told_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(press, "PACKAGES", ("matplotlib", "no_such_package"))
    with pytest.raises(
        ModuleNotFoundError, match=r"no_such_package: pip install 'tercet\[train,bench,paper\]'"
    ):
        press.run(ITEM, order(tmp_path))


@pytest.mark.parametrize("damage", ["about.json", "rows.csv", "doubles.png"])
def test_damage_to_one_item_leaves_the_report_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    items = {name: replace(ITEM, name=name, title=name.title()) for name in ("doubles", "others")}
    monkeypatch.setattr(Catalogue, "item", lambda _, name: items[name])
    for name, one in items.items():
        press.run(one, order(tmp_path / name))
    if damage.endswith(".png"):
        (tmp_path / "doubles" / damage).unlink()
    else:
        (tmp_path / "doubles" / damage).write_bytes(b"[]" if damage == "about.json" else b"\xff\xfe\x00")
    page = press.write_report(replace(PAPER, names=tuple(items)), tmp_path).read_text()
    assert "tercet paper run doubles" in page
    assert page.count("data:image/png") == 1


def test_the_status_says_how_far_an_item_is(tmp_path: Path) -> None:
    assert press.status(ITEM, tmp_path) == "not run"

    assert press.status(replace(ITEM, needs="a table"), tmp_path) == "not run; needs a table"
    runs = tmp_path / "doubles" / "runs" / "some" / "runs"
    runs.mkdir(parents=True)
    (runs / "a.parquet").touch()
    assert press.status(ITEM, tmp_path) == "begun: 1 finished run"
    (runs / "a.parquet").unlink()
    press.run(ITEM, order(tmp_path / "doubles"))
    assert press.status(ITEM, tmp_path) == "full, 3 seeds, abc"


def test_missing_data_stops_before_anything_is_measured(tmp_path: Path) -> None:
    def missing() -> None:
        raise MissingDataError("no such data")

    with pytest.raises(MissingDataError):
        press.run(replace(ITEM, check=missing), order(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", PAPER.names)
def test_every_item_is_declared_under_its_name_with_words(name: str) -> None:
    item = PAPER.item(name)
    assert item.name == name
    assert item.title
    assert item.where
    assert item.says.endswith(".")
    assert 1 <= item.quick_seeds <= item.seeds


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(ValueError, match="theorem-2"):
        PAPER.item("figure-9")
