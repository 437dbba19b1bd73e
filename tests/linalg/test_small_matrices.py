"""Small matrices: emitted loops that factorize several at a time, and what they compute as they read."""

import numpy as np
import pytest
import tandem as td
from tandem import config, errors

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
rng = np.random.default_rng(16)


def spd(*shape, dtype=np.float64):
    a = rng.standard_normal(shape)
    return (a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def choices(f, *args):
    return {row.op: row.choice for row in td.jit(f).lower(*args).kernels()}


def bits(x):
    return x.shape, x.dtype, np.asarray(x.numpy()).tobytes()


@pytest.mark.parametrize("size", range(1, 9))
def test_cholesky_of_a_batch_has_the_bits_of_each_matrix(size):
    stack = spd(19, size, size, dtype=np.float32)
    f = td.jit(td.linalg.cholesky)
    whole = f(td.asarray(stack)).numpy()
    for given, factor in zip(stack, whole, strict=True):
        assert bits(td.linalg.cholesky(td.asarray(given))) == bits(td.asarray(factor))
    np.testing.assert_allclose(whole, np.linalg.cholesky(stack), rtol=1e-4, atol=1e-6)
    stack[11] = -stack[11]
    with pytest.raises(errors.LinearAlgebraError):
        f(td.asarray(stack))


@native
@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_matrices_are_symmetrized_as_they_are_factorized(size, dtype):
    x = td.asarray((rng.standard_normal((11, size, size)) + 4 * size * np.eye(size)).astype(dtype))
    symmetric = (x + x.mT) / 2
    lower = td.ops.td.linalg_cholesky_lower(symmetric)
    for upper in (False, True):
        f = td.jit(lambda x, upper=upper: td.linalg.cholesky(x, upper=upper))
        assert set(choices(f, x)) <= {"td::linalg_cholesky_symmetric", "td::permute"}
        wanted = lower.mT if upper else lower
        for given in (x, x.mT):
            eager = td.linalg.cholesky(given, upper=upper)
            assert bits(f(given)) == bits(eager) == bits(td.ops.td.clone(wanted))


@native
def test_large_matrices_are_symmetrized_by_a_fused_kernel():
    x = td.asarray(rng.standard_normal((3, 9, 9)) + 9 * np.eye(9))
    f = td.ops.td.linalg_cholesky_symmetric
    assert "callback" not in choices(td.jit(f), x).values()
    assert bits(td.jit(f)(x)) == bits(f(x)) == bits(td.linalg.cholesky(x))
