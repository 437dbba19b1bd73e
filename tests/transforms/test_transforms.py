"""``jvp``, ``vjp`` and related transforms: structure, nesting, in-place writes, complex numbers, jit, errors."""

import functools
import itertools

import numpy as np
import pytest
import tandem as td
from helpers import assert_same
from tandem import errors


def f64(values):
    return td.asarray(values, dtype=td.float64)


X, T = f64([0.5, 1.5, -0.7]), f64([1.0, -2.0, 0.3])


assert_close = functools.partial(assert_same, rtol=1e-12, atol=1e-12)


# -- jvp, vjp ----------------------------------------------------------------------------------------------------------
def test_jvp_on_trees():
    def f(p, x):
        return {"a": p["w"] * x, "b": (x.sum(), 3.0, p["n"])}

    p, dp = {"w": X, "n": f64(2.0)}, {"w": T, "n": None}
    value, tangent = td.jvp(f, (p, T), (dp, None))
    assert_close(value["a"], X * T)
    assert_close(tangent, {"a": T * T, "b": (f64(0.0), td.asarray(0.0), f64(0.0))})
    value, tangent, aux = td.jvp(lambda x: (x * x, {"y": x + 1, "s": "text"}), (X,), (T,), has_aux=True)
    assert_close(tangent, 2 * X * T)
    assert aux["s"] == "text" and type(aux["y"]) is td.Tensor


def test_vjp_is_used_again():
    _, back = td.vjp(lambda x, y: (x * y, x.sum()), X, T)
    for scale in (1.0, 2.0):
        one, two = back((scale * td.ones(3, dtype=td.float64), scale))
        assert_close(one, scale * (T + 1))
        assert_close(two, scale * X)
    assert_close(back((None, 1.0)), (td.ones(3, dtype=td.float64), td.zeros(3, dtype=td.float64)))
    assert_close(td.vmap(lambda g: back((g, None))[0])(td.eye(3, dtype=td.float64)), np.diag(T.numpy()))
    assert td.vjp(lambda x: (x, "aux"), X, has_aux=True)[2] == "aux"


def test_results_own_their_memory():
    g = td.ones(3, dtype=td.float64)
    _, back = td.vjp(lambda x: x, X)
    back(g)[0].add_(1)
    tangent = td.jvp(lambda x: (x, x), (X,), (g,))[1]
    tangent[0].add_(1)
    assert g.tolist() == [1, 1, 1] and tangent[1].tolist() == [1, 1, 1]


def test_linearize_runs_once():
    calls = []

    def f(x):
        calls.append(1)
        return td.sin(x) * x, x.argmax()

    _, push = td.linearize(f, X)
    assert_close(push(T)[0], td.jvp(lambda x: td.sin(x) * x, (X,), (T,))[1])
    assert_close(push(2 * T)[0], 2 * push(T)[0])
    assert len(calls) == 1
    assert td.linearize(lambda x: (x, 1), X, has_aux=True)[2] == 1
    assert_close(td.vmap(td.linearize(td.sin, X)[1])(td.eye(3, dtype=td.float64)), np.diag(np.cos(X.numpy())))
    assert_close(td.grad(lambda x: td.linearize(lambda y: y**3, x)[1](T).sum())(X), 6 * X * T)


def test_linear_transpose():
    back = td.linear_transpose(lambda x, y: (3 * x[1:] - y, y.sum()), X, f64([0.0, 0.0]))
    assert_close(back((f64([1.0, 2.0]), 10.0)), (f64([0, 3, 6]), f64([9, 8])))


# -- Jacobians ---------------------------------------------------------------------------------------------------------
def test_jacobians_of_trees():
    def f(p, s):
        return {"a": p["w"] * s, "b": (p["w"] ** 2).sum()}

    p = {"w": X, "v": f64([[1.0, 2.0]])}
    for jacobian in (td.jacfwd, td.jacrev):
        found = jacobian(f)(p, f64(2.0))
        assert found["a"]["v"].shape == (3, 1, 2)
        assert_close(found["a"]["w"], 2 * np.eye(3))
        assert_close(found["b"]["w"], 2 * X)
        both = jacobian(f, (0, 1))(p, f64(2.0))
        assert type(both["a"]) is tuple
        assert_close(both["a"][1], X)
        value, aux = jacobian(lambda x: (x * x, {"x": x}), has_aux=True)(X)
        assert_close((value, aux["x"]), (np.diag(2 * X.numpy()), X))


