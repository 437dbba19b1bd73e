"""Custom derivatives: ``td.autograd.Function`` and an operator's ``Custom`` derivative."""

import gc
import weakref

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.operators.declare.declaration import Declaration
from tandem.operators.declare.derivatives import Custom

F64 = td.float64
AT = np.array([0.5, -0.25, 1.5])


def leaf(values=AT):
    return td.asarray(np.array(values, dtype=np.float64), requires_grad=True)


def plain(values=AT):
    return td.asarray(np.array(values, dtype=np.float64))


class Power(td.autograd.Function):
    """exp(x^n) and 2y: two tensors, a number among the inputs, another among the results."""

    @staticmethod
    def forward(x, n, y):
        return (x**n).exp(), y * 2.0, "note"

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, n, _ = inputs
        ctx.n = n
        ctx.save_for_backward(x, output[0])

    @staticmethod
    def backward(ctx, g, h, note):
        x, out = ctx.saved_tensors
        return g * out * ctx.n * x ** (ctx.n - 1), None, h * 2.0


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


def through(x):
    one, two, note = Power.apply(x, 2, x)
    assert note == "note"
    return (one * two).sum()


def reference(x):
    return ((x**2).exp() * 2.0 * x).sum()


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


def nth(f, order):
    for _ in range(order):
        f = (lambda g: lambda v: (td.grad(g)(v) * plain()).sum())(f)
    return f


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


# -- operators ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def lib():
    with td.Library("handmade", "FRAGMENT") as library:
        yield library


def define(lib, schema, kernel, backward=None, setup=None):
    derivative = None if backward is None else Custom(backward, setup)
    lib.define(schema, Declaration(schema, "custom", "", derivative=derivative))
    name = schema.partition("(")[0]
    lib.impl(name, kernel, "CPU")
    return getattr(td.ops.handmade, name)


def save_inputs(ctx, inputs, output):
    ctx.inputs = inputs[1:]
    ctx.save_for_backward(inputs[0], output)


def test_custom_operator(lib):
    def backward(ctx, g):
        _, out = ctx.saved_tensors
        return g * out * ctx.inputs[0], None

    op = define(lib, "growth(Tensor x, float k) -> Tensor", lambda x, k: (x * k).exp(), backward, save_inputs)
    f, ref = (lambda v: op(v, 2.0).sum()), (lambda v: (v * 2.0).exp().sum())
    x = leaf()
    f(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * AT))
    for order in (0, 1, 2):
        np.testing.assert_allclose(
            td.grad(nth(f, order))(plain()).numpy(), td.grad(nth(ref, order))(plain()).numpy()
        )
    (slope,) = td.autograd.grad(f(x), x, create_graph=True)
    (curve,) = td.autograd.grad(slope.sum(), x)
    np.testing.assert_allclose(curve.numpy(), 4 * np.exp(2 * AT))


def test_custom_operator_with_lists(lib):
    seen = {}

    def setup(ctx, inputs, output):
        seen["needs"] = ctx.needs_input_grad
        ctx.count = len(inputs[0])

    def backward(ctx, grads):
        assert isinstance(grads, list)
        return [g * (i + 1.0) for i, g in enumerate(grads)], None

    op = define(
        lib,
        "scaled(Tensor[] xs, int n) -> Tensor[]",
        lambda xs, n: [x * (i + 1.0) for i, x in enumerate(xs)],
        backward,
        setup,
    )
    x, y = leaf(), plain()
    one, two = op([x, y], 1)
    assert seen["needs"] == ((True, False), False)
    (one.sum() + two.sum()).backward()
    assert x.grad.tolist() == [1.0] * 3
    assert td.grad(lambda v: op([plain(), v], 1)[1].sum())(plain()).tolist() == [2.0] * 3


def test_custom_operator_with_keywords(lib):
    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.k = keyword_only_inputs["k"]

    op = define(
        lib,
        "keyed(Tensor x, *, float k=3.0, Tensor? w=None) -> Tensor",
        lambda x, *, k, w: x * k,
        lambda ctx, g: g * ctx.k,
        setup,
    )
    assert td.grad(lambda v: op(v).sum())(plain()).tolist() == [3.0] * 3
    with pytest.raises(errors.UnsupportedError, match="keyword-only"):
        op(plain(), w=leaf())


def test_custom_derivative_replaced_and_missing(lib):
    op = define(lib, "late(Tensor x) -> Tensor", lambda x: x * 2.0)
    with pytest.raises(errors.NotDifferentiableError, match=r"handmade::late.*no derivative is registered"):
        op(leaf()).sum().backward()

    operator = op.default if hasattr(op, "default") else op.operator
    operator = getattr(operator, "operator", operator)
    operator.decl = operator.decl._replace(derivative=Custom(lambda ctx, g: g * 5.0))
    operator.recompute()
    x = leaf()
    op(x).sum().backward()
    assert x.grad.tolist() == [5.0] * 3


def test_custom_operator_that_writes_has_none(lib):
    schema = "fill_(Tensor(a!) x, Tensor y) -> Tensor(a!)"
    op = define(lib, schema, lambda x, y: x.copy_(y), lambda ctx, g: g)
    y = leaf()
    x = td.zeros(3, dtype=F64)
    op(x, y)
    with pytest.raises(errors.NotDifferentiableError, match=r"fill_.*writes x"):
        x.sum().backward()


def test_vmap_and_gradients():
    batch, weight = td.asarray(np.stack([AT, 2 * AT, -AT])) * 0.5, plain([0.3, 0.1, -0.4])

    for outer in (
        lambda f: td.vmap(td.grad(f))(batch),
        lambda f: td.grad(lambda b: td.vmap(f)(b).sum())(batch),
        lambda f: td.grad(lambda w: td.vmap(lambda x: f(x * w))(batch).sum())(weight),
        lambda f: td.grad(lambda w: td.vmap(lambda x: f(w) * x.sum())(batch).sum())(weight),
        lambda f: td.vmap(td.grad(lambda x: (td.grad(f)(x) * x).sum()))(batch),
        lambda f: td.grad(lambda w: (td.vmap(td.grad(f))(batch * w) * batch).sum())(weight),
    ):
        np.testing.assert_allclose(outer(through).numpy(), outer(reference).numpy())


def test_vmap_with_unbatched_and_batched_inputs():
    class Product(td.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    batch, weight = td.asarray(np.stack([AT, 2 * AT])), plain()

    def loss(f):
        return lambda w, b: (td.vmap(lambda x: f(x, w))(b) ** 2).sum()

    want = td.grad(loss(td.multiply), (0, 1))(weight, batch)
    for one, two in zip(td.grad(loss(Product.apply), (0, 1))(weight, batch), want, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy())
    w = leaf()
    loss(Product.apply)(w, batch).backward()
    np.testing.assert_allclose(w.grad.numpy(), want[0].numpy())
