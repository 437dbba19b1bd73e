"""Memory and threads of natively recorded calls."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from native_entries import fail_each_allocation
from recorded_nodes import leaf, recorded_natively, same_record, stub_of
from tandem import config, errors
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.compiler.structs import sizeof
from tandem.backends.cpu.fastpath.runtime import rt_record, rt_saved
from tandem.eager.autograd.autograd_meta import AutogradMeta
from tandem.eager.autograd.node import Node
from tandem.eager.tensor.storage import Hold
from tandem.eager.tensor.tensor import Tensor
from tandem.operators.declare.derivatives import NotDifferentiable, Partials
from tandem.registry import dtypes as dt
from tandem.registry.dispatch.keys import GRAD_CPU_KEYS
from tandem.registry.function import functions
from tandem.registry.values import TensorSpec

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


@pytest.fixture(autouse=True)
def hot():
    native_layer.install()
    with config.override(hot_calls=1):
        yield


# -- memory ------------------------------------------------------------------------------------------------------------
def calls():
    x, y, m = leaf(), leaf(seed=1), leaf((4, 3), seed=2)
    plain = leaf(tracked=False)
    first = td.mul(x, y)
    return (x, y, m, plain, first), {
        "one": lambda: td.add(x, plain),
        "two": lambda: td.mul(x, y),
        "same twice": lambda: td.mul(x, x),
        "scalar": lambda: td.mul(x, 2.0),
        "of a result": lambda: td.mul(first, plain),
        "result saved": lambda: td.exp(x),
        "mask": lambda: td.gt(x, 0.0),
        "sum": lambda: td.sum(x, axis=1, keepdims=True),
        "max": lambda: td.max(x, axis=(0, 1)),
        "matmul": lambda: td.matmul(x, m),
        "cumprod": lambda: td.cumprod(x, 0),
        "cast": lambda: td.astype(x, td.float64),
        "to integers": lambda: td.astype(x, td.int32),
        "clone": lambda: td.clone(x),
        "reshape": lambda: td.reshape(x, (12,)),
    }


def watched_counts(tensors):
    shared = [
        np.dtype(np.float32),
        None,
        True,
        0,
        1,
        "cpu",
        "",
        (),
        GRAD_CPU_KEYS,
        Tensor,
        Node,
        AutogradMeta,
    ]
    shared += [Hold, TensorSpec, td.float32]
    held = [*tensors, *(t._array for t in tensors), *(t._meta for t in tensors), *shared]
    return [sys.getrefcount(item) for item in held]


@pytest.mark.parametrize("name", list(calls()[1]))
def test_reference_counts_do_not_drift(name):
    tensors, found = calls()
    for _ in range(60):
        found[name]()
    gc.collect()
    before = watched_counts(tensors)
    for _ in range(3000):
        found[name]()
    gc.collect()
    after = watched_counts(tensors)
    assert all(abs(a - b) <= 10 for a, b in zip(after, before, strict=True)), list(
        zip(before, after, strict=True)
    )


@pytest.mark.parametrize("name", [n for n in calls()[1] if n != "to integers"])
def test_each_allocation_may_fail(name):
    hooks = pytest.importorskip("_testcapi")
    tensors, found = calls()
    fail_each_allocation(hooks, found[name])  # what Python and NumPy keep for themselves is there from now on
    gc.collect()
    before = watched_counts(tensors)
    assert fail_each_allocation(hooks, found[name])
    gc.collect()
    after = watched_counts(tensors)
    assert all(abs(a - b) <= 2 for a, b in zip(after, before, strict=True)), list(
        zip(before, after, strict=True)
    )


def test_collection_in_the_midst_of_recording():
    """Finalizers that change the very tensors of the call run between any two of its allocations."""
    stub, x = stub_of("td::mul.Tensor"), leaf()
    recorded_natively(stub, x, x)
    kept = x._meta

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            x._meta = AutogradMeta() if x._meta is kept else kept

    before = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for _ in range(3000):
            Cycle()
            out = stub.function(x, x)
            (one, two) = out._meta.node.edges
            assert type(one[0]) is type(two[0]) is AutogradMeta
    finally:
        gc.set_threshold(*before)


def test_a_deep_history_is_freed_without_recursion():
    x = leaf((2,))
    out = x
    for _ in range(100_000):
        out = td.mul(out, 1.0)
    alive = weakref.ref(out)
    del out
    assert alive() is None


def test_threads_record_at_once():
    faults = []

    def work(seed):
        x = leaf((5,), dt.float64, seed)
        for _ in range(300):
            y = td.exp(x) * x + 1.0
            y.sum().backward()
            array = x._array
            want = np.exp(array) * (1 + array)
            if not np.allclose(x.grad._array, want):
                faults.append(seed)
            x.grad = None

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_replaced_autograd_kernel_is_called():
    stub, x = stub_of("td::hypot.Tensor"), leaf()
    recorded_natively(stub, x, x)
    seen = []

    def kernel(self, other):
        seen.append(1)
        with td.no_grad():
            return functions["td::hypot.Tensor"](self, other)

    with td.Library("td", "IMPL") as library:
        library.impl("hypot.Tensor", kernel, "AutogradCPU")
        for _ in range(4):
            assert stub.function(x, x)._meta is None
    assert len(seen) == 4
    recorded_natively(stub, x, x)


def test_a_replaced_declaration_is_followed():
    stub, x = stub_of("td::hypot.Tensor"), leaf()
    old = recorded_natively(stub, x, x)._meta.node.active
    op, decl = stub.operator, stub.operator.decl
    op.decl = decl._replace(derivative=Partials({"self": 3, "other": 4}))
    op.recompute()
    try:
        out = recorded_natively(stub, x, x)
        assert out._meta.node.active is not old
        out.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.full((3, 4), 7.0))
        op.decl = decl._replace(derivative=NotDifferentiable("for this test"))
        op.recompute()
        for _ in range(3):
            with pytest.raises(errors.NotDifferentiableError, match="for this test"):
                stub.function(x, x).sum().backward()
    finally:
        op.decl = decl
        op.recompute()
    same_record(recorded_natively(stub, x, x), stub.operator(x, x))


def test_sizes_of_records():
    assert rt_record.Recording.rules + 8 * (1 << rt_record.MOST) <= sizeof(rt_record.Recording)
    assert rt_saved.RuleSet.saver + 16 * rt_saved.MOST_SAVED <= sizeof(rt_saved.RuleSet)
