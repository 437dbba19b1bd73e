"""Custom operators: arguments that they write, gradients, batches, autocast, meta."""

import numpy as np
import pytest
import tandem as td
from custom_harness import X, close, register_derivative, sine_operator
from tandem import errors


@pytest.fixture
def op():
    with sine_operator() as made:
        yield made


@pytest.fixture
def differentiable(op):
    register_derivative(op)
    return op


# --- what is written --------------------------------------------------------------------------------------


@pytest.fixture
def writer():
    def scale_into(x: td.Tensor, out: td.Tensor, by: float) -> None:
        out.numpy()[...] = x.numpy() * by

    op = td.custom_op("outside::scale_into", scale_into, mutates_args={"out"})
    yield op
    op.remove()


def test_writing_raises_the_version(writer):
    out = td.zeros(3)
    assert writer(X, out, 2.0) is None
    assert out.tolist() == [1.0, -2.0, 4.0]
    assert out.storage().version == 1
    leaf = td.asarray([1.0, 2.0, 3.0], requires_grad=True)
    saved = leaf * 1
    y = td.exp(saved)
    with td.no_grad():
        writer(X, y, 2.0)
    with pytest.raises(errors.VersionError):
        y.sum().backward()


def test_read_only_memory_is_refused(writer):
    with pytest.raises(errors.UnsupportedError, match="read-only"):
        writer(X, td.broadcast_to(td.zeros(1), (3,)), 2.0)


def test_writing_under_jit(writer):
    def f(x):
        out = td.zeros(3)
        view = out[1:]
        writer(x, out, 2.0)
        return out + 1, view

    for found, wanted in zip(td.jit(f)(X), f(X), strict=True):
        assert found.tolist() == wanted.tolist()
    rows = [row.op for row in td.jit(f).lower(X).kernels()]
    assert "outside::scale_into_functional" in rows


def test_writing_into_an_argument_of_a_jitted_function(writer):
    def f(x, out):
        writer(x, out, 3.0)
        return out.sum()

    out = td.zeros(3)
    assert td.jit(f)(X, out).tolist() == 4.5
    assert out.tolist() == [1.5, -3.0, 6.0]
    captured = td.zeros(3)
    jitted = td.jit(lambda x: writer(x, captured, 1.0))
    for _ in range(3):
        captured[...] = 7.0
        jitted(X)
        assert captured.tolist() == X.tolist()


def test_several_arguments_written_and_a_result():
    def swap(a: td.Tensor, b: td.Tensor) -> td.Tensor:
        held = a.numpy().copy()
        a.numpy()[...] = b.numpy()
        b.numpy()[...] = held
        return td.asarray(held + b.numpy())

    op = td.custom_op("outside::swap", swap, mutates_args=("a", "b"))
    op.register_fake(lambda a, b: td.empty_like(a))

    def f(x):
        a, b = x * 1, x * 10
        total = op(a, b)
        return a, b, total

    for found, wanted in zip(td.jit(f)(X), f(X), strict=True):
        assert found.tolist() == wanted.tolist()

    def same_memory(x):
        a = x * 1
        return op(a, a)

    with pytest.raises(errors.UnsupportedError, match="shares memory"):
        td.jit(same_memory)(X)
    op.remove()


def test_writing_into_a_history_needs_a_rule(writer):
    y = td.asarray([1.0, 2.0, 3.0], requires_grad=True) * 2
    writer(X, y, 2.0)
    with pytest.raises(errors.NotDifferentiableError, match="scale_into"):
        y.sum().backward()
    with pytest.raises(errors.LeafWriteError, match="writes into a leaf"):
        writer(X, td.asarray([1.0, 2.0, 3.0], requires_grad=True), 2.0)
    with pytest.raises(errors.TandemError, match="scale_into"):
        td.grad(lambda x: (lambda o: (writer(x, o, 2.0), o.sum())[1])(x * 1))(X)


# --- layers -----------------------------------------------------------------------------------------------


def test_gradients(differentiable):
    x = td.asarray([0.5, -1.0, 2.0], requires_grad=True)
    differentiable(x, 2.0).sum().backward()
    close(x.grad, 2 * np.cos(X.numpy()))
    close(td.grad(lambda x: differentiable(x).sum())(X), np.cos(X.numpy()))
    second = td.grad(lambda x: td.grad(lambda x: differentiable(x).sum())(x).sum())
    close(second(X), -np.sin(X.numpy()))
    close(td.jit(td.grad(lambda x: differentiable(x).sum()))(X), np.cos(X.numpy()))


def test_backward_without_derivative_raises_with_line(op):
    x = td.asarray([0.5], requires_grad=True)
    y = op(x)
    with pytest.raises(errors.NotDifferentiableError, match=r"outside::sine.*sine.register_autograd"):
        y.sum().backward()
    handle = op.register_autograd(lambda ctx, g: (g, None))
    op(x).sum().backward()
    assert x.grad.tolist() == [1.0]
    handle.remove()
    with pytest.raises(errors.NotDifferentiableError):
        op(x).sum().backward()


def test_newest_derivative_applies_in_any_removal_order(op):
    x = td.asarray([0.5], requires_grad=True)

    def gradient():
        x.grad = None
        op(x).sum().backward()
        return x.grad.tolist()

    one = op.register_autograd(lambda ctx, g: (g, None))
    two = op.register_autograd(lambda ctx, g: (2 * g, None))
    assert gradient() == [2.0]
    one.remove()
    assert gradient() == [2.0]
    two.remove()
    with pytest.raises(errors.NotDifferentiableError):
        gradient()


@pytest.mark.filterwarnings("ignore:.*has no batching rule")
def test_vmap_by_a_loop_and_by_a_rule(op):
    batch = td.stack([X, X * 2, X * 3])
    wanted = np.sin(batch.numpy())
    close(td.vmap(op)(batch), wanted)
    calls = []

    @op.register_vmap
    def rule(info, in_dims, x, scale):
        calls.append((info.batch_size, in_dims))
        return op(x, scale), 0

    close(td.vmap(op)(batch), wanted)
    assert calls == [(3, (0, None))]
    close(td.jit(lambda b: td.vmap(op)(b))(batch), wanted)


def test_vmap_of_grad(differentiable):
    differentiable.register_vmap(lambda info, in_dims, x, scale: (differentiable(x, scale), 0))
    batch = td.stack([X, X * 2])
    close(td.vmap(td.grad(lambda x: differentiable(x).sum()))(batch), np.cos(batch.numpy()))
    close(td.grad(lambda b: td.vmap(differentiable)(b).sum())(batch), np.cos(batch.numpy()))


def test_autocast(op):
    op.register_kernel("cpu", lambda x, scale: x * 1)
    handle = op.register_autocast("cpu", td.bfloat16)
    with td.autocast("cpu"):
        assert op(X).dtype is td.bfloat16
        assert op(td.asarray([1, 2])).dtype is td.int64
        assert op(X.astype(td.float64)).dtype is td.float64
    assert op(X).dtype is td.float32
    handle.remove()
    with td.autocast("cpu"):
        assert op(X).dtype is td.float32
    with pytest.raises(errors.DTypeError, match="floating"):
        op.register_autocast("cpu", td.int32)


def test_meta(op):
    assert op(td.empty((2, 3), device="meta")).spec == td.empty((2, 3), device="meta").spec
