"""Native entries of operators with Python kernels: which calls skip the dispatcher."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from tandem import config, errors
from tandem.backends.cpu import fastpath as native_layer
from tandem.eager.tensor.tensor import Tensor
from tandem.registry import native_type

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


@pytest.fixture(autouse=True)
def hot():
    native_layer.install()
    with config.override(hot_calls=1):
        yield


@pytest.fixture
def library():
    with td.Library("nativetest", "DEF") as library:
        yield library


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def ones(*shape, **options):
    return td.asarray(np.ones(shape, np.float32), **options)


def function(library, schema, kernel, key="CPU"):
    name = schema.partition("(")[0]
    library.define(schema)
    if kernel is not None:
        library.impl(name, kernel, key)
    return getattr(td.ops.nativetest, name).default


def calls(fn):
    record = native_layer.stubs().kernels[fn.operator].record
    return 0 if record is None else record.calls


def hot_call(fn, *args):
    for _ in range(2):
        fn(*args)
    before = calls(fn)
    out = fn(*args)
    assert calls(fn) == before + 1, "the call went through the dispatcher"
    return out


def test_the_kernel_gets_the_very_arguments(library):
    fn = function(library, "pair(Tensor a, Tensor b) -> Any", lambda *args: args)
    x, y = ones(2), ones(3)
    found = hot_call(fn, x, y)
    assert found[0] is x
    assert found[1] is y
    before = calls(fn)
    assert td.ops.nativetest.pair(x, y) == found
    assert calls(fn) == before + 1


def test_defaults_are_filled_in(library):
    schema = "many(Tensor a, Tensor? b=None, int n=3, int[] m=[1, 2], *, str s='x', bool t=True) -> Any"

    def kernel(*args, **kwargs):
        return args, kwargs

    fn, x = function(library, schema, kernel), ones(2)
    for args in ((x,), (x, x), (x, None, 5)):
        assert hot_call(fn, *args) == fn.operator(*args)
    before = calls(fn)
    assert fn(x, n=7) == fn.operator(x, n=7)
    assert fn(x, None, 2, [3]) == fn.operator(x, None, 2, [3])
    assert calls(fn) == before


@pytest.mark.parametrize(
    ("kind", "good", "other"),
    [
        ("int", 3, np.int64(3)),
        ("float", 2.5, 2),
        ("bool", True, np.bool_(True)),
        ("str", "x", None),
        ("Scalar", 2, np.float64(2.0)),
        ("int?", None, np.int64(1)),
        ("complex", 1j, 1),
    ],
)
def test_only_what_the_binder_leaves_alone_is_taken(library, kind, good, other):
    fn = function(library, f"one(Tensor a, {kind} b) -> Any", lambda a, b: (b, type(b)))
    x = ones(2)
    assert hot_call(fn, x, good) == (good, type(good))
    before = calls(fn)
    if other is not None:
        assert fn(x, other) == fn.operator(x, other)
    for bad in (object(), [1], {}):
        with pytest.raises(errors.ArgumentError):
            fn(x, bad)
    for args in ((), (x,), (x, good, good)):
        with pytest.raises(errors.ArgumentError):
            fn(*args)
    assert calls(fn) == before


def test_history_modes_and_keys_take_the_dispatcher(library):
    fn = function(library, "same(Tensor a) -> Tensor", lambda a: a.clone())
    x, w = ones(2), ones(2, requires_grad=True)
    hot_call(fn, x)
    before = calls(fn)
    fn(w)
    with td.include_keys("Profiler"):
        fn(x)
    lines = []
    with td.show_dispatch_trace(lines.append):
        fn(x)
    assert any("nativetest::same" in line for line in lines)

    class Mine(Tensor):
        __slots__ = ()

    mine = Mine.__new__(Mine)
    mine._array, mine._keys, mine._meta, mine._storage = x._array, x._keys, None, None
    fn(mine)
    assert calls(fn) == before
    with td.no_grad():
        assert not fn(w).requires_grad
    assert calls(fn) == before + 1


def test_extra_keys_send_calls_to_the_dispatcher(library):
    fn, x, seen = function(library, "watched(Tensor a) -> Tensor", lambda a: a), ones(2), []
    add = td.add
    for _ in range(3):
        add(x, x)
    hot_call(fn, x)

    def watch(op, keyset, args, kwargs):
        seen.append(op.name)
        return op.redispatch(td.DispatchKeySet("CPU"), *args, **kwargs)

    with td.Library("nativetest", "IMPL") as watcher:
        watcher.fallback(watch, "Mode")
        for one in (fn, add):
            one.operator.extra_keys = 1 << td.DispatchKey.Mode
            one.operator.recompute()
        fn(x), add(x, x), x + x
        assert seen == ["nativetest::watched", "td::add.Tensor", "td::add.Tensor"]
        for one in (fn, add):
            one.operator.extra_keys = 0
            one.operator.recompute()
        hot_call(fn, x)
        x + x
    assert len(seen) == 3


def test_the_newest_kernel_runs_and_no_removed_one(library):
    fn, x = function(library, "turn(Tensor a) -> Any", lambda a: 0), ones(2)
    assert hot_call(fn, x) == 0
    one = library.impl("turn", lambda a: 1, "CPU", **override())
    assert hot_call(fn, x) == 1
    two = library.impl("turn", lambda a: 2, "CPU", **override())
    assert fn(x) == 2
    one.remove()
    assert fn(x) == 2
    two.remove()
    assert fn(x) == 0
    boxed = library.impl("turn", lambda op, keyset, args, kwargs: "boxed", "CPU", boxed=True, **override())
    before = calls(fn)
    assert fn(x) == "boxed"
    assert calls(fn) == before
    boxed.remove()
    assert hot_call(fn, x) == 0


def override():
    import inspect

    found = inspect.signature(td.Library.impl).parameters
    return {"allow_override": True} if "allow_override" in found else {}


def test_a_kernel_may_be_removed_while_it_runs(library):
    handles = []

    def kernel(a):
        for handle in handles:
            handle.remove()
        gc.collect()
        return here

    here = object()
    library.define("leaves(Tensor a) -> Any")
    handles.append(library.impl("leaves", kernel, "CPU"))
    fn, x = td.ops.nativetest.leaves.default, ones(2)
    alive = weakref.ref(kernel)
    del kernel
    handle = handles.pop()
    for _ in range(3):
        assert fn(x) is here
    handles.append(handle)
    del handle
    assert fn(x) is here
    handles.clear()
    with pytest.raises(errors.NoKernelError):
        fn(x)
    library.close()
    gc.collect()
    assert alive() is None


def test_an_operator_that_is_undefined(library):
    x = ones(2)
    with td.Library("gone", "DEF") as lib:
        lib.define("f(Tensor a) -> Any")
        lib.impl("f", lambda a: 5, "CPU")
        fn, packet = td.ops.gone.f.default, td.ops.gone.f
        for _ in range(3):
            assert fn(x) == packet(x) == 5
    for one in (fn, packet):
        with pytest.raises(errors.TandemError):
            one(x)
    assert not native_type.entry_of(fn)
    alive = weakref.ref(fn)
    del fn, packet, one
    gc.collect()
    assert alive() is None


def test_exceptions_of_kernels(library):
    faults = {"memory": MemoryError("much"), "overflow": OverflowError("far"), "value": ValueError("bad")}

    def kernel(a, which):
        raise faults[which]

    fn, x = function(library, "fails(Tensor a, str which) -> Tensor", kernel), ones(2)
    for which, kind in (
        ("value", ValueError),
        ("memory", errors.AllocationError),
        ("overflow", errors.ScalarOverflowError),
    ):
        for call in (fn, fn, fn.operator, fn):
            with pytest.raises(kind) as caught:
                call(x, which)
            if which != "value":
                assert str(caught.value).startswith("fails(float32[2], ")
    faults["memory"] = errors.AllocationError("ours")
    with pytest.raises(errors.AllocationError, match="ours"):
        fn(x, "memory")


def test_kernels_that_call_themselves(library):
    fn = function(library, "down(Tensor a, int n) -> Any", lambda a, n: n if n == 0 else fn(a, n - 1))
    assert hot_call(fn, ones(1), 0) == 0
    assert fn(ones(1), 50) == 0
    with pytest.raises(RecursionError):
        fn(ones(1), 10**6)


def test_reference_counts_do_not_drift(library):
    default = object()
    fn = function(library, "f(Tensor a, Tensor? b=None, *, int k=3) -> Any", lambda a, b, k: default)
    x, watched = ones(2), []
    watched = [x, x._array, default, None, 3, fn, fn.operator]
    for _ in range(100):
        fn(x), fn(x, x)
    gc.collect()
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(5000):
        fn(x), fn(x, x)
    after = [sys.getrefcount(item) for item in watched]
    assert all(abs(a - b) <= 10 for a, b in zip(after, before, strict=True))


def cycles(library, name, fn, times, *args):
    for _ in range(times):
        result = args[0].clone()
        handle = library.impl(name, lambda *a, r=result: r, "CPU", **override())
        assert fn(*args) is result
        handle.remove()


@pytest.mark.parametrize("times", [10_000, pytest.param(100_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("target", ["own", "td"])
def test_memory_does_not_grow_with_registrations(library, target, times):
    x = ones(4)
    if target == "own":
        fn, lib, name = function(library, "again(Tensor a) -> Any", lambda a: -1), library, "again"
    else:
        fn, lib, name = td.exp, td.Library("td", "IMPL"), "exp"
    for _ in range(3):
        fn(x)
    cycles(lib, name, fn, 2000, x)
    gc.collect()
    before = resident()
    cycles(lib, name, fn, times, x)
    gc.collect()
    assert resident() - before < 2**20
    if target == "td":
        np.testing.assert_allclose(td.exp(x).numpy(), np.exp(np.ones(4)), rtol=1e-6)


def test_threads_register_while_others_call(library):
    fn, x, stop, faults = function(library, "busy(Tensor a) -> Any", lambda a: -1), ones(2), [], []
    hot_call(fn, x)
    dead = set()

    def register(seed):
        try:
            for number in range(150):
                mine = (seed, number)
                handle = library.impl("busy", lambda a, m=mine: m, "CPU", **override())
                handle.remove()
                dead.add(mine)
        except Exception as fault:
            faults.append(fault)

    def call():
        while not stop:
            gone = set(dead)
            found = fn(x)
            if found in gone:
                faults.append(found)

    callers = [threading.Thread(target=call) for _ in range(4)]
    writers = [threading.Thread(target=register, args=(seed,)) for seed in range(4)]
    for thread in (*callers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.append(1)
    for thread in callers:
        thread.join()
    assert not faults
    assert fn(x) == -1
