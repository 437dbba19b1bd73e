"""Matrix products: ``matmul``, and the composites ``outer``, ``vecdot`` and ``tensordot``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, OutOfBoundsError, ShapeError
from ...registry.dtypes import NUMERIC, as_dtype, is_half, promote
from ...registry.values import TensorSpec
from ..creation.full import zeros
from ..declare import batching
from ..declare.batching import Batched, BatchInfo, Dims, expand_rank, logical_shape
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.derivatives import Rule
from ..declare.kinds import array_op, composite
from ..declare.native_kernel import Decomposition
from ..declare.shape_rules import broadcast_shapes, common_device, compute_dtype, normalize_axis, spec_of
from ..elementwise.casting import cast
from ..reductions.folds import sum
from ..shape.rearrange import matrix_transpose
from ..shape.views import permute, reshape, sum_to

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Tensor

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


def _shape_rule(self: TensorSpec, other: TensorSpec) -> TensorSpec:
    dtype = compute_dtype("matmul", "same", NUMERIC, (self, other))
    shape = matmul_shape(spec_of(self).shape, spec_of(other).shape)
    return TensorSpec(shape, dtype, common_device("matmul", (self, other)))


def _kernel(xp: ArrayModule, self: Array, other: Array) -> Array:
    dtype = promote(as_dtype(self.dtype), as_dtype(other.dtype)).np
    wide = xp.dtype(xp.float32) if is_half(dtype) else dtype  # BLAS has no half types
    with xp.errstate(all="ignore"):
        # first to the result's dtype, as in `mul`: an integer may be too large for it
        one, two = (x.astype(dtype, copy=False).astype(wide, copy=False) for x in (self, other))
        result = xp.matmul(one, two)
        return xp.asarray(result).astype(dtype, copy=False)


# -- the vjp of matmul -------------------------------------------------------------------------------------------------
def _to_matrices(g: Tensor, x: tuple[int, ...], y: tuple[int, ...]) -> Tensor:
    """The cotangent with the axes that 1-d operands of shapes ``x`` and ``y`` removed, of length 1."""
    rows, columns = len(x) > 1, len(y) > 1
    lead = g.shape[: len(g.shape) - rows - columns]
    return reshape(g, (*lead, x[-2] if rows else 1, y[-1] if columns else 1))


def _flatten_rows(x: Tensor) -> Tensor:
    return reshape(x, (math.prod(x.shape[:-1]), *x.shape[-1:]))


def _self_vjp(g: Tensor, self_spec: TensorSpec, other: Tensor) -> Tensor:
    shape = self_spec.shape
    if len(shape) == len(other.shape) == 2:
        return matmul(g, permute(other, (1, 0)))
    matrix = other if len(other.shape) > 1 else reshape(other, (*other.shape, 1))
    result = matmul(_to_matrices(g, shape, other.shape), matrix_transpose(matrix))
    return reshape(sum_to(result, shape if len(shape) > 1 else (1, *shape)), shape)


def _other_vjp(g: Tensor, self: Tensor, other_spec: TensorSpec) -> Tensor:
    shape = other_spec.shape
    if len(shape) == len(self.shape) == 2:
        return matmul(permute(self, (1, 0)), g)
    g = _to_matrices(g, self.shape, shape)
    matrix = self if len(self.shape) > 1 else reshape(self, (1, *self.shape))
    if len(shape) <= 2 < len(self.shape):  # one weight for a batch: one product instead of a sum of many
        matrix, g = _flatten_rows(matrix), _flatten_rows(g)
    result = matmul(matrix_transpose(matrix), g)
    return reshape(sum_to(result, shape if len(shape) > 1 else (*shape, 1)), shape)


# -- batches -----------------------------------------------------------------------------------------------------------
def _batched(info: BatchInfo, in_dims: Dims, self: Tensor, other: Tensor) -> Batched:
    """Batching rule: a batch of vectors times one matrix is one product; other calls become stacks.

    Native twin: backends/cpu/fastpath/runtime/rt_batches.py:call_product
    """
    x, y = (logical_shape(one, dim) for one, dim in zip((self, other), in_dims))
    shape = (info.batch_size, *matmul_shape(x, y))
    if in_dims[1] is None and len(y) < 3:
        return info.call(self, other), 0
    if in_dims[0] is None and len(x) < 3 and len(y) == 1:
        return info.call(other, matrix_transpose(self) if len(x) == 2 else self), 0
    rank = max(len(x), len(y), 2)
    rows = self if len(x) > 1 else reshape(self, (*self.shape[:-1], 1, *x))
    columns = other if len(y) > 1 else reshape(other, (*other.shape, 1))
    result = info.call(expand_rank(rows, in_dims[0], rank), expand_rank(columns, in_dims[1], rank))
    return (result if result.shape == shape else reshape(result, shape)), 0


# -- matmul ------------------------------------------------------------------------------------------------------------


def _needs_decomposition(self: TensorSpec, other: TensorSpec) -> bool:
    return spec_of(self).dtype is not spec_of(other).dtype or not (spec_of(self).size and spec_of(other).size)


def _of_one_dtype(self: Tensor, other: Tensor) -> Tensor:
    """The product of operands that are converted to one dtype; it is 0 where there is nothing to add."""
    spec = _shape_rule(spec_of(self), spec_of(other))
    if not (spec_of(self).size and spec_of(other).size):
        return zeros(spec.shape, dtype=spec.dtype, device=spec.device)
    return matmul(cast(self, spec.dtype), cast(other, spec.dtype))


matmul: OperatorFunction[Tensor] = array_op(
    "contraction",
    "matmul(Tensor self, Tensor other) -> Tensor",
    _shape_rule,
    _kernel,
    decomposition=Decomposition(_of_one_dtype, _needs_decomposition),
    doc="""The matrix product; also ``x @ y``.

    Args:
        self: a tensor of shape ``(..., M, K)``, or ``(K,)``: then the result has no M.
        other: a tensor of shape ``(..., K, N)``, or ``(K,)``: then the result has no N. The leading axes broadcast.

    Returns:
        A tensor of shape ``(..., M, N)`` and the promoted dtype; float16 and bfloat16 are summed in float32.

    Raises:
        ShapeError: an operand is 0-d, the inner sizes differ, or the leading axes do not broadcast.
        DTypeError: bool, or dtypes that do not promote.

    >>> td.matmul(td.ones((2, 3)), td.ones(3)).tolist()
    [3.0, 3.0]
    """,
    reference="references.basic.matmul",
    dtypes=NUMERIC,
    derivative=Rule(
        vjp={"self": _self_vjp, "other": _other_vjp},
        jvp={"self": lambda t, other: matmul(t, other), "other": lambda t, self: matmul(self, t)},
    ),
    batching=_batched,
    samples="samples.contraction.matmul_samples",
    errors="samples.contraction.matmul_errors",
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
    samples=lambda dtype: [
        SampleInput((TensorSample((m,)), TensorSample((n,)))) for m, n in ((3, 4), (0, 2), (1, 1))
    ],
    errors=lambda: [ErrorInput((TensorSample((2, 2)), TensorSample((2,))), ValueError, "1-d")],
    dtypes=NUMERIC,
)
def outer(self: Tensor, other: Tensor) -> Tensor:
    if len(spec_of(self).shape) != 1 or len(spec_of(other).shape) != 1:
        raise ShapeError(f"outer: needs two 1-d tensors, not {spec_of(self)} and {spec_of(other)}")
    return reshape(self, (*self.shape, 1)) * other


@composite(
    "vecdot(Tensor self, Tensor other, *, int axis=-1) -> Tensor",
    doc="""The sum of products along one axis; of complex tensors, those with the conjugate of ``self``.

    Args:
        self, other: numeric tensors that broadcast, with the same size along the axis.
        axis: the axis to sum over; negative axes count from the last.

    Returns:
        A tensor of the broadcast shape without that axis, of the promoted dtype.

    Raises:
        ShapeError: the sizes along the axis differ, or the shapes do not broadcast.
        DTypeError: bool.
        OutOfBoundsError: an operand has no such axis.

    >>> td.vecdot(td.asarray([1.0, 2.0]), td.asarray([3.0, 4.0])).item()
    11.0
    """,
    reference="references.basic.vecdot",
    samples=lambda dtype: [
        SampleInput((TensorSample((3,)), TensorSample((3,)))),
        SampleInput((TensorSample((2, 3)), TensorSample((3,)))),
        SampleInput((TensorSample((2, 3)), TensorSample((2, 3))), {"axis": -2}),
        SampleInput((TensorSample((0,)), TensorSample((0,)))),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), TensorSample((2, 1))), ValueError, "differ"),
        ErrorInput((TensorSample((3,)), TensorSample((3,))), IndexError, "out of bounds", {"axis": -2}),
    ],
    dtypes=NUMERIC,
    tolerance=SUMS,
    autocast="lower",
)
def vecdot(self: Tensor, other: Tensor, *, axis: int) -> Tensor:
    dtype = compute_dtype("vecdot", "same", NUMERIC, (self, other))
    one, two = spec_of(self), spec_of(other)
    sizes = [spec.shape[normalize_axis("vecdot", axis, len(spec.shape))] for spec in (one, two)]
    if sizes[0] != sizes[1]:
        raise ShapeError(f"vecdot: the sizes along axis {axis} of {one} and {two} differ")
    if one.dtype.kind == "c":
        self = batching.get_operator("conj")(self)
    return sum(self * other, axis, dtype=dtype)


@composite(
    "tensordot(Tensor self, Tensor other, Any axes=2) -> Tensor",
    doc="""Products summed over several axes of each operand.

    Args:
        self, other: tensors.
        axes: an int n: the last n axes of ``self`` and the first n of ``other``; or a pair of sequences.

    Returns:
        A tensor with the other axes of ``self``, then those of ``other``, of the promoted dtype.

    Raises:
        ShapeError: the sizes of a pair of axes differ.
        ArgumentError: ``axes`` is neither an int nor a pair.

    >>> td.tensordot(td.ones((2, 3)), td.ones((3, 4)), 1).shape
    (2, 4)
    """,
    reference="references.basic.tensordot",
    samples=lambda dtype: [
        SampleInput((TensorSample((2, 3, 4)), TensorSample((3, 4, 5)))),
        SampleInput((TensorSample((2, 3)), TensorSample((3, 4)), 1)),
        SampleInput((TensorSample((2,)), TensorSample((3,)), 0)),
        SampleInput((TensorSample((2, 3, 4)), TensorSample((4, 5, 2)), ((0, 2), (2, 0)))),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), TensorSample((2, 3)), 1), ValueError, "differ"),
        ErrorInput((TensorSample((2, 3)), TensorSample((2, 3)), 3), IndexError, "out of bounds"),
        ErrorInput((TensorSample((2, 3)), TensorSample((2, 3)), "ab"), TypeError, "axes"),
    ],
    dtypes=NUMERIC,
    tolerance=SUMS,
    autocast="lower",
    promotes=True,
)
def tensordot(self: Tensor, other: Tensor, axes: int | Sequence[int | Sequence[int]]) -> Tensor:
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


def _axis_pairs(self: Tensor, other: Tensor, axes: Any) -> tuple[list[int], list[int]]:  # noqa: ANN401
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
