"""Small matrix products and sums of products in every layout, compared with NumPy."""

import ctypes
import random

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu import target
from tandem.backends.cpu.codegen import small_product, vector_product
from tandem.backends.cpu.codegen.text import Module
from tandem.backends.cpu.fastpath.compiler import engine
from tandem.backends.cpu.fastpath.runtime import rt_gemm
from tandem.control.ops import SUM_PRODUCTS
from tandem.registry import dtypes as dt

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)
HOSTS = {
    "wide": target.VectorTarget(64, True, True, True),
    "avx2": target.VectorTarget(32, True, False, True),
}


@pytest.fixture(params=HOSTS)
def machine(request, monkeypatch):
    if (
        not target.vector_target().fma
        or target.vector_target().vector_bytes < HOSTS[request.param].vector_bytes
    ):
        pytest.skip("this processor has no such registers")
    for module in (small_product, vector_product):
        monkeypatch.setattr(module, "vector_target", lambda: HOSTS[request.param])


def compiled(dtype, write, name):
    """The function `name` that `write` writes, and the code that it is part of."""
    module = Module()
    write(module)
    code = engine.compile_ir(str(module), [name], passes=engine.Passes.CLEAN)
    return code, code[name]


def drawn(rng, shape, numbers):
    """A matrix stored by rows or by columns, with gaps or none."""
    rows, columns = shape
    if rng.random() < 0.5:
        return numbers.standard_normal((rows, columns + rng.choice([0, 3])))[:, :columns]
    return numbers.standard_normal((columns, rows + rng.choice([0, 5])))[:, :rows].T


def chained(a, b):
    """The product, each element a chain of fused multiply-adds for each block: exact in the next wider dtype."""
    total = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for start in range(0, a.shape[1], small_product.DEPTH):
        block = np.zeros_like(total)
        for k in range(start, min(start + small_product.DEPTH, a.shape[1])):
            wide = a[:, k : k + 1].astype(np.float64) * b[k : k + 1].astype(np.float64)
            block = (block.astype(np.float64) + wide).astype(a.dtype)
        total += block
    return total


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_small_product_of_any_layout(machine, dtype):
    rng, numbers = random.Random(1), np.random.default_rng(1)
    code, address = compiled(
        dtype, lambda module: small_product.write_small_product(module, "kernel", dtype), "kernel"
    )
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(address)
    for _ in range(40):
        m, k, n = (rng.choice([1, 2, 3, 7, 8, 17, 33, 64, 65, 130]) for _ in range(3))
        a, b = drawn(rng, (m, k), numbers), drawn(rng, (k, n), numbers)
        a, b = (x.astype(dtype.np, order="K") for x in (a, b))
        c = np.zeros((m, n), dtype.np)
        sizes, strides = np.array([m, k, n]), np.array([*a.strides, *b.strides, c.strides[0]])
        function(*(x.ctypes.data for x in (a, b, c, sizes, strides)))
        if dtype is dt.float32:
            np.testing.assert_allclose(c, chained(a, b), rtol=2e-7, atol=2e-6)
        else:
            np.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)
    assert code


def test_small_products_have_the_bits_of_any_layout(machine):
    numbers = np.random.default_rng(1)
    code, address = compiled(
        dt.float32, lambda module: small_product.write_small_product(module, "kernel", dt.float32), "kernel"
    )
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(address)
    for m, k, n in [(7, 300, 70), (33, 128, 16), (64, 129, 130), (2, 1000, 5)]:
        a, b = (numbers.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        results = []
        for one in (a, np.asfortranarray(a)):
            for two in (b, np.asfortranarray(b)):
                c = np.zeros((m, n), np.float32)
                sizes, strides = np.array([m, k, n]), np.array([*one.strides, *two.strides, c.strides[0]])
                function(*(x.ctypes.data for x in (one, two, c, sizes, strides)))
                results.append(c)
        for result in results:
            np.testing.assert_array_equal(result, results[0])
        np.testing.assert_allclose(results[0], chained(a, b), rtol=2e-7, atol=2e-5)
    assert code


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_vector_products_have_the_bits_of_any_layout(machine, dtype):
    numbers = np.random.default_rng(1)
    module = Module()
    vector_product.write_vector_products(module, dtype)
    names = ["rows_by_vector", "columns_by_vector"]
    code = engine.compile_ir(str(module), names, passes=engine.Passes.CLEAN)
    types = [*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5]
    by_rows, by_columns = (ctypes.CFUNCTYPE(None, *types)(code[name]) for name in names)
    size = dtype.itemsize
    for m, k in [(1, 1), (3, 5), (5, 3), (16, 16), (17, 33), (600, 130), (7, 64), (70, 4), (515, 200)]:
        x, v = numbers.standard_normal((m, k)).astype(dtype.np), numbers.standard_normal(k).astype(dtype.np)
        turned, one, two = np.asfortranarray(x), np.zeros(m, dtype.np), np.zeros(m, dtype.np)
        by_rows(x.ctypes.data, v.ctypes.data, one.ctypes.data, m, k, k * size, size, size)
        by_columns(turned.ctypes.data, v.ctypes.data, two.ctypes.data, m, k, size, m * size, size)
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, x.astype(np.float64) @ v, atol=1e-5 if size == 4 else 1e-13)


def test_which_are_small():
    assert rt_gemm.is_small_product(100, 100, 100, 0) and rt_gemm.is_small_product(256, 1024, 128, 0)
    assert not rt_gemm.is_small_product(300, 300, 300, 0) and not rt_gemm.is_small_product(256, 2000, 128, 0)
    assert rt_gemm.is_small_product(256, 2000, 128, 1) and not rt_gemm.is_small_product(300, 300, 300, 1)


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


@pytest.mark.parametrize("steps", ["contiguous", "apart"])
def test_long_sums_of_products_add_blocks(steps):
    numbers = np.random.default_rng(0)
    xs = (
        numbers.standard_normal((400, 2, 8, 16) if steps == "apart" else (400, 1, 8, 16)).astype(np.float32)
        + 1
    )

    def loss(w, xs):
        return td.scan(lambda c, x: (c + (x @ w).sum(), None), td.asarray(np.float32(0)), xs[:, 0])[0]

    gradient = td.jit(td.grad(loss))(td.ones((16, 16)), td.asarray(xs)).numpy()
    exact = np.broadcast_to(xs[:, 0].astype(np.float64).sum((0, 1))[:, None], (16, 16))
    np.testing.assert_allclose(gradient, exact, rtol=1e-6)


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
