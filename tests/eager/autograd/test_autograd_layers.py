"""The Autograd and ADInplaceOrView keys: kernels of one operator, missing derivatives, writes."""

import warnings

import numpy as np
import pytest
import tandem as td
from gradient_harness import DIFFERENTIABLE, OPS, projected, smooth_samples
from optable import generator
from rotation import rotating
from tandem import errors
from tandem.eager.tensor.tensor import wrap
from tandem.operators.declare.declaration import Declaration
from tandem.operators.declare.derivatives import Partials
from tandem.registry.dispatch.keys import DispatchKey, below
from tandem.registry.dtypes import float64
from tandem.registry.operator import operators

F64 = td.float64
BELOW = below(DispatchKey.AutogradOther)
AT = np.array([0.5, -0.25, 1.5])


def leaf(values=AT):
    return td.asarray(np.array(values, dtype=np.float64), requires_grad=True)


def plain(values=AT):
    return td.asarray(np.array(values, dtype=np.float64))


@pytest.fixture
def impl():
    with td.Library("td", "IMPL") as library:
        yield library


@pytest.fixture
def lib():
    with td.Library("layers", "FRAGMENT") as library:
        yield library


# -- Autograd kernels of one operator ----------------------------------------------------------------------------------
def gradients(f, points):
    leaves = [td.asarray(p.copy(), requires_grad=True) for p in points]
    value = f(*leaves)
    if getattr(
        value, "requires_grad", False
    ):  # zeros_like and its kin, and counts, do not depend on the elements
        value.backward()
    eager = [
        np.zeros_like(p) if x.grad is None else x.grad.numpy() for x, p in zip(leaves, points, strict=True)
    ]
    level = td.grad(f, argnums=tuple(range(len(points))))(*map(wrap, points))
    return eager, [g.numpy() for g in level]


@rotating
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_kernel_that_redispatches_to_fallback(name, impl):
    op = OPS[name]
    args, kwargs = smooth_samples(op)[0]
    f, points = projected(op, args, kwargs, generator(op, float64))
    f(*map(wrap, points))  # draws the weights
    want = gradients(f, points)
    calls = []

    def kernel(op, keyset, args, kwargs):
        calls.append(op.name)
        return td.autograd.fallback(op, keyset, args, kwargs)

    impl.impl(op.name.partition("::")[2], kernel, "AutogradCPU", boxed=True)
    found = gradients(f, points)
    assert len(calls) >= 2 or "_like" in name
    for one, two in zip((*want[0], *want[1]), (*found[0], *found[1]), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-15)


def test_hot_composites_call_kernels_of_autograd(impl):
    x, calls = td.asarray([1.5, 2.5], requires_grad=True), []
    hot = {
        "astype": lambda: td.astype(x, td.float64),
        "stack": lambda: td.stack([x, x]),
        "take": lambda: td.take(x, td.asarray([0]), axis=0),
    }
    for _ in range(100):
        for call in hot.values():
            call()

    def kernel(op, keyset, args, kwargs):
        calls.append(op.name)
        return td.autograd.fallback(op, keyset, args, kwargs)

    for name, call in hot.items():
        handle = impl.impl(name, kernel, "AutogradCPU", boxed=True)
        calls.clear()
        for _ in range(100):
            call()
        handle.remove()
        assert len(calls) == 100


