"""The dispatch trace: every entry point, nesting, key, kernel and remaining keys."""

import functools
import threading

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.fastpath.runtime import rt_base
from tandem.registry.dispatch import trace

X = td.asarray([1.0, 2.0])
Y = td.asarray([1.0, 2.0], dtype=td.float64)


@pytest.fixture
def lib():
    with td.Library("traced", "DEF") as library:
        library.define("f(Tensor x, int n=1, *, bool b=False) -> Any")
        library.impl("f", cpu, "CPU")
        yield library


def cpu(x, n, *, b):
    return x


def lines_of(run):
    lines = []
    with td.show_dispatch_trace(lines.append):
        run()
    return lines


def test_calls_redispatches_and_boxed_kernels(lib):
    def boxed(op, keyset, args, kwargs):
        return op.redispatch(keyset & ~td.DispatchKeySet("Mode").bits, *args, **kwargs)

    lib.impl("f", boxed, "Mode", boxed=True)
    op = td.ops.traced.f.default
    with td.include_keys("Mode"):
        lines = lines_of(lambda: op(X, b=True))
    assert lines[0].startswith("[callBoxed] traced::f(float32[2], int 1, b=bool True) key=Mode kernel=")
    assert lines[0].endswith("boxed (kernel) below={CPU}")
    assert lines[1:] == [
        "  [redispatch] traced::f(float32[2], int 1, b=bool True) key=CPU kernel=cpu (kernel)"
    ]
    assert lines_of(lambda: op.call_for_key("CPU", X))[0].startswith("[callForKey] traced::f(")
    assert lines_of(lambda: op.redispatch(1, X))[0].startswith("[redispatch] traced::f(")


def test_calls_inside_of_kernels_are_calls(lib):
    lib.impl("f", lambda x, n, *, b: td.exp(x), "CompositeImplicit")
    lib.impl("f", lambda x, n, *, b: td.exp(x), "CPU", allow_override=True)
    lines = lines_of(lambda: td.ops.traced.f.default(X))
    assert [line.lstrip().partition("(")[0] for line in lines] == ["[call] traced::f", "[call] td::exp"]
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2]


def test_the_kernel_of_the_dtype_is_named(lib):
    def single(x, n, *, b):
        return x

    lib.impl("f", single, "CPU", dtypes=["float32"])
    assert "kernel=" + single.__qualname__ in lines_of(lambda: td.ops.traced.f.default(X))[0]
    assert "kernel=cpu " in lines_of(lambda: td.ops.traced.f.default(td.asarray([1])))[0]


def test_the_depth_is_right_after_an_exception(lib):
    def fail(x, n, *, b):
        raise ZeroDivisionError

    lib.impl("f", fail, "CPU", allow_override=True)

    def run():
        with pytest.raises(ZeroDivisionError):
            td.ops.traced.f.default(X)
        td.exp(X)

    assert lines_of(run)[-1].startswith("[call")


def test_blocks_of_threads_may_end_in_any_order():
    first, second = [], []
    entered, leave = threading.Event(), threading.Event()

    def work():
        with td.show_dispatch_trace(first.append):
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(20)
    with td.show_dispatch_trace(second.append):
        leave.set()
        thread.join()
        td.exp(X)
        assert trace.active
    assert not trace.active and not first and len(second) == 1
    td.exp(X)
    assert len(second) == 1


def test_hot_calls_are_printed_too():
    for _ in range(100):
        td.exp(X)
    assert len(lines_of(lambda: td.exp(X))) == 1
    assert not lines_of(lambda: None)


native_only = pytest.mark.skipif(not config.flags.native, reason="machine code is off")
M = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
W = td.asarray(np.ones((2, 3), np.float32), requires_grad=True)
HOT = {
    "elementwise1": lambda: td.exp(M),
    "elementwise2": lambda: M + 2,
    "reduction": lambda: td.sum(M, 0, keepdims=True),
    "matmul": lambda: M @ M.T,
    "scan": lambda: td.cumsum(M, 0),
    "concat": lambda: td.concat([M, M]),
    "clone": lambda: M.clone(),
    "jitted": td.jit(lambda: td.exp(M) * 2),
    "recorded": functools.partial(td.jit(lambda w: (w * M).sum()), W),
}


