"""Scans in emitted code: the loops of eager scans, with sizes and strides as constants."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from ...lowering.layout import Layout, contiguous
from ...lowering.thunks import NodeThunk
from ...named_tuple import NamedTuple
from ...operators.declare.shape_rules import normalize_axis
from ...registry.dtypes import DType
from ...tracer.graph import Node, Value
from .codegen.folds.reducers import RowFold
from .codegen.folds.scans import Lines, write_adjacent_lines, write_lines
from .codegen.text import Function
from .fastpath.glue.folds import serves
from .target import can_emit

MOST_INLINED = 16  # elements
Axis = tuple[int, int, int]
"""The size of an axis, and the distances in bytes of neighbours in the source and in the result."""


def explain_scan(node: Node) -> str | None:
    """Return why the code of this module serves a node, or None if it does not."""
    decl, x = node.op.decl, node.args[0] if node.args else None
    if decl.kind != "scan" or decl.fold is None or not isinstance(x, Value) or x.weak is not None:
        return None
    source, out = x.spec.dtype, node.outputs[0].spec.dtype
    if not (can_emit(source) and can_emit(out) and serves(decl.fold, source, out)):
        return None
    axis = _scanned_axis(node)
    return f"{decl.fold.name} along {'all elements' if axis is None else f'axis {axis}'}"


def _scanned_axis(node: Node) -> int | None:
    """Return the axis of a scan, not negative; None if it scans all elements."""
    axis: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("axis")
    return None if axis is None else normalize_axis(node.op.schema.name, axis, node.args[0].spec.ndim)


def must_copy(node: Node, layout: Layout) -> bool:
    """Return whether the operand of a scan is copied first: all elements must be in order, an axis may have strides."""
    if _scanned_axis(node) is not None or layout.size < 2 or len(layout.shape) == 1:
        return False
    return not layout._replace(offset=0).is_contiguous


class _Nest(NamedTuple):
    """The axes of a scan.

    Attributes:
        outer: those that loops run over, the outermost first.
        lines: the axis from line to line.
        along: the scanned axis.
    """

    outer: list[Axis]
    lines: Axis
    along: Axis


def _make_nest(layout: Layout, axis: int | None, source: DType, out: DType) -> _Nest:
    if axis is None:
        step = layout.strides[0] if len(layout.shape) == 1 else 1
        layout, axis = Layout((layout.size,), (step,)), 0
    steps = zip(layout.shape, layout.strides, contiguous(layout.shape).strides, strict=True)
    axes = [(n, a * source.itemsize, b * out.itemsize) for n, a, b in steps]
    along = axes.pop(axis)
    outer: list[Axis] = []
    for size, *strides in axes:
        if size == 1:
            continue
        if outer and list(outer[-1][1:]) == [size * stride for stride in strides]:
            size *= outer.pop()[0]
        outer.append((size, strides[0], strides[1]))
    lines = outer.pop() if outer else (1, 0, 0)
    return _Nest(outer, lines, along)


def scan_lines(writer: Any, step: NodeThunk, number: int) -> list[str]:
    """Write the function of a scan, and return the instructions of ``main`` that call it."""
    node, (root, layout) = step.node, step.operands[0]
    source, out = root.spec.dtype, node.outputs[0].spec.dtype
    if not node.outputs[0].spec.size:
        return []
    name, operand = f"{writer.prefix}scan{number}", f"%scan{number}x"
    nest = _make_nest(layout, _scanned_axis(node), source, out)
    writer.module.helper(name, _write_function(writer.module, name, node, nest))
    offset = layout.offset * source.itemsize
    pointers = writer.pointer(root), writer.pointer(node.outputs[0])
    return [
        f"  {operand} = getelementptr i8, ptr {pointers[0]}, i64 {offset}",
        f"  call void @{name}(ptr {operand}, ptr {pointers[1]})",
    ]


def _write_function(module: Any, name: str, node: Node, nest: _Nest) -> str:
    source, out = node.args[0].spec.dtype, node.outputs[0].spec.dtype
    f, from_, to = Function(module, 1), "%source", "%target"
    with ExitStack() as loops:
        for size, from_step, to_step in nest.outer:
            at = loops.enter_context(f.loop("0", str(size), "1"))
            from_ = f.address(from_, f.op(f"mul i64 {at.index}, {from_step}"))
            to = f.address(to, f.op(f"mul i64 {at.index}, {to_step}"))
        (rows, *over), (count, *along) = nest.lines, nest.along
        lines = Lines(from_, to, str(rows), str(count), _as_text(over), _as_text(along))
        adjacent = rows > 1 and over == [source.itemsize, out.itemsize]
        write = write_adjacent_lines if adjacent else write_lines
        write(f, RowFold(node.op.decl.fold, source, out), lines)
    f.do("ret void")
    # LLVM keeps the elements of a short line in registers
    kind = "alwaysinline #0" if not nest.outer and rows * count <= MOST_INLINED else "#1"
    return f.text(f"internal void @{name}(ptr %source, ptr %target) {kind}")


def _as_text(steps: Sequence[int]) -> tuple[str, str]:
    return str(steps[0]), str(steps[1])
