"""The dispatch trace: each way into the dispatcher, nested, with key, kernel and the keys below."""

import threading

import pytest
import tandem as td
from tandem.registry import trace

X = td.asarray([1.0, 2.0])


@pytest.fixture
def lib():
    with td.Library("traced", "DEF") as library:
        library.define("f(Tensor x, int n=1, *, bool b=False) -> Tensor")
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
