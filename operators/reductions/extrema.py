"""Extrema with their indices, as in PyTorch: ``max.dim``, ``min.dim``, ``cummax``, ``cummin``, ``aminmax``.

``x.max(dim=1)`` is ``max.dim``: the keyword ``dim`` selects the overload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...registry.dtypes import DEFAULT_INT, is_half
from ...registry.values import TensorSpec
from ..creation.creation import arange
from ..declare.batching import Batched, BatchInfo, Dims
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.derivatives import NotDifferentiable
from ..declare.docstrings import make_docstring
from ..declare.kinds import array_op, composite, reduction, scan
from ..declare.named_results import MinAndMax, ValuesAndIndices
from ..declare.native_kernel import Decomposition, NativeKernel, NativeLoop
from ..declare.shape_rules import compute_dtype, normalize_axis, spec_of
from ..elementwise.casting import stop_gradient
from ..elementwise.comparison import eq, isnan, logical_or
from ..elementwise.selection import where
from ..indexing.take import take_along_axis
from ..shape.rearrange import squeeze
from ..shape.views import reshape
from .folds import MAX, MIN, ORDERED, TIE_RULE, argmax, argmin, max, min

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Function, Tensor

_DIM_TEXT = """Args:
    self: a real tensor of at least one axis; NaN counts as {extremum}.
    dim: the axis.
    keepdim: whether the axis remains, with length 1.

Returns:
    ``(values, indices)``, a named tuple; int64 indices of the first such element. The derivative goes to that element.

Raises:
    OutOfBoundsError: there is no such axis.
    ShapeError: the axis has no elements."""
_POSITIONS_TEXT = """Args:
    self: a real tensor of at least one axis; NaN is as extreme as possible.
    axis: the axis.

Returns:
    An int64 tensor of the same shape; of equal elements the last one counts.

Raises:
    OutOfBoundsError: there is no such axis."""
_SCAN_TEXT = """Args:
    self: a real tensor of at least one axis; after a NaN all values are NaN.
    axis: the axis.

Returns:
    ``(values, indices)``, a named tuple of tensors of the same shape; int64 indices of the last such element so far.

Raises:
    OutOfBoundsError: there is no such axis."""


def take_at(self: Tensor, indices: Tensor, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The elements at one index along an axis, and the indices; the axis has length 1 in ``indices``."""
    along = normalize_axis("take_along_axis", axis, len(spec_of(self).shape))
    values = take_along_axis(self, indices, along)
    return (values, indices) if keepdim else (squeeze(values, along), squeeze(indices, along))


def _extremum_errors() -> list[ErrorInput]:
    return [
        ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds"),
        ErrorInput((TensorSample((2, 0)), 1), ValueError, "no elements"),
    ]


