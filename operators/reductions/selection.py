"""argselect: the positions of elements by rank, found without sorting all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DTypeError, ShapeError
from ...registry.dtypes import REAL, bool_, int64, is_half
from ...registry.values import TensorSpec
from ..creation.creation import full
from ..declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis
from ..declare.derivatives import NotDifferentiable
from ..declare.kinds import array_op
from ..declare.native_kernel import NativeKernel, NativeLoop
from ..declare.shape_rules import compute_dtype, spec_of
from ..elementwise.casting import stop_gradient
from ..indexing.take import take_along_axis
from ..shape.rearrange import moveaxis
from ..shape.splitting import slice_axis
from ..shape.views import broadcast_to, reshape
from .sorting import argsort

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Tensor

_ORDERED = (bool_, *REAL)
LEAST_SELECTED = 100
"""The length of lines from which an element is found faster by rank than by sorting positions."""


def _shape_rule(self: TensorSpec, ranks: TensorSpec) -> TensorSpec:
    spec, given = spec_of(self), spec_of(ranks)
    compute_dtype("argselect", "same", _ORDERED, (spec,))
    if given.dtype is not int64:
        raise DTypeError(f"argselect: ranks are int64, not {given.dtype}")
    if not spec.shape or not given.shape or given.shape[:-1] not in ((), spec.shape[:-1]):
        raise ShapeError(f"argselect: takes rows and ranks for all or for each, not {spec} and {given}")
    if not spec.shape[-1] and given.size:
        raise ShapeError(f"argselect: the last axis of {spec} has no elements")
    return TensorSpec((*spec.shape[:-1], given.shape[-1]), int64, spec.device)


def _kernel(xp: ArrayModule, self: Array, ranks: Array) -> Array:
    values = self.astype(xp.float32) if is_half(self.dtype) else self
    order = xp.argsort(values, -1, kind="stable")
    given = xp.broadcast_to(ranks, (*self.shape[:-1], ranks.shape[-1]))
    result: Array = xp.take_along_axis(order, xp.clip(given, 0, self.shape[-1] - 1), -1)
    return result


def _batched(info: BatchInfo, in_dims: Dims, self: Tensor, ranks: Tensor) -> Batched:
    rows = ensure_batch_axis(self, in_dims[0], info.batch_size)
    if in_dims[1] is not None:  # ranks for all rows of an example become those of each row
        given = reshape(
            ranks, (info.batch_size, *(1 for _ in rows.shape[len(ranks.shape) :]), *ranks.shape[1:])
        )
        ranks = broadcast_to(given, (*rows.shape[:-1], ranks.shape[-1]))
    elif len(ranks.shape) > 1:
        ranks = ensure_batch_axis(ranks, None, info.batch_size)
    return info.call(rows, ranks), 0


argselect = array_op(
    "gather",
    "argselect(Tensor self, Tensor ranks) -> Tensor",
    _shape_rule,
    _kernel,
    doc="""The positions of the elements at ranks in sorted order: ``take_along_axis(argsort(self), ranks)``.

    Args:
        self: a real tensor of at least one axis; NaN is the largest number, and equal elements keep their order.
        ranks: int64, of shape (k,), or (..., k) with the leading axes of ``self``; they are clipped to 0 to n - 1.

    Returns:
        A new tensor, int64, of shape (..., k).

    Raises:
        ShapeError: ``self`` has no axis or no elements along the last one, or ``ranks`` does not fit it.
        DTypeError: the tensor is complex, or the ranks are not int64.

    >>> td.ops.td.argselect(td.asarray([5, 1, 3]), td.asarray([0, 2])).tolist()
    [1, 0]

    Source: Floyd and Rivest, "Expected time bounds for selection", 1975; ``std::nth_element`` of C++.
    """,
    reference="references.arrays.argselect",
    dtypes=_ORDERED,
    derivative=NotDifferentiable("argselect returns integers"),
    native=NativeKernel(
        (NativeLoop("tandem", "argselect"),),
        failure="argselect: there is no memory for the keys",
        error=MemoryError,
        is_exact=True,
    ),
    batching=_batched,
    samples="samples.order.argselect_samples",
    errors="samples.order.argselect_errors",
    method=False,
)


def select(rows: Tensor, ranks: Tensor) -> Tensor:
    """The elements at ranks in the sorted order along the last axis."""
    return take_along_axis(rows, argselect(stop_gradient(rows), ranks))


def find_rank(self: Tensor, rank: Tensor | int, axis: int) -> Tensor:
    """The positions of the elements of a rank along an axis, which the result has with length 1.

    Args:
        self: a real tensor.
        rank: an int, or int64 with length 1 along the axis.
        axis: the axis, not negative.
    """
    if spec_of(self).shape[axis] < LEAST_SELECTED:
        order = argsort(self, axis=axis)
        return (
            slice_axis(order, axis, rank, rank + 1)
            if isinstance(rank, int)
            else take_along_axis(order, rank, axis)
        )
    given = (
        full((1,), rank, dtype=int64, device=self.device)
        if isinstance(rank, int)
        else moveaxis(rank, axis, -1)
    )
    return moveaxis(argselect(moveaxis(stop_gradient(self), axis, -1), given), -1, axis)
