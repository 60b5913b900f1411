from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from tercet.environments import tables
from tercet.environments.tables import SOURCES, Table, canonical, load

X = np.array([[0, 255], [51, 0], [102, 3]], dtype=np.uint8)
Y = np.array([3, 1, 3])


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERCET_DATA", raising=False)
    tables._from_openml.cache_clear()


@pytest.fixture
def openml(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """OpenML with one table of all kinds of columns; what was asked for is noted."""
    asked = []
    frame = pd.DataFrame(
        {
            "ID:": [0, 1, 2, 3],
            "size": [1.5, 2.0, 0.0, 1.0],
            "count": [3, 1, 2, 2],
            "shape": pd.Categorical(["round", "flat", "round", "long"]),
            "wild": pd.Categorical(["0", "1", "1", "0"]),
            "hue": pd.Categorical(["red", None, "blue", "red"]),
        }
    )
    target = pd.Series(pd.Categorical(["yes", "no", "no", "yes"]))

    def fetch(name: str, *, version: Any, as_frame: bool, parser: str) -> Bunch:
        asked.append((name, version))
        return Bunch(data=frame, target=target)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    return asked


def save(folder: Path, name: str = "letter", **columns: Any) -> Path:
    np.savez_compressed(folder / f"{name}.npz", **({"X": X, "y": Y} | columns))
    return folder


def test_labels_become_numbers_from_0_in_their_order(tmp_path: Path) -> None:
    table = load("letter", save(tmp_path))
    np.testing.assert_array_equal(table.labels, [1, 0, 1])
    assert table.classes == 2
    np.testing.assert_array_equal(
        load("letter", save(tmp_path, y=np.array(["b", "c", "a"]))).labels, [1, 2, 0]
    )


def test_features_stay_as_stored_until_they_are_asked_for(tmp_path: Path) -> None:
    table = load("letter", save(tmp_path))
    assert table.features.dtype == np.uint8
    contexts = table.contexts(np.array([2, 0]))
    assert contexts.dtype == np.float64
    np.testing.assert_array_equal(contexts, [[102, 3], [0, 255]])


def test_pixels_lie_between_0_and_1(tmp_path: Path) -> None:
    contexts = load("mnist", save(tmp_path, "mnist")).contexts(np.arange(3))
    np.testing.assert_allclose(contexts, X / 255)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("shuttle", "shuttle"),
        ("MagicTelescope", "magic"),
        ("magic", "magic"),
        ("covertype", "covertype"),
        ("mnist_784", "mnist"),
        ("MNIST", "mnist"),
        ("letter", "letter"),
    ],
)
def test_a_table_is_found_by_its_name_or_alias(name: str, file: str, tmp_path: Path) -> None:
    assert len(load(name, save(tmp_path, file))) == 3
    assert canonical(canonical(name)) == canonical(name)


def test_the_environment_variable_names_the_folder_unless_one_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, rows in ((one, 2), (two, 3)):
        folder.mkdir()
        save(folder, X=X[:rows], y=Y[:rows])
    monkeypatch.setenv("TERCET_DATA", str(one))
    assert len(load("letter")) == 2
    assert len(load("letter", two)) == 3


def test_a_table_is_read_once_a_process_and_again_when_its_file_changes(
    tmp_path: Path,
) -> None:
    first = load("letter", save(tmp_path))
    assert load("letter", tmp_path) is first
    with pytest.raises(ValueError, match="read-only"):
        first.features[0] = 1
    save(tmp_path, X=X[:2], y=Y[:2])
    assert len(load("letter", tmp_path)) == 2


def test_nominal_columns_become_indicators_and_row_numbers_go(openml: list[tuple[Any, ...]]) -> None:
    table = load("letter")
    expected = [  # size, count, flat, long, round, wild, blue, red
        [1.5, 3, 0, 0, 1, 0, 0, 1],
        [2.0, 1, 1, 0, 0, 1, 0, 0],
        [0.0, 2, 0, 0, 1, 1, 1, 0],
        [1.0, 2, 0, 1, 0, 0, 0, 1],
    ]
    np.testing.assert_array_equal(table.contexts(np.arange(4)), expected)
    np.testing.assert_array_equal(table.labels, [1, 0, 0, 1])
    assert load("letter") is table
    assert openml == [("letter", "active")]


