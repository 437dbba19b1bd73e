"""Native entries of views: hot calls use cached layouts and return the views that Python returns."""

import gc
import sys

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.fastpath.entries import rt_cached_views
from tandem.registry.library import Library
from tandem.registry.operator import operators

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")

PRIMITIVES = {"reshape", "permute", "broadcast_to", "basic_index", "contiguous", "stop_gradient"}


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        yield


def stub_of(function):
    return fastpath.stubs().by_operator[function.operator]


def calls_of(function, *args, **kwargs):
    """The number of calls out of the second to the fourth that the entry answers."""
    for _ in range(3):
        function(*args, **kwargs)
    before = stub_of(function).calls
    for _ in range(3):
        function(*args, **kwargs)
    return stub_of(function).calls - before


def test_every_view_by_integers_has_an_entry():
    td.diagonal(td.zeros((2, 2)))  # declared at first use
    single = [
        op
        for op in operators.values()
        if len(op.schema.returns) == 1 and not op.schema.returns[0].type.is_list
    ]
    known = [
        op
        for op in single
        if all(argument.type.core in ("int", "SymInt", "bool") for argument in op.schema.arguments[1:])
    ]
    views = [op for op in known if op.is_view and op.schema.namespace == "td"]
    kinds = {op.schema.name: fastpath.stubs().by_operator[op].patch_points[0].kind for op in views}
    assert {kinds[name] for name in kinds.keys() - PRIMITIVES} == {"cached_view"}
    assert len(kinds) > 10


CALLS = [
    (td.swapaxes, (0, 1), {}),
    (td.transpose, (), {}),
    (td.transpose, ((1, 2, 0),), {}),
    (td.swapaxes, (), {"axis1": -1, "axis2": 0}),
    (td.matrix_transpose, (), {}),
    (td.moveaxis, ((0, 1), (2, 0)), {}),
    (td.moveaxis, ([0, 1], [2, 0]), {}),
    (td.expand, ((4, -1, -1, -1),), {}),
    (td.squeeze, (), {}),
    (td.squeeze, (), {"axis": 1}),
    (td.squeeze, ((1,),), {}),
    (td.flatten, (), {"start_dim": 1}),
    (td.expand_dims, (), {"axis": (0, 2)}),
    (td.flip, (None,), {}),
    (td.flip, (), {"axis": -1}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex128", "int8"])
def test_hot_call_equals_python(function, args, kwargs, dtype):
    array = np.arange(6).reshape(2, 1, 3).astype(dtype)
    x = td.asarray(array)
    with config.override(hot_calls=10**9):
        want = function.operator(x, *args, **kwargs)
    assert calls_of(function, x, *args, **kwargs) == 3
    result = function(x, *args, **kwargs)
    varying = [axis for axis, size in enumerate(want.shape) if size > 1]  # the other strides are never used
    assert (result.shape, result.dtype) == (want.shape, want.dtype)
    assert [result.strides[axis] for axis in varying] == [want.strides[axis] for axis in varying]
    assert result.storage() is x.storage() and result.storage_offset == want.storage_offset
    assert result.numpy().flags.writeable == want.numpy().flags.writeable
    np.testing.assert_array_equal(result.numpy(), want.numpy())


SHAPES = st.lists(st.integers(0, 3), min_size=0, max_size=5)


@settings(max_examples=200)
@given(st.data())
def test_random_views_equal_numpy(data):
    shape = tuple(data.draw(SHAPES))
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    steps = data.draw(st.lists(st.sampled_from(["flip", "moveaxis", "expand_dims", "squeeze"]), max_size=4))
    for _ in range(3):
        x, want = td.asarray(array.copy()), array.copy()
        for number, step in enumerate(steps):
            axis = (number * 7 + len(shape)) % max(want.ndim, 1)
            if step == "expand_dims":
                x, want = td.expand_dims(x, axis), np.expand_dims(want, axis)
            elif step == "squeeze":
                x, want = td.squeeze(x), np.squeeze(want)
            elif want.ndim and step == "flip":
                x, want = td.flip(x, axis), np.flip(want, axis)
            elif want.ndim:
                x, want = td.moveaxis(x, axis, 0), np.moveaxis(want, axis, 0)
        assert (x.shape, x.dtype.name) == (want.shape, "int32")
        np.testing.assert_array_equal(x.numpy(), want)


def test_errors_are_raised_by_every_call():
    for _ in range(4):
        with pytest.raises(IndexError, match="out of bounds"):
            td.flip(td.zeros((2, 3)), 2)
        with pytest.raises(TypeError, match="squeeze"):
            td.squeeze(td.zeros((2, 3)), axs=2)
        with pytest.raises((TypeError, OverflowError, ValueError, IndexError)):
            td.flip(td.zeros((2, 3)), 2**70)


def test_layouts_of_other_arguments_are_not_mixed_up():
    x = td.asarray(np.arange(24.0).reshape(2, 3, 4))
    others = [x, x.permute((2, 1, 0)), x[:, 1:], x[::-1], td.zeros((2, 3, 4), dtype=td.int8)]
    for _ in range(3):
        for one in others:
            for axis in (0, 1, -1, (0, 2), None, [0], False, True):
                axes = axis if isinstance(axis, (tuple, list, type(None))) else (int(axis),)
                want = np.flip(one.numpy(), axes if axes is None else tuple(axes))
                if not isinstance(axis, bool):
                    np.testing.assert_array_equal(td.flip(one, axis).numpy(), want)


def test_more_layouts_than_slots():
    x = td.asarray(np.arange(4 * rt_cached_views.SLOTS))
    for _ in range(3):
        for size in range(1, 4 * rt_cached_views.SLOTS):
            assert td.flip(x[:size])[0].item() == size - 1
    stub = stub_of(td.flip)
    assert len(stub.record.variants) == 0  # layouts overwrite each other, nothing grows


def test_changed_kernel_is_called():
    x = td.asarray(np.arange(6.0).reshape(2, 3))
    assert calls_of(td.matrix_transpose, x) == 3
    seen = []

    def permute(self, axes):
        seen.append(axes)
        return td.zeros((1,))

    with Library("td", "IMPL") as library:
        library.impl("permute", permute, "CPU")
        assert td.matrix_transpose(x).shape == (1,)
        assert td.flip(x).shape == (2, 3)
    assert seen == [(1, 0)]
    assert td.matrix_transpose(x).shape == (3, 2)
    assert calls_of(td.matrix_transpose, x) == 3


@pytest.mark.parametrize("view", ["reshape", "expand_dims", "basic_index"])
@pytest.mark.parametrize("name", ["stack", "take"])
def test_hot_composite_calls_the_changed_kernel_of_a_view(name, view):
    """A composite with an entry of its own runs in Python while a view that it calls has another kernel."""
    x, calls, function = td.arange(6.0), [], getattr(td, name)
    args = ([x, x],) if name == "stack" else (x, td.asarray([1, 0]))
    assert calls_of(function, *args) == 3
    expected = function(*args).tolist()
    original = operators[f"td::{view}"].table[td.DispatchKey.CPU].fn

    def counted(*args, **kwargs):
        calls.append(1)
        return original(*args, **kwargs)

    with Library("td", "IMPL") as library:
        library.impl(view, counted, "CPU", allow_override=True)
        assert stub_of(function).python(*args).tolist() == expected
        in_python = len(calls)
        assert function(*args).tolist() == expected
        assert len(calls) == 2 * in_python
    assert calls_of(function, *args) == 3


def test_gradients_flow_through_hot_views():
    x = td.asarray(np.arange(6.0).reshape(2, 3), requires_grad=True)
    weights = td.asarray(np.arange(6.0).reshape(3, 2))
    for _ in range(4):
        x.grad = None
        (td.matrix_transpose(x) * weights).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), weights.numpy().T)
    with td.no_grad():
        assert calls_of(td.matrix_transpose, x) == 3
        assert not td.matrix_transpose(x).requires_grad


