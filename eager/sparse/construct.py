"""Create sparse tensors from their parts and from other tensors, with checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError, OutOfBoundsError, ShapeError, UnsupportedError
from ...operators.declare.shape_rules import check_shape
from ...operators.sparse_quantized.sparse import check_pattern
from ...registry.layouts import Layout, as_layout, sparse_coo, sparse_csr, strided
from ...registry.values import describe
from ..meta.tensor import MetaTensor
from ..tensor.construct import asarray
from ..tensor.dunders import by_name
from ..tensor.tensor import EAGER, Tensor
from .indices import IndexSpace, index_space_of, linear_index
from .tensor import Pattern, SparseTensor, dense, sparse_tensor

if TYPE_CHECKING:
    from ...registry.types import Array, DTypeLike


def check_indices(space: IndexSpace, name: str, what: str, value: object, rank: int) -> Array:
    """An integer array of a rank."""
    given = asarray(value)
    array = space.array(f"{name}: {what}", given)
    if not array.size and not isinstance(value, (Tensor, np.ndarray)):
        array = array.astype(np.int64)  # [] has the default float dtype
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{name}: {what} are integers, not {given.dtype}")
    if array.ndim != rank:
        raise ShapeError(f"{name}: {what} have {rank} axes, not shape {array.shape}")
    return array


def _values(name: str, values: object, dtype: DTypeLike | None, indices: object) -> Tensor:
    """Convert values to a tensor; a list is moved to the device of the indices."""
    result = asarray(values, dtype)
    if isinstance(indices, Tensor) and not isinstance(values, Tensor):
        result = result.to(indices.device)
    if isinstance(result, (SparseTensor, MetaTensor)):
        raise UnsupportedError(
            f"{name}: values are a dense tensor with elements, not {describe(result)} ({result!r})"
        )
    return result


def _check_count(name: str, values: Tensor, count: int) -> None:
    if values.shape != (count,):
        raise ShapeError(
            f"{name}: {count} positions take {count} values, a 1-d tensor, not shape {values.shape}"
        )


def make_coo(
    indices: object, values: object, shape: Sequence[int] | None, dtype: DTypeLike | None, requires_grad: bool
) -> SparseTensor:
    """Implement :func:`tandem.sparse_coo_tensor`."""
    name = "sparse_coo_tensor"
    stored = _values(name, values, dtype, indices)
    space = index_space_of(stored.device)
    with space.on():
        coordinates = check_indices(space, name, "indices", indices, 2)
        _check_count(name, stored, coordinates.shape[1])
        tensor = sparse_tensor(_check_coo(space, name, coordinates, shape), stored)
    return tensor.requires_grad_() if requires_grad else tensor


def _check_coo(space: IndexSpace, name: str, coordinates: Array, shape: Sequence[int] | None) -> Pattern:
    if shape is None:
        if not coordinates.size:
            raise ShapeError(f"{name}: without elements the shape must be given")
        shape = tuple(int(size) + 1 for size in coordinates.max(axis=1))
    sizes = check_shape(name, shape)
    if len(sizes) != len(coordinates) or not sizes:
        raise ShapeError(
            f"{name}: indices with {len(coordinates)} rows are positions in as many axes, not in shape {sizes}"
        )
    for axis, (row, size) in enumerate(zip(coordinates, sizes)):
        if row.size and not (row.min() >= 0 and row.max() < size):
            raise OutOfBoundsError(
                f"{name}: indices from {int(row.min())} to {int(row.max())} along axis {axis}, which has size {size}"
            )
    stored = tuple(map(space.own, coordinates))
    steps = space.xp.diff(linear_index(stored, sizes))
    return Pattern(sparse_coo, sizes, stored, bool((steps > 0).all()), space)


def make_csr(
    crow_indices: object,
    col_indices: object,
    values: object,
    shape: Sequence[int] | None,
    dtype: DTypeLike | None,
    requires_grad: bool,
) -> SparseTensor:
    """Implement :func:`tandem.sparse_csr_tensor`."""
    name = "sparse_csr_tensor"
    stored = _values(name, values, dtype, col_indices)
    space = index_space_of(stored.device)
    with space.on():
        crow = check_indices(space, name, "crow_indices", crow_indices, 1)
        col = check_indices(space, name, "col_indices", col_indices, 1)
        _check_count(name, stored, len(col))
        tensor = sparse_tensor(_check_csr(space, name, crow, col, shape), stored)
    return tensor.requires_grad_() if requires_grad else tensor


def _check_csr(space: IndexSpace, name: str, crow: Array, col: Array, shape: Sequence[int] | None) -> Pattern:
    if shape is None:
        shape = (len(crow) - 1, int(col.max()) + 1 if col.size else 0)
    sizes = check_shape(name, shape)
    if len(sizes) != 2 or len(crow) != sizes[0] + 1:
        raise ShapeError(
            f"{name}: {len(crow)} crow_indices are those of {len(crow) - 1} rows, not of shape {sizes}"
        )
    crow, col = space.own(crow), space.own(col)
    check_pattern(name, crow, col, sizes[1])
    pattern = Pattern(sparse_csr, sizes, (crow, col), False, space)
    pattern.is_coalesced = bool((space.xp.diff(pattern.linear()) > 0).all())
    return pattern


# -- other layouts -----------------------------------------------------------------------------------------------------
def take_values(values: Tensor, order: Array) -> Tensor:
    """The values at positions, in their order; gradients flow back to them."""
    return by_name("index")(values, (index_space_of(values.device).tensor(order),), 0)


def coalesce(x: SparseTensor) -> SparseTensor:
    """Sort the indices of a sparse tensor and add the values of equal indices."""
    pattern = x._pattern
    if pattern.is_coalesced:
        return x
    return sum_duplicates(pattern.layout, pattern.shape, pattern.linear(), x._values)


def sum_duplicates(layout: Layout, shape: tuple[int, ...], linear: Array, values: Tensor) -> SparseTensor:
    """Create a coalesced sparse tensor from values at linear (row-major) indices; equal indices are added."""
    space = index_space_of(values.device)
    xp = space.xp
    order = xp.argsort(linear, kind="stable")  # fast on what is sorted already, or in two parts
    ordered = linear[order]
    is_first = xp.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    if bool(is_first.all()):
        return from_linear_index(layout, shape, ordered, take_values(values, order))
    group = xp.empty(len(ordered), np.int64)
    group[order] = xp.cumsum(is_first, dtype=np.int64) - 1
    distinct = ordered[is_first]
    zeros = by_name("zeros")((len(distinct),), dtype=values.dtype, device=values.device)
    added = by_name("index_put")(zeros, (space.tensor(group),), values, 0, accumulate=True)
    return from_linear_index(layout, shape, distinct, added)


def from_linear_index(layout: Layout, shape: tuple[int, ...], linear: Array, values: Tensor) -> SparseTensor:
    """Create a coalesced sparse tensor from values at sorted, distinct linear (row-major) indices."""
    space = index_space_of(values.device)
    coordinates = space.xp.unravel_index(linear, shape) if linear.size else (linear,) * len(shape)
    return sparse_tensor(
        Pattern(layout, shape, _to_stored_indices(space, layout, shape, coordinates), True, space), values
    )


def _to_stored_indices(
    space: IndexSpace, layout: Layout, shape: tuple[int, ...], coordinates: Array | Sequence[Array]
) -> tuple[Array, ...]:
    """The index arrays that a pattern of a layout stores for coordinates, whose rows are sorted."""
    if layout == sparse_coo:
        return tuple(map(space.own, coordinates))
    rows, columns = coordinates
    return space.own(space.xp.searchsorted(rows, space.xp.arange(shape[0] + 1))), space.own(columns)


def to_csr(x: SparseTensor) -> tuple[Array, Array, Tensor]:
    """``(row starts, columns, values)`` of a matrix of either layout; the first two are arrays."""
    pattern, values = x._pattern, x._values
    space = pattern.space
    if pattern.layout == sparse_csr:
        crow, col = pattern.indices
        return crow, col, values
    if pattern.rows is None:
        rows, columns = pattern.indices
        order = None if pattern.is_coalesced else space.xp.argsort(rows, kind="stable")
        if order is not None:
            rows, columns = rows[order], columns[order]
        pattern.rows = (*_to_stored_indices(space, sparse_csr, pattern.shape, (rows, columns)), order)
    crow, col, order = pattern.rows
    return crow, col, values if order is None else take_values(values, order)


def to_csr_tensors(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`to_csr`, but all three are tensors."""
    crow, col, values = to_csr(x)
    space = x._pattern.space
    return space.tensor(crow), space.tensor(col), values


