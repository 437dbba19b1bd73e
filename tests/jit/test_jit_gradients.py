"""Jitted functions on tensors that require gradients, and inside transforms: gradients agree with eager ones."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest
import tandem as td
from jit_harness import assert_close, check, gradients, leaf, mlp, plain, second
from tandem import errors

# --- first order ------------------------------------------------------------------------------------------


def test_a_pytree_of_parameters():
    params, x = {"w": leaf(3, 4), "b": leaf(4)}, plain(5, 3)
    f = check(mlp, params.values(), params, x)
    assert f.cache_info().misses == 1


def test_captured_tensors_get_gradients():
    w, b = leaf(3), leaf(3)

    class Holder:
        bias = b

    f = check(lambda x: (td.exp(x * w) + Holder.bias).sum(), [w, b], plain(3))
    assert f.cache_info().misses == 1


def test_which_arguments_require_gradients_is_guarded():
    f, w, x = td.jit(lambda w, x: (w * x).sum()), leaf(3), leaf(3)
    assert_close(gradients(f, [w, x], w, x), [x, w])
    assert_close(gradients(f, [w], w, x.detach()), [x])
    assert_close(gradients(f, [x], w.detach(), x), [w])
    assert not f(w.detach(), x.detach()).requires_grad
    assert f.cache_info().specializations == 4
    w.requires_grad_(False)
    for _ in range(3):
        assert_close(gradients(f, [x], w, x), [w])
    assert f.cache_info().specializations == 4


def test_several_results_one_of_which_is_used():
    def f(w):
        return {"a": td.sin(w).sum(), "b": [td.exp(w), w.argmax(), w * 2.0], "n": 3}

    w = leaf(4)
    g = td.jit(f)
    out = g(w)
    assert out["n"] == 3 and not out["b"][1].requires_grad
    out["a"].backward()
    assert_close([w.grad], [td.cos(w)])
    picks = {
        "second": lambda o: o["b"][0].sum(),
        "first and last": lambda o: o["b"][2].sum() + o["a"],
        "product": lambda o: (o["b"][0] * o["b"][2]).sum(),
    }
    for pick in picks.values():
        wanted = gradients(lambda w, pick=pick: pick(f(w)), [w], w)
        for _ in range(3):
            assert_close(gradients(lambda w, pick=pick: pick(g(w)), [w], w), wanted)


def test_an_unused_result_whose_derivative_is_infinite():
    f = td.jit(lambda x: (x * 2.0, td.sqrt(x)))
    x = td.asarray([0.0, 4.0], requires_grad=True)
    f(x)[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_integer_results_say_what_cut_the_history():
    with pytest.raises(errors.NotDifferentiableError):
        td.jit(lambda x: x.argmax())(leaf(3)).backward()


def test_results_that_are_arguments_or_views_of_them():
    w = leaf(2, 3)

    def f(w):
        return w, w[0], w.mT, w.detach()[1], w * 1.0

    g = td.jit(f)
    for _ in range(3):
        same_object, row, turned, cut, fresh = g(w)
        assert same_object is w and row.requires_grad and turned.requires_grad and not cut.requires_grad
        assert np.shares_memory(row.detach().numpy(), w.detach().numpy())
        assert not np.shares_memory(fresh.detach().numpy(), w.detach().numpy())
    check(lambda w: sum((i + 1) * (x * x).sum() for i, x in enumerate(f(w))), [w], w)
    check(
        lambda w: sum((i + 1) * (x * x).sum() for i, x in enumerate(f(w))),
        [w],
        w,
        jitted=lambda w: sum((i + 1) * (x * x).sum() for i, x in enumerate(g(w))),
    )


def test_the_same_result_twice():
    w = leaf(3)
    g = td.jit(lambda w: (lambda y: (y, y))(w * 3.0))
    a, b = g(w)
    (a.sum() + 2.0 * b.sum()).backward()
    assert w.grad.tolist() == [9.0, 9.0, 9.0]


def test_detach_and_no_grad_inside():
    def f(w):
        with td.no_grad():
            scale = td.exp(w)
        return (w * scale + td.stop_gradient(w) * w + w.detach() ** 2).sum()

    w = leaf(4)
    check(f, [w], w)


def test_python_numbers_are_passed_at_run_time():
    w = leaf(3)
    f = td.jit(lambda w, n, rate=0.5: (w * n * (rate * 2.0) + w**n).sum())
    for n in (2, 3, 4.0):
        assert_close(gradients(f, [w], w, n), gradients(f._fn, [w], w, n))
    assert f.cache_info().misses == 2


def test_static_arguments_methods_and_keywords():
    class Model:
        def __init__(self):
            self.w = leaf(3)

        @td.jit
        def loss(self, x, *, power=2.0):
            return ((self.w * x) ** power).sum()

    model, other, x = Model(), Model(), plain(3)
    for m in (model, other, model):
        assert_close(gradients(m.loss, [m.w], x), [2.0 * m.w * x * x])
    f = td.jit(lambda w, kind: (td.sin(w) if kind == "sin" else td.cos(w)).sum(), static_argnames="kind")
    w = leaf(3)
    assert_close(gradients(f, [w], w, "sin"), [td.cos(w)])
    assert_close(gradients(f, [w], w, "cos"), [-td.sin(w)])


def test_custom_derivatives_mean_what_they_mean_eagerly():
    class Through(td.autograd.Function):
        @staticmethod
        def forward(x, w):
            return td.round(x) + w.detach() * 0.0

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x, g * 3.0

    w, c = leaf(4), leaf(4)
    check(lambda w: (Through.apply(w * 2.0, c) ** 2).sum(), [w, c], w)

    class Same(td.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 10.0

    f = td.jit(lambda w: Same.apply(w))
    f(w).sum().backward()
    w.grad = None
    f(w).sum().backward()
    assert w.grad.tolist() == [10.0] * 4


def test_td_grad_inside():
    w, x = leaf(3), plain(3)

    def f(w, x):
        return (td.grad(lambda v: (td.sin(v) * w).sum())(x) ** 2).sum()

    check(f, [w], w, x)


# --- writes -----------------------------------------------------------------------------------------------


def test_writes_inside_and_into_arguments_without_gradients():
    w = leaf(4)

    def f(w, running):
        running.mul_(0.9).add_(w.detach().mean() * 0.1)
        y = td.zeros(4, dtype=td.float64)
        y[1:3] = w[1:3] * 2.0
        y.add_(w)
        return (y * y).sum()

    one, two = plain(), None
    two = one.clone()
    assert_close(gradients(td.jit(f), [w], w, one), gradients(f, [w], w, two))
    assert one.tolist() == two.tolist()


def test_writes_into_arguments_that_need_gradients_are_refused():
    w, buffer = leaf(3), plain(3)
    with pytest.raises(errors.AutogradError, match="leaf"):
        td.jit(lambda w: w.add_(1.0).sum())(w)
    before = buffer.tolist()
    with pytest.raises(errors.UnsupportedError):
        td.jit(lambda w, buffer: buffer.add_(w).sum())(w, buffer)
    assert buffer.tolist() == before


def test_write_to_residual_raises_in_backward():
    f, w, x = td.jit(lambda w, x: (td.sin(w) * x).sum()), leaf(3), plain(3)
    y = f(w, x)
    x.add_(1.0)
    with pytest.raises(errors.VersionError, match="written in place"):
        y.backward()
    g = td.jit(lambda w: td.exp(w))
    for _ in range(3):
        out = g(w)
        out.detach().mul_(2.0)
        with pytest.raises(errors.VersionError):
            out.sum().backward()


# --- the graph --------------------------------------------------------------------------------------------


def test_saved_values_are_freed_unless_retained():
    f, w = td.jit(lambda w: (td.tanh(w) ** 2).sum()), leaf(3)
    y = f(w)
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(errors.AutogradError, match="retain_graph"):
        y.backward()


def test_hooks_and_retained_gradients():
    f, w = td.jit(lambda w: w * 3.0), leaf(3)
    y = f(w)
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(g) or g * 2.0)
    (y * y).sum().backward()
    assert len(seen) == 1
    assert_close([w.grad], [36.0 * w.detach()])


def test_grad_modes():
    f, w = td.jit(lambda w: (w * w).sum()), leaf(3)
    for _ in range(3):
        assert f(w).requires_grad
        with td.no_grad():
            assert not f(w).requires_grad
            with td.enable_grad():
                assert_close(gradients(f, [w], w), [2.0 * w])


def test_a_chain_of_jitted_and_eager_calls():
    f, g, w = td.jit(lambda x: td.sin(x) * 2.0), td.jit(lambda x, y: x * td.exp(y)), leaf(4)

    def whole(w):
        y = f(w)
        z = g(y + w, f(y))
        return (z * f(z)).sum()

    def by_hand(w):
        y = f._fn(w)
        z = g._fn(y + w, f._fn(y))
        return (z * f._fn(z)).sum()

    assert_close(gradients(whole, [w], w), gradients(by_hand, [w], w))


def test_autocast():
    w, x = leaf(8, 8, dtype=np.float32), plain(8, 8, dtype=np.float32)

    def f(w):
        with td.autocast("cpu"):
            return (x @ w).astype(td.float32).sum()

    assert_close(gradients(td.jit(f), [w], w), gradients(f, [w], w), rtol=1e-2)
    g = td.jit(lambda w: (x @ w).sum())
    with td.autocast("cpu"):
        y = g(w)
    assert y.dtype in (td.bfloat16, td.float32)
    y.backward()
    assert w.grad.dtype is td.float32


def test_an_open_mode_sees_the_calls():
    class Names(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            names.append(op.schema.name)
            return op(*args, **kwargs)

    names, w = [], leaf(3)
    f = td.jit(lambda w: td.sin(w).sum())
    for _ in range(3):
        f(w).backward()
    with Names():
        f(w)
    assert "sin" in names


@dataclasses.dataclass
class Pair:
    a: td.Tensor
    b: td.Tensor


def test_dataclasses():
    pair = Pair(leaf(3), leaf(3))
    f = td.jit(lambda p: Pair(p.a * p.b, td.exp(p.b)))

    def loss(call):
        out = call(pair)
        return (out.a + out.b).sum()

    assert_close(
        gradients(lambda: loss(f), [pair.a, pair.b]), gradients(lambda: loss(f._fn), [pair.a, pair.b])
    )


# --- higher order and levels ------------------------------------------------------------------------------


def test_gradients_of_gradients():
    params, x = {"w": leaf(3, 2), "b": leaf(2)}, plain(4, 3)
    c = leaf(2)

    def f(params, x):
        return (td.tanh(x @ params["w"] + params["b"]) * c).sum()

    leaves = [*params.values(), c]
    g = td.jit(f)
    for _ in range(2):
        assert_close(second(g, leaves, params, x), second(f, leaves, params, x), rtol=1e-9)


def test_gradients_of_gradients_by_a_custom_derivative():
    class Cube(td.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x  # not the derivative, so that nobody takes the forward pass for it

    w = leaf(3)
    f = lambda w: Cube.apply(w * 2.0).sum()  # noqa: E731
    assert_close(second(td.jit(f), [w], w), second(f, [w], w))


def test_argument_not_needed_by_backward_is_freed():
    w = leaf(1000)
    f = td.jit(lambda w: w * 2.0 + 1.0)
    x = w * 1.0
    there = weakref.ref(x)
    y = f(x)
    del x
    gc.collect()
    assert there() is None
    (slope,) = td.autograd.grad(y.sum(), w, create_graph=True)
    assert slope[0].item() == 2.0


def loss(w, x):
    return (td.sin(x @ w) ** 2).sum()


NESTED = {
    "grad": lambda f: td.grad(f),
    "value_and_grad": lambda f: td.value_and_grad(f),
    "grad of grad": lambda f: td.grad(lambda w, x: (td.grad(f)(w, x) ** 2).sum()),
    "vmap of grad": lambda f: td.vmap(td.grad(f), in_axes=(None, 0)),
    "grad of vmap": lambda f: td.grad(lambda w, x: td.vmap(f, in_axes=(None, 0))(w, x).sum()),
    "hessian": lambda f: td.hessian(f),
    "jacrev": lambda f: td.jacrev(td.grad(f)),
    "jvp of grad": lambda f: lambda w, x: td.jvp(lambda w: td.grad(f)(w, x), (w,), (w,)),
    "vjp": lambda f: lambda w, x: td.vjp(f, w, x)[1](2.0),
    "jit of grad": lambda f: td.jit(td.grad(f)),
    "grad of jit of vmap": lambda f: td.grad(lambda w, x: td.jit(td.vmap(f, in_axes=(None, 0)))(w, x).sum()),
}


@pytest.mark.parametrize("name", NESTED)
def test_under_transforms(name):
    w, x = plain(3), plain(5, 3)
    made = NESTED[name]
    one, two = made(td.jit(loss))(w, x), made(loss)(w, x)
    assert_close(td.pytree.leaves(one), td.pytree.leaves(two), rtol=1e-9)


def test_grad_of_function_capturing_recorded_tensor():
    c, w = leaf(3), plain(3)

    def outer(f):
        return (td.grad(lambda w: f(w))(w) ** 2).sum()

    f = lambda w: (td.sin(w) * c * c).sum()  # noqa: E731
    g = td.jit(f)
    assert_close(gradients(lambda: outer(g), [c]), gradients(lambda: outer(f), [c]))


def test_the_forward_pass_is_compiled_under_grad():
    calls = []

    @td.jit
    def f(w):
        calls.append(1)
        return (td.sin(w) ** 2).sum()

    for _ in range(5):
        td.grad(f)(plain(3))
    assert len(calls) == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.detach(),
        lambda x: x.detach()[1:],
        lambda x: (x * 2, x.detach(), x[1:], x),
        lambda x: {"cut": td.stop_gradient(x), "square": x * x},
    ],
)
def test_detached_arguments_among_the_results(f):
    x, jitted = leaf(3), td.jit(f)
    for _ in range(60):
        got, want = td.tree.leaves(jitted(x)), td.tree.leaves(f(x))
        assert [r.requires_grad for r in got] == [r.requires_grad for r in want]
        assert [r is x for r in got] == [r is x for r in want]
    cut = next(r for r in got if not r.requires_grad)
    x.grad = None
    (cut * x[-cut.shape[0] :]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[-cut.shape[0] :], cut.numpy())
