"""Products of Householder reflections: geqrf, householder_product and ormqr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ShapeError
from ..operators.contraction.matmul import matmul
from ..operators.creation.creation import arange, eye
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.arithmetic import abs
from ..operators.elementwise.comparison import eq, gt, lt
from ..operators.elementwise.complex_parts import conj, real
from ..operators.elementwise.exponential import sqrt
from ..operators.elementwise.selection import where
from ..operators.reductions.folds import sum
from ..operators.shape.joining import stack
from ..operators.shape.rearrange import expand_dims
from ..operators.shape.views import broadcast_to
from .rules import adjoint, check_matrices

if TYPE_CHECKING:
    from ..registry.types import Tensor


def _conjugate(x: Tensor) -> Tensor:
    return conj(x) if x.dtype.kind == "c" else x


def _reflector(a: Tensor, column: int) -> Tensor:
    """The vectors of one reflection as columns: zeros, a one, and elements below the diagonal."""
    rows = expand_dims(arange(a.shape[-2], device=a.device), -1)
    below = where(gt(rows, column), a[..., column : column + 1], 0)
    return where(eq(rows, column), 1, below)


def _reflect(x: Tensor, vector: Tensor, tau: Tensor) -> Tensor:
    """``x - tau * vector @ vector^H @ x``."""
    return x - expand_dims(tau, (-2, -1)) * matmul(vector, matmul(adjoint(vector), x))


def geqrf(input: Tensor) -> tuple[Tensor, Tensor]:
    """The QR factorization as LAPACK's geqrf returns it: R with the reflections below its diagonal, and their factors.

    Args:
        input: a tensor of shape ``(..., M, N)``.

    Returns:
        A tensor of the same shape, and the factors ``tau``, of shape ``(..., min(M, N))``.

    >>> import tandem as td
    >>> td.linalg.geqrf(td.asarray([[3.0], [4.0]]))[0].tolist()
    [[-5.0], [0.5]]
    """
    spec = check_matrices("geqrf", input)
    *lead, rows, columns = spec.shape
    a, factors = input, []
    indices = expand_dims(arange(rows, device=spec.device), -1)
    numbers = arange(columns, device=spec.device)
    for step in range(min(rows, columns)):
        column = a[..., step : step + 1]
        first = a[..., step, step]
        rest = sum(abs(where(gt(indices, step), column, 0)) ** 2, (-2, -1))
        is_reduced = eq(rest, 0) & eq(first - real(first), 0)
        size = sqrt(where(is_reduced, 1.0, rest + abs(first) ** 2))
        diagonal = where(lt(real(first), 0), size, -size)
        tau = where(is_reduced, 0, (diagonal - first) / diagonal)
        below = column / expand_dims(where(is_reduced, 1, first - diagonal), (-2, -1))
        vector = where(eq(indices, step), 1, where(gt(indices, step), below, 0))
        reflected = _reflect(a, vector, _conjugate(tau))
        later = where(gt(numbers, step), reflected, a)
        a = where(eq(numbers, step), where(gt(indices, step), vector, reflected), later)
        factors.append(tau)
    tau = stack(factors, -1) if factors else input.new_zeros((*lead, 0))
    return a, tau


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the products of Householder reflections.

    Args:
        A: a tensor of shape ``(..., M, N)``, with M >= N; the reflections are below its diagonals.
        tau: their factors, of shape ``(..., K)``, with K <= N.

    Returns:
        A tensor of shape ``(..., M, N)``.

    Raises:
        ShapeError: the shapes do not fit.

    >>> import tandem as td
    >>> print(td.linalg.householder_product(td.asarray([[-5.0], [0.5]]), td.asarray([1.6])))
    [[-0.6]
     [-0.8]]
    """
    *_, rows, columns = check_matrices("householder_product", A).shape
    count = spec_of(tau).shape[-1]
    if not count <= columns <= rows:
        raise ShapeError(f"householder_product: {count} factors for matrices of shape {(rows, columns)}")
    result = eye(rows, columns, dtype=A.dtype, device=A.device)
    for step in reversed(range(count)):
        result = _reflect(result, _reflector(A, step), tau[..., step])
    return broadcast_to(result, A.shape)


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of a matrix with the square Q of Householder reflections.

    Args:
        input: a tensor of shape ``(..., M, K)``; the reflections are below its diagonals.
        tau: their factors, of shape ``(..., K)``.
        other: matrices with M rows, or M columns with ``left=False``.
        left: whether Q is the left factor.
        transpose: whether to multiply by the conjugate transpose of Q.

    Returns:
        A tensor of the shape of ``other``.

    >>> import tandem as td
    >>> td.linalg.ormqr(td.asarray([[-5.0], [0.5]]), td.asarray([1.6]), td.asarray([[1.0], [0.0]])).shape
    (2, 1)
    """
    check_matrices("ormqr", input)
    x = other if left else adjoint(other)
    is_adjoint = transpose if left else not transpose
    steps = range(spec_of(tau).shape[-1])
    for step in steps if is_adjoint else reversed(steps):
        factor = tau[..., step]
        x = _reflect(x, _reflector(input, step), _conjugate(factor) if is_adjoint else factor)
    return x if left else adjoint(x)
