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
from .sparse_places import Places, linear_index, places_at
from .sparse_tensor import Pattern, SparseTensor, dense, sparse_tensor
from .tensor import EAGER, Tensor


def positions(at: Places, name: str, what: str, value: Any, rank: int) -> Any:
    """An integer array of a rank."""
    given = asarray(value)
    array = at.array(f"{name}: {what}", given)
    if not array.size and not isinstance(value, (Tensor, np.ndarray)):
        array = array.astype(np.int64)  # [] has the default float dtype
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{name}: {what} are integers, not {given.dtype}")
    if array.ndim != rank:
        raise ShapeError(f"{name}: {what} have {rank} axes, not shape {array.shape}")
    return array


def _values(name: str, values: Any, dtype: Any, indices: Any) -> Any:
    """The values as a tensor; a list of them lies where the indices do."""
    found = asarray(values, dtype)
    if isinstance(indices, Tensor) and not isinstance(values, Tensor):
        found = found.to(indices.device)
    if isinstance(found, (SparseTensor, MetaTensor)):
        raise UnsupportedError(
            f"{name}: values are a dense tensor with elements, not {describe(found)} ({found!r})"
        )
    return found


def _check_count(name: str, values: Any, count: int) -> None:
    if values.shape != (count,):
        raise ShapeError(
            f"{name}: {count} places take {count} values, a 1-d tensor, not shape {values.shape}"
        )


def make_coo(indices: Any, values: Any, shape: Any, dtype: Any, requires_grad: bool) -> SparseTensor:
    """What :func:`tandem.sparse_coo_tensor` gives."""
    name = "sparse_coo_tensor"
    found = _values(name, values, dtype, indices)
    at = places_at(found.device)
    with at.on():
        places = positions(at, name, "indices", indices, 2)
        _check_count(name, found, places.shape[1])
        made = sparse_tensor(_checked_coo(at, name, places, shape), found)
    return made.requires_grad_() if requires_grad else made


def _checked_coo(at: Places, name: str, places: Any, shape: Any) -> Pattern:
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
                f"{name}: indices from {int(row.min())} to {int(row.max())} along axis {axis}, which has size {size}"
            )
    coordinates = tuple(map(at.own, places))
    steps = at.xp.diff(linear_index(coordinates, sizes))
    return Pattern(sparse_coo, sizes, coordinates, bool((steps > 0).all()), at)


def make_csr(
    crow_indices: Any, col_indices: Any, values: Any, shape: Any, dtype: Any, requires_grad: bool
) -> SparseTensor:
    """What :func:`tandem.sparse_csr_tensor` gives."""
    name = "sparse_csr_tensor"
    found = _values(name, values, dtype, col_indices)
    at = places_at(found.device)
    with at.on():
        crow = positions(at, name, "crow_indices", crow_indices, 1)
        col = positions(at, name, "col_indices", col_indices, 1)
        _check_count(name, found, len(col))
        made = sparse_tensor(_checked_csr(at, name, crow, col, shape), found)
    return made.requires_grad_() if requires_grad else made


def _checked_csr(at: Places, name: str, crow: Any, col: Any, shape: Any) -> Pattern:
    if shape is None:
        shape = (len(crow) - 1, int(col.max()) + 1 if col.size else 0)
    sizes = check_shape(name, shape)
    if len(sizes) != 2 or len(crow) != sizes[0] + 1:
        raise ShapeError(
            f"{name}: {len(crow)} crow_indices are those of {len(crow) - 1} rows, not of shape {sizes}"
        )
    crow, col = at.own(crow), at.own(col)
    check_pattern(name, crow, col, sizes[1])
    pattern = Pattern(sparse_csr, sizes, (crow, col), False, at)
    pattern.is_coalesced = bool((at.xp.diff(pattern.linear()) > 0).all())
    return pattern


# -- other layouts -----------------------------------------------------------------------------------------------------
def pick(values: Any, order: Any) -> Any:
    """The values at positions, in their order; gradients flow back to them."""
    return by_name("index")(values, (places_at(values.device).tensor(order),), 0)


