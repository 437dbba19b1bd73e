"""The native entry of jitted functions: views, copies, results that occur twice, written and strided arguments."""

import gc
import sys

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from native_calls import check_native, native_calls
from tandem import config

pytestmark = needs_native


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        f = td.jit(lambda x: x + 1)
        for _ in range(3):
            f(td.ones(2))
        yield


def matrix(*shape, dtype=np.float32):
    return td.asarray(np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype))


def reasons(f):
    return [record for s in f._specializations for record in s.records.values() if isinstance(record, str)]


def run_twice(x):
    y = x * 2
    return y, {"again": y}, [y]


RESULTS = {
    "argument": lambda x: x,
    "argument twice": lambda x: (x, {"x": x}),
    "number": lambda x: (x, 3.0, None, "text"),
    "slice": lambda x: x[1:3],
    "row": lambda x: x[1],
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(-1),
    "flip": lambda x: x[::-1, ::2],
    "chain of views": lambda x: x[1:].T[::2].reshape(2, -1, 1),
    "keywords": lambda x: x.squeeze(axis=None).unflatten(0, (2, 2)) if x.shape[0] == 4 else x,
    "view and result": lambda x: (x[0], x + 1),
    "part": lambda x: (x + 1)[1:],
    "column": lambda x: (x + 1)[:, 1],
    "strided part": lambda x: (x * 2)[::2, ::-1],
    "element": lambda x: (x + 1)[1, 2],
    "parts": lambda x: td.split(x + 1, 2),
    "rows": lambda x: (x * 2).unbind(),
    "whole and part": lambda x: ((y := x + 1), y[1:], y.T),
    "part and whole": lambda x: ((y := x + 1)[1:], y.T, y),
    "twice": run_twice,
    "same as argument": lambda x: (x * 1, x),
    "constant": lambda x: (x + 1, td.arange(3)),
    "only constants": lambda x: (td.arange(3), td.zeros(2)),
    "broadcast": lambda x: td.broadcast_to(x + 1, (2, *x.shape)),
    "broadcast argument": lambda x: td.broadcast_to(x, (2, *x.shape)),
    "empty": lambda x: (x + 1)[:0],
    "integers": lambda x: td.split(td.argsort(x, axis=1), 2),
}


def memory(x):
    return np.asarray(x)


