"""Native entries of composites of views: recorded calls have the graph nodes and the alias sets of first calls."""

import gc
import sys

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.registry.library import Library

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")

VIEWS = {
    "expand_dims": lambda x: td.expand_dims(x, 1),
    "expand": lambda x: td.expand(x, (5, 2, 3, 4)),
    "flip": lambda x: td.flip(x, 0),
    "flip by name": lambda x: td.flip(x, axis=(0, 2)),
    "flatten": lambda x: td.flatten(x, 1),
    "swapaxes": lambda x: td.swapaxes(x, 0, 1),
    "moveaxis": lambda x: td.moveaxis(x, 0, 2),
    "diagonal": lambda x: td.diagonal(x, 0, 1, 2),
    "squeeze": lambda x: td.squeeze(x[:1], 0),
    "chunk": lambda x: td.chunk(x, 2, 1),
    "unbind": lambda x: td.unbind(x, 1),
    "split": lambda x: td.split(x, 2, 2),
}
HOT = 12


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        yield


def source():
    return td.asarray(np.arange(24.0).reshape(2, 3, 4)).requires_grad_() * 1


def views_of(result):
    return result if isinstance(result, tuple) else (result,)


def history(view):
    """The view operators that made a tensor, and the operators of its graph node."""
    steps = []
    while view._meta is not None and view._meta.view is not None:
        call = view._meta.view
        steps.append((call.derivative.op.name, call.args[1:], view._meta.node.op.name))
        view = call.base
    return steps


@pytest.mark.parametrize("name", VIEWS)
def test_hot_recorded_views_equal_first_ones(name):
    function, x = VIEWS[name], source()
    with config.override(hot_calls=10**9):
        first = views_of(function(x))
    for _ in range(HOT):
        hot = views_of(function(x))
    assert len(first) == len(hot)
    for one, two in zip(first, hot):
        assert (one.shape, one.strides, one.tolist()) == (two.shape, two.strides, two.tolist())
        assert history(one) == history(two)
        assert two.requires_grad and not two.is_leaf


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_and_second_gradients_flow(name):
    function, weights = VIEWS[name], td.asarray(np.linspace(0.5, 2.0, 24).reshape(2, 3, 4))

    def loss(x):
        return sum((view**3).sum() for view in views_of(function(x * weights)))

    x = td.asarray(np.arange(1.0, 25.0).reshape(2, 3, 4))
    with config.override(hot_calls=10**9):
        wanted = td.grad(loss)(x), td.grad(lambda x: td.grad(loss)(x).sum())(x)
    for _ in range(HOT):
        leaf = x.clone().requires_grad_()
        (first,) = td.autograd.grad(loss(leaf), (leaf,), create_graph=True)
        (second,) = td.autograd.grad(first.sum(), (leaf,))
    for one, two in zip(wanted, (first, second)):
        np.testing.assert_allclose(two.detach().numpy(), one.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "expand"])
def test_writes_through_hot_views_reach_the_gradient(name):
    for _ in range(HOT):
        leaf = td.asarray(np.arange(24.0).reshape(2, 3, 4)).requires_grad_()
        x = leaf * 1
        views = views_of(VIEWS[name](x))
        views[0].mul_(3.0)
        x.sum().backward()
        written = np.zeros((2, 3, 4), bool)
        views_of(VIEWS[name](td.asarray(written)))[0].fill_(True)
        np.testing.assert_array_equal(leaf.grad.numpy(), np.where(written, 3.0, 1.0))


def test_leaves_and_tensors_without_gradients_share_a_slot():
    leaf, plain = td.zeros((2, 3)).requires_grad_(), td.zeros((2, 3))
    for k in range(3 * HOT):
        x = (plain, leaf, plain)[k % 3]
        assert td.flip(x, 0).requires_grad is x.requires_grad
        with td.no_grad():
            assert not td.flip(x, 0).requires_grad


def test_changed_kernels_are_called():
    x, seen = source(), []
    for _ in range(HOT):
        td.swapaxes(x, 0, 1)
    with Library("td", "IMPL") as library:
        library.impl(
            "swapaxes", lambda self, *axes: seen.append(axes) or self, "AutogradCPU", allow_override=True
        )
        assert td.swapaxes(x, 0, 1).shape == (2, 3, 4)
    assert seen == [(0, 1)]
    assert td.swapaxes(x, 0, 1).shape == (3, 2, 4)


def test_more_layouts_than_slots_of_recorded_calls():
    for size in (*range(1, 200), *range(1, 200)):
        x = td.zeros((2, size)).requires_grad_()
        assert td.swapaxes(x, 0, 1).shape == (size, 2)
        assert [part.shape for part in td.unbind(x)] == [(size,)] * 2


def test_reference_counts_do_not_grow():
    x, names = source(), [None, False, td.Tensor]
    calls = [lambda: td.flip(x, 0), lambda: td.unbind(x), lambda: td.diagonal(x, 0, 1, 2)]
    for call in calls:
        for _ in range(HOT):
            call()
        gc.collect()
        before = [sys.getrefcount(value) for value in (x, *names)]
        for _ in range(10_000):
            call()
        gc.collect()
        after = [sys.getrefcount(value) for value in (x, *names)]
        assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize("name", ["flip", "unbind", "diagonal"])
def test_each_allocation_of_a_recorded_call_may_fail(name):
    memory = pytest.importorskip("_testcapi")
    x, function, failed = source(), VIEWS[name], 0
    for _ in range(HOT):
        function(x)
    for k in range(60):
        try:
            memory.set_nomemory(k, k + 1)
            try:
                function(x)
            finally:
                memory.remove_mem_hooks()
        except MemoryError:
            failed += 1
    assert failed
    assert history(views_of(function(x))[0])
