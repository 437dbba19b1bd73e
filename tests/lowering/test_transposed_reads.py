"""What reads transposed tensors: elementwise operators move before the permute, and reductions copy lines in tiles."""

from functools import partial

import numpy as np
import pytest
import tandem as td
from hypothesis import given
from hypothesis import strategies as st
from rotation import share_each_commit
from tandem.backends.cpu import fastpath

NATIVE = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")

REDUCTIONS = ["sum", "prod", "max", "min", "mean", "argmax", "var"]
SCANS = ["cumsum", "cumprod"]


def check(function, *arrays):
    """The results of a jitted call are those of the eager one, bit for bit where no kernel is composed of others."""
    leaves = [td.asarray(array) for array in arrays]
    wanted, result = function(*leaves), td.jit(function)(*leaves)
    for got, want in zip(td.pytree.flatten(result)[0], td.pytree.flatten(wanted)[0], strict=True):
        assert got.dtype is want.dtype and got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def draw(shape, dtype, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 20).astype(dtype)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "bool"]
)
@pytest.mark.parametrize(
    "shape",
    share_each_commit([(16, 16), (17, 130), (64, 64), (65, 257), (100, 1030), (200, 33), (3, 70, 40)], 3),
)
def test_folds_of_each_axis(shape, dtype):
    x = draw(shape, dtype)
    if dtype == "bool":
        names = ["sum", "any", "all", "argmax"]
    else:
        names = ["sum", "max", "argmin", "prod"] if x.dtype.kind == "f" else ["sum", "min", "argmax"]
    for name in names:
        for axis in (*range(x.ndim), *(() if name.startswith("arg") else (None,))):
            fold = partial(getattr(td, name), axis=axis)
            with np.errstate(all="ignore"):
                check(lambda x, fold=fold: fold(x.T), x)
                check(lambda x, fold=fold: fold(x.T[1:, ::-1]), x)


@pytest.mark.parametrize("name", SCANS + REDUCTIONS)
def test_computed_operands(name):
    x, row = draw((70, 90), np.float32), draw(70, np.float32)
    for axis in (0, 1):
        fold = partial(getattr(td, name), axis=axis)
        check(lambda x, row, fold=fold: fold(x.T * 0.01 + row), x, row)


ORDERS = st.permutations(range(3))


@given(
    st.tuples(*[st.integers(1, 4)] * 3),
    ORDERS,
    ORDERS,
    st.integers(0, 2),
    st.sets(st.integers(0, 8), min_size=1),
)
def test_chains_of_elementwise_operators(shape, order, other, axis, chosen):
    def function(x, y, row):
        z = td.permute(x, order) * 2.0 + row
        w = td.permute(td.maximum(z, 0.5), other)
        parts = [z, w, td.where(z > row, z, 0.25), td.cumsum(z, axis), td.astype(z, td.float32)]
        parts += [td.max(z, axis=axis, keepdims=True), td.argmin(w, axis=axis), td.sum(z, axis=axis)]
        parts.append(z + y)  # y has another order, so z stays where it was
        return [parts[i] for i in chosen]

    check(
        function,
        draw(shape, np.float64),
        draw([shape[i] for i in order], np.float64, 1),
        draw(shape[order[2]], np.float64, 2),
    )


@NATIVE
def test_results_keep_the_layout_of_operands():
    x = td.asarray(draw((80, 90), np.float32))
    f = td.jit(lambda x: td.exp(x.T * 2.0))
    for _ in range(3):
        assert f(x).stride() == td.exp(x.T * 2.0).stride() == (1, 90)
    assert td.jit(lambda x: (x.T * 2.0) @ x)(x).is_contiguous()
    kernels = str(td.jit(lambda x: td.max(x.T * 2.0, axis=0)).lower(x).kernels())
    assert "rows (80,), inner (90,)" in kernels and "permute" not in kernels


@NATIVE
def test_results_of_loops_and_gradients_are_contiguous():
    x = td.asarray(draw((6, 6), np.float64))
    looped = td.jit(lambda x: td.fori_loop(0, 3, lambda i, s: s.T * 0.5 + 1.0, x))
    assert looped(x).is_contiguous()
    check(lambda x: td.fori_loop(0, 3, lambda i, s: s.T * 0.5 + 1.0, x), x.numpy())
    check(lambda x: td.grad(lambda x: (td.sin(x.T) * 2.0).sum())(x), x.numpy())
    y = td.asarray(draw((6, 6), np.float64)).requires_grad_()
    z = td.jit(lambda y: td.exp(y.T * 0.1))(y)
    z.sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), np.exp(y.detach().numpy() * 0.1) * 0.1)


def test_registered_kernels_are_called_on_their_operands():
    seen = []

    @td.custom_op("transposed_reads::watched")
    def watched(x: td.Tensor) -> td.Tensor:
        seen.append(x.shape)
        return td.asarray(x.numpy() + 1.0)

    @watched.register_fake
    def _(x):
        return td.empty_like(x)

    x = td.asarray(draw((3, 5), np.float64))
    check(lambda x: watched(x.T * 2.0) * 2.0, x.numpy())
    assert set(seen) == {(5, 3)}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8", "bool"])
@pytest.mark.parametrize("lines", share_each_commit([2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 31], 4))
def test_short_lines_are_copied(dtype, lines):
    for length in (64, 65, 7001):
        x, y = draw((length, lines), np.float64).astype(dtype), draw((lines, length), np.float32)
        check(lambda x: td.concat([x.T, x.T]), x)
        check(lambda x, y: x.T * y, x, y)
        check(lambda x: td.concat([td.permute(x, (0, 2, 1))] * 2), np.stack([x, x[::-1]]))


@NATIVE
def test_short_lines_are_copied_in_squares():
    def copies(x):
        return td.concat([x.T, x.T])

    assert "@transpose8_8(" in td.jit(copies).lower(td.zeros(7001, 8, dtype="float64")).llvm_ir()
    assert "@transpose8_4(" in td.jit(copies).lower(td.zeros(7001, 5, dtype="float64")).llvm_ir()
    assert "@transpose8_8(" in td.jit(copies).lower(td.zeros(100, 8, dtype="float64")).llvm_ir()
    assert "@transpose" not in td.jit(copies).lower(td.zeros(100, 3, dtype="float64")).llvm_ir()
