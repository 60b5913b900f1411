"""Ctrl-C waits: a state that is being changed is changed whole or not at all."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Hold Ctrl-C back until the block is done, then let it through."""
    previous = signal.getsignal(signal.SIGINT)
    # Python delivers signals to the main thread only; a handler that is not Python's can not be put back.
    if threading.current_thread() is not threading.main_thread() or previous is None:
        yield
        return
    caught: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if caught:
            signal.raise_signal(signal.SIGINT)
