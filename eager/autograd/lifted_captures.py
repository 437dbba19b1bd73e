"""Lift captured tensors that require gradients into the level of a joint trace.

While a function is traced together with its gradient, a tensor that it captures is replaced by a value of the level
that records the gradient, so that the gradient reaches the tensor too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...locks import ThreadLocal
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import state
from ...registry.dispatch.unwinding import register_thread_local
from ...registry.values import TensorBase

Enter = Callable[[Any], Any]


class _CaptureLifters(ThreadLocal):
    """Functions that turn a captured tensor into a value of a level, innermost level last."""

    def __init__(self) -> None:
        self.stack: list[Enter] = []


capture_lifters = register_thread_local(_CaptureLifters())


def lift_captures(tree: Any) -> Any:
    """Replace tensors that require gradients by values of the innermost level."""
    if isinstance(tree, TensorBase):
        meta = getattr(tree, "_meta", None) if tree._keys & AUTOGRAD & ~state.exclude else None
        return tree if meta is None or not meta.requires_grad else capture_lifters.stack[-1](tree)
    return tuple([lift_captures(item) for item in tree]) if type(tree) is tuple else tree
