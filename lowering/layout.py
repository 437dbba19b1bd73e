"""Layouts of views: shape, strides and offset in elements, by the rule of the view, or from a dummy array."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..named_tuple import NamedTuple
from ..operators.declare.view_spec import ViewLayout, check_within, extent, row_major_strides
from ..registry.dtypes import DType
from ..registry.values import TensorSpec
from ..tracer.graph import Node, Value, values_in

if TYPE_CHECKING:
    from ..registry.types import Array


class Layout(NamedTuple):
    """Strides and offset, in elements, of an array of ``shape`` within its buffer."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def canonical(self) -> Layout:
        """The layout with stride 0 for axes of one element, so that equal layouts compare equal."""
        strides = tuple(0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        return Layout(self.shape, strides, self.offset)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are in row-major order without gaps from the start of the buffer."""
        return self.canonical() == contiguous(self.shape).canonical() or (self.size == 0 and self.offset == 0)


def contiguous(shape: tuple[int, ...]) -> Layout:
    """The layout of a newly allocated array.

    >>> contiguous((2, 3))
    Layout(shape=(2, 3), strides=(3, 1), offset=0)
    """
    return Layout(shape, row_major_strides(shape))


def dummy_array(layout: Layout) -> Array:
    """Make a byte array with a layout, in memory that a kernel may read."""
    if layout.size == 0:
        return np.empty(layout.shape, np.int8)
    low, high = extent(ViewLayout(layout.shape, layout.strides))
    buffer = np.empty(high - low + 1, np.int8)
    return np.lib.stride_tricks.as_strided(buffer[-low:], layout.shape, layout.strides, writeable=False)


def view_layout(node: Node, base: Layout) -> Layout | None:
    """The layout of a view node's result within the buffer of its first argument.

    Args:
        node: a node whose operator is of the kind ``"view"``.
        base: the layout of its first argument.

    Returns:
        The layout; None if the result cannot be a view (a reshape that has to copy, a change of dtype).
    """
    kernel, rule = getattr(node.op.decl, "kernel", None), getattr(node.op.decl, "view", None)
    source = node.args[0] if node.args else None
    rest = (node.args[1:], tuple(node.kwargs.values()))
    if (kernel is None and rule is None) or not isinstance(source, Value) or any(values_in(rest)):
        return None
    if source.spec.dtype is not node.outputs[0].spec.dtype:
        return None
    if base.size == 0:
        return contiguous(node.outputs[0].shape)
    if rule is not None:
        result = rule(ViewLayout(*base), *node.args[1:], **node.kwargs)
        if result is None or tuple(result.sizes) != node.outputs[0].shape:
            return None
        check_within(node.op.name, result, ViewLayout(*base))
        return Layout(*result) if 0 not in result.sizes else contiguous(node.outputs[0].shape)
    if kernel is None:
        return None
    if any(
        isinstance(x, DType) for x in rest[0]
    ):  # elements of another dtype; the kernel would read the dummy's
        return base if node.outputs[0].shape == source.spec.shape else None
    try:
        dummy = dummy_array(base)
    except MemoryError:
        return None
    return layout_within(kernel(np, dummy, *node.args[1:], **node.kwargs), dummy, base, node.outputs[0].spec)


def layout_within(array: object, dummy: Array, base: Layout, spec: TensorSpec) -> Layout | None:
    """The layout of ``array`` in the memory of ``dummy``; None if it does not share it or match the spec."""
    if not isinstance(array, np.ndarray) or array.shape != spec.shape or array.dtype != dummy.dtype:
        return None
    if array.size == 0:
        return contiguous(spec.shape)
    moved = _address(array) - _address(dummy)
    if not np.may_share_memory(array, dummy):
        return None
    return Layout(array.shape, array.strides, base.offset + moved)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def is_view(node: Node) -> bool:
    """Whether a node's operator is declared as a view with one result."""
    return getattr(node.op.decl, "kind", "") == "view" and len(node.outputs) == 1


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
