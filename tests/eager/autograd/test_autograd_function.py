"""Custom derivatives: ``td.autograd.Function`` and an operator's ``Custom`` derivative."""

import gc
import weakref

import numpy as np
import pytest
import tandem as td
from power_functions import AT, F64, Power, leaf, nth, plain, reference, through
from tandem import errors


class OldStyle(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g * out


def test_first_and_second_order():
    x, y = leaf(), leaf()
    through(x).backward()
    reference(y).backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())
    for f in (through, reference):
        z = leaf()
        (slope,) = td.autograd.grad(f(z), z, create_graph=True)
        (curve,) = td.autograd.grad((slope * plain()).sum(), z, create_graph=True)
        (third,) = td.autograd.grad(curve.sum(), z)
        if f is through:
            kept = third
    np.testing.assert_allclose(kept.numpy(), third.numpy())


@pytest.mark.parametrize("order", [0, 1, 2])
def test_levels(order):
    want = td.grad(nth(reference, order))(plain()).numpy()
    np.testing.assert_allclose(td.grad(nth(through, order))(plain()).numpy(), want)
    np.testing.assert_allclose(td.jit(td.grad(nth(through, order)))(plain()).numpy(), want)


def test_levels_and_leaves_mixed():
    for f in (through, reference):
        x = leaf()
        (td.grad(f)(x) * plain()).sum().backward()
        if f is through:
            kept = x.grad
    np.testing.assert_allclose(kept.numpy(), x.grad.numpy())
    value, slope = td.value_and_grad(through)(plain())
    assert type(value) is type(slope) is td.Tensor


def test_jit_traces_forward():
    assert td.jit(through)(plain()).item() == pytest.approx(reference(plain()).item())


def test_vmap():
    batch = td.asarray(np.stack([AT, 2 * AT]))
    want = np.stack([reference(plain(row)).numpy() for row in batch.numpy()])
    np.testing.assert_allclose(td.vmap(through)(batch).numpy(), want)


def test_old_style():
    x = leaf()
    OldStyle.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(AT))
    np.testing.assert_allclose(td.grad(lambda v: OldStyle.apply(v).sum())(plain()).numpy(), np.exp(AT))
    with pytest.raises(errors.UnsupportedError, match="setup_context"):
        td.grad(nth(lambda v: OldStyle.apply(v).sum(), 1))(plain())
    assert not OldStyle.apply(plain()).requires_grad
    with td.no_grad():
        assert not OldStyle.apply(x).requires_grad


def test_it_is_its_own_gradient_everywhere():
    class Ten(td.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 1.0

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 10.0

    x = leaf()
    Ten.apply(x).sum().backward()
    assert x.grad.tolist() == [10.0] * 3
    assert td.grad(lambda v: Ten.apply(v).sum())(plain()).tolist() == [10.0] * 3
    both = td.grad(lambda u: (td.grad(lambda v: (Ten.apply(v) * Ten.apply(v)).sum())(u)).sum())(plain())
    assert both.tolist() == [200.0] * 3


def make(**methods):
    """A Function with these static methods, and an empty setup_context."""
    methods.setdefault("setup_context", lambda ctx, inputs, output: None)
    return type("Made", (td.autograd.Function,), {name: staticmethod(fn) for name, fn in methods.items()})


def test_needs_input_grad_and_materialize():
    seen = {}

    def setup(ctx, inputs, output):
        seen["needs"] = ctx.needs_input_grad
        ctx.set_materialize_grads(seen["fill"])

    def backward(ctx, g, h):
        seen["given"] = (g is None, h is None)
        return (g if h is None else g + h), None

    both = make(forward=lambda x, y: (x * 1.0, x * 2.0), setup_context=setup, backward=backward)
    for fill in (True, False):
        seen["fill"] = fill
        both.apply(leaf(), plain())[0].sum().backward()
        assert seen["needs"] == (True, False)
        assert seen["given"] == (False, not fill)


def test_non_differentiable_results():
    def setup(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])

    fn = make(
        forward=lambda x: (x * 3.0, x.floor(), x.argmax()),
        setup_context=setup,
        backward=lambda ctx, g, h, i: g * 3.0,
    )
    x = leaf()
    one, two, place = fn.apply(x)
    assert (one.requires_grad, two.requires_grad, place.requires_grad) == (True, False, False)
    (one.sum() + two.sum()).backward()
    assert x.grad.tolist() == [3.0] * 3
    assert td.grad(lambda v: (fn.apply(v)[0] + fn.apply(v)[1]).sum())(plain()).tolist() == [3.0] * 3


