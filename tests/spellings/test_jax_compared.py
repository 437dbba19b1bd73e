"""``tandem.jax.lax`` and ``nn`` compared with JAX, where it is installed."""

import numpy as np
import pytest
import tandem as td
from tandem.jax import lax, nn

jax = pytest.importorskip("jax")

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
INTS = np.array([-7, -2, 3, 9], np.int32)

LAX = {
    "div": lambda m, x: m.div(x, x + 2.0),
    "clamp": lambda m, x: m.clamp(-0.5, x, 0.5),
    "select": lambda m, x: m.select(x > 0, x, -x),
    "integer_pow": lambda m, x: m.integer_pow(x, 3),
    "logistic": lambda m, x: m.logistic(x),
    "rem": lambda m, x: m.rem(x, x * 0.0 + 0.7),
    "lgamma": lambda m, x: m.lgamma(x + 4.0),
    "erf_inv": lambda m, x: m.erf_inv(x / 4.0),
    "reduce_sum": lambda m, x: m.reduce_sum(x, (0, 1)),
    "reduce_max": lambda m, x: m.reduce_max(x, (1,)),
    "reduce_prod": lambda m, x: m.reduce_prod(x, (0,)),
    "argmax": lambda m, x: m.argmax(x, 1, np.int32),
    "cumsum": lambda m, x: m.cumsum(x, 1, True),
    "cumprod": lambda m, x: m.cumprod(x),
    "cummax": lambda m, x: m.cummax(x, 1),
    "cummin": lambda m, x: m.cummin(x, 0, True),
    "sort": lambda m, x: m.sort(x, 0),
    "sort of two": lambda m, x: m.sort((x > 0, x), 1, num_keys=2)[1],
    "sort of three": lambda m, x: m.sort((m.floor(x), x, -x), 0, num_keys=1)[2],
    "sort_key_val": lambda m, x: m.sort_key_val(-x, x * 2.0, 0)[1],
    "reduce": lambda m, x: m.reduce(x, 0.5, m.add, (0,)),
    "reduce max": lambda m, x: m.reduce(x, -np.inf, m.max, (0, 1)),
    "reduce by a function": lambda m, x: m.reduce(x, 1.0, lambda a, b: a * b, (1,)),
    "reduce of two": lambda m, x: m.reduce(
        (x, -x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0, 1)
    )[1],
    "reduce_precision": lambda m, x: m.reduce_precision(x, 8, 7),
    "reduce_precision of few": lambda m, x: m.reduce_precision(x * 10.0, 2, 3),
    "stack": lambda m, x: m.stack([x, x * 2.0], 1),
    "unstack": lambda m, x: m.unstack(x, 1)[2],
    "optimization_barrier": lambda m, x: m.optimization_barrier((x, x * 2.0))[1],
    "cumlogsumexp": lambda m, x: m.cumlogsumexp(x, 1, True),
    "top_k": lambda m, x: m.top_k(x, 2)[0],
    "split": lambda m, x: m.split(x, (1, 3), -1)[1],
    "collapse": lambda m, x: m.collapse(m.broadcast(x, (2, 5)), 1, 3),
    "collapse to the end": lambda m, x: m.collapse(m.broadcast(x, (2, 5)), -2),
    "igamma": lambda m, x: m.igamma(x * x + 0.5, x * x),
    "igammac": lambda m, x: m.igammac(x * x + 0.5, x * x),
    "betainc": lambda m, x: m.betainc(x * x + 0.5, x * x + 1.0, m.logistic(x)),
    "zeta": lambda m, x: m.zeta(x * x + 2.0, x * x + 1.0),
    "bessel_i0e": lambda m, x: m.bessel_i0e(x) + m.bessel_i1e(x),
    "slice": lambda m, x: m.slice(x, (0, 1), (3, 4), (2, 1)),
    "slice_in_dim": lambda m, x: m.slice_in_dim(x, 1, 4, 2, 1),
    "index_in_dim": lambda m, x: m.index_in_dim(x, -1, 1, False),
    "dynamic_slice": lambda m, x: m.dynamic_slice(x, (1, 3), (2, 2)),
    "dynamic_slice negative": lambda m, x: m.dynamic_slice(x, (-1, -4), (1, 2)),
    "dynamic_slice_in_dim": lambda m, x: m.dynamic_slice_in_dim(x, 2, 2, 1),
    "dynamic_index_in_dim": lambda m, x: m.dynamic_index_in_dim(x, 2, 1, False),
    "dynamic_update_slice": lambda m, x: m.dynamic_update_slice(x, x[:2, :2] * 2.0, (2, 1)),
    "dynamic_update_slice_in_dim": lambda m, x: m.dynamic_update_slice_in_dim(x, x[:1], 1, 0),
    "dynamic_update_index_in_dim": lambda m, x: m.dynamic_update_index_in_dim(x, x[:, 0], 2, 1),
    "broadcast": lambda m, x: m.broadcast(x, (2,)),
    "broadcast_in_dim": lambda m, x: m.broadcast_in_dim(x, (3, 2, 4), (0, 2)),
    "concatenate": lambda m, x: m.concatenate([x, x], 1),
    "convert_element_type": lambda m, x: m.convert_element_type(x, np.float16),
    "rev": lambda m, x: m.rev(x, (0,)),
    "transpose": lambda m, x: m.transpose(x, (1, 0)),
    "rsqrt": lambda m, x: m.rsqrt(x * x + 1.0),
    "scan": lambda m, x: m.scan(lambda c, row: (c + row, c * row), x[0], x)[1],
    "fori_loop": lambda m, x: m.fori_loop(0, 3, lambda i, c: c * 1.5 + i, x),
    "while_loop": lambda m, x: m.while_loop(lambda c: c.sum() < 50.0, lambda c: c * c + 1.0, x),
    "cond": lambda m, x: m.cond(x[0, 0] > 0, lambda y: y + 1.0, lambda y: y - 1.0, x),
    "switch": lambda m, x: m.switch(1, [lambda y: y, lambda y: y * 2.0], x),
}
NN = {
    "gelu": lambda m, x: m.gelu(x),
    "gelu exact": lambda m, x: m.gelu(x, approximate=False),
    "one_hot": lambda m, x: (
        m.one_hot(np.array([0, 2, 5]), 3) if m is jax.nn else m.one_hot(td.asarray([0, 2, 5]), 3)
    ),
    **{
        name: lambda m, x, name=name: getattr(m, name)(x)
        for name in "relu relu6 sigmoid silu swish softplus log_sigmoid hard_tanh hard_sigmoid hard_silu selu celu elu "
        "leaky_relu soft_sign squareplus mish glu standardize softmax log_softmax identity".split()
    },
}