def test_hessian():
    def f(x, y):
        return (x**2).sum() * y["b"] ** 2

    (xx, xy), second = td.hessian(f, (0, 1))(X, {"b": f64(3.0)})
    yx, yy = second["b"]
    assert_close(xx, 18 * np.eye(3))
    assert_close(xy["b"], 12 * X)
    assert_close(yx, 12 * X)
    assert_close(yy["b"], 2 * (X * X).sum())


# -- nesting -----------------------------------------------------------------------------------------------------------
def test_no_perturbation_confusion():
    def by_jvp(f):
        return lambda x: td.jvp(f, (x,), (td.ones_like(td.asarray(x)),))[1]

    def by_vjp(f):
        return lambda x: td.vjp(f, x)[1](1.0)[0]

    for outer, inner in itertools.product((td.grad, by_jvp, by_vjp), repeat=2):
        assert outer(lambda x, d=inner: x * d(lambda y: x + y)(1.0))(1.0).item() == 1.0
        assert outer(lambda x, d=inner: x * d(lambda y: x * y)(2.0))(3.0).item() == 6.0
        assert outer(lambda x, d=inner: d(lambda y: x * x * y)(x) + x)(2.0).item() == 5.0


WORDS = list(itertools.product(["grad", "jvp", "vmap", "jit"], repeat=3))


@pytest.mark.parametrize("word", WORDS, ids="-".join)
def test_every_word_of_three_transforms(word):
    """Each transform makes a function of a vector from one of a vector; vmap is checked against a loop."""

    def build(plain):
        f = lambda x: td.tanh(x) * x  # noqa: E731
        for transform in word:
            f = step(transform, f, plain)
        return f

    def step(transform, f, plain):
        if transform == "grad":
            return td.grad(lambda x: (f(x) * X).sum())
        if transform == "jvp":
            return lambda x: td.jvp(f, (x,), (T,))[1]
        if transform == "jit":
            return f if plain else td.jit(lambda x: f(x))
        if plain:
            return lambda x: td.stack([f(x), f(2 * x)]).sum(0)
        return lambda x: td.vmap(f)(td.stack([x, 2 * x])).sum(0)

    assert_close(build(False)(X), build(True)(X))


def test_captured_values_of_every_level():
    def f(x):
        def g(y):
            inner = td.jit(lambda z: (z * x + y).sum())
            return td.jvp(inner, (y,), (x,))[1] + td.grad(inner)(y).sum()

        return td.vmap(lambda s: td.grad(g)(s * x).sum())(f64([1.0, 2.0])).sum()

    assert td.check_grads(f, (X,), order=2) is None


def test_no_grad_inside():
    def f(x):
        with td.no_grad():
            y = x * x
        return (x * y).sum()

    assert_close(td.jvp(f, (X,), (T,))[1], (X * X * T).sum())
    assert_close(td.grad(f)(X), X * X)


def test_missing_derivatives():
    with td.Library("fwd", "DEF") as lib:
        lib.define("opaque(Tensor x) -> Tensor")
        lib.impl("opaque", lambda x: td.asarray(x.numpy() * 2), "CPU")
        with pytest.raises(errors.NotDifferentiableError, match="fwd::opaque has no derivative"):
            td.jvp(td.ops.fwd.opaque, (X,), (T,))
        with td.config.override(missing_derivative="warn"), pytest.warns(RuntimeWarning):
            assert_close(td.jvp(lambda x: td.ops.fwd.opaque(x) + x, (X,), (T,))[1], T)
    assert td.jvp(lambda x: x.argmax(), (X,), (T,))[1].item() == 0


# -- in place ----------------------------------------------------------------------------------------------------------
def buffers(x):
    z = td.zeros(4, dtype=td.float64)
    z[1:] = x * x
    z[0] = x.sum()
    z.mul_(z)
    part = z[1:3]
    part += x[0]
    part[0] = 5.0
    return z, part


def views(x):
    y = x.clone().reshape(1, 3)
    row = y[0]
    row.mul_(x)
    y.T.sin_()
    row[1:].add_(row[:1])
    return y


@pytest.mark.parametrize("f", [buffers, views])
def test_writes(f):
    td.check_grads(f, (X,), order=2)
    if f is buffers:
        assert_close(td.jit(lambda x, t: td.jvp(f, (x,), (t,)))(X, T), td.jvp(f, (X,), (T,)))
    else:
        many = td.stack([X, 2 * X])
        assert_close(td.vmap(lambda x: td.jvp(f, (x,), (T,))[1])(many)[1], td.jvp(f, (2 * X,), (T,))[1])


