"""Native entries on NumPy's arrays and scalars, on lists and numbers: what the Python path returns."""

import gc
import operator
import sys
from functools import partial

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_harness import needs_native
from rotation import share_each_commit
from tandem import config

pytestmark = needs_native

DTYPES = [np.float32, np.float64, np.int64, np.int8, np.uint16, np.bool_, np.complex64]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        yield


def outcome(call):
    """The type, dtype, layout and elements of a result, or the class of the exception."""
    with np.errstate(all="ignore"):
        try:
            result = call()
        except Exception as error:
            return type(error)
    if not isinstance(result, td.Tensor):
        return type(result), result
    array = result.detach().numpy().copy()
    if array.dtype.kind in "fc":
        array[np.isnan(array)] = np.nan  # of one sign
    strides = [step for step, size in zip(result.strides, result.shape, strict=True) if size > 1]
    return result.dtype, result.shape, strides, result.requires_grad, array.tobytes()


def foreign(dtype):
    """Objects that an entry converts, and some that it must leave to Python."""
    base = (np.arange(24).reshape(4, 6) % 5).astype(dtype)
    locked = base[0, :4].copy()
    locked.setflags(write=False)
    unaligned = np.frombuffer(b"\0" + base[0, :4].tobytes(), np.uint8)[1:].view(dtype)
    return {
        "array": base[0, :4].copy(),
        "matrix": base[:, :4],
        "strided": base[::2, ::3].T[:, :1],
        "0d": base[1, 2].reshape(()),
        "empty": base[:0, :4],
        "locked": locked,
        "unaligned": unaligned,
        "swapped": base[0, :4].astype(base.dtype.newbyteorder()),
        "scalar": base.dtype.type(3),
        "object": base[0, :4].astype(object),
        "text": np.array(["a", "b"]),
    }


OPERATORS = {
    "add": td.add, "mul": td.mul, "div": td.div, "pow": td.pow, "maximum": td.maximum, "lt": td.lt, "eq": td.eq,
    "logical_and": td.logical_and, "remainder": td.remainder, "atan2": td.atan2, "matmul": td.matmul,
}  # fmt: skip


@pytest.mark.parametrize("name", share_each_commit(OPERATORS, 3))
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_operands_of_numpy(name, dtype):
    function = OPERATORS[name]
    for own in (td.float32, td.int64, td.bool):
        x = (
            td.asarray(np.arange(4), dtype=own)
            if own is not td.bool
            else td.asarray([True, False, True, True])
        )
        for kind, other in foreign(dtype).items():
            for args in ((x, other), (other, x)):
                want = outcome(lambda args=args: function.operator(*args))
                for _ in range(4):
                    assert outcome(lambda args=args: function(*args)) == want, (kind, own)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_functions_of_arrays_of_numpy(dtype):
    for kind, x in foreign(dtype).items():
        for function, rest in (
            (td.sum, ()), (td.exp, ()), (td.neg, ()), (td.cumsum, (0,)), (td.max, ()), (td.astype, (td.float64,)),
            (td.sort, ()), (td.softmax, (-1,)), (td.take, (np.array([0, 0]),)),
        ):  # fmt: skip
            operator_ = getattr(function, "function", function).operator
            want = outcome(lambda x=x, o=operator_, rest=rest: o(x, *rest))
            for _ in range(4):
                got = outcome(lambda x=x, f=function, rest=rest: f(x, *rest))
                assert got == want, (kind, function)


@pytest.mark.parametrize("symbol", [operator.add, operator.mul, operator.sub, operator.truediv, operator.lt])
def test_symbols_with_operands_of_numpy(symbol):
    x = td.asarray([1.0, 2.0, 3.0, 4.0])
    for other in (
        np.arange(4.0),
        np.float64(2),
        np.int64(3),
        np.float32(0.5),
        np.arange(4, dtype=np.float32),
    ):
        want = outcome(lambda other=other: symbol(x, td.asarray(other)))
        for _ in range(4):
            assert outcome(lambda other=other: symbol(x, other)) == want


def test_in_place_operators_take_arrays_of_numpy():
    for other in (np.arange(4, dtype=np.float32), np.float32(2), np.arange(4.0)):
        mine, theirs = td.ones(4), td.ones(4)
        for _ in range(4):
            assert outcome(partial(mine.add_, other)) == outcome(partial(theirs.add_, td.asarray(other)))
            assert mine.tolist() == theirs.tolist()


