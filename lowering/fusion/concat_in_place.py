"""Concatenation in place: one kernel for each piece of ``concat`` or ``basic_put`` writes directly into the result."""

from __future__ import annotations

from collections.abc import Callable

from ...operators.declare.view_spec import ViewLayout
from ...operators.scalar_ir.expr import Expr, apply, cast
from ...registry import dtypes as dt
from ...registry.operator import find_operator
from ...tracer.graph import Node, Value
from ..kernel_selection import NUMBERS
from ..layout import Layout, contiguous
from .loop_ir import Buffer, FusedKernel, Stage, Store, load, scalar
from .scalarize import number_expr


class Piece:
    """A part of a result and its source.

    Attributes:
        target: the layout of the part in the buffer of the result.
        source: a Value or a Python number, which broadcasts to the part.
        adds: whether the source is added to the elements in place.
    """

    def __init__(self, target: Layout, source: Value | bool | int | float | complex, adds: bool = False):
        self.target, self.source, self.adds = target, source, adds


def find_pieces(node: Node) -> list[Piece] | None:
    """The pieces of a node's result in the order of writing; None for other operators."""
    makers = {"td::concat": _concat_pieces, "td::basic_put": _put_pieces}
    maker = makers.get(node.op.name)
    return maker(node) if maker is not None else None


def is_update(node: Node) -> bool:
    """Whether a node writes its last piece over the first one, which is as large as the result."""
    return node.op.name == "td::basic_put"


def _concat_pieces(node: Node) -> list[Piece] | None:
    tensors, axis = node.args[0], node.args[1]
    whole = contiguous(node.outputs[0].shape)
    if axis is None or not all(isinstance(t, Value) for t in tensors):
        return None
    axis, offset, result = axis % len(whole.shape), 0, []
    for tensor in tensors:
        result.append(Piece(Layout(tensor.shape, whole.strides, offset * whole.strides[axis]), tensor))
        offset += tensor.shape[axis]
    return result


def _put_pieces(node: Node) -> list[Piece] | None:
    self, value, plan = node.args
    if not isinstance(self, Value) or not isinstance(value, (Value, *NUMBERS)):
        return None
    whole = contiguous(node.outputs[0].shape)
    part = Layout(*find_operator("td::basic_index").decl.view(ViewLayout(*whole), plan)[:3])
    adds = bool(node.kwargs.get("accumulate", False))
    return [Piece(whole, self), Piece(part, value, adds)]


def make_piece_kernel(
    name: str,
    out: Value,
    piece: Piece,
    root: Callable[[Value], tuple[Value, Layout]],
    slots: dict[Value, int],
) -> tuple[FusedKernel, tuple[Value, ...]]:
    """Make the kernel that writes one piece; returns the kernel and the values of its parameters.

    Args:
        name: the name of the kernel.
        out: the result.
        piece: the piece to write.
        root: returns the value whose buffer holds a value, and the layout there.
        slots: the slot of each weak value in the table of run-time scalars.
    """
    dtype, target = out.spec.dtype, piece.target
    written = Buffer("out", dtype, target.strides, 0, target.offset)
    buffers, params = [written], [out]
    if not isinstance(piece.source, Value):
        value = number_expr(piece.source, dtype)
    elif piece.source in slots:
        value = scalar(slots[piece.source], piece.source.spec.dtype)
    else:
        base, layout = root(piece.source)
        buffers.append(
            Buffer("in", base.spec.dtype, _broadcast_strides(layout, target.shape), 1, layout.offset)
        )
        params.append(base)
        value = load(buffers[1])
    value = cast(value, dtype)
    stored = _add_exprs(load(written), value) if piece.adds else value
    stage = Stage(tuple(range(len(target.shape))), (Store("out", stored),))
    return FusedKernel(name, (), target.shape, tuple(buffers), (stage,)), tuple(params)


def _add_exprs(a: Expr, b: Expr) -> Expr:
    wide = dt.float32 if a.dtype in dt.HALVES else a.dtype
    return cast(apply("add", cast(a, wide), cast(b, wide)), a.dtype)


def _broadcast_strides(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a layout broadcast to a shape."""
    strides = [0 if n == 1 else s for n, s in zip(layout.shape, layout.strides, strict=True)]
    return (*([0] * (len(shape) - len(strides))), *strides)