def test_refused_writes():
    captured = td.zeros(3, dtype=td.float64)
    with pytest.raises(errors.UnsupportedError, match="not made inside"):
        td.jvp(lambda x: captured.add_(x), (X,), (T,))
    with pytest.raises(errors.AutogradError, match="leaf"):
        td.jvp(lambda x: x.add_(1.0), (X,), (T,))
    assert X.tolist() == [0.5, 1.5, -0.7] and captured.tolist() == [0, 0, 0]


# -- complex numbers ---------------------------------------------------------------------------------------------------
def test_complex():
    z = td.asarray([1 + 2j, -0.3j + 1], dtype=td.complex128)
    assert_close(td.grad(lambda z: (td.abs(z) ** 2).sum())(z), 2 * np.conj(z.numpy()))
    assert_close(td.grad(lambda z: (z**3).sum(), holomorphic=True)(z), 3 * z * z)
    assert_close(td.jacfwd(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z.numpy()))
    assert_close(td.jacrev(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z.numpy()))
    for f in (lambda z: z * td.conj(z), lambda z: td.abs(z) * z, lambda z: td.real(z) * td.imag(z) * z):
        td.check_grads(f, (z,), order=2)
    for broken in (
        lambda: td.grad(lambda z: (z * z).sum())(z),
        lambda: td.grad(lambda x: x.sum(), holomorphic=True)(X),
        lambda: td.jacfwd(lambda z: z)(z),
        lambda: td.jacrev(lambda z: z)(z),
        lambda: td.jacrev(lambda x: x, holomorphic=True)(X),
    ):
        with pytest.raises(TypeError, match="holomorphic"):
            broken()


# -- jitted functions --------------------------------------------------------------------------------------------------
def test_transforms_of_jitted_functions_stay_compiled():
    traced = []

    @td.jit
    def f(p, x, *, power=2):
        traced.append(1)
        return {"y": (p["w"] * x) ** power, "text": "same", "n": x.argmax()}

    for _ in range(3):
        _, tangent = td.jvp(lambda w: f({"w": w}, X)["y"], (T,), (X,))
    assert len(traced) == 1
    assert_close(tangent, 2 * T * X**3)
    assert f({"w": T}, X)["text"] == "same"
    assert_close(td.hessian(lambda w: f({"w": w}, X)["y"].sum())(T), np.diag(2 * X.numpy() ** 2))
    with td.no_grad():
        assert f({"w": T}, X)["n"].item() == 1


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: td.jvp(td.sin, X, T), TypeError, "tuple or a list"),
        (lambda: td.jvp(td.sin, (X,), (T, T)), TypeError, "structure"),
        (lambda: td.jvp(td.sin, (X,), (T[1:],)), ValueError, r"shape \(2,\)"),
        (lambda: td.jvp(td.sin, (X,), (T.astype(td.float32),)), TypeError, "float32"),
        (lambda: td.jacfwd(td.sin)(td.asarray([1])), TypeError, "argument 0"),
        (lambda: td.jvp(lambda x: "text", (X,), (T,)), TypeError, "result"),
        (lambda: td.jvp(lambda x: x, (X,), (T,), has_aux=True), TypeError, "pair"),
        (lambda: td.vjp(td.sin, X)[1](T[1:]), ValueError, "cotangent"),
        (lambda: td.vjp(td.sin, X)[1]([T]), TypeError, "structure"),
        (lambda: td.vjp(td.sin, X)[1](T, T), TypeError, "one tree"),
        (lambda: td.vjp(3, X), TypeError, "function"),
        (lambda: td.jacfwd(td.sin, argnums=2)(X), TypeError, "argnums=2"),
        (lambda: td.jacrev(td.sin)(td.asarray([1])), TypeError, "argument 0"),
        (lambda: td.check_grads(td.sin, (X,), modes=["forward"]), TypeError, "modes"),
        (lambda: td.check_grads(td.sin, X), TypeError, "tuple or a list"),
    ],
)
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_leaks():
    kept = []
    td.jvp(lambda x: kept.append(x * 2) or x, (X,), (T,))
    with pytest.raises(errors.LeakedTracerError, match="jvp"):
        kept[0] + 1
    with pytest.raises(errors.ConcretizationError, match="derivative would be lost"):
        td.jvp(lambda x: np.sin(x.numpy()), (X,), (T,))


def test_check_grads_says_where():
    def f(p, x):
        return td.sin(p["w"]) * td.stop_gradient(x) * x

    with pytest.raises(AssertionError, match=r"order 1, reverse mode: argument 1 \(float64\[3\]\)"):
        td.check_grads(f, ({"w": X}, T), order=1, modes=["rev"])
    td.check_grads(f, ({"w": X}, T), order=1, modes=["fwd"], atol=10.0)