def sharing(tree, x):
    """Which tensors of a result share memory with the argument and with each other, and which are one object."""
    leaves = [leaf for leaf in td.tree.leaves((tree, x)) if isinstance(leaf, td.Tensor)]
    shares = [[np.shares_memory(memory(a), memory(b)) for a in leaves] for b in leaves]
    return shares, [[a is b for a in leaves] for b in leaves], [leaf.strides for leaf in leaves]


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "array", "strided array"])
def test_results_are_those_of_python_calls(name, layout):
    base = matrix(8, 8)
    x = {
        "contiguous": lambda: matrix(4, 4),
        "transposed": lambda: matrix(4, 4).T,
        "strided": lambda: base[::2, ::2],
        "array": lambda: np.ones((4, 4)),
        "strided array": lambda: np.ones((8, 8))[::2, ::2],
    }[layout]()
    f = td.jit(RESULTS[name])
    cold = f(x)
    hot = check_native(f, x) if isinstance(x, td.Tensor) or not reasons(f) else f(x)
    eager = RESULTS[name](td.asarray(x))
    for result in (cold, hot):
        for a, b in zip(td.tree.leaves(result), td.tree.leaves(eager), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert sharing(hot, x) == sharing(cold, x)


def test_a_view_of_an_argument_is_written_through():
    f, x = td.jit(lambda x: (x[1], x.sum())), matrix(3, 2)
    for k in range(4):
        row, _ = f(x)
        row += 1
        assert x[1].tolist() == [4.0 + k, 5.0 + k] and x.storage().version == k + 1


def test_parts_of_a_result_are_independent():
    f, x = td.jit(lambda x: ((y := x * 2), y[1:], y)), matrix(4)
    for _ in range(3):
        whole, part, again = f(x)
        part += 100
        assert whole.tolist() == [2.0, 4.0, 6.0, 8.0] and again is whole


def test_detached_tensors_are_plain_arguments():
    f, p = td.jit(lambda x: x * 2), matrix(3).requires_grad_()
    check_native(f, p.detach())
    assert f(p).requires_grad and not f(p.detach()).requires_grad


def test_detached_inside_tensors_are_native_arguments():
    f = td.jit(lambda x, y: (x.detach() * y, td.argsort(x)))
    p, y = matrix(3).requires_grad_(), matrix(3)
    check_native(f, p, y)
    product, order = f(p, y)
    assert not product.requires_grad and order.tolist() == [0, 1, 2]
    assert f(p.detach(), y)[0].tolist() == product.tolist()
    assert f(p, y.requires_grad_())[0].requires_grad


# --- writes --------------------------------------------------------------------------------------------------------


def add_and_return(x, y):
    x += y
    return x


def set_row(x, y):
    x[0] = 7


def write_twice(x, y):
    x *= 2
    x[1:] += y[1:]
    return x.sum(), x[0], x


def write_both(x, y):
    x += 1
    y -= x
    return {"difference": x - y}


def copy_argument(x, y):
    x[:] = y


def exchange(x, y):
    x[:], y[:] = y.clone(), x.clone()


def write_expanded(x, y):
    x[:] = 3


def write_transposed(x, y):
    x[:] = (y * 2).T


def loop(x, y):
    for k in range(3):
        x[k % 2] += y[0]


WRITES = (add_and_return, set_row, write_twice, write_both, copy_argument, exchange, write_expanded)
WRITES = [*WRITES, write_transposed, loop]


@pytest.mark.parametrize("function", WRITES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128])
def test_writes_are_those_of_eager_calls(function, dtype):
    f = td.jit(function)
    mine, theirs = [(matrix(2, 2, dtype=dtype), matrix(2, 2, dtype=dtype) * 3) for _ in range(2)]
    views = [x.T for x in mine]
    for k in range(5):
        got, want = f(*mine), function(*theirs)
        for a, b in zip(td.tree.leaves((got, mine)), td.tree.leaves((want, theirs)), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert np.array_equal(views[0].numpy(), mine[0].numpy().T)
        assert mine[0].storage().version == k + 1
    assert native_calls(f) >= 3 or function is exchange, reasons(f)


def test_read_only_arguments_are_not_written():
    f = td.jit(set_row)
    x, y = matrix(2, 2), matrix(2, 2)
    check_native(f, x, y)
    locked = np.ones((2, 2), np.float32)
    locked.setflags(write=False)
    for _ in range(3):
        with pytest.raises(td.errors.UnsupportedError, match="read-only"):
            f(td.asarray(locked, copy=False), y)
    assert locked.sum() == 4


@pytest.mark.parametrize("pair", [lambda x: (x, x), lambda x: (x[:2], x[1:3]), lambda x: (x[:2], x[::2][:2])])
def test_written_arguments_that_share_memory_run_as_eager_calls(pair):
    f = td.jit(write_both)
    for _ in range(3):
        f(matrix(2, 2), matrix(2, 2))
    assert native_calls(f)
    for _ in range(3):
        mine, theirs = matrix(4, 2), matrix(4, 2)
        f(*pair(mine)), write_both(*pair(theirs))
        assert mine.tolist() == theirs.tolist()


def test_arguments_that_share_memory_may_be_read():
    f, x = td.jit(lambda x, y, z: (y.add_(1), x + z)), matrix(4)
    for _ in range(3):
        f(x, matrix(4), x)
    assert native_calls(f)
    assert f(x[:2], matrix(2), x[:2])[1].tolist() == [2.0, 4.0]


def test_writes_before_a_failed_check_remain():
    def program(x, y):
        x += 1
        td.check(x.sum() < 20, "too large")
        x += 1

    f = td.jit(program)
    mine, theirs = matrix(2, 2), matrix(2, 2)
    for _ in range(4):
        messages = []
        for call, x in ((f, mine), (program, theirs)):
            try:
                call(x, x.clone())
            except Exception as error:
                messages.append(type(error))
        assert mine.tolist() == theirs.tolist() and len({*messages}) <= 1


def test_captured_states_of_generators_advance_as_in_python_calls():
    def draw():
        td.manual_seed(3) if hasattr(td, "manual_seed") else None
        f = td.jit(lambda x: td.nn.functional.dropout(x, 0.5))
        return [f(matrix(16)).tolist() for _ in range(6)], f

    hot, f = draw()
    assert native_calls(f) >= 3
    with config.override(hot_calls=10**9):
        cold, _ = draw()
    if hasattr(td, "manual_seed"):
        assert hot == cold
    assert len({tuple(row) for row in hot}) > 3


def test_dropout_in_a_checkpointed_function_draws_the_same_mask_again():
    drop = td.jit(lambda x: td.nn.functional.dropout(x, 0.5))
    for _ in range(4):
        drop(matrix(64))
    x = matrix(64).requires_grad_()
    for _ in range(3):
        x.grad = None
        y = td.checkpoint(lambda x: drop(x) * x)(x)
        y.sum().backward()
        mask = (y.detach() != 0).astype(td.float32)
        np.testing.assert_allclose(x.grad.numpy(), (4 * x.detach() * mask).numpy())


# --- references and memory -------------------------------------------------------------------------------------------


def mixed(x, y):
    x += y
    z = y * 2
    return z, z[1:], y[0], y, (z, td.arange(3))


def test_references_do_not_drift():
    f, x, y = td.jit(mixed), matrix(3, 3), matrix(3, 3).T
    watched = [x, y, x._array, y._array, None, td.Tensor, x._array.dtype]
    for _ in range(20):
        f(x, y)
    gc.collect()
    before = [sys.getrefcount(value) for value in watched]
    for _ in range(20_000):
        f(x, y)
    gc.collect()
    after = [sys.getrefcount(value) for value in watched]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) <= 10
    assert native_calls(f) >= 20_000


