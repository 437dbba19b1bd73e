"""Registration and removal in some threads while others call: consistent state, no removed kernel runs."""

import itertools
import sys
import threading
import time

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth
from tandem import config
from tandem.errors import NoKernelError, TandemError

SECONDS = 0.5
clock = itertools.count(1)
here = threading.local()


class Kernel:
    """A kernel that knows when it was removed, and notes calls that began later."""

    def __init__(self, wrong):
        self.removed, self.wrong = None, wrong

    def __call__(self, x, *rest):
        if self.removed is not None and self.removed < here.began:
            self.wrong.append((self.removed, here.began))
        return td.full(x.shape, 42.0, dtype=x.dtype)


def churn(register, calls, check, registering=8, calling=8):
    """Register and remove in some threads, call in others.

    Args:
        register: registers a kernel and returns its handle.
        calls: what is called; each with no argument.
        check: whether a result is right.
    """
    wrong, faults, rounds, stop = [], [], [0], threading.Event()

    def change():
        while not stop.is_set():
            kernel = Kernel(wrong)
            handle = register(kernel)
            time.sleep(0)
            handle.remove()
            kernel.removed = next(clock)
            rounds[0] += 1

    def call(number):
        function = calls[number % len(calls)]
        while not stop.is_set():
            here.began = next(clock)
            try:
                value = function()
            except NoKernelError:
                continue
            if not check(value):
                faults.append(value)

    def guarded(work, *args):
        try:
            work(*args)
        except BaseException as fault:
            faults.append(fault)
            stop.set()

    threads = [threading.Thread(target=guarded, args=(change,), daemon=True) for _ in range(registering)]
    threads += [threading.Thread(target=guarded, args=(call, n), daemon=True) for n in range(calling)]
    for thread in threads:
        thread.start()
    stop.wait(SECONDS)
    enough = time.monotonic() + 30  # on a busy machine it takes longer until much has been registered
    while rounds[0] <= 10 and not stop.is_set() and time.monotonic() < enough:
        time.sleep(0.1)
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong, wrong[:3]
    assert not faults, faults[:3]
    assert rounds[0] > 10


@pytest.fixture(autouse=True)
def often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    with config.override(hot_calls=2):
        yield
    sys.setswitchinterval(before)


X = td.asarray(np.zeros(3, np.float32))
W = td.asarray(np.zeros(3, np.float32), requires_grad=True)


def is_exp_or_42(value):
    return value.tolist() in ([1.0] * 3, [42.0] * 3)


def test_kernels_of_a_builtin_operator():
    compiled = td.jit(lambda x: td.exp(x))
    within = td.jit(lambda x: td.exp(x) * 1.0)
    calls = [
        lambda: td.exp(X),
        lambda: td.ops.td.exp.default(X),
        lambda: td.ops.td.exp(X),
        lambda: compiled(X),
        lambda: within(X),
        lambda: td.exp(W),
        lambda: td.grad(lambda x: td.exp(x).sum())(X),
        lambda: td.vmap(td.exp)(X),
    ]
    with td.Library("td", "IMPL") as library:
        churn(lambda kernel: library.impl("exp", kernel, "CPU", allow_override=True), calls, is_exp_or_42)
    assert td.exp(X).tolist() == compiled(X).tolist() == [1.0] * 3
    for call in calls:
        here.began = 0
        assert call().tolist() == [1.0] * 3


@pytest.mark.parametrize("key", ["CPU", "CompositeImplicit", "CompositeExplicit", "Dense", "Mode"])
def test_kernels_of_an_operator_from_outside(key):
    with td.Library("churn", "DEF") as library:
        library.define("f(Tensor x) -> Any")
        library.impl("f", lambda x: x + 1.0, "CompositeImplicit")
        library.impl("f", lambda x: td.empty_like(x), "Meta")
        f = td.ops.churn.f.default
        compiled = td.jit(lambda x: f(x))

        def with_mode():
            with td.include_keys("Mode"):
                return f(X)

        churn(
            lambda kernel: library.impl("f", kernel, key, allow_override=True),
            [lambda: f(X), lambda: td.ops.churn.f(X), lambda: compiled(X), with_mode],
            is_exp_or_42,
        )


def test_kernels_for_a_dtype():
    with td.Library("churn", "DEF") as library:
        library.define("f(Tensor x) -> Any")
        library.impl("f", lambda x: x + 1.0, "CPU")
        library.impl("f", lambda x: td.empty_like(x), "Meta")
        f = td.ops.churn.f.default
        compiled = td.jit(lambda x: f(x))
        churn(
            lambda kernel: library.impl("f", kernel, "CPU", dtypes=[td.float32], allow_override=True),
            [lambda: f(X), lambda: compiled(X)],
            is_exp_or_42,
        )


def test_fallbacks():
    def boxed(kernel):
        def fallback(op, keyset, args, kwargs):
            with td.exclude_keys("Profiler"):
                return kernel(*args)

        return fallback

    with td.Library("churn", "DEF") as library:
        library.define("f(Tensor x) -> Any")
        library.impl("f", lambda x: x + 1.0, "CPU")
        f = td.ops.churn.f.default

        def observed():
            with td.include_keys("Profiler"):
                return f(X)

        churn(
            lambda kernel: library.fallback(boxed(kernel), "Profiler", allow_override=True),
            [observed, lambda: f(X)],
            is_exp_or_42,
            registering=2,
            calling=2,  # they take turns with those that register, which compute the tables of all operators
        )


