"""Convolutions, windows, products and ``jax.scipy`` compared with JAX, where it is installed."""

import random

import numpy as np
import pytest
import tandem as td
import tandem.jax

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def compare(call, *arrays):
    wanted = call(jax, *map(jax.numpy.asarray, arrays))
    result = call(tandem.jax, *map(td.asarray, arrays))
    for one, other in zip(
        jax.tree.leaves(result, is_leaf=lambda x: isinstance(x, td.Tensor)), jax.tree.leaves(wanted)
    ):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(24))
def test_convolutions_with_any_axes_are_those_of_jax(seed):
    choose = random.Random(seed)
    rank, groups = choose.choice([1, 2, 2, 3]), choose.choice([1, 2])
    x = draw(2, 2 * groups, *[choose.randint(5, 8) for _ in range(rank)])
    w = draw(2 * groups, 2, *[choose.randint(1, 3) for _ in range(rank)])
    pairs = [(choose.randint(0, 2), choose.randint(0, 2)) for _ in range(rank)]
    padding = choose.choice(["SAME", "VALID", "SAME_LOWER", pairs])
    strides, apart = [[choose.randint(1, most) for _ in range(rank)] for most in (3, 2)]
    spread = [1 if isinstance(padding, str) else choose.randint(1, 2) for _ in range(rank)]
    spatial = "DHW"[3 - rank :]
    names = [choose.sample(head + spatial, rank + 2) for head in ("NC", "OI", "NC")]
    numbers = None if seed % 3 == 0 else tuple(map("".join, names))
    if numbers:
        x = x.transpose([f"NC{spatial}".index(letter) for letter in numbers[0]])
        w = w.transpose([f"OI{spatial}".index(letter) for letter in numbers[1]])
    compare(
        lambda m, x, w: m.lax.conv_general_dilated(
            x, w, strides, padding, spread, apart, numbers, feature_group_count=groups
        ),
        x,
        w,
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size, stride", [(1, 1), (3, 1), (2, 2), (3, 2), (2, 3), (4, 3)])
def test_transposed_convolutions_are_those_of_jax(size, stride, padding):
    call = lambda m, x, w: m.lax.conv_transpose(x, w, (stride, stride), padding)  # noqa: E731
    compare(call, draw(1, 5, 5, 2), draw(size, size, 2, 3))


@pytest.mark.parametrize("name, initial", [("add", 0.0), ("mul", 1.0), ("max", -np.inf), ("min", np.inf)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 0), (0, 2), (0, 0)]])
def test_windows_are_reduced_as_by_jax(name, initial, padding):
    compare(
        lambda m, x: m.lax.reduce_window(x, initial, getattr(m.lax, name), (2, 3, 1), (1, 2, 1), padding),
        draw(4, 6, 2),
    )


@pytest.mark.parametrize("config", [(0, 0, 0), (1, 2, 0), (-1, 0, 0), (0, -2, 1), (2, -1, 2)])
def test_padding_is_that_of_jax(config):
    compare(lambda m, x: m.lax.pad(x, np.float32(7), [config, (0, 1, 1)]), draw(4, 5))