def test_a_folder_without_the_file_leaves_it_to_openml(openml: list[tuple[Any, ...]], tmp_path: Path) -> None:
    for name in (*SOURCES, "magic"):
        load(name, tmp_path)
    assert openml == [(name, source.version) for name, source in SOURCES.items()]


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("digits", (1797, 64), 10),
        ("breast_cancer", (569, 30), 2),
        ("iris", (150, 4), 3),
        ("wine", (178, 13), 3),
    ],
)
def test_what_comes_with_scikit_learn_needs_no_network_and_yields_to_a_file(
    name: str, shape: tuple[int, int], classes: int, openml: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    table = load(name, tmp_path)
    assert table.features.shape == shape
    assert table.classes == classes
    assert load(name) is table
    assert len(load(name, save(tmp_path, name))) == len(X)
    assert not openml


def test_without_a_network_the_error_says_to_give_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    with pytest.raises(ValueError, match=r"folder that holds magic\.npz \(--data DIR, .* TERCET_DATA\)"):
        load("magic")


@pytest.mark.parametrize(
    "target",
    [None, pd.DataFrame({"one": [1, 2, 1, 2], "two": [1, 1, 2, 2]}), pd.Series([0.1, 0.2, 0.7, 1.0])],
)
def test_a_table_without_classes_is_refused(
    target: Any, openml: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sklearn.datasets,
        "fetch_openml",
        lambda *_, **__: Bunch(data=pd.DataFrame({"a": [1, 2, 3, 4]}), target=target),
    )
    with pytest.raises(ValueError, match=r"letter: y must be classes|letter must have one target column"):
        load("letter")


def test_rows_without_a_class_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bunch = Bunch(data=pd.DataFrame({"a": [1, 2, 3]}), target=pd.Series(pd.Categorical(["x", "y", None])))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda *_, **__: bunch)
    with pytest.raises(ValueError, match="letter must have a class in every row"):
        load("letter")


def test_a_table_without_features_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Bunch(data=pd.DataFrame({"id": [1, 2]}), target=pd.Series(["a", "b"]))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda *_, **__: empty)
    with pytest.raises(ValueError, match="letter must have at least one feature"):
        load("letter")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"X": X[0]}, "X must be a matrix of numbers"),
        ({"X": X.astype(str)}, "X must be a matrix of numbers .* of <U3"),
        ({"X": X[:, :0]}, "X must be a matrix of numbers"),
        ({"X": np.where(X == 51, np.nan, X)}, "X must be finite, without missing values; row 1 is not"),
        ({"y": Y[:2]}, "y must have a label for each of the 3 rows of X; got shape"),
        ({"y": Y[:, None]}, "y must have a label for each"),
        ({"y": Y / 2}, "y must be classes; got fractions"),
        ({"y": np.ones(3)}, "y must have at least two classes; got 1"),
        ({"y": np.array([1, "a", None], dtype=object)}, "can not be read as an NPZ file"),
    ],
)
def test_wrong_columns_are_refused(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load("letter", save(tmp_path, **columns))


def test_a_file_without_x_and_y_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "letter.npz", features=X, y=Y)
    with pytest.raises(ValueError, match=r"must hold X .* and y .*; it has \['features', 'y'\]"):
        load("letter", tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, X=np.random.default_rng(0).normal(size=(3, 50))) / "letter.npz"
    whole = path.read_bytes()
    np.save(tmp_path / "array.npy", X)
    other = (tmp_path / "array.npy").read_bytes()
    damaged = [b"", b"not a file of NumPy", other, whole[:100], whole[:-30]]
    damaged.append(whole[:200] + bytes(50) + whole[250:])
    for contents in damaged:
        path.write_bytes(contents)
        with pytest.raises(ValueError, match="can not be read as an NPZ file"):
            load("letter", tmp_path)


@pytest.mark.parametrize("name", ["", "../letter", "a/b", "letter\n"])
def test_names_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="data must be the name of an OpenML data set"):
        load(name)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the data folder must exist; there is none at .*nowhere"):
        load("letter", tmp_path / "nowhere")


def test_a_table_has_a_label_a_row() -> None:
    with pytest.raises(TypeError):
        Table(features=X, labels=Y[:2], classes=2)
