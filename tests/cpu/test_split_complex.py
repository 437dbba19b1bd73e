"""Kernels whose vectors of complex numbers are split into parts: results are those of eager calls, bit for bit."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.codegen.complex_nodes import splits_pay
from tandem.lowering.fusion.loop_ir import Buffer, load
from tandem.operators.scalar_ir.expr import apply
from tandem.registry import dtypes as dt

STEPS = {
    "square": lambda x, y, keep: x * x + y,
    "select": lambda x, y, keep: td.where(keep, x * y, x),
    "conjugate": lambda x, y, keep: td.conj(x) * y - 0.5j,
    "parts": lambda x, y, keep: td.where(x.real * x.real + x.imag * x.imag < 4, x * x + y, x),
    "quotient": lambda x, y, keep: x / (y * y + 10),
    "joined": lambda x, y, keep: td.complex(x.imag, y.real) * x,
    "real": lambda x, y, keep: x * x.real + y,
    "equal": lambda x, y, keep: td.where(td.conj(x) == y, y, x * y),
    "log": lambda x, y, keep: td.log(x + 20) * y,
    "reversed": lambda x, y, keep: x * td.flip(y, 0) * 0.25,
}


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 45),
    dtype=st.sampled_from(["complex64", "complex128"]),
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=5),
    stride=st.sampled_from([1, 1, 2, -1]),
    is_gathered=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_programs_are_eager_calls(seed, size, dtype, steps, stride, is_gathered):
    rng = np.random.default_rng(seed)
    shape = size * abs(stride)
    make = lambda: td.asarray((rng.uniform(-1, 1, (shape, 2)) @ [1, 1j]).astype(dtype))  # noqa: E731
    x, y = make(), make()[:size]
    keep = td.asarray(rng.random(size) < 0.5)
    where = td.asarray(rng.integers(0, size, size))

    def run(x, y, keep, where):
        x = x[::stride] if stride > 0 else td.flip(x, 0)
        if is_gathered:
            y = y[where]
        for step in steps:
            x = STEPS[step](x, y, keep)
        return x, x.imag, td.abs(x) < 1

    # NumPy's products, which compute without native code, round in another way for other strides
    rtol = 0 if not fastpath.why_off() else 1e-5 if dtype == "complex64" else 1e-13
    for mine, wanted in zip(td.jit(run)(x, y, keep, where), run(x, y, keep, where), strict=True):
        np.testing.assert_allclose(mine.numpy(), wanted.numpy(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [1, 3, 8, 16, 17, 100])
def test_carries_of_a_loop(dtype, size):
    rng = np.random.default_rng(size)
    c = (rng.normal(size=size) + 1j * rng.normal(size=size)).astype(dtype)

    def step(_, state):
        z, count = state
        inside = z.real * z.real + z.imag * z.imag < 4
        return td.where(inside, z * z + x, z), count + inside

    x = td.asarray(c)
    start = (x * 0, td.zeros(size, dtype="int32"))
    z, count = td.jit(lambda start: td.fori_loop(0, 20, step, start))(start)
    wanted, counts = np.zeros(size, dtype), np.zeros(size, np.int32)
    for _ in range(20):
        inside = wanted.real**2 + wanted.imag**2 < 4
        wanted, counts = np.where(inside, wanted * wanted + c, wanted), counts + inside
    np.testing.assert_array_equal(count.numpy(), counts)
    np.testing.assert_allclose(z.numpy(), wanted, rtol=2e-3 if dtype == "complex64" else 1e-9)


def test_vectors_are_split_where_fewer_lanes_move():
    x, y = (load(Buffer(name, dt.complex64, (1,), 0)) for name in "xy")
    product = apply("mul", x, y)
    total = apply("add", x, y)
    assert not splits_pay([x, y, total], [total])
    assert not splits_pay([x, y, product], [product])
    chain = apply("mul", product, product)
    assert splits_pay([x, y, product, chain], [chain])
