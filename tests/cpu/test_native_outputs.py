"""The argument `out` in native entries: elements, dtypes, versions and errors are those of the Python path."""

import sys

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_harness import needs_native
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.eager.hot_calls import COMPILED
from tandem.errors import TandemError

DTYPES = [np.float32, np.float64, np.int64, np.int8, np.bool_, np.complex64]
BINARY = ["add", "mul", "div", "maximum", "lt", "bitwise_and", "atan2"]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1, hot_composites=1):
        yield


def outcome(call, out):
    """The class of the exception of a call, or its effect: the tensors that it returns, and what they hold."""
    before = out._version
    with np.errstate(all="ignore"):
        try:
            result = call(out)
        except Exception as error:
            return type(error), out._version - before, out.numpy().tobytes()
    return result is out, out._version - before, out.strides, out.numpy().tobytes()


def check_same(function, args, make_out, **options):
    """Compare a native call with one by the operator, which writes a result into `out` in Python."""

    def in_python(out):
        return function.operator(*args, out=out, **options)

    def in_native(out):
        return function(*args, out=out, **options)

    def by_position(out):
        return function(*args, out, **options)

    expected = outcome(in_python, make_out())
    for _ in range(4):
        assert outcome(in_native, make_out()) == expected, (function, args, options)
    expected = outcome(lambda out: function.operator(*args, out, **options), make_out())
    for _ in range(4):
        assert outcome(by_position, make_out()) == expected, (function, args, options)


def layouts(shape, dtype):
    """Makers of tensors of zeros of a shape, some of them on a part of larger memory."""
    doubled = (*(2 * size for size in shape),)
    return {
        "contiguous": lambda: td.zeros(shape, dtype=dtype),
        "strided": lambda: td.zeros(doubled, dtype=dtype)[tuple(slice(None, None, 2) for _ in shape)],
        "transposed": lambda: td.zeros(shape[::-1], dtype=dtype).T if shape else td.zeros((), dtype=dtype),
    }


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_elementwise_out_equals_python_path(data):
    name, dtype = data.draw(st.sampled_from(BINARY)), data.draw(st.sampled_from(DTYPES))
    shape = data.draw(st.sampled_from([(), (1,), (4,), (3, 4), (0, 4)]))
    wanted = data.draw(st.sampled_from([shape, shape, shape, (4,), (3, 4), (1, *shape)]))
    x = td.asarray((np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype))
    other = data.draw(
        st.sampled_from([x, 2, 2.5, True, x.numpy(), np.float32(2), x[..., :1] if shape else x])
    )
    made = data.draw(st.sampled_from(["contiguous", "strided", "transposed"]))
    to = data.draw(st.sampled_from([dtype, dtype, np.float64, np.bool_]))
    check_same(getattr(td, name), (x, other), layouts(wanted, to)[made])


@pytest.mark.parametrize(
    ("function", "args", "options", "shape"),
    [
        (td.sum, "m", {"axis": 0}, (4,)),
        (td.sum, "m", {"axis": 1, "keepdims": True}, (3, 1)),
        (td.max, "m", {"axis": 0}, (4,)),
        (td.argmax, "m", {"axis": 0}, (4,)),
        (td.cumsum, "m", {"axis": 0}, (3, 4)),
        (td.matmul, "mt", {}, (3, 3)),
        (td.mean, "m", {"axis": 0}, (4,)),
        (td.clip, "m12", {}, (3, 4)),
        (td.concat, "l", {}, (6, 4)),
        (td.stack, "l", {}, (2, 3, 4)),
        (td.reshape, "ms", {}, (4, 3)),
        (td.flip, "m", {}, (3, 4)),
        (td.sqrt, "m", {}, (3, 4)),
        (td.astype, "md", {}, (3, 4)),
        (td.sort, "m", {"axis": 0}, (3, 4)),
        (td.repeat, "m2", {}, (24,)),
        (td.where, "bmm", {}, (3, 4)),
        (td.softmax, "m", {"axis": -1}, (3, 4)),
        (td.isnan, "m", {}, (3, 4)),
        (td.argsort, "m", {"axis": 0}, (3, 4)),
    ],
)
@pytest.mark.parametrize("dtype", [td.float32, td.float64, td.int64, td.bfloat16, td.complex64])
def test_out_of_every_kind_of_entry_equals_python_path(function, args, options, shape, dtype):
    m = td.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) - 3)
    values = {"m": m, "t": m.T, "l": [m, m], "s": (4, 3), "d": td.float64, "b": m > 0}
    given = [values[c] if c in values else int(c) for c in args]
    for make_out in layouts(shape, dtype).values():
        check_same(function, given, make_out, **options)
    check_same(function, given, lambda: td.zeros((*shape, 1), dtype=dtype), **options)


