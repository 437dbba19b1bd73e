"""Regressions: deadlocks between threads that compile and call."""

import sys
import threading
import time

import numpy as np
import tandem as td
from tandem import config
from tandem.jit import native_entry


def test_kernels_come_and_go_while_other_threads_call():
    x = td.asarray(np.ones((4, 4), np.float32))
    compiled = td.jit(lambda a: td.exp(a) + 1)
    done, faults = threading.Event(), []

    def call():
        while not done.is_set():
            value, other = td.exp(x).numpy()[0, 0], compiled(x).numpy()[0, 0]
            if round(float(value), 3) not in (2.718, 42.0) or round(float(other), 3) not in (3.718, 43.0):
                faults.append((value, other))

    threads = [threading.Thread(target=call, daemon=True) for _ in range(3)]
    swaps = 0

    def swap():
        nonlocal swaps
        end = time.monotonic() + 2
        with td.Library("td", "IMPL") as library:
            while time.monotonic() < end:
                handle = library.impl("exp", lambda self: td.full(self.shape, 42.0, dtype=self.dtype), "CPU")
                td.exp(x)
                handle.remove()
                swaps += 1
        done.set()

    with config.override(hot_calls=1):
        for thread in (*threads, threading.Thread(target=swap, daemon=True)):
            thread.start()
        assert done.wait(60), "the threads wait for each other"
        for thread in threads:
            thread.join(30)
    assert swaps
    assert not faults


class _Function:
    """Stands for a jitted function."""


def test_kernels_change_while_threads_create_jitted_functions():
    """Every entry is unlinked, whatever functions other threads create meanwhile."""
    interval, is_done, kept = sys.getswitchinterval(), threading.Event(), []

    def create():
        while not is_done.is_set():
            kept.append(native_entry.NativeEntry(_Function(), print))
            del kept[:-3000]

    thread = threading.Thread(target=create)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(1000):
            native_entry._unlink_all(td.add.operator)
    finally:
        is_done.set()
        thread.join()
        sys.setswitchinterval(interval)
