"""Products that sum over shared axes: all of them are ``matmul``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import lazy
from ..errors import ArgumentError, OutOfBoundsError, ShapeError
from ..registry.dtypes import (
    NUMERIC,
    REAL,
    DType,
    as_dtype,
    bool_,
    int64,
    is_half,
    promote,
    uint64,
)
from ..registry.values import TensorSpec
from .batching import Batched, BatchInfo, Dims, at_rank, logical_shape
from .declare import Bad, Draw, Sample
from .derivatives import Rule
from .kinds import LAYOUTS, composite, library
from .rearrange import matrix_transpose
from .reductions import sum
from .rules import broadcast_shapes, common_device, compute_dtype, normalize_axis, spec_of
from .views import permute, reshape, sum_to

references = lazy.Functions("operators.references")

SUMS = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5, "complex64": 1e-5}


# -- shapes ------------------------------------------------------------------------------------------------------------
def matmul_shape(one: tuple[int, ...], two: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a matrix product.

    Raises:
        ShapeError: an operand is 0-d, the inner sizes differ, or the leading axes do not broadcast.
    """
    if not one or not two:
        raise ShapeError(f"matmul: shapes {one} and {two}: a 0-d operand has no axis to sum over; use mul")
    if one[-1] != two[-2 if len(two) > 1 else 0]:
        inner = two[-2 if len(two) > 1 else 0]
        raise ShapeError(
            f"matmul: shapes {one} and {two} do not fit: the inner sizes are {one[-1]} and {inner}"
        )
    lead = broadcast_shapes("matmul", one[:-2], two[:-2])
    return lead + one[-2:-1] + (two[-1:] if len(two) > 1 else ())


def _meta(self: Any, other: Any) -> TensorSpec:
    dtype = compute_dtype("matmul", "same", NUMERIC, (self, other))
    shape = matmul_shape(spec_of(self).shape, spec_of(other).shape)
    return TensorSpec(shape, dtype, common_device("matmul", (self, other)))


def _kernel(xp: Any, self: Any, other: Any) -> Any:
    dtype = promote(as_dtype(self.dtype), as_dtype(other.dtype)).np
    wide = xp.dtype(xp.float32) if is_half(dtype) else dtype  # BLAS has no half types
    with xp.errstate(all="ignore"):
        found = xp.matmul(self.astype(wide, copy=False), other.astype(wide, copy=False))
        return xp.asarray(found).astype(dtype, copy=False)


# -- derivative --------------------------------------------------------------------------------------------------------
def _as_matrices(g: Any, x: tuple[int, ...], y: tuple[int, ...]) -> Any:
    """The cotangent with the axes that operands of shapes ``x`` and ``y`` lack, where they are 1-d."""
    rows, columns = len(x) > 1, len(y) > 1
    lead = g.shape[: len(g.shape) - rows - columns]
    return reshape(g, (*lead, x[-2] if rows else 1, y[-1] if columns else 1))


def _flat(x: Any) -> Any:
    return reshape(x, (math.prod(x.shape[:-1]), *x.shape[-1:]))


def _by_self(g: Any, self_spec: TensorSpec, other: Any) -> Any:
    shape = self_spec.shape
    if len(shape) == len(other.shape) == 2:
        return matmul(g, permute(other, (1, 0)))
    matrix = other if len(other.shape) > 1 else reshape(other, (*other.shape, 1))
    found = matmul(_as_matrices(g, shape, other.shape), matrix_transpose(matrix))
    return reshape(sum_to(found, shape if len(shape) > 1 else (1, *shape)), shape)


def _by_other(g: Any, self: Any, other_spec: TensorSpec) -> Any:
    shape = other_spec.shape
    if len(shape) == len(self.shape) == 2:
        return matmul(permute(self, (1, 0)), g)
    g = _as_matrices(g, self.shape, shape)
    matrix = self if len(self.shape) > 1 else reshape(self, (1, *self.shape))
    if (
        len(shape) <= 2 < len(self.shape)
    ):  # one weight for a whole batch: one product instead of a sum of many
        matrix, g = _flat(matrix), _flat(g)
    found = matmul(matrix_transpose(matrix), g)
    return reshape(sum_to(found, shape if len(shape) > 1 else (*shape, 1)), shape)


# -- batches -----------------------------------------------------------------------------------------------------------
def _batched(info: BatchInfo, in_dims: Dims, self: Any, other: Any) -> Batched:
    """Vectors against one matrix are one product of matrices; all else becomes a stack of products."""
    x, y = (logical_shape(one, dim) for one, dim in zip((self, other), in_dims))
    shape = (info.batch_size, *matmul_shape(x, y))
    if in_dims[1] is None and len(y) < 3:
        return info.call(self, other), 0
    if in_dims[0] is None and len(x) < 3 and len(y) == 1:
        return info.call(other, matrix_transpose(self) if len(x) == 2 else self), 0
    rank = max(len(x), len(y), 2)
    rows = self if len(x) > 1 else reshape(self, (*self.shape[:-1], 1, *x))
    columns = other if len(y) > 1 else reshape(other, (*other.shape, 1))
    found = info.call(at_rank(rows, in_dims[0], rank), at_rank(columns, in_dims[1], rank))
    return (found if found.shape == shape else reshape(found, shape)), 0


