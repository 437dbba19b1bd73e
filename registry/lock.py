"""The registry's one lock: taken by registration, never by a call of an operator that has a table."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType


class RegistryLock:
    """A lock that a thread may take again, and that knows of work left for when it is free.

    The garbage collector may drop a library at any point of any thread, also in the middle of a registration. What the
    library has registered is therefore not taken back there and then but by :meth:`later`: at once if nobody is
    registering, else when that is over.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._left: deque[Callable[[], None]] = deque()

    def __enter__(self) -> RegistryLock:
        self._lock.acquire()
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self._depth -= 1
        outermost = not self._depth
        self._lock.release()
        if outermost and self._left:
            self._work_off()

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Take the lock for a ``with`` block if no other thread has it: for what a call may put off to a later one.

        Returns:
            A context manager that yields whether the lock has been taken.
        """
        if not self._lock.acquire(blocking=False):
            yield False
            return
        with self:
            self._lock.release()
            yield True

    def later(self, work: Callable[[], None]) -> None:
        """Do something under the lock, as soon as no registration is in progress."""
        self._left.append(work)
        self._work_off()

    def _work_off(self) -> None:
        # Who holds the lock does what is left when letting it go, so that waiting here is never needed.
        while self._left and self._lock.acquire(blocking=False):
            work = None
            try:
                if self._depth:
                    return
                self._depth += 1
                try:
                    work = self._left.popleft() if self._left else None
                    if work is not None:
                        work()
                finally:
                    self._depth -= 1
            finally:
                self._lock.release()


lock = RegistryLock()