def test_writes_reach_the_source_and_its_version():
    x = td.zeros((2, 3))
    for number in range(4):
        before = x.storage().version
        td.flip(x, 0)[0, 0] = float(number)
        assert x[1, 0].item() == number
        assert x.storage().version == before + 1
    read_only = td.expand(td.zeros((1, 3)), (2, 3))
    with pytest.raises((ValueError, RuntimeError), match=r"read-only|shared|one memory|same"):
        read_only[0, 0] = 1.0


def test_source_lives_as_long_as_its_view():
    for _ in range(4):
        view = td.flip(td.asarray(np.arange(1000.0)))
        gc.collect()
        assert view[0].item() == 999.0


def test_reference_counts_do_not_drift():
    x = td.asarray(np.arange(6.0).reshape(2, 3))
    axes, names = (0, 1), [td.Tensor, x, x.numpy(), None]
    calls = [lambda: td.flip(x, axes), lambda: td.squeeze(x, axis=()), lambda: td.swapaxes(x, 0, axis2=1)]
    for call in calls:
        for _ in range(5):
            call()
        gc.collect()
        before = [sys.getrefcount(value) for value in (axes, *names)]
        for _ in range(10_000):
            call()
        gc.collect()
        after = [sys.getrefcount(value) for value in (axes, *names)]
        assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))


def test_each_allocation_may_fail():
    memory = pytest.importorskip("_testcapi")
    x = td.asarray(np.arange(6.0).reshape(2, 3))
    assert calls_of(td.flip, x, 1) == 3
    failed = 0
    for k in range(20):
        try:
            memory.set_nomemory(k, k + 1)
            try:
                td.flip(x, 1)
            finally:
                memory.remove_mem_hooks()
        except MemoryError:
            failed += 1
    assert failed
    assert td.flip(x, 1).tolist() == [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]
