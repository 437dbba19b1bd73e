"""Reverse mode on tensors with ``requires_grad``: values, in-place writes, versions, deep graphs, memory, errors."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from in_place_programs import F64, POINT, PROGRAMS, check, leaf
from tandem import errors
from tandem.eager.autograd.node import Node


# -- values ------------------------------------------------------------------------------------------------------------
def test_a_small_network():
    w, b = leaf(POINT), leaf(np.zeros(3))
    x = td.asarray(np.random.default_rng(1).normal(size=(5, 4)))
    loss = ((x @ w.T + b).tanh() ** 2).mean()
    loss.backward()
    check(lambda v: ((x @ v.T).tanh() ** 2).mean(), POINT)
    assert w.grad.shape == (3, 4)
    assert b.grad.shape == (3,)


def test_gradients_add_up_until_reset():
    x = leaf([1.0, 2.0])
    (x * 3).sum().backward()
    (x * 4).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    x.grad = None
    (x * 5).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_broadcast_and_dtype_of_gradients():
    x = td.asarray([[1.0], [2.0]], dtype=td.float32, requires_grad=True)
    y = leaf([1.0, 2.0, 3.0])
    (x * y).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (td.float32, [[6.0], [6.0]])
    assert (y.grad.dtype, y.grad.tolist()) == (F64, [3.0, 3.0, 3.0])


def test_gradients_own_their_memory():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x + y).sum().backward()
    x.grad += 1
    assert y.grad.tolist() == [1.0, 1.0]
    seed = td.ones(2, dtype=F64)
    x.grad = y.grad = None
    (x + y).backward(seed)
    x.grad.mul_(5)
    assert seed.tolist() == y.grad.tolist() == [1.0, 1.0]


def test_complex_to_real_and_back():
    z = td.asarray([1 + 2j, 3 - 1j], dtype=td.complex128, requires_grad=True)
    td.real(z * z).sum().backward()
    assert z.grad.dtype is td.complex128
    np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().numpy())
    x = leaf([1.0, 2.0])
    td.real(x * td.asarray([1j, 2.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0]


def test_list_arguments():
    x, y = leaf([1.0, 2.0]), leaf([3.0])
    (td.concat([x, td.zeros(1, dtype=F64), y, x]) * td.arange(6, dtype=F64)).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]
    assert y.grad.tolist() == [3.0]


def test_second_order():
    x = leaf([1.0, 2.0])
    (x**3).sum().backward(create_graph=True)
    (x.grad * x.grad).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.array([1.0, 4.0]) + 2 * 3 * 6 * np.array([1.0, 8.0]))


def test_second_order_through_residual_result():
    x = leaf([0.5, 1.0])
    (slope,) = td.autograd.grad(x.exp().sum(), x, create_graph=True)
    (curve,) = td.autograd.grad(slope.sum(), x, create_graph=True)
    (third,) = td.autograd.grad(curve.sum(), x)
    np.testing.assert_allclose(third.numpy(), np.exp([0.5, 1.0]))


def test_gradient_by_a_result():
    x = leaf([1.0, 2.0])
    y = x * 2
    by_y, by_x = td.autograd.grad((y * y).sum(), [y, x])
    assert by_y.tolist() == [4.0, 8.0]
    assert by_x.tolist() == [8.0, 16.0]
    assert x.grad is None
    other = leaf(1.0)
    with pytest.raises(errors.AutogradError, match="allow_unused"):
        td.autograd.grad((x * x).sum(), other)
    assert td.autograd.grad((x * x).sum(), other, allow_unused=True) == (None,)


def test_hooks():
    x, seen = leaf([1.0, 2.0]), []
    y = x * 3.0
    handle = y.register_hook(lambda g: g * 10.0)
    y.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g + 1.0)
    (y * y).sum().backward()
    assert seen == [[60.0, 120.0]]
    assert x.grad.tolist() == [181.0, 361.0]
    x.grad = None
    z = x * 3.0
    with z.register_hook(lambda g: g * 100.0):
        pass
    z.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    handle.remove()
    handle.remove()
    (slope,) = td.autograd.grad((y * y).sum(), y, create_graph=True)
    assert slope.tolist() == [6.0, 12.0]
    assert seen[1:] == [[6.0, 12.0]]
    for bad, kind in (
        (lambda: x.register_hook(3), TypeError),
        (lambda: td.ones(1).register_hook(print), RuntimeError),
    ):
        with pytest.raises(kind):
            bad()
    with pytest.raises(errors.UnsupportedError, match="eager"):
        td.grad(lambda v: (v.register_hook(print), v.sum())[1])(td.ones(2))
    x.register_hook(lambda g: g.sum())
    with pytest.raises(errors.AutogradError, match="a hook returned"):
        (x * 2).sum().backward()


def test_retain_grad():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    assert y.grad.tolist() == [6.0, 12.0]
    z.backward()
    assert y.grad.tolist() == [12.0, 24.0]
    x.retain_grad()
    with pytest.raises(errors.AutogradError):
        td.ones(2).retain_grad()
    gone = weakref.ref(y._meta.node)
    gc.disable()
    try:
        del y, z
        assert gone() is None
    finally:
        gc.enable()


def test_composites_and_user_operators():
    check(lambda x: (td.softmax(x) * td.asarray(POINT)).sum(), POINT)
    with td.Library("autogradtest", "DEF") as lib:
        lib.define("cube(Tensor x) -> Tensor")
        lib.impl("cube", lambda x: x * x * x, "CompositeImplicit")
        check(lambda x: td.ops.autogradtest.cube(x).sum(), POINT)


# -- modes -------------------------------------------------------------------------------------------------------------
def test_modes():
    x = leaf([1.0])
    with td.no_grad():
        assert not td.is_grad_enabled()
        assert not (x * 2).requires_grad
        with td.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad

    @td.no_grad()
    def inside(y):
        return y * 2

    assert not inside(x).requires_grad
    seen = []
    with td.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_detach_and_flags():
    x = leaf([1.0, 2.0])
    d = x.detach()
    assert not d.requires_grad
    assert d.storage() is x.storage()
    assert x.is_leaf
    assert not (x * 2).is_leaf
    assert x.requires_grad_(False) is x
    assert not (x * 2).requires_grad
    assert td.zeros(2).requires_grad_().requires_grad
    with pytest.raises(errors.UnsupportedError, match="detach"):
        (leaf([1.0]) * 2).requires_grad_(False)
    with pytest.raises(errors.DTypeError, match="floating"):
        td.asarray([1]).requires_grad_()
    with pytest.raises(TypeError, match="detach"):
        leaf([1.0]).numpy()


# -- deep graphs, memory -----------------------------------------------------------------------------------------------
def test_deep_graphs_do_not_recurse():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert x.grad.item() == 1.0
    y = x
    for _ in range(100_000):
        y = y * 1.0
    del y  # never run: the whole history goes at once


def test_histories_are_freed_without_the_garbage_collector():
    gc.collect()
    before = [o for o in gc.get_objects() if isinstance(o, Node)]  # a failed test's traceback may hold some
    gc.disable()
    try:
        for program in (*PROGRAMS, lambda x: (x.exp() * x.tanh()).sum(), lambda x: td.softmax(x).max()):
            x = leaf(POINT)
            y = program(x)
            node = weakref.ref(y._meta.node)
            y.backward(retain_graph=True, create_graph=False)
            del y
            assert node() is None
            y = program(x)
            node = weakref.ref(y._meta.node)
            del y
            assert node() is None
    finally:
        gc.enable()
    gc.collect()  # Python 3.13 keeps a family of written views in a cycle
    assert len([o for o in gc.get_objects() if isinstance(o, Node)]) == len(before)


def test_no_drift_in_reference_counts():
    x = leaf(POINT)
    shared = [
        x,
        x._meta,
        td.float64,
        td.add,
        td.ops.td.mul.default if hasattr(td.ops.td.mul, "default") else td.mul,
    ]

    def work():
        for program in PROGRAMS:
            program(x).backward()
        for bad in (lambda: x.add_(1), lambda: x.sum(7), lambda: (x * 2).backward()):
            with pytest.raises(errors.TandemError):
                bad()
        x.grad = None

    for _ in range(40):  # past the calls after which stubs are made
        work()
    gc.collect()  # the exceptions' tracebacks
    before = [sys.getrefcount(item) for item in shared]
    for _ in range(20):
        work()
    gc.collect()
    assert [sys.getrefcount(item) for item in shared] == before


# -- errors ------------------------------------------------------------------------------------------------------------
def test_graph_is_freed():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    with pytest.raises(errors.AutogradError, match="retain_graph=True"):
        y.backward()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_errors_of_backward():
    x = leaf([1.0, 2.0])
    with pytest.raises(errors.ShapeError, match=r"\.sum\(\)"):
        (x * 2).backward()
    with pytest.raises(errors.ShapeError, match="shape"):
        (x * 2).backward(td.ones(3))
    with pytest.raises(errors.DTypeError, match="floating-point"):
        (x * 2).backward(td.asarray([1, 2]))
    with pytest.raises(errors.AutogradError, match="requires_grad=True"):
        td.ones(1).sum().backward()
    with pytest.raises(errors.NotDifferentiableError, match="argmax"):
        x.argmax().backward()
    with pytest.raises(errors.NotDifferentiableError, match="bool"):
        (x > 1).all().backward()
    assert x.grad is None


def test_operator_without_derivative():
    with td.Library("autogradnone", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x + x, "CPU")
        x = leaf([1.0, 2.0])
        y = td.ops.autogradnone.twice(x)
        assert y.requires_grad
        with pytest.raises(errors.NotDifferentiableError, match=r"autogradnone::twice.*without a derivative"):
            y.sum().backward()
        with pytest.raises(errors.NotDifferentiableError, match="autogradnone::twice"):
            td.grad(lambda v: td.ops.autogradnone.twice(v).sum())(td.ones(2))
    assert x.grad is None


def test_failed_backward_leaves_gradients():
    x = leaf([1.0, 2.0])
    x.sum().backward()
    y = x.exp()
    z = (y * 2).sum() + x.sum()
    y.add_(1.0)
    with pytest.raises(errors.VersionError):
        z.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_grad_attribute():
    x = leaf([1.0, 2.0])
    x.grad = td.zeros(2, dtype=F64)
    with pytest.raises(errors.ArgumentError, match="gradient of a tensor"):
        x.grad = td.zeros(3, dtype=F64)
    with pytest.raises(errors.ArgumentError, match="requires_grad"):
        td.zeros(2).grad = td.zeros(2)


def test_one_grad_mode_in_two_threads():
    mode, inside, left = td.no_grad(), threading.Event(), threading.Event()
    found = []

    def other():
        with td.enable_grad(), mode:
            inside.set()
            left.wait(10)
        found.append(td.is_grad_enabled())

    thread = threading.Thread(target=other)
    with td.no_grad():
        with mode:
            thread.start()
            inside.wait(10)
        assert not td.is_grad_enabled()
        left.set()
        thread.join()
    assert found == [True]
