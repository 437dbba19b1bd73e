"""as_strided: a view of a tensor's memory with given sizes and strides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ShapeError
from ...registry.dtypes import ALL, int64
from ...registry.values import TensorSpec
from ..creation.creation import arange
from ..creation.full import zeros
from ..declare.derivatives import Linear
from ..declare.docstrings import make_docstring
from ..declare.kinds import view
from ..declare.shape_rules import check_shape, spec_of
from ..declare.view_spec import ViewLayout, check_within, row_major_strides
from ..indexing.gather import index_put
from .views import reshape

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Tensor
    from ..declare.batching import Batched, BatchInfo, Dims

Ints = tuple[int, ...]


def _shape_rule(self: TensorSpec, size: Ints, stride: Ints, storage_offset: int | None = None) -> TensorSpec:
    spec = spec_of(self)
    sizes = check_shape("as_strided", size)
    if len(sizes) != len(stride):
        raise ShapeError(f"as_strided: {len(stride)} strides are given for {len(sizes)} axes")
    base = ViewLayout(spec.shape, row_major_strides(spec.shape))
    check_within("as_strided", ViewLayout(sizes, tuple(stride), storage_offset or 0), base)
    return TensorSpec(sizes, spec.dtype, spec.device)


def _rule(x: ViewLayout, size: Ints, stride: Ints, storage_offset: int | None = None) -> ViewLayout | None:
    """The layout, in the unit of the tensor's strides; None if the tensor is not contiguous."""
    unit = next((s for n, s in reversed([*zip(x.sizes, x.strides)]) if n != 1), 1)
    dense = [step * unit for step in row_major_strides(x.sizes)]
    if 0 not in x.sizes and any(n != 1 and (s != d or d == 0) for n, s, d in zip(x.sizes, x.strides, dense)):
        return None
    strides = tuple(step * unit for step in stride)
    return ViewLayout(tuple(size), strides, x.offset + (storage_offset or 0) * unit)


def _kernel(
    xp: ArrayModule, self: Array, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Array:
    unit = self.itemsize
    memory = xp.ascontiguousarray(self).reshape(-1).view(xp.uint8)
    steps = [step * unit for step in stride]
    result: Array = xp.ndarray(size, self.dtype, memory, (storage_offset or 0) * unit, steps)
    result.flags.writeable &= not _repeats(size, stride)
    return result


def _repeats(size: Ints, stride: Ints) -> bool:
    """Whether two elements of a view may be the same element of its memory."""
    reach = 0
    for step, length in sorted((abs(step), length) for step, length in zip(stride, size) if length > 1):
        if step <= reach:
            return True
        reach += step * (length - 1)
    return False


def _add_at_positions(
    g: Tensor, size: Ints, stride: Ints, storage_offset: int | None, spec: TensorSpec
) -> Tensor:
    """The sums of a view's elements at their positions in a tensor of a spec: the transpose of the view."""
    where = {} if spec.device == "cpu" else {"device": spec.device}
    positions: Any = storage_offset or 0
    for axis, (length, step) in enumerate(zip(size, stride)):
        along = arange(length, dtype=int64, **where) * step
        positions = positions + reshape(along, (length,) + (1,) * (len(size) - axis - 1))
    flat = zeros((spec.size,), dtype=g.dtype, **where)
    return reshape(index_put(flat, [positions], g, accumulate=True), spec.shape)


def _batched(
    info: BatchInfo,
    in_dims: Dims,
    self: Tensor,
    size: Ints,
    stride: Ints,
    storage_offset: int | None = None,
) -> Batched:
    example = TensorSpec(self.shape[1:], self.dtype, self.device)
    _shape_rule(example, size, stride, storage_offset)  # so that a view does not reach into another example
    return info.call(self, (info.batch_size, *size), (example.size, *stride), storage_offset), 0


as_strided: OperatorFunction[Tensor] = view(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
    _rule,
    shape_rule=_shape_rule,
    kernel=_kernel,
    doc=make_docstring(
        "A view of a tensor's elements, in row-major order, with given sizes and strides.",
        """Args:
    self: any tensor.
    size: the shape of the result.
    stride: for each axis the distance, in elements, between neighbours; may be 0 or negative.
    storage_offset: the number of the first element; None: 0.

Returns:
    A view, which is read only if some of its elements may be the same one of ``self``; a view of a copy if ``self`` is
    not contiguous, unlike PyTorch's, which then counts in the memory of ``self``.

Raises:
    OutOfBoundsError: an element lies outside of the tensor.
    ShapeError: there are not as many strides as sizes.

Source: ``torch.as_strided``; ``numpy.lib.stride_tricks.as_strided`` counts strides in bytes.""",
        "td.as_strided(td.arange(4), (3, 2), (1, 1)) -> [[0, 1], [1, 2], [2, 3]]",
    ),
    reference="references.basic.as_strided",
    dtypes=ALL,
    derivative=Linear(
        {
            "self": lambda g, size, stride, storage_offset, self_spec: _add_at_positions(
                g, size, stride, storage_offset, self_spec
            )
        }
    ),
    batching=_batched,
    samples="samples.shape.as_strided_samples",
    errors="samples.shape.as_strided_errors",
)
