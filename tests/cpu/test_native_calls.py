"""Eager calls through native entries: results, fallbacks to Python, and references."""

import gc
import itertools
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from native_entries import stubs
from rotation import share_each_commit
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.glue import class_slots
from tandem.eager.tensor.tensor import Tensor, wrap
from tandem.registry import dtypes as dt
from tandem.registry import native_type
from tandem.registry.dispatch import state
from tandem.registry.dispatch.keys import DispatchKey
from tandem.registry.function import functions
from tandem.registry.library import Library

pytestmark = [
    pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"),
]

SHAPES = [
    ((), ()),
    ((5,), (5,)),
    ((0,), (0,)),
    ((3, 1), (4,)),
    ((2, 3, 4), (3, 1)),
    ((33,), (33,)),
    ((4,), ()),
]

PARTS = 14  # of the dtypes; each commit tries one for half of the operators
LOOSE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-6, "complex64": 6e-6}


@pytest.fixture(autouse=True)
def hot():
    native_layer.install()
    with config.override(hot_calls=1):
        yield


def of_kind(*names):
    return [stub for stub in stubs() if getattr(stub.operator.decl, "kind", "") in names]


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype.np)
    return rng.uniform(0.1, 0.9, shape).astype(dtype.np)


def layouts(array):
    yield array
    if array.ndim:
        yield array[::-1]
        yield np.repeat(array, 2, axis=-1)[..., ::2]
    if array.ndim > 1:
        yield np.ascontiguousarray(array.T).T


def close(got, want, dtype):
    assert got.dtype is want.dtype
    assert got.shape == want.shape
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got._array, want._array)
    else:
        rtol = max(LOOSE.get(min(got.dtype.name, dtype.name, key=len), 1e-12), LOOSE.get(got.dtype.name, 0))
        np.testing.assert_allclose(
            got._array.astype(np.complex128), want._array.astype(np.complex128), rtol=rtol, atol=rtol
        )


def hot_call(stub, *args, **kwargs):
    """The result of a call that was answered natively."""
    for _ in range(2):
        stub.function(*args, **kwargs)
    before = stub.calls
    result = stub.function(*args, **kwargs)
    assert stub.calls == before + 1, "the call was not answered natively"
    return result


# -- what is computed --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "case",
    share_each_commit(
        list(itertools.product(of_kind("unary", "binary", "comparison", "ternary"), range(PARTS))), 2 * PARTS
    ),
    ids=lambda case: f"{case[0].operator.name}-{case[1]}",
)
def test_elementwise_agrees_with_the_python_path(case):
    stub, part = case
    arity = len(stub.operator.schema.arguments)
    conditions = len(stub.operator.decl.conditions)
    for dtype in stub.operator.decl.dtypes[part::PARTS]:
        if not native_layer.serves(stub.operator, dtype):
            continue
        types = [dt.bool_] * conditions + [dtype] * (arity - conditions)
        for one, two in SHAPES:
            arrays = [
                draw(shape, t, seed)
                for seed, (shape, t) in enumerate(zip((one, two, one), types, strict=False))
            ]
            for operands in zip(*map(layouts, arrays), strict=False):
                args = [wrap(operand) for operand in operands]
                close(hot_call(stub, *args), stub.operator(*args), dtype)


@pytest.mark.parametrize("stub", of_kind("reduction"), ids=lambda s: s.operator.name)
def test_reductions_agree_with_the_python_path(stub):
    single = stub.operator.decl.fold.returns_index
    for dtype in stub.operator.decl.dtypes:
        if not native_layer.serves(stub.operator, dtype):
            continue
        for array in layouts(draw((3, 4, 5), dtype)):
            axes = [0, 1, -1] if single else [None, 0, -1, (0, 2), (1, 2), (), (0, 1, 2)]
            for axis, keepdims in itertools.product(axes, (False, True)):
                args, kwargs = (wrap(array), axis), {"keepdims": keepdims}
                want = stub.operator(*args, **kwargs)
                for _ in range(3):
                    got = stub.function(*args, **kwargs)
                close(got, want, dtype)


