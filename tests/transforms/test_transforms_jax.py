"""Transforms compared with JAX, where it is installed: values, structures, conventions for complex numbers."""

import itertools

import numpy as np
import pytest
import tandem as td

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(2, 3))
A = RNG.normal(size=(3, 3))
Z, S = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        yield


def agree(found, wanted):
    ours, theirs = td.pytree.leaves(found), jax.tree_util.tree_leaves(wanted)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


# real functions of a vector
FUNCTIONS = {
    "tanh": lambda xp, x: xp.tanh(x) * x.sum(),
    "matmul": lambda xp, x: xp.asarray(A) @ x * x,
    "where": lambda xp, x: xp.where(x > 0, x**3, xp.exp(x)),
    "max": lambda xp, x: x * x.max() - xp.minimum(x, 0.1),
    "index": lambda xp, x: x[xp.asarray([0, 2, 0])] * x[1:].sum(),
    "sort of norm": lambda xp, x: x / xp.sqrt((x * x).sum() + 1.0),
    "cumsum": lambda xp, x: xp.cumsum(xp.sin(x), 0) * x,
}
# complex functions of a complex vector; those that are holomorphic first
HOLOMORPHIC = {
    "power": lambda xp, z: z**3 - 2j * z,
    "exp": lambda xp, z: xp.exp(z) * xp.sin(z),
    "log": lambda xp, z: xp.log(z) / z,
    "matmul": lambda xp, z: xp.asarray(A) @ z * z,
    "sqrt": lambda xp, z: xp.sqrt(z) + xp.tanh(z),
    "cosh": lambda xp, z: xp.cosh(z) * xp.cos(z) / (2 + xp.sinh(z)),
}
OTHERS = {
    "conj": lambda xp, z: xp.conj(z) * z * z,
    "parts": lambda xp, z: xp.real(z) * xp.imag(z) * z + 1j * xp.real(z),
    "abs": lambda xp, z: xp.abs(z) * z + xp.abs(z),
    "where": lambda xp, z: xp.where(xp.real(z) > 0, z * xp.conj(z), 1j * z),
    "mixed": lambda xp, z: (xp.real(z) + 2.0) * xp.asarray(S),
}


def ours(f):
    return lambda x: f(td, x)


def theirs(f):
    return lambda x: f(jnp, x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_real(name):
    f, g = ours(FUNCTIONS[name]), theirs(FUNCTIONS[name])
    x = td.asarray(X)
    agree(td.jvp(f, (x,), (td.asarray(T),)), jax.jvp(g, (X,), (T,)))
    agree(td.vjp(f, x)[1](td.asarray(T)), jax.vjp(g, X)[1](T))
    agree(td.linearize(f, x)[1](td.asarray(T)), jax.linearize(g, X)[1](T))
    for one, two in itertools.product(("jacfwd", "jacrev"), repeat=2):
        agree(getattr(td, one)(f)(x), getattr(jax, one)(g)(X))
        agree(getattr(td, one)(getattr(td, two)(f))(x), getattr(jax, one)(getattr(jax, two)(g))(X))
    agree(td.hessian(lambda x: f(x).sum())(x), jax.hessian(lambda x: g(x).sum())(X))


@pytest.mark.parametrize("name", [*HOLOMORPHIC, *OTHERS])
def test_complex(name):
    function = OTHERS.get(name) or HOLOMORPHIC[name]
    f, g = ours(function), theirs(function)
    z, t = td.asarray(Z), td.asarray(S)
    agree(td.jvp(f, (z,), (t,)), jax.jvp(g, (Z,), (S,)))
    agree(td.vjp(f, z)[1](t), jax.vjp(g, jnp.asarray(Z))[1](jnp.asarray(S)))

    def size(f):
        return lambda z: (abs(f(z)) ** 2).sum()

    agree(td.grad(size(f))(z), jax.grad(size(g))(Z))
    real = lambda f: lambda x: size(f)(x + 1j * x * x)  # noqa: E731
    agree(td.grad(real(f))(td.asarray(X)), jax.grad(real(g))(X))
    agree(td.jacfwd(td.grad(real(f)))(td.asarray(X)), jax.jacfwd(jax.grad(real(g)))(X))


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic(name):
    f, g = ours(HOLOMORPHIC[name]), theirs(HOLOMORPHIC[name])
    z = td.asarray(Z)
    agree(
        td.grad(lambda z: f(z).sum(), holomorphic=True)(z),
        jax.grad(lambda z: g(z).sum(), holomorphic=True)(Z),
    )
    agree(td.jacfwd(f, holomorphic=True)(z), jax.jacfwd(g, holomorphic=True)(Z))
    agree(td.jacrev(f, holomorphic=True)(z), jax.jacrev(g, holomorphic=True)(Z))


def test_structures():
    def f(p, s):
        return {"a": p["w"] * s, "b": [(p["w"] ** 2).sum(), s * p["v"]]}

    p = {"v": T, "w": X}
    mine = {k: td.asarray(v) for k, v in p.items()}
    for name in ("jacfwd", "jacrev"):
        for argnums in (0, 1, (0, 1), (1,)):
            agree(
                getattr(td, name)(f, argnums)(mine, td.asarray(2.0, dtype=td.float64)),
                getattr(jax, name)(f, argnums)(p, 2.0),
            )

    def number(p, s):
        return (p["w"] ** 2).sum() * s + (p["v"] * p["w"]).sum() * s**2

    agree(
        td.hessian(number, (0, 1))(mine, td.asarray(2.0, dtype=td.float64)),
        jax.hessian(number, (0, 1))(p, 2.0),
    )


def test_custom_rules_and_axes():
    def build(lib, xp):
        f = lib.custom_jvp(lambda x, y: xp.sin(x) * y)
        f.defjvps(lambda t, out, x, y: xp.cos(x) * y * t, lambda t, out, x, y: xp.sin(x) * t)
        g = lib.custom_vjp(lambda x: x * 3)
        g.defvjp(lambda x: (x * 3, x), lambda x, ct: (ct * x,))
        psum = td.psum if lib is td else jax.lax.psum
        return lambda x: (f(g(x), x) / psum(xp.exp(x), "i")).sum()

    mine, other = td.vmap(build(td, td), axis_name="i"), jax.vmap(build(jax, jnp), axis_name="i")
    agree(mine(td.asarray(A)), other(A))
    agree(td.grad(lambda a: mine(a).sum())(td.asarray(A)), jax.grad(lambda a: other(a).sum())(A))


def test_roots_and_solves():
    def build(lib, xp):
        root = td.custom_root if lib is td else jax.lax.custom_root

        def f(a):
            def newton(f, x):
                for _ in range(40):
                    x = x - f(x) / 12.0
                return x

            return root(lambda x: x**3 - a, xp.asarray(1.5), newton, lambda g, y: y / g(xp.asarray(1.0)))

        return f

    a = td.asarray(8.0, dtype=td.float64)
    found = td.grad(td.grad(build(td, F64())))(a)
    agree(found, -2 / 9 * 8 ** (-5 / 3))
    agree(td.grad(build(td, F64()))(a), jax.grad(build(jax, jnp))(8.0))


class F64:
    """``asarray`` in float64, as JAX has it with x64."""

    @staticmethod
    def asarray(x):
        return td.asarray(x, dtype=td.float64)
