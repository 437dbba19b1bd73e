"""NumPy's functions and ufuncs of tensors in native entries: results and errors are those of the Python path."""

import contextlib
import gc
import operator
import sys

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_harness import needs_native
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.fastpath.runtime import rt_base
from tandem.eager.tensor.interop import numpy_protocols
from tandem.eager.tensor.tensor import Tensor
from tandem.registry import native_type

pytestmark = needs_native

DTYPES = [np.float32, np.float64, np.int64, np.int8, np.bool_, np.complex64]
UFUNCS = [np.add, np.multiply, np.true_divide, np.less, np.maximum, np.logical_and, np.arctan2, np.divmod]


@pytest.fixture(autouse=True)
def hot():
    np.add(td.ones(1) + 1, 1)  # NumPy's first call gives the methods their entries
    with config.override(hot_calls=1, hot_composites=1):
        yield


def describe(value):
    """The class, dtype, layout and elements of a result."""
    if isinstance(value, (tuple, list)):
        return [type(value), *map(describe, value)]
    if not isinstance(value, (td.Tensor, np.ndarray)):
        return type(value), value
    array = value.detach().numpy() if isinstance(value, td.Tensor) else value
    array = array.copy()
    if array.dtype.kind in "fc":
        array[np.isnan(array)] = np.nan  # of one sign
    elements = array.tolist() if array.dtype.hasobject else array.tobytes()
    return type(value), array.dtype, array.shape, elements


def outcome(call):
    with np.errstate(all="ignore"):
        try:
            return describe(call())
        except Exception as error:
            return type(error), str(error)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_ufuncs_equal_python_path(data):
    ufunc, dtype = data.draw(st.sampled_from(UFUNCS)), data.draw(st.sampled_from(DTYPES))
    x = td.asarray((np.arange(8) % 3).astype(dtype))
    kinds = [
        x,
        2,
        2.5,
        1j,
        True,
        x.numpy(),
        np.float32(2),
        np.float64(2),
        np.int64(2),
        np.bool_(True),
        [1] * 8,
    ]
    kinds += [x.numpy().astype(object), np.array("a"), None, x[:3], "a", np.float16(3), np.datetime64("2020")]
    other = data.draw(st.sampled_from(kinds))
    inputs = (x, other) if data.draw(st.booleans()) else (other, x)
    makers = [
        None,
        None,
        lambda: td.zeros(8),
        lambda: np.zeros(8),
        lambda: np.zeros(8, bool),
        lambda: np.zeros(3),
    ]
    make_out = data.draw(st.sampled_from([*makers, lambda: td.zeros(8, dtype=td.float64)[::-1]]))

    def run(call):
        options = {} if make_out is None else {"out": (make_out(),)}
        before = None if make_out is None else options["out"][0]
        result = call(options)
        assert before is None or result is before
        return result

    expected = outcome(lambda: run(lambda o: numpy_protocols.apply_ufunc(ufunc, "__call__", inputs, o)))
    for _ in range(3):
        got = outcome(lambda: run(lambda o: Tensor.__array_ufunc__(x, ufunc, "__call__", *inputs, **o)))
        assert got == expected, (ufunc, inputs)


