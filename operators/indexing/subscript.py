"""Subscripts: ``x[1, 2:, None, ..., i]`` as a view and at most one operator ``index``.

The rules are NumPy's: integers, slices, new axes and the ellipsis select a view; integer tensors broadcast and select
elements; masks are replaced by the positions of their true elements; if a key has a tensor, its integers count as
tensors too; and if a slice, a new axis or an ellipsis separates the tensors, their axes come first in the result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import IndexArgumentError, OutOfBoundsError
from ...named_tuple import NamedTuple
from ...registry.dtypes import bool_, int64
from ...registry.function import function_of, functions
from ...registry.values import TensorBase, converters, traced_number_types
from ..creation.creation import arange, full
from ..declare.shape_rules import spec_of
from ..elementwise.arithmetic import mul
from ..elementwise.casting import astype
from ..elementwise.selection import maximum, minimum
from ..shape.rearrange import full_plan
from ..shape.views import inverse_permutation, permute, reshape
from .gather import index, index_put
from .slicing import Plan, basic_index, basic_put, check_storable, plan_shape
from .take import nonzero

if TYPE_CHECKING:
    from ...registry.types import Array, IndexItem, Tensor, TensorLike


class Subscript(NamedTuple):
    """A parsed subscript.

    Attributes:
        plan: the index plan of the view; None: the whole tensor.
        order: the permutation of the view's axes; None: no permutation.
        indices: index tensors for consecutive axes of the permuted view; empty: the view is the result.
        axis: the first of these axes.
    """

    plan: Plan | None
    order: tuple[int, ...] | None = None
    indices: tuple[Any, ...] = ()
    axis: int = 0

    def view(self, x: Tensor) -> Tensor:
        """The view of ``x`` that the subscript selects, to which ``indices`` apply."""
        seen = x if self.plan is None else basic_index(x, self.plan)
        return seen if self.order is None else permute(seen, self.order)


def getitem(x: Tensor, key: object) -> Tensor:
    """``x[key]``: a view if the key has no tensor, list or mask, else a new tensor.

    Args:
        x: any tensor.
        key: an int, slice, None, ..., integer tensor (or array, or list of ints), mask, or a tuple of these.

    Raises:
        OutOfBoundsError: a position is out of bounds, there are too many indices, or a mask has another shape.
        IndexArgumentError: a part of the key is of another type.
        UnsupportedError: a traced mask, whose number of true elements is unknown.
    """
    result = parse_subscript(x, key)
    seen = result.view(x)
    if result.indices:
        return index(seen, result.indices, result.axis)
    return basic_index(x, tuple(full_plan(x.shape))) if seen is x else seen


def put(x: Tensor, key: object, value: Any, *, combine: str = "") -> Tensor:
    """A copy of ``x`` where ``x[key]`` is ``value`` (``x.at[key].set``) or is combined with it (``x.at[key].add``).

    Args:
        x: any tensor.
        key: as for :func:`getitem`.
        value: a number or a tensor that broadcasts to ``x[key]``.
        combine: ``"add"``, ``"multiply"``, ``"minimum"`` or ``"maximum"``: combine with all values for each position;
            empty: replace the element; the last of several values is stored.

    Raises:
        OutOfBoundsError, IndexArgumentError, UnsupportedError: as :func:`getitem`.
        ShapeError: the value does not broadcast.
        DTypeError: the value's dtype is of a higher kind (a float into integers).
    """
    return _write(x, parse_subscript(x, key), value, _FUNCTIONAL[combine])


def setitem(x: Tensor, key: object, value: Any) -> None:
    """``x[key] = value``, in place; arguments and exceptions are those of :func:`put`.

    The in-place operators ``basic_put_`` and ``index_put_`` are derived from the functional ones by ``eager``.
    """
    view, indices = functions["td::basic_put_"], functions["td::index_put_"]
    _write(x, parse_subscript(x, key), value, Writer(view, indices, index_put, view))


class Writer(NamedTuple):
    """The operators that write at a subscript.

    Attributes:
        view: writes into a view: ``view(x, value, plan)``.
        indices: writes at integer positions: ``indices(x, positions, value, axis)``.
        within: the same for a view of the tensor; returns a new tensor.
        back: writes that new tensor back into the view: ``back(x, changed, plan)``.
    """

    view: Callable[..., Tensor]
    indices: Callable[..., Tensor]
    within: Callable[..., Tensor]
    back: Callable[..., Tensor]


def _functional_writer(view: Callable[..., Any], indices: Callable[..., Any]) -> Writer:
    """A writer that returns new tensors."""
    return Writer(view, indices, indices, basic_put)


def _combining_writer(name: str, combine: Callable[..., Any]) -> Writer:
    """A writer that combines by an operator; on a view, which has no element twice, it applies the operator itself."""

    def write_view(x: Tensor, value: Any, plan: Plan) -> Tensor:
        check_storable("index_reduce", spec_of(x), value, plan_shape(plan))
        given = astype(value, x.dtype, copy=False) if isinstance(value, TensorBase) else value
        return basic_put(x, combine(basic_index(x, plan), given), plan)

    def write_indices(x: Tensor, indices: Tensor, value: Any, axis: int) -> Tensor:
        return function_of("td::index_reduce")(x, indices, value, axis, reduce=name)

    return _functional_writer(write_view, write_indices)


_FUNCTIONAL = {
    "": _functional_writer(basic_put, index_put),
    "add": _functional_writer(partial(basic_put, accumulate=True), partial(index_put, accumulate=True)),
    "multiply": _combining_writer("multiply", mul),
    "minimum": _combining_writer("minimum", minimum),
    "maximum": _combining_writer("maximum", maximum),
}


def _write(x: Tensor, subscript: Subscript, value: Any, write: Writer) -> Tensor:
    """Write at a subscript of ``x`` by the functions of a writer, which write in place or return a new tensor."""
    plan = subscript.plan or tuple(full_plan(x.shape))
    if not subscript.indices:
        value = without_leading_ones(value, len(plan_shape(plan)))
        return write.view(x, value, plan)
    view = subscript.view(x)
    value = without_leading_ones(value, _selected_rank(view, subscript))
    if view is x:
        return write.indices(x, subscript.indices, value, subscript.axis)
    changed = write.within(view, subscript.indices, value, subscript.axis)
    changed = changed if subscript.order is None else permute(changed, inverse_permutation(subscript.order))
    return write.back(x, changed, plan)


def _selected_rank(view: Any, subscript: Subscript) -> int:
    """The number of axes that a subscript's index tensors select from its view."""
    broadcast = max(len(spec_of(one).shape) for one in subscript.indices)
    return len(view.shape) - len(subscript.indices) + broadcast


