from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tercet.paper import complexity, style
from tercet.paper.base import Tables
from tercet.paper.complexity import REFERENCE, SUBJECTS, TABLE_1


def made_up(*, c3: tuple[float, float] = (1.0, 0.0), largest: int = 20, nanoseconds: float = 20.0) -> Tables:
    """Tables of the orders of the paper, but for C3's exponents."""
    powers = {"Linear": (0.0, 0.0), "Neural": (0.0, 1.0), "C3": c3, "": (0.0, 0.0)}
    rows = []
    for name, subject in SUBJECTS.items():
        for size in range(subject.sizes[0], min(subject.sizes[1], largest) + 1):
            for what, power in zip(("inference", "update"), powers[subject.family], strict=True):
                seconds = 1e-5 + nanoseconds * 1e-9 * (2.0**size) ** power
                rows.append({"policy": name, "n": 2**size, "what": what, "seconds": seconds})
    times = pd.DataFrame(rows)
    return {"times": times, "table": pd.DataFrame([complexity._row(name, times) for name in SUBJECTS])}


def verdicts(tables: Tables) -> dict[str, str]:
    return {claim.paper[:22]: claim.verdict for claim in complexity.claims(tables)}


@pytest.mark.parametrize("name", ["C3", "LinUCB", "kNN-UCB", "NeuralUCB", "KernelUCB"])
def test_policies_have_learned_as_many_outcomes_as_said(name: str) -> None:
    rng = np.random.default_rng(0)
    policy = complexity.after(name, 300, rng)
    policy.update(complexity.outcomes(1, rng), rng)
    if name == "C3":
        assert len(policy) == 301
    choice = policy.choose(rng.normal(size=4), rng.normal(size=(10, 4)), rng)
    assert choice.propensities.shape == (10,)


def test_a_bounded_memory_keeps_its_bound() -> None:
    rng = np.random.default_rng(0)
    policy = complexity.after(f"C3, last {complexity.KEPT:,}", 2**14, rng)
    policy.update(complexity.outcomes(1, rng), rng)
    assert len(policy) == complexity.KEPT


def test_two_policies_of_a_kind_share_nothing() -> None:
    rng = np.random.default_rng(0)
    one, other = complexity.after("C3", 100, rng), complexity.after("C3", 200, rng)
    assert (len(one), len(other)) == (100, 200)
    assert len(SUBJECTS["C3"].policy) == 0


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


def test_a_million_is_judged_only_where_it_was_measured() -> None:
    few, slow, fast = made_up(largest=16), made_up(nanoseconds=20), made_up(nanoseconds=1)
    judged = [complexity.claims(tables)[-2].verdict for tables in (few, slow, fast)]
    assert judged == ["not testable", "reproduced", "not reproduced"]


def test_every_policy_of_the_table_has_a_look() -> None:
    for name in SUBJECTS:
        assert name in complexity.VARIANTS or style.look(name)
    assert REFERENCE in SUBJECTS


def test_tables_are_drawn_as_read_from_files(tmp_path: Path) -> None:
    tables = made_up()
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    read = {name: pd.read_csv(tmp_path / name) for name in tables}
    (picture,) = complexity.draw(read)
    assert picture.name == "complexity"
    assert len(complexity.claims(read)) == 9
