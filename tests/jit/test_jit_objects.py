"""Jitted functions as Python objects: methods, closures, pickles, threads."""

import copy
import functools
import gc
import inspect
import pickle
import threading
import weakref

import numpy as np
import tandem as td
from jit_arguments import check, tensor
from tandem.jit.api import jit
from tandem.jit.function import JitFunction

SCALE = 2.0

# --- as a Python object -----------------------------------------------------------------------------------


def test_looks_like_the_function():
    def f(x: int, y=2) -> int:
        """What f does."""
        return x

    g = jit(f)
    assert (g.__name__, g.__doc__, g.__wrapped__, g.__module__) == ("f", "What f does.", f, __name__)
    assert inspect.signature(g) == inspect.signature(f)
    assert weakref.ref(g)() is g
    assert isinstance(jit(static_argnames="y")(f), JitFunction)
    assert "f(" in repr(g)
    g.note = 3
    assert g.note == 3


class Layer:
    def __init__(self, w):
        self.w = w

    @jit
    def apply(self, x):
        return x * self.w

    @staticmethod
    @jit
    def plain(x):
        return x + 1


def test_methods():
    one, two = Layer(tensor(2)), Layer(tensor(2) * 10)
    x = tensor(2)
    for _ in range(2):
        check(one.apply(x), [1.0, 4.0])
        check(two.apply(x), [10.0, 40.0])
        check(Layer.apply(two, x), [10.0, 40.0])
    assert Layer.apply.cache_info().specializations == 2
    check(Layer.plain(x), [2.0, 3.0])
    one.w.add_(1)
    check(one.apply(x), [2.0, 6.0])


def test_an_instance_is_not_kept_alive():
    layer = Layer(2.0)
    layer.apply(tensor(2))
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None


def test_a_closure_cycle_is_collected():
    def make():
        w = tensor(2)

        @jit
        def f(x):
            return x * w + (0 if f is None else 1)

        f(tensor(2)), f(tensor(2)), f(tensor(3, 2))
        return weakref.ref(f), weakref.ref(w)

    f, w = make()
    gc.collect()
    assert f() is None
    assert w() is None


def test_jit_of_jit_and_of_other_callables():
    f = jit(jit(lambda x: x + 1))
    check(f(tensor(2)), [2.0, 3.0])

    class Callable:
        def __call__(self, x):
            return x * SCALE

    check(jit(Callable())(tensor(2)), [2.0, 4.0])
    check(jit(Layer(3.0).plain)(tensor(2)), [2.0, 3.0])
    check(jit(td.exp)(tensor(2)), np.exp([1.0, 2.0]))


def test_inner_functions_are_recorded_inline():
    inner = jit(lambda x: x * 2)
    outer = jit(lambda x: inner(x) + inner(x))
    check(outer(tensor(2)), [4.0, 8.0])
    assert inner.cache_info() == (0, 0, 0)
    assert len(outer.trace(tensor(2)).ir.nodes) == 3


def test_recursion():
    @jit
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    f = jit(lambda x, n: power(x, n), static_argnames="n")
    check(f(tensor(2), 3), [1.0, 8.0])


@jit
def plus_one(x):
    return x + 1


def test_pickle_and_copy_are_by_name():
    assert copy.copy(plus_one) is copy.deepcopy(plus_one) is plus_one
    assert pickle.dumps(plus_one)


def test_jitted_functions_and_partials_as_arguments():
    f = jit(lambda g, x: g(x))
    check(f(plus_one, tensor(2)), [2.0, 3.0])
    check(f(functools.partial(td.add, other=2.0), tensor(2)), [3.0, 4.0])
    check(f(np.negative, tensor(2)), [-1.0, -2.0])


def test_threads():
    f = jit(lambda x, a: (x * a).sum())
    failures = []

    def work(seed):
        generator = np.random.default_rng(seed)
        for _ in range(60):
            n, a = int(generator.integers(1, 6)), float(generator.random())
            if not np.isclose(float(f(tensor(n), a)), a * n * (n + 1) / 2, rtol=1e-5):
                failures.append((n, a))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert f.cache_info().specializations <= 20


def test_tracing_in_one_thread_leaves_others_alone():
    inside, done = threading.Event(), threading.Event()

    def f(x):
        inside.set()
        assert done.wait(10)
        return x + 1

    results = []
    thread = threading.Thread(target=lambda: results.append(jit(f)(tensor(2))))
    thread.start()
    assert inside.wait(10)
    check(tensor(2) * 2, [2.0, 4.0])
    done.set()
    thread.join()
    check(results[0], [2.0, 3.0])