CALLS = {
    "batched product": lambda m, x, y: m.lax.dot_general(x, y.swapaxes(1, 2), (((2,), (1,)), ((0,), (0,)))),
    "product over two axes": lambda m, x, y: m.lax.dot_general(x, y, (((0, 2), (0, 2)), ((), ()))),
    "attention": lambda m, x, y: m.nn.dot_product_attention(x[None], y[None], y[None], is_causal=True),
    "attention with a mask": lambda m, x, y: m.nn.dot_product_attention(
        x[None], y[None], y[None], mask=m.numpy.eye(4) > 0
    ),
    "segments": lambda m, x, y: m.ops.segment_sum(x, m.numpy.array([0, 0, 2, 2]), num_segments=3),
    "logsumexp": lambda m, x, y: m.scipy.special.logsumexp(x, axis=0),
    "normal": lambda m, x, y: [
        getattr(m.scipy.stats.norm, n)(x, 0.5, 2.0) for n in ("logpdf", "pdf", "cdf", "sf", "logcdf")
    ],
    "quantiles": lambda m, x, y: m.scipy.stats.norm.ppf(m.scipy.stats.norm.cdf(x), 1.0, 2.0),
    "integers": lambda m, x, y: m.numpy.linalg.det(m.numpy.array([[2, 1], [1, 3]])),
    "scalar types": lambda m, x, y: [m.numpy.float32(3), m.numpy.int32(2) * m.numpy.float32(1.5)],
    "complex order": lambda m, x, y: (x + 1j * y)[:1] > 0.2,
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_those_of_jax(name):
    compare(CALLS[name], draw(4, 4, 4), draw(4, 4, 4))


SYSTEMS = {
    "cho_solve": lambda m, s, b: m.scipy.linalg.cho_solve(m.scipy.linalg.cho_factor(s), b),
    "cho_solve lower": lambda m, s, b: m.scipy.linalg.cho_solve(
        m.scipy.linalg.cho_factor(s, lower=True), b[:, 0]
    ),
    "cholesky": lambda m, s, b: m.scipy.linalg.cholesky(s),
    "triangular": lambda m, s, b: m.scipy.linalg.solve_triangular(s, b, lower=True),
    "triangular transposed": lambda m, s, b: m.scipy.linalg.solve_triangular(
        s, b[:, 0], trans="T", unit_diagonal=True
    ),
    "eigenvalues": lambda m, s, b: m.scipy.linalg.eigh(s, eigvals_only=True),
    "expm": lambda m, s, b: m.scipy.linalg.expm(s / 8),
    "solve": lambda m, s, b: m.scipy.linalg.solve(s, b),
    "normal vectors": lambda m, s, b: m.scipy.stats.multivariate_normal.logpdf(b.T, s[0], s),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_linear_systems_are_those_of_jax(name):
    x = draw(4, 4)
    compare(SYSTEMS[name], x @ x.T + 4 * np.eye(4, dtype=np.float32), draw(4, 2))


def test_options_and_devices():
    config = tandem.jax.config
    try:
        config.update("jax_enable_x64", True)
        assert config.jax_enable_x64 and tandem.jax.numpy.ones(1).dtype is td.float64
    finally:
        config.update("jax_enable_x64", False)
    assert tandem.jax.numpy.ones(1).dtype is td.float32
    config.update("jax_platform_name", "cpu")
    config.update("jax_debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            td.log(td.asarray([-1.0]))
    finally:
        config.update("jax_debug_nans", False)
    assert np.isnan(td.log(td.asarray([-1.0])).item())
    with pytest.raises(ValueError, match="no option 'jax_no_such'"):
        config.update("jax_no_such", 1)
    x = td.ones(2)
    assert x.block_until_ready() is x
    assert len(tandem.jax.devices()) == tandem.jax.device_count() and tandem.jax.default_backend() == "cpu"
    with tandem.jax.named_scope("layer"):
        assert "td::sin" in str(tandem.jax.make_jaxpr(tandem.jax.numpy.sin)(x))


def test_wrong_arguments_of_windows_raise():
    lax, x = tandem.jax.lax, td.ones((1, 1, 4))
    for call in (
        lambda: lax.reduce_window(x, 0.0, lax.sub, (1, 1, 2)),
        lambda: lax.conv_general_dilated(x, x, (1,), "HALF"),
        lambda: lax.conv_general_dilated(x, x, (1,), "SAME", dimension_numbers=("NCH", "OIW", "NCH")),
        lambda: lax.conv_transpose(x, x, (1,), "SAME", transpose_kernel=True),
        lambda: tandem.jax.scipy.linalg.solve_triangular(x[0], x[0], trans="Q"),
    ):
        with pytest.raises(ValueError):
            call()
