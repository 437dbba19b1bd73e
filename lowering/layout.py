"""Where the elements of a view lie: shape, strides, offset (in elements), found by running it on a dummy array."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..registry.values import TensorSpec
from ..tracer.graph import Node, Value, values_in


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
        """The same with stride 0 where an axis has one element, so that equal layouts compare equal."""
        strides = tuple(0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        return Layout(self.shape, strides, self.offset)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other from the buffer's start."""
        return self.canonical() == contiguous(self.shape).canonical() or (self.size == 0 and self.offset == 0)


def contiguous(shape: tuple[int, ...]) -> Layout:
    """The layout of a fresh array.

    >>> contiguous((2, 3))
    Layout(shape=(2, 3), strides=(3, 1), offset=0)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return Layout(shape, tuple(reversed(strides)))


def _extent(layout: Layout) -> tuple[int, int]:
    """Lowest and highest element that a layout reaches, relative to its first."""
    reach = [(n - 1) * s for n, s in zip(layout.shape, layout.strides, strict=True)]
    return sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)


def dummy_array(layout: Layout) -> Any:
    """A byte array of that layout with valid memory of its own, so that a kernel may also copy it."""
    if layout.size == 0:
        return np.empty(layout.shape, np.int8)
    low, high = _extent(layout)
    buffer = np.empty(high - low + 1, np.int8)
    return np.lib.stride_tricks.as_strided(buffer[-low:], layout.shape, layout.strides, writeable=False)


def view_of(node: Node, base: Layout) -> Layout | None:
    """The layout of a view node's result within the buffer of its first argument.

    Args:
        node: a node whose operator is of the kind ``"view"``.
        base: the layout of its first argument.

    Returns:
        The layout, or None where the result cannot be a view (a reshape that has to copy, a change of dtype).
    """
    kernel = getattr(node.op.decl, "kernel", None)
    source = node.args[0] if node.args else None
    rest = (node.args[1:], tuple(node.kwargs.values()))
    if kernel is None or not isinstance(source, Value) or any(values_in(rest)):
        return None
    if source.spec.dtype is not node.outputs[0].spec.dtype:
        return None
    if base.size == 0:
        return contiguous(node.outputs[0].shape)
    try:
        dummy = dummy_array(base)
    except MemoryError:
        return None
    return located(kernel(np, dummy, *node.args[1:], **node.kwargs), dummy, base, node.outputs[0].spec)


def located(found: Any, dummy: Any, base: Layout, spec: TensorSpec) -> Layout | None:
    """Where ``found`` lies in the memory of ``dummy``; None if it lies elsewhere or is not what the spec says."""
    if not isinstance(found, np.ndarray) or found.shape != spec.shape or found.dtype != dummy.dtype:
        return None
    if found.size == 0:
        return contiguous(spec.shape)
    moved = _address(found) - _address(dummy)
    if not np.may_share_memory(found, dummy):
        return None
    return Layout(found.shape, found.strides, base.offset + moved)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def is_view(node: Node) -> bool:
    """Whether a node's operator is declared as a view with one result."""
    return getattr(node.op.decl, "kind", "") == "view" and len(node.outputs) == 1


def axis_map(layout: Layout, base: Layout) -> tuple[int | None, ...] | None:
    """For each axis of a view the axis of its contiguous base that it runs along, None where it repeats one element.

    Returns:
        None where an axis runs along no axis, or only a part of one: a slice, a flip, a reshape that splits or joins.
    """
    if layout.offset or base.size == 0:
        return None
    by_stride = {s: i for i, (n, s) in enumerate(zip(base.shape, base.strides, strict=True)) if n != 1}
    found: list[int | None] = []
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        axis = None if size == 1 or stride == 0 else by_stride.get(stride, -1)
        if axis is not None and (axis < 0 or base.shape[axis] != size):
            return None
        found.append(axis)
    used = {axis for axis in found if axis is not None}
    whole = used == set(by_stride.values()) and len(used) == sum(axis is not None for axis in found)
    return tuple(found) if whole else None