# -- matmul ------------------------------------------------------------------------------------------------------------
_MATRICES = (
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((1, 1), (1, 1)),
    ((33, 17), (17, 9)),
)
_STACKS = (((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)))
_MIXED = (
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((0,), (0,)),
    ((2, 0, 3), (3, 4)),
)


def _samples(dtype: DType) -> Iterable[Sample]:
    pairs: Iterable[Any] = (*_MATRICES, *_STACKS, *_MIXED)
    for one, two in pairs:
        yield Sample((Draw(one), Draw(two)))
    for layout in LAYOUTS:
        yield Sample((Draw((3, 4), layout=layout), Draw((4, 5), layout=layout)))
        yield Sample((Draw((3, 4), layout=layout), Draw((4,), layout=layout)))


def _errors() -> Iterable[Bad]:
    yield Bad((Draw((3, 4)), Draw((3, 4))), ValueError, "inner sizes are 4 and 3")
    yield Bad((Draw((2, 3, 4)), Draw((3, 4, 5))), ValueError, "broadcast")
    yield Bad((Draw(()), Draw((3,))), ValueError, "0-d")
    yield Bad((Draw((3,)), 2.0), ValueError, "0-d")
    yield Bad((Draw((3,), dtype=bool_), Draw((3,), dtype=bool_)), TypeError, "does not take bool")
    yield Bad((Draw((3,), dtype=int64), Draw((3,), dtype=uint64)), TypeError, "uint64")
    yield Bad((Draw((3,)), None), TypeError, "other")


matmul: Any = library(
    "contraction",
    "matmul(Tensor self, Tensor other) -> Tensor",
    _meta,
    _kernel,
    doc="""The matrix product; also ``x @ y``.

    Args:
        self: a tensor of shape ``(..., M, K)``, or ``(K,)``: then M goes away.
        other: a tensor of shape ``(..., K, N)``, or ``(K,)``: then N goes away. The leading axes broadcast.

    Returns:
        A tensor of shape ``(..., M, N)`` and the promoted dtype; float16 and bfloat16 are summed in float32.

    Raises:
        ShapeError: an operand is 0-d, the inner sizes differ, or the leading axes do not broadcast.
        DTypeError: bool, or dtypes that do not promote.

    >>> td.matmul(td.ones((2, 3)), td.ones(3)).tolist()
    [3.0, 3.0]
    """,
    reference=references.matmul,
    dtypes=NUMERIC,
    derivative=Rule(
        vjp={"self": _by_self, "other": _by_other},
        jvp={"self": lambda t, other: matmul(t, other), "other": lambda t, self: matmul(self, t)},
    ),
    batching=_batched,
    samples=_samples,
    errors=_errors,
    tolerance=SUMS,
    autocast="lower",
)


# -- composites --------------------------------------------------------------------------------------------------------
@composite(
    "outer(Tensor self, Tensor other) -> Tensor",
    doc="""The outer product of two vectors.

    Args:
        self: a tensor of shape ``(M,)``.
        other: a tensor of shape ``(N,)``.

    Returns:
        A tensor of shape ``(M, N)`` with the products of all pairs.

    Raises:
        ShapeError: an operand is not 1-d.

    >>> td.outer(td.arange(2), td.arange(3)).tolist()
    [[0, 0, 0], [0, 1, 2]]
    """,
    reference="numpy.outer",
    samples=lambda dtype: [Sample((Draw((m,)), Draw((n,)))) for m, n in ((3, 4), (0, 2), (1, 1))],
    errors=lambda: [Bad((Draw((2, 2)), Draw((2,))), ValueError, "1-d")],
    dtypes=NUMERIC,
)
def outer(self: Any, other: Any) -> Any:
    if len(spec_of(self).shape) != 1 or len(spec_of(other).shape) != 1:
        raise ShapeError(f"outer: needs two 1-d tensors, not {spec_of(self)} and {spec_of(other)}")
    return reshape(self, (*self.shape, 1)) * other


