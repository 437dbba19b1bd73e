"""LU factors: lu_factor, lu, lu_solve and lu_unpack.

Source: de Hoog, Anderssen, Lukas, Differentiation of matrix functionals using triangular factorization, 2011.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import lazy
from ..errors import NotDifferentiableError, UnsupportedError
from ..named_tuple import NamedTuple
from ..operators.contraction.matmul import matmul
from ..operators.creation.creation import arange, eye
from ..operators.declare.derivatives import Rule
from ..operators.declare.native_kernel import NativeLoop
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import eq
from ..operators.elementwise.selection import where
from ..operators.indexing.take import take_along_axis
from ..operators.reductions.sorting import argsort
from ..operators.shape.rearrange import expand_dims, matrix_transpose
from ..operators.shape.splitting import slice_axis
from ..operators.shape.triangles import tril, triu
from ..operators.shape.views import broadcast_to
from ..registry.dtypes import int32, int64
from ..registry.values import TensorSpec
from .rules import adjoint, check_matrices, emitted_lapack_kernel, has_short_sides, matrix_op
from .solving import solve_stack
from .triangular import solve_triangular

if TYPE_CHECKING:
    from ..registry.types import Array, ArrayModule, Tensor

_scipy = lazy.Module("scipy.linalg.lapack")


class LUFactorResult(NamedTuple):
    """The result of :func:`lu_factor`."""

    LU: Tensor
    pivots: Tensor


class LUResult(NamedTuple):
    """The result of :func:`lu` and :func:`lu_unpack`."""

    P: Tensor
    L: Tensor
    U: Tensor


# -- the operator ------------------------------------------------------------------------------------------------------
def _shape_rule(self: TensorSpec) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    spec = check_matrices("lu_factor", self)
    *lead, rows, columns = spec.shape
    return (
        spec,
        TensorSpec((*lead, min(rows, columns)), int32, spec.device),
        TensorSpec((*lead, rows), int64, spec.device),
    )


def _kernel(xp: ArrayModule, self: Array) -> tuple[Array, Array, Array]:
    host = self if xp is np else xp.asnumpy(self)
    *lead, rows, columns = host.shape
    factors = np.empty(host.shape, host.dtype)
    pivots = np.empty((*lead, min(rows, columns)), np.int32)
    order = np.empty((*lead, rows), np.int64)
    (getrf,) = _scipy.get_lapack_funcs(("getrf",), (host,))
    for at in np.ndindex(*lead):
        order[at] = np.arange(rows)
        if host[at].size:
            factors[at], pivots[at], _ = getrf(host[at])
        for row, other in enumerate(pivots[at]):
            order[at][[row, other]] = order[at][[other, row]]
    return xp.asarray(factors), xp.asarray(pivots + np.int32(1)), xp.asarray(order)


def _split(packed: Tensor) -> tuple[Tensor, Tensor]:
    """The lower factor, with ones on its diagonal, and the upper one."""
    spec = spec_of(packed)
    last = len(spec.shape) - 1
    rows, columns = spec.shape[-2:]
    inner = min(rows, columns)
    lower = tril(slice_axis(packed, last, 0, inner), -1)
    diagonal = eye(rows, inner, dtype="bool", device=spec.device)
    return where(diagonal, 1, lower), triu(slice_axis(packed, last - 1, 0, inner))


def _check_square(packed: Tensor) -> None:
    rows, columns = spec_of(packed).shape[-2:]
    if rows != columns:
        raise NotDifferentiableError("lu_factor: the derivative is that of square matrices")


def _inverse_order(rows: Tensor) -> Tensor:
    return expand_dims(argsort(rows, axis=-1), -1)


def _vjp(g: tuple[Tensor, ...], out: tuple[Tensor, ...]) -> Tensor:
    _check_square(out[0])
    lower, upper = _split(out[0])
    below, above = matrix_transpose(lower), matrix_transpose(upper)
    inner = tril(matmul(below, tril(g[0], -1)), -1) + triu(matmul(triu(g[0]), above))
    moved = matrix_transpose(solve_stack(upper, matrix_transpose(solve_stack(below, inner))))
    order = _inverse_order(out[2])
    return take_along_axis(moved, broadcast_to(order, moved.shape), -2)


lu_permuted = matrix_op(
    "linalg_lu_permuted(Tensor self) -> (Tensor LU, Tensor pivots, Tensor rows)",
    _shape_rule,
    _kernel,
    doc="""The LU factors of a stack of matrices, the exchanges of rows, and the order of rows that they make.

    Args:
        self: a tensor of shape ``(..., M, N)``.

    Returns:
        ``(LU, pivots, rows)``: both factors in one matrix, without the ones on the diagonal of the lower one; step k
        exchanged the rows k and ``pivots[k] - 1``; ``self[rows] = L @ U``.

    Raises:
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> td.ops.td.linalg_lu_permuted(td.asarray([[0.0, 2.0], [4.0, 6.0]]))[2].tolist()
    [1, 0]
    """,
    reference="references.linear_algebra.lu_permuted",
    native=emitted_lapack_kernel("lu_factor", NativeLoop("tandem", "lu", has_short_sides)),
    derivative=Rule(vjp={"self": _vjp}),
    samples="samples.linalg.square_samples",
    errors="samples.linalg.rectangular_errors",
)


# -- the functions -----------------------------------------------------------------------------------------------------
def _check_pivoting(pivot: bool) -> None:
    if not pivot:
        raise UnsupportedError(
            "lu: factors without exchanges of rows (pivot=False) are not available on the CPU"
        )


def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactorResult:
    """The LU factors of matrices, both in one matrix, and the exchanges of rows.

    Args:
        A: a tensor of shape ``(..., M, N)``.
        pivot: True: rows are exchanged.

    Returns:
        ``(LU, pivots)``: step k exchanged the rows k and ``pivots[k] - 1``; int32.

    Raises:
        UnsupportedError: ``pivot`` is False.
        ShapeError: there are fewer than two axes.

    >>> import tandem as td
    >>> td.linalg.lu_factor(td.asarray([[0.0, 2.0], [4.0, 6.0]])).pivots.tolist()
    [2, 2]
    """
    _check_pivoting(pivot)
    return LUFactorResult(*lu_permuted(A)[:2])


def lu(A: Tensor, *, pivot: bool = True) -> LUResult:
    """The LU decompositions of matrices: ``A = P @ L @ U``.

    Args:
        A: a tensor of shape ``(..., M, N)``.
        pivot: True: rows are exchanged.

    Returns:
        ``(P, L, U)``: a permutation, a lower triangle with ones on the diagonal, an upper triangle.

    Raises:
        UnsupportedError: ``pivot`` is False.
        ShapeError: there are fewer than two axes.

    >>> import tandem as td
    >>> td.linalg.lu(td.asarray([[0.0, 2.0], [4.0, 6.0]])).U.tolist()
    [[4.0, 6.0], [0.0, 2.0]]
    """
    _check_pivoting(pivot)
    packed, _, rows = lu_permuted(A)
    return LUResult(_permutation(rows, packed), *_split(packed))


def _permutation(rows: Tensor, like: Tensor) -> Tensor:
    """The matrices P with ``P @ x[rows] = x``."""
    count = spec_of(rows).shape[-1]
    indices = expand_dims(arange(count, device=spec_of(rows).device), -1)
    return astype(eq(indices, expand_dims(rows, -2)), spec_of(like).dtype)


def _order_of(pivots: Tensor, count: int) -> Tensor:
    """The order of ``count`` rows after the exchanges."""
    spec = spec_of(pivots)
    indices = arange(count, device=spec.device)
    order = broadcast_to(indices, (*spec.shape[:-1], count))
    for step in range(spec.shape[-1]):
        other = astype(pivots[..., step : step + 1], int64) - 1
        here = order[..., step : step + 1]
        there = take_along_axis(order, other, -1)
        order = where(eq(indices, step), there, where(eq(indices, other), here, order))
    return order


def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> LUResult:
    """The permutation and both factors of a result of :func:`lu_factor`.

    Args:
        LU_data: both factors in one matrix.
        LU_pivots: the exchanges of rows.
        unpack_data: whether L and U are wanted; else they are empty.
        unpack_pivots: whether P is wanted; else it is empty.

    Returns:
        ``(P, L, U)``.

    >>> import tandem as td
    >>> td.linalg.lu_unpack(*td.linalg.lu_factor(td.eye(2))).L.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    nothing = LU_data.new_empty((0,))
    lower, upper = _split(LU_data) if unpack_data else (nothing, nothing)
    if not unpack_pivots:
        return LUResult(nothing, lower, upper)
    return LUResult(_permutation(_order_of(LU_pivots, spec_of(LU_data).shape[-2]), LU_data), lower, upper)


def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> Tensor:
    """The solutions of ``A @ X = B`` for matrices with the factors that :func:`lu_factor` returns.

    Args:
        LU, pivots: the result of :func:`lu_factor`.
        B: a tensor of shape ``(..., M, K)``, or ``(..., K, M)`` with ``left=False``.
        left: False: ``X @ A = B``.
        adjoint: whether A is replaced by its conjugate transpose.

    Returns:
        A tensor of the shape of ``B``.

    >>> import tandem as td
    >>> td.linalg.lu_solve(*td.linalg.lu_factor(td.eye(2) * 2), td.ones((2, 1))).tolist()
    [[0.5], [0.5]]
    """
    if not left:
        return _adjoint(lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint))
    rows = _order_of(pivots, spec_of(LU).shape[-1])
    permutation = _permutation(rows, LU)
    if adjoint:
        inner = solve_triangular(_adjoint(LU), B, upper=False)
        outer = solve_triangular(_adjoint(LU), inner, upper=True, unitriangular=True)
        return matmul(permutation, outer)
    inner = solve_triangular(LU, matmul(matrix_transpose(permutation), B), upper=False, unitriangular=True)
    return solve_triangular(LU, inner, upper=True)


_adjoint = adjoint
