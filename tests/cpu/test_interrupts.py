"""Compiled loops poll for signals."""

import contextlib
import gc
import os
import signal
import threading
import time

import numpy as np
import pytest
import tandem as td
from tandem import config

FOREVER = np.int64(2**62)


def counted(steps, x):
    return td.while_loop(lambda s: s[0] < steps, lambda s: (s[0] + 1, s[1] * 0.999), (np.int64(0), x))[1]


def nested(steps, x):
    def outer(s):
        return s[0] + 1, td.fori_loop(0, 10, lambda i, c: td.sin(c), s[1])

    return td.while_loop(lambda s: s[0] < steps, outer, (np.int64(0), x))[1]


def endless_inside(steps, x):
    return td.scan(lambda c, v: (counted(steps, c) + v, None), x, td.asarray(np.ones(3, np.float32)))[0]


def in_branch(steps, x):
    return td.cond(steps > 0, counted, lambda steps, x: x, steps, x)


def with_callbacks(steps, x):
    def body(s):
        return s[0] + 1, td.pure_callback(lambda c: c, td.ShapeDtypeStruct((), td.float32), s[1])

    return td.while_loop(lambda s: s[0] < steps, body, (np.int64(0), x))[1]


LOOPS = [counted, nested, endless_inside, in_branch, with_callbacks]


@contextlib.contextmanager
def no_collection():
    """Without collections of garbage: what a signal raises in finalizers and callbacks of the collector is lost."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def interrupted(call, *args, after=0.05):
    """Send SIGINT to this process during a call; the seconds until KeyboardInterrupt was raised.

    A second SIGINT follows after 10 seconds, so that a lost one fails the test, which would never end otherwise.
    """
    sent, is_over = [], threading.Event()

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
        if not is_over.wait(10):
            os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    with pytest.raises(KeyboardInterrupt), no_collection():
        timer.start()
        call(*args)
        time.sleep(10)  # the signal comes after the call
    is_over.set()
    timer.join()
    return time.perf_counter() - sent[0]


@pytest.fixture
def x():
    return td.asarray(np.float32(0.5))


@pytest.mark.parametrize("loop", LOOPS)
def test_interrupt_ends_endless_loop(loop, x):
    compiled = td.jit(loop)
    expected = compiled(np.int64(10), x).item()
    for _ in range(3):
        assert interrupted(compiled, FOREVER, x) < 2
    assert compiled(np.int64(10), x).item() == expected


def test_interrupt_ends_endless_gradient(x):
    x.requires_grad_()
    compiled = td.jit(
        lambda steps, x: td.fori_loop(0, 3, lambda i, c: c * counted(steps, td.stop_gradient(c)), x)
    )
    compiled(np.int64(10), x)
    assert interrupted(compiled, FOREVER, x) < 2
    compiled(np.int64(10), x).backward()


@pytest.mark.parametrize("times", [30, pytest.param(300, marks=pytest.mark.full)])
def test_interrupts_leak_nothing(x, times):
    compiled, given = td.jit(counted), x.numpy()
    compiled(np.int64(10), x)
    resident = []
    for k in range(times):
        interrupted(compiled, FOREVER, x, after=0.01)
        if k in (10, times - 1):
            gc.collect()
            with open("/proc/self/statm") as file:
                resident.append(int(file.read().split()[1]))
    assert (resident[1] - resident[0]) * os.sysconf("SC_PAGE_SIZE") < 4 << 20
    assert given == np.float32(0.5)
    assert compiled.cache_info().specializations == 1


def test_interrupted_call_writes_no_argument():
    def write(steps, x):
        x[0] = 7.0
        x[1] = counted(steps, x[1])

    compiled, x = td.jit(write), td.asarray(np.ones(3, np.float32))
    compiled(np.int64(1), x)
    before = x.tolist()
    interrupted(compiled, FOREVER, x)
    assert x.tolist() == before


@pytest.mark.parametrize("loop", LOOPS)
def test_alarms_are_handled_in_time(loop, x):
    compiled, times = td.jit(loop), []
    compiled(np.int64(10), x)

    def handle(number, frame):
        times.append(time.perf_counter())
        if len(times) == 5:
            raise TimeoutError("enough")

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(TimeoutError, match="enough"):
            compiled(FOREVER, x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert times[-1] - times[0] < 2


def test_handlers_find_denormal_numbers(x):
    flushed = []
    compiled = td.jit(counted)

    def handle(number, frame):
        flushed.append(np.float32(1e-38) * np.float32(0.1) == 0)
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(TimeoutError):
            compiled(FOREVER, x)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert flushed == [False]


def test_handler_may_call_the_function_again(x):
    compiled, seen = td.jit(counted), []
    expected = compiled(np.int64(10), x).item()

    def handle(number, frame):
        seen.append(compiled(np.int64(10), x).item())
        if len(seen) == 3:
            raise TimeoutError

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with pytest.raises(TimeoutError):
            compiled(FOREVER, x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [expected] * 3


def test_threads_share_one_specialization():
    compiled = td.jit(lambda n, x: td.fori_loop(0, n, lambda i, c: td.tanh(c) + x, x).sum())
    steps = np.int64(20_000 if config.flags.native else 20)
    inputs = [td.asarray(np.full(50, k, np.float32)) for k in range(6)]
    expected = [compiled(steps, x).item() for x in inputs]
    results = [[] for _ in inputs]

    def call(k):
        for _ in range(20):
            results[k].append(compiled(steps, inputs[k]).item())

    threads = [threading.Thread(target=call, args=(k,)) for k in range(len(inputs))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        compiled.cache_clear()  # the code that runs stays
        time.sleep(0.01)
    assert results == [[value] * 20 for value in expected]
