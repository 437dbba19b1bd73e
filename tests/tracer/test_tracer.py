"""Tracing: recorded nodes, weak scalars, in-place operators, and errors for reading the data of traced values."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.jit.api import jit
from tandem.registry.dispatch.keys import DispatchKey
from tandem.registry.dispatch.state import state


def tensor(*shape, dtype=np.float32):
    return td.asarray(np.arange(1, 1 + math.prod(shape)).reshape(shape).astype(dtype))


def nodes(fn, *args):
    return [node.op.schema.name for node in jit(fn).trace(*args).ir.nodes]


def same(fn, *args):
    """The jitted function gives what the function gives: values, dtype, shape."""
    wanted, found = fn(*args), jit(fn)(*args)
    assert type(found) is type(wanted)
    if isinstance(wanted, td.Tensor):
        assert found.dtype is wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    else:
        assert found == wanted


# --- what is recorded -------------------------------------------------------------------------------------


def test_records_calls_in_order():
    assert nodes(lambda x: td.exp(x * 2.0) + x, tensor(3)) == ["mul", "exp", "add"]


def test_creation_is_recorded():
    assert nodes(lambda x: td.zeros((3,)) + x, tensor(3))[1:] == ["add"]


def test_composites_decompose():
    assert "softmax" not in nodes(lambda x: td.softmax(x, -1), tensor(2, 3))


def test_source_line_of_each_node():
    graph = jit(lambda x: x + 1).trace(tensor(2)).ir
    assert graph.nodes[0].source.rpartition(":")[0] == __file__


def test_captured_tensor_is_one_value():
    w = tensor(3)
    graph = jit(lambda x: (x + w) * w).trace(tensor(3)).ir
    assert len(graph.captured) == 1
    assert graph.constants[0] is w


def test_state_is_restored_after_a_failure():
    before = state.include, state.exclude
    with pytest.raises(ZeroDivisionError):
        jit(lambda x: 1 / 0)(tensor(2))
    assert (state.include, state.exclude) == before
    assert tensor(2)._keys & 1 << DispatchKey.Tracer == 0


# --- scalars ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint8, np.int64, np.float32, np.float64, np.complex64]
)
@pytest.mark.parametrize("scalar", [True, 2, 2.5, 1j], ids=str)
def test_promotion_of_scalars_is_that_of_eager(dtype, scalar):
    x = td.asarray(np.ones(3, dtype))
    same(lambda x, a: x * a, x, scalar)
    same(lambda x, a: a * x, x, scalar)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, a, b: x * (a + b),
        lambda x, a, b: x * (a / b),
        lambda x, a, b: x + (a // b) - a % b,
        lambda x, a, b: x * (2**a),
        lambda x, a, b: x * -a + abs(b),
        lambda x, a, b: td.where(x > 1, x, a - b),
        lambda x, a, b: td.where(td.asarray([True, False, True]), x, float.__rsub__(1.5, 3.0) * b),
        lambda x, a, b: a + b,
        lambda x, a, b: a < b,
        lambda x, a, b: a,
    ],
)
def test_arithmetic_among_scalars_is_pythons(fn):
    for a, b in ((3, 4), (3.25, 4), (7, 2.5), (20, 10**25)):
        same(fn, tensor(3), a, b)


def test_scalar_is_passed_at_run_time():
    f = jit(lambda x, a: x * (a + 1))
    assert [f(tensor(1), a).tolist() for a in (1, 2, 3)] == [[2.0], [3.0], [4.0]]
    assert f.cache_info()[:2] == (2, 1)


def test_scalar_expression_that_changes_type_retraces():
    f = jit(lambda x, n: x * 2**n)
    i = td.asarray(np.ones(2, np.int32))
    assert f(i, 3).dtype is i.dtype
    assert f(i, -1).tolist() == [0.5, 0.5]
    assert f(i, 4).tolist() == [16, 16]
    assert f.cache_info().specializations == 2


def test_division_by_zero_raises_as_python_does():
    f = jit(lambda x, a: x * (1 / a))
    f(tensor(2), 2)
    with pytest.raises(ZeroDivisionError):
        f(tensor(2), 0)


@pytest.mark.parametrize("number", [127, -128])
def test_integer_that_fits(number):
    same(lambda x, a: x + a, td.asarray(np.zeros(2, np.int8)), number)


@pytest.mark.parametrize("number", [128, -129, 2**80])
def test_integer_out_of_range(number):
    f = jit(lambda x, a: x + a)
    x = td.asarray(np.zeros(2, np.int8))
    f(x, 1)
    with pytest.raises(OverflowError, match="-128 to 127"):
        f(x, number)
    assert f.cache_info().specializations == 1


def test_derived_integer_out_of_range():
    f = jit(lambda x, a: x + a * 2)
    with pytest.raises(OverflowError):
        f(td.asarray(np.zeros(2, np.int8)), 100)


def test_asarray_of_a_traced_scalar():
    same(lambda x, a: td.asarray(a) * x, tensor(3), 2.5)
    same(lambda x, a: td.asarray([a, 1, a + 1]) + x, tensor(3), 2)
    same(lambda x, a: td.full((3,), a) + x, tensor(3), 2)


def test_numpy_scalars_are_strong():
    same(lambda x, a: x * a, tensor(3), np.float64(2))


@pytest.mark.parametrize(
    "ask",
    [
        lambda x, a: x if a else -x,
        lambda x, a: x * math.sqrt(a),
        lambda x, a: x[int(a)],
        lambda x, a: x.sum(axis=a),
        lambda x, a: td.zeros((a,)),
        lambda x, a: td.arange(a),
        lambda x, a: td.arange(0, 10, a),
        lambda x, a: [x for _ in range(a)],
        lambda x, a: x.sum(keepdims=a > 1),
        lambda x, a: np.asarray(a),
    ],
)
def test_value_of_a_scalar_is_not_there(ask):
    with pytest.raises(errors.ConcretizationError, match="static_argnames"):
        jit(ask)(tensor(3, 3), 1)


# --- asking for data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda x: 1 if x.sum() > 0 else 2, "td.where"),
        (lambda x: x.sum() > 0 and x, "td.where"),
        (lambda x: float(x.sum()), "float"),
        (lambda x: int(x.sum()), "int"),
        (lambda x: complex(x.sum()), "complex"),
        (lambda x: x.sum().item(), "item"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: x.numpy(), "numpy"),
        (lambda x: np.asarray(x), "NumPy"),
        (lambda x: range(x.sum()), "index"),
        (lambda x: pickle.dumps(x), "pickling"),
    ],
)
def test_concretization(ask, what):
    with pytest.raises(errors.ConcretizationError, match=what) as caught:
        jit(ask)(tensor(2, 3))
    assert "What to do" in str(caught.value)
    assert __file__ in str(caught.value)


def test_while_on_a_traced_value():
    def loop(x):
        while x.sum() < 10:
            x = x + 1
        return x

    with pytest.raises(errors.ConcretizationError, match=r"the result of lt at .*test_tracer"):
        jit(loop)(tensor(2))


def test_error_names_the_argument():
    with pytest.raises(errors.ConcretizationError, match=r"the argument params\['w'\] of f"):

        def f(params):
            return float(params["w"])

        jit(f)({"w": tensor(1)})


def test_len_and_iteration_unroll_the_first_axis():
    same(lambda x: sum((row * 2 for row in x), td.zeros((3,))), tensor(2, 3))
    assert jit(lambda x: len(x))(tensor(2, 3)) == 2
    with pytest.raises(TypeError, match="0-d"):
        jit(lambda x: len(x.sum()))(tensor(2))
    with pytest.raises(TypeError, match="0-d"):
        jit(lambda x: list(x.sum()))(tensor(2))


def test_traced_values_print_without_data():
    seen = []
    jit(lambda x: seen.append(f"{x} {x!r} {x:>30}"))(tensor(2, 3))
    assert "traced float32[2,3]" in seen[0]


def test_shape_and_dtype_are_known():
    def f(x):
        assert (x.shape, x.ndim, x.size, x.dtype, x.device) == ((2, 3), 2, 6, tensor(1).dtype, "cpu")
        assert not x.requires_grad
        return x

    jit(f)(tensor(2, 3))


# --- leaks ------------------------------------------------------------------------------------------------


def leak():
    kept = []
    jit(lambda x: kept.append(x * 2))(tensor(3))
    return kept[0]


@pytest.mark.parametrize(
    "use",
    [
        lambda v: v + 1,
        lambda v: td.exp(v),
        lambda v: bool(v),
        lambda v: v.numpy(),
        lambda v: jit(lambda x: x + v)(tensor(3)),
        lambda v: jit(lambda x: x)(v),
        lambda v: jit(lambda x: v)(tensor(3)),
        lambda v: v.add_(1),
    ],
)
def test_leaked_tracer(use):
    value = leak()
    with pytest.raises(errors.LeakedTracerError, match=r"made: +the result of mul at") as caught:
        use(value)
    assert caught.match("used: +at .*test_tracer")
    assert caught.match("Return it from the function")


def test_leaked_scalar():
    kept = []
    jit(lambda x, a: kept.append(a))(tensor(3), 2)
    for use in (lambda a: a + 1, lambda a: tensor(3) * a, bool):
        with pytest.raises(errors.LeakedTracerError):
            use(kept[0])


def test_tracer_in_another_thread():
    caught = []

    def work(x):
        try:
            x + 1
        except errors.LeakedTracerError as fault:
            caught.append(fault)

    def f(x):
        thread = threading.Thread(target=work, args=(x,))
        thread.start()
        thread.join()
        return x

    jit(f)(tensor(2))
    assert caught


# --- in-place ---------------------------------------------------------------------------------------------


def test_writes_into_intermediates():
    def f(x):
        y = x * 2
        y += 1
        y *= x
        y.add_(3)
        y[0] = 7.0
        y[1:] -= 1
        return y

    same(f, tensor(4))


def test_writes_through_views():
    def f(x):
        y = x * 2
        row, column, turned = y[1], y[:, 0], y.T
        row += 10
        turned[2] *= 3
        y[0, 0] = -1.0
        column[1] = 5.0
        turned.add_(1)
        return y, row, column, turned

    x = tensor(3, 4)
    for wanted, found in zip(f(x), jit(f)(x)):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_copies_are_independent():
    def f(x):
        y = x * 2
        z, w = copy.copy(y), copy.deepcopy(y)
        z += 1
        w += 2
        return y + z * w

    same(f, tensor(3))


def test_write_into_a_new_tensor():
    def f(x):
        out = td.zeros((3,))
        for i in range(3):
            out[i] = x[i] * 2
        return out

    same(f, tensor(3))


def test_in_place_keeps_identity_of_names():
    def f(x):
        y = x * 2
        z = y
        y += 1
        return z

    same(f, tensor(3))


def write_captured(x, w):
    return td.fori_loop(0, 2, lambda i, total: w.add_(x), x)


def write_shared_view(x, w):
    y = x * 2
    z = y.reshape((-1,))
    z += 1
    return y


@pytest.mark.parametrize("f", [write_captured, write_shared_view])
def test_writes_that_would_be_lost_are_refused(f):
    w = tensor(3)
    with pytest.raises(errors.UnsupportedError, match=r"\.at\["):
        jit(lambda x: f(x, w))(tensor(3))
    assert w.tolist() == [1.0, 2.0, 3.0]


def test_write_that_does_not_fit():
    def f(x):
        y = x * 1
        y += td.zeros((2, 3))

    with pytest.raises(ValueError, match="fit"):
        jit(f)(tensor(3))

    def g(x):
        y = x * 1
        y += 0.5

    with pytest.raises(TypeError, match="astype"):
        jit(g)(td.asarray(np.ones(3, np.int32)))


# --- operators without a rule -----------------------------------------------------------------------------


def test_operator_without_a_shape_rule():
    with td.Library("tracertest", "DEF") as library:
        library.define("mystery(Tensor x) -> Tensor")
        library.impl("mystery", lambda x: x, "CPU")
        with pytest.raises(errors.UnsupportedError, match="Meta"):
            jit(lambda x: td.ops.tracertest.mystery(x))(tensor(2))
        library.impl("mystery", lambda x: x, "Meta")
        assert jit(lambda x: td.ops.tracertest.mystery(x))(tensor(2)).tolist() == [1.0, 2.0]


def test_boolean_mask():
    with pytest.raises(errors.UnsupportedError, match="where"):
        jit(lambda x: x[x > 1])(tensor(3))