CALLS = {
    "concatenate": lambda x: np.concatenate([x, x]),
    "concatenate with an array": lambda x: np.concatenate([x, x.numpy()], axis=1),
    "stack": lambda x: np.stack((x, x), axis=1),
    "where": lambda x: np.where(x > 0, x, 0),
    "where with a list": lambda x: np.where(x > 0, x, [1.0, 2.0, 3.0]),
    "sum": lambda x: np.sum(x, axis=0, keepdims=True),
    "sum in float64": lambda x: np.sum(x, dtype=np.float64),
    "sum into out": lambda x: np.sum(x, axis=0, out=td.zeros(3)),
    "sum into an array": lambda x: np.sum(x, axis=0, out=np.zeros(3)),
    "sum over no axis": lambda x: np.sum(x, axis=5),
    "sort": lambda x: np.sort(x, kind="stable"),
    "reshape": lambda x: np.reshape(x, (3, 2)),
    "reshape wrongly": lambda x: np.reshape(x, (3, 3)),
    "shape": lambda x: np.shape(x),
    "dot with a list": lambda x: np.dot(x, [1.0, 2.0, 3.0]),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "fft": lambda x: np.fft.fft(x),
    "trapezoid": lambda x: np.trapezoid(x),
    "isin": lambda x: np.isin(x, [1.0]),
    "copyto": lambda x: np.copyto(x.clone(), 1),
    "median": lambda x: np.median(x, axis=0, overwrite_input=True),
    "dot with an array": lambda x: np.dot(x.numpy(), x.T),
    "where with arrays": lambda x: np.where(x.numpy() > 0, x, np.zeros(3, np.float32)),
    "arrays in a list": lambda x: np.concatenate([x.numpy(), x, np.ones((1, 3))]),
    "an array of text in a list": lambda x: np.concatenate([x[0], np.array(["a"])]),
    "an array of objects": lambda x: np.where(x > 0, x, np.array([1, None, 2], object)),
    "big-endian": lambda x: np.where(x > 0, x, np.arange(3, dtype=">f4")),
    "a subclass of array": lambda x: np.where(x > 0, x, np.ma.masked_array([1.0, 2.0, 3.0])),
    "wrong shapes": lambda x: np.dot(np.ones(5), x),
    "outer": lambda x: np.outer(x[0].numpy(), x[1]),
    "searchsorted": lambda x: np.searchsorted(x[0], np.array([-1.0, 5.0])),
    "sum into a positional array": lambda x: np.sum(x, 0, None, np.zeros(3, np.float32)),
    "ravel": lambda x: np.ravel(x),
    "ravel in columns": lambda x: np.ravel(x, "F"),
    "reshape in columns": lambda x: np.reshape(x, (3, 2), order="F"),
    "reshape with a copy": lambda x: np.reshape(x, (3, 2), copy=True),
    "ndim": lambda x: np.ndim(x),
    "size": lambda x: np.size(x),
    "size of an axis": lambda x: np.size(x, 1),
    "size of an axis that does not exist": lambda x: np.size(x, 3),
    "shape of a list": lambda x: np.shape([x, x]),
    "size of a list": lambda x: np.size([x, x]),
    "no default": lambda x: np.max(x, axis=None, keepdims=np._NoValue),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_equal_python_path(name):
    x = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3) - 2)
    method = Tensor.__array_function__
    try:
        Tensor.__array_function__ = method.__wrapped__
        expected = outcome(lambda: CALLS[name](x))
    finally:
        Tensor.__array_function__ = method
    for _ in range(4):
        assert outcome(lambda: CALLS[name](x)) == expected


def test_arrays_that_are_written_are_returned():
    x = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    for dtype in (np.float32, np.float64, ">f4", np.int64):
        expected = "refused" if dtype is np.int64 else [3, 4, 5]
        for make in (lambda n, t: np.zeros(n, t), lambda n, t: np.zeros((n, 2), t)[:, 0]):
            for _ in range(4):
                out = make(3, dtype)
                assert describe_write(lambda o=out: operator.iadd(o, x[1]), out) == expected
                assert (
                    describe_write(lambda o=out: np.maximum(x[1], np.ones(3, "f4"), out=o), out) == expected
                )


def describe_write(call, out):
    try:
        assert call() is out
    except (TypeError, td.errors.ArgumentError):
        return "refused"
    return out.tolist()


def test_entries_take_the_calls():
    x = td.asarray([1.0, 2.0])
    for call, method in (
        (lambda: np.add(x, 1), Tensor.__array_ufunc__),
        (lambda: np.float32(2) * x, Tensor.__array_ufunc__),
        (lambda: np.ones(2) + x, Tensor.__array_ufunc__),
        (lambda: np.sum(x, axis=0), Tensor.__array_function__),
        (lambda: np.concatenate([x, x]), Tensor.__array_function__),
        (lambda: np.concatenate([np.ones(2), x]), Tensor.__array_function__),
        (lambda: np.dot(np.ones((2, 2)), x), Tensor.__array_function__),
        (lambda: np.shape(x), Tensor.__array_function__),
    ):
        for _ in range(4):
            call()
        before = method.stub.record.calls
        for _ in range(3):
            call()
        assert method.stub.record.calls == before + 3


def test_subclasses_traces_and_history_go_through_python():
    class Mine(td.Tensor):
        pass

    x = td.asarray([1.0, 2.0])
    for _ in range(4):
        np.add(x, 1), np.sum(x)
    assert td.jit(lambda v: np.sum(np.add(v, 1)))(x).item() == 5
    assert td.grad(lambda v: np.sum(np.multiply(v, v)))(x).tolist() == [2, 4]
    p = td.asarray([1.0, 2.0]).requires_grad_()
    (np.float32(3) * p).sum().backward()
    assert p.grad.tolist() == [3, 3]
    bound = x.__array_ufunc__
    assert bound(np.add, "__call__", x, 1).tolist() == [2, 3] and Tensor.__array_ufunc__ is not bound
    if hasattr(td.Tensor, "as_subclass"):
        assert type(np.add(x.as_subclass(Mine), 1)) is type(x.as_subclass(Mine) + 1)


