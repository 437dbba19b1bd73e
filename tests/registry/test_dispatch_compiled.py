"""Jitted functions follow changes of the registry as eager calls do."""

import threading

import numpy as np
import pytest
import tandem as td
from tandem import config

X = td.asarray(np.array([1.0, 2.0], np.float32))


@pytest.fixture(params=["cold", "hot"])
def lib(request):
    with (
        td.Library("follow", "DEF") as library,
        config.override(hot_calls=2 if request.param == "hot" else 10**6),
    ):
        library.define("f(Tensor x) -> Any")
        library.impl("f", lambda x: td.empty_like(x), "Meta")
        yield library


def f(x):
    return td.ops.follow.f.default(x)


def settled(function, wanted):
    """Whether every one of some calls gives the wanted result: the first in Python, the later ones by machine code."""
    return all(function(X).tolist() == wanted for _ in range(8))


def layer(factor):
    def kernel(keyset, x):
        return td.ops.follow.f.default.redispatch(keyset & ~td.DispatchKeySet("Mode").bits, x) * factor

    return kernel


@pytest.mark.parametrize("key", ["CPU", "Dense", "CompositeExplicit", "AutogradCPU"])
def test_each_key_is_followed(lib, key):
    lib.impl("f", lambda x: x * 1.0, "CPU")
    compiled = td.jit(lambda x: f(x) + 0.0)
    y = td.asarray(X.numpy().copy(), requires_grad=True)
    for _ in range(3):
        assert settled(compiled, [1.0, 2.0])
        with lib.impl("f", lambda x: x.detach() * 3.0, key, allow_override=True):
            wanted = f(X).tolist()
            assert settled(compiled, wanted)
            with td.no_grad():
                assert compiled(y).tolist() == f(y).tolist()
        assert settled(compiled, [1.0, 2.0])


def test_a_composite_that_is_removed(lib):
    lib.impl("f", lambda x: x * 1.0, "CPU")
    composite = lib.impl("f", lambda x: x * 10.0, "CompositeImplicit")
    compiled = td.jit(lambda x: f(x) + 0.0)
    assert settled(compiled, [10.0, 20.0]), "a composite decomposes in a trace"
    composite.remove()
    assert settled(compiled, [1.0, 2.0])


def test_a_composite_made_explicit(lib):
    lib.impl("f", lambda x: x * 10.0, "CompositeImplicit")
    compiled = td.jit(lambda x: f(x) + 0.0)
    assert settled(compiled, [10.0, 20.0])
    with lib.impl("f", lambda x: x * 2.0, "CompositeExplicit"):
        assert settled(compiled, [2.0, 4.0])
    assert settled(compiled, [10.0, 20.0])


def test_a_kernel_for_the_dtype(lib):
    lib.impl("f", lambda x: x * 1.0, "CPU")
    compiled = td.jit(lambda x: f(x) + 0.0)
    assert settled(compiled, [1.0, 2.0])
    with lib.impl("f", lambda x: x * 5.0, "CPU", dtypes=["float32"]):
        assert settled(compiled, [5.0, 10.0]) and compiled(
            td.asarray([1.0, 2.0], dtype="float64")
        ).tolist() == [1, 2]
    assert settled(compiled, [1.0, 2.0])


def test_a_layer_that_runs_while_tracing(lib):
    lib.impl("f", lambda x: x * 1.0, "CPU")
    compiled = td.jit(lambda x: f(x) + 0.0)
    with td.include_keys("Profiler"):
        assert settled(compiled, [1.0, 2.0])

        def kernel(keyset, x):
            below = keyset & ~td.DispatchKeySet("Profiler").bits
            return td.ops.follow.f.default.redispatch(below, x) * 7.0

        with lib.impl("f", kernel, "Profiler", with_keyset=True):
            assert settled(compiled, [7.0, 14.0])
        assert settled(compiled, [1.0, 2.0])


def test_a_builtin_operator():
    compiled = td.jit(lambda x: td.exp(x) * 1.0)
    with config.override(hot_calls=2), td.Library("td", "IMPL") as library:
        wanted = td.exp(X).tolist()
        for _ in range(3):
            assert settled(compiled, pytest.approx(wanted)) and settled(td.exp, pytest.approx(wanted))
            with library.impl("exp", lambda self: self * 0.0, "CPU"):
                assert settled(compiled, [0.0, 0.0]) and settled(td.exp, [0.0, 0.0])
            with library.impl("exp", lambda self: self * 2.0, "CPU", dtypes=["float32"]):
                assert settled(compiled, [2.0, 4.0]) and settled(td.exp, [2.0, 4.0])


def test_changes_elsewhere_do_not_retrace(lib):
    lib.impl("f", lambda x: x * 1.0, "CPU")
    compiled = td.jit(lambda x: f(x) + 0.0)
    compiled(X)
    lib.define("g(Tensor x) -> Any")
    lib.impl("g", lambda x: x, "CompositeImplicit").remove()
    lib.impl("f", lambda x: x, "SparseCUDA")
    lib.fallback(print, "QuantizedMeta").remove()
    compiled(X)
    retraced = compiled.cache_info().misses
    with td.Library("elsewhere", "DEF") as other:
        other.define("g(Tensor x) -> Any")
        other.impl("g", lambda x: x * 2.0, "CompositeImplicit")
    compiled(X)
    assert compiled.cache_info().misses == retraced <= 2


def test_a_change_while_a_function_is_traced(lib):
    """What a trace has seen before a change counts as old, although the trace ends after it."""
    lib.impl("f", lambda x: x * 1.0, "CompositeImplicit")
    changed = []

    def body(x):
        out = f(x)
        if not changed:
            thread = threading.Thread(
                target=lambda: changed.append(
                    lib.impl("f", lambda x: x * 9.0, "CompositeImplicit", allow_override=True)
                )
            )
            thread.start()
            thread.join()
        return out + 0.0

    compiled = td.jit(body)
    compiled(X)
    assert changed and settled(compiled, [9.0, 18.0])
