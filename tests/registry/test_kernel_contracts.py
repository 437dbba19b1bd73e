"""Kernels of other packages: arguments and results are checked against the schema on every path."""

import gc
import sys

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.registry.dispatch.keys import WEAK_KEYS

X = td.asarray(np.array([1.0, 2.0]))
ARRAY = np.ones(2)
# results: those of the schema, those that are not
RESULTS = {
    "Tensor": (X, [None, ARRAY, np.float64(1), 1.0, (X,), [X], "x", X.spec]),
    "(Tensor, Tensor)": ((X, X), [None, X, (X,), (X, X, X), (X, ARRAY), (X, 1.0), (X, None)]),
    "Tensor[]": ([X, X], [None, X, [X, ARRAY], [1.0], ARRAY]),
    "Tensor?": (None, [ARRAY, 1.0, (X,)]),
    "()": (None, [X, 1, ()]),
    "int": (3, [None, 1.5, True, X, ARRAY]),
    "float": (1.5, [None, "1", X, ARRAY]),
    "bool": (True, [None, 1, X]),
    "str": ("a", [None, 1, X]),
    "Scalar": (2j, [None, "1", X]),
}
CASES = [(returns, bad) for returns, (_, wrong) in RESULTS.items() for bad in range(len(wrong))]


@pytest.fixture
def lib():
    with td.Library("contract", "DEF") as found:
        yield found


def operator(lib, returns, kernel, key="CPU", **options):
    lib.define(f"f(Tensor x, Tensor y) -> {returns}")
    lib.impl("f", kernel, key, **options)
    return td.ops.contract.f.default


class Ways:
    """The ways to call an operator with a kernel at CPU."""

    def call(self, op):
        return op(X, X)

    def keywords(self, op):
        return op(x=X, y=X)

    def redispatch(self, op):
        return op.redispatch(td.DispatchKeySet("CPU"), X, X)

    def for_key(self, op):
        return op.call_for_key("CPU", X, X)

    def kept(self, op):
        return op.get_kernel("CPU")(X, X)

    def traced(self, op):
        with td.show_dispatch_trace(lambda line: None):
            return op(X, X)

    def recorded(self, op):
        return op(X.clone().requires_grad_(), X)


WAYS = [name for name in vars(Ways) if not name.startswith("_")]


# --- results ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("returns", "number"), CASES)
def test_wrong_results_are_refused_on_every_way(lib, returns, number):
    good, wrong = RESULTS[returns]
    result = [good]
    op = operator(lib, returns, lambda x, y: result[0])
    for way in WAYS:
        for now in (good, wrong[number], good):
            result[0] = now
            for _ in range(40 if way == "call" else 2):  # the native entry comes after 32
                if now is good:
                    found = getattr(Ways(), way)(op)
                    assert type(found) is (tuple if type(good) is list else type(good))
                else:
                    with pytest.raises(
                        errors.KernelResultError, match=r"contract::f: its kernel .* but the schema returns"
                    ):
                        getattr(Ways(), way)(op)


@pytest.mark.parametrize(
    "key", ["CPU", "Dense", "CompositeExplicit", "CompositeImplicit", "Mode", "Autograd"]
)
@pytest.mark.parametrize("options", [{}, {"with_keyset": True}, {"boxed": True}], ids=str)
def test_every_kind_of_kernel_is_checked(lib, key, options):
    op = operator(lib, "Tensor", lambda *args: ARRAY, key, **options)
    x = X.clone().requires_grad_()
    with td.include_keys("Mode"), pytest.raises(errors.KernelResultError, match=r"ndarray.*td\.asarray"):
        op(x, x)


def test_fallbacks_and_shadowing_kernels_are_checked():
    with td.Library("td", "IMPL") as lib:
        lib.fallback(lambda op, keyset, args, kwargs: 1.0, "Profiler")
        with td.include_keys("Profiler"), pytest.raises(errors.KernelResultError, match="td::exp"):
            td.exp(X)
        lib.impl("exp", lambda x: x.numpy(), "CPU")
        for _ in range(40):
            with pytest.raises(errors.KernelResultError, match="td::exp"):
                td.exp(X)
    assert td.exp(X).shape == (2,)


