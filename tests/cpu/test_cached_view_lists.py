"""The native entry of operators that return lists of views: it returns the views that Python returns."""

import gc
import sys
from functools import partial

import numpy as np
import pytest
import tandem as td
from helpers import smallest_block_growth
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.fastpath.entries import rt_cached_views
from tandem.registry.library import Library
from tandem.registry.operator import operators

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        yield


def calls_of(function, *args, **kwargs):
    """The number of calls out of the second to the fourth that the entry answers."""
    stub = fastpath.stubs().by_operator[function.operator]
    for _ in range(3):
        function(*args, **kwargs)
    before = stub.calls
    for _ in range(3):
        function(*args, **kwargs)
    return stub.calls - before


def test_every_list_of_views_has_an_entry():
    td.split(td.zeros(4), 2)  # declared at first use
    td.unstack(td.zeros(4))
    lists = [
        op
        for op in operators.values()
        if op.is_view and op.schema.namespace == "td" and op.schema.returns[0].type.is_list
    ]
    stubs = fastpath.stubs().by_operator
    assert {stubs[op].patch_points[0].kind for op in lists} == {"cached_views"} and len(lists) >= 2


X = np.arange(72).reshape(4, 3, 6)
CALLS = [
    (td.split, (2,), {}),
    (td.split, ([1, 3],), {}),
    (td.split, ((2, -1), 2), {}),
    (td.split, (), {"sections": 3, "axis": -1}),
    (td.split, ([0, 9, 2], 1), {}),
    (td.unstack, (), {}),
    (td.unstack, (1,), {}),
    (td.unstack, (), {"axis": -1}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex128", "int8"])
def test_hot_call_equals_python(function, args, kwargs, dtype):
    whole = td.asarray(X.astype(dtype))
    for x in (
        whole,
        whole.permute((1, 0, 2)),
        whole[:, ::-1],
        whole[1:1],
        td.broadcast_to(whole[:1], (4, 3, 6)),
    ):
        if function is td.split and x.shape[0] == 3 and 2 in args[:1]:
            continue
        with config.override(hot_calls=10**9):
            want = function.operator(x, *args, **kwargs)
        assert calls_of(function, x, *args, **kwargs) == 3
        result = function(x, *args, **kwargs)
        assert type(result) is tuple and len(result) == len(want)
        for one, other in zip(result, want, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            assert one.storage() is x.storage()
            if one.size:
                varying = [axis for axis, size in enumerate(one.shape) if size > 1]
                assert [one.strides[a] for a in varying] == [other.strides[a] for a in varying]
                assert one.storage_offset == other.storage_offset
            assert one.numpy().flags.writeable == other.numpy().flags.writeable
            np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_methods_have_the_entry():
    x = td.asarray(X)
    assert calls_of(td.split, x, 2) == 3
    before = fastpath.stubs().by_operator[td.split.operator].calls
    assert [part.shape for part in x.split(2)] == [(2, 3, 6)] * 2
    assert fastpath.stubs().by_operator[td.split.operator].calls == before + 1


def test_errors_are_raised_by_every_call():
    x = td.zeros((4, 3))
    for _ in range(4):
        with pytest.raises(ValueError, match="equal parts"):
            td.split(x, 3)
        with pytest.raises(TypeError, match="sections"):
            td.split(x, "ab")
        with pytest.raises(TypeError, match="sections"):
            td.split(x, [1, None])
        with pytest.raises(IndexError, match="out of bounds"):
            td.unstack(x, 2)
        with pytest.raises(TypeError):
            td.split(x)


def test_lists_that_are_empty_or_long():
    most = rt_cached_views.MOST_VIEWS
    assert calls_of(td.unstack, td.zeros((0, 3))) == 3
    assert td.unstack(td.zeros((0, 3))) == ()
    for size, answered in ((most, 3), (most + 1, 0)):
        assert calls_of(td.unstack, td.zeros(size)) == answered
        assert len(td.unstack(td.zeros(size))) == size


def test_more_layouts_than_slots():
    x = td.asarray(np.arange(4 * rt_cached_views.SLOTS))
    for _ in range(3):
        for size in range(2, 4 * rt_cached_views.SLOTS):
            first, second = td.split(x[:size], [size // 2])
            assert (len(first), second[0].item()) == (size // 2, size // 2)


def test_changed_kernel_is_called():
    x = td.asarray(X)
    assert calls_of(td.split, x, 2) == 3
    seen = []

    def basic_index(self, plan):
        seen.append(plan)
        return td.zeros((1,))

    with Library("td", "IMPL") as library:
        library.impl("basic_index", basic_index, "CPU")
        assert [part.shape for part in td.split(x, 2)] == [(1,), (1,)]
    assert len(seen) == 2
    assert calls_of(td.split, x, 2) == 3


def test_gradients_flow_through_hot_lists():
    x = td.asarray(np.arange(6.0), requires_grad=True)
    for _ in range(4):
        x.grad = None
        first, second = td.split(x, [2])
        (first.sum() + 3 * second.sum()).backward()
        assert x.grad.tolist() == [1, 1, 3, 3, 3, 3]
    with td.no_grad():
        assert calls_of(td.split, x, [2]) == 3
        assert not td.split(x, [2])[0].requires_grad


def test_writes_reach_the_source_and_its_version():
    x = td.zeros((2, 3))
    for number in range(4):
        before = x.storage().version
        td.unstack(x)[1][0] = float(number)
        assert x[1, 0].item() == number
        assert x.storage().version == before + 1


def test_source_lives_as_long_as_a_view():
    for _ in range(4):
        view = td.split(td.asarray(np.arange(1000.0)), 2)[1]
        gc.collect()
        assert view[0].item() == 500.0


def test_jitted_and_mapped_calls_agree():
    x = td.asarray(X)
    for _ in range(3):
        want = [part.tolist() for part in td.split(x, 2)]
        assert [part.tolist() for part in td.jit(lambda x: td.split(x, 2))(x)] == want
        rows = td.vmap(lambda row: td.unstack(row)[1])(x)
        assert rows.tolist() == X[:, 1].tolist()


def test_reference_counts_do_not_drift():
    x, cuts = td.asarray(X), [1, 3]
    kept = [cuts, td.Tensor, x, x.numpy(), x.numpy().dtype, None, ()]
    calls = [lambda: td.split(x, cuts), lambda: td.unstack(x, axis=1), lambda: td.unstack(x[:0])]

    def repeat(call, count):
        for _ in range(count):
            call()

    for call in calls:
        repeat(call, 5)
        gc.collect()
        before = [sys.getrefcount(value) for value in kept]
        growth = smallest_block_growth(partial(repeat, call, 25_000))
        after = [sys.getrefcount(value) for value in kept]
        assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))
        assert growth < 50


def test_replaced_layouts_are_freed():
    x = td.asarray(np.arange(600))
    parts = [x[:size] for size in range(2, 600)]
    for part in parts:
        td.split(part, [1])
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(10):
        for part in parts:
            td.split(part, [1])
    gc.collect()
    assert sys.getallocatedblocks() - before < 200


def test_each_allocation_may_fail():
    memory = pytest.importorskip("_testcapi")
    x = td.asarray(X)
    assert calls_of(td.split, x, 2) == 3
    gc.collect()
    blocks, failed = sys.getallocatedblocks(), 0
    for k in range(40):
        for call in (lambda: td.split(x, 2), lambda k=k: td.split(x, [1 + k % 3, 3])):
            try:
                memory.set_nomemory(k, k + 1)
                try:
                    call()
                finally:
                    memory.remove_mem_hooks()
            except MemoryError:
                failed += 1
    gc.collect()
    assert failed and sys.getallocatedblocks() - blocks < 300
    assert [part.tolist() for part in td.split(x, 2)] == [X[:2].tolist(), X[2:].tolist()]


def test_views_made_while_garbage_is_collected():
    """Finalizers that run inside a call may replace the layouts that it reads."""
    x = td.asarray(np.arange(64.0))

    class Intruder:
        def __del__(self):
            for size in range(2, 40):
                td.split(x[:size], [1])

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            ring = Intruder()
            ring.itself = ring
            del ring
            source = td.asarray(np.arange(12.0))
            assert [part.tolist() for part in td.split(source, 3)] == np.arange(12.0).reshape(3, 4).tolist()
    finally:
        gc.set_threshold(*threshold)
