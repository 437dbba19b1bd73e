"""cond, lstsq, multi_dot, tensorinv and tensorsolve, composed of other functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ShapeError, ValueArgumentError
from ..operators.contraction.matmul import matmul
from ..operators.declare.declaration import ErrorInput, TensorSample
from ..operators.declare.kinds import composite
from ..operators.declare.shape_rules import normalize_axis, spec_of
from ..operators.elementwise.arithmetic import abs
from ..operators.elementwise.comparison import gt
from ..operators.reductions.folds import max, min, sum
from ..operators.shape.rearrange import expand_dims, moveaxis, squeeze
from ..operators.shape.views import reshape
from .factorizations import svdvals
from .norms import matrix_norm
from .pseudo_inverses import pinv
from .rules import DTYPES, TOLERANCE, check_matrices
from .solving import inv, solve

if TYPE_CHECKING:
    from ..registry.types import Tensor


@composite(
    "linalg_cond(Tensor self, Any p=None) -> Tensor",
    doc="""The condition numbers of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, N)``; square unless ``p`` is None, 2 or -2.
        p: the order of the norm, as for `matrix_norm`; None: 2, the ratio of the largest and the smallest singular
            value.

    Returns:
        A real tensor of shape ``(...)``.

    Raises:
        ValueArgumentError: another order.
        ShapeError: there are fewer than two axes, or the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.cond(td.asarray([[2.0, 0.0], [0.0, 4.0]])).item()
    2.0
    """,
    reference="numpy.linalg.cond",
    samples="samples.linalg.cond_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), 1), ValueError, "square"),
        ErrorInput((TensorSample((3,)),), ValueError, "two axes"),
    ],
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def cond(self: Tensor, p: str | float | None) -> Tensor:
    check_matrices("cond", self, is_square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        values = svdvals(self)
        largest, smallest = max(values, -1), min(values, -1)
        return smallest / largest if p == -2 else largest / smallest
    return matrix_norm(self, ord=p) * matrix_norm(inv(self), ord=p)


@composite(
    "linalg_lstsq(Tensor self, Tensor other, float? rcond=None)"
    " -> (Tensor x, Tensor residuals, Tensor rank, Tensor singular_values)",
    doc="""The least-squares solution of ``self @ x = other``, that of the smallest norm.

    Args:
        self: a matrix ``(M, N)``.
        other: a vector ``(M,)``, or a matrix ``(M, K)``.
        rcond: singular values up to this share of the largest count as 0; None: the dtype's precision times the longer
            side.

    Returns:
        ``(x, residuals, rank, singular_values)``: the solution ``(N,)`` or ``(N, K)``, the sums of squares of the
        residuals, of shape ``(K,)`` as in JAX, the rank of the matrix and its singular values.

    Raises:
        ShapeError: the tensor is not a matrix, or the lengths differ.
        DTypeError: neither float32, float64 nor complex.

    >>> x = td.linalg.lstsq(td.asarray([[1.0], [1.0]]), td.asarray([1.0, 3.0]))[0]
    >>> round(x.item(), 4)
    2.0
    """,
    reference="references.linear_algebra.lstsq",
    samples="samples.linalg.lstsq_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 2, 2)), TensorSample((2,))), ValueError, "matrix"),
        ErrorInput((TensorSample((2, 2)), TensorSample((3,))), ValueError, "rows"),
    ],
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
    autocast="float32",
)
def lstsq(self: Tensor, other: Tensor, rcond: float | None) -> tuple[Tensor, ...]:
    spec, shape = check_matrices("lstsq", self), spec_of(other).shape
    if len(spec.shape) != 2 or len(shape) not in (1, 2):
        raise ShapeError(
            f"lstsq: needs a matrix, and a vector or a matrix, not shapes {spec.shape} and {shape}"
        )
    if shape[0] != spec.shape[0]:
        raise ShapeError(f"lstsq: {spec.shape[0]} rows do not fit {shape[0]} rows")
    share = float(np.finfo(spec.dtype.np).eps) * np.maximum(*spec.shape) if rcond is None else rcond
    columns = other if len(shape) == 2 else expand_dims(other, 1)
    x = matmul(pinv(self, rtol=float(share)), columns)
    off = abs(columns - matmul(self, x))
    values = svdvals(self)
    rank = sum(gt(values, float(share) * max(values, -1, keepdims=True)), -1)
    return x if len(shape) == 2 else squeeze(x, 1), sum(off * off, 0), rank, values


# -- products ----------------------------------------------------------------------------------------------------------
def _split_chain(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """For each part of a chain of matrices, from one to another, after which matrix to split it at the least cost."""
    count = len(sizes) - 1
    cost = {(at, at): 0 for at in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for start in range(count - length):
            stop = start + length
            costs = {
                at: cost[start, at] + cost[at + 1, stop] + sizes[start] * sizes[at + 1] * sizes[stop + 1]
                for at in range(start, stop)
            }
            split[start, stop] = best = sorted(costs, key=lambda at: costs[at])[0]
            cost[start, stop] = costs[best]
    return split


@composite(
    "linalg_multi_dot(Tensor[] arrays) -> Tensor",
    doc="""The product of several matrices, in the order that needs the fewest multiplications.

    Args:
        arrays: a list of two or more matrices; the first and the last may be vectors.

    Returns:
        A tensor of the promoted dtype: a matrix, a vector, or 0-d.

    Raises:
        ValueArgumentError: there are fewer than two matrices.
        ShapeError: a tensor has another number of axes, or the shapes do not fit.

    >>> td.linalg.multi_dot([td.ones((2, 3)), td.ones((3, 4)), td.ones(4)]).tolist()
    [12.0, 12.0]
    """,
    reference="references.linear_algebra.multi_dot",
    samples="samples.linalg.multi_dot_samples",
    errors=lambda: [
        ErrorInput(((TensorSample((2, 2)),),), ValueError, "two"),
        ErrorInput(((TensorSample((2, 2)), TensorSample((3, 2))),), ValueError, "do not fit"),
        ErrorInput(((TensorSample((2, 2)), TensorSample((2,)), TensorSample((2,))),), ValueError, "axes"),
    ],
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
    autocast="lower",
)
def multi_dot(arrays: Sequence[Tensor]) -> Tensor:
    if len(arrays) < 2:
        raise ValueArgumentError(f"multi_dot: needs two matrices or more, not {len(arrays)}")
    ranks = [len(spec_of(one).shape) for one in arrays]
    if any(rank != 2 for rank in ranks[1:-1]) or not {ranks[0], ranks[-1]} <= {1, 2}:
        raise ShapeError(
            f"multi_dot: needs matrices, and perhaps vectors at the ends, not tensors of {ranks} axes"
        )
    chain = list(arrays)
    chain[0] = expand_dims(chain[0], 0) if ranks[0] == 1 else chain[0]
    chain[-1] = expand_dims(chain[-1], 1) if ranks[-1] == 1 else chain[-1]
    for one, two in pairwise(chain):
        if one.shape[1] != two.shape[0]:
            raise ShapeError(f"multi_dot: matrices of shapes {one.shape} and {two.shape} do not fit")
    split = _split_chain([chain[0].shape[0], *(one.shape[1] for one in chain)])

    def multiply(start: int, stop: int) -> Tensor:
        if start == stop:
            return chain[start]
        at = split[start, stop]
        return matmul(multiply(start, at), multiply(at + 1, stop))

    result = multiply(0, len(chain) - 1)
    ends = tuple(axis for axis, rank in ((0, ranks[0]), (1, ranks[-1])) if rank == 1)
    return squeeze(result, ends) if ends else result


# -- tensors as matrices -----------------------------------------------------------------------------------------------
@composite(
    "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    doc="""The inverse of a tensor as a linear map, for `tensordot`.

    Args:
        self: a tensor whose first ``ind`` axes have as many elements as the other ones.
        ind: the number of axes of the map's result.

    Returns:
        A tensor with the last axes in front.

    Raises:
        ValueArgumentError: ``ind`` is not positive.
        ShapeError: the axes do not have as many elements.
        LinearAlgebraError: the map is singular.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.tensorinv((td.eye(6) * 2).reshape(6, 2, 3), 1).shape
    (2, 3, 6)
    """,
    reference="numpy.linalg.tensorinv",
    samples="samples.linalg.tensorinv_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 2)), 0), ValueError, "ind"),
        ErrorInput((TensorSample((2, 3)), 1), ValueError, "square"),
    ],
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
    autocast="float32",
)
def tensorinv(self: Tensor, ind: int) -> Tensor:
    shape = spec_of(self).shape
    if ind < 1:
        raise ValueArgumentError(f"tensorinv: ind is positive, not {ind}")
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    return reshape(inv(reshape(self, (rows, columns))), shape[ind:] + shape[:ind])


@composite(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? axes=None) -> Tensor",
    doc="""The solution of ``tensordot(self, x, x.ndim) = other``.

    Args:
        self: a tensor of shape ``other.shape + x.shape``.
        other: the right-hand side.
        axes: axes of ``self`` to move to the end first; None: none.

    Returns:
        A tensor of the shape of the last axes.

    Raises:
        ShapeError: the shapes do not fit.
        OutOfBoundsError: there is no such axis.
        LinearAlgebraError: the map is singular.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.tensorsolve((td.eye(4) * 2).reshape(4, 2, 2), td.ones(4)).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """,
    reference="references.linear_algebra.tensorsolve",
    samples="samples.linalg.tensorsolve_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), TensorSample((2,))), ValueError, "do not fit"),
        ErrorInput((TensorSample((2, 2)), TensorSample((2,)), (2,)), IndexError, "out of bounds"),
    ],
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
    autocast="float32",
    promotes=True,
)
def tensorsolve(self: Tensor, other: Tensor, axes: tuple[int, ...] | None) -> Tensor:
    rank, right = len(spec_of(self).shape), spec_of(other)
    moved = self
    for axis in axes or ():
        along = normalize_axis("tensorsolve", axis, rank)
        moved = moveaxis(moved, along, -1)
    shape = spec_of(moved).shape[len(right.shape) :]
    if math.prod(shape) != right.size or spec_of(self).size != right.size**2:
        raise ShapeError(f"tensorsolve: shapes {spec_of(self).shape} and {right.shape} do not fit")
    matrix = reshape(moved, (right.size, right.size))
    return reshape(solve(matrix, reshape(other, (right.size,))), shape)
