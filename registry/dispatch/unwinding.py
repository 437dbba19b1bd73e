"""Restore a thread's state after an exception that may come at any point, such as KeyboardInterrupt.

An interrupt between the ``__enter__`` of a context manager and its block, or at the start of its ``__exit__``, leaves
the thread in the state of the block. Work that enters many context managers therefore runs in :func:`run_restoring`.
A ``with`` statement in the user's code has the same gap, as every ``with`` statement in Python.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ...locks import ThreadLocal
from ...named_tuple import NamedTuple
from .state import current, install

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Local = TypeVar("Local", bound=ThreadLocal)


class Part(NamedTuple):
    """A part of a thread's state other than the dispatch state.

    Attributes:
        take: returns a snapshot of the part.
        put: restores a snapshot.
    """

    take: Callable[[], Any]
    put: Callable[[Any], object]


parts: list[Part] = []
_locals: list[ThreadLocal] = []
_MANAGER: Any = contextlib._GeneratorContextManager
_CODES = (_MANAGER.__enter__.__code__, _MANAGER.__exit__.__code__)


def register_thread_local(local: Local) -> Local:
    """Register a thread-local object whose attributes are restored; returns the object.

    The attributes are not copied deeply: replace their values, do not change them (``x.stack = [*x.stack, item]``).
    """
    _locals.append(local)
    return local


def _close_managers(traceback: TracebackType | None) -> None:
    """Close the generators of context managers that were interrupted in ``__enter__`` or ``__exit__``.

    They would otherwise end when the traceback that refers to them is freed, and then restore state a second time.
    """
    managers = []
    while traceback is not None:
        if traceback.tb_frame.f_code in _CODES:
            managers.append(traceback.tb_frame.f_locals["self"])
        traceback = traceback.tb_next
    for manager in reversed(managers):
        with contextlib.suppress(BaseException):  # the original exception is the one to raise
            manager.gen.close()


def run_restoring(work: Callable[..., T], *args: object, **kwargs: object) -> T:
    """Call a function; if it raises, restore the thread's state from before the call."""
    before = [part.take() for part in parts]
    attributes, guards = [vars(local).copy() for local in _locals], current()
    try:
        return work(*args, **kwargs)
    except BaseException as fault:
        _close_managers(fault.__traceback__)
        for part, value in zip(parts, before):  # those of modules loaded meanwhile are left as they are
            part.put(value)
        for local, values in zip(_locals, attributes):
            vars(local).clear()
            vars(local).update(values)
        install(guards)
        raise


def restore_guards_on_error(work: F) -> F:
    """Decorator: restore the dispatch state if the function raises; for functions that change no other state."""

    @functools.wraps(work)
    def run(*args: object, **kwargs: object) -> Any:
        guards = current()
        try:
            return work(*args, **kwargs)
        except BaseException:
            install(guards)
            raise

    return run  # type: ignore[return-value]


def restore_state_on_error(work: F) -> F:
    """Decorator: restore the thread's state if the function raises."""

    @functools.wraps(work)
    def run(*args: object, **kwargs: object) -> Any:
        return run_restoring(work, *args, **kwargs)

    return run  # type: ignore[return-value]
