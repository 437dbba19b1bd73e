"""Eager kernels of composites: results and errors are those of the bodies, which layers and modes still see."""

import numpy as np
import pytest
import tandem as td
from optable import arrays_of, errors_of, generator, rows, table, to_tensors
from rotation import share_each_commit
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.glue.kernels import OWN_ENTRIES
from tandem.backends.cpu.fastpath.runtime import rt_base as rt
from tandem.eager.hot_calls import COMPILED
from tandem.registry import native_type
from tandem.registry.function import functions

OPERATORS = {name: op for name, op in table().items() if op.decl.eager_kernel is not None}
INTEGERS = ("convolve", "correlate")  # whose eager kernels compute integers, and compiled code the rest
COMPOSITES = {name: op for name, op in OPERATORS.items() if op.decl.kind == "composite"}
native = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


class Log(td.DispatchMode):
    """Notes the names of the operators called."""

    def __init__(self, **options):
        super().__init__(**options)
        self.names = []

    def __tandem_dispatch__(self, op, types, args, kwargs):
        self.names.append(op.schema.name)
        return op(*args, **kwargs)


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_composites=1, hot_calls=1):
        yield


def contents(result):
    results = result if isinstance(result, tuple) else (result,)
    return [(x.dtype, x.shape, x.numpy().tobytes()) for x in results]


@pytest.mark.parametrize("name", share_each_commit(COMPOSITES, 6))
def test_results_are_those_of_the_body(name):
    op = COMPOSITES[name]
    body = op.registered("CompositeImplicit").fn
    for dtype, sample in rows(op):
        args, kwargs = to_tensors(arrays_of(sample, dtype, generator(op, dtype)))
        bound = op.binder.bind(args, kwargs)
        wanted = contents(body(*bound[0], **bound[1]))
        for _ in range(3):
            result = functions[op.name](*args, **kwargs)
            assert contents(result) == wanted, (dtype, sample)
        given = [x for x in args if isinstance(x, td.Tensor)]
        for one in result if isinstance(result, tuple) else (result,):
            assert not any(np.shares_memory(one.numpy(), x.numpy()) for x in given)


@pytest.mark.parametrize("name", OPERATORS)
def test_wrong_calls_raise_the_errors_of_the_body(name):
    op = OPERATORS[name]
    for error in errors_of(op):
        args, kwargs = to_tensors(arrays_of(error, op.decl.dtypes[-1], generator(op, op.decl.dtypes[-1])))
        for _ in range(3):
            with pytest.raises(error.error, match=error.match):
                functions[op.name](*args, **kwargs)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: td.insert(x, 1, 7),
        lambda x: td.insert(x, -1, 7.5),
        lambda x: td.insert(x, [0, 2], x[:2]),
        lambda x: td.insert(x, slice(0, 3), x[0]),
        lambda x: td.insert(x, np.asarray([True, False, True, False]), x[0]),
        lambda x: td.insert(x.reshape(2, 2), 1, x[:2], 1),
        lambda x: td.insert(x.reshape(2, 2).T, [0, 1], x.reshape(2, 2), 0),
        lambda x: td.delete(x, -1),
        lambda x: td.delete(x, [0, 0, -1]),
        lambda x: td.delete(x, slice(None, None, 2)),
        lambda x: td.delete(x.reshape(2, 2), [1], 1),
        lambda x: td.delete(x.reshape(2, 2).T, 0, 1),
        lambda x: td.delete(x, np.asarray([True, False, True, False])),
        lambda x: td.resize(x, (3, 3)),
        lambda x: td.resize(x, [2, 1]),
        lambda x: td.resize(x, 4),
        lambda x: td.unique_inverse(x)[1],
    ],
)
def test_all_forms_of_arguments(call):
    """A tensor that requires gradients runs the body."""
    x = td.asarray(np.asarray([2.0, -0.0, 0.0, 2.0], np.float32))
    wanted = call(x.clone().requires_grad_()).detach()
    for _ in range(3):
        assert contents(call(x)) == contents(wanted)


def test_gradients_and_traces_use_the_body():
    x = td.asarray([1.0, 2.0, 3.0])
    f = lambda x: (td.insert(x, 1, x[:1] * 5) * td.resize(td.delete(x, 0), (4,))).sum()  # noqa: E731
    for _ in range(3):
        f(x)
    assert td.grad(f)(x).tolist() == td.grad(td.jit(f))(x).tolist() == [17.0, 5.0, 11.0]
    assert td.vmap(lambda x: td.delete(x, 1))(td.asarray([[1, 2, 3], [4, 5, 6]])).tolist() == [[1, 3], [4, 6]]
    with pytest.raises(td.errors.UnsupportedError, match="depends on data"):
        td.jit(td.flatnonzero)(x)


