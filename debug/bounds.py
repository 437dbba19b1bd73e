"""Bounds checks of indices for ``checkify``: find indices out of bounds, and clamp them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..registry.operator import Operator


class Bounds(NamedTuple):
    """The bounds check of an indexing call.

    Attributes:
        faults: for each index: whether any element is out of bounds, the first such element, the axis and its size.
        args: the arguments with clamped indices.
    """

    faults: list[tuple[Any, Any, int, int]]
    args: tuple[Any, ...]


def _clamp_index(index: Any, axis: int, size: int, faults: list[tuple[Any, Any, int, int]]) -> Any:
    """Clamp an index to ``[-size, size)``; append to ``faults`` whether an element was out of bounds."""
    index = asarray(index) if not isinstance(index, Tensor) else index
    if index.dtype.kind not in "iu":
        return index
    bad = by_name("logical_or")(index < -size, index >= size)
    flat = by_name("reshape")(bad, (-1,))
    if not flat.shape[0]:
        return index
    first = by_name("take")(
        by_name("reshape")(index, (-1,)), by_name("argmax")(by_name("astype")(flat, "int32"), 0), 0
    )
    faults.append((by_name("any")(bad), first, axis, size))
    return by_name("clip")(index, -size, size - 1) if size else index


def _check_take(op: Operator, args: tuple[Any, ...]) -> Bounds:
    tensor, _, axis, *_ = args
    if axis is None:
        return _check_axis(tensor.size, 0, args, 1)
    axis = axis % len(tensor.shape) if tensor.shape else 0
    return _check_axis(tensor.shape[axis] if tensor.shape else 1, axis, args, 1)


def _check_axis(size: int, axis: int, args: tuple[Any, ...], place: int) -> Bounds:
    faults: list[tuple[Any, Any, int, int]] = []
    index = _clamp_index(args[place], axis, size, faults)
    return Bounds(faults, (*args[:place], index, *args[place + 1 :]))


def _check_index(op: Operator, args: tuple[Any, ...]) -> Bounds:
    """``index`` and ``index_put``: a list of index tensors for neighbouring axes, from ``axis`` on."""
    tensor, indices = args[0], args[1]
    first = args[[a.name for a in op.schema.positional].index("axis")] % max(len(tensor.shape), 1)
    faults: list[tuple[Any, Any, int, int]] = []
    inside = tuple(
        [
            _clamp_index(i, axis, tensor.shape[axis], faults)
            for axis, i in enumerate(indices, first)
            if axis < len(tensor.shape)
        ]
    )
    return Bounds(faults, (tensor, inside, *args[2:]))


INDEXING: dict[str, Callable[[Operator, tuple[Any, ...]], Bounds]] = {
    "td::take": _check_take,
    "td::take_along_axis": _check_take,
    "td::index": _check_index,
    "td::index_put": _check_index,
    "td::index_put_": _check_index,
    "td::index_reduce": _check_index,
    "td::index_reduce_": _check_index,
}
