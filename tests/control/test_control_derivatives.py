"""Derivatives and batches of control flow: forward and reverse mode, first and second order, vmap, eager and jitted."""

import itertools

import numpy as np
import pytest
import tandem as td
from control_harness import assert_close, check, draw
from rotation import share_each_commit
from tandem import config, errors

W, H, XS = draw(3, 3), draw(2, 3), draw(4, 2, 3)


def rnn(w, h, xs):
    def step(c, x):
        c = td.tanh(c @ w + x * td.sin(c))
        return c, (c * 2, td.exp(x).sum())

    last, (a, b) = td.scan(step, h, xs)
    return (last * last).sum() + (a * a).sum() + (b * last.sum()).sum()


def ragged(w, h, xs):
    """Branches, an inner loop, integers among the carries, results without gradients."""

    def step(carry, x):
        c, n = carry
        c = td.cond(x.sum() > 0, lambda c: td.sin(c) @ w, lambda c: c * x + h, c)
        c = td.fori_loop(0, 2, lambda i, v: v * 0.5 + td.cos(v) * i, c)
        c = td.switch(n % 3, [lambda v: v, lambda v: v * w.sum(), td.tanh], c)
        return (c, n + 1), (n, c > 0)

    (last, n), _ = td.scan(step, (h, 0), xs, reverse=True)
    return (last * last).sum() * n


LOSSES = [rnn, ragged]


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient(loss):
    check(td.grad(loss, (0, 1, 2)), W, H, XS)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_of_a_gradient(loss):
    def norm(*args):
        return sum((g * g).sum() for g in td.grad(loss, (0, 1))(*args))

    check(td.grad(norm, (0, 1, 2)), W, H, XS, tolerance=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_forward_mode(loss):
    tangents = (draw(3, 3), draw(2, 3), draw(4, 2, 3))
    _, tangent = check(lambda *args: td.jvp(loss, args, tangents), W, H, XS)
    gradients = td.grad(loss, (0, 1, 2))(W, H, XS)
    assert tangent.item() == pytest.approx(sum((g * t).sum().item() for g, t in zip(gradients, tangents)))
    check(lambda w: td.jvp(lambda w: loss(w, H, XS), (w,), (tangents[0],)), W)


@pytest.mark.parametrize("loss", LOSSES)
def test_forward_and_reverse_mode(loss):
    t = draw(3, 3)
    one = check(lambda w: td.jvp(td.grad(lambda w: loss(w, H, XS)), (w,), (t,))[1], W, tolerance=1e-7)
    two = check(td.grad(lambda w: td.jvp(lambda w: loss(w, H, XS), (w,), (t,))[1]), W, tolerance=1e-7)
    assert_close(one, two, rtol=1e-7, atol=1e-7)


AXES = [axes for axes in itertools.product((0, None), repeat=3) if any(a == 0 for a in axes)]


@pytest.mark.parametrize("axes", share_each_commit(AXES, 3))
@pytest.mark.parametrize("loss", LOSSES)
def test_batches(loss, axes):
    args = [draw(5, *x.shape) if axis == 0 else x for x, axis in zip((W, H, XS), axes)]
    rows = [[x[at] if axis == 0 else x for x, axis in zip(args, axes)] for at in range(5)]
    found = check(td.vmap(loss, in_axes=axes), *args)
    assert_close(found, td.stack([loss(*row) for row in rows]))
    gradient = td.grad(loss, (0, 1, 2))
    found = td.jit(td.vmap(gradient, in_axes=axes))(*args)
    wanted = [gradient(*row) for row in rows]
    assert_close(found, tuple(td.stack(column) for column in zip(*wanted)))
    total = td.grad(lambda *args: td.vmap(loss, in_axes=axes)(*args).sum(), (0, 1, 2))
    assert_close(total(*args), td.jit(total)(*args))


def test_batch_of_a_batch():
    check(
        td.vmap(td.vmap(rnn, in_axes=(None, 0, None)), in_axes=(0, None, None)),
        draw(2, 3, 3),
        draw(3, 2, 3),
        XS,
    )


def test_forward_mode_through_a_while_loop():
    def root(a):
        return td.while_loop(lambda x: td.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)

    value, slope = check(lambda a: td.jvp(root, (a,), (td.ones_like(a),)), td.asarray(2.0, dtype=td.float64))
    assert value.item() == pytest.approx(2**0.5) and slope.item() == pytest.approx(0.5 / 2**0.5)
    assert td.grad(root)(td.asarray(2.0, dtype=td.float64)).item() == pytest.approx(
        0.5 / 2**0.5
    )  # a Python loop


def test_reverse_mode_of_while_loop_suggests_alternative():
    f = td.jit(td.grad(lambda x: td.while_loop(lambda v: v < 10, lambda v: v * 2, x)))
    with pytest.raises(errors.NotDifferentiableError, match=r"td\.scan.*td\.checkpoint"):
        f(td.asarray(1.0))


def test_batches_of_while_loops():
    def count(n, x):
        return td.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, x))

    n, x = td.asarray([3, 0, 5]), td.asarray([1.0, 2.0, 3.0])
    found = check(td.vmap(count), n, x)
    assert found[0].tolist() == [3, 0, 5] and found[1].tolist() == [8.0, 2.0, 96.0]
    assert_close(check(td.vmap(count, in_axes=(None, 0)), td.asarray(2), x)[1], x * 4)
    assert_close(check(td.vmap(count, in_axes=(0, None)), n, x[0])[0], n)


