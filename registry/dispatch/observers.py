"""Observers: the running profiler, if there is one, and runs that note draws of random numbers.

Layers report spans that are not operator calls (a jitted function, a step of the backward pass) to the observer; the
profiler itself is :mod:`tandem.profiler`.

Source: PyTorch's ``RecordFunction``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from ... import locks
from ...locks import ThreadLocal
from .keys import DispatchKey
from .state import current_keys, set_keys, state

PROFILER = 1 << DispatchKey.Profiler


class Observer(Protocol):
    """The interface of a profiler.

    Attributes:
        kernels: whether the kernels inside compiled graphs are noted too.
    """

    kernels: bool

    def span(self, name: str, kind: str, run: Callable[[], object], inputs: tuple[object, ...] = ()) -> Any:
        """Call ``run`` and note its duration."""


class Watch:
    """The current observer, for all threads that include the Profiler key."""

    observer: Observer | None = None


watch = Watch()


Note = Callable[[str, str, int, int], None]
"""Called with the kind (usually ``"kernel"``), name, start and end of an event, in ns of ``time.perf_counter_ns``."""


class KernelWatch(ThreadLocal):
    """The function to which compiled graphs in this thread report their kernels; None: they do not report."""

    note: Note | None = None


kernel_watch = KernelWatch()


class DrawWatches:
    """Counts the runs, in all threads, that note which states of random generators are written, and their repetitions.

    Calls inside are not compiled for the first time: a repetition must call the same operators.

    Attributes:
        listeners: functions that are called with the count when it changes.
    """

    def __init__(self) -> None:
        self.count = 0
        self.listeners: list[Callable[[int], None]] = []
        self._lock = locks.make_lock("draw watches")

    def add(self, more: int) -> None:
        """Change the count."""
        with self._lock:  # listeners must not get an older count last
            self.count += more
            for listener in self.listeners:
                listener(self.count)


draw_watches = DrawWatches()


@contextmanager
def note_kernels(note: Note | None) -> Iterator[None]:
    """Make compiled graphs report their kernels to ``note`` inside the block."""
    before, kernel_watch.note = kernel_watch.note, note
    try:
        yield
    finally:
        kernel_watch.note = before


def current_observer() -> Observer | None:
    """The observer of this thread's calls, or None."""
    return watch.observer if state.include & PROFILER and not state.exclude & PROFILER else None


def run_unobserved(run: Callable[[], object]) -> object:
    """Call ``run`` without the Profiler key, so that compiled code runs as without a profiler."""
    before = current_keys()
    try:
        set_keys(state.include & ~PROFILER, state.exclude)
        return run()
    finally:
        set_keys(*before)
