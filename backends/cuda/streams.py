"""Streams and events: queues of work on a device, and marks in them."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ...eager.synchronize import synchronizers
from ...errors import ArgumentError, DeviceError
from ..cpu.native.records import Record
from . import devices, stream_keys
from . import rt_result as rt
from . import toolkit as tools
from .devices import Device, device_at, device_of

NON_BLOCKING = 1
DISABLE_TIMING = 2


# Told the number of each device that the host has waited for, and the stream; None: for all of them.
waited: list[Callable[[int, Stream | None], None]] = []


class Stream:
    """A queue of work on one device: what is in one stream runs in order, what is in several may run at once.

    As a context manager it is the thread's current stream, and its device the current device, inside the block.

    Args:
        device: the device; None: the current one.
        priority: a lower number runs first; 0 is the usual one.
        handle: a stream of another library to wrap (``torch.cuda.Stream.cuda_stream``, ``cupy.cuda.Stream.ptr``);
            None makes a new one. A wrapped stream is not destroyed with the object; the library has to keep it.

    Attributes:
        device: the device's name.
        handle: the driver's handle; None for the default stream.
        number: the same as an int; 0 for the default stream.
        pool: of its memory, once it has one.
        record: what machine code reads of it.

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
        self._end: Event | None = None  # what comes behind all, once the driver's stream is gone
        self.at.make_current()
        self.handle = (
            self.at.driver.get("cuStreamCreateWithPriority", ctypes.c_void_p, NON_BLOCKING, priority)
            if handle is None
            else handle or None
        )
        self.number = self.handle or 0
        self.pool: Any = None
        self.record = Record(rt.S_SIZE)
        self.record.set(rt.S_HANDLE, self.number)

    def put_pool(self, pool: Any, blocks: dict[int, Any] | None) -> None:
        """Set the pool of its memory, and the blocks by size that it keeps, if it keeps any."""
        self.pool = pool
        self.record.set(rt.S_FREE, 0 if blocks is None else id(blocks))
        self.record.set(rt.S_POOL, 0 if pool is None else id(pool))

    def synchronize(self) -> None:
        """Wait until all work that is in the stream now is done."""
        self.at.make_current()
        self.at.driver.cuStreamSynchronize(self.handle)
        told(self.at.index, self)

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        self.at.make_current()
        return bool(self.at.driver.ready("cuStreamQuery", self.handle))

    def wait_event(self, event: Event) -> None:
        """Let what is put into the stream from now on wait for an event."""
        self.at.make_current()
        if event.handle is not None and self._end is None:
            self.at.driver.cuStreamWaitEvent(self.handle, event.handle, 0)

    def wait_stream(self, other: Stream) -> None:
        """Let what is put into the stream from now on wait for what is in another one now."""
        if other is not self:
            self.wait_event(other.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event into the stream; None makes one."""
        if self._end is not None:
            return self._end
        event = event or Event()
        event.record(self)
        return event

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which CUDA libraries share streams: its version, and the handle."""
        return 0, self.number

    def __enter__(self) -> Stream:
        before = devices.current_thread.index, _current.streams.get(self.at.index)
        _current.entered.setdefault(self, []).append(before)
        devices.current_thread.index = self.at.index
        _current.streams[self.at.index] = self
        stream_keys.put(self.at.index, self.record.address)
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
        stream_keys.put(self.at.index, 0 if before is None else before.record.address)

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not getattr(self, "_own", False) or not getattr(self, "handle", None) or ending():
            return
        with contextlib.suppress(Exception), self.at.briefly():
            self._end = (
                self.record_event()
            )  # memory that is collected with the stream may still ask for its end
        self.at.give_back("cuStreamDestroy_v2", self.handle)

    def __repr__(self) -> str:
        return f"<stream {self.handle or 0:#x} on {self.device}>"


class Event:
    """A mark in a stream: it has happened when all that was in the stream before it is done.

    Args:
        enable_timing: whether :meth:`elapsed_time` can be asked.

    Attributes:
        handle: the driver's handle; None before it has been recorded.

    Source: ``torch.cuda.Event``.
    """

    __slots__ = ("_timing", "at", "handle")

    def __init__(self, enable_timing: bool = False):
        self._timing = enable_timing
        self.at: Any = None
        self.handle: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Put it into a stream; None means the current one."""
        stream = stream or current_stream()
        stream.at.make_current()
        if self.handle is None:
            flags = 0 if self._timing else DISABLE_TIMING
            self.at = stream.at
            self.handle = self.at.driver.get("cuEventCreate", ctypes.c_void_p, flags)
        if self.at is not stream.at:
            raise DeviceError(f"an event of {self.at.name} cannot be recorded in {stream!r}")
        self.at.driver.cuEventRecord(self.handle, stream.handle)

    def synchronize(self) -> None:
        """Wait until it has happened; at once if it was never recorded."""
        if self.handle is not None:
            self.at.make_current()
            self.at.driver.cuEventSynchronize(self.handle)

    def query(self) -> bool:
        """Whether it has happened."""
        if self.handle is None:
            return True
        self.at.make_current()
        return bool(self.at.driver.ready("cuEventQuery", self.handle))

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another.

        Raises:
            ArgumentError: one was made without ``enable_timing=True``, or was not recorded.
        """
        if not (self._timing and end._timing) or self.handle is None or end.handle is None:
            raise ArgumentError("elapsed_time takes two recorded events made with enable_timing=True")
        self.at.make_current()
        found = self.at.driver.get("cuEventElapsedTime", ctypes.c_float, self.handle, end.handle)
        return float(found)

    def __del__(self) -> None:
        handle, self.handle = getattr(self, "handle", None), None
        if handle:
            self.at.give_back("cuEventDestroy_v2", handle)


class _Current(threading.local):
    """The streams of a thread.

    Attributes:
        streams: the current one of each device that has another than the default one.
        entered: for each stream that it is inside of, the device and the stream before, each time.
    """

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.entered: dict[Stream, list[tuple[int, Stream | None]]] = {}


_current = _Current()
_defaults: dict[int, Stream] = {}


def default_stream(device: str | None = None) -> Stream:
    """The default stream of a device: what is in it waits for the blocking streams of the device, and they for it."""
    return _default(device_of(device).index)


def _default(index: int) -> Stream:
    found = _defaults.get(index)
    if found is None:
        found = _defaults.setdefault(index, Stream(f"cuda:{index}", handle=0))
    return found


def current_stream(device: str | None = None) -> Stream:
    """The stream that calls of this thread put their work into.

    Args:
        device: the device; None: the current one.
    """
    return stream_at(device_of(device).index)


def stream_at(index: int) -> Stream:
    """The current stream of a device by its number."""
    return _current.streams.get(index) or _defaults.get(index) or _default(index)


def synchronize(device: str = "cuda") -> None:
    """Wait for all work on a device; ``"cuda"`` means every device in use."""
    for index in devices.in_use() if device == "cuda" else [device_of(device).index]:
        at = device_at(index)
        at.make_current()
        at.driver.cuCtxSynchronize()
        told(index)


def stream_of_cupy(cupy: Any, stream: Stream) -> Any:
    """cupy's stream for one of tandem's."""
    return cupy.cuda.Stream.null if stream.handle is None else cupy.cuda.Stream.from_external(stream)


def told(index: int, stream: Stream | None = None) -> None:
    """The host has waited for a stream of a device, or all: whoever looks after what happened there does so now."""
    for listener in waited:
        listener(index, stream)


def _forget() -> None:
    global _current
    _defaults.clear()
    _current = _Current()
    stream_keys.forget()


tools.changed.append(_forget)
synchronizers["cuda"] = synchronize
