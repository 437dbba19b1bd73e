"""Control flow compared with JAX: values, both modes, second order, batches, eager and jitted."""

import numpy as np
import pytest
import tandem as td

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

TOLERANCE = {"rtol": 1e-9, "atol": 1e-11}
RANDOM = np.random.default_rng(7)
W, H, XS = (RANDOM.standard_normal(shape) * 0.5 for shape in ((3, 3), (2, 3), (5, 2, 3)))


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        yield


# Programs of (NumPy's names, control flow, transforms) and then of three arrays; all give one number.
def no_items(np_, c, ad, w, h, xs):
    last, ys = c.scan(lambda v, _: (np_.tanh(v @ w), v.sum()), h, None, length=4)
    return (last * xs[0]).sum() + (ys**2).sum()


def backward(np_, c, ad, w, h, xs):
    last, ys = c.scan(lambda v, x: (np_.sin(v @ w + x), v * x), h, xs, reverse=True)
    return (last**2).sum() + (ys[0] * ys[-1]).sum()


def no_steps(np_, c, ad, w, h, xs):
    last, ys = c.scan(lambda v, x: (np_.tanh(v @ w + x), v), h, xs[:0])
    return (last * w.sum()).sum() + ys.sum() + xs.sum()


def trees(np_, c, ad, w, h, xs):
    def step(carry, x):
        v = np_.tanh(carry["v"] @ w + x["x"])
        return {"v": v, "n": carry["n"] + 1, "t": carry["t"] + x["y"]}, (v.sum(), None)

    last, (sums, _) = c.scan(step, {"v": h, "n": 0, "t": h.sum()}, {"x": xs, "y": xs[:, 0, 0]})
    return (last["v"] ** 2).sum() * last["n"] + (sums * last["t"]).sum()


def nested(np_, c, ad, w, h, xs):
    def outer(v, x):
        v, ys = c.scan(lambda v, r: (np_.cos(v @ w) * r, v.sum()), v, x)
        return v, ys.sum()

    last, sums = c.scan(outer, h[0], xs)
    return (last**2).sum() + (sums**3).sum()


def chosen(np_, c, ad, w, h, xs):
    def step(v, x):
        v = c.cond(x.sum() > 0, lambda v, x: np_.tanh(v @ w), lambda v, x: v * np_.exp(x), v, x)
        return c.switch(
            (x[0, 0] * 9).astype("int64") % 3, [lambda v: v * w.sum(), np_.sin, lambda v: v], v
        ), v[0]

    last, rows = c.scan(step, h, xs)
    return (last**2).sum() + (rows * rows).sum()


def counted(np_, c, ad, w, h, xs):
    v = c.fori_loop(0, 5, lambda i, v: np_.tanh(v @ w + xs[i]) * (i + 1.0), h)
    return c.fori_loop(1, 4, lambda i, v: v + np_.sin(xs[i] * v), v).sum()


def prefixes(np_, c, ad, w, h, xs):
    both = {"a": np_.sin(xs), "b": xs}
    found = c.associative_scan(
        lambda p, q: {"a": p["a"] * q["a"], "b": q["a"] * p["b"] + q["b"]}, both, reverse=True, axis=0
    )
    along = c.associative_scan(np_.add, xs * w[0], axis=-1)
    return (found["b"] ** 2).sum() + (found["a"] * along).sum() + (h * w.sum()).sum()


def in_batches(np_, c, ad, w, h, xs):
    found = c.map(lambda x: {"y": np_.tanh(x @ w) * h}, xs, batch_size=2)["y"]
    return (found**2).sum() + c.map(lambda x: (x * h).sum(), xs).sum()


def own_rule(np_, c, ad, w, h, xs):
    @ad.custom_vjp
    def act(x):
        return np_.tanh(x)

    act.defvjp(lambda x: (np_.tanh(x), x), lambda x, g: (g * (1 - np_.tanh(x) ** 2) * 2,))
    last, _ = c.scan(lambda v, x: (act(v @ w + x), None), h, xs)
    return (last**2).sum()


def again(np_, c, ad, w, h, xs):
    step = ad.checkpoint(lambda v, x: (np_.sin(np_.tanh(v @ w + x)) * v, v.sum()))
    last, sums = c.scan(step, h, xs)
    return (last**2).sum() + (sums**2).sum()


def by_columns(np_, c, ad, w, h, xs):
    last, _ = c.scan(lambda v, x: (np_.tanh(w @ v + x.T), None), h.T, xs)
    return (last**2).sum()


PROGRAMS = [
    no_items,
    backward,
    no_steps,
    trees,
    nested,
    chosen,
    counted,
    prefixes,
    in_batches,
    own_rule,
    again,
    by_columns,
]
SOME = [trees, chosen, again]
MIXED = [(None, 0, None), (0, None, None)]
BOTH = [p for p in PROGRAMS if p is not own_rule]  # a rule for one mode has no other


def ours(program):
    return lambda *args: program(td, td, td, *args)


def theirs(program):
    return lambda *args: program(jnp, jax.lax, jax, *args)


