"""``tandem.jax.scipy.linalg``: linear algebra with SciPy's arguments; other names are those of ``td.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import lazy
from ...eager.tensor.construct import asarray
from ...eager.tensor.interop.array_namespace import broadcast_shapes
from ...errors import ValueArgumentError
from ...operators.creation.creation import arange, full
from ...operators.shape import parts
from ...operators.shape.joining import concat
from ...operators.shape.rearrange import flip, matrix_transpose
from ...operators.shape.views import broadcast_to
from ...spellings.forwarding import forward_to
from ...spellings.integer_arguments import accept_integers

if TYPE_CHECKING:
    from ...registry.types import Tensor, TensorLike

_linalg: Any = lazy.Module(".linalg")


def cholesky(a: Tensor, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The Cholesky factor of a matrix, by default the upper one."""
    result: Tensor = _linalg.cholesky(a, upper=not lower)
    return result


def cho_factor(
    a: Tensor, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """The Cholesky factor of a matrix and whether it is the lower one, for :func:`cho_solve`."""
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[Tensor, bool], b: Tensor, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """The solution of ``a @ x = b`` from the Cholesky factor of ``a``."""
    factor, lower = c_and_lower
    half = solve_triangular(factor, b, trans="N" if lower else "C", lower=lower)
    return solve_triangular(factor, half, trans="C" if lower else "N", lower=lower)


def solve_triangular(
    a: Tensor,
    b: Tensor,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution of ``a @ x = b`` for a triangular matrix, or for its transpose (``trans="T"`` or ``"C"``).

    Raises:
        ValueArgumentError: ``trans`` is none of 0, 1, 2, "N", "T", "C".
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueArgumentError(f"solve_triangular: trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    matrix, upper = a, not lower
    if trans not in (0, "N"):
        matrix, upper = matrix_transpose(a.conj() if trans in (2, "C") else a), lower
    columns = b[:, None] if b.ndim == 1 else b
    result: Tensor = _linalg.solve_triangular(matrix, columns, upper=upper, unitriangular=unit_diagonal)
    return result[:, 0] if b.ndim == 1 else result


def solve(a: Tensor, b: Tensor, lower: bool = False, **options: object) -> Tensor:
    """The solution of ``a @ x = b``; other options of SciPy change nothing."""
    result: Tensor = accept_integers(_linalg.solve)(a, b)
    return result


def eigh(
    a: Tensor, b: None = None, lower: bool = True, eigvals_only: bool = False, **options: object
) -> Tensor | tuple[Tensor, Tensor]:
    """The eigenvalues and eigenvectors of a symmetric matrix of which one triangle is read.

    Raises:
        ValueArgumentError: there is a second matrix.
    """
    if b is not None:
        raise ValueArgumentError("eigh: the generalized problem (b) is not supported")
    triangle = "L" if lower else "U"
    result: Any = _linalg.eigvalsh(a, triangle) if eigvals_only else _linalg.eigh(a, triangle)
    return result  # type: ignore[no-any-return]


def lu_solve(
    lu_and_piv: tuple[Tensor, Tensor],
    b: Tensor,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution of ``a @ x = b`` from the result of ``lu_factor(a)``; 1: for the transpose, 2: its conjugate.

    Raises:
        ValueArgumentError: ``trans`` is none of 0, 1 and 2.

    >>> import tandem.jax as jax
    >>> factors = jax.scipy.linalg.lu_factor(jax.numpy.eye(2) * 2.0)
    >>> jax.scipy.linalg.lu_solve(factors, jax.numpy.ones(2)).tolist()
    [0.5, 0.5]
    """
    if trans not in (0, 1, 2):
        raise ValueArgumentError(f"lu_solve: trans is 0, 1 or 2, not {trans!r}")
    columns = b[:, None] if b.ndim == 1 else b
    given = columns.conj() if trans == 1 else columns
    result: Tensor = accept_integers(_linalg.lu_solve)(*lu_and_piv, given, adjoint=trans != 0)
    result = result.conj() if trans == 1 else result
    return result[:, 0] if b.ndim == 1 else result


def block_diag(*arrs: TensorLike) -> Tensor:
    """A matrix with matrices along its diagonal, else 0; a vector is a matrix of one row.

    >>> import tandem.jax as jax
    >>> jax.scipy.linalg.block_diag(jax.numpy.ones((1, 2)), 3.0).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    """
    result: Tensor = parts.block_diag([asarray(x) for x in arrs]) if arrs else full((1, 0), 0.0)
    return result


def toeplitz(c: TensorLike, r: TensorLike | None = None) -> Tensor:
    """Matrices with constant diagonals.

    Args:
        c: the first columns, vectors along the last axis.
        r: the first rows, of which the first element is not used; None: the conjugate of ``c``.

    >>> import tandem.jax as jax
    >>> jax.scipy.linalg.toeplitz(jax.numpy.arange(3)).tolist()
    [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    """
    column = asarray(c)
    row = column.conj() if r is None else asarray(r)
    column, row = (x.reshape((1,)) if x.ndim == 0 else x for x in (column, row))
    count, width = column.shape[-1], row.shape[-1]
    lead = broadcast_shapes(column.shape[:-1], row.shape[:-1])
    diagonals = concat(
        [flip(broadcast_to(column, (*lead, count)), -1), broadcast_to(row, (*lead, width))[..., 1:]], -1
    )
    result: Tensor = diagonals[..., count - 1 - arange(count)[:, None] + arange(width)]
    return result


def expm(A: Tensor, **options: object) -> Tensor:
    """The matrix exponential; options of SciPy and JAX change nothing."""
    result: Tensor = _linalg.matrix_exp(A)
    return result


__getattr__, __dir__ = forward_to(__name__, "linalg", adapt=accept_integers)
