"""All locks of the package, and their handling by ``os.fork``.

A lock that another thread holds during a fork would stay locked in the child, where that thread does not exist. A fork
therefore first acquires all locks, in the order of ``ORDER``, and parent and child release them, so that the data they
protect are consistent in the child. A test finds locks that are created in another way.
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable
from typing import Any

# A thread that takes two locks takes the earlier one first. Locks are held for a short time, or for compilation, and a
# fork waits for that.
ORDER = (
    *("lazy imports", "gradients", "hot calls", "jit", "minimum cuts", "cuda graphs", "registry"),
    *("profiler", "runtime", "levels", "engine", "convolution tiles", "jobs", "imports", "draw watches"),
)
# ``threading`` exports it too; importing that module takes a millisecond.
ThreadLocal = _thread._local
_locks: dict[str, list[Any]] = {}
_held: list[Any] = []  # taken by the fork in progress
# Asked while all locks are held; a fork that is told False lets the locks go and tries again.
fork_conditions: list[Callable[[], bool]] = []
# Called in the child, which has one thread only.
after_fork: list[Callable[[], object]] = []
_RETRY_SECONDS = 0.001


def make_lock(name: str, factory: Callable[[], object] = _thread.RLock) -> Any:
    """Return the process-wide lock of a name in ``ORDER``; it is created at the first call.

    Args:
        name: the name of the lock.
        factory: creates the lock, which is reentrant, since the garbage collector runs code at any point of any thread.
    """
    return make_locks(name, 1, factory)[0]


def make_locks(name: str, count: int, factory: Callable[[], object] = _thread.RLock) -> list[Any]:
    """Return the locks of a name, of which a thread takes one at a time."""
    if name not in ORDER:
        raise ValueError(
            f"there is no lock {name!r}: add it to locks.ORDER, before those that its holders take"
        )
    return _locks.setdefault(name, [factory() for _ in range(count)])


def all_locks() -> list[Any]:
    """Return all locks in the order in which they are taken; the last is that of llvmlite, which others use too."""
    ffi: object = sys.modules.get("llvmlite.binding.ffi")
    foreign = getattr(getattr(getattr(ffi, "lib", None), "_lock", None), "_lock", None)
    known = [lock for name in ORDER for lock in _locks.get(name, ())]
    return known if foreign is None else [*known, foreign]


def is_any_owned() -> bool:
    """Whether this thread holds one of the locks."""
    return any(lock._is_owned() for lock in all_locks())


def _acquire_all() -> None:
    conditions = () if is_any_owned() else fork_conditions  # others may wait for this thread
    with _Released():
        while True:
            for lock in all_locks():
                _held.append(lock)
                lock.acquire()
            if all(condition() for condition in conditions):
                return
            _release_all()
            time.sleep(_RETRY_SECONDS)


class _Released:
    """A context in which the lock of ``logging`` is released that a fork has acquired.

    Hooks that are registered later run earlier: if ``logging`` was imported after this module, the fork holds its lock
    while it waits here, perhaps for the import of a module that makes a logger.
    """

    def __enter__(self) -> None:
        lock = getattr(sys.modules.get("logging"), "_lock", None)
        self._lock: Any = lock if lock is not None and lock._is_owned() else None
        if self._lock is not None:
            self._lock.release()

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            self._lock.acquire()


def _release_all() -> None:
    while _held:
        _held.pop().release()


def _after_fork_in_child() -> None:
    _release_all()
    for work in after_fork:
        work()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all, after_in_parent=_release_all, after_in_child=_after_fork_in_child
    )
