from pathlib import Path

import pandas as pd
import pytest

from tercet.paper import complexity, style
from tercet.paper.base import Tables
from tercet.paper.complexity import KERNEL, REFERENCE, TABLE_1
from tercet.paper.complexity_pictures import VARIANTS
from tercet.paper.complexity_subjects import SUBJECTS, WHOLE


def made_up(
    *,
    c3: tuple[float, float] = (1.0, 0.0),
    whole: float = 1.0,
    kernel: float = 3.0,
    largest: int = 20,
    nanoseconds: float = 20.0,
) -> Tables:
    """Tables of the orders of the paper, but for these exponents; neural updates with a cap are constant."""
    powers = {"Linear": (0.0, 0.0), "Neural": (0.0, 0.0), "C3": c3, "": (0.0, 0.0)}
    own = {WHOLE: (0.0, whole), KERNEL: (kernel, kernel)}
    rows = []
    for name, subject in SUBJECTS.items():
        for size in range(subject.sizes[0], min(subject.sizes[1], largest) + 1):
            for what, power in zip(
                ("inference", "update"), own.get(name, powers[subject.family]), strict=True
            ):
                seconds = 1e-5 + nanoseconds * 1e-9 * (2.0**size) ** power
                rows.append({"policy": name, "n": 2**size, "what": what, "seconds": seconds})
    times = pd.DataFrame(rows)
    return {"times": times, "table": pd.DataFrame([complexity._row(name, times) for name in SUBJECTS])}


def verdicts(tables: Tables) -> dict[str, str]:
    return {claim.paper[:22]: claim.verdict for claim in complexity.claims(tables)}


def test_both_works_are_timed() -> None:
    rows = complexity.timed("LinUCB", 20)
    assert [row["what"] for row in rows] == ["inference", "update"]
    assert all(row["seconds"] > 0 for row in rows)


def test_claims_hold_for_the_orders_of_the_paper() -> None:
    found = verdicts(made_up())
    orders = [f"{family}: {what} time" for family in TABLE_1 for what in ("inference", "update")]
    assert {found[order[:22]] for order in found if order.startswith(tuple(orders))} == {"reproduced"}


def test_a_linear_update_contradicts_the_table() -> None:
    assert verdicts(made_up(c3=(1.0, 1.0)))["C3: update time O(1) ("] == "not reproduced"


@pytest.mark.parametrize(
    ("whole", "verdict"), [(1.0, "reproduced"), (1.4, "undecided"), (2.0, "not reproduced")]
)
def test_a_neural_update_is_judged_with_a_step_an_outcome(whole: float, verdict: str) -> None:
    claim = next(one for one in complexity.claims(made_up(whole=whole)) if "Neural: update" in one.paper)
    assert claim.verdict == verdict
    assert "NeuralTS n^0.00" in claim.note  # with the cap


@pytest.mark.parametrize(
    ("kernel", "verdict"), [(3.0, "reproduced"), (2.6, "undecided"), (2.0, "not reproduced")]
)
def test_a_kernel_method_is_cubic_if_its_step_is(kernel: float, verdict: str) -> None:
    assert verdicts(made_up(kernel=kernel))["KernelUCB and GP-UCB have"[:22]] == verdict


def test_a_million_is_judged_only_where_it_was_measured() -> None:
    few, slow, fast = made_up(largest=16), made_up(nanoseconds=20), made_up(nanoseconds=1)
    judged = [complexity.claims(tables)[-1].verdict for tables in (few, slow, fast)]
    assert judged == ["not testable", "reproduced", "not reproduced"]


def test_every_policy_of_the_table_has_a_look() -> None:
    for name in SUBJECTS:
        assert name in VARIANTS or style.look(name)
    assert REFERENCE in SUBJECTS


def test_tables_are_drawn_as_read_from_files(tmp_path: Path) -> None:
    tables = made_up()
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    read = {name: pd.read_csv(tmp_path / name) for name in tables}
    (picture,) = complexity.draw(read)
    assert picture.name == "complexity"
    assert "Linear no (no), with a discount (no), yes (partially)" in picture.caption
    assert len(complexity.claims(read)) == 9
