"""References for linear algebra: NumPy's functions under the names of the Array API."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

Array = Any


def _hermitian(x: Array) -> Array:
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def solve(x: Array, y: Array) -> Array:
    """NumPy's solve with vectors as columns."""
    return np.linalg.solve(x, y[:, None])[..., 0] if y.ndim == 1 else np.linalg.solve(x, y)


def slogdet(x: Array) -> tuple[Array, ...]:
    """NumPy's slogdet."""
    return tuple(np.linalg.slogdet(x))


def pinv(x: Array, *, rtol: float | None = None) -> Array:
    """NumPy's pinv with the standard's default."""
    return np.linalg.pinv(x, max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol)


def cholesky(x: Array, *, upper: bool = False) -> Array:
    """NumPy's cholesky of the Hermitian part."""
    return np.linalg.cholesky(_hermitian(x), upper=upper)


def cholesky_ex(x: Array, *, upper: bool = False) -> tuple[Array, Array]:
    """NumPy's cholesky, and no failures."""
    return cholesky(x, upper=upper), np.zeros(x.shape[:-2], np.int32)


def indefinite_minor(x: Array, factor: Array) -> Array:
    """The order of the first leading minor without a factor, where there is none."""
    info = np.zeros(x.shape[:-2], np.int32)
    for index in np.ndindex(*info.shape) if x.shape[-1] else ():
        if np.isnan(factor[index]).any():
            info[index] = 1 + next(
                k for k in range(x.shape[-1]) if np.linalg.det(x[index][: k + 1, : k + 1]).real <= 0
            )
    return info


def eigh(x: Array, triangle: str | None = None) -> tuple[Array, ...]:
    """NumPy's eigh of the Hermitian part, or of a triangle."""
    return tuple(np.linalg.eigh(x, triangle) if triangle else np.linalg.eigh(_hermitian(x)))


def eigh_lower(x: Array) -> tuple[Array, ...]:
    """NumPy's eigh, which reads the lower triangle."""
    return tuple(np.linalg.eigh(x))


def eig(x: Array) -> tuple[Array, ...]:
    """NumPy's eig, complex where its results happen to be real."""
    return tuple(one.astype(np.result_type(x.dtype, np.complex64)) for one in np.linalg.eig(x))


def eigvals(x: Array) -> Array:
    """The eigenvalues of NumPy's eig."""
    return eig(x)[0]


def eigvalsh(x: Array, triangle: str | None = None) -> Array:
    """NumPy's eigvalsh of the Hermitian part, or of a triangle."""
    return np.linalg.eigvalsh(x, triangle) if triangle else np.linalg.eigvalsh(_hermitian(x))


def svd(x: Array, *, full_matrices: bool = True) -> tuple[Array, ...]:
    """NumPy's svd."""
    return tuple(np.linalg.svd(x, full_matrices))


def svdvals(x: Array) -> Array:
    """The singular values of NumPy's svd."""
    return np.linalg.svdvals(x)


def qr(x: Array, *, mode: Any = "reduced") -> tuple[Array, ...]:
    """NumPy's qr."""
    return tuple(np.linalg.qr(x, mode))


def vector_norm(x: Array, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Array:
    """NumPy's vector_norm."""
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


def matrix_norm(x: Array, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """NumPy's matrix_norm."""
    return np.linalg.matrix_norm(x, keepdims=keepdims, ord=ord)


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """NumPy's norm."""
    return np.linalg.norm(x, ord, axis, keepdims)


def matrix_rank(x: Array, *, rtol: float | None = None, atol: float | None = None) -> Array:
    """NumPy's matrix_rank, with a relative limit, an absolute one, or the larger of both."""
    if atol is None:
        return np.linalg.matrix_rank(x, rtol=rtol)
    limit = np.maximum(atol, (rtol or 0) * np.linalg.svdvals(x).max(-1))
    return np.linalg.matrix_rank(x, tol=limit)


def lstsq(x: Array, y: Array, rcond: float | None = None) -> tuple[Array, ...]:
    """NumPy's lstsq with the residuals of all ranks."""
    solution, _, rank, values = np.linalg.lstsq(x, y, rcond)
    return solution, np.atleast_1d((np.abs(y - x @ solution) ** 2).sum(0)), np.asarray(rank), values


def multi_dot(arrays: Any) -> Array:
    """NumPy's multi_dot."""
    return np.linalg.multi_dot(list(arrays))


def solve_triangular_stack(x: Array, y: Array, lower: bool) -> Array:
    """NumPy's solve with triangular matrices."""
    return np.linalg.solve(np.tril(x) if lower else np.triu(x), y)


def tensorsolve(x: Array, y: Array, axes: Any = None) -> Array:
    """NumPy's tensorsolve."""
    return np.linalg.tensorsolve(x, y, axes)


def lu_permuted(x: Array) -> tuple[Array, ...]:
    """SciPy's lu_factor, matrix by matrix, and the order of rows."""
    *lead, rows, columns = x.shape
    factors, pivots = np.empty(x.shape, x.dtype), np.empty((*lead, min(rows, columns)), np.int32)
    order = np.broadcast_to(np.arange(rows), (*lead, rows)).copy()
    for at in np.ndindex(*lead):
        if x[at].size:
            factors[at], pivots[at] = scipy.linalg.lu_factor(x[at])
        for row, other in enumerate(pivots[at]):
            order[at][row], order[at][other] = order[at][other], order[at][row]
    return factors, pivots + np.int32(1), order
