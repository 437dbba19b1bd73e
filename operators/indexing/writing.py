"""put_along_axis and fill_diagonal, which return a new tensor; ``td`` has NumPy's, which write in place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...errors import ShapeError, UnsupportedError
from ...registry.dtypes import ALL
from ..creation.creation import arange, full
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import is_tensor, normalize_axis, spec_of
from ..elementwise.casting import cast
from ..shape.views import reshape
from .gather import index_put
from .take import take

if TYPE_CHECKING:
    from ...registry.types import Tensor
    from ...registry.values import TensorSpec

_INPLACE = "inplace: must be False, as in JAX: tensors are not written."


def _check_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise UnsupportedError(
            f"{name}: inplace=True is not supported; use the new tensor that {name} returns"
        )


def _cast_values(values: Tensor, spec: TensorSpec) -> Tensor:
    """Values to write into a tensor; a number too becomes a tensor."""
    if is_tensor(values):
        return cast(values, spec.dtype)
    return full((), values, dtype=spec.dtype, device=spec.device)


@composite(
    "put_along_axis(Tensor self, Tensor indices, Tensor values, int? axis=-1, *, bool inplace=False) -> Tensor",
    doc=make_docstring(
        "The tensor with values at the positions along an axis that `indices` has for each element.",
        f"""Args:
    self: any tensor.
    indices: a tensor of integers with as many axes; all but ``axis`` broadcast with those of ``self``.
    values: the values; they broadcast with the indices, and are cast to the dtype of ``self``.
    axis: the axis along which the values of ``indices`` are positions; None: ``self`` is indexed as if it were flat.
    {_INPLACE}

Returns:
    A new tensor of the shape and dtype of ``self``.

Raises:
    ShapeError: the numbers of axes differ, or the shapes do not broadcast.
    OutOfBoundsError: a position or the axis is out of bounds.
    IndexArgumentError: ``indices`` are not integers.
    UnsupportedError: ``inplace`` is True.""",
        "td.ops.td.put_along_axis(td.asarray([[1, 2], [3, 4]]), td.asarray([[1], [0]]), 9) -> [[1, 9], [9, 4]]",
    ),
    reference="references.numpy_functions.put_along_axis",
    samples="samples.indexing.put_along_samples",
    errors="samples.indexing.put_along_errors",
    dtypes=ALL,
    method=False,
    spellings={"arr": "self"},
)
def put_along_axis(
    self: Tensor, indices: Tensor, values: Tensor, axis: int | None, *, inplace: bool
) -> Tensor:
    _check_inplace("put_along_axis", inplace)
    spec, shape = spec_of(self), spec_of(indices).shape
    values = _cast_values(values, spec)
    if axis is None:
        if len(shape) != 1:
            raise ShapeError(f"put_along_axis: without an axis the indices have one axis, not shape {shape}")
        return reshape(index_put(reshape(self, (spec.size,)), [indices], values), spec.shape)
    rank = len(shape)
    if len(spec.shape) != rank:
        raise ShapeError(
            f"put_along_axis: the indices {spec_of(indices)} need as many axes as shape {spec.shape}"
        )
    along = normalize_axis("put_along_axis", axis, rank)
    grid = [
        indices
        if at == along
        else reshape(arange(n, device=spec.device), [n if a == at else 1 for a in range(rank)])
        for at, n in enumerate(spec.shape)
    ]
    return index_put(self, grid, values)


@composite(
    "fill_diagonal(Tensor self, Tensor val, bool wrap=False, *, bool inplace=False) -> Tensor",
    doc=make_docstring(
        "The tensor with values on its main diagonal.",
        f"""Args:
    self: a tensor of two axes, or of more axes of one length.
    val: the value, or a tensor of values, which repeat along the diagonal; they are cast to the dtype of ``self``.
    wrap: whether the diagonal of a tall matrix starts again after each square.
    {_INPLACE}

Returns:
    A new tensor.

Raises:
    ShapeError: there are fewer than two axes, or more whose lengths differ, or no values.
    UnsupportedError: ``inplace`` is True.""",
        "td.ops.td.fill_diagonal(td.zeros((2, 2)), 5) -> [[5.0, 0.0], [0.0, 5.0]]",
    ),
    reference="references.numpy_functions.fill_diagonal",
    samples="samples.indexing.fill_diagonal_samples",
    errors="samples.indexing.fill_diagonal_errors",
    dtypes=ALL,
    method=False,
    spellings={"a": "self"},
)
def fill_diagonal(self: Tensor, val: Tensor, wrap: bool, *, inplace: bool) -> Tensor:
    _check_inplace("fill_diagonal", inplace)
    spec = spec_of(self)
    shape, rank = spec.shape, len(spec.shape)
    if rank < 2 or (rank > 2 and len(set(shape)) > 1):
        raise ShapeError(f"fill_diagonal: needs two axes, or more of one length, not shape {shape}")
    step = shape[1] + 1 if rank == 2 else 1 + sum(math.prod(shape[at:]) for at in range(1, rank))
    end = spec.size if wrap or rank > 2 else min(spec.size, shape[1] * shape[1])
    if not end:
        return self
    slots = arange(0, end, step, device=spec.device)
    val, count = _cast_values(val, spec), spec_of(val).size
    if spec_of(val).shape:
        if not count:
            raise ShapeError("fill_diagonal: there are no values")
        val = take(reshape(val, (count,)), arange(slots.shape[0], device=spec.device) % count)
    return reshape(index_put(reshape(self, (spec.size,)), [slots], val), shape)
