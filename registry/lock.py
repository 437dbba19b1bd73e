"""The registry's lock: registrations take it; calls of an operator with a computed dispatch table never do."""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import background, locks


class RegistryLock:
    """A reentrant lock with a queue of work to run when it is free.

    The garbage collector may delete a library at any point of any thread, even during a registration. Its
    registrations are therefore removed by :meth:`later`: immediately if no registration is in progress, otherwise
    afterwards.

    ``with lock:`` is safe against interrupts: ``__enter__`` and ``__exit__`` are looked up before the lock is taken and
    return C functions. Python methods could be interrupted after the lock is taken, or before it is released.
    """

    def __init__(self) -> None:
        inner: Any = _thread.RLock()
        self.acquire, self.release, self._is_owned = inner.acquire, inner.release, inner._is_owned
        self._leave = inner.__exit__
        self._left: deque[Callable[[], None]] = deque()

    @property
    def __enter__(self) -> Callable[[], bool]:
        self.work_off()
        enter: Callable[[], bool] = self.acquire
        return enter

    @property
    def __exit__(self) -> Callable[..., None]:
        leave: Callable[..., None] = self._leave
        return leave

    def if_free(self, work: Callable[[], object]) -> bool:
        """Run ``work`` under the lock if no other thread holds it; for work that a later call can do as well.

        Signals do not interrupt the work.

        Returns:
            Whether the work was done.
        """
        if self._is_owned():
            work()
            return True
        return background.run(self._if_free, work)

    def _if_free(self, work: Callable[[], object]) -> bool:
        if not self.acquire(blocking=False):
            return False
        try:
            work()
        finally:
            self.release()
        return True

    def later(self, work: Callable[[], None]) -> None:
        """Run ``work`` under the lock as soon as no registration is in progress."""
        self._left.append(work)
        self.work_off()
        if self._left:
            background.start(self._wait_and_work_off)

    def work_off(self) -> None:
        """Run the queued work if no registration is in progress."""
        while self._left and not self._is_owned() and self.acquire(blocking=False):
            self._do_next()

    def _wait_and_work_off(self) -> None:
        while self._left:
            self.acquire()
            self._do_next()

    def _do_next(self) -> None:
        try:
            if self._left:
                self._left.popleft()()
        finally:
            self.release()


lock: RegistryLock = locks.make_lock("registry", RegistryLock)