def test_each_failing_allocation_is_a_memory_error():
    hooks = pytest.importorskip("_testcapi")
    f, y = td.jit(mixed), matrix(3, 3).T
    f(matrix(3, 3), y), f(matrix(3, 3), y)
    failures = 0
    for k in range(80):
        x = matrix(3, 3)
        gc.collect()
        hooks.set_nomemory(k, k + 1)
        try:
            f(x, y)
        except MemoryError:
            failures += 1
        finally:
            hooks.remove_mem_hooks()
        assert x.tolist() in (matrix(3, 3).tolist(), (matrix(3, 3) + y).tolist())
    assert failures >= 5


# --- numbers ---------------------------------------------------------------------------------------------------------

SCALARS = [
    np.float32(2.5),
    np.float64(-1.5),
    np.int64(7),
    np.int8(-3),
    np.uint16(9),
    np.bool_(True),
    np.float16(0.5),
]
SCALARS += [np.complex64(1 + 2j), np.complex128(2j)]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: type(s).__name__)
def test_numpy_scalars_are_native_arguments(scalar):
    f = td.jit(lambda x, a: (x * a, a + 1))
    x = matrix(3)
    for value in (scalar, type(scalar)(1), type(scalar)(0)):
        got, want = check_native(f, x, value), (x * td.asarray(value), td.asarray(value) + 1)
        for a, b in zip(got, want, strict=True):
            assert a.dtype is b.dtype
            np.testing.assert_array_equal(a.numpy(), b.numpy())

    class Own(type(scalar) if not isinstance(scalar, np.bool_) else np.float64):  # its layout is unknown
        pass

    np.testing.assert_array_equal(f(x, Own(2))[0].numpy(), (x * td.asarray(Own(2))).numpy())


def test_scalars_of_ml_dtypes_keep_their_values():
    f, x = td.jit(lambda x, a: x * a), matrix(3).astype(td.bfloat16)
    for _ in range(4):
        assert f(x, td.bfloat16.np.type(2.0)).tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("number", [0.3, 2, True])