def test_definitions():
    with td.Library("churn", "FRAGMENT") as library:
        names = itertools.count()

        class Both:
            """An operator and its kernel."""

            def __init__(self, kernel):
                self.name = f"f{next(names)}"
                self.handles = [library.define(f"{self.name}(Tensor x) -> Any")]
                self.handles.append(library.impl(self.name, kernel, "CPU"))
                self.operator = getattr(td.ops.churn, self.name).default
                here.began = next(clock)
                assert self.operator(X).tolist() == [42.0] * 3

            def remove(self):
                for handle in self.handles:
                    handle.remove()
                with pytest.raises(TandemError):
                    self.operator(X)

        churn(Both, [lambda: td.exp(X)], is_exp_or_42)
        assert not td.registrations(op="churn::f0")


def test_nobody_who_calls_waits_for_who_registers():
    """A call of an operator that has been called before needs no lock."""
    from tandem.registry.operator import lock

    with td.Library("churn", "DEF") as library:
        library.define("f(Tensor x) -> Any")
        library.impl("f", lambda x: x, "CPU")
        f = td.ops.churn.f.default
        f(X)
        library.impl("f", lambda x: 42, "CPU", allow_override=True)
        done = threading.Event()

        def call():
            f(X)
            td.exp(X)
            done.set()

        for _ in range(50):  # until the native entry is in place
            td.exp(X)
        with lock:
            thread = threading.Thread(target=call)
            thread.start()
            assert done.wait(20)
        thread.join()


def test_registering_over_and_over_does_not_grow():
    compiled = td.jit(lambda x: td.exp(x))
    with td.Library("td", "IMPL") as library:

        def cycle(times):
            for _ in range(times):
                handle = library.impl("exp", lambda x: x, "CPU")
                td.exp(X)
                compiled(X)
                handle.remove()
                td.exp(X)

        cycle(5)
        growth = smallest_block_growth(lambda: cycle(10))
        assert growth < 10, "one block that is kept in each cycle is too much"


# -- the state of threads ----------------------------------------------------------------------------------------------
def in_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def keys():
    from tandem.registry.dispatch.state import state

    return state.include, state.exclude


def test_a_snapshot_is_carried_to_other_threads():
    with td.no_grad(), td.include_keys("Profiler"):
        snapshot, wanted = td.dispatch_state(), keys()

    def work():
        with snapshot:
            with td.enable_grad(), snapshot:
                assert keys() == wanted
            with pytest.raises(ZeroDivisionError), snapshot:
                raise ZeroDivisionError
            inside = keys(), (W * 2.0).requires_grad
        return inside, keys(), (W * 2.0).requires_grad

    for _ in range(3):
        assert in_thread(work) == ((wanted, False), (0, 0), True)
    threads = [threading.Thread(target=work) for _ in range(8)]
    with snapshot:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert keys() == wanted
    assert keys() == (0, 0) and "Profiler" in repr(snapshot)


def test_a_snapshot_carries_modes_and_autocast():
    seen = []

    class Note(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append(op.schema.name)
            return op(*args, **kwargs)

    with Note(), td.autocast("cpu", td.bfloat16):
        snapshot = td.dispatch_state()
    matrix = td.asarray(np.ones((2, 2), np.float32))

    def work():
        outside = td.matmul(matrix, matrix).dtype
        with snapshot:
            inside = td.matmul(matrix, matrix).dtype
        return outside, inside, td.matmul(matrix, matrix).dtype

    assert in_thread(work) == (td.float32, td.bfloat16, td.float32)
    assert seen.count("matmul") == 1
    td.matmul(matrix, matrix)
    assert seen.count("matmul") == 1


def test_forced_keys_replace_those_outside():
    auto = td.DispatchKeySet("Autograd").bits
    with td.no_grad(), td.include_keys("Profiler"):
        with td.force_keys():
            assert keys() == (0, 0) and (W * 2.0).requires_grad
        with td.force_keys(exclude="Autograd", include=["Mode"]):
            assert keys() == (td.DispatchKeySet("Mode").bits, auto)
        with pytest.raises(ZeroDivisionError), td.force_keys():
            raise ZeroDivisionError
        assert keys() == (td.DispatchKeySet("Profiler").bits, auto)
    with pytest.raises(TandemError, match="dispatch key"):
        td.force_keys(include=["Nope"])
    assert keys() == (0, 0)


def test_kernels_native_code_and_jit_see_the_guards():
    compiled = td.jit(lambda x: x * 2.0)

    def outcomes():
        return [value.requires_grad for value in (W * 2.0, td.multiply(W, 2.0))] + [compiled(X).tolist()]

    def many(state, wanted, times=200):
        with state:
            return all(outcomes() == wanted for _ in range(times))

    for _ in range(50):
        outcomes()
    recorded, silent = td.force_keys, lambda: td.force_keys(exclude=["Autograd"])
    results = []
    jobs = [(recorded, [True, True, [0.0] * 3]), (silent, [False, False, [0.0] * 3])] * 4
    threads = [threading.Thread(target=lambda j=job: results.append(many(j[0](), j[1]))) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8

    with td.Library("guards", "DEF") as library:
        library.define("seen(Tensor x) -> Any")
        library.impl("seen", lambda x: found.append(keys()) or x * 1.0, "CPU")
        library.impl("seen", lambda x: td.empty_like(x), "Meta")
        seen = td.jit(lambda x: td.ops.guards.seen(x))
        found = []
        with td.exclude_keys("Autograd"):
            td.ops.guards.seen(X)
        td.ops.guards.seen(X)
        assert found == [(0, td.DispatchKeySet("Autograd").bits), (0, 0)]
        assert seen(X).tolist() == [0.0] * 3
