"""Keywords of JAX's functions that tandem's lack, compared with JAX."""

import pickle

import numpy as np
import pytest
import tandem as td
import tandem.jax as tj

jax = pytest.importorskip("jax")

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
MASK, WEIGHTS = X > -0.3, np.array([1.0, -2.0, 0.0, 0.5], np.float32)
HALF = X.astype(np.float16)
POSITIONS = np.array([0, 2, 3, 11, -1, -3, -20])
COUNTS = np.array([1, 2, 0, 1])

CALLS = {
    "softmax": lambda m, x: m.nn.softmax(x, where=MASK),
    "softmax of axes": lambda m, x: m.nn.softmax(x, axis=(0, 1)),
    "softmax of nothing": lambda m, x: m.nn.softmax(x, 0, where=np.zeros((3, 4), bool)),
    "softmax of integers": lambda m, x: m.nn.softmax(m.numpy.asarray([1, 2])),
    "log_softmax": lambda m, x: m.nn.log_softmax(x, 0, where=MASK),
    "log_softmax of all": lambda m, x: m.nn.log_softmax(x, None),
    "logsumexp": lambda m, x: m.nn.logsumexp(x, b=np.abs(WEIGHTS)),
    "logsumexp where": lambda m, x: m.nn.logsumexp(x, 1, where=MASK, keepdims=True),
    "logsumexp negative": lambda m, x: m.nn.logsumexp(x, 1, b=WEIGHTS),
    "logsumexp sign": lambda m, x: m.nn.logsumexp(x, 0, WEIGHTS, return_sign=True),
    "logsumexp scipy": lambda m, x: m.scipy.special.logsumexp(x, 1, WEIGHTS, return_sign=True),
    "logsumexp infinite": lambda m, x: m.nn.logsumexp(x * np.inf, (0, 1), return_sign=True),
    "matmul": lambda m, x: m.numpy.matmul(x, x.T, precision="highest"),
    "matmul wide": lambda m, x: m.numpy.matmul(HALF, HALF.T, preferred_element_type=np.float32),
    "matmul narrow": lambda m, x: m.numpy.matmul(x, x.T, preferred_element_type=np.float16),
    "dot": lambda m, x: m.numpy.dot(x, x.T, precision=m.lax.Precision.HIGHEST if m is jax else None),
    "vdot": lambda m, x: m.numpy.vdot(x, x, preferred_element_type=np.float32),
    "inner": lambda m, x: m.numpy.inner(x, x, precision=None),
    "tensordot": lambda m, x: m.numpy.tensordot(x, x, ((0, 1), (0, 1)), precision="high"),
    "take clip": lambda m, x: m.numpy.take(x, POSITIONS, 1, mode="clip"),
    "take wrap": lambda m, x: m.numpy.take(x, POSITIONS, 0, mode="wrap"),
    "take fill": lambda m, x: m.numpy.take(x, POSITIONS, 0, mode="fill"),
    "take flat": lambda m, x: m.numpy.take(x, POSITIONS[None], mode="fill", fill_value=7.0),
    "take uint8": lambda m, x: m.numpy.take((x > 0).astype(np.uint8), POSITIONS, 1, mode="fill"),
    "take bool": lambda m, x: m.numpy.take(x > 0, POSITIONS, 1, mode="fill"),
    "repeat": lambda m, x: m.numpy.repeat(x, COUNTS, 1, total_repeat_length=4),
    "repeat longer": lambda m, x: m.numpy.repeat(x, m.numpy.asarray(COUNTS), 1, total_repeat_length=6),
    "repeat shorter": lambda m, x: m.numpy.repeat(x, 3, total_repeat_length=5),
    "linspace": lambda m, x: m.numpy.linspace(0, 1, 5, retstep=True),
    "linspace of one": lambda m, x: m.numpy.linspace(2, 1, 1, retstep=True),
    "linspace open": lambda m, x: m.numpy.linspace(0, 1, 4, False, True),
    "linspace default": lambda m, x: m.numpy.linspace(0, 1),
    "linspace of tensors": lambda m, x: m.numpy.linspace(x, 2.0, 3, retstep=True, axis=1),
    "linspace of integers": lambda m, x: m.numpy.linspace(x[0] * 9.0, -10, 4, dtype=np.int32),
    "meshgrid": lambda m, x: m.numpy.meshgrid(x[0], x[:, 0], x[1, :2], sparse=True),
    "meshgrid of indices": lambda m, x: m.numpy.meshgrid(x[0], x[:, 0], sparse=True, indexing="ij"),
    "meshgrid dense": lambda m, x: m.numpy.meshgrid(x[0], x[:, 0]),
    "searchsorted": lambda m, x: m.numpy.searchsorted(m.numpy.sort(x[0]), x, method="sort").astype(np.int32),
    "jit": lambda m, x: m.jit(lambda x: x + 1, inline=True, keep_unused=True)(x),
    "jit of none": lambda m, x: m.jit(static_argnames=None, donate_argnums=None)(lambda x: x + 1)(x),
}


