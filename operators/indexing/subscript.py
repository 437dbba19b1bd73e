"""Subscripts: ``x[1, 2:, None, ..., i]`` as a view and at most one operator ``index``.

The rules are NumPy's: integers, slices, new axes and the ellipsis select a view; integer tensors broadcast and select
elements; masks are replaced by the positions of their true elements; if a key has a tensor, its integers count as
tensors too; and if a slice, a new axis or an ellipsis separates the tensors, their axes come first in the result.

A write at one mask of a value that does not depend on the number of true elements is a ``where``, which traces and
batches; so masks are replaced by positions only where the elements themselves are needed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...errors import IndexArgumentError, OutOfBoundsError, UndecidedError, UnsupportedError
from ...named_tuple import NamedTuple
from ...registry.dtypes import bool_, int64
from ...registry.function import function_of, functions
from ...registry.values import TensorBase, converters, traced_number_types
from ..creation.creation import arange, full
from ..creation.full import ones_like
from ..declare.shape_rules import spec_of
from ..elementwise.arithmetic import add, div, mul, pow
from ..elementwise.casting import astype
from ..elementwise.selection import maximum, minimum
from ..shape.rearrange import full_plan
from ..shape.views import inverse_permutation, permute
from .gather import index, index_put
from .masks import (
    MaskedElements,
    fill_others,
    is_mask,
    mask_positions,
    read_if_constant,
    without_leading_ones,
    write_at_mask,
)
from .slicing import Plan, basic_index, basic_put, check_storable, combine_storable, plan_shape

if TYPE_CHECKING:
    from ...registry.dims import Dim
    from ...registry.types import Array, IndexItem, Tensor

_dims = lazy.Module(".registry.dims")


class Subscript(NamedTuple):
    """A parsed subscript.

    Attributes:
        plan: the index plan of the view; None: the whole tensor.
        order: the permutation of the view's axes; None: no permutation.
        indices: index tensors for consecutive axes of the permuted view; empty: the view is the result.
        axis: the first of these axes.
        mask: instead of ``indices``, the mask of these axes, if the subscript has no other tensor.
    """

    plan: Plan | None
    order: tuple[int, ...] | None = None
    indices: tuple[Any, ...] = ()
    axis: int = 0
    mask: Any = None

    def with_positions(self) -> Subscript:
        """The subscript with the positions of the true elements instead of the mask."""
        return self if self.mask is None else self._replace(indices=mask_positions(self.mask), mask=None)

    def view(self, x: Tensor) -> Tensor:
        """The view of ``x`` that the subscript selects, to which ``indices`` apply."""
        seen = x if self.plan is None else basic_index(x, self.plan)
        return seen if self.order is None else permute(seen, self.order)


def getitem(x: Tensor, key: object) -> Any:
    """``x[key]``: a view if the key has no tensor, list or mask, else a new tensor.

    Args:
        x: any tensor.
        key: an int, slice, None, ..., integer tensor (or array, or list of ints), mask, or a tuple of these.

    Raises:
        OutOfBoundsError: a position is out of bounds, there are too many indices, or a mask has another shape.
        IndexArgumentError: a part of the key is of another type.
        UnsupportedError: two masks, or index tensors beside one, where the number of true elements is unknown.

    Returns:
        A tensor; for a single mask whose number of true elements is unknown a :class:`.masks.MaskedElements`.
    """
    result = parse_subscript(x, key)
    seen = result.view(x)
    if result.mask is not None:
        try:
            result = result.with_positions()
        except UnsupportedError as fault:
            elements = fill_others(seen, result.mask, result.axis, 1)
            return MaskedElements(elements, result.mask, result.axis, fault)
    if result.indices:
        return index(seen, result.indices, result.axis)
    return basic_index(x, tuple(full_plan(x.shape))) if seen is x else seen


def put(x: Tensor, key: object, value: Any, *, combine: str = "") -> Tensor:
    """A copy of ``x`` where ``x[key]`` is ``value`` (``x.at[key].set``) or is combined with it (``x.at[key].add``).

    Args:
        x: any tensor.
        key: as for :func:`getitem`.
        value: a number or a tensor that broadcasts to ``x[key]``.
        combine: ``"add"``, ``"multiply"``, ``"divide"``, ``"power"``, ``"minimum"`` or ``"maximum"``: combine with all
            values for each position; empty: replace the element; the last of several values is stored.

    Raises:
        OutOfBoundsError, IndexArgumentError, UnsupportedError: as :func:`getitem`.
        ShapeError: the value does not broadcast.
        DTypeError: the value's dtype is of a higher kind (a float into integers).
    """
    value = value if combine else _to_truth(x, value)
    return _write(x, parse_subscript(x, key), value, _FUNCTIONAL[combine])


def setitem(x: Tensor, key: object, value: Any) -> None:
    """``x[key] = value``, in place; arguments and exceptions are those of :func:`put`.

    The in-place operators ``basic_put_`` and ``index_put_`` are derived from the functional ones by ``eager``.
    """
    view, indices = functions["td::basic_put_"], functions["td::index_put_"]
    _write(x, parse_subscript(x, key), _to_truth(x, value), Writer(view, indices, index_put, view))


def _to_truth(x: Tensor, value: Any) -> Any:
    """A Python integer as a bool, if it is written into bools; other values are returned unchanged."""
    return bool(value) if type(value) is int and spec_of(x).dtype is bool_ else value


def add_in_place(x: Tensor, key: object, value: Any) -> None:
    """Add to ``x[key]`` in place, once for each time that a position occurs; arguments are those of :func:`put`."""
    view, indices = functions["td::basic_put_"], partial(functions["td::index_put_"], accumulate=True)
    write = Writer(partial(view, accumulate=True), indices, partial(index_put, accumulate=True), view, add)
    _write(x, parse_subscript(x, key), value, write)


def apply_at_mask(x: Tensor, key: object, function: Callable[[Tensor], Any]) -> Tensor | None:
    """A copy of ``x`` with the elements at a traced mask replaced by an elementwise function of them.

    Returns:
        None if the positions are known: the function then takes the elements alone.
    """
    subscript = parse_subscript(x, key)
    try:
        subscript.with_positions()
    except UnsupportedError:
        writer = _functional_writer(basic_put, index_put, lambda view, _: function(view))
        return _write(x, subscript, 0, writer)
    return None


class Writer(NamedTuple):
    """The operators that write at a subscript.

    Attributes:
        view: writes into a view: ``view(x, value, plan)``.
        indices: writes at integer positions: ``indices(x, positions, value, axis)``.
        within: the same for a view of the tensor; returns a new tensor.
        back: writes that new tensor back into the view: ``back(x, changed, plan)``.
        combine: combines elements with values; None: the values replace them.
    """

    view: Callable[..., Tensor]
    indices: Callable[..., Tensor]
    within: Callable[..., Tensor]
    back: Callable[..., Tensor]
    combine: Callable[[Any, Any], Any] | None = None


def _functional_writer(
    view: Callable[..., Any], indices: Callable[..., Any], combine: Callable[[Any, Any], Any] | None = None
) -> Writer:
    """A writer that returns new tensors."""
    return Writer(view, indices, indices, basic_put, combine)


def _combining_writer(name: str, combine: Callable[..., Any]) -> Writer:
    """A writer that combines by an operator; on a view, which has no element twice, it applies the operator itself."""

    def write_view(x: Tensor, value: Any, plan: Plan) -> Tensor:
        check_storable("index_reduce", spec_of(x), value, plan_shape(plan))
        given = astype(value, x.dtype, copy=False) if isinstance(value, TensorBase) else value
        return basic_put(x, combine_storable(combine, basic_index(x, plan), given), plan)

    def write_indices(x: Tensor, indices: Tensor, value: Any, axis: int) -> Tensor:
        return function_of("td::index_reduce")(x, indices, value, axis, reduce=name)

    return _functional_writer(write_view, write_indices, combine)


def _product_writer(combine: Callable[..., Any]) -> Writer:
    """A writer that combines by an operator for which several values for one element mean their product."""

    def write_view(x: Tensor, value: Any, plan: Plan) -> Tensor:
        return basic_put(x, combine_storable(combine, basic_index(x, plan), value), plan)

    def write_indices(x: Tensor, indices: Tensor, value: Any, axis: int) -> Tensor:
        product = function_of("td::index_reduce")(ones_like(x), indices, value, axis, reduce="multiply")
        combined = combine_storable(combine, index(x, indices, axis), index(product, indices, axis))
        return index_put(x, indices, combined, axis)

    return _functional_writer(write_view, write_indices, combine)


_FUNCTIONAL = {
    "": _functional_writer(basic_put, index_put),
    "add": _functional_writer(partial(basic_put, accumulate=True), partial(index_put, accumulate=True), add),
    "multiply": _combining_writer("multiply", mul),
    "divide": _product_writer(div),
    "power": _product_writer(pow),
    "minimum": _combining_writer("minimum", minimum),
    "maximum": _combining_writer("maximum", maximum),
}


def find_combination(name: str) -> Any:
    """The operator by which :func:`put` combines elements with values; None if these replace them."""
    return _FUNCTIONAL[name].combine


def _write(x: Tensor, subscript: Subscript, value: Any, write: Writer) -> Tensor:
    """Write at a subscript of ``x`` by the functions of a writer, which write in place or return a new tensor."""
    plan = subscript.plan or tuple(full_plan(x.shape))
    if not subscript.indices and subscript.mask is None:
        value = without_leading_ones(value, len(plan_shape(plan)))
        return write.view(x, value, plan)
    view = subscript.view(x)
    changed = None
    if subscript.mask is not None:
        changed = write_at_mask(view, subscript.mask, subscript.axis, value, write.combine)
    if changed is None:
        subscript = subscript.with_positions()
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


# Called with an out-of-bounds int, its axis and the size; True selects the nearest element.
out_of_bounds_hooks: list[Callable[[int, int, int], bool]] = []


# -- from key to subscript ---------------------------------------------------------------------------------------------
class _SubscriptParser:
    """The state of parsing a key: the plan so far and the next axis of the shape."""

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape
        self.plan: list[Any] = []
        self.rank = 0  # of the view so far
        self.index_tensors: list[tuple[int, Any]] = []  # axis of the view, index tensor
        self.mask: Any = None  # instead of index tensors
        self.axis = 0
        self.has_index = self.was_index = self.is_split = False

    def add_axis(self, entry: Any) -> None:
        """Append an axis of the view that no tensor indexes."""
        self._append(entry)
        self.was_index = False

    def add_index(self, one: Any, entry: Any) -> None:
        """Append an axis of the view that a tensor indexes, or the mask if ``one`` is None."""
        self.index_tensors.append((self.rank, one))
        self.add_position(entry)

    def add_position(self, entry: Any) -> None:
        """Append an axis that is indexed as by a tensor, which decides where the axes of tensors are in the result."""
        self.is_split |= self.has_index and not self.was_index
        self._append(entry)
        self.has_index = self.was_index = True

    def _append(self, entry: Any) -> None:
        self.plan.append(entry)
        self.rank += type(entry) is not int
        self.axis += entry is not None

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
    tensors = [item for item in items if isinstance(item, (TensorBase, bool, np.ndarray))]
    parser = _SubscriptParser(shape)
    if len(tensors) == 1 and is_mask(tensors[0]):
        parser.mask = tensors[0]
    for item in items:
        _parse_item(parser, item, missing, bool(tensors))
    return _build_subscript(parser)


def normalize_item(item: Any) -> IndexItem:
    """One part of a key as an int, bool, slice, None, Ellipsis, tensor, or an ndarray of bools."""
    if item is None or item is Ellipsis or isinstance(item, (slice, TensorBase, bool)):
        return item  # type: ignore[return-value]  # at run time every TensorBase is a Tensor
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, (list, tuple, range)):
        item = _to_array(item)
    if isinstance(item, np.ndarray):
        if item.dtype.kind == "b":
            return item  # its positions are known in a trace, too
        if item.dtype.kind not in "iu":
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
    elif has_tensor and parser.mask is None:
        parser.add_index(_check_position(item, parser), (0, parser.size, 1))
    elif has_tensor:
        parser.add_position(_check_position(item, parser))
    else:
        parser.add_axis(_check_position(item, parser))


def _check_position(item: int, parser: _SubscriptParser) -> int:
    if -parser.size <= item < parser.size:
        return item % parser.size
    if parser.size and any(caught(item, parser.axis, parser.size) for caught in out_of_bounds_hooks):
        return parser.size - 1 if item > 0 else 0
    raise OutOfBoundsError(f"index: {item} is out of bounds for axis {parser.axis} with size {parser.size}")


def _slice_entry(item: slice, size: Dim) -> tuple[Dim, Dim, int]:
    try:
        start, stop, step = item.indices(size)
    except UndecidedError:
        entry: tuple[Dim, Dim, int] = _dims.select(item, size)
        return entry
    except (TypeError, ValueError) as fault:  # not integers, or a step of 0
        raise IndexArgumentError(f"index: {item}: {fault}") from None
    length = len(range(start, stop, step))
    return (start, length, step) if length else (0, 0, 1)


def _parse_tensor(parser: _SubscriptParser, item: bool | Tensor | Array) -> None:
    if isinstance(item, bool):
        parser.add_index(arange(int(item)), None)
    elif is_mask(item):
        _parse_mask(parser, item)
    else:
        parser.add_index(item, (0, parser.size, 1))


def _parse_mask(parser: _SubscriptParser, mask: Any) -> None:
    _check_mask(parser, mask)
    entries: list[Any] = [(0, size, 1) for size in mask.shape]
    if not entries:  # the view has a new axis for it
        mask, entries = read_if_constant(mask).reshape((1,)), [None]
    indices: Sequence[Any] = [None] * len(entries)
    if parser.mask is None:
        indices = mask_positions(mask)
    else:
        parser.mask = mask
    for one, entry in zip(indices, entries):
        parser.add_index(one, entry)


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
    indices = () if parser.mask is not None else tuple(one for _, one in parser.index_tensors)
    if not parser.is_split:
        return Subscript(plan, None, indices, axes[0], parser.mask)
    order = (*axes, *(axis for axis in range(parser.rank) if axis not in axes))
    return Subscript(plan, None if order == tuple(range(len(order))) else order, indices, mask=parser.mask)
