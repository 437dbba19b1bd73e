"""``td.autograd.graph``: hooks of saved tensors and of nodes, and the switch of anomaly detection."""

import contextlib

import numpy as np
import pytest
import tandem as td

graph = td.autograd.graph


X, W = [1.0, 2.0, 3.0], [[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]]


class Exp(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]


FUNCTIONS = {
    "argument": lambda x, w: x * x,
    "result": lambda x, w: x.exp(),
    "product": lambda x, w: (w @ x).tanh(),
    "softmax": lambda x, w: td.softmax(w * x, 1),
    "function": lambda x, w: Exp.apply(x * 2) * w,
    "scan": lambda x, w: w.cumsum(1) ** x,
    "list": lambda x, w: td.concat([w, x[None]]) ** 2,
    "indices": lambda x, w: x[td.asarray([0, 0, 2])] ** 3,
    "several results": lambda x, w: td.linalg.qr(w.T)[0] ** 2,
    "reduction": lambda x, w: (w - w.mean(1, keepdims=True)).max(1),
    "jitted": td.jit(lambda x, w: x * x + w.sum(0) ** 2),
    "in place": lambda x, w: (x * 2).add_(x).mul_(x),
}
HOOKS = {
    "arrays": lambda: graph.saved_tensors_hooks(lambda x: x.detach().numpy().copy(), td.asarray),
    "same": lambda: graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    "host": graph.save_on_cpu,
}


def derivatives(function, context):
    """First and second derivatives; the function is recorded inside the context."""
    x, w = td.asarray(X).requires_grad_(), td.asarray(W).requires_grad_()
    with context:
        y = function(x, w)
    first = td.autograd.grad(y.sum(), [x, w], materialize_grads=True, create_graph=True)
    squares = sum((g * g).sum() for g in first)
    second = td.autograd.grad(squares, [x, w], materialize_grads=True) if squares.requires_grad else ()
    return [g.detach().numpy() for g in (*first, *second)]


@pytest.mark.parametrize("hooks", HOOKS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hooks_change_no_derivative(name, hooks):
    expected = derivatives(FUNCTIONS[name], contextlib.nullcontext())
    for given, wanted in zip(derivatives(FUNCTIONS[name], HOOKS[hooks]()), expected, strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-6)


def test_hooks_see_each_saved_tensor():
    log = []
    x = td.asarray(X).requires_grad_()

    def pack(x):
        log.append(("pack", x.shape))
        return len(log), x.detach()

    def unpack(packed):
        log.append(("unpack", packed[1].shape))
        return packed[1]

    with graph.saved_tensors_hooks(pack, unpack):
        y = x.exp()
    z = (y * y).sum()
    assert log == [("pack", (3,))]
    z.backward()
    assert log == [("pack", (3,)), ("unpack", (3,))]


def test_innermost_hooks_pack():
    x, log = td.asarray(X).requires_grad_(), []
    outer = graph.saved_tensors_hooks(lambda x: (log.append("outer"), x)[1], lambda x: x)
    inner = graph.saved_tensors_hooks(lambda x: (log.append("inner"), x)[1], lambda x: x)
    with outer:
        with inner:
            x.exp()
        x.exp()
    x.exp()
    assert log == ["inner", "outer"]


def test_unpack_must_return_equal_spec():
    x = td.asarray(X).requires_grad_()
    for wrong in (lambda x: td.zeros(5), lambda x: x.to(td.float64), lambda x: None):
        with graph.saved_tensors_hooks(lambda x: x.detach(), wrong):
            y = x.exp().sum()
        with pytest.raises(td.errors.AutogradError, match="unpack returned"):
            y.backward()


def test_graph_is_freed_after_first_backward():
    x = td.asarray(X).requires_grad_()
    with graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    with pytest.raises(td.errors.AutogradError, match="retain_graph"):
        y.backward()


def test_error_in_hook_leaves_no_hooks():
    x = td.asarray(X).requires_grad_()
    with pytest.raises(ZeroDivisionError), graph.saved_tensors_hooks(lambda x: 1 / 0, lambda x: x):
        x.exp()
    y = x.exp().sum()
    y.backward()
    assert x.grad is not None


# -- nodes -------------------------------------------------------------------------------------------------------------
def test_node_hooks_see_and_replace_gradients():
    x, log = td.asarray(X).requires_grad_(), []
    y = x * 2
    handles = [
        y.grad_fn.register_hook(
            lambda inputs, outputs: log.append((inputs[0].tolist(), outputs[0].tolist()))
        ),
        y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10,)),
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1,)),
    ]
    y.sum().backward()
    assert log == [([20.0] * 3, [10.0] * 3)] and x.grad.tolist() == [21.0] * 3
    for handle in handles:
        handle.remove()
    x.grad = None
    (y * 1).sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and len(log) == 1


def test_node_hooks_refuse_leaves_and_values():
    y = td.asarray(X).requires_grad_() * 2
    with pytest.raises(TypeError, match="function of gradients"):
        y.grad_fn.register_hook(3)
    with pytest.raises(TypeError, match="AccumulateGrad"):
        y.grad_fn.next_functions[0][0].register_prehook(print)


def test_set_detect_anomaly_switches_and_restores():
    x = td.asarray([0.0]).requires_grad_()
    with td.autograd.set_detect_anomaly(True), pytest.raises(td.errors.AutogradError, match="sqrt is NaN"):
        (x.sqrt() * 0.0).sum().backward()
    (x.sqrt() * 0.0).sum().backward()
    td.autograd.set_detect_anomaly(True)
    try:
        with pytest.raises(td.errors.AutogradError, match="sqrt is NaN"):
            (x.sqrt() * 0.0).sum().backward()
    finally:
        td.autograd.set_detect_anomaly(False)


@pytest.mark.parametrize("retain", [False, True])
def test_residuals_of_jitted_calls_are_packed(retain):
    packed = []

    def run(function, hooked):
        x = td.asarray(np.arange(6.0).reshape(2, 3) / 6, requires_grad=True)
        pack = lambda t: (packed.append(t.shape), t.numpy().copy())[1]  # noqa: E731
        with td.autograd.graph.saved_tensors_hooks(pack, td.asarray) if hooked else td.enable_grad():
            y = function(x)
        y.backward(retain_graph=retain)
        if retain:
            y.backward()
        return x.grad.tolist()

    function = td.jit(lambda x: ((x * 2).exp() * x.sum()).sum())
    wanted = run(function, False)
    for _ in range(3):
        packed.clear()
        np.testing.assert_allclose(run(function, True), wanted)
        assert packed
    assert run(function, False) == wanted