def test_batches_of_branches():
    f = lambda p, x: td.cond(p, td.sin, lambda x: x * 2, x)  # noqa: E731
    p, x = td.asarray([True, False]), draw(2, 3)
    assert_close(check(td.vmap(f), p, x), td.stack([td.sin(x[0]), x[1] * 2]))
    assert_close(check(td.vmap(f, in_axes=(0, None)), p, x[0]), td.stack([td.sin(x[0]), x[0] * 2]))
    assert_close(check(td.vmap(f, in_axes=(None, 0)), p[1], x), x * 2)
    g = lambda i, x: td.switch(i, [td.sin, td.cos, td.exp], x)  # noqa: E731
    i = td.asarray([-1, 0, 1, 2, 3])
    assert_close(check(td.vmap(g, in_axes=(0, None)), i, x), td.stack([g(int(k), x) for k in i.tolist()]))


def test_backward_through_a_python_loop():
    w = td.asarray(W.numpy().copy()).requires_grad_()
    rnn(w, H, XS).backward()
    assert_close(w.grad, td.grad(rnn)(W, H, XS))


def test_backward_of_a_compiled_loop():
    w = td.asarray(W.numpy().copy()).requires_grad_()
    td.jit(rnn)(w, H, XS).backward()
    assert_close(w.grad, td.grad(rnn)(W, H, XS))


def test_gradient_of_a_jitted_loop():
    assert_close(td.grad(td.jit(rnn), (0, 1, 2))(W, H, XS), td.grad(rnn, (0, 1, 2))(W, H, XS))


def test_gradients_inside_a_body():
    def descend(x):
        return td.fori_loop(0, 5, lambda i, x: x - 0.1 * td.grad(lambda x: (x**4).sum())(x), x)

    check(descend, draw(3))
    check(td.grad(lambda x: descend(x).sum()), draw(3))
    check(lambda xs: td.scan(lambda c, x: (c + td.vmap(td.sin)(x).sum(), None), 0.0, xs)[0], draw(3, 2))


@td.custom_vjp
def doubled(x):
    return x * 1.0


doubled.defvjp(lambda x: (x * 1.0, x), lambda x, g: (g * 2 + 0 * x,))


@td.custom_jvp
def tripled(x):
    return x * 1.0


tripled.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] * 3))