class TenTimes(td.autograd.Function):
    @staticmethod
    def forward(x, keyset):
        return td.exp.operator.redispatch(keyset & BELOW, x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 10.0, None


def exp_gradients():
    x = leaf()
    y = td.exp(x)
    if y.requires_grad:
        y.sum().backward()
    eager = None if x.grad is None else x.grad.numpy()
    first = td.grad(lambda v: td.exp(v).sum())(plain()).numpy()
    second = td.grad(lambda u: td.grad(lambda v: td.exp(v).sum())(u).sum())(plain()).numpy()
    return eager, first, second


def test_a_kernel_with_a_function(impl):
    handle = impl.impl("exp", lambda keyset, x: TenTimes.apply(x, keyset), "AutogradCPU", with_keyset=True)
    eager, first, second = exp_gradients()
    np.testing.assert_allclose(eager, 10 * np.exp(AT))
    np.testing.assert_allclose(first, 10 * np.exp(AT))
    np.testing.assert_allclose(second, 100 * np.exp(AT))
    handle.remove()
    eager, first, second = exp_gradients()
    for found in (eager, first, second):
        np.testing.assert_allclose(found, np.exp(AT))


def redispatch(keyset, x):
    return td.exp.operator.redispatch(keyset & BELOW, x)


def excluding(keyset, x):
    with td.exclude_keys("Autograd"):
        return td.exp(x)


@pytest.mark.parametrize(
    "kernel", [redispatch, excluding, td.fallthrough], ids=["redispatch", "exclude", "pass"]
)
@pytest.mark.parametrize("key", ["Autograd", "AutogradCPU"])
def test_what_passes_autograd_by_has_no_gradient(impl, kernel, key):
    impl.impl("exp", kernel, key, with_keyset=kernel is not td.fallthrough)
    eager, first, second = exp_gradients()
    assert eager is None
    assert first.tolist() == second.tolist() == [0.0] * 3
    np.testing.assert_allclose(td.exp(leaf()).numpy(), np.exp(AT))


def test_a_kernel_written_with_operators(impl):
    def kernel(x):
        with td.exclude_keys("Autograd"):
            y = td.exp(x)
        return y + 3.0 * x

    impl.impl("exp", kernel, "AutogradCPU")
    eager, first, _ = exp_gradients()
    assert eager.tolist() == first.tolist() == [3.0] * 3


def test_a_kernel_of_a_composite(impl):
    def kernel(op, keyset, args, kwargs):
        return args[0] * 2.0

    def loss(x):
        return td.softmax(x).sum()

    impl.impl("softmax", kernel, "AutogradCPU", boxed=True)
    x = leaf()
    loss(x).backward()
    assert x.grad.tolist() == td.grad(loss)(plain()).tolist() == [2.0] * 3
    np.testing.assert_allclose(loss(plain()).item(), 1.0)


def test_a_fallback_of_ones_own():
    calls = []

    def mine(op, keyset, args, kwargs):
        calls.append(op.schema.name)
        return td.autograd.fallback(op, keyset, args, kwargs)

    with td.Library("layers", "IMPL") as library:
        library.fallback(mine, "AutogradCPU")
        x = leaf()
        (x * x).sum().backward()
        assert calls[:2] == ["mul", "sum"]
        assert td.grad(lambda v: (v * v).sum())(plain()).tolist() == (2 * AT).tolist()
    assert x.grad.tolist() == (2 * AT).tolist()


# -- missing derivatives -----------------------------------------------------------------------------------------------
def without(lib, schema, kernel):
    name = schema.partition("(")[0]
    if f"layers::{name}" not in operators:
        lib.define(schema)
    lib.impl(name, kernel, "CPU")
    return getattr(td.ops.layers, name)


CASES = {
    "one": ("one(Tensor x) -> Tensor", lambda x: x * 2.0, lambda op, x: op(x).sum()),
    "several": (
        "several(Tensor x) -> (Tensor, Tensor)",
        lambda x: (x, x * 2.0),
        lambda op, x: op(x)[1].sum(),
    ),
    "list": ("listed(Tensor x) -> Tensor[]", lambda x: [x * 1.0, x * 2.0], lambda op, x: op(x)[0].sum()),
    "takes list": ("taken(Tensor[] xs) -> Tensor", lambda xs: xs[0] + xs[1], lambda op, x: op([x, x]).sum()),
    "optional": (
        "given(Tensor a, Tensor? x=None) -> Tensor",
        lambda a, x: a * x,
        lambda op, x: op(plain(), x).sum(),
    ),
    "in place": (
        "in_place_(Tensor(a!) x) -> Tensor(a!)",
        lambda x: x.mul_(2.0),
        lambda op, x: op(x * 1.0).sum(),
    ),
    "out": (
        "into(Tensor x, *, Tensor(a!) out) -> ()",
        lambda x, *, out: (out.copy_(x), None)[1],
        lambda op, x: (op(x, out=(out := td.zeros(3, dtype=F64))), out.sum())[1],
    ),
    "view": ("viewed(Tensor(a) x) -> Tensor(a)", lambda x: x[1:], lambda op, x: op(x).sum()),
    "in a view": (
        "in_view_(Tensor(a!) x) -> Tensor(a!)",
        lambda x: x.mul_(2.0),
        lambda op, x: (y := x * 1.0, op(y[1:]), y.sum())[2],
    ),
    "the rest": ("beside(Tensor x) -> Tensor", lambda x: x * 2.0, lambda op, x: (op(x) * x).sum() + x.sum()),
}


@pytest.mark.parametrize("case", CASES)
def test_a_missing_derivative_is_never_silent(lib, case):
    schema, kernel, use = CASES[case]
    op = without(lib, schema, kernel)
    x = leaf()
    value = use(op, x)
    assert value.requires_grad
    with pytest.raises(
        errors.NotDifferentiableError, match=rf"layers::{schema.partition('(')[0]} has no derivative"
    ):
        value.backward()
    assert x.grad is None
    with pytest.raises(errors.NotDifferentiableError, match=r"layers::.* has no derivative"):
        td.grad(lambda v: use(op, v))(plain())
    with (
        td.config.override(missing_derivative="warn"),
        pytest.warns(RuntimeWarning, match="its inputs get no gradient through it"),
    ):
        use(op, x).backward()
    with warnings.catch_warnings():  # nothing to say where nobody asks
        warnings.simplefilter("error")
        with td.no_grad():
            use(op, x)
        use(op, plain())


def test_integer_results_have_no_history(lib):
    op = without(lib, "places(Tensor x) -> (Tensor, Tensor)", lambda x: (td.argmax(x), x > 0))
    places, mask = op(leaf())
    assert not places.requires_grad
    assert not mask.requires_grad
    with pytest.raises(errors.NotDifferentiableError, match="layers::places"):
        places.backward()


def test_an_argument_without_a_rule(lib):
    schema = "partly(Tensor x, Tensor y) -> Tensor"
    rules = Partials({"x": lambda y: y})
    lib.define(schema, Declaration(schema, "custom", "", derivative=rules))
    lib.impl("partly", lambda x, y: x * y, "CPU")
    x, y = leaf(), leaf()
    td.ops.layers.partly(x, plain()).sum().backward()
    assert x.grad.tolist() == AT.tolist()
    with pytest.raises(errors.NotDifferentiableError, match=r"layers::partly.*leave out y"):
        td.ops.layers.partly(x, y).sum().backward()
    with pytest.raises(errors.NotDifferentiableError, match=r"layers::partly.*leave out y"):
        td.grad(lambda v: td.ops.layers.partly(plain(), v).sum())(plain())


def test_in_a_composite(lib):
    inner = without(lib, "inner(Tensor x) -> Tensor", lambda x: x * 2.0)
    lib.define("outer(Tensor x) -> Tensor")
    lib.impl("outer", lambda x: inner(x) + x, "CompositeImplicit")
    for run in (
        lambda: td.ops.layers.outer(leaf()).sum().backward(),
        lambda: td.grad(td.ops.layers.outer)(plain(1.0)),
    ):
        with pytest.raises(errors.NotDifferentiableError, match="layers::inner"):
            run()


# -- ADInplaceOrView ---------------------------------------------------------------------------------------------------
def test_it_is_one_fallback():
    for name in ("add_", "basic_index"):
        entry = td.dispatch_table(name)["ADInplaceOrView"]
        assert (entry.kind, entry.registration.name) == ("fallback", "ad_inplace_or_view")


def test_writes_of_other_operators_are_counted(lib):
    op = without(lib, "w(Tensor x, Tensor(a!)[] ys, *, Tensor(b!) z) -> ()", lambda x, ys, *, z: None)
    ys, z, x = [td.zeros(2), td.zeros(2)], td.zeros(2), td.zeros(2)
    view = z[1:]
    op(x, ys, z=z)
    assert [t.storage().version for t in (*ys, z, view, x)] == [1, 1, 1, 1, 0]
    y = leaf() * 1.0
    square = y * y
    op(x, [y], z=z)
    with pytest.raises(errors.VersionError):
        square.sum().backward()


def test_a_failed_write_is_not_counted(lib):
    def fails(x):
        raise errors.ArgumentError("mine")

    op = without(lib, "fails_(Tensor(a!) x) -> Tensor(a!)", fails)
    x = td.zeros(2)
    with pytest.raises(errors.ArgumentError, match="mine"):
        op(x)
    assert x.storage().version == 0


def test_views_of_other_operators_share_storage(lib):
    op = without(lib, "back(Tensor(a) x) -> Tensor(a)", lambda x: wrap(x._array[::-1]))
    x = td.arange(3.0)
    y = op(x)
    assert y.storage() is x.storage()
    y.add_(1.0)
    assert (x.tolist(), x.storage().version) == ([1.0, 2.0, 3.0], 1)
    with pytest.raises(errors.NotDifferentiableError, match="layers::back"):
        op(leaf() * 1.0).sum().backward()


def test_a_kernel_of_ones_own_also_when_hot(impl):
    x = td.zeros(4)
    for _ in range(100):
        x.add_(1.0)
    before, calls = x.storage().version, []

    def kernel(op, keyset, args, kwargs):
        calls.append(op.schema.name)
        return op.dispatch(keyset & below(DispatchKey.ADInplaceOrView), args, kwargs)

    handle = impl.impl("add_.Tensor", kernel, "ADInplaceOrView", boxed=True)
    x.add_(1.0)
    td.ops.td.add_(x, 1.0)
    assert calls == ["add_", "add_"]
    assert x.storage().version == before  # that was the kernel's business
    handle.remove()
    x.add_(1.0)
    assert x.storage().version == before + 1
    with td.exclude_keys("ADInplaceOrView"):
        x.add_(1.0)
    assert x.storage().version == before + 1


# -- PyTorch's rules about views ---------------------------------------------------------------------------------------
def test_a_view_of_a_leaf():
    x = leaf()
    with pytest.raises(errors.AutogradError, match="leaf"):
        x[1:].mul_(2.0)
    with pytest.raises(errors.AutogradError, match="leaf"):
        x[1:][0].mul_(2.0)
    assert x.tolist() == AT.tolist()


def test_views_made_in_no_grad():
    w = leaf()
    y = w * 2.0
    with td.no_grad():
        hidden = y[1:]
        hidden.mul_(2.0)  # no gradient flows
    with pytest.raises(errors.UnsupportedError, match="created in no_grad mode"):
        hidden.mul_(w[1:])
    with pytest.raises(errors.UnsupportedError, match="created in no_grad mode"):
        y.mul_(w)
    d = y.detach()
    with pytest.raises(errors.UnsupportedError, match="detach"):
        d.add_(w)
    x = leaf()
    with td.no_grad():
        part = x[1:]
    with pytest.raises(errors.UnsupportedError, match="no_grad"):
        part.mul_(w[1:])


def test_multi_output_views_are_refused(lib):
    op = without(
        lib, "halves(Tensor(a) x) -> Tensor(a)[]", lambda x: [wrap(x._array[:1]), wrap(x._array[1:])]
    )
    y = leaf() * 1.0
    one, _ = op(y)
    with pytest.raises(errors.UnsupportedError, match="not recorded"):
        one.mul_(2.0)
    base = leaf() * 1.0
    first, second = td.unstack(base.reshape((3, 1)))[:2]  # a composite: each piece is a view of its own
    first.mul_(3.0)
    second.mul_(base[0])
    base.sum().backward()
