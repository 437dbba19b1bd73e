"""Which prewritten or declared native code computes a node, for kernel selection."""

from __future__ import annotations

from collections.abc import Sequence

from ... import lazy
from ...lowering.layout import Layout
from ...tracer.graph import Node
from .foreign_calls import explain_foreign_call
from .random_bits import explain_random_bits

_scans = lazy.Module(".backends.cpu.scans")
_calls = lazy.Module(".backends.cpu.native_kernels.calls")


def explain_native(node: Node) -> str | None:
    """Return why prewritten code serves a node, or None if none does."""
    if is_scan(node):
        why: str | None = _scans.explain_scan(node)
        return why
    if node.op.decl.native is not None:
        loop: str | None = _calls.explain_loop_call(node)
        return loop
    return explain_random_bits(node) or explain_foreign_call(node)


def is_scan(node: Node) -> bool:
    """Return whether a node is a scan."""
    return getattr(node.op.decl, "kind", "") == "scan"


def operands_to_copy(node: Node, layouts: Sequence[Layout]) -> Sequence[bool] | None:
    """Return which operands of a node are copied first; None if those are that are not contiguous."""
    if is_scan(node):
        return [_scans.must_copy(node, layouts[0])]
    return [False] * len(layouts) if getattr(node.op.decl, "native", None) is not None else None