def test_out_may_share_memory_with_operands():
    x = td.asarray(np.arange(8.0))
    td.add(x[1:], x[:-1], out=x[1:])
    assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0]
    y = td.asarray(np.arange(4.0))
    for _ in range(3):
        td.mul(y, 2, out=y)
    assert y.tolist() == [0.0, 8.0, 16.0, 24.0]
    square = td.asarray(np.arange(4.0).reshape(2, 2))
    td.add(square, 0, out=square.T)
    assert square.tolist() == [[0.0, 2.0], [1.0, 3.0]]


def test_out_of_calls_with_history_is_recorded():
    p = td.asarray([1.0, 2.0]).requires_grad_()
    for _ in range(3):
        out = td.zeros(2)
        td.mul(p, 3, out=out)
        assert out.requires_grad and td.autograd.grad(out.sum(), [p])[0].tolist() == [3.0, 3.0]
        with td.no_grad():
            plain = td.zeros(2)
            assert td.mul(p, 3, out=plain) is plain and not plain.requires_grad
    with pytest.raises(TandemError):
        td.mul(td.zeros(2), 3, out=p)


def test_write_into_saved_operand_is_noticed():
    p, x = td.asarray([1.0, 2.0]).requires_grad_(), td.asarray([3.0, 4.0])
    for _ in range(3):
        y = p * x
        td.add(x, 1, out=x)
        with pytest.raises(TandemError, match=r"version|modified|written"):
            y.sum().backward()


def test_levels_and_traces_see_calls_with_out():
    x = td.asarray([1.0, 2.0])

    def doubled(v):
        out = td.zeros(2)
        td.mul(v, 2, out=out)
        return out

    for _ in range(3):
        doubled(x)
    assert td.jit(doubled)(x).tolist() == [2.0, 4.0]
    assert td.vmap(doubled)(td.stack([x, x])).tolist() == [[2.0, 4.0]] * 2
    assert td.grad(lambda v: doubled(v).sum())(x).tolist() == [2.0, 2.0]


def test_locked_and_wrong_outputs_raise():
    array = np.zeros(2, np.float32)
    array.setflags(write=False)
    locked = td.from_numpy(array) if hasattr(td, "from_numpy") else td.asarray(array)
    x = td.asarray([1.0, 2.0])
    for _ in range(3):
        for out in (np.zeros(2, np.float32), [0.0, 0.0], 3, td.zeros(2, dtype=td.int32), td.zeros(3)):
            with pytest.raises(TandemError):
                td.add(x, x, out=out)
        assert td.add(x, x, out=None).tolist() == [2.0, 4.0]
        assert td.add(x, np.ones(2, np.float32), out=x.clone()).tolist() == [2.0, 3.0]
        check_same(td.add, (x, x), lambda: locked)


