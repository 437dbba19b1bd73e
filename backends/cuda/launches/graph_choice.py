"""Choose by measurement whether an executable launches its kernels one by one or replays them as one CUDA graph.

A graph saves a driver call for each kernel, and the gaps between kernels on the device; but the addresses of each node
have to be set at each call. Both are timed once, in a hot call: its kernels run again, several times. They read the
arguments and write the call's own results and scratch memory, so running them again has no effect.
"""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

from .... import config, locks
from ....errors import CudaError, OutOfMemoryError
from ....named_tuple import NamedTuple
from ..blas import cublas
from ..runtime.streams import Stream
from .graphs import CAPTURED, Replay, Submission

FEW, ROUNDS = 3, 5
BATCH = 16  # the maximum number of calls in a timed batch
BUDGET = 4e-3  # approximate seconds of one batch
BUSY = 100e-6  # seconds of device time for each kernel from which the gaps between kernels do not matter
MARGIN = 0.97  # a time below this part of another one counts as less
_lock = locks.make_lock("cuda graphs")


class Times(NamedTuple):
    """Seconds of a call: in total, and until it returns to the host."""

    whole: float
    host: float

    def __str__(self) -> str:
        return f"{self.whole * 1e6:.1f} us a call, {self.host * 1e6:.1f} us of the host"


class GraphChoice:
    """The choice between launching the kernels of an executable one by one and replaying a CUDA graph.

    Args:
        plain: launches the kernels one by one.
        kernels: the number of kernels.
        make: makes the replay.
        reason: why a replay is impossible; empty if it is possible.

    Attributes:
        plain: as given.
        submission: the current choice.
        is_final: whether the choice is final.
        why: the reason, in words.
    """

    def __init__(self, plain: Submission, kernels: int, make: Callable[[], Replay], reason: str):
        self.plain: Submission = plain
        self.submission: Submission = plain
        self._kernels, self._make = kernels, make
        self._is_measuring, self._calls = False, 0
        limit = config.flags.cuda_graphs
        self.is_final, self.why = True, reason
        if reason:
            return
        if limit == "auto":
            self.is_final = kernels < 2
            self.why = "" if kernels < 2 else f"a CUDA graph is tried after {config.flags.hot_calls} calls"
        elif 0 < int(limit) <= kernels:
            self._replay(f"cuda_graphs is {limit}")
        else:
            self.why = f"cuda_graphs is {limit}"

    def __str__(self) -> str:
        many = f"its {self._kernels} kernels are" if self._kernels != 1 else "its kernel is"
        how = "launched one after the other" if self._kernels != 1 else "launched"
        if self.submission is not self.plain:
            how = "replayed as one CUDA graph"
        return f"{many} {how}{self.why and ': '}{self.why}"

    def queue(self, stream: Stream, buffers: Any, scalars: Any) -> None:
        """Launch the kernels of a call.

        Args:
            stream: the stream.
            buffers, scalars: the call's tables, as ctypes arrays.

        Raises:
            CudaError: the driver reports an error of a launch.
        """
        submission = self.submission
        code = submission.queue(buffers, scalars)
        if code == CAPTURED:
            submission = self.plain
            code = submission.queue(buffers, scalars)
        if code:
            raise self._to_exception(stream, submission, code)
        if not self.is_final:
            self._count_call(stream, buffers, scalars)

    def _to_exception(self, stream: Stream, submission: Submission, code: int) -> Exception:
        if code >= cublas.REFUSED:
            return cublas.fault("cublasGemmEx", code - cublas.REFUSED)
        name = "cuLaunchKernel" if submission is self.plain else "cuGraphLaunch"
        result: Exception = stream.at.driver.fault(name, code)
        return result

    def _count_call(self, stream: Stream, buffers: Any, scalars: Any) -> None:
        """Count a call, and measure if it is hot and no other thread is measuring."""
        self._calls += 1
        if self._calls < config.flags.hot_calls or _is_captured(stream) or not self._begin():
            return
        try:
            self._decide(stream, buffers, scalars)
        finally:
            self._is_measuring = False

    def _begin(self) -> bool:
        """Reserve the measurement for this thread; False if it is done or another thread has it."""
        with _lock:
            begins = not self._is_measuring and not self.is_final
            self._is_measuring = self._is_measuring or begins
        return begins

    def _replay(self, why: str) -> None:
        """Choose the replay, or record the reason if the driver cannot make a graph."""
        try:
            self.submission, self.why = self._make(), why
        except (CudaError, OutOfMemoryError) as fault:
            self.why = f"no CUDA graph could be made: {fault}"

    def _decide(self, stream: Stream, buffers: Any, scalars: Any) -> None:
        try:
            self.submission, self.why = self._measure(stream, buffers, scalars)
        except (CudaError, OutOfMemoryError) as fault:
            self.why = f"no CUDA graph could be made or timed: {fault}"
        self.is_final = True

    def _measure(self, stream: Stream, buffers: Any, scalars: Any) -> tuple[Submission, str]:
        """The faster submission, and a description of both times."""

        def timed(submission: Submission, count: int) -> Times:
            start = perf_counter()
            for _ in range(count):
                code = submission.queue(buffers, scalars)
                if code:
                    raise self._to_exception(stream, submission, code)
            queued = perf_counter()
            stream.wait()
            return Times((perf_counter() - start) / count, (queued - start) / count)

        stream.wait()
        first = min(timed(self.plain, 1) for _ in range(FEW))
        if first.whole - first.host > BUSY * self._kernels:
            return self.plain, f"with {first} the gaps between them do not show"
        replay = self._make()
        timed(replay, 1)  # the first launch of a graph prepares it
        count = max(1, int(BUDGET / max(first.whole, BUDGET / BATCH)))
        rounds = [(timed(self.plain, count), timed(replay, count)) for _ in range(ROUNDS)]
        plain, graph = (_median(times) for times in zip(*rounds, strict=True))
        chosen = replay if _is_less(graph, plain) else self.plain
        return chosen, f"{graph} as a graph, {plain} one after the other"


def _median(times: tuple[Times, ...]) -> Times:
    return Times(*(statistics.median(column) for column in zip(*times, strict=True)))


def _is_less(one: Times, other: Times) -> bool:
    """Whether ``one`` takes less time in total; if both take about the same, less host time."""
    if one.whole < other.whole * MARGIN:
        return True
    return one.whole * MARGIN < other.whole and one.host < other.host * MARGIN


def _is_captured(stream: Stream) -> bool:
    """Whether a stream is being captured, so that the host must not wait for it."""
    result = ctypes.c_int()
    asked = stream.at.driver.function("cuStreamIsCapturing")
    return bool(asked(stream.handle, ctypes.addressof(result)) or result.value)
