"""Nodes of compiled graphs that are served by kernels of :mod:`.texts`, launched by machine code: reading and adding by
position. Everything about a launch but addresses is decided when the graph is lowered.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...lowering.layout import Layout, contiguous
from ...lowering.steps import NodeStep
from ...operators.gathering import index_shape
from ...operators.rules import normalize_axis
from ...registry.dtypes import float32, float64, int64
from ...registry.values import TensorSpec
from ...tracer.graph import Node, Value
from . import faults, texts
from .emit.kernel import CudaKernel
from .gathers import MOST, indices_words, segment
from .lowered_ops import ADD_ROWS, CHECKED

Ints = tuple[int, ...]
ADDED = (float32, float64)


class Address(NamedTuple):
    """Where an operand or a result of the node lies: its number, results behind operands."""

    place: int


class Word(NamedTuple):
    """A number that is found when a graph is compiled for a device: ``make(index)``."""

    make: Callable[[int], int]


class Struct(NamedTuple):
    """A parameter of several words."""

    words: tuple[Any, ...]


class Launch(NamedTuple):
    """One kernel.

    Attributes:
        kernel: the kernel, with its grid.
        params: for each parameter an int, an :class:`Address`, a :class:`Word`, or a :class:`Struct` of these.
    """

    kernel: CudaKernel
    params: tuple[Any, ...]


FAULT = Word(lambda index: faults.place(index).ptr)


def _text(name: str, count: int, *params: Any) -> Launch:
    kernel = texts.kernel(name)
    return Launch(kernel._replace(grid=(kernel.blocks(count, texts.BLOCKS), 1, 1)), params)


def direct_reason(node: Node) -> str | None:
    """Why a node is served by launches from machine code, or None if it is not."""
    if node.op.name == CHECKED:
        return "its kernel is launched directly" if node.args[0].spec.dtype is int64 else None
    reads = node.op.name == "td::index"
    if not reads and node.op.name != ADD_ROWS:
        return None
    array, indices = node.args[:2] if reads else (node.args[1], node.args[0])
    if not all(isinstance(v, Value) and v.weak is None for v in (array, *indices)):
        return None
    ranks = [len(value.shape) for value in (array, *indices, *node.outputs)]
    fits = max(*ranks, len(indices)) <= MOST and all(i.spec.dtype is int64 for i in indices)
    return "its kernels are launched directly" if fits and (reads or array.spec.dtype in ADDED) else None


def copied_operands(node: Node, layouts: Sequence[Layout]) -> Sequence[bool]:
    """Which operands have to be copied first: kernels take any strides, but for positions that are checked."""
    return [node.op.name == CHECKED and not layout.is_contiguous for layout in layouts]


def launches_of(step: NodeStep) -> list[Launch]:
    """The kernels that serve a node which :func:`direct_reason` has accepted."""
    if step.node.outputs[0].spec.size == 0:
        return []
    makers = {CHECKED: _checked, "td::index": _gather, ADD_ROWS: _add_rows}
    return makers[step.node.op.name](step)


def _checked(step: NodeStep) -> list[Launch]:
    _, size, axis = step.node.args
    count = step.node.outputs[0].spec.size
    call = Word(partial(faults.lasting_number, name="index", axis=axis, sizes=(size,)))
    return [_text("checked_index", count, Address(1), Address(0), FAULT, count, size, call)]


def _gather(step: NodeStep) -> list[Launch]:
    (array, base), *places = step.operands
    out = step.node.outputs[0]
    picked = _picked("index", base, step.node.args[1:], [layout for _, layout in places], 1)
    count = out.spec.size
    head = Address(len(step.operands)), Address(0), FAULT, count
    rest = picked.before, picked.indices, picked.after, picked.size
    return [_text(f"gather_{array.spec.dtype.itemsize}", count, *head, *rest)]


def _add_rows(step: NodeStep) -> list[Launch]:
    (indices, _, shape, axis), out = step.node.args, step.node.outputs[0]
    *places, given = [layout for _, layout in step.operands]
    dtype, end = out.spec.dtype, Address(len(step.operands))
    picked = _picked("index_put", contiguous(shape), (indices, axis), places, 0)
    value = _broadcast(given, index_shape("index_put", shape, _specs(indices), axis))
    fill = _text(f"fill_{dtype.itemsize}", out.spec.size, end, out.spec.size, 0)
    if not value.size:
        return [fill]
    params = end, Address(len(places)), FAULT, value.size, picked.before, picked.indices, picked.after
    source = Struct(_words("index_put", value.shape, value.strides))
    return [fill, _text(f"scatter_add_{dtype.name}", value.size, *params, source, picked.size, 1)]


class _Picked(NamedTuple):
    before: Struct
    indices: Struct
    after: Struct
    size: int


def _picked(name: str, base: Layout, which: Any, places: Sequence[Layout], first: int) -> _Picked:
    """How index tensors select elements of an array.

    Args:
        name: of the operator, for messages.
        base: where the array lies.
        which: the index tensors, and the first of the axes that they index.
        places: where they lie.
        first: the number of the first of them among the step's operands.
    """
    indices, axis = _specs(which[0]), normalize_axis(name, which[1], len(base.shape))
    selected = index_shape(name, base.shape, indices, axis)
    stop = axis + len(places)
    shape = selected[axis : len(selected) - (len(base.shape) - stop)]
    limits = base.shape[axis:stop]
    call = Word(partial(faults.lasting_number, name=name, axis=axis, sizes=limits))
    words = indices_words(
        name,
        shape,
        [_broadcast(place, shape).strides for place in places],
        limits,
        base.strides[axis:stop],
        call,
        [Address(first + number) for number in range(len(places))],
    )
    return _Picked(
        Struct(_words(name, base.shape[:axis], base.strides[:axis])),
        Struct(tuple(words)),
        Struct(_words(name, base.shape[stop:], base.strides[stop:])),
        math.prod(shape),
    )


def _specs(indices: Sequence[Value]) -> list[TensorSpec]:
    return [one.spec for one in indices]


def _words(name: str, shape: Ints, strides: Ints) -> tuple[int, ...]:
    return struct.unpack("<18q", segment(name, shape, strides))


def _broadcast(layout: Layout, shape: Ints) -> Layout:
    lead = len(shape) - len(layout.shape)
    strides = (0 if old != new else s for old, new, s in zip(layout.shape, shape[lead:], layout.strides))
    return Layout(shape, ((0,) * lead + tuple(strides)), layout.offset)


class DirectWriter:
    """Stores the parameters of one launch, and says what has to be put back behind it.

    Args:
        address: gives the register with the address of an operand or result, and the word of a :class:`Word`.
        prefix: of its registers.
    """

    def __init__(self, address: Callable[[Any], str], prefix: str):
        self._address, self.prefix = address, prefix
        self.lines: list[str] = []
        self.after: list[str] = []

    def write(self, params: Sequence[Any]) -> None:
        """Store all parameters."""
        for place, param in enumerate(params):
            if not isinstance(param, Struct):
                self._store(param, f"%value{place}")
                continue
            block = f"{self.prefix}{place}"
            size = f"[{len(param.words)} x i64]"
            self.lines += [f"  {block} = alloca {size}", f"  store {size} zeroinitializer, ptr {block}"]
            for number, word in enumerate(param.words):
                if word != 0:
                    self.lines.append(f"  {block}_{number} = getelementptr i8, ptr {block}, i64 {8 * number}")
                    self._store(word, f"{block}_{number}")
            self.lines.append(f"  store ptr {block}, ptr %place{place}")
            self.after.append(f"  store ptr %value{place}, ptr %place{place}")

    def _store(self, word: Any, to: str) -> None:
        if isinstance(word, int):
            self.lines.append(f"  store i64 {word}, ptr {to}")
        else:
            register = self._address(word)
            self.lines.append(f"  store ptr {register}, ptr {to}")
