"""Results put together from pieces: ``concat``, and writing at a basic index; a kernel writes each piece in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..operators.expr import Expr, apply, cast
from ..registry import dtypes as dt
from ..registry.operator import find
from ..registry.values import TensorSpec
from ..tracer.graph import Node, Value
from .bodies import number
from .layout import Layout, contiguous, dummy_array, located
from .loops import Buffer, FusedKernel, Stage, Store, load, scalar
from .resolve import NUMBERS


class Piece:
    """A part of a result: where it lies, and what is written there.

    Attributes:
        target: the layout of the part in the buffer of the result.
        source: a Value or a Python number, which broadcasts to the part.
        adds: whether it is added to what is there.
    """

    def __init__(self, target: Layout, source: Any, adds: bool = False):
        self.target, self.source, self.adds = target, source, adds


def pieces_of(node: Node) -> list[Piece] | None:
    """The pieces of a node's result in the order in which they are written; None if it is not made that way."""
    makers = {"td::concat": _concat, "td::basic_put": _put}
    maker = makers.get(node.op.name)
    return maker(node) if maker is not None else None


def _concat(node: Node) -> list[Piece] | None:
    tensors, axis = node.args[0], node.args[1]
    whole = contiguous(node.outputs[0].shape)
    if axis is None or not all(isinstance(t, Value) for t in tensors):
        return None
    axis, place, found = axis % len(whole.shape), 0, []
    for tensor in tensors:
        found.append(Piece(Layout(tensor.shape, whole.strides, place * whole.strides[axis]), tensor))
        place += tensor.shape[axis]
    return found


def _put(node: Node) -> list[Piece] | None:
    self, value, plan = node.args
    if not isinstance(self, Value) or not isinstance(value, (Value, *NUMBERS)):
        return None
    whole = contiguous(node.outputs[0].shape)
    dummy = dummy_array(whole)
    view = find("td::basic_index").decl.kernel(np, dummy, plan)
    part = located(view, dummy, whole, TensorSpec(view.shape, node.outputs[0].spec.dtype))
    adds = bool(node.kwargs.get("accumulate", False))
    return None if part is None else [Piece(whole, self), Piece(part, value, adds)]


def piece_kernel(
    name: str,
    out: Value,
    piece: Piece,
    root: Callable[[Value], tuple[Value, Layout]],
    slots: dict[Value, int],
) -> tuple[FusedKernel, tuple[Value, ...]]:
    """The kernel that writes one piece, and the values of its parameters.

    Args:
        name: of the kernel.
        out: the result.
        piece: what to write.
        root: where a value lies.
        slots: of weak values, in the table of run-time scalars.
    """
    dtype, target = out.spec.dtype, piece.target
    written = Buffer("out", dtype, target.strides, 0, target.offset)
    buffers, params = [written], [out]
    if not isinstance(piece.source, Value):
        value = number(piece.source, dtype)
    elif piece.source in slots:
        value = scalar(slots[piece.source], piece.source.spec.dtype)
    else:
        base, layout = root(piece.source)
        buffers.append(Buffer("in", base.spec.dtype, _spread(layout, target.shape), 1, layout.offset))
        params.append(base)
        value = load(buffers[1])
    value = cast(value, dtype)
    stored = _sum(load(written), value) if piece.adds else value
    stage = Stage(tuple(range(len(target.shape))), (Store("out", stored),))
    return FusedKernel(name, (), target.shape, tuple(buffers), (stage,)), tuple(params)


def _sum(a: Expr, b: Expr) -> Expr:
    wide = dt.float32 if a.dtype in dt.HALVES else a.dtype
    return cast(apply("add", cast(a, wide), cast(b, wide)), a.dtype)


def _spread(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a layout broadcast to a shape."""
    strides = [0 if n == 1 else s for n, s in zip(layout.shape, layout.strides, strict=True)]
    return (*([0] * (len(shape) - len(strides))), *strides)
