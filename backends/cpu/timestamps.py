"""Code that writes the time after each step, for the profiler: a second executable of the same lowered graph."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from typing import Any

from ... import lazy
from ...lowering.lower import Lowered
from ...lowering.thunks import KernelThunk, is_empty
from ...registry.dispatch.observers import Note

_report = lazy.Module(".lowering.report")
TIMES_SLOT = 3  # slot after the workspace that holds the address of the times
DECLARATION = "declare i32 @clock_gettime(i32, ptr)"
MONOTONIC, TIMESPEC = 1, 16  # the clock of time.perf_counter_ns; bytes of a timespec


def write_timestamp(number: int) -> list[str]:
    """Return instructions that write the current time to entry ``number`` of the table of times."""
    return [
        f"  %stamp{number} = getelementptr i8, ptr %stamps, i64 {TIMESPEC * number}",
        f"  %stamped{number} = call i32 @clock_gettime(i32 {MONOTONIC}, ptr %stamp{number})",
    ]


class TimestampedExecutable:
    """An executable that writes the time after each step, and reports the steps to the profiler.

    Args:
        lowered: the graph.
        compile: returns the executable; called at the first run.
    """

    def __init__(self, lowered: Lowered, compile: Callable[[], Any]):
        self.lowered, self._compile = lowered, compile
        self._executable: Any = None

    def run(self, arrays: list[Any], note: Note) -> list[Any]:
        """Run the graph and report its steps.

        Args:
            arrays: as for :meth:`.executable.CpuExecutable.run`.
            note: called for each kernel, with the name that ``kernels()`` prints.
        """
        if self._executable is None:
            start = time.perf_counter_ns()
            self._executable = self._compile()
            note("compile", "kernels with times", start, time.perf_counter_ns())
        times = (ctypes.c_int64 * (2 * len(self.lowered.steps) + 2))()
        results: list[Any] = self._executable.run(arrays, ctypes.addressof(times))
        for name, start, end in self._spans(times):
            note("kernel", name, start, end)
        return results

    def _spans(self, times: Any) -> Iterator[tuple[str, int, int]]:
        stamps = [times[2 * n] * 10**9 + times[2 * n + 1] for n in range(len(self.lowered.steps) + 1)]
        for step, start, end in zip(self.lowered.steps, stamps, stamps[1:]):
            if not (isinstance(step, KernelThunk) and is_empty(step)):
                yield _report.describe_thunk(step), start, end
