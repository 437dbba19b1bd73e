"""What users write between brackets: ``x[1, 2:, None, ..., i]`` as views and one indexing operator.

NumPy's rules, all of them: integers, slices, new axes and the ellipsis select a view; integer tensors broadcast
and take elements; masks become the positions of their true elements; with any tensor, the integers beside it count as
tensors; and where a slice, a new axis or an ellipsis separates them, the axes that they make come first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import IndexArgumentError, OutOfBoundsError
from ..registry.dtypes import bool_, int64
from ..registry.function import functions
from ..registry.values import TensorBase, converters, number_stand_ins
from .creation import arange, full
from .gathering import index, index_put
from .picking import nonzero
from .rearrange import whole
from .rules import spec_of
from .slicing import Plan, basic_index, basic_put, plan_shape
from .views import inverse_permutation, permute, reshape


class Subscript(NamedTuple):
    """A subscript, understood.

    Attributes:
        plan: the view to take first; None where it is the whole tensor.
        order: the permutation of that view; None where its axes stay.
        indices: index tensors for consecutive axes of the result; empty where the view is all.
        axis: the first of these axes.
    """

    plan: Plan | None
    order: tuple[int, ...] | None = None
    indices: tuple[Any, ...] = ()
    axis: int = 0

    def view(self, x: Any) -> Any:
        """The view of ``x`` that the subscript selects, or that ``indices`` select from."""
        seen = x if self.plan is None else basic_index(x, self.plan)
        return seen if self.order is None else permute(seen, self.order)


def getitem(x: Any, key: Any) -> Any:
    """``x[key]``: a view where the key holds no tensor, list or mask, else a new tensor.

    Args:
        x: any tensor.
        key: an int, slice, None, ..., integer tensor (or array, or list of ints), mask, or a tuple of these.

    Raises:
        OutOfBoundsError: a position lies outside, there are too many indices, or a mask has another shape.
        IndexArgumentError: something else stands between the brackets.
        UnsupportedError: a traced mask; the message says what to do instead.
    """
    found = parse(x, key)
    seen = found.view(x)
    if found.indices:
        return index(seen, found.indices, found.axis)
    return basic_index(x, tuple(whole(x.shape))) if seen is x else seen


def put(x: Any, key: Any, value: Any, *, accumulate: bool = False) -> Any:
    """A copy of ``x`` where ``x[key]`` is ``value`` (``x.at[key].set``) or is added to (``x.at[key].add``).

    Args:
        x: any tensor.
        key: as for :func:`getitem`.
        value: a number or a tensor that broadcasts to ``x[key]``.
        accumulate: add, each of several values for one place; if not, the last of them stays.

    Raises:
        OutOfBoundsError, IndexArgumentError, UnsupportedError: as :func:`getitem`.
        ShapeError: the value does not broadcast.
        DTypeError: the value's dtype is of a higher kind (a float into integers).
    """
    return _write(x, parse(x, key), value, accumulate, basic_put, index_put)


def setitem(x: Any, key: Any, value: Any) -> None:
    """``x[key] = value``; arguments and exceptions are those of :func:`put`.

    The in-place operators are made from ``basic_put`` and ``index_put`` by the layer that has memory to write.
    """
    _write(x, parse(x, key), value, False, functions["td::basic_put_"], functions["td::index_put_"])


def _write(
    x: Any, found: Subscript, value: Any, accumulate: bool, write_view: Any, write_indices: Any
) -> Any:
    """Write where a subscript says; of the two writers one is called on ``x``, so that they decide what is changed."""
    plan = found.plan or tuple(whole(x.shape))
    if not found.indices:
        value = without_leading_ones(value, len(plan_shape(plan)))
        return write_view(x, value, plan, accumulate=accumulate)
    seen = found.view(x)
    value = without_leading_ones(value, _rank(seen, found))
    if seen is x:
        return write_indices(x, found.indices, value, found.axis, accumulate=accumulate)
    changed = index_put(seen, found.indices, value, found.axis, accumulate=accumulate)
    changed = changed if found.order is None else permute(changed, inverse_permutation(found.order))
    return write_view(x, changed, plan)


def _rank(seen: Any, found: Subscript) -> int:
    """The number of axes of what a subscript's indices select from its view."""
    broadcast = max(len(spec_of(one).shape) for one in found.indices)
    return len(seen.shape) - len(found.indices) + broadcast


def without_leading_ones(value: Any, rank: int) -> Any:
    """A value without the leading axes of length 1 that assignment forgives."""
    if type(value) in number_stand_ins:
        return value
    shape = spec_of(value).shape if isinstance(value, TensorBase) else np.shape(value)
    extra = len(shape) - rank
    if extra <= 0 or any(size != 1 for size in shape[:extra]):
        return value
    return reshape(value, shape[extra:])


# Asked of an int that lies outside of an axis, with the axis and its size, whether to take the nearest element.
outside: list[Callable[[int, int, int], bool]] = []


