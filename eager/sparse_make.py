"""Making sparse tensors of their parts and of other tensors, with what is checked then."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, OutOfBoundsError, ShapeError, UnsupportedError
from ..operators.rules import check_shape
from ..operators.sparse import check_pattern
from ..registry.layouts import Layout, as_layout, sparse_coo, sparse_csr, strided
from ..registry.values import describe
from .construct import asarray
from .dunders import by_name
from .meta_tensor import MetaTensor
from .sparse_tensor import (
    Pattern,
    SparseTensor,
    dense,
    frozen,
    linear_index,
    sparse_tensor,
)
from .tensor import EAGER, Tensor, wrap


def positions(name: str, what: str, value: Any, rank: int) -> Any:
    """An integer array of a rank."""
    given = asarray(value)
    array = given._host(f"{name}: {what}")
    if not array.size and not isinstance(value, (Tensor, np.ndarray)):
        array = array.astype(np.int64)  # [] has the default float dtype
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{name}: {what} are integers, not {given.dtype}")
    if array.ndim != rank:
        raise ShapeError(f"{name}: {what} have {rank} axes, not shape {array.shape}")
    return array


def _values(name: str, values: Any, dtype: Any, count: int) -> Any:
    found = asarray(values, dtype)
    if isinstance(found, (SparseTensor, MetaTensor)):
        raise UnsupportedError(
            f"{name}: values are a dense tensor on the CPU, not {describe(found)} ({found!r})"
        )
    if found.shape != (count,):
        raise ShapeError(f"{name}: {count} places take {count} values, a 1-d tensor, not shape {found.shape}")
    return found


def make_coo(indices: Any, values: Any, shape: Any, dtype: Any, requires_grad: bool) -> SparseTensor:
    """What :func:`tandem.sparse_coo_tensor` gives."""
    name = "sparse_coo_tensor"
    places = positions(name, "indices", indices, 2)
    found = _values(name, values, dtype, places.shape[1])
    if shape is None:
        if not places.size:
            raise ShapeError(f"{name}: without elements the shape must be given")
        shape = tuple(int(size) + 1 for size in places.max(axis=1))
    sizes = check_shape(name, shape)
    if len(sizes) != len(places) or not sizes:
        raise ShapeError(
            f"{name}: indices with {len(places)} rows are places in as many axes, not in shape {sizes}"
        )
    for axis, (row, size) in enumerate(zip(places, sizes)):
        if row.size and not (row.min() >= 0 and row.max() < size):
            raise OutOfBoundsError(
                f"{name}: indices from {row.min()} to {row.max()} along axis {axis}, which has size {size}"
            )
    coordinates = tuple(map(frozen, places))
    steps = np.diff(linear_index(coordinates, sizes))
    made = sparse_tensor(Pattern(sparse_coo, sizes, coordinates, bool((steps > 0).all())), found)
    return made.requires_grad_() if requires_grad else made


def make_csr(
    crow_indices: Any, col_indices: Any, values: Any, shape: Any, dtype: Any, requires_grad: bool
) -> SparseTensor:
    """What :func:`tandem.sparse_csr_tensor` gives."""
    name = "sparse_csr_tensor"
    crow = positions(name, "crow_indices", crow_indices, 1)
    col = positions(name, "col_indices", col_indices, 1)
    found = _values(name, values, dtype, len(col))
    if shape is None:
        shape = (len(crow) - 1, int(col.max()) + 1 if col.size else 0)
    sizes = check_shape(name, shape)
    if len(sizes) != 2 or len(crow) != sizes[0] + 1:
        raise ShapeError(
            f"{name}: {len(crow)} crow_indices are those of {len(crow) - 1} rows, not of shape {sizes}"
        )
    crow, col = frozen(crow), frozen(col)
    check_pattern(name, crow, col, sizes[1])
    pattern = Pattern(sparse_csr, sizes, (crow, col), False)
    pattern.is_coalesced = bool((np.diff(pattern.linear()) > 0).all())
    made = sparse_tensor(pattern, found)
    return made.requires_grad_() if requires_grad else made


# -- other layouts -----------------------------------------------------------------------------------------------------
def pick(values: Any, order: Any) -> Any:
    """The values at positions, in their order; gradients flow back to them."""
    return by_name("index")(values, (wrap(order),), 0)


def coalesce(x: SparseTensor) -> SparseTensor:
    """The tensor with its places sorted and the values of equal places added."""
    pattern = x._pattern
    if pattern.is_coalesced:
        return x
    return summed(pattern.layout, pattern.shape, pattern.linear(), x._values)


def summed(layout: Layout, shape: tuple[int, ...], linear: Any, values: Any) -> SparseTensor:
    """A coalesced sparse tensor of values at places, numbers in row-major order; those at equal places are added."""
    order = np.argsort(linear, kind="stable")  # fast on what is sorted already, or in two parts
    found = linear[order]
    is_first = np.ones(len(found), bool)
    np.not_equal(found[1:], found[:-1], out=is_first[1:])
    if is_first.all():
        return of_places(layout, shape, found, pick(values, order))
    group = np.empty(len(found), np.int64)
    group[order] = np.cumsum(is_first) - 1
    distinct = found[is_first]
    zeros = by_name("zeros")((len(distinct),), dtype=values.dtype, device=values.device)
    added = by_name("index_put")(zeros, (wrap(group),), values, 0, accumulate=True)
    return of_places(layout, shape, distinct, added)


def of_places(layout: Layout, shape: tuple[int, ...], linear: Any, values: Any) -> SparseTensor:
    """A coalesced sparse tensor; its places are numbers in row-major order, sorted."""
    coordinates = np.unravel_index(linear, shape) if linear.size else (np.zeros(0, np.int64),) * len(shape)
    return sparse_tensor(Pattern(layout, shape, _stored(layout, shape, coordinates), True), values)


def _stored(layout: Layout, shape: tuple[int, ...], coordinates: Any) -> tuple[Any, ...]:
    if layout == sparse_coo:
        return tuple(map(frozen, coordinates))
    rows, columns = coordinates
    crow = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=crow[1:])
    return frozen(crow), frozen(columns)


def rows_of(x: SparseTensor) -> tuple[Any, Any, Any]:
    """``(row starts, columns, values)`` of a matrix of either layout."""
    pattern, values = x._pattern, x._values
    if pattern.layout == sparse_csr:
        crow, col = pattern.indices
        return wrap(crow), wrap(col), values
    if pattern.rows is None:
        rows, columns = pattern.indices
        order = None if pattern.is_coalesced else np.argsort(rows, kind="stable")
        if order is not None:
            rows, columns = rows[order], columns[order]
        pattern.rows = (*_stored(sparse_csr, pattern.shape, (rows, columns)), order)
    crow, col, order = pattern.rows
    return wrap(crow), wrap(col), values if order is None else pick(values, order)


def to_sparse(x: Tensor, layout: Any) -> Any:
    """What ``x.to_sparse(layout=...)`` gives."""
    wanted = as_layout(layout)
    if wanted == strided:
        return dense(x)
    if wanted == sparse_csr and len(x.shape) != 2:
        raise ShapeError(f"to_sparse: the layout sparse_csr is for matrices, not for shape {x.shape}")
    if isinstance(x, SparseTensor):
        if x.layout == wanted:
            return x
        x = coalesce(x)
        return of_places(wanted, x.shape, x._pattern.linear(), x._values)
    if type(x) not in EAGER or isinstance(x, MetaTensor):
        raise UnsupportedError(
            f"to_sparse: how many elements are not zero follows from the data, which {x!r} lacks; make the tensor "
            "sparse outside of the transform: its values may be transformed inside"
        )
    if not x.shape:
        raise ShapeError("to_sparse: a 0-d tensor has no places")
    linear = np.flatnonzero(x._host("to_sparse"))
    values = pick(by_name("reshape")(x, (-1,)), linear)
    return of_places(wanted, x.shape, linear, values)


def coalesced(x: Tensor) -> Tensor:
    """What ``x.coalesce()`` gives."""
    return coalesce(x) if isinstance(x, SparseTensor) else x


__all__ = [
    "coalesce",
    "coalesced",
    "dense",
    "make_coo",
    "make_csr",
    "of_places",
    "pick",
    "rows_of",
    "to_sparse",
]