def check(ours, theirs):
    wanted = np.asarray(theirs)
    assert ours.shape == wanted.shape
    assert np.allclose(ours.numpy(), wanted, rtol=2e-4 if wanted.dtype == np.float16 else 2e-5, atol=2e-6)


@pytest.mark.parametrize("name", LAX)
def test_lax_computes_what_jax_does(name):
    call, x = LAX[name], td.asarray(X)
    wanted = call(jax.lax, jax.numpy.asarray(X))
    check(call(lax, x), wanted)
    check(td.jit(lambda x: call(lax, x))(x), wanted)


@pytest.mark.parametrize("name", NN)
def test_nn_computes_what_jax_does(name):
    check(NN[name](nn, td.asarray(X)), NN[name](jax.nn, jax.numpy.asarray(X)))


def test_integers_are_divided_towards_zero():
    x = td.asarray(INTS)
    for name in ("div", "rem"):
        wanted = getattr(jax.lax, name)(INTS, np.full_like(INTS, 4))
        assert getattr(lax, name)(x, td.full_like(x, 4)).tolist() == wanted.tolist()
    which = np.array([0, 2, 1, 0], np.int32)
    cases = [INTS, INTS * 2, INTS * 3]
    assert (
        lax.select_n(td.asarray(which), *map(td.asarray, cases)).tolist()
        == jax.lax.select_n(which, *cases).tolist()
    )
    assert lax.broadcasted_iota(np.int32, (2, 3), 1).tolist() == [[0, 1, 2]] * 2


def test_traced_positions_are_those_of_jax():
    sliced = td.jit(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2)))
    for i in (0, 1, 9, -1):
        check(sliced(td.asarray(X), td.asarray(i)), jax.lax.dynamic_slice(X, (i, 0), (2, 2)))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_logical_shifts(dtype):
    x = np.array([-7, -1, 5, 100]).astype(dtype)
    y = np.array([1, 7, 2, 3]).astype(dtype)
    wanted = jax.lax.shift_right_logical(x, y)
    np.testing.assert_array_equal(lax.shift_right_logical(td.asarray(x), td.asarray(y)).numpy(), wanted)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: lax.split(x, (1, 2), 1),
        lambda x: lax.collapse(x, 1, 1),
        lambda x: lax.sort((x, x), num_keys=3),
        lambda x: lax.sort((x, x), num_keys=0),
    ],
)
def test_wrong_arguments(call):
    with pytest.raises(td.errors.ValueArgumentError):
        call(td.asarray(X))


def test_shapes_broadcast():
    assert lax.broadcast_shapes((3, 1), (1, 4)) == jax.lax.broadcast_shapes((3, 1), (1, 4))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16"])
def test_leading_zeros(dtype):
    x = np.array([0, 1, 8, 100, -1]).astype(dtype)
    with jax.enable_x64(True):
        wanted = np.asarray(jax.lax.clz(x))
    ours = lax.clz(td.asarray(x))
    assert ours.tolist() == wanted.tolist() and ours.dtype == np.dtype(dtype)


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (4, 3), (8, 0)])
def test_precision_is_reduced(bits):
    x = np.array(
        [1.1, -3e38, 65504, 65519, 65520, 1e-6, -1e-40, 0, np.inf, np.nan, 3.1415, 0.015625], np.float32
    )
    wanted = jax.lax.reduce_precision(x, *bits)
    np.testing.assert_array_equal(lax.reduce_precision(td.asarray(x), *bits).numpy(), wanted)
    assert td.grad(lambda x: lax.reduce_precision(x, 5, 2).sum())(td.ones(2)).tolist() == [1.0, 1.0]


def test_precisions_have_the_names_of_jax():
    assert [str(one) for one in lax.Precision] == [str(one) for one in jax.lax.Precision]
    for name in ("default", "float32", "tensorfloat32", "high"):
        assert lax.Precision(name).value == jax.lax.Precision(name).value
    with pytest.raises(ValueError, match="bogus"):
        lax.Precision("bogus")


def test_stages_have_the_methods_of_jax():
    double = td.jit(lambda x, n: {"a": (x * 2)[:n]}, static_argnums=1)
    assert double.eval_shape(td.ShapeDtypeStruct((3, 4), td.float32), 2)["a"].shape == (2, 4)
    lowered = double.lower(td.asarray(X), 2)
    assert "mul" in lowered.as_text() and "define" in lowered.compile().as_text()
    assert td.jit(lambda x: x).lower(td.ones(2)).compile().as_text() == ""
    double(td.asarray(X), 2)
    double.clear_cache()
    assert double.cache_info().specializations == 0