@pytest.mark.parametrize("count", [1, 7, 8, 31, 1000, 5000])
def test_long_sums_are_accurate(count):
    values = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    total = hot_call(stub_of("td::sum"), wrap(values))._array
    assert abs(float(total) - values.astype(np.float64).sum()) <= 1e-6 * np.abs(values).sum()


def test_extremes_of_nan_and_infinity():
    values = np.array([1.0, np.nan, -np.inf, 3.0, np.inf, np.nan], np.float64)
    assert np.isnan(float(hot_call(stub_of("td::max"), wrap(values))._array))
    assert int(hot_call(stub_of("td::argmax"), wrap(values))._array) == 1
    finite = values[2:5].copy()
    assert float(hot_call(stub_of("td::min"), wrap(finite))._array) == -np.inf
    assert int(hot_call(stub_of("td::argmin"), wrap(finite))._array) == 0


def stub_of(name):
    return next(stub for stub in stubs() if stub.operator.name == name)


@pytest.mark.parametrize("dtype", [d for d in dt.ALL if d.kind != "c"], ids=str)
@pytest.mark.parametrize("scalar", [True, 3, -1, 0, 1.5, 2.0**40, 10**30, 300, 2**63])
def test_python_scalars_are_weak_and_checked(dtype, scalar):
    x, add = wrap(draw((5,), dtype)), stub_of("td::add.Tensor")
    for args in ((x, scalar), (scalar, x)):
        try:
            want = add.operator(*args)
        except (TypeError, ValueError, OverflowError) as error:
            for _ in range(3):
                with pytest.raises(type(error)):
                    add.function(*args)
        else:
            for _ in range(3):
                close(add.function(*args), want, dtype)


def test_mixed_dtypes_promote():
    add = stub_of("td::add.Tensor")
    for one, two in itertools.product(
        (dt.int8, dt.uint8, dt.int64, dt.float32, dt.float64, dt.bool_), repeat=2
    ):
        args = wrap(draw((4,), one)), wrap(draw((4,), two, 1))
        close(hot_call(add, *args), add.operator(*args), one)


def test_operators_of_python_use_the_entries():
    x, y = wrap(np.arange(4, dtype=np.float32)), wrap(np.ones(4, np.float32))
    add = stub_of("td::add.Tensor")
    for _ in range(3):
        x + y, 2.0 + x, x + 2.0
    before = add.calls
    np.testing.assert_array_equal((x + y)._array, [1, 2, 3, 4])
    np.testing.assert_array_equal((2.0 + x)._array, [2, 3, 4, 5])
    assert add.calls == before + 2
    for _ in range(3):
        np.testing.assert_array_equal((2.0 - x)._array, [2, 1, 0, -1])
    with pytest.raises(TypeError):
        x + "text"

    class Other:
        def __radd__(self, other):
            return "mine"

    assert x + Other() == "mine"


@pytest.mark.parametrize("wanted", [(6, 4), (-1,), (2, -1), (24,), (1, 24, 1), (2, 3, 4)])
def test_reshape_shares_memory_and_storage(wanted):
    x = wrap(np.arange(24, dtype=np.int32).reshape(2, 3, 4))
    y = hot_call(stub_of("td::reshape"), x, wanted)
    np.testing.assert_array_equal(y._array, x._array.reshape(wanted))
    assert np.shares_memory(y._array, x._array)
    assert y._storage is x._storage is not None


def test_permute_and_broadcast_are_views():
    x = wrap(np.arange(6, dtype=np.float64).reshape(2, 3))
    assert hot_call(stub_of("td::permute"), x, (1, 0))._array.tolist() == x._array.T.tolist()
    wide = hot_call(stub_of("td::broadcast_to"), x, (4, 2, 3))
    assert not wide._array.flags.writeable
    np.testing.assert_array_equal(wide._array, np.broadcast_to(x._array, (4, 2, 3)))


