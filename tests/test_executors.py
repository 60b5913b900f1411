import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import cloudpickle
import numpy as np
import pytest

from tercet.executors import Crash, Executor, Processes, Ray, Serial

EXECUTORS = [Serial(), Processes(2), pytest.param(Ray(jobs=2), marks=pytest.mark.slow)]


def square(task: int) -> tuple[int, int]:
    return task, task**2


def spoil(task: list[int]) -> int:
    task.append(9)
    return len(task)


def sums(seed: int) -> bytes:
    """A product whose last bits depend on the order of summation, so on the number of threads."""
    matrix = np.random.default_rng(seed).normal(size=(700, 700))
    return (matrix @ matrix.T).tobytes()


def fail(_task: int) -> None:
    raise ValueError("on purpose")


def crash_at_three(task: int) -> int:
    if task == 3:
        os._exit(9)
    return task


def identify(_task: int) -> int:
    time.sleep(0.2)
    return os.getpid()


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One local Ray for all tests of the module: a start takes seconds."""
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'tercet[ray]'")
    Ray(jobs=2).start()
    yield
    ray.shutdown()


@pytest.fixture(params=EXECUTORS, ids=lambda executor: type(executor).__name__)
def executor(request: pytest.FixtureRequest) -> Executor:
    if isinstance(request.param, Ray):
        request.getfixturevalue("cluster")
    return request.param


class TestExecutors:
    def test_every_task_has_its_result(self, executor: Executor) -> None:
        assert dict(executor.map(square, range(7))) == {n: n**2 for n in range(7)}
        assert list(executor.map(square, [])) == []

    def test_a_task_cannot_change_what_others_get(self, executor: Executor) -> None:
        shared = [1, 2]
        assert list(executor.map(spoil, [shared, shared])) == [3, 3]
        assert shared == [1, 2]

    def test_an_error_reaches_the_caller(self, executor: Executor) -> None:
        with pytest.raises(ValueError, match="on purpose"):
            list(executor.map(fail, [1]))

    def test_functions_of_a_users_own_file_travel(self, executor: Executor) -> None:
        module = ModuleType("somebodys_file")
        exec("def double(task):\n    return 2 * task", module.__dict__)
        sys.modules[module.__name__] = module
        cloudpickle.register_pickle_by_value(module)
        try:
            assert sorted(executor.map(module.double, [1, 2])) == [2, 4]
        finally:
            cloudpickle.unregister_pickle_by_value(module)
            del sys.modules[module.__name__]

    def test_numbers_are_equal_to_the_last_bit(self, executor: Executor) -> None:
        assert list(executor.map(sums, [0])) == list(Serial().map(sums, [0]))


def test_processes_work_side_by_side_and_leave_with_the_caller() -> None:
    pids = set(Processes(2).map(identify, range(4)))
    assert len(pids) == 2
    results = Processes(2).map(identify, range(50))
    next(results)
    results.close()  # what Ctrl-C does to the loop that reads them
    assert not any(_alive(pid) for pid in pids)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_task_whose_ray_worker_dies_is_named_and_stops_no_other() -> None:
    results = list(Ray(jobs=2).map(crash_at_three, range(5)))
    (crash,) = [result for result in results if isinstance(result, Crash)]
    assert crash.task == 3
    assert len(results) == 5


@pytest.mark.slow
def test_a_local_ray_ends_with_its_results() -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'tercet[ray]'")
    ray.shutdown()
    assert dict(Ray(jobs=2).map(square, [3])) == {3: 9}
    assert not ray.is_initialized()


def test_a_task_whose_process_dies_is_named_and_stops_no_other() -> None:
    results = list(Processes(2).map(crash_at_three, range(12)))
    (crash,) = [result for result in results if isinstance(result, Crash)]
    assert crash.task == 3
    assert sorted(result for result in results if result is not crash) == [0, 1, 2, *range(4, 12)]


ORPHANS = """
import os, sys, time
from tercet.executors import Processes
from tests.test_executors import identify
pids = set()
for pid in Processes(2).map(identify, range(100)):
    pids.add(pid)
    if len(pids) == 2:
        print(*pids, flush=True)
        time.sleep(60)
"""


def test_processes_do_not_outlive_a_parent_that_was_killed() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(200):
        if not any(_alive(pid) for pid in pids):
            return
        time.sleep(0.05)
    raise AssertionError(f"{pids} live on")


def test_no_processes_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Processes(0)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
