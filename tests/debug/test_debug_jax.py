"""Debugging compared with JAX, where it is installed: the same output, callbacks and errors."""

import numpy as np
import pytest
import tandem as td

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
checkify = pytest.importorskip("jax.experimental.checkify")

X = np.array([1.0, -2.0, 3.0], np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)

# each takes the library and gives a function of a vector to a scalar that prints
PROGRAMS = {
    "values": lambda xp: lambda x: (xp.debug.print("a {} {y:.3f}", x, y=x.sum()), (x * x).sum())[1],
    "order": lambda xp: (
        lambda x: ([xp.debug.print("line {n} {s}", n=n, s=x.sum() * n) for n in range(3)], x.sum())[1]
    ),
    "constants": lambda xp: lambda x: (xp.debug.print("no values {k}", k=3), x.sum())[1],
}
WRAPPED = {
    "alone": lambda xp, f: f,
    "jit": lambda xp, f: xp.jit(f),
    "vmap": lambda xp, f: xp.vmap(f),
    "jit vmap": lambda xp, f: xp.jit(xp.vmap(f)),
    "vmap jit": lambda xp, f: xp.vmap(xp.jit(f)),
    "grad": lambda xp, f: xp.grad(f),
    "jit grad": lambda xp, f: xp.jit(xp.grad(f)),
    "vmap grad": lambda xp, f: xp.vmap(xp.grad(f)),
}


@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_print(name, wrap, capsys):
    given = ROWS if "vmap" in wrap else X
    texts = []
    for xp, convert in ((td, td.asarray), (jax, jnp.asarray)):
        call = WRAPPED[wrap](xp, PROGRAMS[name](xp))
        for _ in range(2):
            call(convert(given))
            if xp is jax:
                jax.effects_barrier()
        texts.append(capsys.readouterr().out.splitlines())
    assert sorted(texts[0]) == sorted(texts[1])  # JAX promises no order
    assert texts[0]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 0)])
def test_pure_callback(method, axes):
    def run(xp, convert, spec):
        shapes = []

        def host(x, y):
            shapes.append((np.shape(x), np.shape(y)))
            return np.asarray(np.sum(x, -1) + np.sum(y, -1), np.float32)

        def f(x, y):
            return xp.pure_callback(host, spec, x, y, vmap_method=method)

        square = np.arange(9, dtype=np.float32).reshape(3, 3)
        args = [convert(square if axis is not None else square[0]) for axis in axes]
        out = xp.jit(xp.vmap(f, axes))(*args)
        return np.asarray(out).tolist(), shapes

    wanted = run(jax, jnp.asarray, jax.ShapeDtypeStruct((), np.float32))
    assert run(td, td.asarray, td.TensorSpec((), td.float32)) == wanted


def test_checkify():
    def program(xp, check):
        def f(x, i):
            check(xp.all(x != 5.0), "no five in {x}", x=x)
            y = xp.log(x)
            return y[i] / x[0]

        return f

    ours = td.checkify(program(td, td.check))
    kinds = checkify.user_checks | checkify.nan_checks | checkify.div_checks | checkify.index_checks
    theirs = checkify.checkify(program(jnp, checkify.check), errors=kinds)
    words = {
        "no five": "no five",
        "nan": "nan",
        "division": "division by zero",
        "out of bounds": "out-of-bounds",
    }
    for x, i in (([1.0, 2.0], 0), ([1.0, 5.0], 1), ([-1.0, 2.0], 1), ([0.0, 2.0], 1), ([1.0, 2.0], 7)):
        x, i = np.asarray(x, np.float32), np.asarray(i)
        for wrap in (lambda xp, f: f, lambda xp, f: xp.jit(f)):
            mine, out = wrap(td, ours)(td.asarray(x), td.asarray(i))
            other, want = wrap(jax, theirs)(jnp.asarray(x), jnp.asarray(i))
            assert (mine.get() is None) == (other.get() is None)
            if mine.get() is None:
                np.testing.assert_allclose(out.numpy(), np.asarray(want), rtol=1e-6)
            else:
                (word,) = [w for w in words if w in mine.get()]
                assert words[word] in other.get()
