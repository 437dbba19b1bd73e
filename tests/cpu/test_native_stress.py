"""Threads register and remove kernels while others call operators, eagerly and jitted."""

import gc
import sys
import threading
import time

import numpy as np
import pytest
import tandem as td
from tandem import config

EAGER, JITTED, WRITERS = 6, 4, 6


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class Stress:
    """One operator per writer, whose kernels give their own number; a caller must never see one that is dead.

    Each writer registers kernel after kernel on top of one that gives -1, and notes the number of each that it has
    removed. A caller looks at that number first: the kernel that answers must be a later one, or the lowest.
    """

    def __init__(self, seconds):
        self.until = time.monotonic() + seconds
        self.dead, self.faults, self.calls = [-1] * WRITERS, [], 0
        self.library = td.Library("stress", "FRAGMENT")
        self.x = td.asarray(np.zeros(4, np.float32))
        for writer in range(WRITERS):
            self.library.define(f"f{writer}(Tensor a) -> Tensor")
            self.library.impl(f"f{writer}", lambda a: a - 1, "CPU")
            self.library.impl(f"f{writer}", lambda a: a, "Meta")
        self.eager = [getattr(td.ops.stress, f"f{writer}") for writer in range(WRITERS)]
        self.jitted = [td.jit(self.caller(f)) for f in self.eager]

    @staticmethod
    def caller(f):
        return lambda a: f(a) * 2 + 1

    def run(self, work, *args):
        try:
            while time.monotonic() < self.until and not self.faults:
                work(*args)
        except Exception as fault:
            self.faults.append(fault)

    def write(self, writer):
        number = self.dead[writer] + 1
        value = np.full(4, number, np.float32)
        handle = self.library.impl(f"f{writer}", lambda a: td.asarray(value), "CPU", allow_override=True)
        if number % 3 == 0:
            time.sleep(0.001)
        handle.remove()
        self.dead[writer] = number

    def check(self, writer, dead, found):
        self.calls += 1
        if not (found == found[0]).all() or not (found[0] == -1 or found[0] > dead):
            self.faults.append((writer, dead, found))

    def call(self, generator):
        writer = int(generator.integers(WRITERS))
        dead = self.dead[writer]
        self.check(writer, dead, self.eager[writer](self.x).numpy())

    def call_jitted(self, generator):
        writer = int(generator.integers(WRITERS))
        dead = self.dead[writer]
        self.check(writer, dead, (self.jitted[writer](self.x).numpy() - 1) / 2)

    def go(self):
        threads = [threading.Thread(target=self.run, args=(self.write, w)) for w in range(WRITERS)]
        for number in range(EAGER + JITTED):
            work = self.call if number < EAGER else self.call_jitted
            generator = np.random.default_rng(number)
            threads.append(threading.Thread(target=self.run, args=(work, generator)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def stressed(seconds):
    stress = Stress(seconds)
    try:
        stress.go()
        assert not stress.faults
        assert min(stress.dead) > 3
        assert stress.calls > 100
        for eager, jitted in zip(stress.eager, stress.jitted, strict=True):
            assert eager(stress.x).tolist() == [-1.0] * 4
            assert jitted(stress.x).tolist() == [-1.0] * 4
    finally:
        stress.library.close()


@pytest.fixture(autouse=True)
def switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    with config.override(hot_calls=2):
        yield
    sys.setswitchinterval(before)


def test_registering_and_calling_in_sixteen_threads():
    stressed(3)


@pytest.mark.full
def test_registering_and_calling_for_a_minute_keeps_memory():
    stressed(15)
    gc.collect()
    before = resident()
    stressed(60)
    gc.collect()
    assert resident() - before < 2**21


def test_tracing_again_after_each_change_keeps_memory():
    x = td.asarray(np.zeros(4, np.float32))
    with td.Library("stress", "FRAGMENT") as library:
        library.define("again(Tensor a) -> Tensor")
        library.impl("again", lambda a: a - 1, "CPU")
        library.impl("again", lambda a: a, "Meta")
        jitted = td.jit(lambda a: td.ops.stress.again(a) + 1)

        def cycles(count):
            for number in range(count):
                value = np.full(4, number, np.float32)
                with library.impl("again", lambda a, v=value: td.asarray(v), "CPU", allow_override=True):
                    for _ in range(3):
                        assert jitted(x).tolist() == [number + 1.0] * 4
                for _ in range(3):
                    assert jitted(x).tolist() == [0.0] * 4
            gc.collect()

        cycles(100)
        before = resident()
        cycles(200)
        assert resident() - before < 2**20


def test_hot_operator_is_replaced_while_threads_call():
    """The entry of an operator with machine code goes out and in; nobody runs what is gone."""
    x, stop, faults = td.asarray(np.full(4, 0.5, np.float32)), [], []
    jitted, want = td.jit(lambda a: td.tan(a) + 1), np.tan(np.full(4, 0.5))
    library, dead = td.Library("td", "IMPL"), [0]

    def call(function, shift):
        while not stop:
            before = dead[0]
            found = function(x).numpy() - shift
            if not (np.allclose(found, want, rtol=1e-5) or found[0] > before):
                faults.append((before, found))

    def write():
        for number in range(1, 120):
            value = np.full(4, 10 + number, np.float32)
            library.impl("tan", lambda a, v=value: td.asarray(v), "CPU", allow_override=True).remove()
            dead[0] = 10 + number
        stop.append(1)

    threads = [threading.Thread(target=call, args=pair) for pair in [(td.tan, 0), (jitted, 1)] * 4]
    threads.append(threading.Thread(target=write))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    np.testing.assert_allclose(td.tan(x).numpy(), want, rtol=1e-5)