def test_operators_remain_composites():
    assert td.dispatch_table("delete")["CPU"].kind == "composite_implicit"
    assert td.dispatch_table("delete")["AutogradCPU"].kind == "composite_implicit"


@pytest.mark.parametrize("options", [{"below": "Autograd"}, {"ops": ["index"]}])
def test_modes_see_the_operators_of_the_body(options):
    x = td.asarray([1.0, 2.0, 3.0])
    for _ in range(3):
        td.delete(x, 1)
    with Log(**options) as log:
        assert td.delete(x, 1).tolist() == [1.0, 3.0]
    assert "index" in log.names and "delete" not in log.names


def test_other_kernels_replace_eager_kernels():
    x = td.asarray([0.0, 2.0, 3.0])
    for _ in range(3):
        assert td.flatnonzero(x).tolist() == [1, 2]
    with td.Library("td", "IMPL") as library:
        library.impl("flatnonzero", lambda self, *, size, fill_value: self, "CPU")
        assert td.flatnonzero(x).tolist() == [0.0, 2.0, 3.0]
    assert td.flatnonzero(x).tolist() == [1, 2]


@native
@pytest.mark.parametrize("name", [name for name in OPERATORS if "indices" not in name])
def test_calls_on_plain_tensors_are_native(name):
    op = OPERATORS[name]
    first = td.int64 if op.schema.name in INTEGERS else td.float32
    function, dtype = functions[op.name], next(d for d in (first, *op.decl.dtypes) if d in op.decl.dtypes)
    calls = [arrays_of(sample, d, generator(op, d)) for d, sample in rows(op) if d is dtype]
    args, _ = to_tensors(min(calls, key=lambda call: len(call[1])))  # sizes of results are left out
    for _ in range(4):
        function(*args)
    assert native_type.entry_of(function)
    stub = native_layer.stubs().kernels[op]
    if stub.hot_calls is not None and COMPILED in stub.hot_calls.counts.values():
        return
    records = (stub.record, stub.sampled_record) if stub.sampled_record else (stub.record,)
    before = sum(record.get(rt.OperatorEntry.calls) for record in records)
    for _ in range(260):  # Python counts the first calls, and passes them on
        function(*args)
    calls = [record.get(rt.OperatorEntry.calls) for record in records]
    assert sum(calls) == before + 260 and (all(calls) or op.name in OWN_ENTRIES)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float32"])
@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_agree_with_the_body(name, dtype):
    body = OPERATORS[name].registered("CompositeImplicit").fn
    options = {} if name == "union1d" else {"assume_unique": False}
    nan = np.nan if dtype == "float32" else 0
    for one, two in (
        ([3, 1, nan, 1], [[1, 0], [nan, 5]]),
        ([1], [1]),
        ([], [2]),
        ([2, 2], []),
        ([0.0, -0.0], [1]),
    ):
        x, y = (td.asarray(np.asarray(values).astype(dtype)) for values in (one, two))
        wanted = contents(body(x, y, **options, size=None, fill_value=0))
        for _ in range(3):
            assert contents(functions[f"td::{name}"](x, y)) == wanted


@pytest.mark.parametrize("weights", [None, "float32", "float64", "int64"])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64"])
def test_bincount_agrees_with_the_body(dtype, weights):
    body = OPERATORS["bincount"].registered("CompositeImplicit").fn
    for values, minlength in (([1, 3, 1, 0], 0), ([1, 3, 1, 0], 9), ([], 0), ([], 2)):
        x = td.asarray(np.asarray(values, dtype))
        w = None if weights is None else td.asarray((np.arange(len(values)) / 3 + 0.1).astype(weights))
        wanted = contents(body(x, w, minlength, length=None))
        for _ in range(3):
            assert contents(td.bincount(x, w, minlength)) == wanted
    for _ in range(3):
        with pytest.raises(td.errors.ValueArgumentError, match="not negative"):
            td.bincount(td.asarray([1, -1]))
        with pytest.raises(td.errors.DTypeError, match="integers"):
            td.bincount(td.asarray([True, False]))


