"""Pieces: kernels that copy arguments to the parts of a result, as operators declare these.

A concatenation has a piece for each tensor, a write of a slice the old value and the new elements. The kernel that
computes a piece may store it to the result itself (:mod:`..destinations`), kernels that read the result may compute the
pieces where they read them (:mod:`..passes.inline_reads`), and a write may be in place (:mod:`..in_place`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast as as_type

from ...operators.declare.view_spec import Piece, ViewLayout, row_major_strides
from ...operators.scalar_ir.expr import Expr, apply, cast
from ...registry import dtypes as dt
from ...tracer.graph import Node, Value
from ..kernel_selection import NUMBERS
from ..layout import Layout
from .loop_ir import Buffer, FusedKernel, Stage, Store, load, scalar
from .scalarize import number_expr


def find_pieces(node: Node) -> list[Piece] | None:
    """The pieces of a node's result in the order of writing; None if a piece is not a copy of a value or a number."""
    spec = getattr(node.op.decl, "piece_spec", None)
    if spec is None:
        return None
    shape = node.outputs[0].shape
    pieces = spec.rule(ViewLayout(shape, row_major_strides(shape)), *node.args, **node.kwargs)
    if pieces is None or not all(isinstance(piece.source, (Value, *NUMBERS)) for piece in pieces):
        return None
    return as_type("list[Piece]", pieces)


def is_update(node: Node) -> bool:
    """Whether a node writes its last piece over the first one, which is as large as the result."""
    spec = getattr(node.op.decl, "piece_spec", None)
    return spec is not None and spec.updates


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
            Buffer("in", base.spec.dtype, _broadcast_strides(layout, target.sizes), 1, layout.offset)
        )
        params.append(base)
        value = load(buffers[1])
    value = cast(value, dtype)
    stored = _add_exprs(load(written), value) if piece.adds else value
    stage = Stage(tuple(range(len(target.sizes))), (Store("out", stored),))
    return FusedKernel(name, (), target.sizes, tuple(buffers), (stage,)), tuple(params)


def _add_exprs(a: Expr, b: Expr) -> Expr:
    wide = dt.float32 if a.dtype in dt.HALVES else a.dtype
    return cast(apply("add", cast(a, wide), cast(b, wide)), a.dtype)


def _broadcast_strides(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a layout broadcast to a shape."""
    strides = [0 if n == 1 else s for n, s in zip(layout.shape, layout.strides, strict=True)]
    return (*([0] * (len(shape) - len(strides))), *strides)
