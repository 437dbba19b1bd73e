"""The primitive views: reshape, permute and broadcast_to. A reshape copies only if the strides require it.

All other views are composed of these and of ``basic_index`` (:mod:`..indexing.slicing`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import ALL
from ...registry.values import TensorSpec
from ..declare.batching import Batched, BatchInfo, Dims, expand_rank
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.derivatives import Linear
from ..declare.kinds import view
from ..declare.shape_rules import (
    broadcast_shapes,
    check_shape,
    normalize_axes,
    normalize_axis,
    reduced_shape,
    spec_of,
)
from ..declare.view_spec import Sizes, ViewLayout, row_major_strides

if TYPE_CHECKING:
    from ...registry.dims import Dim
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

Ints = tuple[int, ...]


# -- reshape -----------------------------------------------------------------------------------------------------------
def reshape_shape(shape: Sizes, wanted: Sizes) -> Sizes:
    """The shape of a reshape, with one ``-1`` filled in.

    Raises:
        ShapeError: the number of elements differs, or there are several ``-1``.

    Native twin: backends/cpu/fastpath/entries/rt_views.py:fill_sizes
    """
    total = math.prod(shape)
    known = math.prod(size for size in wanted if size != -1)
    filled = wanted
    if wanted.count(-1) == 1 and known and total % known == 0:
        filled = tuple(total // known if size == -1 else size for size in wanted)
    if -1 in filled or math.prod(check_shape("reshape", filled)) != total:
        raise ShapeError(
            f"reshape: shape {shape} has {total} elements and does not reshape to {tuple(wanted)}"
        )
    return filled


def _reshape_shape_rule(self: TensorSpec, shape: Sizes) -> TensorSpec:
    spec = spec_of(self)
    return TensorSpec(reshape_shape(spec.shape, shape), spec.dtype, spec.device)


def reshaped_strides(shape: Sizes, strides: Sizes, wanted: Sizes) -> Sizes | None:
    """The strides of a reshape that needs no copy, or None if it needs one.

    Consecutive axes that can be merged into one are merged; each merged axis must split exactly into axes of the wanted
    shape. The same as ``computeStride`` of PyTorch.

    Native twin: backends/cpu/fastpath/entries/rt_views.py:reshape_strides
    """
    if 0 in shape:
        return row_major_strides(wanted)
    merged = _merge_axes(shape, strides)
    elements, stride = merged.pop(0)
    result: list[Dim] = []
    for size in reversed(wanted):
        if elements == 1 and size != 1:
            elements, stride = merged.pop(0)
        if elements % size:
            return None
        result.append(stride)
        elements, stride = elements // size, stride * size
    return tuple(reversed(result))


def _merge_axes(shape: Sizes, strides: Sizes) -> list[tuple[Dim, Dim]]:
    """Merge axes that one stride steps through: (elements, stride) of each merged axis, the innermost first."""
    merged: list[tuple[Dim, Dim]] = [(1, 1)]
    for size, stride in zip(reversed(shape), reversed(strides)):
        elements, inner_stride = merged[-1]
        if size == 1:
            continue
        if elements == 1:
            merged[-1] = (size, stride)
        elif stride == elements * inner_stride:
            merged[-1] = (elements * size, inner_stride)
        else:
            merged.append((size, stride))
    return merged


def _reshape_rule(x: ViewLayout, shape: Sizes) -> ViewLayout | None:
    sizes = reshape_shape(x.sizes, shape)
    strides = reshaped_strides(x.sizes, x.strides, sizes)
    return None if strides is None else ViewLayout(sizes, strides, x.offset)


def _reshape_batched(info: BatchInfo, in_dims: Dims, x: Tensor, shape: tuple[int, ...]) -> Batched:
    return info.call(x, (info.batch_size, *reshape_shape(x.shape[1:], shape))), 0


reshape: OperatorFunction[Tensor] = view(
    "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    _reshape_rule,
    shape_rule=_reshape_shape_rule,
    kernel=lambda xp, self, shape: xp.reshape(self, shape),
    doc="""The elements in row-major order in another shape: a view if the strides allow it, else a copy.

    Args:
        self: any tensor.
        shape: the new sizes; one of them may be -1, and is then inferred.

    Returns:
        A tensor of that shape and the same dtype.

    Raises:
        ShapeError: the number of elements differs.

    >>> td.reshape(td.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """,
    reference="numpy.reshape",
    dtypes=ALL,
    derivative=Linear({"self": lambda g, self_spec: reshape(g, self_spec.shape)}),
    batching=_reshape_batched,
    samples="samples.shape.reshape_samples",
    errors="samples.shape.reshape_errors",
)


# -- permute -----------------------------------------------------------------------------------------------------------
def normalize_permutation(name: str, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Non-negative axes, each of ``rank`` once.

    Raises:
        ShapeError: an axis is missing or occurs twice.
        OutOfBoundsError: an axis is out of bounds.
    """
    result = tuple(normalize_axis(name, axis, rank) for axis in axes)
    if sorted(result) != list(range(rank)):
        raise ShapeError(f"{name}: axes {tuple(axes)} are not a permutation of the {rank} axes")
    return result


def inverse_permutation(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The inverse of a permutation (of possibly negative axes)."""
    known = [axis % len(axes) for axis in axes]
    return tuple(known.index(axis) for axis in range(len(axes)))


def _permute_shape_rule(self: TensorSpec, axes: tuple[int, ...]) -> TensorSpec:
    spec = spec_of(self)
    order = normalize_permutation("permute", axes, len(spec.shape))
    return TensorSpec(tuple(spec.shape[axis] for axis in order), spec.dtype, spec.device)


def _permute_rule(x: ViewLayout, axes: Ints) -> ViewLayout:
    """The sizes and strides of a transposed view, also for symbolic sizes."""
    return ViewLayout(tuple(x.sizes[a] for a in axes), tuple(x.strides[a] for a in axes), x.offset)


def _permute_batched(info: BatchInfo, in_dims: Dims, x: Tensor, axes: tuple[int, ...]) -> Batched:
    order = normalize_permutation("permute", axes, len(x.shape) - 1)
    return info.call(x, (0, *[axis + 1 for axis in order])), 0


permute: OperatorFunction[Tensor] = view(
    "permute(Tensor(a) self, int[] axes) -> Tensor(a)",
    _permute_rule,
    shape_rule=_permute_shape_rule,
    kernel=lambda xp, self, axes: xp.transpose(self, axes),
    doc="""A view with the axes in another order; also called ``permute_dims``.

    Args:
        self: any tensor.
        axes: for each axis of the result the axis of ``self``.

    Returns:
        A view with ``shape[i] == self.shape[axes[i]]``.

    Raises:
        ShapeError: ``axes`` is not a permutation.
        OutOfBoundsError: an axis does not exist.

    >>> td.permute(td.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """,
    reference="numpy.transpose",
    dtypes=ALL,
    derivative=Linear({"self": lambda g, axes: permute(g, inverse_permutation(axes))}),
    batching=_permute_batched,
    samples="samples.shape.permute_samples",
    errors="samples.shape.permute_errors",
    aliases=("permute_dims",),
)


# -- broadcast_to ------------------------------------------------------------------------------------------------------
def _broadcast_shape_rule(self: TensorSpec, shape: Sizes) -> TensorSpec:
    spec = spec_of(self)
    wanted = check_shape("broadcast_to", shape)
    if broadcast_shapes("broadcast_to", spec.shape, wanted) != wanted:
        raise ShapeError(f"broadcast_to: shape {spec.shape} does not broadcast to {wanted}")
    return TensorSpec(wanted, spec.dtype, spec.device)


def _broadcast_rule(x: ViewLayout, shape: Sizes) -> ViewLayout:
    lead = len(shape) - len(x.sizes)
    strides = [0 if old != new else step for old, new, step in zip(x.sizes, shape[lead:], x.strides)]
    return ViewLayout(tuple(shape), (0,) * lead + tuple(strides), x.offset)


def _broadcast_batched(info: BatchInfo, in_dims: Dims, x: Tensor, shape: tuple[int, ...]) -> Batched:
    _broadcast_shape_rule(
        TensorSpec(x.shape[1:], x.dtype, x.device), shape
    )  # longer shapes must not reach the batch axis
    return info.call(expand_rank(x, 0, len(shape)), (info.batch_size, *shape)), 0


broadcast_to = view(
    "broadcast_to(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    _broadcast_rule,
    shape_rule=_broadcast_shape_rule,
    kernel=lambda xp, self, shape: xp.broadcast_to(self, shape),
    doc="""A view with the tensor repeated along new leading axes and axes of length 1.

    Args:
        self: any tensor.
        shape: the shape of the result.

    Returns:
        A view of that shape; its elements may share memory, so it cannot be written.

    Raises:
        ShapeError: the shapes do not fit by the rules of broadcasting.

    >>> td.broadcast_to(td.arange(2), (2, 2)).tolist()
    [[0, 1], [0, 1]]
    """,
    reference="numpy.broadcast_to",
    dtypes=ALL,
    derivative=Linear({"self": lambda g, self_spec: sum_to(g, self_spec.shape)}),
    batching=_broadcast_batched,
    samples="samples.shape.broadcast_samples",
    errors=lambda: [
        ErrorInput((TensorSample((3,)), (2,)), ValueError, "broadcast"),
        ErrorInput((TensorSample((2, 3)), (3,)), ValueError, "broadcast"),
        ErrorInput((TensorSample((3,)), (-1,)), ValueError, "negative"),
    ],
)


# -- helpers of derivatives -------------------------------------------------------------------------------------------
def sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum over the axes that broadcasting added or expanded: the transpose of ``broadcast_to``."""
    lead = len(x.shape) - len(shape)
    axes = tuple(range(lead)) + tuple(
        axis + lead for axis, size in enumerate(shape) if size == 1 and x.shape[axis + lead] != 1
    )
    return reshape(x.sum(axes), shape) if axes else x


def expand_reduced(g: Tensor, shape: tuple[int, ...], axis: Sequence[int] | None, keepdims: bool) -> Tensor:
    """The cotangent of a reduction's result, repeated along the reduced axes."""
    if g.shape and not keepdims:
        g = reshape(g, reduced_shape(shape, normalize_axes("reduction", axis, len(shape)), True))
    return broadcast_to(g, shape)
