"""Tensors with a history that a traced function reaches by itself, while it is traced together with its gradient.

Values of the level that records the gradient take their place, so that the gradient reaches them too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..registry.keys import AUTOGRAD
from ..registry.state import state
from ..registry.values import TensorBase

Enter = Callable[[Any], Any]


class _Entrances(threading.local):
    """What makes a value of the level for such a tensor; the innermost level is last."""

    def __init__(self) -> None:
        self.stack: list[Enter] = []


entrances = _Entrances()


def entered(tree: Any) -> Any:
    """The arguments of a call with values of the level in place of recorded tensors."""
    if isinstance(tree, TensorBase):
        meta = getattr(tree, "_meta", None) if tree._keys & AUTOGRAD & ~state.exclude else None
        return tree if meta is None or not meta.requires_grad else entrances.stack[-1](tree)
    return tuple([entered(item) for item in tree]) if type(tree) is tuple else tree
