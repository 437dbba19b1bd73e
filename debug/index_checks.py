"""Index checks of ``checkify``: find indices that are out of bounds, and clamp them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..named_tuple import NamedTuple
from ..registry.operator import Operator

if TYPE_CHECKING:
    from ..registry.types import Args, TensorLike


# Whether any element of an index is out of bounds, the first such element, the axis and its size.
Fault = tuple[Tensor, Tensor, int, int]


class IndexCheck(NamedTuple):
    """The result of the index check of a call.

    Attributes:
        faults: one for each index.
        args: the arguments with clamped indices.
    """

    faults: list[Fault]
    args: Args


def _clamp_index(index: TensorLike, axis: int, size: int, faults: list[Fault]) -> Tensor:
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


def _check_take(op: Operator, args: tuple[Tensor, TensorLike, int | None, *Args]) -> IndexCheck:
    tensor, _, axis, *_ = args
    if axis is None:
        return _check_axis(tensor.size, 0, args)
    axis = axis % len(tensor.shape) if tensor.shape else 0
    return _check_axis(tensor.shape[axis] if tensor.shape else 1, axis, args)


def _check_axis(size: int, axis: int, args: tuple[Tensor, TensorLike, *Args]) -> IndexCheck:
    faults: list[Fault] = []
    index = _clamp_index(args[1], axis, size, faults)
    return IndexCheck(faults, (args[0], index, *args[2:]))


def _check_index(op: Operator, args: tuple[Tensor, tuple[TensorLike, ...], *Args]) -> IndexCheck:
    """Check ``index`` and ``index_put``, whose index tensors select from consecutive axes starting at ``axis``."""
    tensor, indices = args[0], args[1]
    axis_argument: Any = args[[a.name for a in op.schema.positional].index("axis")]
    first = axis_argument % max(len(tensor.shape), 1)
    faults: list[Fault] = []
    inside = tuple(
        [
            _clamp_index(i, axis, tensor.shape[axis], faults)
            for axis, i in enumerate(indices, first)
            if axis < len(tensor.shape)
        ]
    )
    return IndexCheck(faults, (tensor, inside, *args[2:]))


INDEX_CHECKS: dict[str, Callable[..., IndexCheck]] = {
    "td::take": _check_take,
    "td::take_along_axis": _check_take,
    "td::index": _check_index,
    "td::index_put": _check_index,
    "td::index_put_": _check_index,
    "td::index_reduce": _check_index,
    "td::index_reduce_": _check_index,
}
