"""Native runtime: releasing the GIL while long loops run.

Eager entries bracket a loop by `release_gil` and `acquire_gil`. They hold references to every array that the loop
touches, because another thread may drop the tensors meanwhile.

Compiled graphs share one `GilState` per call, on the stack of `main`: its address is among the buffers of `main` and
of each body that a loop calls. `gil_release` and `gil_acquire` do nothing if the state is already the wanted one.
Loops call `gil_poll` every so many iterations: it releases the GIL once the call has taken long enough, lets Python
handle signals on the main thread, and adapts the number of iterations to the time that they take.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, ptr, stack
from ..compiler.structs import Struct
from . import capi


class CallState(Struct):
    """The state of a call with long loops."""

    saved: ptr  # the thread state while the GIL is released, else NULL
    start: i64  # when the call was first timed, in nanoseconds
    checked: i64  # when signals were last checked
    main: i64  # 1 on the main thread


class LoopState(Struct):
    """The state of a loop that polls."""

    timed: i64  # when it was last timed (0: never)
    interval: i64  # iterations between two polls


SHORT: i64 = 20000  # nanoseconds that a call may take before its loops release the GIL
SIGNAL_PERIOD: i64 = 50000000  # nanoseconds between two checks for signals
SOON: i64 = 10000  # polls closer together than this are made rarer
LATE: i64 = 200000  # polls farther apart than this are made more frequent
MOST_ITERATIONS: i64 = 16384

RELEASE_BYTES: i64 = 262144  # copies from this size on run without the GIL


@native
def now() -> i64:
    time = stack(16)
    capi.clock_gettime(capi.CLOCK_MONOTONIC, time)
    return load(i64, time, 0) * 1000000000 + load(i64, time, 8)


@native
def gil_release(state: CallState) -> None:
    """Release the GIL of a compiled call, unless it is already released."""
    if state.saved == NULL:
        state.main = i64(capi.is_main_thread())
        state.saved = capi.PyEval_SaveThread()


@native
def gil_acquire(state: CallState) -> None:
    """Acquire the GIL of a compiled call, unless the call already holds it."""
    saved = state.saved
    if saved != NULL:
        state.saved = NULL
        capi.PyEval_RestoreThread(saved)


@native
def gil_poll(state: CallState, loop: LoopState, iteration: i64, length: i64) -> i64:
    """Return the iteration of the next poll, at most ``length``; 0 (GIL held, exception set) if a handler raised."""
    time = now()
    if state.start == 0:
        state.start = time
        state.checked = time
        if state.saved == NULL:
            state.main = i64(capi.is_main_thread())
    interval = next_interval(loop, time)
    if state.main != 0 and time - state.checked >= SIGNAL_PERIOD:
        gil_acquire(state)
        if capi.PyErr_CheckSignals() != 0:
            return 0
        time = now()  # acquiring the GIL may have taken long
        state.checked = time
    if state.saved == NULL and time - state.start >= SHORT:
        gil_release(state)
    loop.timed = time
    return iteration + interval if interval < length - iteration else length


@native
def next_interval(loop: LoopState, time: i64) -> i64:
    """Adapt the number of iterations between two polls to the time since the last one."""
    interval, timed = loop.interval, loop.timed
    if timed != 0:
        elapsed = time - timed
        if elapsed < SOON:
            interval = interval * 2 if interval * 2 < MOST_ITERATIONS else MOST_ITERATIONS
        elif elapsed > LATE:
            interval = interval * SOON // elapsed
            interval = interval if interval > 0 else 1
        loop.interval = interval
    return interval


@native
def release_gil(is_long: bool) -> ptr:
    """Release the GIL around a long eager loop, and return the thread state; NULL for a short loop."""
    return capi.PyEval_SaveThread() if is_long else ptr(0)


@native
def acquire_gil(saved: ptr) -> None:
    """Acquire the GIL again after `release_gil`."""
    if saved != NULL:
        capi.PyEval_RestoreThread(saved)