# -- from key to subscript ---------------------------------------------------------------------------------------------
class _Reader:
    """Goes through a key and the shape side by side."""

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape
        self.plan: list[Any] = []
        self.picks: list[tuple[int, Any]] = []  # axis of the view, index tensor
        self.axis = 0
        self.was_pick = self.is_split = False

    def keep(self, entry: Any) -> None:
        """An axis of the view that no tensor indexes."""
        self.plan.append(entry)
        self.axis += entry is not None
        self.was_pick = False

    def pick(self, one: Any, entry: Any) -> None:
        """An axis of the view that a tensor indexes."""
        self.is_split |= bool(self.picks) and not self.was_pick
        self.picks.append((len(self.plan), one))
        self.plan.append(entry)
        self.axis += entry is not None
        self.was_pick = True

    @property
    def size(self) -> int:
        """The size of the axis that comes next."""
        return self.shape[self.axis]


def parse(x: Any, key: Any) -> Subscript:
    """Understand a subscript of ``x``; the arguments and exceptions are those of :func:`getitem`."""
    items = [item_of(one) for one in (key if isinstance(key, tuple) else (key,))]
    shape = spec_of(x).shape
    missing = len(shape) - sum(consumed(item) for item in items)
    if missing < 0:
        raise OutOfBoundsError(f"index: {len(shape) - missing} indices are too many for shape {shape}")
    dots = sum(item is Ellipsis for item in items)
    if dots > 1:
        raise IndexArgumentError(f"index: {dots} ellipses; an index has at most one")
    if not dots:
        items.append(Ellipsis)
    has_tensor = any(isinstance(item, (TensorBase, bool)) for item in items)
    reader = _Reader(shape)
    for item in items:
        _read(reader, item, missing, has_tensor)
    return _subscript(reader)


def item_of(item: Any) -> Any:
    """One part of a key as an int, bool, slice, None, Ellipsis or tensor."""
    if item is None or item is Ellipsis or isinstance(item, (slice, TensorBase, bool)):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, (list, tuple)):
        item = _array(item)
    if isinstance(item, np.ndarray):
        if item.dtype.kind not in "biu":
            raise IndexArgumentError(
                f"index: arrays used as indices hold integers or bools, not {item.dtype}"
            )
        return converters[np.ndarray](item)
    if type(item) in number_stand_ins and item.python_type is int:
        return full((), item, dtype=int64)  # a position that is known when the compiled function runs
    try:
        return operator.index(item)
    except TypeError:
        raise IndexArgumentError(
            f"index: {item!r} is no index; what is: ints, slices, ..., None, tensors or lists of ints, and masks"
        ) from None


def _array(items: Sequence[Any]) -> Any:
    try:
        return np.asarray(items, None if items else np.int64)
    except ValueError:
        raise IndexArgumentError(f"index: {items!r} is no array of ints: its rows differ in length") from None


def consumed(item: Any) -> int:
    """How many axes one part of a key is for."""
    if isinstance(item, TensorBase) and spec_of(item).dtype is bool_:
        return len(spec_of(item).shape)
    return 0 if item is None or item is Ellipsis or isinstance(item, bool) else 1


def _read(reader: _Reader, item: Any, missing: int, has_tensor: bool) -> None:
    if item is None:
        reader.keep(None)
    elif item is Ellipsis:
        reader.was_pick = False
        for _ in range(missing):
            reader.keep((0, reader.size, 1))
    elif isinstance(item, slice):
        reader.keep(_span(item, reader.size))
    elif isinstance(item, (bool, TensorBase)):
        _read_tensor(reader, item)
    elif has_tensor:
        reader.pick(_position(item, reader), (0, reader.size, 1))
    else:
        reader.keep(_position(item, reader))


def _position(item: int, reader: _Reader) -> int:
    if -reader.size <= item < reader.size:
        return item % reader.size
    if reader.size and any(caught(item, reader.axis, reader.size) for caught in outside):
        return reader.size - 1 if item > 0 else 0
    raise OutOfBoundsError(f"index: {item} is out of bounds for axis {reader.axis} with size {reader.size}")


def _span(item: slice, size: int) -> tuple[int, int, int]:
    try:
        start, stop, step = item.indices(size)
    except (TypeError, ValueError) as fault:  # no integers, or a step of 0
        raise IndexArgumentError(f"index: {item}: {fault}") from None
    length = len(range(start, stop, step))
    return (start, length, step) if length else (0, 0, 1)


def _read_tensor(reader: _Reader, item: Any) -> None:
    if isinstance(item, bool):
        reader.pick(arange(int(item)), None)
    elif spec_of(item).dtype is not bool_:
        reader.pick(item, (0, reader.size, 1))
    elif not item.shape:
        reader.pick(nonzero(reshape(item, (1,)))[0], None)
    else:
        for one in _mask_positions(reader, item):
            reader.pick(one, (0, reader.size, 1))


def _mask_positions(reader: _Reader, mask: Any) -> Iterator[Any]:
    covered = reader.shape[reader.axis : reader.axis + len(mask.shape)]
    if covered != mask.shape:
        raise OutOfBoundsError(f"index: a mask of shape {mask.shape} for axes of shape {covered}")
    yield from nonzero(mask)


def _subscript(reader: _Reader) -> Subscript:
    plan: Plan | None = tuple(reader.plan)
    if plan == tuple(whole(reader.shape)):
        plan = None
    if not reader.picks:
        return Subscript(plan)
    axes = [axis for axis, _ in reader.picks]
    indices = tuple(one for _, one in reader.picks)
    if not reader.is_split:
        return Subscript(plan, None, indices, axes[0])
    order = (*axes, *(axis for axis in range(len(reader.plan)) if axis not in axes))
    return Subscript(plan, None if order == tuple(range(len(order))) else order, indices)