def test_kernels_by_dtype_are_checked(lib):
    op = operator(lib, "Tensor", lambda x, y: x)
    lib.impl("f", lambda x, y: None, "CPU", dtypes=["float32"])
    assert op(X, X) is X
    with pytest.raises(errors.KernelResultError, match="returned NoneType"):
        op(td.ones(2), td.ones(2))


def test_compiled_callbacks_are_checked(lib):
    result = [X]
    op = operator(lib, "Tensor", lambda x, y: result[0])
    lib.impl("f", lambda x, y: td.empty_like(x), "Meta")
    compiled = td.jit(lambda x: op(x, x) + 1)
    assert compiled(X).tolist() == [2.0, 3.0]
    result[0] = ARRAY
    for _ in range(3):
        with pytest.raises(errors.KernelResultError, match="ndarray"):
            compiled(X)


def test_modes_and_subclasses_are_checked():
    class Wrong(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            return ARRAY

    for below in (None, "Autograd"):
        with Wrong(below=below), pytest.raises(errors.KernelResultError, match="the mode Wrong"):
            td.exp(X)

    class Odd(td.Tensor):
        @classmethod
        def __tandem_dispatch__(cls, op, types, args, kwargs):
            return 1.0

    odd = td.Tensor._make_wrapper(Odd, (2,), dtype=td.float32)
    with pytest.raises(errors.KernelResultError, match=r"Odd\.__tandem_dispatch__"):
        td.exp(odd)


def test_custom_op_results_are_checked():
    for result in (None, ARRAY, 1.0):
        op = td.custom_op("contract_custom::f", lambda x, r=result: r, schema="(Tensor x) -> Tensor")
        for _ in range(40):
            with pytest.raises(errors.KernelResultError, match="contract_custom::f"):
                op(X)
        op.remove()


def test_reference_counts_of_refused_results_are_exact(lib):
    wrong, result = [ARRAY, object(), (X, 1.0)], [None]
    op = operator(lib, "Tensor", lambda x, y: result[0])
    result[0] = X
    for _ in range(40):
        op(X, X)
    counts = []
    for _ in range(2):
        for item in wrong * 100:
            result[0] = item
            with pytest.raises(errors.KernelResultError):
                op(X, X)
        result[0] = None
        gc.collect()
        counts.append([sys.getrefcount(item) for item in (*wrong, X)])
    assert counts[0] == counts[1]


# --- arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [True, 2, 0.1, 1j])
def test_numbers_reach_kernels_as_weak_scalars(lib, number):
    seen = []

    def kernel(x, y):
        seen.append(y)
        return x * y

    op = operator(lib, "Tensor", kernel)
    for x in (X, td.ones(2, dtype=td.float16), td.ones(2, dtype=td.int8)):
        wanted = x * number
        for way in (
            lambda x=x: op(x, number),
            lambda x=x: op(x, y=number),
            lambda x=x: op(x, td.mul(number, 1)),
        ):
            for _ in range(40):
                found = way()
                assert found.dtype is wanted.dtype and found.tolist() == wanted.tolist()
        assert op.redispatch(td.DispatchKeySet("CPU"), x, number).dtype is wanted.dtype
        assert op.call_for_key("CPU", x, number).dtype is wanted.dtype
    assert all(type(y) is td.Tensor and y._keys == WEAK_KEYS and y.shape == () for y in seen)
    op(2, number)
    assert type(seen[-1]) is td.Tensor


def test_numbers_in_lists_and_keywords_become_tensors(lib):
    seen = []
    lib.define("g(Tensor[] xs, Tensor? y=None, *, Tensor? z=None) -> Tensor")
    lib.impl("g", lambda xs, y, *, z: (seen.append((*xs, y, z)), xs[0])[1], "CPU")
    op = td.ops.contract.g.default
    op([X, 2], 3, z=4.5)
    assert all(isinstance(item, td.Tensor) for item in seen[0])
    assert [item.item() for item in seen[0][1:]] == [2, 3, 4.5]
    op([X, X])
    assert seen[1][2:] == (None, None)


def test_traced_numbers_reach_kernels_as_tensors(lib):
    seen = []

    def kernel(x, y):
        seen.append(y)
        return x * y

    op = operator(lib, "Tensor", kernel)
    lib.impl("f", lambda x, y: td.empty_like(x), "Meta")
    compiled = td.jit(lambda x, a: op(x, a) + op(x, 0.1))
    np.testing.assert_allclose(compiled(X, 0.3).numpy(), X.numpy() * 0.4, rtol=1e-15)
    assert seen and all(isinstance(y, td.Tensor) for y in seen)
    with lib.impl("f", kernel, "CompositeImplicit"):
        np.testing.assert_allclose(td.jit(lambda x, a: op(x, a))(X, 0.3).numpy(), X.numpy() * 0.3, rtol=1e-15)


def test_numpy_kernels_get_numbers_as_arrays():
    seen = []
    op = td.custom_op("contract_numpy::f", lambda x, y: x, schema="(Tensor x, Tensor y) -> Tensor")
    op.register_kernel("cpu", td.numpy_kernel(lambda x, y: (seen.append(y), x * y)[1]))
    assert op(X, 0.1).tolist() == (X * 0.1).tolist() and op(td.ones(2), 2).dtype is td.float32
    assert [(type(y), y.dtype, y.shape) for y in seen] == [
        (np.ndarray, np.float64, ()),
        (np.ndarray, np.float32, ()),
    ]
    op.remove()


# --- key sets ---------------------------------------------------------------------------------------------


def test_boxed_kernels_get_key_sets(lib):
    seen = []

    def boxed(op, keyset, args, kwargs):
        seen.append(keyset)
        return op.redispatch(keyset - td.DispatchKey.Mode, *args, **kwargs)

    def taking(keyset, *args):
        seen.append(keyset)
        return td.ops.contract.f.default.redispatch(keyset - td.DispatchKeySet("Profiler"), *args)

    op = operator(lib, "Tensor", lambda x, y: x + y)
    lib.impl("f", boxed, "Mode", boxed=True)
    lib.impl("f", taking, "Profiler", with_keyset=True)
    with td.include_keys("Mode", td.DispatchKeySet("Profiler")):
        for _ in range(40):
            assert op(X, 0.5).tolist() == [1.5, 2.5]
    assert {type(keyset) for keyset in seen} == {td.DispatchKeySet}
    first, second = seen[:2]
    assert first.highest is td.DispatchKey.Profiler and second.highest is td.DispatchKey.Mode
    assert (
        "CPU" in second
        and "Profiler" not in second
        and len(first) == 3
        and list(second)[-1] is td.DispatchKey.CPU
    )
    assert second | td.DispatchKeySet("Profiler") == first and bool(second & td.DispatchKeySet("CPU"))


def test_fallbacks_get_key_sets_and_keep_promotion():
    seen = []

    def boxed(op, keyset, args, kwargs):
        seen.append(type(keyset))
        return op.redispatch(keyset - td.DispatchKey.Profiler, *args, **kwargs)

    half = td.ones(2, dtype=td.float16)
    with td.Library("td", "IMPL") as lib, td.include_keys("Profiler"):
        lib.fallback(boxed, "Profiler")
        assert (half * 0.5).dtype is td.float16 and td.sqrt(2.0).item() == 2.0**0.5
        assert td.where(half > 0, 1.0, half).dtype is td.float16
    assert set(seen) == {td.DispatchKeySet}


def test_snapshots_hold_key_sets():
    with td.include_keys("Mode"), td.exclude_keys("Autograd"):
        snapshot = td.dispatch_state()
    assert snapshot.include == td.DispatchKeySet("Mode") and snapshot.exclude == td.DispatchKeySet("Autograd")
