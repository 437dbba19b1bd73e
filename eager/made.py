"""Which tensors have been made since a level was opened, in this thread: those that may be written inside it.

While any level is open, every new block of memory is noted, by a weak reference to the tensor that owns it: by
:func:`.tensor.wrap`, by the entries of machine code, and by a trace. Views of older memory are not.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

# [number of levels open in this process]: nothing is noted, and nobody asked, while it is 0.
watching = [0]
# Told when the first level opens (True) and when the last one closes; native code notes its results in between.
listeners: list[Callable[[bool], None]] = []
_lock = threading.Lock()
_FIRST = 64


class _Made(threading.local):
    """What was made in each open level of this thread, outermost first."""

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []
        self.crowded = _FIRST


_made = _Made()


def opened() -> None:
    """A level opens."""
    _made.lists.append([])
    _count(1)


def closed() -> None:
    """The innermost level closes; what was made in it was made in the one around it."""
    inner = _made.lists.pop()
    if _made.lists:
        _made.lists[-1].extend(inner)
    else:
        _made.crowded = _FIRST
    _count(-1)


def _count(step: int) -> None:
    with _lock:
        before = watching[0]
        watching[0] += step
        if not before or not watching[0]:
            for listener in listeners:
                listener(bool(watching[0]))


def note(tensor: Any) -> None:
    """A tensor in new memory has been made."""
    lists = _made.lists
    if not lists:
        return
    found = lists[-1]
    found.append(ref(tensor))
    if len(found) > _made.crowded:  # leave out those that are gone, each time the number has doubled
        found[:] = [made for made in found if made() is not None]
        _made.crowded = 2 * len(found) + _FIRST


class _Probe:
    def __init__(self) -> None:
        self._array = np.zeros(1)


def _references(tensor: Any) -> int:
    return sys.getrefcount(tensor._array)


_ALONE = _references(_Probe())


def note_native(tensor: Any) -> None:
    """Machine code has made a tensor; it is noted if no other object refers to its array."""
    if _references(tensor) <= _ALONE:
        note(tensor)


def since(depth: int, tensor: Any) -> bool:
    """Whether a tensor was made since the level of a depth (from 1) was opened in this thread."""
    return any(made() is tensor for found in _made.lists[depth - 1 :] for made in found)


def owns_memory(array: Any) -> bool:
    """Whether an array is no view of another."""
    return not isinstance(array.base, np.ndarray)