@needs_native
def test_entries_take_calls_with_out():
    x, out = td.asarray([1.0, 2.0]), td.zeros(2)
    for name, args in {"add": (x, x), "sqrt": (x,), "cumsum": (x,)}.items():
        function = getattr(td, name)
        for _ in range(5):
            function(*args)
        stub = fastpath.stubs().by_operator[function.operator]
        before = stub.calls
        for _ in range(3):
            assert function(*args, out=out) is out
        assert stub.calls == before + 3


@needs_native
def test_entries_take_out_by_position():
    x, out = td.asarray([1.0, 2.0]), td.zeros(2)
    for name, args in {"add": (x, x), "sqrt": (x,), "multiply": (x, 2.0), "cumsum": (x, 0)}.items():
        function = getattr(td, name)
        for _ in range(5):
            function(*args)
        stub = fastpath.stubs().by_operator[function.operator]
        before = stub.calls
        for _ in range(3):
            assert function(*args, out) is out
        assert stub.calls == before + 3
        assert out.tolist() == function(*args).tolist()


def test_last_argument_that_is_not_out_keeps_its_meaning():
    x = td.asarray([1.0, 2.0])
    for _ in range(5):
        with pytest.raises(TypeError):
            pow(x, x, x)
        with pytest.raises(TandemError):
            td.add(x, x, 3.0)
        with pytest.raises(TandemError):
            td.add(x, x, x, x)
        with pytest.raises(TandemError):
            td.permute(x, (0,), x)
    assert x.tolist() == [1.0, 2.0]


@needs_native
@pytest.mark.parametrize("options", [{}, {"out": None}])
def test_composites_called_only_with_out_are_compiled(options):
    x, out = td.asarray(np.arange(25.0).reshape(5, 5)), td.zeros((5, 5), dtype=td.float64)
    for _ in range(6):
        result = td.dot(x, x, **{**options, "out": out}) if options else td.dot(x, x, out)
        assert result is out
    assert COMPILED in fastpath.stubs().kernels[td.dot.operator].hot_calls.counts.values()
    np.testing.assert_array_equal(out.numpy(), x.numpy() @ x.numpy())


def test_references_of_calls_with_out_are_balanced():
    x, out = td.asarray([1.0, 2.0]), td.zeros(2)
    for _ in range(5):
        td.add(x, x, out)
    before = sys.getrefcount(x), sys.getrefcount(out)
    for _ in range(100_000):
        td.add(x, x, out)
    assert (sys.getrefcount(x), sys.getrefcount(out)) == before


NAMED_ONLY = {
    "axis": (lambda m: td.argsort(m, 0), lambda m: td.argsort(m, axis=0)),
    "dtype": (lambda m: td.sum(m, 0, td.float64), lambda m: td.sum(m, 0, dtype=td.float64)),
    "keepdims": (lambda m: td.max(m, 1, True), lambda m: td.max(m, 1, keepdims=True)),
    "compiled": (lambda m: td.tril(m, -1), lambda m: td.tril(m, k=-1)),
    "wrong": (lambda m: td.sum(m, 0, 3), lambda m: td.sum(m, 0, 3, None)),
}


@pytest.mark.parametrize("name", NAMED_ONLY)
def test_keyword_only_arguments_by_position(name):
    by_position, by_name = NAMED_ONLY[name]
    m = td.asarray(np.random.default_rng(0).standard_normal((3, 4)))
    if name == "wrong":
        for _ in range(5):
            with pytest.raises(TandemError):
                by_position(m)
        return
    expected = by_name(m)
    for _ in range(6):
        result = by_position(m)
        assert result.dtype is expected.dtype and result.tolist() == expected.tolist()


@needs_native
def test_entries_take_keyword_only_arguments_by_position():
    m = td.asarray(np.arange(12.0).reshape(3, 4))
    for _ in range(6):
        td.sum(m, 0, td.float64), td.sum(m, 0, dtype=td.float64)
    stub = fastpath.stubs().by_operator[td.sum.operator]
    before = stub.calls
    for _ in range(3):
        td.sum(m, 0, td.float64)
    assert stub.calls == before + 3