@native_only
@pytest.mark.parametrize("name", HOT)
def test_native_entry_that_ran_is_named(name):
    call = HOT[name]
    for _ in range(config.flags.hot_calls * 2 + 2):
        expected = call().tolist()
    results = []
    lines = lines_of(lambda: results.append(call()))
    assert f" native={name}" in lines[-1]
    assert results[0].tolist() == expected


@native_only
def test_layers_above_a_native_kernel_are_printed():
    for _ in range(100):
        W * M, M * M
    lines = lines_of(lambda: W * M)
    assert "key=AutogradCPU" in lines[0] and "native" not in lines[0]
    assert lines[1].startswith("  [redispatch] td::mul.Tensor(") and lines[1].endswith(" native=elementwise2")
    assert (W * M).requires_grad


@native_only
def test_calls_that_python_answers_name_no_entry(lib):
    assert "native" not in lines_of(lambda: td.ops.traced.f.default(X))[0]
    for _ in range(100):
        td.exp(X)
    with td.Library("td", "IMPL") as library:
        library.impl("exp", lambda x: x.clone(), "CPU")
        assert not [line for line in lines_of(lambda: td.exp(X)) if "td::exp" in line and "native" in line]
    for _ in range(100):
        td.exp(X), td.exp(Y)
    assert "native" not in lines_of(lambda: td.exp(SWAPPED))[-1]
    call = td.jit(lambda x: x * 3)
    assert lines_of(lambda: call(X))[0].startswith("[jit] <lambda>(float32[2])")


V = td.asarray([1.0, 2.0], dtype=td.float64, requires_grad=True)
SWAPPED = np.ones(2).astype(
    np.dtype(float).newbyteorder()
)  # entries convert arrays of the machine's byte order only
PYTHON = {
    "array": (td.exp, (SWAPPED,), {}),
    "array on the right": (td.add, (Y, SWAPPED), {}),
    "array and a tensor with history": (td.mul, (SWAPPED, V), {}),
    "list of an array": (td.concat, ([Y, np.ones(2)],), {}),
    "keyword": (td.add, (Y,), {"other": Y}),
    "history that is not recorded": (td.ops.td.stop_gradient.default, (V,), {}),
}


@native_only
@pytest.mark.parametrize("name", PYTHON)
def test_calls_that_a_hot_entry_declines_name_none(name):
    function, args, kwargs = PYTHON[name]
    stub = fastpath.stubs().by_operator[function.operator]
    bound, rest = function.operator.binder.bind(args, kwargs)
    for _ in range(config.flags.hot_calls * 2 + 2):
        function(*bound, **rest), function(*args, **kwargs)
    before = stub.calls
    expected = function(*args, **kwargs).tolist()
    assert stub.calls == before, "the case is not one that Python answers"
    results = []
    lines = lines_of(lambda: results.append(function(*args, **kwargs)))
    assert not any("native=" in line for line in lines)
    assert results[0].tolist() == expected


@native_only
def test_layers_with_changed_arguments_name_no_entry():
    for _ in range(config.flags.hot_calls * 2 + 2):
        td.sum(Y, 0), td.exp(Y)

    def other_axis(op, keyset, args, kwargs):
        return op.redispatch(keyset & ~td.DispatchKeySet("Mode").bits, args[0], None)

    def same(op, keyset, args, kwargs):
        with td.exclude_keys("Mode"):
            return op(*args, **kwargs)

    with td.Library("td", "IMPL") as library:
        library.impl("sum", other_axis, "Mode", boxed=True)
        library.impl("exp", same, "Mode", boxed=True)
        with td.include_keys("Mode"):
            lines = lines_of(lambda: td.sum(Y, 0)) + lines_of(lambda: td.exp(Y))
    assert not any("native=" in line for line in lines)


@native_only
def test_traced_thread_leaves_others_untraced_entries():
    td.exp(X)
    before = fastpath.stubs().runtime.process.get(rt_base.Globals.off)
    with td.show_dispatch_trace(lambda line: None):
        for _ in range(100):
            td.exp(X)
        assert fastpath.stubs().runtime.process.get(rt_base.Globals.off) == 1
    assert fastpath.stubs().runtime.process.get(rt_base.Globals.off) == before == 0
