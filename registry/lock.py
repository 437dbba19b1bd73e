"""The registry's lock: registrations take it; calls of an operator with a computed dispatch table never do."""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import background, locks


class RegistryLock:
    """A reentrant lock with a queue of pending calls, which run when the lock is free.

    The garbage collector may delete a library at any point of any thread, even during a registration. Its
    registrations are therefore removed by :meth:`call_when_free`: immediately if no registration is in progress,
    otherwise afterwards.

    ``with lock:`` is safe against interrupts: ``__enter__`` and ``__exit__`` are looked up before the lock is taken and
    return C functions. Python methods could be interrupted after the lock is taken, or before it is released.
    """

    def __init__(self) -> None:
        inner: Any = _thread.RLock()
        self.acquire, self.release, self._is_owned = inner.acquire, inner.release, inner._is_owned
        self._exit = inner.__exit__
        self._pending: deque[Callable[[], None]] = deque()

    @property
    def __enter__(self) -> Callable[[], bool]:
        self.run_pending()
        enter: Callable[[], bool] = self.acquire
        return enter

    @property
    def __exit__(self) -> Callable[..., None]:
        exit_: Callable[..., None] = self._exit
        return exit_

    def if_free(self, work: Callable[[], object]) -> bool:
        """Run ``work`` under the lock unless another thread holds it; for work that a later call can do as well.

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

    def call_when_free(self, work: Callable[[], None]) -> None:
        """Run ``work`` under the lock as soon as no registration is in progress."""
        self._pending.append(work)
        self.run_pending()
        if self._pending:
            background.start(self._wait_and_run_pending)

    def run_pending(self) -> None:
        """Run the pending calls if no registration is in progress."""
        while self._pending and not self._is_owned() and self.acquire(blocking=False):
            self._run_next()

    def _wait_and_run_pending(self) -> None:
        while self._pending:
            self.acquire()
            self._run_next()

    def _run_next(self) -> None:
        try:
            if self._pending:
                self._pending.popleft()()
        finally:
            self.release()


lock: RegistryLock = locks.make_lock("registry", RegistryLock)