def without_leading_ones(value: TensorLike, rank: int) -> TensorLike:
    """A value without excess leading axes of length 1, which assignment allows."""
    if type(value) in traced_number_types:
        return value
    shape = spec_of(value).shape if isinstance(value, TensorBase) else np.shape(value)
    extra = len(shape) - rank
    if extra <= 0 or any(size != 1 for size in shape[:extra]):
        return value
    return reshape(value, shape[extra:])


# Called with an out-of-bounds int, its axis and the size; True selects the nearest element.
out_of_bounds_hooks: list[Callable[[int, int, int], bool]] = []


# -- from key to subscript ---------------------------------------------------------------------------------------------
class _SubscriptParser:
    """The state of parsing a key: the plan so far and the next axis of the shape."""

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape
        self.plan: list[Any] = []
        self.index_tensors: list[tuple[int, Any]] = []  # axis of the view, index tensor
        self.axis = 0
        self.was_index = self.is_split = False

    def add_axis(self, entry: Any) -> None:
        """Append an axis of the view that no tensor indexes."""
        self.plan.append(entry)
        self.axis += entry is not None
        self.was_index = False

    def add_index(self, one: Tensor | int, entry: Any) -> None:
        """Append an axis of the view that a tensor indexes."""
        self.is_split |= bool(self.index_tensors) and not self.was_index
        self.index_tensors.append((len(self.plan), one))
        self.plan.append(entry)
        self.axis += entry is not None
        self.was_index = True

    @property
    def size(self) -> int:
        """The size of the next axis."""
        return self.shape[self.axis]


def parse_subscript(x: Tensor, key: object) -> Subscript:
    """Parse a subscript of ``x``; the arguments and exceptions are those of :func:`getitem`."""
    items = [normalize_item(one) for one in (key if isinstance(key, tuple) else (key,))]
    shape = spec_of(x).shape
    missing = len(shape) - sum(count_axes(item) for item in items)
    if missing < 0:
        raise OutOfBoundsError(f"index: {len(shape) - missing} indices are too many for shape {shape}")
    dots = sum(item is Ellipsis for item in items)
    if dots > 1:
        raise IndexArgumentError(f"index: {dots} ellipses; an index has at most one")
    if not dots:
        items.append(Ellipsis)
    has_tensor = any(isinstance(item, (TensorBase, bool, np.ndarray)) for item in items)
    parser = _SubscriptParser(shape)
    for item in items:
        _parse_item(parser, item, missing, has_tensor)
    return _build_subscript(parser)


