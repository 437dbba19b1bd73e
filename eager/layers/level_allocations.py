"""Track the tensors allocated since a level was opened, in this thread: those may be written inside the level.

While any level is open, every new block of memory is noted by a weak reference to the tensor that owns it. The callers
are :func:`..tensor.tensor.wrap`, native entries, and traces. Views of existing memory are not noted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ... import locks
from ...locks import ThreadLocal
from ...registry.dispatch import unwinding

if TYPE_CHECKING:
    from ...registry.types import Array
    from ...registry.values import TensorBase

# [number of open levels in this process]: nothing is noted while it is 0.
open_level_count = [0]
_MANY = 2
_told = [0]  # the last value passed to the listeners
# Called with the number of open levels, at most 2, when it changes; native code notes its results while it is not 0.
listeners: list[Callable[[int], None]] = []
# Called once, before the first level of the process opens, while no lock is held.
before_first_level: list[Callable[[], object]] = []
_lock = locks.make_lock("levels")
_FIRST = 64


class _Allocations(ThreadLocal):
    """The tensors allocated in each open level of this thread, outermost first."""

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []
        self.prune_size = _FIRST
        self.counted = 0  # the number of lists that `open_level_count` includes


_allocations = _Allocations()


def open_scope() -> list[Any]:
    """Open the scope of a new innermost level; return the list of weak references to what is allocated in it."""
    while before_first_level:
        before_first_level.pop()()
    made: list[Any] = []
    _allocations.lists.append(made)
    _count()
    return made


def scope_count() -> int:
    """The number of open scopes in this thread: the index of the next one."""
    return len(_allocations.lists)


def close_scope() -> None:
    """Close the innermost scope; its allocations now belong to the enclosing one."""
    inner = _allocations.lists.pop()
    if _allocations.lists:
        _allocations.lists[-1].extend(inner)
    else:
        _allocations.prune_size = _FIRST
    _count()


def _count() -> None:
    """Update the process-wide count; after an interrupt, the next call corrects it."""
    with _lock:
        depth = len(_allocations.lists)
        open_level_count[0] += depth - _allocations.counted
        _allocations.counted = depth  # no interrupt can occur between these two assignments
        count = min(open_level_count[0], _MANY)
        if count != _told[0]:
            for listener in listeners:
                listener(count)
            _told[0] = count


def _close_scopes(before: int) -> None:
    """Close the scopes beyond `before`, which an exception has left open."""
    while len(_allocations.lists) > before:
        close_scope()
    _count()


def _count_again() -> None:
    """After a fork: only the levels of this thread exist in the child."""
    open_level_count[0] = _allocations.counted
    _count()


unwinding.parts.append(unwinding.Part(lambda: len(_allocations.lists), _close_scopes))
locks.after_fork.append(_count_again)


def note_allocation(tensor: TensorBase) -> None:
    """Note a tensor that owns newly allocated memory."""
    lists = _allocations.lists
    if not lists:
        return
    references = lists[-1]
    references.append(ref(tensor))
    if len(references) > _allocations.prune_size:  # remove dead references each time the number has doubled
        references[:] = [reference for reference in references if reference() is not None]
        _allocations.prune_size = 2 * len(references) + _FIRST


def is_made_since(scope: int, tensor: TensorBase) -> bool:
    """Whether a tensor was allocated since the scope of an index was opened in this thread."""
    return any(reference() is tensor for value in _allocations.lists[scope:] for reference in value)


def owns_memory(array: Array) -> bool:
    """Whether an array is not a view of another."""
    return not isinstance(array.base, np.ndarray)
