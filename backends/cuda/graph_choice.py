"""Whether an executable's kernels are launched one after the other or replayed as one CUDA graph: by what takes less.

A graph saves the host a call of the driver for each kernel, and the device the gaps between kernels; but each node has
to be given its addresses anew. So it is measured, once: a call that has become hot runs the work of its kernels again,
each way in turn. They read the arguments and write the call's own results and scratch memory, so that running them
again changes nothing.
"""

from __future__ import annotations

import ctypes
import statistics
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from ... import config
from ...errors import CudaError, OutOfMemoryError
from . import cublas
from .graphs import CAPTURED, Replay, Way
from .streams import Stream

FEW, ROUNDS = 3, 5
BATCH = 16  # calls that are put into the stream before the host waits, at most
BUDGET = 4e-3  # seconds of one batch, about
FILLED = (
    100e-6  # seconds a kernel that the device goes on for; from there the gaps between kernels do not show
)
MARGIN = 0.97  # of the other's time: what counts as less


class Times(NamedTuple):
    """Seconds of a call: all in all, and until the host goes on."""

    whole: float
    host: float

    def __str__(self) -> str:
        return f"{self.whole * 1e6:.1f} us a call, {self.host * 1e6:.1f} us of the host"


class GraphChoice:
    """Chooses between the two ways of one executable, by the flag ``cuda_graphs`` or by their times.

    Args:
        plain: launches the kernels one after the other.
        kernels: how many there are.
        make: makes the replay.
        reason: why there is none to be made; empty if there may be one.

    Attributes:
        plain: as given.
        way: the way that calls take.
        settled: whether it stays so.
        why: what led to it, in words.
    """

    def __init__(self, plain: Way, kernels: int, make: Callable[[], Replay], reason: str):
        self.plain: Way = plain
        self.way: Way = plain
        self._kernels, self._make = kernels, make
        self._lock, self._calls = threading.Lock(), 0
        limit = config.flags.cuda_graphs
        self.settled, self.why = True, reason
        if reason:
            return
        if limit == "auto":
            self.settled = kernels < 2
            self.why = "" if kernels < 2 else f"a CUDA graph is tried after {config.flags.hot_calls} calls"
        elif 0 < int(limit) <= kernels:
            self._replay(f"cuda_graphs is {limit}")
        else:
            self.why = f"cuda_graphs is {limit}"

    def __str__(self) -> str:
        many = f"its {self._kernels} kernels are" if self._kernels != 1 else "its kernel is"
        how = "launched one after the other" if self._kernels != 1 else "launched"
        if self.way is not self.plain:
            how = "replayed as one CUDA graph"
        return f"{many} {how}{self.why and ': '}{self.why}"

    def queue(self, stream: Stream, buffers: Any, scalars: Any) -> None:
        """Put the kernels of a call into its stream.

        Args:
            stream: the stream.
            buffers, scalars: the call's tables, as ctypes arrays.

        Raises:
            CudaError: the driver has refused a launch.
        """
        way = self.way
        code = way.queue(buffers, scalars)
        if code == CAPTURED:
            way = self.plain
            code = way.queue(buffers, scalars)
        if code:
            raise self._refused(stream, way, code)
        if not self.settled:
            self._called(stream, buffers, scalars)

    def _refused(self, stream: Stream, way: Way, code: int) -> Exception:
        if code >= cublas.REFUSED:
            return cublas.fault("cublasGemmEx", code - cublas.REFUSED)
        name = "cuLaunchKernel" if way is self.plain else "cuGraphLaunch"
        found: Exception = stream.at.driver.fault(name, code)
        return found

    def _called(self, stream: Stream, buffers: Any, scalars: Any) -> None:
        """A call's kernels are in its stream: measure if it is time to, and nobody else does."""
        self._calls += 1
        if (
            self._calls < config.flags.hot_calls
            or _captured(stream)
            or not self._lock.acquire(blocking=False)
        ):
            return
        try:
            if not self.settled:
                self._decide(stream, buffers, scalars)
        finally:
            self._lock.release()

    def _replay(self, why: str) -> None:
        """Replay from now on; if the driver makes no graph, say so."""
        try:
            self.way, self.why = self._make(), why
        except (CudaError, OutOfMemoryError) as fault:
            self.why = f"no CUDA graph could be made: {fault}"

    def _decide(self, stream: Stream, buffers: Any, scalars: Any) -> None:
        try:
            self.way, self.why = self._measured(stream, buffers, scalars)
        except (CudaError, OutOfMemoryError) as fault:
            self.why = f"no CUDA graph could be made or timed: {fault}"
        self.settled = True

    def _measured(self, stream: Stream, buffers: Any, scalars: Any) -> tuple[Way, str]:
        """The faster way, and both times in words."""

        def timed(way: Way, count: int) -> Times:
            start = perf_counter()
            for _ in range(count):
                code = way.queue(buffers, scalars)
                if code:
                    raise self._refused(stream, way, code)
            queued = perf_counter()
            stream.at.driver.cuStreamSynchronize(stream.handle)
            return Times((perf_counter() - start) / count, (queued - start) / count)

        stream.at.driver.cuStreamSynchronize(stream.handle)
        first = min(timed(self.plain, 1) for _ in range(FEW))
        if first.whole - first.host > FILLED * self._kernels:
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
    """Whether a way takes less time; where both keep the device busy alike, less of the host's."""
    if one.whole < other.whole * MARGIN:
        return True
    return one.whole * MARGIN < other.whole and one.host < other.host * MARGIN


def _captured(stream: Stream) -> bool:
    """Whether somebody captures what is put into a stream, so that nothing may wait for it."""
    found = ctypes.c_int()
    asked = stream.at.driver.function("cuStreamIsCapturing")
    return bool(asked(stream.handle, ctypes.addressof(found)) or found.value)
