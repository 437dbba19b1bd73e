"""Matrix products that are written out, and sums of products: every layout, beside NumPy."""

import ctypes
import random

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import native as native_layer
from tandem.backends.cpu.emit import host, products
from tandem.backends.cpu.emit.text import Module
from tandem.backends.cpu.native import engine
from tandem.control.ops import SUM_PRODUCTS
from tandem.registry import dtypes as dt

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)
HOSTS = {"wide": host.Host(64, True, (), True, True), "avx2": host.Host(32, True, (), False, True)}


@pytest.fixture(params=HOSTS)
def machine(request, monkeypatch):
    if not host.host().fma or host.host().vector_bytes < HOSTS[request.param].vector_bytes:
        pytest.skip("this processor has no such registers")
    monkeypatch.setattr(products, "host", lambda: HOSTS[request.param])


def compiled(product):
    """A function of two arrays: the product, by the code that is written for it."""
    module = Module()
    name = products.write_product(module, product)
    call = f"call void @{name}(ptr %a, ptr %b, ptr %c)"
    entry = f"define void @kernel(ptr %a, ptr %b, ptr %c) {{\n {call}\n ret void\n}}\n"
    code = engine.compile_ir(entry + str(module), ["kernel"], level=1)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code["kernel"])

    def run(a, b):
        out = np.full((product.rows, product.columns), np.nan, product.dtype.np)
        function(a.ctypes.data, b.ctypes.data, out.ctypes.data)
        return out

    run.code = code  # kept as long as the function
    return run


def drawn(rng, shape, numbers):
    """An array whose last two axes lie one way or the other, with a gap or none."""
    steps, rows, columns = shape
    wide = columns + rng.choice([0, 3])
    array = numbers.standard_normal((steps, rows, wide))[:, :, :columns]
    if rng.random() < 0.5:
        array = numbers.standard_normal((steps, columns, rows + rng.choice([0, 5])))[:, :, :rows].transpose(
            0, 2, 1
        )
    return array


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_drawn_layouts(machine, dtype):
    rng, numbers = random.Random(1), np.random.default_rng(1)
    for _ in range(8):
        steps = rng.choice([1, 1, 3])
        rows, columns = rng.choice([1, 7, 8, 24, 33]), rng.choice([8, 16, 24, 64, 80, 256])
        depth = rng.choice([1, 5, 16, 47, 130, 300])
        a = drawn(rng, (steps, rows, depth), numbers).astype(dtype.np, order="K")
        b = drawn(rng, (steps, depth, columns), numbers).astype(dtype.np, order="K")
        strides = [tuple(s // dtype.itemsize for s in x.strides) for x in (a, b)]
        made = products.Product(
            dtype, rows, columns, depth, strides[0][1:], strides[1][1:], steps, strides[0][0], strides[1][0]
        )
        expected = (a.astype(np.float64) @ b.astype(np.float64)).sum(0)
        scale = 3e-6 if dtype is dt.float32 else 1e-14
        np.testing.assert_allclose(compiled(made)(a, b), expected, atol=scale * np.sqrt(depth * steps) * 4)


def test_which_are_written_out(machine):
    assert products.is_small(dt.float32, 32, 64) and products.is_small(dt.float64, 8, 8)
    assert not products.is_small(dt.float32, 32, 10)  # no whole vectors
    assert not products.is_small(dt.float32, 2, 64) and not products.is_small(dt.float32, 300, 64)
    assert not products.is_small(dt.complex64, 32, 64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_under_jit(dtype):
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal(shape).astype(dtype) for shape in ((3, 16, 24), (3, 24, 32)))
    functions = [
        lambda a, b: a @ b,
        lambda a, b: a[0] @ b,
        lambda a, b: a @ b[1],
        lambda a, b: td.matmul(td.permute(b, (0, 2, 1)), td.permute(a, (0, 2, 1))),
        lambda a, b: a[:, :, ::2] @ b[:, ::2],
    ]
    for f in functions:
        given = [td.asarray(a), td.asarray(b)]
        expected = f(*given).numpy()
        np.testing.assert_allclose(
            td.jit(f)(*given).numpy(), expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-5
        )


def test_what_is_not_finite():
    a = np.zeros((8, 16), np.float32)
    b = np.zeros((16, 16), np.float32)
    a[3, 2], b[2, 5], b[4, 6] = 0.0, np.inf, np.nan
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_array_equal(td.jit(lambda a, b: a @ b)(td.asarray(a), td.asarray(b)).numpy(), expected)


def test_sum_of_products():
    numbers = np.random.default_rng(0)
    a, b = (td.asarray(numbers.standard_normal(shape)) for shape in ((5, 8, 3), (5, 3, 16)))
    found = SUM_PRODUCTS(a, b).numpy()
    np.testing.assert_allclose(found, (a.numpy() @ b.numpy()).sum(0), rtol=1e-12)


@pytest.mark.parametrize("columns", [3, 10, 16, 32])  # some by BLAS, some written out
@pytest.mark.parametrize("form", ["h @ w", "w @ h"])
def test_gradients_of_weights_are_one_sum(form, columns):
    shape = (columns, 16) if form == "h @ w" else (16, columns)
    numbers = np.random.default_rng(0)
    w, h, xs = (td.asarray(numbers.standard_normal(s) * 0.3) for s in ((16, 16), shape, (6, *shape)))

    def loss(w):
        step = (
            (lambda c, x: (td.tanh(c @ w + x), None))
            if form == "h @ w"
            else lambda c, x: (td.tanh(w @ c + x), None)
        )
        return (td.scan(step, h, xs)[0] ** 2).sum()

    gradient = td.jit(td.grad(loss))
    np.testing.assert_allclose(gradient(w).numpy(), td.grad(loss)(w).numpy(), rtol=1e-12, atol=1e-12)
    if config.flags.native:
        kernels = str(gradient.lower(w).kernels())
        assert kernels.count("blas: control::sum_products") == 2  # the first step, and all others at once
        assert "td::permute" not in kernels.partition("\n\n")[2]
