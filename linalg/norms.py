"""Norms of vectors and matrices, and the rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ShapeError, ValueArgumentError
from ..operators.declare.declaration import ErrorInput, SampleInput, TensorSample
from ..operators.declare.kinds import composite
from ..operators.declare.shape_rules import compute_dtype, normalize_axes, spec_of
from ..operators.elementwise.arithmetic import abs
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import gt, ne
from ..operators.elementwise.complex_parts import imag, real
from ..operators.elementwise.exponential import sqrt
from ..operators.elementwise.selection import maximum
from ..operators.reductions.folds import max, min, sum
from ..operators.shape.rearrange import expand_dims, moveaxis
from ..operators.shape.views import reshape
from ..registry.dtypes import int64
from .factorizations import svdvals
from .rules import DTYPES, TOLERANCE, check_matrices, real_dtype

if TYPE_CHECKING:
    from ..registry.types import Tensor

Axes = tuple[int, ...]


def _euclidean_norm(x: Tensor, axes: Axes | None, keepdims: bool) -> Tensor:
    """The square root of the sum of squares."""
    squares = real(x) * real(x) + imag(x) * imag(x) if spec_of(x).dtype.kind == "c" else x * x
    return sqrt(sum(squares, axes, keepdims=keepdims))


def _norm_of_order(x: Tensor, axes: Axes | None, keepdims: bool, ord: float) -> Tensor:
    """The norm of vectors of any order."""
    if ord == 2:
        return _euclidean_norm(x, axes, keepdims)
    if ord == 0:
        return sum(astype(ne(x, 0), real_dtype(spec_of(x).dtype)), axes, keepdims=keepdims)
    sizes = abs(x)
    if math.isinf(ord):
        return (max if ord > 0 else min)(sizes, axes, keepdims=keepdims)
    if ord == 1:
        return sum(sizes, axes, keepdims=keepdims)
    return sum(sizes**ord, axes, keepdims=keepdims) ** (1 / ord)


@composite(
    "linalg_vector_norm(Tensor self, *, int[]? axis=None, bool keepdims=False, float ord=2) -> Tensor",
    doc="""The norms of vectors.

    Args:
        self: any tensor.
        axis: the axis or axes of a vector; None: all.
        keepdims: whether these axes remain, with length 1.
        ord: the order p of ``(sum |x|**p)**(1/p)``; infinity: the largest magnitude, minus infinity: the smallest, 0:
            the number of elements that are not 0.

    Returns:
        A real tensor of the reduced shape.

    Raises:
        OutOfBoundsError: there is no such axis.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.vector_norm(td.asarray([3.0, 4.0])).item()
    5.0
    """,
    reference="references.linear_algebra.vector_norm",
    samples="samples.linalg.vector_samples",
    errors=lambda: [
        ErrorInput((TensorSample((3,)),), IndexError, "out of bounds", {"axis": 1}),
        ErrorInput((TensorSample((3,), dtype=int64),), TypeError, "does not take int64"),
    ],
    dtypes=DTYPES,
    tolerance={"float32": 1e-5, "complex64": 1e-5},
    method=False,
)
def vector_norm(self: Tensor, *, axis: Axes | None, keepdims: bool, ord: float) -> Tensor:
    compute_dtype("vector_norm", "same", DTYPES, (spec_of(self),))
    return _norm_of_order(self, axis, keepdims, ord)


# -- of matrices -------------------------------------------------------------------------------------------------------
def _matrix_norms(x: Tensor, ord: str | float) -> Tensor:
    """The norm of each matrix in a stack."""
    if ord == "fro":
        return _euclidean_norm(x, (-2, -1), False)
    if ord == "nuc":
        return sum(svdvals(x), -1)
    if ord not in (1, -1, 2, -2, math.inf, -math.inf):
        raise ValueArgumentError(
            f"matrix_norm: ord is 'fro', 'nuc', 1, 2, inf or their negatives, not {ord!r}"
        )
    extreme = max if ord > 0 else min
    if ord in (2, -2):
        return extreme(svdvals(x), -1)
    return extreme(sum(abs(x), -2 if ord in (1, -1) else -1), -1)


def _restore_axes(norms: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """The norms with axes of length 1 instead of the reduced ones if ``keepdims``."""
    if not keepdims:
        return norms
    rank, sizes = len(norms.shape) + 2, iter(norms.shape)
    gone = [axis % rank for axis in axes]
    return reshape(norms, tuple(1 if at in gone else next(sizes) for at in range(rank)))


@composite(
    "linalg_matrix_norm(Tensor self, *, bool keepdims=False, Any ord='fro') -> Tensor",
    doc="""The norms of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, N)``.
        keepdims: whether the last two axes remain, with length 1.
        ord: ``"fro"`` (Frobenius), ``"nuc"`` (the sum of the singular values), 2 (the largest), -2 (the smallest), 1
            and infinity (the largest sum of magnitudes in a column, in a row), -1 and minus infinity (the smallest).

    Returns:
        A real tensor of shape ``(...)``.

    Raises:
        ValueArgumentError: another order.
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.matrix_norm(td.asarray([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """,
    reference="references.linear_algebra.matrix_norm",
    samples="samples.linalg.matrix_norm_samples",
    errors="samples.linalg.matrix_norm_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def matrix_norm(self: Tensor, *, keepdims: bool, ord: str | float) -> Tensor:
    check_matrices("matrix_norm", self)
    return _restore_axes(_matrix_norms(self, ord), (-2, -1), keepdims)


@composite(
    "linalg_norm(Tensor self, Any ord=None, int[]? axis=None, bool keepdims=False) -> Tensor",
    doc="""The norm of vectors or matrices, with NumPy's arguments.

    Args:
        self: any tensor.
        ord: as for `matrix_norm` for two axes, else as for `vector_norm`; None: the square root of the
            sum of squares.
        axis: one axis: vectors; two: matrices; None: all axes.
        keepdims: whether these axes remain, with length 1.

    Returns:
        A real tensor.

    Raises:
        ShapeError: an order is given for more than two axes.
        ValueArgumentError: another order.
        OutOfBoundsError: there is no such axis.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.norm(td.asarray([3.0, 4.0])).item()
    5.0
    """,
    reference="references.linear_algebra.norm",
    samples=lambda dtype: [
        SampleInput((TensorSample((2, 3)),)),
        SampleInput((TensorSample((2, 3)), None, 1, True)),
        SampleInput((TensorSample((4,), 0.1, 2.0), 3)),
        SampleInput((TensorSample((2, 3), 0.1, 2.0), "nuc")),
        SampleInput((TensorSample((2, 3, 2), 0.1, 2.0), 1, (2, 0), True)),
        SampleInput((TensorSample((2, 3, 2), 0.1, 2.0), -math.inf, 1)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2, 2, 2)), 1), ValueError, "axes"),
        ErrorInput((TensorSample((3,)), "nuc"), ValueError, "ord"),
        ErrorInput((TensorSample((3,)), 2, 1), IndexError, "out of bounds"),
    ],
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def norm(self: Tensor, ord: str | float | None, axis: Axes | None, keepdims: bool) -> Tensor:
    spec = spec_of(self)
    compute_dtype("norm", "same", DTYPES, (spec,))
    rank = len(spec.shape)
    if ord is None:
        return _euclidean_norm(self, axis, keepdims)
    axes = tuple(range(rank)) if axis is None else axis
    normalize_axes("norm", axes, rank)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueArgumentError(f"norm: ord {ord!r} is for matrices; for vectors it is a number")
        return _norm_of_order(self, axes, keepdims, ord)
    if len(axes) != 2:
        raise ShapeError(f"norm: ord {ord!r} needs one or two axes, not {len(axes)}; pass them as axis=")
    return _restore_axes(_matrix_norms(moveaxis(self, axes, (-2, -1)), ord), axes, keepdims)


@composite(
    "linalg_matrix_rank(Tensor self, *, Tensor? rtol=None, Tensor? atol=None) -> Tensor",
    doc="""The rank of each matrix: the number of singular values that are not 0.

    Args:
        self: a tensor of shape ``(..., M, N)``.
        rtol: the share of the largest singular value that counts as 0: a number, or a tensor that broadcasts to
            ``(...)``; None: the precision times the longer side, or 0 if ``atol`` is given.
        atol: the singular value up to which values count as 0, if it is larger; as ``rtol``.

    Returns:
        An int64 tensor of shape ``(...)``.

    Raises:
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.matrix_rank(td.ones((3, 2))).item()
    1
    """,
    reference="references.linear_algebra.matrix_rank",
    spellings={"tol": "atol"},
    ignored=("hermitian",),
    samples="samples.linalg.rank_samples",
    errors="samples.linalg.rectangular_errors",
    dtypes=DTYPES,
    method=False,
)
def matrix_rank(self: Tensor, *, rtol: Tensor | float | None, atol: Tensor | float | None) -> Tensor:
    spec = check_matrices("matrix_rank", self)
    if rtol is None:
        precision = math.prod(sorted(spec.shape[-2:])[1:]) * float(np.finfo(spec.dtype.np).eps)
        rtol = precision if atol is None else 0.0
    values = svdvals(self)
    limit = rtol * max(values, -1)
    return sum(gt(values, expand_dims(limit if atol is None else maximum(limit, atol), -1)), -1)
