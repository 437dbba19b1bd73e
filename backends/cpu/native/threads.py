"""Thread state for native entries: a flag word per thread, and a count of the threads whose word is not PLAIN.

An entry looks at the count first; while it is zero, as nearly always, no thread's word is read.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from ....registry.keys import AUTOGRAD
from ....registry.state import listeners
from . import rt_base as rt
from .records import Record
from .rt_base import ELSEWHERE, NO_GRAD, PLAIN

_libc = ctypes.CDLL(None)
_libc.pthread_setspecific.argtypes = (ctypes.c_uint, ctypes.c_void_p)
_lock = threading.Lock()
# One per thread that ever left the default state; never freed, threads may look late.
_words: list[Record] = []


class _Mine(threading.local):
    """This thread's word. It counts itself out when the thread ends."""

    def __init__(self) -> None:
        self.guard = _Guard()


class _Guard:
    """Leaves with its thread."""

    def __init__(self) -> None:
        self.word: Any = None
        self.leave: Any = None

    def __del__(self) -> None:
        if self.word is not None and self.word.value != PLAIN:
            self.leave()


class ThreadMirror:
    """Keeps the process record's count and this thread's word in step with the dispatch state.

    Args:
        process: the process record.
    """

    def __init__(self, process: Record) -> None:
        self.busy = process.word(rt.G_BUSY)
        key = ctypes.c_uint()
        if _libc.pthread_key_create(ctypes.byref(key), None):
            raise RuntimeError("no pthread key is left for the native layer")
        self.key = key.value
        self.mine = _Mine()
        process.set(rt.G_TLS, self.key)
        listeners.append(self.follow)

    def follow(self, include: int, exclude: int) -> None:
        """A listener of the registry's state: runs in the thread whose state has changed."""
        flags = flags_of(include, exclude)
        guard = self.mine.guard
        word = guard.word
        if word is None:
            record = Record(8)
            word = guard.word = record.word(0)
            guard.leave = self._leave
            _words.append(record)
            _libc.pthread_setspecific(self.key, record.address)
        if word.value == PLAIN:
            if flags != PLAIN:
                self._count(1)
        elif flags == PLAIN:
            self._count(-1)
        word.value = flags

    def _leave(self) -> None:
        self._count(-1)

    def _count(self, step: int) -> None:
        with _lock:
            self.busy.value += step


def flags_of(include: int, exclude: int) -> int:
    """What a dispatch state means for native entries."""
    if include:
        return ELSEWHERE
    return NO_GRAD if exclude == AUTOGRAD else ELSEWHERE if exclude else PLAIN
