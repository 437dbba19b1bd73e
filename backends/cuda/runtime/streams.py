"""CUDA streams and events, the current stream of each thread, and synchronization.

Native code reads a thread's current stream of a device from a pthread key, whose value is the address of the stream's
struct, or NULL for the default stream. :func:`_set_current` keeps it equal to Python's.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from ....eager.tensor.transfer import synchronizers
from ....errors import ArgumentError, CudaError, DeviceError, OutOfMemoryError
from ....registry import native_type
from ....registry.operator import lock
from ...cpu.fastpath.glue.structs import StructMemory
from ..fastpath import result_entries as rt
from . import devices
from . import toolkit as tools
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
        record: the native struct of the stream (``Stream`` of ``fastpath/result_entries.py``).

    >>> import tandem as td
    >>> with td.cuda.Stream():  # doctest: +SKIP
    ...     y = td.ones(3, device="cuda") + 1

    Source: ``torch.cuda.Stream``.
    """

    _own = False  # whether the driver's stream is destroyed with the object
    _end: Event | None = None  # after the last work; set when the driver's stream is destroyed
    pool: Any = None

    def __init__(self, device: str | None = None, priority: int = 0, handle: int | None = None):
        self.at: Device = device_of(device)
        self.device = self.at.name
        runtime = self.at.runtime
        self.number = (
            runtime.streamCreateWithPriority(runtime.streamNonBlocking, priority)
            if handle is None
            else handle
        )
        self.handle, self._own = self.number or None, handle is None
        self.record = StructMemory(rt.Stream, handle=self.number)

    def set_pool(self, pool: Any, blocks: dict[int, Any] | None) -> None:
        """Set the pool of the stream's memory, and the pool's free blocks by size; None if it caches no blocks."""
        self.pool = pool
        self.record.set(rt.Stream.free, 0 if blocks is None else id(blocks))
        self.record.set(rt.Stream.pool, 0 if pool is None else id(pool))

    def synchronize(self) -> None:
        """Wait until all work that is in the stream now is done, and raise errors that its kernels reported."""
        self.wait()
        notify_waited(self.at.index, self)

    def wait(self) -> None:
        """Wait until all work that is in the stream now is done, without calling the wait listeners."""
        self.at.runtime.streamSynchronize(self.number)

    def query(self) -> bool:
        """Whether all work of the stream is done."""
        return self.at.runtime.is_done("streamQuery", self.number)

    def copy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        """Put a copy of bytes into the stream; ``kind`` is one of :mod:`.api`'s constants."""
        self.at.runtime.memcpyAsync(target, source, nbytes, kind, self.number)

    def wait_event(self, event: Event) -> None:
        """Make later work of the stream wait for an event."""
        if self._end is None and event.handle is not None:
            self.at.runtime.streamWaitEvent(self.number, event.handle)

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
        thread, index = devices.current_thread, self.at.index
        thread.entered.append((thread.index, thread.streams.get(index)))
        thread.index = index
        _set_current(index, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        devices.current_thread.index, before = devices.current_thread.entered.pop()
        _set_current(self.at.index, before)

    def __del__(self) -> None:
        if self._own:
            self.at.finalize(self._destroy)

    def _destroy(self) -> None:
        with contextlib.suppress(CudaError, OutOfMemoryError):
            self._end = self.record_event()  # buffers collected with the stream may still need its end
        self.at.runtime.streamDestroy(self.number)

    def __repr__(self) -> str:
        return f"<stream {self.number:#x} on {self.device}>"


class Event:
    """A marker in a stream: it completes when all earlier work of the stream is done.

    Args:
        enable_timing: whether :meth:`elapsed_time` can be used.

    Attributes:
        at: the device; None before the event is recorded.
        handle: the driver's handle; None before the event is recorded.

    Source: ``torch.cuda.Event``.
    """

    def __init__(self, enable_timing: bool = False):
        self._timing = enable_timing
        self.at: Any = None
        self.handle: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Record the event in a stream; None means the current one."""
        stream = stream or current_stream()
        if self.at is not None and self.at is not stream.at:
            raise DeviceError(f"an event of {self.at.name} cannot be recorded in {stream!r}")
        runtime = stream.at.runtime
        if self.handle is None:
            flags = runtime.eventDefault if self._timing else runtime.eventDisableTiming
            self.at, self.handle = stream.at, runtime.eventCreateWithFlags(flags)
        runtime.eventRecord(self.handle, stream.number)

    def synchronize(self) -> None:
        """Wait until the event has completed; return at once if it was never recorded."""
        if self.handle is not None:
            self.at.runtime.eventSynchronize(self.handle)

    def query(self) -> bool:
        """Whether the event has completed."""
        return self.handle is None or self.at.runtime.is_done("eventQuery", self.handle)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another.

        Raises:
            ArgumentError: one was made without ``enable_timing=True``, or was not recorded.
        """
        if not (self._timing and end._timing) or self.handle is None or end.handle is None:
            raise ArgumentError("elapsed_time takes two recorded events made with enable_timing=True")
        return float(self.at.runtime.eventElapsedTime(self.handle, end.handle))

    def __del__(self) -> None:
        if self.handle is not None:
            self.at.finalize(lambda: self.at.runtime.eventDestroy(self.handle))


# -- the current stream ------------------------------------------------------------------------------------------------
class _DefaultStreams(dict[int, Stream]):
    """The default stream of each device, made at first use."""

    def __missing__(self, index: int) -> Stream:
        return self.setdefault(index, Stream(f"cuda:{index}", handle=0))


_defaults = _DefaultStreams()
_keys: dict[int, int] = {}  # pthread keys
_set_value = ctypes.pythonapi.pthread_setspecific
_set_value.argtypes = (ctypes.c_uint, ctypes.c_void_p)


def new_key() -> int:
    """Create a pthread key, whose value is NULL in each thread at first."""
    key = ctypes.c_uint()
    if ctypes.pythonapi.pthread_key_create(ctypes.byref(key), None):
        raise RuntimeError("pthread_key_create: no key is left for the current streams")
    return key.value


def key_of(index: int) -> int:
    """The pthread key of a device's current streams."""
    with lock:
        if index not in _keys:
            _keys[index] = new_key()
        return _keys[index]


def _set_current(index: int, stream: Stream | None) -> None:
    """Set this thread's current stream of a device; None: the default stream."""
    devices.current_thread.streams[index] = stream
    if not native_type.fault:
        key = _keys.get(index)
        _set_value(key_of(index) if key is None else key, stream.record.address if stream else 0)


def default_stream(device: str | None = None) -> Stream:
    """The default stream of a device; it and the device's blocking streams wait for each other."""
    return _defaults[device_of(device).index]


def current_stream(device: str | None = None) -> Stream:
    """The stream that receives the work of this thread's calls.

    Args:
        device: the device; None means the current one.
    """
    return stream_at(device_of(device).index)


def stream_at(index: int) -> Stream:
    """The current stream of the device with a number."""
    return devices.current_thread.streams.get(index) or _defaults[index]


def synchronize(device: str = "cuda") -> None:
    """Wait for all work on a device; ``"cuda"`` means every device in use."""
    for index in sorted(devices.devices_in_use) if device == "cuda" else [device_of(device).index]:
        device_at(index).runtime.deviceSynchronize()
        notify_waited(index)


@contextlib.contextmanager
def use_in_cupy(cupy: Any, stream: Stream) -> Iterator[None]:
    """Context manager: calls of cupy use a stream and its device."""
    theirs = cupy.cuda.Stream
    stream.at.make_current()
    with cupy.cuda.Device(stream.at.index), theirs.from_external(stream) if stream.handle else theirs.null:
        yield


def notify_waited(index: int, stream: Stream | None = None) -> None:
    """Call the wait listeners after the host has waited for a stream of a device (None: for all its streams)."""
    for listener in wait_listeners:
        listener(index, stream)


def _forget() -> None:
    _defaults.clear()
    with lock:
        while _keys:
            ctypes.pythonapi.pthread_key_delete(ctypes.c_uint(_keys.popitem()[1]))


tools.change_listeners.append(_forget)
synchronizers["cuda"] = synchronize
