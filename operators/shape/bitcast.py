"""bitcast: the memory of a tensor as elements of another dtype, ``x.view(dtype)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DTypeError, ShapeError
from ...registry.dtypes import ALL, DType, bool_
from ...registry.values import TensorSpec
from ..declare.derivatives import NotDifferentiable
from ..declare.docstrings import make_docstring
from ..declare.kinds import view
from ..declare.shape_rules import spec_of
from ..declare.view_spec import ViewLayout

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Tensor
    from ..declare.batching import Batched, BatchInfo, Dims


def _shape_rule(self: TensorSpec, dtype: DType) -> TensorSpec:
    spec = spec_of(self)
    old, new = spec.dtype.itemsize, dtype.itemsize
    if dtype is bool_ and spec.dtype is not bool_:
        raise DTypeError(f"bitcast: elements of {spec.dtype} need not be bools; compare them, as in x != 0")
    if old == new:
        return TensorSpec(spec.shape, dtype, spec.device)
    if not spec.shape:
        raise ShapeError(
            f"bitcast: a 0-d tensor of {spec.dtype} has no axis for elements of {dtype}; reshape it to (1,)"
        )
    *lead, last = spec.shape
    if last * old % new:
        raise ShapeError(
            f"bitcast: {last * old} bytes, the last axis of {spec}, are not a whole number of elements of {dtype}"
        )
    return TensorSpec((*lead, last * old // new), dtype, spec.device)


def _rule(x: ViewLayout, dtype: DType) -> ViewLayout | None:
    """The layout in elements of the new dtype; None if these are not whole numbers of its elements apart."""
    old, new = x.itemsize, dtype.itemsize
    if old == new:
        return x
    *lead, step = x.strides
    if step != 1 or any(distance * old % new != 0 for distance in (*lead, x.offset)):
        return None
    strides = (*(stride * old // new for stride in lead), 1)
    return ViewLayout((*x.sizes[:-1], x.sizes[-1] * old // new), strides, x.offset * old // new, new)


def _kernel(xp: ArrayModule, self: Array, dtype: DType) -> Array:
    old, new = self.dtype.itemsize, dtype.itemsize
    if old != new and (self.strides[-1] != old or any(step % new for step in self.strides[:-1])):
        self = xp.ascontiguousarray(self)
    result: Array = self.view(dtype.np)
    return result


def _batched(info: BatchInfo, in_dims: Dims, self: Tensor, dtype: DType) -> Batched:
    _shape_rule(TensorSpec(self.shape[1:], self.dtype), dtype)  # which raises for examples without axes
    return bitcast(self, dtype), 0


bitcast: OperatorFunction[Tensor] = view(
    "bitcast(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    _rule,
    shape_rule=_shape_rule,
    kernel=_kernel,
    doc=make_docstring(
        "The memory of a tensor as elements of another dtype: `x.view(dtype)` of NumPy and PyTorch.",
        """Args:
    self: any tensor.
    dtype: the dtype of the result; bool only of bools.

Returns:
    A view whose last axis is longer by the quotient of the sizes of the elements; a copy, which ``copy=False`` forbids,
    if the sizes differ and the last axis is not contiguous, or the others are not whole numbers of elements apart.

Raises:
    DTypeError: other elements as bools.
    ShapeError: the sizes differ, and there is no axis, or the last one is not a whole number of elements long.
    ValueArgumentError: with ``copy=False``, the elements would have to be copied.""",
        "td.bitcast(td.asarray([1.0, -2.0]), td.int32) -> [1065353216, -1073741824]",
    ),
    reference="references.basic.bitcast",
    dtypes=ALL,
    derivative=NotDifferentiable("bits have no derivative"),
    batching=_batched,
    samples="samples.shape.bitcast_samples",
    errors="samples.shape.bitcast_errors",
    method=False,
)