@native
def test_keywords_are_native():
    x = td.asarray([1, 3, 1])
    calls = {
        td.bincount: [{"minlength": 6}, {"weights": x.astype(td.float64), "minlength": 2}, {"length": None}],
        td.flatnonzero: [{"size": None}],
        td.append: [{"values": x}, {"values": x, "axis": 0}],
    }
    for function, options in calls.items():
        for given in options:
            expected = contents(function.operator(x, **given))
            for _ in range(300):
                assert contents(function(x, **given)) == expected
        stub = native_layer.stubs().kernels[function.operator]
        records = (stub.record, stub.sampled_record) if stub.sampled_record else (stub.record,)
        if not any(record.get(rt.OperatorEntry.calls) for record in records):
            assert COMPILED in stub.hot_calls.counts.values()
    for wrong in ({"minlenth": 6}, {"self": x}, {"minlength": "a"}, {"minlength": -1}):
        with pytest.raises((TypeError, ValueError)):
            td.bincount(x, **wrong)


def test_wide_exponents_and_numbers():
    x = td.asarray(np.array([1.5, -0.0, np.inf, np.nan, 1e-45, 3e38], np.float32))
    n = td.asarray([-150, 3, -1000, 5, 149, 1])
    wanted = td.jit(td.ldexp)(x, n)
    for _ in range(3):
        assert contents(td.ldexp(x, n)) == contents(wanted)
        assert contents(td.ldexp(x, 200)) == contents(td.ldexp(x, td.asarray([200])))
        assert td.append(x, 2).dtype is td.float32 and td.append(x, 2.0)[-1].item() == 2
        assert td.append(td.asarray([1], dtype=td.int8), 2).dtype is td.int8
        assert td.append(td.asarray([1]), 2.5).dtype is td.append(td.asarray([1]), td.sin(2.5)).dtype


NUMBERS = {
    td.bool: [True],
    td.int8: [True, 1, -3, 300],
    td.uint8: [1, -1],
    td.float16: [1, 1e9],
    td.float32: [2, 2.5, False],
}
SETS = [td.union1d, td.intersect1d, td.setdiff1d, td.setxor1d]


@pytest.mark.parametrize("function", SETS)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_sets_with_numbers(function, dtype):
    body = function.operator.registered("CompositeImplicit").fn
    for values in ([1, 2, 1, 0], [1]):
        for number in [*NUMBERS[dtype], 2.5, 10**30]:
            x = td.asarray(values).astype(dtype)
            try:
                wanted = contents(
                    body(x, number, *[False] * (function is not td.union1d), size=None, fill_value=0)
                )
            except td.errors.TandemError as error:
                wanted = type(error)
            for _ in range(3):
                try:
                    result = contents(function(x, number))
                except td.errors.TandemError as error:
                    result = type(error)
                assert result == wanted, number


@pytest.mark.parametrize("dtype", [td.bool, td.int8, td.int64, td.float16, td.float32, td.float64])
def test_bincount_with_weights_of_every_dtype(dtype):
    body = td.bincount.operator.registered("CompositeImplicit").fn
    x, weights = td.asarray([3, 0, 3, 1]), td.asarray([1, 0, 2, 3]).astype(dtype)
    for minlength in (0, 6):
        wanted = contents(body(x, weights, minlength, length=None))
        for _ in range(3):
            assert contents(td.bincount(x, weights, minlength)) == wanted


@pytest.mark.parametrize("nan", [False, True])
def test_unique_of_complex_numbers(nan):
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = (rng.integers(-1, 2, 9) + 1j * rng.integers(-1, 2, 9)).astype(np.complex64) * rng.choice(
            [0.0, -0.0, 1.0]
        )
        if nan:
            a[3:6] = complex(np.nan, 1), complex(1, np.nan), complex(np.nan, np.nan)
        x = td.asarray(a)
        body = td.unique_all.operator.registered("CompositeImplicit").fn
        wanted = body(x, size=None)
        for _ in range(3):
            assert contents(tuple(td.unique_all(x))) == contents(tuple(wanted))
            assert contents(td.unique_values(x)) == contents(wanted[0])
        if not nan:
            values, counts = np.unique(a, return_counts=True)
            result = td.unique(x, return_counts=True)
            np.testing.assert_array_equal(result[0].numpy(), values)
            np.testing.assert_array_equal(result[1].numpy(), counts)
