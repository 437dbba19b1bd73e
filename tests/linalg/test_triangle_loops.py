"""Cholesky factors and triangular systems by LAPACK and BLAS, in place; NumPy and SciPy are the references."""

import ctypes

import numpy as np
import pytest
import scipy.linalg
import tandem as td
from tandem import config
from tandem.backends.cpu.native_kernels.providers import find_loop
from tandem.registry import dtypes as dt

RNG = np.random.default_rng(0)
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "strided": lambda x: np.repeat(np.repeat(x, 2, -1), 2, -2)[..., ::2, ::2],
    "reversed": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
}
BOTH = [lambda f: f, td.jit]


def make(shape, dtype):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def make_definite(shape, dtype):
    x = make(shape, dtype)
    return (x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(9, 9), (130, 130), (3, 2, 20, 20), (0, 10, 10)])
def test_factors(shape, dtype, layout):
    x = LAYOUTS[layout](make_definite(shape, dtype))
    wanted = np.linalg.cholesky(x)
    for run in BOTH:
        factor = run(td.linalg.cholesky)(td.asarray(x)).numpy()
        error = 1e-4 if dtype in ("float32", "complex64") else 1e-12
        np.testing.assert_allclose(factor, wanted, rtol=error, atol=error)
        assert not np.triu(factor, 1).any()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_matrices_without_a_factor(dtype):
    x = make_definite((2, 12, 12), dtype)
    x[1, 7, 7] = -1
    for run in BOTH:
        with pytest.raises(td.errors.LinearAlgebraError, match="positive definite"):
            run(td.linalg.cholesky)(td.asarray(x))
    for run in BOTH:
        factors, info = run(lambda x: tuple(td.linalg.cholesky_ex(x)))(td.asarray(x))
        assert info.tolist() == [0, 8]
        np.testing.assert_allclose(factors[0].numpy(), np.linalg.cholesky(x[0]), rtol=1e-11, atol=1e-12)
        assert np.isnan(factors[1].numpy()).all()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [0, 1, 3, 100])
def test_triangular_systems(columns, dtype, layout, upper):
    a = LAYOUTS[layout](make((2, 100, 100), dtype) + 100 * np.eye(100, dtype=dtype))
    b = LAYOUTS[layout](make((2, 100, columns), dtype))
    wanted = [scipy.linalg.solve_triangular(*pair, lower=not upper) for pair in zip(a, b)]
    for run in BOTH:
        solve = run(lambda a, b: td.linalg.solve_triangular(a, b, upper=upper))
        for _ in range(2):
            x = solve(td.asarray(a), td.asarray(b)).numpy()
        np.testing.assert_allclose(x, wanted, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-7)


@pytest.mark.parametrize("columns", [1, 5])
def test_singular_systems(columns):
    a = np.tril(make((100, 100), "float64"))
    a[99, 99] = 0
    for run in BOTH:
        with pytest.raises(td.errors.LinearAlgebraError, match="Singular"):
            run(lambda a, b: td.linalg.solve_triangular(a, b, upper=False))(
                td.asarray(a), td.ones((100, columns), dtype="float64")
            )


@pytest.mark.skipif(not config.flags.native, reason="NumPy's factorization by LU multiplies by reciprocals")
@pytest.mark.parametrize("upper", [False, True])
def test_reciprocals_that_overflow(upper):
    a = np.eye(100) * 2
    a[3, 3] = 1e-310
    b = np.full((100, 4), 1e-310)
    x = td.linalg.solve_triangular(td.asarray(a), td.asarray(b), upper=upper).numpy()
    np.testing.assert_allclose(x, b / np.diagonal(a)[:, None])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["cholesky_by_lapack", "solve_lower_by_blas"])
def test_results_of_any_layout(name, layout):
    loop = find_loop("tandem", name, (dt.float64,) * (2 + (name != "cholesky_by_lapack")), ())
    if loop is None or isinstance(loop, str):
        pytest.skip("no LAPACK or no native code")
    x = make_definite((2, 6, 6), "float64")
    operands = [x] if name == "cholesky_by_lapack" else [x, make((2, 6, 6), "float64")]
    out = LAYOUTS[layout](np.full((2, 6, 6), 7.0))
    arrays = [*operands, out]
    pointers = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in arrays))
    sizes = (ctypes.c_int64 * 3)(2, 6, 6)
    strides = [*(a.strides[0] for a in arrays), *(s for a in arrays for s in a.strides[1:])]
    failed = ctypes.c_int64(0)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop.address)
    call(pointers, sizes, (ctypes.c_int64 * len(strides))(*strides), ctypes.byref(failed))
    assert failed.value == 0
    wanted = np.linalg.cholesky(x) if len(operands) == 1 else np.linalg.solve(np.tril(x), operands[1])
    np.testing.assert_allclose(out, wanted, rtol=1e-10, atol=1e-12)