class Fourfold(td.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 1.0

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 4


@pytest.mark.parametrize(
    "rule, factor", [(doubled, 2), (tripled, 3), (Fourfold.apply, 4)], ids=["vjp", "jvp", "class"]
)
def test_custom_rules_inside_a_body(rule, factor):
    def f(x):
        return (td.scan(lambda c, k: (rule(c) * k, None), x, td.ones(3))[0]).sum()

    x = td.asarray([1.0, 2.0])
    assert check(td.grad(f), x).tolist() == [factor**3] * 2
    assert check(td.vmap(td.grad(f)), td.stack([x, x])).tolist() == [[factor**3] * 2] * 2
    assert check(td.grad(lambda x: td.vmap(f)(x).sum()), td.stack([x, x])).tolist() == [[factor**3] * 2] * 2
    assert check(lambda x: td.jvp(f, (x,), (td.ones(2),))[1], x).item() == 2 * factor**3
    square = td.grad(lambda x: (td.grad(lambda x: f(x * x))(x)).sum())
    check(square, x)


def test_checkpoint_inside_a_body():
    def f(w, h, xs):
        step = td.checkpoint(lambda c, x: (td.tanh(c @ w + x), None))
        return (td.scan(step, h, xs)[0] ** 2).sum()

    check(td.grad(f, (0, 1, 2)), W, H, XS)


def test_products_leave_the_backward_loop():
    def loss(w, h, xs):
        return (td.scan(lambda c, x: (td.tanh(c @ w + x), None), h, xs)[0] ** 2).sum()

    gradient = td.grad(loss, (0, 1, 2))
    lowered = td.jit(gradient).lower(W, H, XS)
    if config.flags.native:
        assert str(lowered.kernels()).count("blas: control::sum_products") == 2  # first, and the others


STEPS = {
    "h @ w": lambda w, h, x: h @ w + x,
    "h @ w.T": lambda w, h, x: h @ w.T + x,
    "w @ h.T": lambda w, h, x: (w @ h.T).T + x,
    "x @ w": lambda w, h, x: h + x @ w,
    "twice": lambda w, h, x: td.tanh(h @ w) @ w.T + x,
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_gradients_of_weights_in_all_forms(name, reverse):
    def loss(w, h, xs):
        def step(c, x):
            c = td.tanh(STEPS[name](w, c, x))
            return c, c

        last, rows = td.scan(step, h, xs, reverse=reverse)
        return (last * last).sum() + (rows * rows).sum()

    check(td.grad(loss, (0, 1, 2)), W, H, XS)
    check(td.grad(lambda w: loss(w, H, XS)), W)
    check(td.grad(lambda w, h, xs: loss(w, h.T @ h, xs @ w), (0, 1, 2)), W, H, draw(4, 3, 3))


def test_gradient_of_a_weight_from_the_left():
    def loss(w, h, xs):
        return (td.scan(lambda c, x: (td.tanh(w @ c + x), None), h, xs)[0] ** 2).sum()

    check(td.grad(loss, (0, 1, 2)), W, draw(3, 5), draw(4, 3, 5))
    check(td.grad(loss, (0, 1, 2)), W, draw(3), draw(4, 3))
    batch = td.vmap(loss, in_axes=(None, 0, 1))
    check(td.grad(lambda *args: batch(*args).sum(), (0, 1, 2)), W, draw(5, 3), draw(4, 5, 3))


def test_shapes_of_length_zero_and_one():
    for length in (0, 1):
        check(td.grad(rnn, (0, 1, 2)), W, H, draw(length, 2, 3))


# -- beside JAX --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def jax():
    found = pytest.importorskip("jax")
    with found.enable_x64(True) if hasattr(found, "enable_x64") else found.experimental.enable_x64():
        yield found


def programs(np_, control):
    def scanned(w, h, xs):
        def step(c, x):
            c = control.cond(x.sum() > 0, lambda c: np_.tanh(c @ w + x), lambda c: np_.sin(c) * x, c)
            return c, c.sum()

        last, sums = control.scan(step, h, xs, reverse=True)
        return (last * last).sum() + (sums * sums).sum()

    def counted(w, h, xs):
        return (control.fori_loop(0, 4, lambda i, v: np_.tanh(v @ w) + xs[i], h) ** 2).sum()

    def mapped(w, h, xs):
        return (control.map(lambda x: np_.exp(-(x**2)) @ w, xs) * h).sum()

    def prefixes(w, h, xs):
        return (control.associative_scan(lambda a, b: a * b + b, xs, axis=1) * 0.5).sum() + w.sum() * h.sum()

    def switched(w, h, xs):
        return sum(
            (control.switch(i, [lambda h: h @ w, np_.cos, lambda h: h * 2], h) * xs[i]).sum()
            for i in range(4)
        )

    return [scanned, counted, mapped, prefixes, switched]


@pytest.mark.parametrize("number", range(5))
def test_beside_jax(jax, number):
    ours, theirs = programs(td, td)[number], programs(jax.numpy, jax.lax)[number]
    arrays = [x.numpy() for x in (W, H, XS)]
    for make in (lambda f, m: f, lambda f, m: m.grad(f, argnums=(0, 1, 2))):
        wanted = jax.tree_util.tree_leaves(make(theirs, jax)(*map(jax.numpy.asarray, arrays)))
        for found in (make(ours, td)(W, H, XS), td.jit(make(ours, td))(W, H, XS)):
            leaves, _ = td.pytree.flatten(found)
            for one, two in zip(leaves, wanted):
                np.testing.assert_allclose(one.numpy(), np.asarray(two), rtol=1e-9, atol=1e-12)
