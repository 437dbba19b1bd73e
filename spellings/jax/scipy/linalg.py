"""``tandem.jax.scipy.linalg``: linear algebra with SciPy's arguments; other names are those of ``td.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import ValueArgumentError
from ...operators.shape.rearrange import matrix_transpose
from ...spellings.forwarding import forward_to
from ...spellings.integer_arguments import accept_integers

if TYPE_CHECKING:
    from ...registry.types import Tensor

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


def expm(A: Tensor, **options: object) -> Tensor:
    """The matrix exponential; options of SciPy and JAX change nothing."""
    result: Tensor = _linalg.matrix_exp(A)
    return result


__getattr__, __dir__ = forward_to(__name__, "linalg", adapt=accept_integers)