@composite(
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    doc=make_docstring(
        "The largest elements along an axis, and their indices.",
        _DIM_TEXT.format(extremum="the largest"),
        "td.max(td.asarray([[1, 2], [4, 3]]), dim=1).indices -> [1, 0]",
    ),
    reference="references.order.max_dim",
    samples="samples.order.dim_samples",
    errors=_extremum_errors,
    dtypes=ORDERED,
    spellings={"axis": "dim", "keepdims": "keepdim"},
    result_type=ValuesAndIndices,
)
def max_dim(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return take_at(self, argmax(self, dim, keepdims=True), dim, keepdim)


@composite(
    "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    doc=make_docstring(
        "The smallest elements along an axis, and their indices.",
        _DIM_TEXT.format(extremum="the smallest"),
        "td.min(td.asarray([[1, 2], [4, 3]]), dim=1).indices -> [0, 1]",
    ),
    reference="references.order.min_dim",
    samples="samples.order.dim_samples",
    errors=_extremum_errors,
    dtypes=ORDERED,
    spellings={"axis": "dim", "keepdims": "keepdim"},
    result_type=ValuesAndIndices,
)
def min_dim(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return take_at(self, argmin(self, dim, keepdims=True), dim, keepdim)


@composite(
    "aminmax(Tensor self, *, int? axis=None, bool keepdims=False) -> (Tensor min, Tensor max)",
    doc=make_docstring(
        "The smallest and the largest element, of all or along an axis; NaN if there is one.",
        """Args:
    self: a real tensor.
    axis: the axis, or None for all elements.
    keepdims: whether reduced axes remain, with length 1.

Returns:
    ``(min, max)``, a named tuple.

Raises:
    OutOfBoundsError: there is no such axis.
    ShapeError: there are no elements.""",
        "td.aminmax(td.asarray([2, 1, 3])).max -> 3",
    ),
    reference="references.order.aminmax",
    samples="samples.kinds.index_reduction_samples",
    errors=lambda: [ErrorInput((TensorSample((0,)),), ValueError, "no elements")],
    dtypes=ORDERED,
    result_type=MinAndMax,
)
def aminmax(self: Tensor, *, axis: int | None, keepdims: bool) -> tuple[Tensor, Tensor]:
    return min(self, axis, keepdims=keepdims), max(self, axis, keepdims=keepdims)


# -- scans -------------------------------------------------------------------------------------------------------------
running_max = scan(
    "running_max",
    MAX,
    doc="The largest element up to and including each along an axis; NaN from the first NaN on.",
    example="td.ops.td.running_max(td.asarray([1, 3, 2]), 0) -> [1, 3, 3]",
    reference="references.order.running_max",
    dtypes=ORDERED,
    derivative=NotDifferentiable("cummax has a derivative"),
    method=False,
)
running_min = scan(
    "running_min",
    MIN,
    doc="The smallest element up to and including each along an axis; NaN from the first NaN on.",
    example="td.ops.td.running_min(td.asarray([3, 1, 2]), 0) -> [3, 1, 1]",
    reference="references.order.running_min",
    dtypes=ORDERED,
    derivative=NotDifferentiable("cummin has a derivative"),
    method=False,
)


def _compose_positions(running: OperatorFunction[Tensor], self: Tensor, axis: int) -> Tensor:
    """Compute the positions of running extrema by two scans."""
    spec = spec_of(self)
    column = [n if at == axis else 1 for at, n in enumerate(spec.shape)]
    numbers = reshape(arange(spec.shape[axis], device=spec.device), column)
    is_new = eq(self, running(self, axis))
    if spec.dtype.is_inexact:
        is_new = logical_or(is_new, isnan(self))
    return running_max(where(is_new, numbers, 0), axis)


def _positions_rule(self: TensorSpec, axis: int) -> TensorSpec:
    spec = spec_of(self)
    compute_dtype("cummax", "same", ORDERED, (spec,))
    normalize_axis("cummax", axis, len(spec.shape))
    return TensorSpec(spec.shape, DEFAULT_INT, spec.device)


def _accumulate(xp: ArrayModule, name: str, values: Array) -> Array:
    """Scan the last axis by `maximum` or `minimum`: in steps of powers of two outside NumPy."""
    combine = getattr(xp, name)
    if xp is np:
        scanned: Array = combine.accumulate(values, axis=-1)
        return scanned
    result, count, step = values.copy(), values.shape[-1], 1
    while step < count:
        result[..., step:] = combine(result[..., step:], result[..., :-step])
        step *= 2
    return result


def _positions_kernel(xp: ArrayModule, name: str, self: Array, axis: int) -> Array:
    """Find the elements that are running extrema, and spread their positions."""
    values = xp.moveaxis(self.astype(xp.float32) if is_half(self.dtype) else self, axis, -1)
    is_new = (values == _accumulate(xp, name, values)) | (values != values)
    positions = xp.where(is_new, xp.arange(values.shape[-1]), 0)
    result: Array = xp.ascontiguousarray(xp.moveaxis(_accumulate(xp, "maximum", positions), -1, axis))
    return result


def _declare_positions(
    name: str, running: OperatorFunction[Tensor], kernel: Function, text: str, example: str
) -> OperatorFunction[Tensor]:
    def batched(info: BatchInfo, in_dims: Dims, self: Tensor, axis: int) -> Batched:
        return info.call(self, normalize_axis(info.name, axis, len(self.shape) - 1) + 1), 0

    return array_op(
        "gather",
        f"{name}(Tensor self, int axis) -> Tensor",
        _positions_rule,
        kernel,
        doc=make_docstring(text, _POSITIONS_TEXT, example),
        reference=f"references.order.{name}",
        dtypes=ORDERED,
        derivative=NotDifferentiable(f"{name} returns integers"),
        native=NativeKernel((NativeLoop("tandem", name),), is_exact=True, axis=lambda self, axis: axis),
        decomposition=Decomposition(
            lambda self, axis: _compose_positions(running, self, normalize_axis(name, axis, len(self.shape)))
        ),
        batching=batched,
        samples="samples.order.scan_samples",
        errors=lambda: [ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds")],
        method=False,
    )


running_argmax = _declare_positions(
    "running_argmax",
    running_max,
    lambda xp, self, axis: _positions_kernel(xp, "maximum", self, axis),
    "The index of the largest element up to and including each along an axis.",
    "td.ops.td.running_argmax(td.asarray([1, 3, 2]), 0) -> [0, 1, 1]",
)
running_argmin = _declare_positions(
    "running_argmin",
    running_min,
    lambda xp, self, axis: _positions_kernel(xp, "minimum", self, axis),
    "The index of the smallest element up to and including each along an axis.",
    "td.ops.td.running_argmin(td.asarray([3, 1, 2]), 0) -> [0, 1, 1]",
)


def _with_indices(
    name: str,
    running: OperatorFunction[Tensor],
    positions: OperatorFunction[Tensor],
    self: Tensor,
    axis: int,
) -> tuple[Tensor, Tensor]:
    """Return running extrema and their indices: on the CPU a loop finds these, on other devices two scans."""
    spec, constant = spec_of(self), stop_gradient(self)
    along = normalize_axis(name, axis, len(spec.shape))
    if spec.device == "cpu":
        indices = positions(constant, along)
    else:
        indices = _compose_positions(running, constant, along)
    return take_along_axis(self, indices, along), indices


def _declare_scan(
    name: str,
    running: OperatorFunction[Tensor],
    positions: OperatorFunction[Tensor],
    summary: str,
    example: str,
) -> OperatorFunction[tuple[Tensor, Tensor]]:
    def body(self: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        return _with_indices(name, running, positions, self, axis)

    declared: Callable[..., OperatorFunction[tuple[Tensor, Tensor]]] = composite(
        f"{name}(Tensor self, int axis) -> (Tensor values, Tensor indices)",
        doc=make_docstring(summary, _SCAN_TEXT, example),
        reference=f"references.order.{name}",
        samples="samples.order.scan_samples",
        errors=lambda: [ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds")],
        dtypes=ORDERED,
        result_type=ValuesAndIndices,
    )
    return declared(body)


cummax = _declare_scan(
    "cummax",
    running_max,
    running_argmax,
    "The largest element up to and including each along an axis, and its index.",
    "td.cummax(td.asarray([1, 3, 2]), 0).indices -> [0, 1, 1]",
)
cummin = _declare_scan(
    "cummin",
    running_min,
    running_argmin,
    "The smallest element up to and including each along an axis, and its index.",
    "td.cummin(td.asarray([3, 1, 2]), 0).indices -> [0, 1, 1]",
)

amax = reduction(
    "amax",
    MAX,
    doc="The largest element over axes; NaN if there is one. It is `max` without the overloads that return indices.",
    example="td.amax(td.asarray([[1, 2], [3, 4]]), 0) -> [3, 4]",
    reference="numpy.max",
    dtypes=ORDERED,
    derivative=TIE_RULE,
)
amin = reduction(
    "amin",
    MIN,
    doc="The smallest element over axes; NaN if there is one. It is `min` without the overloads that return indices.",
    example="td.amin(td.asarray([[1, 2], [3, 4]]), 0) -> [1, 2]",
    reference="numpy.min",
    dtypes=ORDERED,
    derivative=TIE_RULE,
)
