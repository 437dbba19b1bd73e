"""Rows that do not fill whole vectors: exactly their elements are accessed, and small products are written out."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_harness import needs_native
from rotation import share_each_commit
from tandem.backends.cpu import target
from tandem.backends.cpu.codegen.tiny_product import is_tiny

SIZES = (1, 2, 3, 5, 6, 7, 9, 12, 15, 17, 31, 33, 63)
DTYPES = "bool int8 uint16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
rng = np.random.default_rng(5)


def draw(size, dtype):
    values = rng.integers(-5, 6, size)
    return td.asarray(values.astype("complex64") * (1 + 1j) if "complex" in dtype else values).astype(
        getattr(td, dtype)
    )


def shift(x, y):
    return td.roll(x, 1), td.flip(y, 0), td.where(y == x, x, y)


def choose_parts(x, y):
    return x[1:], x[::-2], y[:-1] + x[1:], td.concat([x, y[:2]])


def update_parts(x, y):
    return x.at[1:].set(y[:-1]), x.at[::2].set(y[::2]), x.at[:0].set(y[:0])


def add_up(x, y):
    return td.sum(x), td.any(x != 0), x.at[0].add(y[-1])


@pytest.mark.parametrize("function", [shift, choose_parts, update_parts, add_up])
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_size_and_dtype(function, dtype):
    for size in SIZES:
        x, y = draw(size, dtype), draw(size, dtype)
        for got, want in zip(td.jit(function)(x, y), function(x, y), strict=True):
            assert got.numpy().tobytes() == want.numpy().tobytes(), size


@pytest.mark.parametrize("size", SIZES)
def test_carries_of_loops(size):
    def step(i, x):
        x = x * 0.5 + td.flip(x, 0)
        x = x.at[i % size].add(x.sum() * 0.25)
        return td.roll(x, 1) % 8

    x = td.asarray(rng.integers(-5, 6, size).astype("float64"))
    expected = x
    for i in range(7):
        expected = step(i, expected)
    assert td.jit(lambda x: td.fori_loop(0, 7, step, x))(x).tolist() == expected.tolist()


@needs_native
@pytest.mark.parametrize("size", [3, 5, 9, 20])
def test_stores_are_not_masked(size):
    """A masked store is not forwarded to the load of the next step, which waits for it."""
    text = td.jit(lambda x: td.fori_loop(0, 9, lambda i, x: x * 0.5 + 1, x)).lower(td.zeros(size)).llvm_ir()
    rest = size % (16 if target.vector_target().masks else 8)
    assert (rest == 1 or f"<{rest} x float>" in text) and "masked.store" not in text


# -- products ----------------------------------------------------------------------------------------------------------
def lay_out(array, layout):
    """A tensor of the values of an array in memory order, transposed, or with gaps."""
    if layout == "transposed":
        return td.asarray(np.ascontiguousarray(array.T)).T
    if layout == "gaps":
        wide = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
        wide[(slice(None, None, 2),) * array.ndim] = array
        return td.asarray(wide)[(slice(None, None, 2),) * array.ndim]
    return td.asarray(array)


layouts = st.sampled_from(["plain", "transposed", "gaps"])


@needs_native
@pytest.mark.parametrize("form", ["matrices", "matrix and vector", "vector and matrix", "vectors"])
@settings(max_examples=25)
@given(
    sizes=st.tuples(*[st.integers(1, 17)] * 3),
    dtype=st.sampled_from(["float32", "float64"]),
    scale=st.sampled_from([1.0, 1e-25, 1e-170]),
    one=layouts,
    two=layouts,
    seed=st.integers(0, 100),
)
def test_products_have_the_bits_of_eager_ones(form, sizes, dtype, scale, one, two, seed):
    (m, k, n), random = sizes, np.random.default_rng(seed)
    a = random.standard_normal((m, k) if form.startswith("matri") else k) * scale
    b = random.standard_normal((k, n) if form.endswith(("matrices", "matrix")) else k) * -scale
    x, y = lay_out(a.astype(dtype), one), lay_out(b.astype(dtype), two)
    assert td.jit(td.matmul)(x, y).numpy().tobytes() == (x @ y).numpy().tobytes()


@needs_native
@settings(max_examples=40)
@given(
    sizes=st.tuples(*[st.integers(1, 8)] * 3),
    lead=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    one=st.sampled_from(["all", "ones", "none"]),
    two=st.sampled_from(["all", "ones", "none"]),
    transposed=st.booleans(),
    seed=st.integers(0, 100),
)
def test_batches_of_products_have_the_bits_of_eager_ones(sizes, lead, one, two, transposed, seed):
    (m, k, n), random = sizes, np.random.default_rng(seed)
    axes = {"all": lead, "ones": [1] * len(lead), "none": []}
    x = td.asarray(random.standard_normal((*axes[one], m, k)))
    y = td.asarray(random.standard_normal((*axes[two], n, k) if transposed else (*axes[two], k, n)))
    y = y.swapaxes(-1, -2) if transposed else y
    assert td.jit(td.matmul)(x, y).numpy().tobytes() == (x @ y).numpy().tobytes()


@needs_native
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dot_products_are_sums_of_products(dtype):
    limit = 64 if dtype == "float32" else 32
    for size in [*range(1, limit + 1, 5), limit, limit + 1, 2 * limit]:
        for step in (1, 3, -1):
            x = td.asarray(rng.standard_normal(3 * size).astype(dtype))[::step][:size]
            y = td.asarray(rng.standard_normal(size).astype(dtype))
            jitted = td.jit(td.matmul)
            assert jitted(x, y).numpy().tobytes() == (x @ y).numpy().tobytes(), (size, step)
            assert ("@multiply" in jitted.lower(x, y).llvm_ir()) == (size > limit)


def test_dot_products_with_windows():
    x, h = td.asarray(rng.standard_normal(60)), td.asarray(rng.standard_normal(7))

    def step(i, out):
        return out.at[i].set(h @ td.jax.lax.dynamic_slice(x, (i - 6,), (7,)))

    found = td.jit(lambda: td.fori_loop(6, 60, step, td.zeros_like(x)))()
    np.testing.assert_allclose(
        found.numpy()[6:], np.convolve(x.numpy(), h.numpy()[::-1], "valid"), rtol=1e-12
    )


@needs_native
def test_small_products_are_written_out():
    def text(m, k, n):
        return td.jit(td.matmul).lower(td.ones((m, k)), td.ones((k, n))).llvm_ir()

    assert is_tiny(4, 4, 4) and "@small_product_float32" not in text(4, 4, 4)
    assert not is_tiny(17, 2, 2) and "@small_product_float32" in text(17, 2, 2)
    assert "@multiply_float32" in text(600, 600, 600)
    batch = td.jit(td.vmap(td.matmul)).lower(td.ones((9, 3, 3)), td.ones((9, 3))).llvm_ir()
    assert "product_float32(" not in batch


@pytest.mark.parametrize("size", [2, 3, *share_each_commit(range(4, 9), 5)])
def test_filters_of_small_matrices(size):
    """The steps of a Kalman filter: products, transposed operands and a vector, in a loop."""
    a, q = (td.asarray(rng.standard_normal((size, size)) / size) for _ in range(2))

    def step(carry, z):
        x, p = carry
        x, p = a @ x, a @ p @ a.T + q @ q.T
        gain = p @ a.T / (1 + td.sum(p))
        return (x + gain @ (z - a @ x), p - gain @ a @ p), x @ p @ x

    def run(z):
        return td.scan(step, (td.ones(size, dtype=td.float64), q), z)

    z = td.asarray(rng.standard_normal((6, size)))
    for got, want in zip(td.tree.leaves(td.jit(run)(z)), td.tree.leaves(run(z)), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)
