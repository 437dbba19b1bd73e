"""Native entries of operators on lists of tensors: recorded calls, and steps of `backward` through their nodes."""

import gc
import sys

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem import config
from tandem.backends.cpu import fastpath

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")
HOT = 12


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        for _ in range(HOT):  # the entries that the tests call
            x, y = td.ones(2).requires_grad_(), td.ones(2)
            td.concat([x, y]).sum().backward()
        yield


def node_of(result):
    node = result._meta.node
    edges = [[None if edge is None else edge[1:] for edge in one] for one in node.edges]
    return node.op.name, node.active, edges, node.residuals, node.versions


@settings(max_examples=60)
@given(st.data())
def test_native_nodes_and_gradients_equal_those_of_python(data):
    rank = data.draw(st.integers(1, 3))
    axis = data.draw(st.integers(-rank, rank - 1))
    shape = data.draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank))
    tracked = data.draw(st.lists(st.sampled_from(["leaf", "result", "plain"]), min_size=1, max_size=5))
    kind = data.draw(st.sampled_from([list, tuple]))
    dtype = data.draw(st.sampled_from([td.float32, td.float64, td.complex64]))
    leaves = []
    for state in tracked:
        sizes = list(shape)
        sizes[axis] = data.draw(st.integers(0, 3))
        leaf = td.asarray(np.random.default_rng(0).normal(size=sizes)).astype(dtype)
        leaves.append(leaf.requires_grad_(state != "plain"))

    def call():
        return td.concat(kind(x * 2 if how == "result" else x for x, how in zip(leaves, tracked)), axis)

    with config.override(hot_calls=10**9):
        wanted = call()
    result = call()
    assert result.tolist() == wanted.tolist()
    assert result.requires_grad is wanted.requires_grad
    if not result.requires_grad:
        return
    assert node_of(result) == node_of(wanted)
    weights = td.asarray(np.random.default_rng(1).normal(size=result.shape)).astype(dtype)
    inputs = [leaf for leaf in leaves if leaf.requires_grad]
    first = td.autograd.grad((result * weights).sum(), inputs, create_graph=True)
    one, two = (
        td.autograd.grad((result * weights).sum(), inputs),
        td.autograd.grad((wanted * weights).sum(), inputs),
    )
    for a, b, c in zip(one, two, first):
        assert a.dtype is dtype and a.tolist() == b.tolist() == c.tolist()


def test_one_tensor_twice_has_the_sum_of_both_gradients():
    x = td.ones(2).requires_grad_()
    for _ in range(HOT):
        x.grad = None
        (td.concat([x, x, td.zeros(1), x]) * td.arange(7.0)).sum().backward()
        assert x.grad.tolist() == [0.0 + 2 + 5, 1.0 + 3 + 6]


def test_mixed_dtypes_and_numbers_are_left_to_python():
    x, y = td.ones(2).requires_grad_(), td.ones(2, dtype=td.float64).requires_grad_()
    for _ in range(HOT):
        x.grad = y.grad = None
        (td.concat([x, y]) * 2).sum().backward()
        assert x.grad.dtype is td.float32 and x.grad.tolist() == [2.0, 2.0]
        assert y.grad.dtype is td.float64 and y.grad.tolist() == [2.0, 2.0]


def test_errors_of_rules_reach_the_caller():
    x = td.ones(2).requires_grad_()
    y = td.concat([x, td.ones(1)])
    with pytest.raises(td.errors.TandemError):
        y.backward(td.ones(5))
    y.backward(td.ones(3))
    assert x.grad.tolist() == [1.0, 1.0]


def test_reference_counts_do_not_grow():
    x, y, axis = td.ones(2).requires_grad_(), td.ones(2), 0
    tensors, names = [x, y, x], [x, y, None, td.Tensor]
    gc.collect()
    before = [sys.getrefcount(value) for value in names]
    for _ in range(20_000):
        td.concat(tensors, axis)
    for _ in range(3_000):
        td.autograd.grad(td.concat(tensors).sum(), (x,))
    gc.collect()
    after = [sys.getrefcount(value) for value in names]
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))


def test_each_allocation_may_fail():
    memory = pytest.importorskip("_testcapi")
    x, failed = td.ones(2).requires_grad_(), 0
    for k in range(60):
        try:
            memory.set_nomemory(k, k + 1)
            try:
                td.concat([x, x])
            finally:
                memory.remove_mem_hooks()
        except MemoryError:
            failed += 1
    assert failed
    assert td.concat([x, x]).requires_grad
