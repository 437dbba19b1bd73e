"""CUDA streams and events, the current stream of each thread, and synchronization."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ....eager.tensor.transfer import synchronizers
from ....errors import ArgumentError, DeviceError
from ....locks import ThreadLocal
from ...cpu.fastpath.glue.structs import StructMemory
from ..fastpath import result_entries as rt
from . import devices, stream_keys
from . import toolkit as tools
from .api import translate_cupy_errors
from .devices import Device, device_at, device_of

# Called with the number of a device and a stream (None: all streams) after the host has waited for it.
wait_listeners: list[Callable[[int, Stream | None], None]] = []


class Stream:
    """A queue of work on one device: work in one stream runs in order, work in several may run concurrently.

    Used as a context manager, it makes itself the thread's current stream and its device the current device.

    Args:
        device: the device; None means the current one.
        priority: a lower number runs first; the default priority is 0.
        handle: a stream of another library to wrap (``torch.cuda.Stream.cuda_stream``, ``cupy.cuda.Stream.ptr``);
            None creates a stream. A wrapped stream is not destroyed with the object; the library has to keep it.

    Attributes:
        device: the device's name.
        handle: the driver's handle; None for the default stream.
        number: the handle as an int; 0 for the default stream.
        pool: the pool of its memory; None before the first allocation.
        record: the native struct of the stream (``S_*`` of ``fastpath/result_entries.py``).

    >>> import tandem as td
    >>> with td.cuda.Stream():  # doctest: +SKIP
    ...     y = td.ones(3, device="cuda") + 1

    Source: ``torch.cuda.Stream``.
    """

    __slots__ = (
        "__weakref__",
        "_end",
        "_own",
        "at",
        "device",
        "handle",
        "number",
        "pool",
        "record",
    )

    def __init__(self, device: str | None = None, priority: int = 0, handle: int | None = None):
        self.at: Device = device_of(device)
        self.device = self.at.name
        self._own = handle is None
        self._end: Event | None = None  # after the last work; set when the driver's stream is destroyed
        self.at.make_current()
        if handle is None:
            handle = self.at.runtime.streamCreateWithPriority(self.at.runtime.streamNonBlocking, priority)
        self.handle = handle or None
        self.number = self.handle or 0
        self.pool: Any = None
        self.record = StructMemory(rt.S_SIZE)
        self.record.set(rt.S_HANDLE, self.number)

    def set_pool(self, pool: Any, blocks: dict[int, Any] | None) -> None:
        """Set the pool of the stream's memory, and the pool's free blocks by size; None if it caches no blocks."""
        self.pool = pool
        self.record.set(rt.S_FREE, 0 if blocks is None else id(blocks))
        self.record.set(rt.S_POOL, 0 if pool is None else id(pool))

    def synchronize(self) -> None:
        """Wait until all work that is in the stream now is done, and raise errors that its kernels reported."""
        self.wait()
        notify_waited(self.at.index, self)

    def wait(self) -> None:
        """Wait until all work that is in the stream now is done, without calling the wait listeners."""
        self.at.make_current()
        self.at.runtime.streamSynchronize(self.number)

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        self.at.make_current()
        return self.at.runtime.is_done("streamQuery", self.number)

    def copy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        """Put a copy of bytes into the stream; ``kind`` is one of :mod:`.api`'s constants."""
        self.at.make_current()
        self.at.runtime.memcpyAsync(target, source, nbytes, kind, self.number)

    def fill(self, target: int, value: int, nbytes: int) -> None:
        """Put a memset of the device's memory into the stream."""
        self.at.make_current()
        self.at.runtime.memsetAsync(target, value, nbytes, self.number)

    def wait_event(self, event: Event) -> None:
        """Make later work of the stream wait for an event."""
        if self._end is None:
            event.wait_in(self)

    def wait_stream(self, other: Stream) -> None:
        """Make later work of this stream wait for the work that is in another one now."""
        if other is not self:
            self.wait_event(other.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event in the stream; None creates one."""
        if self._end is not None:
            return self._end
        event = event or Event()
        event.record(self)
        return event

    def __cuda_stream__(self) -> tuple[int, int]:
        """Implement the protocol by which CUDA libraries share streams: (version, handle)."""
        return 0, self.number

    def __enter__(self) -> Stream:
        before = devices.current_thread.index, _current.streams.get(self.at.index)
        _current.entered.setdefault(self, []).append(before)
        devices.current_thread.index = self.at.index
        _current.streams[self.at.index] = self
        stream_keys.set_current(self.at.index, self.record.address)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        entered = _current.entered[self]
        devices.current_thread.index, before = entered.pop()
        if not entered:
            del _current.entered[self]
        _current.streams.pop(self.at.index)
        if before is not None:
            _current.streams[self.at.index] = before
        stream_keys.set_current(self.at.index, 0 if before is None else before.record.address)

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not getattr(self, "_own", False) or not getattr(self, "handle", None) or ending():
            return
        with contextlib.suppress(Exception), self.at.as_current():
            self._end = self.record_event()  # buffers collected with the stream may still need its end
        self.at.release_handle("streamDestroy", self.handle)

    def __repr__(self) -> str:
        return f"<stream {self.handle or 0:#x} on {self.device}>"


class Event:
    """A marker in a stream (an event of cupy): it completes when all earlier work of the stream is done.

    Args:
        enable_timing: whether :meth:`elapsed_time` can be used.

    Attributes:
        at: the device; None before the event is recorded.

    Source: ``torch.cuda.Event``.
    """

    __slots__ = ("_event", "_timing", "at")

    def __init__(self, enable_timing: bool = False):
        self._timing = enable_timing
        self.at: Any = None
        self._event: Any = None

    @property
    def handle(self) -> int | None:
        """The driver's handle; None before the event is recorded."""
        return None if self._event is None else int(self._event.ptr)

    def record(self, stream: Stream | None = None) -> None:
        """Record the event in a stream; None means the current one."""
        stream = stream or current_stream()
        if self.at is not None and self.at is not stream.at:
            raise DeviceError(f"an event of {self.at.name} cannot be recorded in {stream!r}")
        stream.at.make_current()
        if self._event is None:
            with translate_cupy_errors("making an event"):
                self._event = tools.toolkit().cupy().cuda.Event(disable_timing=not self._timing)
            self.at = stream.at
        stream.at.runtime.eventRecord(self._event.ptr, stream.number)

    def wait_in(self, stream: Stream) -> None:
        """Make later work of a stream wait for the event."""
        if self._event is not None:
            stream.at.make_current()
            stream.at.runtime.streamWaitEvent(stream.number, self._event.ptr)

    def synchronize(self) -> None:
        """Wait until the event has completed; return at once if it was never recorded."""
        if self._event is not None:
            self.at.make_current()
            self.at.runtime.eventSynchronize(self._event.ptr)

    def query(self) -> bool:
        """Whether the event has completed."""
        if self._event is None:
            return True
        self.at.make_current()
        return bool(self.at.runtime.is_done("eventQuery", self._event.ptr))

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another.

        Raises:
            ArgumentError: one was made without ``enable_timing=True``, or was not recorded.
        """
        if not (self._timing and end._timing) or self._event is None or end._event is None:
            raise ArgumentError("elapsed_time takes two recorded events made with enable_timing=True")
        self.at.make_current()
        return float(self.at.runtime.eventElapsedTime(self._event.ptr, end._event.ptr))

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_event", None) is not None and not ending():
            with self.at.as_current():  # otherwise the runtime would make a device current in this thread
                self._event = None


class _Current(ThreadLocal):
    """The streams of a thread.

    Attributes:
        streams: the current stream of each device where it is not the default stream.
        entered: for each stream used as a context manager, the former device and stream of each entry.
    """

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.entered: dict[Stream, list[tuple[int, Stream | None]]] = {}


_current = _Current()
_defaults: dict[int, Stream] = {}


def default_stream(device: str | None = None) -> Stream:
    """The default stream of a device; it and the device's blocking streams wait for each other."""
    return _default_stream_at(device_of(device).index)


def _default_stream_at(index: int) -> Stream:
    result = _defaults.get(index)
    if result is None:
        result = _defaults.setdefault(index, Stream(f"cuda:{index}", handle=0))
    return result


def current_stream(device: str | None = None) -> Stream:
    """The stream that receives the work of this thread's calls.

    Args:
        device: the device; None means the current one.
    """
    return stream_at(device_of(device).index)


def stream_at(index: int) -> Stream:
    """The current stream of the device with a number."""
    return _current.streams.get(index) or _defaults.get(index) or _default_stream_at(index)


def synchronize(device: str = "cuda") -> None:
    """Wait for all work on a device; ``"cuda"`` means every device in use."""
    for index in devices.devices_in_use() if device == "cuda" else [device_of(device).index]:
        at = device_at(index)
        at.make_current()
        at.runtime.deviceSynchronize()
        notify_waited(index)


def stream_of_cupy(cupy: Any, stream: Stream) -> Any:
    """cupy's stream for one of tandem's."""
    return cupy.cuda.Stream.null if stream.handle is None else cupy.cuda.Stream.from_external(stream)


def notify_waited(index: int, stream: Stream | None = None) -> None:
    """Call the wait listeners after the host has waited for a stream of a device (None: for all its streams)."""
    for listener in wait_listeners:
        listener(index, stream)


def _forget() -> None:
    global _current
    _defaults.clear()
    _current = _Current()
    stream_keys.forget()


tools.change_listeners.append(_forget)
synchronizers["cuda"] = synchronize
