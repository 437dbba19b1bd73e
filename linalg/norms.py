"""Norms of vectors and matrices, and the rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ShapeError, ValueArgumentError
from ..operators.casting import astype
from ..operators.comparison import gt, ne
from ..operators.complex_parts import imag, real
from ..operators.declare import Bad, Draw, Sample
from ..operators.exponential import sqrt
from ..operators.kinds import LAYOUTS, composite
from ..operators.rearrange import moveaxis
from ..operators.reductions import max, min, sum
from ..operators.rounding import abs
from ..operators.rules import compute_dtype, normalize_axes, spec_of
from ..operators.views import reshape
from ..registry.dtypes import DType, int64
from .factorizations import svdvals
from .rules import SOLVED, TAKEN, matrices, oblong_errors, oblong_samples, real_dtype, references

Axes = tuple[int, ...]


def _length(x: Any, axes: Axes | None, keepdims: bool) -> Any:
    """The square root of the sum of squares."""
    squares = real(x) * real(x) + imag(x) * imag(x) if spec_of(x).dtype.kind == "c" else x * x
    return sqrt(sum(squares, axes, keepdims=keepdims))


def _by_order(x: Any, axes: Axes | None, keepdims: bool, ord: float) -> Any:
    """The norm of vectors of any order."""
    if ord == 2:
        return _length(x, axes, keepdims)
    if ord == 0:
        return sum(astype(ne(x, 0), real_dtype(spec_of(x).dtype)), axes, keepdims=keepdims)
    sizes = abs(x)
    if math.isinf(ord):
        return (max if ord > 0 else min)(sizes, axes, keepdims=keepdims)
    if ord == 1:
        return sum(sizes, axes, keepdims=keepdims)
    return sum(sizes**ord, axes, keepdims=keepdims) ** (1 / ord)


def _vector_samples(dtype: DType) -> list[Sample]:
    return [
        *(Sample((Draw((3, 4), layout=layout),), {"axis": 1}) for layout in LAYOUTS),
        *(Sample((Draw((5,), 0.1, 3.0),), {"ord": ord}) for ord in (1, 3, 0.5, -2, math.inf, -math.inf, 0)),
        Sample((Draw((2, 3)),), {"keepdims": True}),
        Sample((Draw((2, 3, 2)),), {"axis": (0, 2)}),
    ]


@composite(
    "linalg_vector_norm(Tensor self, *, int[]? axis=None, bool keepdims=False, float ord=2) -> Tensor",
    doc="""The norms of vectors.

    Args:
        self: any tensor.
        axis: the axis or axes that a vector lies along; None: all.
        keepdims: whether these axes stay with length 1.
        ord: the order p of ``(sum |x|**p)**(1/p)``; infinity: the largest magnitude, minus infinity: the smallest, 0:
            how many elements are not 0.

    Returns:
        A real tensor of the reduced shape.

    Raises:
        OutOfBoundsError: there is no such axis.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.vector_norm(td.asarray([3.0, 4.0])).item()
    5.0
    """,
    reference=references.vector_norm,
    samples=_vector_samples,
    errors=lambda: [
        Bad((Draw((3,)),), IndexError, "out of bounds", {"axis": 1}),
        Bad((Draw((3,), dtype=int64),), TypeError, "does not take int64"),
    ],
    dtypes=TAKEN,
    tolerance={"float32": 1e-5, "complex64": 1e-5},
    method=False,
)
def vector_norm(self: Any, *, axis: Axes | None, keepdims: bool, ord: float) -> Any:
    compute_dtype("vector_norm", "same", TAKEN, (spec_of(self),))
    return _by_order(self, axis, keepdims, ord)


# -- of matrices -------------------------------------------------------------------------------------------------------
def _of_matrices(x: Any, ord: Any) -> Any:
    """The norm of each matrix in a stack."""
    if ord == "fro":
        return _length(x, (-2, -1), False)
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


def _kept(found: Any, axes: Axes, keepdims: bool) -> Any:
    """A norm of matrices with axes of length 1 in the place of those that the matrices lay along."""
    if not keepdims:
        return found
    rank, sizes = len(found.shape) + 2, iter(found.shape)
    gone = [axis % rank for axis in axes]
    return reshape(found, tuple(1 if at in gone else next(sizes) for at in range(rank)))


@composite(
    "linalg_matrix_norm(Tensor self, *, bool keepdims=False, Any ord='fro') -> Tensor",
    doc="""The norms of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, N)``.
        keepdims: whether the last two axes stay with length 1.
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
    reference=references.matrix_norm,
    samples=lambda dtype: [
        *(Sample((Draw((3, 2), 0.1, 2.0),), {"ord": o}) for o in ("nuc", 1, -1, 2, -2, math.inf, -math.inf)),
        *oblong_samples(dtype),
        Sample((Draw((2, 3, 2)),), {"keepdims": True}),
    ],
    errors=lambda: [*oblong_errors(), Bad((Draw((2, 2)),), ValueError, "ord", {"ord": 3})],
    dtypes=TAKEN,
    tolerance=SOLVED,
    method=False,
)
def matrix_norm(self: Any, *, keepdims: bool, ord: Any) -> Any:
    matrices("matrix_norm", self)
    return _kept(_of_matrices(self, ord), (-2, -1), keepdims)