def beside(make, program, *args):
    """Compare what a transform makes of a program with what JAX's makes of it, compiled and not."""
    wanted = jax.tree_util.tree_leaves(make(theirs(program), jax)(*map(jnp.asarray, args)))
    function, given = make(ours(program), td), [td.asarray(x) for x in args]
    for found in (function(*given), td.jit(function)(*given)):
        for one, two in zip(td.tree.leaves(found), wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), np.asarray(two), **TOLERANCE)


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients(program):
    beside(lambda f, m: m.value_and_grad(f, (0, 1, 2)), program, W, H, XS)


@pytest.mark.parametrize("program", BOTH)
def test_forward_mode(program):
    def pushed(f, m):
        return lambda w, h, xs: m.jvp(f, (w, h, xs), (w * 2, h + 1, xs * xs))[1]

    beside(pushed, program, W, H, XS)


@pytest.mark.parametrize(
    "program", [p if p in SOME else pytest.param(p, marks=pytest.mark.full) for p in BOTH]
)
def test_second_order(program):
    def twice(f, m):
        slope = lambda w, h, xs: (m.grad(f)(w, h, xs) ** 2).sum()  # noqa: E731
        return lambda w, h, xs: (m.grad(slope, (0, 1))(w, h, xs), m.jvp(m.grad(f), (w, h, xs), (w, h, xs))[1])

    beside(twice, program, W, H, XS)


@pytest.mark.parametrize(
    "axes", [(0, 0, 0), *(pytest.param(a, marks=pytest.mark.full) for a in MIXED)], ids=str
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_batches_of_gradients(program, axes):
    args = [x if axis is None else np.stack([x, x * 0.5 - 0.1, -x]) for x, axis in zip((W, H, XS), axes)]
    beside(lambda f, m: m.vmap(m.grad(f, (0, 1, 2)), in_axes=axes), program, *args)


# -- while_loop --------------------------------------------------------------------------------------------------------
def halved(np_, c, ad, x, stop):
    return c.while_loop(
        lambda s: (np_.abs(s[1]) > stop) & (s[0] < 50),
        lambda s: (s[0] + 1, s[1] * 0.5 + np_.sin(s[1]) * 0.1),
        (0, x),
    )


def summed(np_, c, ad, x, n):
    return c.fori_loop(0, n, lambda i, v: v + np_.sin(v) * i, x)


def test_while_loop():
    beside(lambda f, m: f, halved, np.float64(3.0), np.float64(0.1))
    beside(lambda f, m: m.vmap(f), halved, np.asarray([3.0, -40.0, 0.01]), np.asarray([0.1, 1e-3, 1.0]))
    beside(lambda f, m: m.vmap(f, in_axes=(None, 0)), halved, np.float64(7.0), np.asarray([0.1, 1e-3, 1.0]))
    beside(
        lambda f, m: lambda x, s: m.jvp(lambda x: f(x, s)[1], (x,), (x,)),
        halved,
        np.float64(3.0),
        np.float64(0.1),
    )
    pushed = lambda f, m: m.vmap(lambda x, s: m.jvp(lambda x: f(x, s)[1], (x,), (x,)))  # noqa: E731
    beside(pushed, halved, np.asarray([3.0, -40.0, 0.01]), np.asarray([0.1, 1e-3, 1.0]))


def test_traced_bounds():
    beside(lambda f, m: f, summed, np.float64(0.3), np.int64(6))
    beside(lambda f, m: m.vmap(f), summed, np.asarray([0.3, 0.4, 0.5]), np.asarray([6, 0, 2]))
    beside(
        lambda f, m: lambda x, n: m.jvp(lambda x: f(x, n), (x,), (x,))[1],
        summed,
        np.float64(0.3),
        np.int64(6),
    )


# -- branches ----------------------------------------------------------------------------------------------------------
def branch(np_, c, ad, p, x, y):
    a = c.cond(p > 0, lambda x, y: {"r": x * np_.sin(y)}, lambda x, y: {"r": np_.exp(x) + y}, x, y)["r"]
    return (c.switch((p * 3).astype("int64"), [lambda v: v, np_.tanh, lambda v: v * y], a) ** 2).sum()


@pytest.mark.parametrize("p", [-1.0, 0.4, 0.8])
def test_branches(p):
    x, y = H[0], H[1]
    beside(lambda f, m: m.value_and_grad(f, (1, 2)), branch, np.float64(p), x, y)
    beside(lambda f, m: lambda p, x, y: m.jvp(lambda x: f(p, x, y), (x,), (y,)), branch, np.float64(p), x, y)
    beside(lambda f, m: m.grad(lambda p, x, y: m.grad(f, 1)(p, x, y).sum(), 2), branch, np.float64(p), x, y)


def test_batches_of_branches():
    p, x, y = np.asarray([-1.0, 0.1, 0.4, 0.9]), RANDOM.standard_normal((4, 3)), H[0]
    beside(lambda f, m: m.vmap(m.grad(f, (1, 2)), in_axes=(0, 0, None)), branch, p, x, y)
    beside(lambda f, m: m.vmap(m.value_and_grad(f, 1), in_axes=(None, 0, None)), branch, p[2], x, y)
