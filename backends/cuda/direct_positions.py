"""Reading, writing and adding by position in compiled graphs: the launches of kernels of :mod:`.texts`."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...lowering.layout import Layout, contiguous
from ...lowering.steps import NodeStep
from ...operators.gathering import index_shape
from ...operators.rules import normalize_axis
from ...registry.dtypes import DType, int64
from ...registry.values import TensorSpec
from ...tracer.graph import Node, Value
from .casting import copy_way
from .direct_text import FAULT, Address, Launch, Scratch, Struct, call_number, text_launch
from .gathers import MOST, accumulator, adding, indices_words, segment

Ints = tuple[int, ...]


def plain(*values: Any) -> bool:
    """Whether arguments are tensors, not numbers that are known when a graph is called."""
    return all(isinstance(value, Value) and value.weak is None for value in values)


# -- which are served --------------------------------------------------------------------------------------------------
def reads(node: Node) -> bool:
    """Whether ``index`` is served."""
    return _fits(node, node.args[0], node.args[1])


def adds(node: Node) -> bool:
    """Whether rows that are added to zeros are served."""
    indices, value = node.args[:2]
    return _fits(node, value, indices) and accumulator(value.spec.dtype) is value.spec.dtype


def writes(node: Node) -> bool:
    """Whether ``index_put`` is served."""
    array, indices, value = node.args[:3]
    if not (plain(value) and _fits(node, array, indices)):
        return False
    dtype = array.spec.dtype
    fits = len(value.shape) <= MOST and value.spec.dtype is dtype
    return fits and (not node.kwargs["accumulate"] or accumulator(dtype) is dtype)


def is_checked(node: Node) -> bool:
    """Whether positions are checked by a kernel."""
    return node.args[0].spec.dtype is int64


def _fits(node: Node, array: Any, indices: Sequence[Any]) -> bool:
    if not plain(array, *indices) or any(one.spec.dtype is not int64 for one in indices):
        return False
    return max(len(indices), *(len(value.shape) for value in (array, *indices, *node.outputs))) <= MOST


# -- the launches ------------------------------------------------------------------------------------------------------
def checked(step: NodeStep) -> list[Launch]:
    """The launch that counts positions from the start."""
    _, size, axis = step.node.args
    count = step.node.outputs[0].spec.size
    call = call_number("index", axis, (size,))
    return [text_launch("checked_index", count, Address(1), Address(0), FAULT, count, size, call)]


def gather(step: NodeStep) -> list[Launch]:
    """The launch that reads."""
    (array, base), *places = step.operands
    out = step.node.outputs[0]
    picked = _picked("index", base, step.node.args[1:], [layout for _, layout in places], 1)
    count = out.spec.size
    head = Address(len(step.operands)), Address(0), FAULT, count
    rest = picked.before, picked.indices(), picked.after, picked.size
    return [text_launch(f"gather_{array.spec.dtype.itemsize}", count, *head, *rest)]


def add_rows(step: NodeStep) -> list[Launch]:
    """The launches that fill with zeros and add."""
    (indices, _, shape, axis), out = step.node.args, step.node.outputs[0]
    *places, given = [layout for _, layout in step.operands]
    width = out.spec.dtype.itemsize
    zero = Struct((0, 0)) if width == 16 else 0
    end = Address(len(step.operands))
    fill = text_launch(f"fill_{width}", out.spec.size, end, out.spec.size, zero)
    picked = _picked("index_put", contiguous(shape), (indices, axis), places, 0)
    return [fill, *_added(out, _broadcast(given, picked.selected), picked, end, Address(len(places)))]


def put(step: NodeStep) -> list[Launch]:
    """The launches that copy an array, and write into the copy or add to it."""
    (_, indices, _, axis), out = step.node.args, step.node.outputs[0]
    base, *places, given = [layout for _, layout in step.operands]
    end, source, dtype = Address(len(step.operands)), Address(len(step.operands) - 1), out.spec.dtype
    picked = _picked("index_put", contiguous(out.shape), (indices, axis), places, 1)
    value = _broadcast(given, picked.selected)
    write = _added if step.node.kwargs["accumulate"] else _written
    return [_copied(base, dtype, end), *write(out, value, picked, end, source)]


def _copied(base: Layout, dtype: DType, to: Address) -> Launch:
    """The launch that copies the first operand."""
    strides = contiguous(base.shape).strides
    way = copy_way(dtype, dtype, base.shape, base.strides, strides, base.offset * dtype.itemsize % 16 == 0)
    assert way is not None  # there are at most eight axes
    kernel, rest = way
    last = rest if isinstance(rest, int) else Struct(struct.unpack(f"<{len(rest) // 8}q", rest))
    return Launch(kernel, (Address(0), to, last))


def _added(out: Value, value: Layout, picked: _Picked, end: Address, source: Address) -> list[Launch]:
    if not value.size:
        return []
    number, parts = adding(out.spec.dtype)
    head = end, source, FAULT, value.size, picked.before, picked.indices(), picked.after
    return [text_launch(f"scatter_add_{number}", value.size, *head, _segment(value), picked.size, parts)]


def _written(out: Value, value: Layout, picked: _Picked, end: Address, source: Address) -> list[Launch]:
    """Write; of several values for one place the last stays."""
    if not value.size:
        return []
    places = picked.indices(contiguous(picked.limits).strides)
    count, launches = math.prod(picked.limits), []
    nbytes, last = (8 * count, Scratch(0)) if picked.size > 1 else (0, 0)
    if nbytes:
        launches = [
            text_launch("fill_8", count, last, count, 0, scratch=nbytes),
            text_launch("winners", picked.size, last, FAULT, places, picked.size, scratch=nbytes),
        ]
    head = end, source, last, FAULT, value.size, picked.before, places, picked.indices(), picked.after
    name = f"scatter_{out.spec.dtype.itemsize}"
    return [*launches, text_launch(name, value.size, *head, _segment(value), picked.size, scratch=nbytes)]


# -- positions ---------------------------------------------------------------------------------------------------------
class _Picked(NamedTuple):
    """How index tensors select elements of an array.

    Attributes:
        before, after: the axes around the indexed ones.
        selected: the shape of what is selected.
        limits: the sizes of the indexed axes.
        size: how many positions there are.
        indices: the ``Indices`` of the kernels, for the array or for one with the given strides.
    """

    before: Struct
    after: Struct
    selected: Ints
    limits: Ints
    size: int
    indices: Any


def _picked(name: str, base: Layout, which: Any, places: Sequence[Layout], first: int) -> _Picked:
    """How index tensors select elements of an array.

    Args:
        name: of the operator, for messages.
        base: where the array lies.
        which: the index tensors, and the first of the axes that they index.
        places: where they lie.
        first: the number of the first of them among the step's operands.
    """
    specs: list[TensorSpec] = [one.spec for one in which[0]]
    axis = normalize_axis(name, which[1], len(base.shape))
    selected = index_shape(name, base.shape, specs, axis)
    stop = axis + len(places)
    shape = selected[axis : len(selected) - (len(base.shape) - stop)]
    limits = base.shape[axis:stop]
    call = call_number(name, axis, limits)

    def indices(steps: Ints = base.strides[axis:stop]) -> Struct:
        strides = [_broadcast(place, shape).strides for place in places]
        at = [Address(first + number) for number in range(len(places))]
        return Struct(tuple(indices_words(name, shape, strides, limits, steps, call, at)))

    before, after = (
        _segment(Layout(base.shape[part], base.strides[part], 0)) for part in (slice(axis), slice(stop, None))
    )
    return _Picked(before, after, selected, limits, math.prod(shape), indices)


def _segment(layout: Layout) -> Struct:
    return Struct(struct.unpack("<18q", segment("index", layout.shape, layout.strides)))


def _broadcast(layout: Layout, shape: Ints) -> Layout:
    lead = len(shape) - len(layout.shape)
    strides = (0 if old != new else s for old, new, s in zip(layout.shape, shape[lead:], layout.strides))
    return Layout(shape, ((0,) * lead + tuple(strides)), layout.offset)
