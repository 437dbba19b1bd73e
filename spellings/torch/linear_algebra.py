"""Linear algebra under the names that PyTorch has outside of ``torch.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import linalg
from ..errors import ShapeError
from ..linalg.results import QRResult, SlogdetResult
from ..linalg.rules import adjoint
from ..linalg.triangular import solve_triangular
from ..operators.contraction.matmul import matmul
from ..operators.creation.creation import nan
from ..operators.declare.named_results import SingularVectors, TriangularSolution
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.arithmetic import add
from ..operators.elementwise.comparison import lt
from ..operators.elementwise.exponential import log
from ..operators.elementwise.selection import where
from ..operators.reductions.statistics import mean
from ..operators.shape.triangles import tril, triu
from .sampling import randn

if TYPE_CHECKING:
    from ..registry.types import Tensor


# -- determinants and Cholesky factors ---------------------------------------------------------------------------------
def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants; NaN for negative ones, minus infinity for 0.

    >>> import tandem.torch as torch
    >>> torch.logdet(torch.eye(3)).item()
    0.0
    """
    sign, size = linalg.slogdet(input)
    if spec_of(input).dtype.kind == "c":
        return add(log(sign), size)
    result: Tensor = where(lt(sign, 0), nan, size)
    return result


def slogdet(input: Tensor) -> SlogdetResult:
    """The signs of determinants and the logarithms of their magnitudes: :func:`tandem.linalg.slogdet`."""
    return linalg.slogdet(input)


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factors of positive definite matrices: :func:`tandem.linalg.cholesky`."""
    result: Tensor = linalg.cholesky(input, upper=upper)
    return result


def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverses of the matrices with given Cholesky factors.

    >>> import tandem.torch as torch
    >>> torch.cholesky_inverse(torch.eye(2) * 2).tolist()
    [[0.25, 0.0], [0.0, 0.25]]
    """
    inverse = linalg.inv(triu(input) if upper else tril(input))
    return matmul(inverse, adjoint(inverse)) if upper else matmul(adjoint(inverse), inverse)


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The solutions of ``A @ x = input`` for the matrices ``A`` with the Cholesky factors ``L``.

    >>> import tandem.torch as torch
    >>> torch.cholesky_solve(torch.ones(2, 1), torch.eye(2) * 2).tolist()
    [[0.25], [0.25]]
    """
    lower = adjoint(L) if upper else L
    inner = solve_triangular(lower, input, upper=False)
    return solve_triangular(adjoint(lower), inner, upper=True)


def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolution:
    """The solutions of ``A @ x = input`` for triangular matrices, and the matrices.

    >>> import tandem.torch as torch
    >>> torch.triangular_solve(torch.ones(2, 1), torch.eye(2)).solution.tolist()
    [[1.0], [1.0]]
    """
    matrices, is_upper = (A.mT, not upper) if transpose else (A, upper)
    solution = solve_triangular(matrices, input, upper=is_upper, unitriangular=unitriangular)
    return TriangularSolution(solution, A.clone())


# -- products ----------------------------------------------------------------------------------------------------------
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the order that needs the fewest operations."""
    return matrices[0].clone() if len(matrices) == 1 else linalg.multi_dot(matrices)


def matrix_exp(input: Tensor) -> Tensor:
    """The exponentials of square matrices: :func:`tandem.linalg.matrix_exp`."""
    return linalg.matrix_exp(input)


# -- factors -----------------------------------------------------------------------------------------------------------
def qr(input: Tensor, some: bool = True) -> QRResult:
    """The factors Q and R; ``some=False``: with a square Q."""
    return linalg.qr(input, mode="reduced" if some else "complete")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SingularVectors:
    """Singular values, and the vectors as the columns of U and V: ``input = U @ diag(S) @ V.mH``.

    >>> import tandem.torch as torch
    >>> torch.svd(torch.eye(2) * 3).S.tolist()
    [3.0, 3.0]
    """
    if not compute_uv:
        *lead, rows, columns = spec_of(input).shape
        return SingularVectors(
            input.new_zeros((*lead, rows, rows)),
            linalg.svdvals(input),
            input.new_zeros((*lead, columns, columns)),
        )
    left, values, right = linalg.svd(input, full_matrices=not some)
    return SingularVectors(left, values, adjoint(right))


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> SingularVectors:
    """The ``q`` largest singular values and their vectors, nearly, by products with random vectors.

    Source: Halko, Martinsson, Tropp, Finding structure with randomness, 2009, algorithms 4.4 and 5.1.

    Raises:
        ShapeError: ``q`` is larger than the matrices.
    """
    matrices = A if M is None else A - M
    *_, rows, columns = spec_of(matrices).shape
    count = 6 if q is None else q
    if count > min(rows, columns):
        raise ShapeError(
            f"svd_lowrank: q = {count} is larger than a side of the matrices of shape {(rows, columns)}"
        )
    spec = spec_of(matrices)
    basis, _ = linalg.qr(matmul(matrices, randn(columns, count, dtype=spec.dtype, device=spec.device)))
    for _ in range(2 if niter is None else niter):
        basis, _ = linalg.qr(matmul(adjoint(matrices), basis))
        basis, _ = linalg.qr(matmul(matrices, basis))
    left, values, right = linalg.svd(matmul(adjoint(basis), matrices), full_matrices=False)
    return SingularVectors(matmul(basis, left), values, adjoint(right))


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SingularVectors:
    """The principal components of the rows, nearly: :func:`svd_lowrank` of the matrices minus the means of columns."""
    count = min(6, *spec_of(A).shape[-2:]) if q is None else q
    return svd_lowrank(A, count, niter, mean(A, -2, keepdims=True) if center else None)


# -- LU and Householder reflections ------------------------------------------------------------------------------------
def lu(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
) -> tuple[Tensor, ...]:
    """The LU factors and the exchanges of rows: :func:`tandem.linalg.lu_factor`; zeros as ``infos`` if wanted."""
    factors = linalg.lu_factor(A, pivot=pivot)
    return (*factors, factors.pivots.new_zeros(spec_of(A).shape[:-2])) if get_infos else factors


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The solutions of ``A @ x = b`` for matrices with given LU factors: :func:`tandem.linalg.lu_solve`."""
    return linalg.lu_solve(LU_data, LU_pivots, b)


lu_unpack, geqrf, ormqr, orgqr = linalg.lu_unpack, linalg.geqrf, linalg.ormqr, linalg.householder_product
