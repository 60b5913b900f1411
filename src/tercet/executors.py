"""Where independent jobs run: here, on processes, or on Ray. Whichever it is, the results are equal."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from typing import Any, Protocol, final, runtime_checkable

# Threads that numerical libraries may take in a job: sums in another order have other last bits, and
# processes that all want all cores wait for each other.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@runtime_checkable
class Executor(Protocol):
    """Map a function over independent tasks; results come as they are ready, in any order."""

    @property
    def workers(self) -> int:
        """How many tasks run at a time, as far as it is known."""

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield the function's result for each task."""


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
        others = set(active_children())
        jobs = min(self.workers, max(len(tasks), 1))
        # Spawned, not forked: a fork may copy another thread's lock while it is held.
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_leave_interrupts)
        try:
            with _one_thread_each():
                futures = [pool.submit(_run, payload) for payload in _payloads(function, tasks)]
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            for worker in set(active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


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
            remote = ray.remote(_run)
            waiting = [remote.remote(payload) for payload in _payloads(function, tasks)]
            while waiting:
                ready, waiting = ray.wait(waiting)
                yield ray.get(ready[0])
        finally:
            if not running:
                ray.shutdown()

    def start(self) -> None:
        """Connect to the cluster, or start a local one; `map` does so by itself where none is running."""
        variables = THREADS | {key: value for key, value in os.environ.items() if key.startswith("TERCET_")}
        options: dict[str, Any] = {"runtime_env": {"env_vars": variables}, "log_to_driver": False}
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


def _leave_interrupts() -> None:
    # Ctrl-C is for the parent alone: a training that it reached would stop early, and its policy play on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