def to_sparse(x: Tensor, layout: str) -> Any:
    """Implement ``x.to_sparse(layout=...)``; the result is dense for the layout ``td.strided``."""
    wanted = as_layout(layout)
    if wanted == strided:
        return dense(x)
    if wanted == sparse_csr and len(x.shape) != 2:
        raise ShapeError(f"to_sparse: the layout sparse_csr is for matrices, not for shape {x.shape}")
    if isinstance(x, SparseTensor):
        if x.layout == wanted:
            return x
        with x._pattern.space.on():
            x = coalesce(x)
            return from_linear_index(wanted, x.shape, x._pattern.linear(), x._values)
    if type(x) not in EAGER or isinstance(x, MetaTensor):
        raise UnsupportedError(
            f"to_sparse: how many elements are not zero follows from the data, which {x!r} lacks; make the tensor "
            "sparse outside of the transform: its values may be transformed inside"
        )
    if not x.shape:
        raise ShapeError("to_sparse: a 0-d tensor has no positions")
    space, flat = index_space_of(x.device), by_name("reshape")(x, (-1,))
    with space.on():
        (positions,) = by_name("nonzero")(flat.detach())
        linear = space.array("to_sparse", positions)
        return from_linear_index(wanted, x.shape, linear, take_values(flat, linear))


def coalesce_tensor(x: Tensor) -> Tensor:
    """Implement ``x.coalesce()``: coalesce a sparse tensor; return a dense tensor itself."""
    if not isinstance(x, SparseTensor):
        return x
    with x._pattern.space.on():
        return coalesce(x)


__all__ = [
    "coalesce",
    "coalesce_tensor",
    "dense",
    "from_linear_index",
    "make_coo",
    "make_csr",
    "take_values",
    "to_csr_tensors",
    "to_sparse",
]
