"""Options of training: the paper's values, and refusal of impossible ones."""

import json
from typing import Any

import pytest

from tercet.embedding.options import LeaveOneOut, Training


def test_the_paper_has_its_values() -> None:
    paper = Training.paper()
    assert (paper.epochs, paper.usage, paper.reference, paper.batch) == (50, 0.1, 0.2, 16)
    assert (paper.rate, paper.decay, paper.calibration, paper.bins) == (1e-3, 0.99, 2.0, 5)
    assert (paper.prior, paper.partitions, paper.importance, paper.patience, paper.limit) == (
        0.0,
        1,
        True,
        None,
        None,
    )
    assert Training.paper(epochs=4).epochs == 4


def test_options_survive_json() -> None:
    for options in (Training(), Training.paper(partitions=3)):
        assert Training(**json.loads(json.dumps(vars(options)))) == options


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1; got 0"),
        ({"batch": -1}, "batch must be"),
        ({"bins": 0}, "bins must be"),
        ({"limit": 1}, "limit must be a whole number of at least 2; got 1"),
        ({"partitions": 0}, "partitions must be"),
        ({"patience": 0}, "patience must be"),
        ({"usage": 0.0}, "usage must be"),
        ({"usage": 1.5}, r"usage must lie in \(0, 1\]; got 1.5"),
        ({"reference": 1.0}, r"reference must lie in \(0, 1\)"),
        ({"rate": float("nan")}, "rate must be"),
        ({"decay": 2.0}, "decay must lie"),
        ({"validation": 1.0}, r"validation must lie in \[0, 1\)"),
        ({"validation": -0.1}, "validation must lie"),
        ({"calibration": -1.0}, "calibration must be a finite number, 0 or more"),
        ({"prior": float("inf")}, "prior must be a finite number, 0 or more"),
    ],
)
def test_impossible_options_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**changes)


def test_leave_one_out_options_survive_json() -> None:
    for options in (LeaveOneOut(), LeaveOneOut(epochs=3, partitions=4, importance=False)):
        assert LeaveOneOut(**json.loads(json.dumps(vars(options)))) == options
    assert LeaveOneOut(partitions=None) == LeaveOneOut() != LeaveOneOut(partitions=1)


@pytest.mark.parametrize(
    "changes",
    [{"epochs": 1}, {"width": 1}, {"batch": 2}, {"decay": 0.0}, {"partitions": 1}],
)
def test_leave_one_out_takes_the_smallest_that_make_sense(changes: dict[str, Any]) -> None:
    assert vars(LeaveOneOut(**changes)) == vars(LeaveOneOut()) | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number, 1 or more; got 0"),
        ({"epochs": True}, "epochs must be a whole number"),
        ({"width": 0}, "width must be a whole number, 1 or more; got 0"),
        ({"batch": 1}, "batch must be a whole number, 2 or more; got 1"),
        ({"partitions": 0}, "partitions must be a whole number, 1 or more; got 0"),
        ({"rate": 0.0}, "rate must be a finite number above 0"),
        ({"rate": float("nan")}, "rate must be finite"),
        ({"prior": 0.0}, "prior must be a finite number above 0"),
        ({"prior": float("inf")}, "prior must be finite"),
        ({"decay": -1e-9}, "decay must be a finite number, 0 or more"),
        ({"decay": float("inf")}, "decay must be a finite number, 0 or more; got inf"),
        ({"decay": float("nan")}, "decay must be a finite number"),
    ],
)
def test_impossible_leave_one_out_options_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeaveOneOut(**changes)


@pytest.mark.parametrize("ample", [False, True])
def test_what_is_given_is_kept_and_what_is_not_given_is_settled(ample: bool) -> None:
    given = LeaveOneOut(epochs=3, width=7)
    assert given.settled(ample=ample) == given
    size = {"epochs": 80, "width": 384} if ample else {"epochs": 36, "width": 128}
    assert LeaveOneOut(rate=0.5).settled(ample=ample) == LeaveOneOut(rate=0.5, **size)