@composite(
    "vecdot(Tensor self, Tensor other, *, int axis=-1) -> Tensor",
    doc="""The sum of products along one axis.

    Args:
        self, other: tensors that broadcast, with the same size along the axis.
        axis: the axis to sum over, negative: counted from the last.

    Returns:
        A tensor of the broadcast shape without that axis, of the promoted dtype.

    Raises:
        ShapeError: the sizes along the axis differ, or the shapes do not broadcast.
        DTypeError: bool or complex.
        OutOfBoundsError: an operand has no such axis.

    >>> td.vecdot(td.asarray([1.0, 2.0]), td.asarray([3.0, 4.0])).item()
    11.0
    """,
    reference=references.vecdot,
    samples=lambda dtype: [
        Sample((Draw((3,)), Draw((3,)))),
        Sample((Draw((2, 3)), Draw((3,)))),
        Sample((Draw((2, 3)), Draw((2, 3))), {"axis": -2}),
        Sample((Draw((0,)), Draw((0,)))),
    ],
    errors=lambda: [
        Bad((Draw((2, 3)), Draw((2, 1))), ValueError, "differ"),
        Bad((Draw((3,)), Draw((3,))), IndexError, "out of bounds", {"axis": -2}),
    ],
    dtypes=REAL,
    tolerance=SUMS,
    autocast="lower",
)
def vecdot(self: Any, other: Any, *, axis: int) -> Any:
    dtype = compute_dtype("vecdot", "same", REAL, (self, other))
    one, two = spec_of(self), spec_of(other)
    sizes = [spec.shape[normalize_axis("vecdot", axis, len(spec.shape))] for spec in (one, two)]
    if sizes[0] != sizes[1]:
        raise ShapeError(f"vecdot: the sizes along axis {axis} of {one} and {two} differ")
    return sum(self * other, axis, dtype=dtype)


@composite(
    "tensordot(Tensor self, Tensor other, Any axes=2) -> Tensor",
    doc="""Products summed over several axes of each operand.

    Args:
        self, other: tensors.
        axes: how many: the last of ``self`` with the first of ``other``, in order; or a pair of axis sequences.

    Returns:
        A tensor with the other axes of ``self``, then those of ``other``, of the promoted dtype.

    Raises:
        ShapeError: the sizes of a pair of axes differ.
        ArgumentError: ``axes`` is neither an int nor a pair.

    >>> td.tensordot(td.ones((2, 3)), td.ones((3, 4)), 1).shape
    (2, 4)
    """,
    reference=references.tensordot,
    samples=lambda dtype: [
        Sample((Draw((2, 3, 4)), Draw((3, 4, 5)))),
        Sample((Draw((2, 3)), Draw((3, 4)), 1)),
        Sample((Draw((2,)), Draw((3,)), 0)),
        Sample((Draw((2, 3, 4)), Draw((4, 5, 2)), ((0, 2), (2, 0)))),
    ],
    errors=lambda: [
        Bad((Draw((2, 3)), Draw((2, 3)), 1), ValueError, "differ"),
        Bad((Draw((2, 3)), Draw((2, 3)), 3), IndexError, "out of bounds"),
        Bad((Draw((2, 3)), Draw((2, 3)), "ab"), TypeError, "axes"),
    ],
    dtypes=NUMERIC,
    tolerance=SUMS,
    autocast="lower",
)
def tensordot(self: Any, other: Any, axes: Any) -> Any:
    summed, against = _axis_pairs(self, other, axes)
    kept = [axis for axis in range(len(self.shape)) if axis not in summed]
    left = [axis for axis in range(len(other.shape)) if axis not in against]
    sizes, rows, columns = (
        [x.shape[a] for a in at] for x, at in ((self, summed), (self, kept), (other, left))
    )
    if sizes != [other.shape[axis] for axis in against]:
        raise ShapeError(
            f"tensordot: sizes along axes {summed} of {self.shape} and {against} of {other.shape} differ"
        )
    one = reshape(permute(self, (*kept, *summed)), (math.prod(rows), math.prod(sizes)))
    two = reshape(permute(other, (*against, *left)), (math.prod(sizes), math.prod(columns)))
    return reshape(matmul(one, two), (*rows, *columns))


def _axis_pairs(self: Any, other: Any, axes: Any) -> tuple[list[int], list[int]]:
    ranks = len(spec_of(self).shape), len(spec_of(other).shape)
    if type(axes) is int:
        if not 0 <= axes <= min(ranks):
            raise OutOfBoundsError(
                f"tensordot: axes {axes} is out of bounds for operands of {ranks[0]} and {ranks[1]} dimensions"
            )
        axes = range(-axes, 0), range(axes)
    try:
        pairs = [[side] if type(side) is int else [int(axis) for axis in side] for side in axes]
        one, two = (
            [normalize_axis("tensordot", a, rank) for a in side]
            for side, rank in zip(pairs, ranks, strict=True)
        )
    except (TypeError, ValueError):
        raise ArgumentError(
            f"tensordot: axes {axes!r} is neither an int nor a pair of axis sequences"
        ) from None
    if len(one) != len(two):
        raise ShapeError(f"tensordot: axes {axes!r} pair different numbers of axes")
    return one, two