# -- what is left to Python --------------------------------------------------------------------------------------------
BAD = [
    ("td::add.Tensor", lambda x: (x,)),
    ("td::add.Tensor", lambda x: (x, x, 1.0)),
    ("td::add.Tensor", lambda x: (x, None)),
    ("td::add.Tensor", lambda x: (x, "y")),
    ("td::add.Tensor", lambda x: (x, [1.0, 2.0])),
    ("td::add.Tensor", lambda x: (x, wrap(np.ones((3,), np.float32)))),
    ("td::add.Tensor", lambda x: ()),
    ("td::exp", lambda x: (3 + 4j, x)),
    ("td::sum", lambda x: (x, 7)),
    ("td::sum", lambda x: (x, (0, 0))),
    ("td::sum", lambda x: (x, "axis")),
    ("td::sum", lambda x: (x, 2**70)),
    ("td::max", lambda x: (wrap(np.zeros((0,), np.float32)),)),
    ("td::argmax", lambda x: (x, (0,))),
    ("td::reshape", lambda x: (x, (5, 5))),
    ("td::reshape", lambda x: (x, (-1, -1))),
    ("td::reshape", lambda x: (x, (2**40, 2**40))),
    ("td::reshape", lambda x: (x, 3.5)),
    ("td::permute", lambda x: (x, (0, 0))),
    ("td::permute", lambda x: (x, (2**64, 0))),
    ("td::broadcast_to", lambda x: (x, (3,))),
    ("td::broadcast_to", lambda x: (x, (-1, 4))),
]


@pytest.mark.parametrize(("name", "args"), BAD)
def test_bad_input_raises_as_in_python(name, args):
    stub, x = stub_of(name), wrap(np.ones((2, 4), np.float32))
    with pytest.raises(Exception) as expected:
        stub.operator(*args(x))
    for _ in range(4):
        with pytest.raises(type(expected.value)):
            stub.function(*args(x))
    with pytest.raises(Exception):  # noqa: B017
        stub.function(x, no_such_argument=1)


def test_a_subclass_and_keywords_take_the_python_path():
    class Mine(Tensor):
        __slots__ = ()

    add = stub_of("td::add.Tensor")
    x = wrap(np.ones(3, np.float32))
    hot_call(add, x, x)
    mine = Mine.__new__(Mine)
    mine._array, mine._keys, mine._meta, mine._storage = x._array, x._keys, None, None
    before = add.calls
    add.function(x, mine)
    add.function(x, other=x)
    assert add.calls == before


def states_off_default():
    """How many machine code sees; it looks at a reference count."""
    return sys.getrefcount(state.ACTIVE) - 1 - class_slots.AT_REST


def test_thread_state_sends_this_thread_to_python():
    add, x = stub_of("td::add.Tensor"), wrap(np.ones(3, np.float32))
    hot_call(add, x, x)
    gc.collect()
    others = states_off_default()  # states that earlier tests left in threads
    before = add.calls
    with td.include_keys("Profiler"):
        assert states_off_default() == others + 1
        add.function(x, x)
        assert add.calls == before
        other = threading.Thread(target=lambda: add.function(x, x))
        other.start()
        other.join()
        assert add.calls == before + 1
    assert states_off_default() == others
    add.function(x, x)
    assert add.calls == before + 2


def test_ended_thread_with_changed_state_is_uncounted():
    def leave():
        guard = td.include_keys("Profiler")
        guard.__enter__()
        held.append(guard)

    held = []
    gc.collect()
    others = states_off_default()  # states that earlier tests left in threads
    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    gc.collect()
    assert states_off_default() == others


def test_the_dispatch_trace_sees_every_call():
    add, x = stub_of("td::add.Tensor"), wrap(np.ones(3, np.float32))
    hot_call(add, x, x)
    lines = []
    with td.show_dispatch_trace(lines.append):
        add.function(x, x)
    assert any("td::add" in line for line in lines)
    hot_call(add, x, x)