def test_dirty_inputs():
    def forward(x, k):
        return x.mul_(k)

    def setup(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.k = inputs[1]

    scale = make(forward=forward, setup_context=setup, backward=lambda ctx, g: (g * ctx.k, None))
    x = leaf()
    y = x * 1.0
    z = scale.apply(y, 3.0)
    assert z is y
    (z * z).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 18 * AT)

    def in_level(v):
        y = v * 1.0
        part = y[1:]
        assert scale.apply(part, 3.0) is part
        return (y * y).sum()

    np.testing.assert_allclose(td.grad(in_level)(plain()).numpy(), 2 * AT * [1, 9, 9])
    w = leaf()
    y = w * 1.0
    saved = y * y
    scale.apply(y, 3.0)
    with pytest.raises(errors.VersionError):
        saved.sum().backward()
    with pytest.raises(errors.AutogradError, match="leaf"):
        scale.apply(leaf(), 3.0)
    hidden = make(
        forward=lambda x: x * 1.0,
        setup_context=lambda ctx, inputs, output: ctx.mark_dirty(inputs[0]),
        backward=lambda ctx, g: g,
    )
    with pytest.raises(errors.ArgumentError, match="mark_dirty"):
        hidden.apply(leaf() * 1.0)


def test_an_input_returned_is_another_tensor():
    same = make(forward=lambda x: x, backward=lambda ctx, g: g * 7.0)
    x = leaf()
    out = same.apply(x)
    assert out is not x
    assert out.storage() is x.storage()
    out.sum().backward()
    assert x.grad.tolist() == [7.0] * 3
    assert td.grad(lambda v: same.apply(v).sum())(plain()).tolist() == [7.0] * 3


def test_saved_tensors_are_checked_and_freed():
    x = leaf()
    y = x * 1.0
    out = Power.apply(y, 2, x)[0]
    y.add_(1.0)
    with pytest.raises(errors.VersionError, match=r"Power needs saved_tensors\[0\]"):
        out.sum().backward()
    out = Power.apply(x, 2, x)[0]
    total = out.sum()
    out.add_(1.0)
    with pytest.raises(errors.VersionError, match=r"saved_tensors\[1\]"):
        total.backward()
    total = Power.apply(x, 2, x)[0].sum()
    total.backward()
    with pytest.raises(errors.AutogradError, match="retain_graph=True"):
        total.backward()
    with pytest.raises(errors.ArgumentError, match="attribute"):
        make(
            forward=lambda x: x * 1.0,
            setup_context=lambda ctx, i, o: ctx.save_for_backward(3),
            backward=lambda ctx, g: g,
        ).apply(x)


def test_residual_result_makes_no_reference_cycle():
    gc.collect()
    gc.disable()
    try:
        x = leaf()
        out = Power.apply(x, 2, x)[0]
        node = weakref.ref(out._meta.node)
        del out
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("gives", "text"),
    [
        (lambda g: (g, None), "returned 2 gradients and must return 3"),
        (lambda g: (g, g, None), "argument 1.*not a tensor"),
        (lambda g: (g[:2], None, None), r"shape \(2,\) for argument 0.*\(3,\)"),
        (lambda g: ([1.0], None, None), "a tensor or None"),
        (lambda g: (g.astype(td.int64), None, None), "floating-point"),
    ],
)
def test_wrong_gradients(gives, text):
    fn = make(forward=lambda x, n, y: x * n, backward=lambda ctx, g: gives(g))
    with pytest.raises(errors.AutogradError, match=rf"(?s)Made.*{text}"):
        fn.apply(leaf(), 2.0, plain()).sum().backward()
    with pytest.raises(errors.AutogradError, match=rf"(?s)Made.*{text}"):
        td.grad(lambda v: fn.apply(v, 2.0, plain()).sum())(plain())


def test_gradients_that_broadcast_are_summed():
    fn = make(forward=lambda x: x.sum(), backward=lambda ctx, g: td.ones((4, 1), dtype=F64) * g)
    x = leaf([2.0])
    fn.apply(x).backward()
    assert x.grad.tolist() == [4.0]


def test_arguments():
    fn = make(forward=lambda x, k=2.0: x * k, backward=lambda ctx, g: (g, None))
    x = leaf()
    assert fn.apply(x=x).tolist() == (2 * AT).tolist()
    with pytest.raises(errors.ArgumentError, match="argument 0 is a container"):
        fn.apply([x])
    for bad in (lambda x: {"a": x * 1}, lambda x: (x * 1, [x * 2])):
        with pytest.raises(errors.ArgumentError, match="flat tuple"):
            make(forward=bad, backward=lambda ctx, g: g).apply(x)
    with pytest.raises(errors.UnsupportedError, match="no backward"):
        make(forward=lambda x: x * 1.0).apply(x).sum().backward()
    with pytest.raises(errors.UnsupportedError, match="forward"):
        make(backward=lambda ctx, g: g).apply(x)
