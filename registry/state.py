"""Per-thread dispatch state: keys included in and excluded from every call, and who is told when they change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from .keys import DispatchKey, bits_of


class ThreadState(threading.local):
    """The dispatch state of this thread.

    Attributes:
        include: key set added to the keys of the arguments.
        exclude: key set removed from them (after ``include``).
        depth: nesting of printed calls, for the dispatch trace.
    """

    include: int = 0
    exclude: int = 0
    depth: int = 0


state = ThreadState()

# Called with the thread's state after each change, in the thread concerned; native code mirrors the state so.
listeners: list[Callable[[ThreadState], None]] = []


def set_keys(include: int, exclude: int) -> tuple[int, int]:
    """Set the thread's key sets and return the former ones."""
    before = state.include, state.exclude
    if before != (include, exclude):
        state.include, state.exclude = include, exclude
        for listener in listeners:
            listener(state)
    return before


@contextmanager
def adjusted(include: int = 0, exclude: int = 0) -> Iterator[None]:
    """Include and exclude key sets inside a ``with`` block; the later word on a key wins."""
    before = state.include, state.exclude
    set_keys((before[0] | include) & ~exclude, (before[1] | exclude) & ~include)
    try:
        yield
    finally:
        set_keys(*before)


def include_keys(*keys: str | DispatchKey) -> AbstractContextManager[None]:
    """Context manager that adds keys to those of the arguments, in this thread.

    Args:
        keys: dispatch keys, or names of keys and aliases.

    Returns:
        A context manager.

    Raises:
        ArgumentError: something is neither a key nor a name.
        ValueArgumentError: no key has that name.

    >>> import tandem as td
    >>> with td.include_keys("Mode"):  # nobody has registered a kernel for it, so calls fall through
    ...     (td.asarray([1.0]) + 1).tolist()
    [2.0]
    """
    return adjusted(include=bits_of(keys))


def exclude_keys(*keys: str | DispatchKey) -> AbstractContextManager[None]:
    """Context manager that removes keys from those of the arguments, in this thread.

    Args:
        keys: dispatch keys, or names of keys and aliases.

    Returns:
        A context manager.

    Raises:
        ArgumentError: something is neither a key nor a name.
        ValueArgumentError: no key has that name.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> with td.exclude_keys("Autograd"):
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    return adjusted(exclude=bits_of(keys))
