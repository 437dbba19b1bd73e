"""Calls of grad that native entries record: the results, values and errors of calls at a level."""

import numpy as np
import pytest
import tandem as td
from tandem import config, errors
from tandem.eager.layers import recording_scope
from tandem.eager.layers.level_stack import stack
from tandem.eager.tensor.tensor import Tensor

W = {"w": td.asarray(np.linspace(-1, 1, 12).reshape(3, 4)), "b": td.asarray(np.linspace(0, 1, 4))}
X = td.asarray(np.linspace(-2, 2, 15).reshape(5, 3))


def loss(p, x):
    hidden = td.tanh(x @ p["w"] + p["b"])
    buffer = td.zeros((5, 4), dtype=td.float64)
    buffer[1:] = hidden[:-1]
    return (td.softmax(buffer * hidden) ** 2).mean() + hidden.T[0].sum()


def bits(tree):
    return [np.asarray(leaf.numpy()).tobytes() for leaf in td.tree.leaves(tree)]


def at_a_level(monkeypatch, function, *args):
    with monkeypatch.context() as patch:
        patch.setattr(recording_scope, "is_available", lambda tensors: False)
        return function(*args)


def test_values_are_plain_tensors():
    seen = []
    td.grad(lambda x: (seen.append((type(x), stack.recording, list(stack.levels))), x.sum())[1])(X)
    ((kind, scope, levels),) = seen
    assert kind is Tensor and scope is not None and not levels and stack.recording is None


def test_the_bits_of_a_level(monkeypatch):
    function = td.value_and_grad(loss)
    wanted = bits(at_a_level(monkeypatch, function, W, X))
    with config.override(hot_calls=2, hot_composites=3):
        for _ in range(12):
            assert bits(function(W, X)) == wanted
    assert all(leaf._meta is None for leaf in td.tree.leaves(function(W, X)))


def test_auxiliary_results():
    w = td.asarray([1.0, 2.0])
    captured = td.asarray([3.0, 4.0])
    (value, aux), slope = td.value_and_grad(
        lambda x: ((x * captured).sum(), (x, x * 2, captured, "text")), has_aux=True
    )(w)
    assert (value.item(), slope.tolist()) == (11.0, [3.0, 4.0])
    assert aux[0] is w and aux[2] is captured and aux[3] == "text"
    assert aux[1].tolist() == [2.0, 4.0] and not aux[1].requires_grad


def test_leaves_of_the_caller_keep_their_graph():
    w = td.asarray([2.0, 3.0]).requires_grad_()
    value, slope = td.value_and_grad(lambda x: (x * x * w).sum())(td.asarray([1.0, 4.0]))
    (value + (slope * slope).sum()).backward()
    # d/dw of x^2 w + (2 x w)^2
    assert w.grad.tolist() == [1.0 + 8 * 1 * 2, 16.0 + 8 * 16 * 3]
    with td.no_grad():
        assert not td.grad(lambda x: (x * w).sum())(td.ones(2)).requires_grad


def test_what_outlives_the_call_has_ended():
    kept = []
    td.grad(lambda x: (kept.extend([x, x * 2, x[:1]]), x.sum())[1])(td.ones(2))
    for value in kept:
        with pytest.raises(errors.LeakedTracerError, match="has_aux"):
            value + 1
    with pytest.raises(ZeroDivisionError):
        td.grad(lambda x: (kept.append(x * 3), 1 / 0)[1])(td.ones(2))
    with pytest.raises(errors.LeakedTracerError):
        kept[-1].sum()
    assert stack.recording is None and td.grad(td.sum)(td.ones(2)).tolist() == [1, 1]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.sum().backward(),
        lambda x: td.autograd.grad(x.sum(), x),
        lambda x: x.register_hook(print),
        lambda x: OUTSIDE.add_(x),
        lambda x: OUTSIDE[:1].add_(x[0]),
    ],
)
def test_refused_uses(use):
    with pytest.raises(errors.UnsupportedError):
        td.grad(lambda x: (use(x), x.sum())[1])(td.ones(2))
    assert OUTSIDE.tolist() == [0.0, 0.0] and not OUTSIDE.requires_grad


OUTSIDE = td.zeros(2)


def test_inner_models_may_run_backward():
    """What does not depend on the inputs of a call is not its concern."""

    def function(x):
        inner = td.asarray([1.0, 2.0]).requires_grad_()
        (inner * inner).sum().backward()
        return (x * inner.grad).sum()

    assert td.grad(function)(td.ones(2)).tolist() == [2.0, 4.0]


def test_nested_transforms():
    cube = lambda x: (x**3).sum()  # noqa: E731
    assert td.grad(lambda x: td.grad(cube)(x).sum())(td.asarray([2.0])).tolist() == [12.0]
    assert td.grad(lambda x: td.vmap(lambda y: y * y * x[0])(x).sum())(td.asarray([2.0, 3.0])).tolist() == [
        21.0,
        12.0,
    ]
    assert td.grad(lambda x: td.jvp(cube, (x,), (td.ones(1),))[1])(td.asarray([2.0])).tolist() == [12.0]
    factor = td.jit(lambda x: x * x)
    assert td.grad(lambda x: factor(x).sum())(td.asarray([2.0])).tolist() == [4.0]