def coalesce(x: SparseTensor) -> SparseTensor:
    """The tensor with its places sorted and the values of equal places added."""
    pattern = x._pattern
    if pattern.is_coalesced:
        return x
    return summed(pattern.layout, pattern.shape, pattern.linear(), x._values)


def summed(layout: Layout, shape: tuple[int, ...], linear: Any, values: Any) -> SparseTensor:
    """A coalesced sparse tensor of values at places, numbers in row-major order; those at equal places are added."""
    at = places_at(values.device)
    xp = at.xp
    order = xp.argsort(linear, kind="stable")  # fast on what is sorted already, or in two parts
    found = linear[order]
    is_first = xp.ones(len(found), bool)
    is_first[1:] = found[1:] != found[:-1]
    if bool(is_first.all()):
        return of_places(layout, shape, found, pick(values, order))
    group = xp.empty(len(found), np.int64)
    group[order] = xp.cumsum(is_first, dtype=np.int64) - 1
    distinct = found[is_first]
    zeros = by_name("zeros")((len(distinct),), dtype=values.dtype, device=values.device)
    added = by_name("index_put")(zeros, (at.tensor(group),), values, 0, accumulate=True)
    return of_places(layout, shape, distinct, added)


def of_places(layout: Layout, shape: tuple[int, ...], linear: Any, values: Any) -> SparseTensor:
    """A coalesced sparse tensor; its places are numbers in row-major order, sorted."""
    at = places_at(values.device)
    coordinates = at.xp.unravel_index(linear, shape) if linear.size else (linear,) * len(shape)
    return sparse_tensor(Pattern(layout, shape, _stored(at, layout, shape, coordinates), True, at), values)


def _stored(at: Places, layout: Layout, shape: tuple[int, ...], coordinates: Any) -> tuple[Any, ...]:
    """What a pattern keeps of coordinates, whose rows are sorted."""
    if layout == sparse_coo:
        return tuple(map(at.own, coordinates))
    rows, columns = coordinates
    return at.own(at.xp.searchsorted(rows, at.xp.arange(shape[0] + 1))), at.own(columns)


def compressed(x: SparseTensor) -> tuple[Any, Any, Any]:
    """``(row starts, columns, values)`` of a matrix of either layout; the first two are arrays."""
    pattern, values = x._pattern, x._values
    at = pattern.at
    if pattern.layout == sparse_csr:
        crow, col = pattern.indices
        return crow, col, values
    if pattern.rows is None:
        rows, columns = pattern.indices
        order = None if pattern.is_coalesced else at.xp.argsort(rows, kind="stable")
        if order is not None:
            rows, columns = rows[order], columns[order]
        pattern.rows = (*_stored(at, sparse_csr, pattern.shape, (rows, columns)), order)
    crow, col, order = pattern.rows
    return crow, col, values if order is None else pick(values, order)


def rows_of(x: SparseTensor) -> tuple[Any, Any, Any]:
    """As :func:`compressed`, all three tensors."""
    crow, col, values = compressed(x)
    at = x._pattern.at
    return at.tensor(crow), at.tensor(col), values


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
        with x._pattern.at.on():
            x = coalesce(x)
            return of_places(wanted, x.shape, x._pattern.linear(), x._values)
    if type(x) not in EAGER or isinstance(x, MetaTensor):
        raise UnsupportedError(
            f"to_sparse: how many elements are not zero follows from the data, which {x!r} lacks; make the tensor "
            "sparse outside of the transform: its values may be transformed inside"
        )
    if not x.shape:
        raise ShapeError("to_sparse: a 0-d tensor has no places")
    at, flat = places_at(x.device), by_name("reshape")(x, (-1,))
    with at.on():
        (places,) = by_name("nonzero")(flat.detach())
        linear = at.array("to_sparse", places)
        return of_places(wanted, x.shape, linear, pick(flat, linear))


def coalesced(x: Tensor) -> Tensor:
    """What ``x.coalesce()`` gives."""
    if not isinstance(x, SparseTensor):
        return x
    with x._pattern.at.on():
        return coalesce(x)


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