def test_calls_with_arrays_of_numpy_are_recorded():
    x, w = td.asarray([1.0, 2.0, 3.0], requires_grad=True), np.array([2.0, 3.0, 4.0], np.float32)
    for _ in range(5):
        x.grad = None
        ((x * w + np.float32(1)) * x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * w * x.detach().numpy() + 1)
        assert not (x.detach() * w).requires_grad


# --- keys ----------------------------------------------------------------------------------------------------------

METHODS = [td.Tensor.__getitem__, td.Tensor.__setitem__]
SUBSCRIPT, ASSIGN = (getattr(method, "__wrapped__", method) for method in METHODS)


def arrays_of_positions(size):
    inside = st.integers(-size, size - 1)
    lists = st.lists(inside, min_size=0, max_size=4)
    masks = st.lists(st.booleans(), min_size=size, max_size=size)
    return st.one_of(
        inside,
        inside.map(np.int64),
        inside.map(np.int8),
        lists,
        lists.map(lambda v: np.array(v, np.int64)),
        lists.map(lambda v: np.array([v, v], np.int32)),
        lists.map(lambda v: td.asarray(np.array(v, np.int64))),
        masks,
        masks.map(np.array),
        masks.map(lambda v: td.asarray(np.array(v))),
        st.slices(size),
        st.sampled_from(
            [None, ..., slice(None), np.array(1), np.float32(1), "x", [1.0], np.bool_(True), size + 1]
        ),
    )


@st.composite
def keys(draw, shape):
    items = [draw(arrays_of_positions(shape[min(k, len(shape) - 1)])) for k in range(draw(st.integers(1, 3)))]
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


SHAPES = [(3,), (3, 4), (2, 3, 4), (1, 5)]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_keys_select_what_the_python_method_selects(data):
    shape = data.draw(st.sampled_from(SHAPES))
    x = td.asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    if data.draw(st.booleans()):
        x = x.mT if x.ndim > 1 else x[::-1]
    key = data.draw(keys(x.shape))
    want = outcome(lambda: SUBSCRIPT(x, key))
    for _ in range(2):
        assert outcome(lambda: x[key]) == want, key


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_assignments_write_what_the_python_method_writes(data):
    shape = data.draw(st.sampled_from(SHAPES))
    mine, theirs = (td.asarray(np.zeros(shape, np.float32)) for _ in range(2))
    key = data.draw(keys(shape))
    values = [1.5, 2, True, [1.0, 2.0, 3.0], np.arange(3.0), np.float32(7), np.arange(4, dtype=np.float32)]
    value = data.draw(
        st.sampled_from([*values, [[1.0], [2.0]], np.float64(0.5), np.int64(3), "x", [1, 2], 1j])
    )
    want = outcome(lambda: ASSIGN(theirs, key, value))
    got = outcome(lambda: operator.setitem(mine, key, value))
    assert got == want, (key, value)
    assert mine.tolist() == theirs.tolist(), (key, value)


def test_selected_elements_are_copies():
    x = td.asarray(np.arange(12.0).reshape(3, 4))
    for key in (
        [0, 1],
        np.array([0, 1]),
        ([0, 1], [1, 2]),
        (slice(None), [0, 1]),
        np.array([True, False, True]),
    ):
        for _ in range(4):
            result = x[key]
            result += 100
        assert x.sum().item() == 66
    x[np.int64(1)] += 1
    assert x.sum().item() == 70


def test_recorded_keys_have_gradients():
    x = td.asarray(np.arange(6.0).reshape(2, 3), requires_grad=True)
    for key in (
        [0, 0],
        np.array([1, 0]),
        ([0, 1], [1, 1]),
        np.array([[True, False, True], [False, True, False]]),
    ):
        for _ in range(4):
            x.grad = None
            (x[key] * 2).sum().backward()
        wanted = np.zeros((2, 3))
        np.add.at(wanted, key if not isinstance(key, list) else np.array(key), 2.0)
        np.testing.assert_array_equal(x.grad.numpy(), wanted)


# --- asarray -------------------------------------------------------------------------------------------------------

