"""``register_autograd``: derivatives of custom operators."""

import numpy as np
import pytest
import tandem as td
from power_functions import AT, F64, leaf, nth, plain, reference, through
from tandem import errors
from tandem.operators.declare.declaration import Declaration
from tandem.operators.declare.derivatives import Custom


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
