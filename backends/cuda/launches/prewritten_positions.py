"""Positions that compiled graphs check by a prewritten kernel."""

from __future__ import annotations

from typing import Any

from ....lowering.thunks import NodeThunk
from ....registry.dtypes import int64
from ....tracer.graph import Node, Value
from .prewritten_text import FAULT, Address, Launch, fault_number, make_source_launch


def are_tensors(*values: Any) -> bool:
    """Whether all arguments are tensors, and not weak values (Python numbers of a call)."""
    return all(isinstance(value, Value) and value.weak is None for value in values)


def can_check(node: Node) -> bool:
    """Whether the kernel supports a node of ``cuda::checked_index``."""
    return node.args[0].spec.dtype is int64


def check_positions(step: NodeThunk) -> list[Launch]:
    """The launch that makes positions nonnegative and checks their bounds."""
    _, size, axis = step.node.args
    count = step.node.outputs[0].spec.size
    call = fault_number("index", axis, (size,))
    return [make_source_launch("checked_index", count, Address(1), Address(0), FAULT, count, size, call)]