SELF = [1]
SELF.append(SELF)
OBJECTS = [
    1, 2.5, True, 3j, -(2**63), 2**63, 2**70, float("nan"), 1e300, [], [[]], [1, 2], [1, 2.5], [True, 2], [True, False],
    [1, 2j], (1, 2), [(1, 2), [3, 4]], [[1, 2], [3]], [1, [2]], [[1], 2], [1, "a"], [None], None, "text", b"bytes",
    [2**63], [1, 2**63], [1e300, 1], SELF, [[[[[[[[[1]]]]]]]]], [[[[[[[[1]]]]]]]], np.float32(2), np.float64(2),
    np.int8(3),
    np.bool_(True), np.complex128(1j), np.str_("x"), np.arange(3), np.arange(3.0)[::-1], np.array(2), np.array(["a"]),
    np.arange(3).astype(">i4"), np.zeros((0, 3)), np.ones((2, 2), np.float16), np.array([None]), [np.float32(1), 2.0],
    [np.arange(2), np.arange(2)], range(3), {1: 2}, {1, 2}, object(), int, [[1.0, 2.0], (3, 4)], [0.1] * 300,
]  # fmt: skip


@pytest.mark.parametrize("default", [td.float32, td.float64])
def test_asarray_makes_what_the_python_function_makes(default):
    before = td.get_default_dtype()
    td.set_default_dtype(default)
    try:
        for value in [*OBJECTS, td.ones(3), td.ones(3).requires_grad_(), td.sin(0.5), td.ones(2).detach()]:
            want = outcome(lambda value=value: td.asarray.__wrapped__(value))
            for _ in range(3):
                assert outcome(lambda value=value: td.asarray(value)) == want, value
    finally:
        td.set_default_dtype(before)


def test_asarray_shares_the_memory_of_arrays_only():
    array, tensor = np.arange(3.0), td.ones(3)
    for _ in range(4):
        assert np.shares_memory(td.asarray(array).numpy(), array)
        assert td.asarray(tensor) is tensor
        assert td.asarray(array, copy=True).numpy() is not array
        assert td.asarray([1, 2], dtype=td.float64).dtype is td.float64


def test_references_do_not_drift():
    x, array, scalar, numbers = td.ones((3, 4)), np.ones(4, np.float32), np.float32(2), [0, 1]
    watched = [x, array, scalar, numbers, None, td.Tensor, array.dtype, 1]

    def run():
        for value in (array, scalar, numbers, 2.5, [[1, 2], [3, 4]], [1, "a"], [2**70]):
            outcome(lambda value=value: td.asarray(value))
        (
            x * array,
            x * scalar,
            array + x,
            x[numbers],
            x[numbers, numbers],
            x[:, np.int64(1)],
            x[np.array([0, 2])],
        )
        x[numbers] = array
        x[0] = [1.0, 2.0, 3.0, 4.0]
        outcome(lambda: x[[5]])
        outcome(lambda: x[[0, 9], [1, 1]])

    def count():
        for _ in range(2000):
            run()
        gc.collect()
        return [sys.getrefcount(value) for value in watched]

    count()  # compiles what is called often
    before = count()
    assert max(abs(a - b) for a, b in zip(before, count(), strict=True)) <= 12


def test_each_failing_allocation_is_a_memory_error():
    hooks = pytest.importorskip("_testcapi")
    x, array, numbers = td.ones((3, 4)), np.ones(4, np.float32), [0, 1]

    def run():
        x * array, x * np.float32(2), x[numbers], x[numbers, numbers], td.asarray([1.0, 2.0]), td.asarray(2.5)
        x[numbers] = array

    for _ in range(5):
        run()
    failures = 0
    for k in range(120):
        gc.collect()
        hooks.set_nomemory(k, k + 1)
        try:
            run()
        except MemoryError:
            failures += 1
        finally:
            hooks.remove_mem_hooks()
    assert failures >= 5
    run()


def test_results_do_not_share_the_memory_of_arrays():
    x, array = td.asarray(np.arange(4.0)), np.arange(4.0)
    large = np.ones(100_000)
    for _ in range(4):
        for call in (
            lambda: x + array,
            lambda: array + x,
            lambda: td.add(array, array),
            lambda: td.abs(array),
        ):
            assert not np.shares_memory(call()._array, array)
        total = np.arange(100_000.0) + td.asarray(large) * np.full(100_000, 2.0) - large
        assert total[7].item() == 8 and large[7] == 1
        assert (np.float64(2) * x + np.array(1.0)).tolist() == [1, 3, 5, 7]
        masked = np.ma.masked_array(array, array > 1)
        assert outcome(lambda m=masked: td.add(x, m)) == outcome(lambda m=masked: td.add(x, np.asarray(m)))