def test_weak_scalars_are_native_arguments_and_results(number):
    f = td.jit(lambda x, a: (x * a, a, a * 2))
    x = matrix(3)
    for value in (number, type(number)(1)):
        weak = td.positive(value) if number is not True else td.logical_not(not value)
        cold = f(x, weak)
        hot = check_native(f, x, weak)
        for a, b in zip(hot, cold, strict=True):
            assert type(a) is type(b) and np.asarray(a).tolist() == np.asarray(b).tolist()
            assert not isinstance(a, td.Tensor) or (a + matrix(1)).dtype is (b + matrix(1)).dtype
    assert f(x, number)[0].dtype is td.float32


@pytest.mark.parametrize("number", [1.5, 3, -(2**40), 2**62])
def test_numbers_that_python_derives_are_results(number):
    f = td.jit(lambda x, a: (x, a * 2, {"a": a + 1, "same": a}))
    for _ in range(4):
        result = f(matrix(2), number)
        assert [*map(type, result[1:])] == [type(number), dict]
        assert result[1:] == (number * 2, {"a": number + 1, "same": number})


def test_functions_of_the_package_need_no_guards_on_its_variables():
    f = td.jit(td.softmax)
    assert check_native(f, matrix(2, 3)).shape == (2, 3)
    (specialization,) = f._specializations
    assert specialization.externals == ()


COMPLEX = {
    "product": lambda x, c: x * c + c,
    "power": lambda x, c: x**c,
    "where": lambda x, c: td.where(x.real > 1, x, c),
    "chain": lambda x, c: ((x * c).real, td.abs(x - c), c * -x),
    "python arithmetic": lambda x, c: x * (c * 2 + 1),
    "number itself": lambda x, c: (c, x + c),
    "loop": lambda x, c: td.fori_loop(0, 3, lambda i, z: z * c + x, x * (1 + 0j)),
}


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64, np.complex128])
def test_complex_numbers_are_arguments(name, dtype):
    f, x = td.jit(COMPLEX[name]), matrix(3, dtype=dtype)
    for number in (2j, 1 - 0.5j, complex(0.1, -0.0), 1e300 + 0j):
        with np.errstate(all="ignore"):
            want = COMPLEX[name](x, number)
            for _ in range(3):
                for a, b in zip(td.tree.leaves(f(x, number)), td.tree.leaves(want), strict=True):
                    assert type(a) is type(b) and getattr(a, "dtype", None) is getattr(b, "dtype", None)
                    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
    assert native_calls(f) or name in ("python arithmetic", "loop"), reasons(f)
    assert f._specializations[0].executable.lowered.native


@pytest.mark.parametrize("strided", [False, True])
def test_written_arguments_that_share_memory_with_arrays_of_numpy_run_as_eager_calls(strided):
    def program(x, y):
        x += 1
        return y * 2

    f = td.jit(program)
    for _ in range(4):
        f(matrix(4), np.ones((4, 2), np.float32)[:, 0] if strided else np.ones(4, np.float32))
    assert native_calls(f), reasons(f)
    for _ in range(3):
        memory = np.arange(8, dtype=np.float32)
        tensor, array = td.asarray(memory[:4]), memory[::2] if strided else memory[:4]
        result = f(tensor, array)
        np.testing.assert_array_equal(np.asarray(result), array * 2)  # the function itself has run


def test_results_are_read_before_arguments_are_written():
    def program(x):
        before, part = x * 1, x[1:] + 0
        x += 1
        return before, part, x[0]

    f = td.jit(program)
    for k in range(5):
        x = matrix(3) + k
        before, part, row = f(x)
        assert before.tolist() == [1.0 + k, 2.0 + k, 3.0 + k] and part.tolist() == [2.0 + k, 3.0 + k]
        assert row.item() == 2.0 + k and x.tolist() == [2.0 + k, 3.0 + k, 4.0 + k]