def normalize_item(item: Any) -> IndexItem:
    """One part of a key as an int, bool, slice, None, Ellipsis, tensor, or an ndarray for a list of bools."""
    if item is None or item is Ellipsis or isinstance(item, (slice, TensorBase, bool)):
        return item  # type: ignore[return-value]  # at run time every TensorBase is a Tensor
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, (list, tuple)):
        array = item = _to_array(item)
        if array.dtype.kind == "b":
            return array
    if isinstance(item, np.ndarray):
        if item.dtype.kind not in "biu":
            raise IndexArgumentError(
                f"index: arrays used as indices hold integers or bools, not {item.dtype}"
            )
        return converters[np.ndarray](item)
    if type(item) in traced_number_types and item.python_type is int:
        return full((), item, dtype=int64)  # a position that is known when the compiled function runs
    try:
        return operator.index(item)
    except TypeError:
        raise IndexArgumentError(
            f"index: {item!r} is not an index; use ints, slices, ..., None, tensors or lists of ints, or masks"
        ) from None


def _to_array(items: Sequence[object]) -> Array:
    try:
        return np.asarray(items, None if items else np.int64)
    except ValueError:
        raise IndexArgumentError(
            f"index: {items!r} is not an array of ints: its rows differ in length"
        ) from None


def count_axes(item: object) -> int:
    """The number of axes that one part of a key consumes."""
    if isinstance(item, np.ndarray):
        return item.ndim
    if isinstance(item, TensorBase) and spec_of(item).dtype is bool_:
        return len(spec_of(item).shape)
    return 0 if item is None or item is Ellipsis or isinstance(item, bool) else 1


def _parse_item(parser: _SubscriptParser, item: IndexItem, missing: int, has_tensor: bool) -> None:
    if item is None:
        parser.add_axis(None)
    elif item is Ellipsis:
        parser.was_index = False
        for _ in range(missing):
            parser.add_axis((0, parser.size, 1))
    elif isinstance(item, slice):
        parser.add_axis(_slice_entry(item, parser.size))
    elif isinstance(item, (bool, TensorBase, np.ndarray)):
        _parse_tensor(parser, item)
    elif has_tensor:
        parser.add_index(_check_position(item, parser), (0, parser.size, 1))
    else:
        parser.add_axis(_check_position(item, parser))


def _check_position(item: int, parser: _SubscriptParser) -> int:
    if -parser.size <= item < parser.size:
        return item % parser.size
    if parser.size and any(caught(item, parser.axis, parser.size) for caught in out_of_bounds_hooks):
        return parser.size - 1 if item > 0 else 0
    raise OutOfBoundsError(f"index: {item} is out of bounds for axis {parser.axis} with size {parser.size}")


def _slice_entry(item: slice, size: int) -> tuple[int, int, int]:
    try:
        start, stop, step = item.indices(size)
    except (TypeError, ValueError) as fault:  # not integers, or a step of 0
        raise IndexArgumentError(f"index: {item}: {fault}") from None
    length = len(range(start, stop, step))
    return (start, length, step) if length else (0, 0, 1)


def _parse_tensor(parser: _SubscriptParser, item: bool | Tensor | Array) -> None:
    if isinstance(item, bool):
        parser.add_index(arange(int(item)), None)
    elif isinstance(item, np.ndarray):
        _check_mask(parser, item)
        for one in item.nonzero():  # known in a trace, too
            parser.add_index(converters[np.ndarray](one), (0, parser.size, 1))
    elif spec_of(item).dtype is not bool_:
        parser.add_index(item, (0, parser.size, 1))
    elif not item.shape:
        parser.add_index(nonzero(reshape(item, (1,)))[0], None)
    else:
        _check_mask(parser, item)
        for indices in nonzero(item):
            parser.add_index(indices, (0, parser.size, 1))


def _check_mask(parser: _SubscriptParser, mask: Tensor | Array) -> None:
    covered = parser.shape[parser.axis : parser.axis + len(mask.shape)]
    if covered != mask.shape:
        raise OutOfBoundsError(f"index: a mask of shape {mask.shape} for axes of shape {covered}")


def _build_subscript(parser: _SubscriptParser) -> Subscript:
    plan: Plan | None = tuple(parser.plan)
    if plan == tuple(full_plan(parser.shape)):
        plan = None
    if not parser.index_tensors:
        return Subscript(plan)
    axes = [axis for axis, _ in parser.index_tensors]
    indices = tuple(one for _, one in parser.index_tensors)
    if not parser.is_split:
        return Subscript(plan, None, indices, axes[0])
    order = (*axes, *(axis for axis in range(len(parser.plan)) if axis not in axes))
    return Subscript(plan, None if order == tuple(range(len(order))) else order, indices)
