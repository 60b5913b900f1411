"""Independent work in threads."""

from threading import Barrier

import pytest

from tercet import threads


def test_results_keep_the_order_of_their_items() -> None:
    assert threads.each(lambda number: number**2, range(50)) == [number**2 for number in range(50)]


def test_as_many_items_are_at_work_as_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 3)
    together = Barrier(3)
    # Each waits for two others: with fewer at work the barrier would break.
    assert sorted(threads.each(lambda _: together.wait(timeout=10), range(6))) == [0, 0, 1, 1, 2, 2]


def test_an_error_goes_on_up() -> None:
    with pytest.raises(ZeroDivisionError):
        threads.each(lambda number: 1 / number, [1, 0, 2])