def check(ours, theirs):
    assert type(ours) is type(theirs) or not isinstance(theirs, (list, tuple))
    pairs = zip(ours, theirs, strict=True) if isinstance(theirs, (list, tuple)) else [(ours, theirs)]
    for own, wanted in pairs:
        assert str(own.dtype).removeprefix("tandem.") == str(wanted.dtype)
        np.testing.assert_allclose(own.numpy(), np.asarray(wanted), rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("name", CALLS)
def test_keywords_have_the_meaning_of_jax(name):
    with np.errstate(all="ignore"):
        wanted = CALLS[name](jax, jax.numpy.asarray(X))
        check(CALLS[name](tj, td.asarray(X)), wanted)
        check(td.jit(lambda x: CALLS[name](tj, x))(td.asarray(X)), wanted)


@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "logsumexp", "logsumexp where", "take fill", "repeat"]
)
def test_keywords_have_the_gradients_of_jax(name):
    def total(m, x):
        y = CALLS[name](m, x)
        return m.numpy.where(m.numpy.isfinite(y), y * m.numpy.cos(y), 0.0).sum()

    wanted = jax.grad(lambda x: total(jax, x))(jax.numpy.asarray(X))
    check(td.grad(lambda x: total(tj, x))(td.asarray(X)), wanted)


def test_traced_counts_are_repeated():
    def repeat(m, x, counts):
        return m.numpy.repeat(x, counts, total_repeat_length=5)

    for counts in ([1, 2, 0, 1], [4, 4, 4, 4], [0, 0, 0, 0]):
        given = np.array(counts)
        wanted = jax.jit(lambda x, n: repeat(jax, x, n))(X[0], given)
        check(td.jit(lambda x, n: repeat(tj, x, n))(td.asarray(X[0]), td.asarray(given)), wanted)


def test_hot_calls_have_keywords_too():
    x = td.asarray(X)
    for _ in range(100):
        assert tj.numpy.matmul(x, x.T).dtype is tj.numpy.matmul(x, x.T, precision="high").dtype is td.float32
        assert tj.nn.softmax(x).shape == tj.nn.softmax(x, where=x > 0).shape == (3, 4)
    assert tj.numpy.matmul(x, x.T, preferred_element_type=td.float64).dtype is td.float64
    with pytest.raises(td.errors.OutOfBoundsError):
        tj.numpy.take(x, td.asarray([9]), 0)


def test_functions_with_keywords_are_pickled_by_name():
    for function in (tj.numpy.matmul, tj.numpy.take, tj.nn.softmax):
        assert pickle.loads(pickle.dumps(function)) is function
    assert repr(tj.numpy.matmul).startswith("<function tandem.jax.")


@pytest.mark.parametrize(
    "call",
    [
        lambda jnp, x: jnp.take(x, POSITIONS, mode="nearest"),
        lambda jnp, x: jnp.take(x, POSITIONS, out=x, mode="clip"),
        lambda jnp, x: jnp.meshgrid(x[0], copy=False),
        lambda jnp, x: jnp.meshgrid(x[0], sparse=True, indexing="yx"),
        lambda jnp, x: jnp.searchsorted(x[0], x, method="bogus"),
    ],
)
def test_wrong_keywords(call):
    with pytest.raises(td.errors.ValueArgumentError):
        call(tj.numpy, td.asarray(X))


def test_traces_have_the_shapes_of_results():
    graph, shapes = tj.make_jaxpr(lambda x: {"a": x @ x.T}, return_shape=True)(td.asarray(X))
    assert "matmul" in str(graph) and shapes == {"a": td.ShapeDtypeStruct((3, 3), td.float32)}
    with pytest.raises(td.errors.UnsupportedError):
        tj.make_jaxpr(lambda x: x, axis_env=[("i", 2)])
