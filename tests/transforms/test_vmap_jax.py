"""``vmap`` compared with JAX, where it is installed: axes, trees, unbatched arguments, errors."""

import itertools

import numpy as np
import pytest
import tandem as td

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

X = np.random.default_rng(0).normal(size=(3, 3, 3)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(3, 3, 3)).astype(np.float32)
ROWS = np.array([2, 0, 1])
AXES = (None, 0, 1, -1)


def join(x, y):
    return td.concat([x[..., :2], y[..., :1]], -1)


# each takes the library and two arguments, of rank 2 where mapped, of rank 3 where shared
FUNCTIONS = {
    "broadcast": lambda xp, x, y: x * y + y.sum(-1, keepdims=True),
    "matmul": lambda xp, x, y: x @ y,
    "reduce": lambda xp, x, y: (x.max(0), y.argmin(), (x - y).mean()),
    "where": lambda xp, x, y: xp.where(x > 0, y, 0.0),
    "index": lambda xp, x, y: (x[..., 1:] + y[..., :1], x[0], y[..., xp.asarray([2, 0]), :]),
    "join": lambda xp, x, y: xp.concatenate([x[..., :2], y[..., :1]], -1) if xp is jnp else join(x, y),
    "scan": lambda xp, x, y: xp.cumsum(x, 0) + xp.flip(y, 0),
    "shared": lambda xp, x, y: {"a": 1.0, "b": xp.zeros(2), "c": x},
}


def agree(found, wanted):
    ours, theirs = td.pytree.leaves(found), jax.tree_util.tree_leaves(wanted)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_axes(name):
    for first, second in itertools.product(AXES, AXES):
        if first is second is None or (name == "join" and None in (first, second)):
            continue
        for out in (0, -1):
            rank = 0 if name in ("reduce", "shared") else out
            call = FUNCTIONS[name]
            found = td.vmap(lambda x, y, f=call: f(td, x, y), (first, second), rank)(
                td.asarray(X), td.asarray(Y)
            )
            wanted = jax.vmap(lambda x, y, f=call: f(jnp, x, y), (first, second), rank)(X, Y)
            agree(found, wanted)


def test_indices_and_updates():
    def f(x, i, u):
        return x[i], x[:, i], x.at[i].set(u), x.at[:, i].add(u), x.at[i, 0].multiply(2.0)

    for axes in itertools.product((0, None), (0, None), (0, None)):
        if axes == (None, None, None):
            continue
        given = [a if axis == 0 else a[0] for a, axis in zip((X, ROWS, Y[:, 0, 0]), axes, strict=True)]
        agree(td.vmap(f, axes)(*map(td.asarray, given)), jax.vmap(f, axes)(*map(jnp.asarray, given)))


@pytest.mark.parametrize("order", list(itertools.product(["grad", "vmap", "jit"], repeat=3)))
def test_compositions(order):
    """Every word of three transforms: grad maps to a sum again, vmap takes an axis away."""

    def build(lib, xp):
        def f(x):
            return (xp.tanh(x) * x).sum() if lib is jax else (td.tanh(x) * x).sum()

        for transform in order:
            inner = f
            if transform == "grad":
                f = lib.grad(lambda x, inner=inner: (inner(x) ** 2).sum())
            elif transform == "vmap":
                f = lib.vmap(inner)
            else:
                f = lib.jit(inner)
        return f

    agree(build(td, td)(td.asarray(X)), build(jax, jnp)(jnp.asarray(X)))


BAD = {
    "sizes": lambda lib, x: lib.vmap(lambda a, b: a + b)(x, x[:2]),
    "rank": lambda lib, x: lib.vmap(lambda a: a, 3)(x),
    "number": lambda lib, x: lib.vmap(lambda a: a)(1.0),
    "nothing mapped": lambda lib, x: lib.vmap(lambda a: a, None)(x),
    "out_axes None": lambda lib, x: lib.vmap(lambda a: a, 0, None)(x),
    "tuple": lambda lib, x: lib.vmap(lambda a, b: a, (0,))(x, x),
    "axis_size": lambda lib, x: lib.vmap(lambda a: a, axis_size=5)(x),
    "branch": lambda lib, x: lib.vmap(lambda a: a if a.sum() > 0 else -a)(x),
}


@pytest.mark.parametrize("name", BAD)
def test_what_jax_refuses(name):
    with pytest.raises(td.errors.TandemError):
        BAD[name](td, td.asarray(X))
    with pytest.raises((ValueError, TypeError, IndexError)):
        BAD[name](jax, jnp.asarray(X))
