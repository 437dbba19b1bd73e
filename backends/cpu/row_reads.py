"""Rows read at integer positions, ``x[i]``, in emitted code; for a position out of range the eager kernel raises."""

from __future__ import annotations

import math
from typing import Any

from ...lowering.thunks import NodeThunk
from ...tracer.graph import Node, Value


def explain_row_read(node: Node) -> str | None:
    """Return why the code of this module serves a node, or None if it does not."""
    if node.op.name != "td::index" or len(node.args[1]) != 1 or node.args[2] != 0:
        return None
    x, index = node.args[0], node.args[1][0]
    values = all(isinstance(v, Value) and v.weak is None for v in (x, index))
    return "rows are copied" if values and index.spec.dtype.is_integer else None


class RowRead:
    """The LLVM IR of one read.

    Attributes:
        lines: instructions for ``main``.
    """

    def __init__(self, writer: Any, step: NodeThunk, number: int):
        x, index = step.node.args[0], step.node.args[1][0]
        size = math.prod(x.shape[1:]) * x.spec.dtype.itemsize
        kind, name = f"i{8 * index.spec.dtype.itemsize}", f"rows{number}"
        start, offsets = (
            (writer.pointer(root), layout.offset * value.spec.dtype.itemsize)
            for value, (root, layout) in zip((x, index), step.operands, strict=True)
        )
        out = writer.pointer(step.node.outputs[0])
        writer.module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1")
        extend = "sext" if index.spec.dtype.kind == "i" else "zext"
        wide = f"{extend} {kind} %{name}raw to i64" if kind != "i64" else f"add i64 %{name}raw, 0"
        self.lines = [
            f"  %{name}x = getelementptr i8, ptr {start[0]}, i64 {start[1]}",
            f"  %{name}p = getelementptr i8, ptr {offsets[0]}, i64 {offsets[1]}",
            f"  br label %{name}pre",
            f"{name}pre:",
            f"  br label %{name}head",
            f"{name}head:",
            f"  %{name}at = phi i64 [ 0, %{name}pre ], [ %{name}next, %{name}copy ]",
            f"  %{name}more = icmp slt i64 %{name}at, {index.spec.size}",
            f"  br i1 %{name}more, label %{name}look, label %{name}done",
            f"{name}look:",
            f"  %{name}i = getelementptr {kind}, ptr %{name}p, i64 %{name}at",
            f"  %{name}raw = load {kind}, ptr %{name}i, align 1",
            f"  %{name}wide = {wide}",
            f"  %{name}low = icmp slt i64 %{name}wide, 0",
            f"  %{name}back = add i64 %{name}wide, {x.shape[0]}",
            f"  %{name}row = select i1 %{name}low, i64 %{name}back, i64 %{name}wide",
            f"  %{name}fits = icmp ult i64 %{name}row, {x.shape[0]}",
            f"  br i1 %{name}fits, label %{name}copy, label %{name}missing",
            f"{name}copy:",
            f"  %{name}from = mul i64 %{name}row, {size}",
            f"  %{name}source = getelementptr i8, ptr %{name}x, i64 %{name}from",
            f"  %{name}to = mul i64 %{name}at, {size}",
            f"  %{name}target = getelementptr i8, ptr {out}, i64 %{name}to",
            f"  call void @llvm.memcpy.p0.p0.i64(ptr %{name}target, ptr %{name}source, i64 {size}, i1 false)",
            f"  %{name}next = add i64 %{name}at, 1",
            f"  br label %{name}head",
            f"{name}missing:",
            *writer.callback_lines(step, number),
            f"  br label %{name}done",
            f"{name}done:",
        ]
