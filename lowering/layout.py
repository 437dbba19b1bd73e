"""Layouts of views: shape, strides and offset in elements, by the rules of the views' declarations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..errors import UndecidedError
from ..named_tuple import NamedTuple
from ..operators.declare.view_spec import ViewLayout, check_within, row_major_strides
from ..tracer.graph import Node, Value, values_in

if TYPE_CHECKING:
    from ..registry.dims import Dim


class Layout(NamedTuple):
    """Strides and offset, in elements, of an array of ``shape`` within its buffer."""

    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return math.prod(self.shape)

    def canonical(self) -> Layout:
        """The layout with stride 0 for axes of one element, so that equal layouts compare equal."""
        strides = tuple(0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        return Layout(self.shape, strides, self.offset)

    @property
    def in_memory_order(self) -> Layout:
        """The layout with the axes in the order of their strides, the largest first."""
        axes = sorted(zip(self.shape, self.strides, strict=True), key=lambda axis: -axis[1])
        return Layout(tuple(size for size, _ in axes), tuple(step for _, step in axes), self.offset)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are in row-major order without gaps from the start of the buffer."""
        same = proves_equal(self.canonical(), contiguous(self.shape).canonical())
        return same or (self.size == 0 and self.offset == 0)


def contiguous(shape: tuple[Dim, ...]) -> Layout:
    """The layout of a newly allocated array.

    >>> contiguous((2, 3))
    Layout(shape=(2, 3), strides=(3, 1), offset=0)
    """
    return Layout(shape, row_major_strides(shape))


def proves_equal(one: object, other: object) -> bool:
    """Whether two Dims, or tuples of Dims, are equal whatever numbers their symbols have."""
    try:
        return one == other
    except UndecidedError:
        return False


def view_layout(node: Node, base: Layout) -> Layout | None:
    """The layout of a view node's result within the buffer of its first argument.

    Args:
        node: a node whose operator declares the rule of a view.
        base: the layout of its first argument.

    Returns:
        The layout; None if the result cannot be a view (a reshape that has to copy, a change of dtype).
    """
    source = node.args[0] if node.args else None
    rest = (node.args[1:], tuple(node.kwargs.values()))
    if not is_view(node) or not isinstance(source, Value) or any(values_in(rest)):
        return None
    out, dtype = node.outputs[0], source.spec.dtype
    if dtype is not out.spec.dtype:
        return None
    if base.size == 0:
        return contiguous(out.shape)
    whole = ViewLayout(*base, dtype.itemsize)
    result = node.op.decl.view(whole, *node.args[1:], **node.kwargs)
    if result is None or tuple(result.sizes) != out.shape:
        return None
    check_within(node.op.name, result, whole)
    return contiguous(out.shape) if 0 in result.sizes else Layout(*result[:3])


def is_view(node: Node) -> bool:
    """Whether a node's operator declares the rule of a view with one result; a view without a rule is a copy here."""
    return getattr(node.op.decl, "view", None) is not None and len(node.outputs) == 1


def map_axes(layout: Layout, base: Layout) -> tuple[int | None, ...] | None:
    """For each axis of a view, the axis of its contiguous base with the same stride; None for a repeated element.

    Returns:
        None if an axis matches no whole axis of the base: a slice, a flip, a reshape that splits or joins axes.
    """
    if layout.offset or base.size == 0:
        return None
    by_stride = {s: i for i, (n, s) in enumerate(zip(base.shape, base.strides, strict=True)) if n != 1}
    items: list[int | None] = []
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        axis = None if size == 1 or stride == 0 else by_stride.get(stride, -1)
        if axis is not None and (axis < 0 or base.shape[axis] != size):
            return None
        items.append(axis)
    used = {axis for axis in items if axis is not None}
    whole = used == set(by_stride.values()) and len(used) == sum(axis is not None for axis in items)
    return tuple(items) if whole else None
