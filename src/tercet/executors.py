"""Where independent jobs run: here, on processes, or on Ray. Whichever it is, the results are equal."""

import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from threading import Thread, current_thread, main_thread
from typing import Any, Protocol, final, runtime_checkable

# Threads that numerical libraries may take in a job: sums in another order have other last bits, and
# processes that all want all cores wait for each other.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@final
@dataclass(frozen=True)
class Crash:
    """In place of a task's result: its worker ended without a word (out of memory, a segmentation fault)."""

    task: Any
    reason: str


@runtime_checkable
class Executor(Protocol):
    """Map a function over independent tasks; results come as they are ready, in any order."""

    @property
    def workers(self) -> int:
        """How many tasks run at a time, as far as it is known."""

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield the function's result for each task, or a `Crash`."""


@final
@dataclass(frozen=True)
class Serial:
    """One after another, in this process."""

    @property
    def workers(self) -> int:
        """One."""
        return 1

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield results in the order of the tasks."""
        # Pickled as for a process: a job must not change what the next one gets.
        yield from map(_run, _payloads(function, tasks))


@final
@dataclass(frozen=True)
class Processes:
    """On this many processes; None: one a core."""

    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs must be at least 1 process; got {self.jobs}")

    @property
    def workers(self) -> int:
        """How many processes there are."""
        return self.jobs or os.cpu_count() or 1

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield results as they are ready; when the caller stops, so do the processes."""
        left = yield from _pooled(function, tasks, self.workers)
        while left:
            # A pool does not tell whose worker died. It takes tasks in their order: the first ones left were
            # under way, and are tried alone.
            suspects, left = left[: self.workers + 1], left[self.workers + 1 :]
            for task in suspects:
                if (yield from _pooled(function, [task], 1)):
                    yield Crash(task, "its process ended abruptly (out of memory, or a library crashed)")
            if left:
                left = yield from _pooled(function, left, self.workers)


@final
@dataclass(frozen=True)
class Ray:
    """On the Ray cluster at `address` ("auto" finds a running one), else on a local one of `jobs` CPUs."""

    address: str | None = None
    jobs: int | None = None

    @property
    def workers(self) -> int:
        """How many CPUs are asked for; a cluster may have more."""
        return self.jobs or os.cpu_count() or 1

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield results as they are ready; what is started here ends with the last of them."""
        ray = _ray()
        running = ray.is_initialized()
        if not running:
            self.start()
        try:
            remote = ray.remote(max_retries=0)(_run)
            payloads = _payloads(function, tasks)
            waiting = {remote.remote(payload): task for payload, task in zip(payloads, tasks, strict=True)}
            while waiting:
                (ready, *_), _ = ray.wait(list(waiting))
                task = waiting.pop(ready)
                try:
                    yield ray.get(ready)
                except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
                    yield Crash(task, f"its Ray worker ended abruptly ({type(error).__name__})")
        finally:
            if not running:
                ray.shutdown()

    def start(self) -> None:
        """Connect to the cluster, or start a local one; `map` does so by itself where none is running."""
        variables = THREADS | {key: value for key, value in os.environ.items() if key.startswith("TERCET_")}
        options: dict[str, Any] = {
            "runtime_env": {"env_vars": variables},
            "log_to_driver": False,
            "logging_level": "error",
        }
        if self.address is None:
            options |= {"address": "local", "num_cpus": self.workers, "include_dashboard": False}
        else:
            options["address"] = self.address  # a cluster knows its own resources
        _ray().init(**options)


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "running on Ray needs ray: pip install 'tercet[ray]'", name=error.name
        ) from error
    return ray


def _payloads(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[bytes]:
    """Pickle jobs by value where they were written in a user's own file, which workers can not import."""
    import cloudpickle

    return (cloudpickle.dumps((function, task)) for task in tasks)


def _run(payload: bytes) -> Any:
    import cloudpickle
    from threadpoolctl import threadpool_limits

    function, task = cloudpickle.loads(payload)
    with threadpool_limits(1):
        return function(task)


def _pooled(
    function: Callable[[Any], Any], tasks: Sequence[Any], workers: int
) -> Generator[Any, None, list[Any]]:
    """Yield results from a pool of processes; return the tasks without one, where a worker died."""
    others = set(active_children())
    # Spawned, not forked: a fork may copy another thread's lock while it is held.
    pool = ProcessPoolExecutor(
        min(workers, max(len(tasks), 1)), mp_context=get_context("spawn"), initializer=_settle
    )
    left = dict(enumerate(tasks))
    try:
        with _one_thread_each(), _without_interrupts():
            payloads = enumerate(_payloads(function, tasks))
            futures = {pool.submit(_run, payload): number for number, payload in payloads}
        for future in as_completed(futures):
            result = future.result()
            del left[futures[future]]
            yield result
    except BrokenProcessPool:
        pass
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return list(left.values())


def _settle() -> None:
    """Leave Ctrl-C to the parent, and end with it however it ends.

    A training that Ctrl-C reached would stop early, and its policy play on.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes that start here ignore Ctrl-C from the first moment on."""
    if current_thread() is not main_thread():  # only the main thread may say what signals do
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that start here use one thread each."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(THREADS)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
