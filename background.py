"""Run work that must not be interrupted on a separate thread, while the caller waits.

Python runs signal handlers in the main thread only. What a KeyboardInterrupt would leave half done there (an import
that declares operators, a call into LLVM, whose handles would be freed twice) runs here instead: the interrupt ends
the wait, and the work ends by itself. These threads have a stack large enough for LLVM, whatever stack the caller has.
"""

from __future__ import annotations

import _thread
import atexit
import importlib
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, TypeVar

from . import locks

T = TypeVar("T")
STACK_BYTES = 64 << 20
_gate = locks.make_lock("jobs")  # held while a job is counted in or out
_running: set[_Job] = set()


class _ThreadFlags(locks.ThreadLocal):
    is_job = False


_thread_flags = _ThreadFlags()


class _Job:
    """One piece of work, and what has become of it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.done = _thread.allocate_lock()  # a fork waits for jobs, so this one needs no care
        self.result: Any = None
        self.fault: BaseException | None = None
        self.done.acquire()

    def run(self) -> None:
        """Do the work; runs on the job's thread."""
        try:
            with _gate:
                _running.add(self)
            _thread_flags.is_job = True
            self.result = self.work()
        except BaseException as fault:
            self.fault = fault
        finally:
            try:
                with _gate:
                    _running.discard(self)
            finally:
                self.done.release()

    def wait(self) -> Any:
        """The result, when it is there."""
        with self.done:  # released again: the end of the process may wait too
            fault, self.fault = self.fault, None
        if fault is not None:
            try:
                raise fault
            finally:
                del fault  # its traceback refers to this frame
        return self.result


def run(work: Callable[..., T], *args: Any) -> T:
    """Call a function on another thread and return its result, or raise its exception.

    An exception that a signal handler raises meanwhile ends the wait; the work goes on and its result is dropped. Work
    that jobs ask for runs in their own thread. The work must not need a lock that the caller holds.
    """
    if _thread_flags.is_job:
        return work(*args)
    try:
        job = _Job(lambda: work(*args))
        _start(job)
    except (RuntimeError, MemoryError):  # no memory for a lock, no more threads, or Python is ending
        return work(*args)
    result: T = job.wait()
    return result


def start(work: Callable[[], object]) -> None:
    """Call a function on a new thread, without waiting for it."""
    _start(_Job(work))


def _start(job: _Job) -> None:
    importlib.import_module(
        "threading"
    )  # here, because it takes the thread that imports it first as the main thread
    before = _thread.stack_size(STACK_BYTES)
    try:
        _thread.start_new_thread(job.run, ())
    finally:
        _thread.stack_size(before)


class Deadline:
    """A context in which ``work`` is called on another thread if the block takes longer than a delay.

    Args:
        delay: in seconds; 0 for no deadline.
        work: what to call.

    Attributes:
        is_past: whether ``work`` was called.
    """

    def __init__(self, delay: float, work: Callable[[], object]) -> None:
        self.delay, self.work, self.is_past = delay, work, False
        self._start, self._done = perf_counter(), _thread.allocate_lock()

    def __enter__(self) -> Deadline:
        self._done.acquire()
        if self.delay:
            with suppress(RuntimeError):  # no more threads, or Python is ending
                _thread.start_new_thread(self._wait, ())
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.release()

    @property
    def seconds(self) -> float:
        """The time since the deadline was made."""
        return perf_counter() - self._start

    def _wait(self) -> None:
        if not self._done.acquire(timeout=self.delay):
            self.is_past = True
            self.work()


def is_idle() -> bool:
    """Whether no job is running."""
    return not _running


def _wait_for_jobs() -> None:
    """Wait for running jobs: LLVM must not run while the interpreter shuts down."""
    for job in list(_running):
        with job.done:
            pass


locks.fork_conditions.append(is_idle)
atexit.register(_wait_for_jobs)
