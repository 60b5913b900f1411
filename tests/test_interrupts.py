import os
import signal
import threading

import pytest

from tercet import interrupts


def test_ctrl_c_waits_until_the_block_is_done() -> None:
    done = []

    def work() -> None:
        with interrupts.held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_blocks_may_nest_and_run_in_any_thread() -> None:
    done = []

    def work() -> None:
        with interrupts.held(), interrupts.held():
            done.append(True)

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True, True]