@composite(
    "linalg_norm(Tensor self, Any ord=None, int[]? axis=None, bool keepdims=False) -> Tensor",
    doc="""The norm of vectors or matrices, with NumPy's arguments.

    Args:
        self: any tensor.
        ord: that of `matrix_norm` where two axes are meant, else that of `vector_norm`; None: the square root of the
            sum of squares.
        axis: one axis: vectors; two: matrices; None: all axes.
        keepdims: whether these axes stay with length 1.

    Returns:
        A real tensor.

    Raises:
        ShapeError: an order is given for more than two axes.
        ValueArgumentError: there is no such order.
        OutOfBoundsError: there is no such axis.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.norm(td.asarray([3.0, 4.0])).item()
    5.0
    """,
    reference=references.norm,
    samples=lambda dtype: [
        Sample((Draw((2, 3)),)),
        Sample((Draw((2, 3)), None, 1, True)),
        Sample((Draw((4,), 0.1, 2.0), 3)),
        Sample((Draw((2, 3), 0.1, 2.0), "nuc")),
        Sample((Draw((2, 3, 2), 0.1, 2.0), 1, (2, 0), True)),
        Sample((Draw((2, 3, 2), 0.1, 2.0), -math.inf, 1)),
    ],
    errors=lambda: [
        Bad((Draw((2, 2, 2)), 1), ValueError, "axes"),
        Bad((Draw((3,)), "nuc"), ValueError, "ord"),
        Bad((Draw((3,)), 2, 1), IndexError, "out of bounds"),
    ],
    dtypes=TAKEN,
    tolerance=SOLVED,
    method=False,
)
def norm(self: Any, ord: Any, axis: Axes | None, keepdims: bool) -> Any:
    spec = spec_of(self)
    compute_dtype("norm", "same", TAKEN, (spec,))
    rank = len(spec.shape)
    if ord is None:
        return _length(self, axis, keepdims)
    axes = tuple(range(rank)) if axis is None else axis
    normalize_axes("norm", axes, rank)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueArgumentError(f"norm: ord {ord!r} is for matrices; for vectors it is a number")
        return _by_order(self, axes, keepdims, ord)
    if len(axes) != 2:
        raise ShapeError(
            f"norm: ord {ord!r} is for one or two axes, not for {len(axes)}; say which with axis="
        )
    return _kept(_of_matrices(moveaxis(self, axes, (-2, -1)), ord), axes, keepdims)


@composite(
    "linalg_matrix_rank(Tensor self, *, float? rtol=None) -> Tensor",
    doc="""How many singular values of each matrix are not 0.

    Args:
        self: a tensor of shape ``(..., M, N)``.
        rtol: which part of the largest still counts as 0; None: the dtype's precision times the longer side.

    Returns:
        An int64 tensor of shape ``(...)``.

    Raises:
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.matrix_rank(td.ones((3, 2))).item()
    1
    """,
    reference=references.matrix_rank,
    samples=oblong_samples,
    errors=oblong_errors,
    dtypes=TAKEN,
    method=False,
)
def matrix_rank(self: Any, *, rtol: float | None) -> Any:
    spec = matrices("matrix_rank", self)
    limit = (
        math.prod(sorted(spec.shape[-2:])[1:]) * float(np.finfo(spec.dtype.np).eps) if rtol is None else rtol
    )
    values = svdvals(self)
    return sum(gt(values, limit * max(values, -1, keepdims=True)), -1)
