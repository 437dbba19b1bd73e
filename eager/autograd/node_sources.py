"""The source of a backward pass's next node: Python, or native code that evaluates common nodes itself."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop
from typing import TYPE_CHECKING, Any

from .node import Node

if TYPE_CHECKING:
    from ...registry.types import Function


def next_node(
    deliver: Function, heap: list[Any], pending: object, leaves: object, keep: bool, is_recorded: bool
) -> Node | None:
    """Pop the newest node from the heap of nodes that have a cotangent.

    Native twin: backends/cpu/fastpath/runtime/rt_backward.py:backward
    """
    node: Node = heappop(heap)[1]
    return node


# Functions that return the next node to evaluate. The last one is used; native code appends one that steps common nodes
# itself, as :meth:`engine.Pass._step` would, and returns the first node that it does not handle, or None.
node_sources: list[Callable[..., Node | None]] = [next_node]