def test_references_do_not_drift():
    x, array, scalar = td.asarray([1.0, 2.0]), np.ones(2, np.float32), np.float32(2)
    out, wrong, number = np.zeros(2, np.float32), np.zeros(3, np.float32), np.zeros((), np.float32)

    def run():
        np.add(x, array), scalar * x, np.concatenate([x, x]), np.sum(x, axis=0), np.add(x, 1, out=out)
        np.concatenate([array, x]), np.dot(array, x), np.shape(x), x[0] + scalar, np.sum(x, 0, None, number)
        for bad in (lambda: np.add(x, wrong), lambda: np.sum(x, axis=7), lambda: np.add(x, 1, out=wrong)):
            with pytest.raises((ValueError, IndexError)):
                bad()

    for _ in range(50):
        run()
    gc.collect()
    watched = [
        x,
        x._array,
        array,
        scalar,
        out,
        wrong,
        number,
        np.add,
        np.sum,
        numpy_protocols.known_ufuncs[np.add],
    ]
    before = [sys.getrefcount(one) for one in watched]
    for _ in range(500):
        run()
    gc.collect()
    assert all(abs(sys.getrefcount(one) - old) <= 5 for one, old in zip(watched, before, strict=True))


ONCE = np.arange(6, dtype=np.float32).reshape(2, 3)
LOCKED = np.arange(3.0)
LOCKED.flags.writeable = False
BUFFERS = {
    "contiguous": lambda: td.asarray(ONCE),
    "strided": lambda: td.asarray(ONCE)[:, ::-2],
    "0-d": lambda: td.asarray(np.array(2, np.int8)),
    "empty": lambda: td.zeros((0, 3)),
    "complex": lambda: td.asarray(ONCE + 1j).conj(),
    "read-only": lambda: td.asarray(LOCKED),
    "bfloat16": lambda: td.ones(3, dtype=td.bfloat16),
    "requires grad": lambda: td.ones(3).requires_grad_(),
    "detached": lambda: td.ones(3).requires_grad_().detach(),
    "number": lambda: td.sqrt(2.0),
    "meta": lambda: td.ones(3, device="meta"),
}


@pytest.mark.parametrize("make", BUFFERS.values(), ids=BUFFERS)
@pytest.mark.parametrize("state", [contextlib.nullcontext, td.no_grad])
def test_buffers_equal_those_of_the_slot_in_python(make, state):
    x, seen = make(), []
    for _ in range(4):
        np.asarray(td.ones(2))  # the entry of `numpy` installs that of the slot
    native = native_type.buffer_slot(Tensor).value
    for address in (fastpath.stubs().runtime.process.get(rt_base.Globals.get_buffer), native):
        native_type.buffer_slot(Tensor).value = address
        for export in (memoryview, np.asarray, np.array):
            try:
                with state():
                    result = export(x)
            except Exception as error:
                seen.append((type(error), str(error)))
                continue
            array = np.asarray(result)
            facts = array.dtype, array.shape, array.strides, array.flags.writeable
            seen.append((*facts, array.tobytes(), array.size and np.shares_memory(array, x._array)))
    assert seen[:3] == seen[3:] and native == fastpath.stubs().runtime.entry("get_buffer")


def test_references_of_buffers_and_indices_are_balanced():
    x, index, array = td.asarray(ONCE), td.asarray([1, 0]), np.arange(3)
    for _ in range(100):
        np.asarray(x), array[index]
    watched = [x, x._array, index, index._array]
    before = [sys.getrefcount(one) for one in watched]
    for _ in range(100_000):
        np.asarray(x)
        memoryview(x)
        assert array[index][0] == 1
    assert [sys.getrefcount(one) for one in watched] == before


def test_refused_indices_have_the_error_of_python():
    for x in (td.arange(3), td.zeros((2, 0), dtype=td.int8), td.asarray([1.0]), td.asarray(True)):
        expected = outcome(lambda x=x: vars(Tensor)["__index__"].__wrapped__(x))
        for _ in range(4):
            assert outcome(lambda x=x: operator.index(x)) == expected and isinstance(expected, tuple)