def test_new_kernel_disables_native_entry_until_removed():
    stub, x = stub_of("td::hypot.Tensor"), wrap(np.full(3, 3.0, np.float32))
    hot_call(stub, x, x)
    mine = wrap(np.zeros(3, np.float32))
    with Library("td", "IMPL") as library:
        library.impl("hypot.Tensor", lambda self, other: mine, DispatchKey.CPU)
        assert stub.function(x, x) is mine
        assert not native_type.entry_of(stub.function)
    close(hot_call(stub, x, x), stub.operator(x, x), dt.float32)


# -- gradients ---------------------------------------------------------------------------------------------------------
def gradient_of(function, values):
    x = td.asarray(values, requires_grad=True)
    function(x).backward()
    return x.grad._array


@pytest.mark.parametrize(
    "function",
    [
        lambda x: td.sum(td.exp(x * 2.0) + x),
        lambda x: td.sum(2.0 - x * x),
        lambda x: td.sum(td.max(td.reshape(x, (2, 3)), axis=1, keepdims=True)),
        lambda x: td.sum(td.permute(td.reshape(x, (2, 3)), (1, 0)) * td.broadcast_to(x[:2], (3, 2))),
    ],
)
def test_calls_with_history_are_recorded(function):
    values = np.linspace(0.1, 1.0, 6)
    with config.override(hot_calls=10**9):
        want = gradient_of(function, values)
    for _ in range(6):
        got = gradient_of(function, values)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_native_calls_record_autograd_unless_no_grad():
    mul, x = stub_of("td::mul.Tensor"), td.asarray(np.ones(3), requires_grad=True)
    out = hot_call(mul, x, x)
    assert out.requires_grad
    assert out._meta.node is not None
    with td.no_grad():
        plain = hot_call(mul, x, x)
    assert not plain.requires_grad
    assert plain._keys is wrap(np.ones(1))._keys


def test_a_graph_with_native_nodes_is_freed():
    x = td.asarray(np.ones(3), requires_grad=True)
    hot_call(stub_of("td::mul.Tensor"), x, x)
    out = td.mul(x, x)
    alive = weakref.ref(out)
    del out
    gc.collect()
    assert alive() is None


def test_results_have_same_strides_as_python():
    """What is a view and what a copy afterwards must not depend on how often an operator was called."""
    whole = np.arange(60.0).reshape(3, 4, 5)
    for axes in itertools.permutations(range(3)):
        for index in ((), (slice(0, 1),), (slice(None), slice(1, 2)), (slice(None, None, -2),)):
            array = whole.transpose(axes)[index]
            for other in (1.0, array, np.ones(array.shape), array[:1]):
                want = array + other
                other = wrap(other) if isinstance(other, np.ndarray) else other
                for _ in range(3):
                    found = td.add(wrap(array), other)._array
                np.testing.assert_array_equal(found, want)
                long = [axis for axis in range(3) if want.shape[axis] > 1]
                assert [found.strides[axis] for axis in long] == [want.strides[axis] for axis in long]


@pytest.mark.parametrize(
    ("name", "elements", "hot"),
    [
        ("softplus", 10**6, True),
        ("softplus", 16, False),
        ("cos", 10**6, False),
        ("cumsum", 10**6, True),
        ("cumsum", 16, False),
    ],
)
def test_first_large_call_of_slow_ufuncs_is_native(name, elements, hot):
    function = functions[f"td::{name}"]
    stub = native_layer.stubs().by_operator[function.operator]
    stub.uninstall()
    stub.clear_variants()
    stub.seen.clear()
    x = td.asarray(np.linspace(-1, 1, elements, dtype=np.float32))
    before = stub.calls
    with config.override(hot_calls=32):
        result = function(x)
    assert (stub.calls > before) == hot
    assert np.array_equal(result.numpy(), td.jit(function)(x).numpy())
