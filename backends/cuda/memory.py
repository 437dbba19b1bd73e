"""Device memory: buffers that count their users, and go back to a pool from which the next result takes them.

A freed block serves the next request of its size class on its stream without a word to the driver: what runs there is
ordered. A block that other streams have used waits for them first. Large blocks come from cupy's pool, where there is
cupy, so that both libraries draw on one.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import weakref
from array import array
from collections.abc import Callable
from typing import Any, ClassVar

from ... import config
from ...errors import OutOfMemoryError
from ...registry.operator import lock
from ...units import size as shown_size
from . import rt_result as rt
from . import toolkit as tools
from .devices import Device, device_at, device_of
from .streams import Stream, stream_at, stream_of_cupy

SMALLEST = 512
SHARED = 1 << 20  # bytes; larger blocks go back to where they came from, if that is a pool
MOST_USERS = 16  # streams that a block remembers


class Buffer:
    """A block of device memory; it goes back to its pool when the last user has gone.

    Attributes:
        ptr: the address.
        nbytes: the size that was asked for.
        size: the size of the block, which may be more.
        pool: the pool that it goes back to.
        block: what keeps the memory: the pool's (address, block of cupy's or None), another library's array, or None.
        home: the pool's list of spare blocks that it goes to; None: back to where it came from.
        users: streams beside the pool's own that have used it.
    """

    __slots__ = ("__weakref__", "block", "home", "nbytes", "pool", "ptr", "size", "users")

    def __init__(
        self,
        ptr: int,
        nbytes: int,
        size: int = 0,
        pool: Pool | None = None,
        block: Any = None,
        home: list[Any] | None = None,
    ):
        self.ptr, self.nbytes, self.size, self.pool, self.block, self.home = (
            ptr,
            nbytes,
            size,
            pool,
            block,
            home,
        )
        self.users: set[Stream] | None = None

    def used_by(self, stream: Stream) -> None:
        """Note that a stream works on the memory, so that nobody gets it before that is done."""
        pool = self.pool
        if pool is None or pool.stream is not stream:
            users = self.users or set()
            if pool is not None and len(users) >= MOST_USERS and stream not in users:
                pool.wait_for(users)  # then they are forgotten: memory that lives long would keep all streams
                users = set()
            self.users = {*users, stream}

    def __del__(self) -> None:
        if self.pool is not None:
            self.pool.take_back(self)


class _Count:
    """One of the counts, which lie side by side in memory, so that machine code finds them too."""

    def __init__(self, offset: int):
        self.place = offset // 8

    def __get__(self, stats: Stats, owner: Any = None) -> int:
        return int(stats.counts[self.place])

    def __set__(self, stats: Stats, value: int) -> None:
        stats.counts[self.place] = value


ALLOCATED, PEAK, RESERVED, REQUESTS = (
    rt.W_ALLOCATED // 8,
    rt.W_PEAK // 8,
    rt.W_RESERVED // 8,
    rt.W_REQUESTS // 8,
)
MISSES, RETURNED, RETRIES = rt.W_MISSES // 8, rt.W_RETURNED // 8, rt.W_RETRIES // 8


class Stats:
    """What one device's pools have given and hold.

    Attributes:
        allocated: bytes that tensors use now.
        peak: the most that they have used at once.
        reserved: bytes taken from the driver and not given back.
        requests: how many blocks have been asked for.
        misses: how many of these needed the driver (or cupy's pool).
        returned: how many blocks have come back.
        retries: how often the pools were emptied since memory had run out.
        counts: all of these.
    """

    __slots__ = ("counts",)

    made: ClassVar[
        list[Stats]
    ] = []  # also those of a toolkit that is gone, whose buffers may still come back
    finalize: ClassVar[int] = (
        0  # what CPython calls for ``Buffer.__del__``, where machine code stands before it
    )
    allocated, peak, reserved = _Count(rt.W_ALLOCATED), _Count(rt.W_PEAK), _Count(rt.W_RESERVED)
    requests, misses = _Count(rt.W_REQUESTS), _Count(rt.W_MISSES)
    returned, retries = _Count(rt.W_RETURNED), _Count(rt.W_RETRIES)

    def __init__(self) -> None:
        self.counts = array("q", bytes(rt.W_SIZE))
        self.made.append(self)
        self.counts[rt.W_FINALIZE // 8] = self.finalize

    def add(self, place: int, by: int) -> None:
        """Add to the count at a place; at once, whatever other threads and what is collected meanwhile add."""
        counts = self.counts
        counts[place] += by  # no call of Python between reading and writing: nobody else gets a turn
        if place == ALLOCATED and counts[ALLOCATED] > counts[PEAK]:
            counts[PEAK] = counts[ALLOCATED]

    @property
    def blocks(self) -> int:
        """How many blocks are in use now."""
        return self.requests - self.returned


SHOWN = ("allocated", "blocks", "misses", "peak", "requests", "reserved", "retries", "returned")


def size_class(nbytes: int) -> int:
    """The size of the block that serves a request: a power of two, or three quarters of one above 4 KiB."""
    if nbytes <= SMALLEST:
        return SMALLEST if nbytes else 0
    whole = 1 << (nbytes - 1).bit_length()
    part = whole // 4 * 3
    if nbytes <= SHARED:
        return part if whole > 4096 and nbytes <= part else whole
    return -(-nbytes // SHARED) * SHARED


class Pool:
    """The blocks of one stream that nobody uses now, by size."""

    __slots__ = ("__weakref__", "at", "caching", "counts", "free", "source", "stats", "stream")

    def __init__(self, stream: Stream, stats: Stats):
        self.at, self.stream, self.stats = stream.at, stream, stats
        self.counts, _ = stats.counts.buffer_info()  # their address
        self.free: dict[int, list[tuple[int, Any]]] = {}
        self.caching = config.flags.cuda_caching
        allocator = tools.toolkit().allocator if self.caching else None  # cupy's pool keeps memory too
        self.source = None if allocator is None else allocator()

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "source") and not ending():
            _left.append(self)  # what is collected with it may still come back

    def get(self, nbytes: int) -> Buffer:
        """A buffer of at least so many bytes.

        Raises:
            OutOfMemoryError: there is no memory, also after all that is cached was given back.
        """
        size = size_class(nbytes) if self.caching else nbytes
        stats, home = self.stats, None
        if self.caching and (self.source is None or size <= SHARED):
            home = self.free.get(size) or self.free.setdefault(size, [])
        try:
            block = home.pop()  # type: ignore[union-attr]
        except (AttributeError, IndexError):
            block = self._new(size)
            stats.add(MISSES, 1)
        stats.add(REQUESTS, 1)
        stats.add(ALLOCATED, size)
        return Buffer(block[0], nbytes, size, self, block, home)

    def take_back(self, buffer: Buffer) -> None:
        """The block of a buffer that nobody uses any more."""
        stats = self.stats
        stats.add(ALLOCATED, -buffer.size)
        stats.add(RETURNED, 1)
        if buffer.users:
            with self.at.briefly():
                self.wait_for(buffer.users)
        if buffer.home is not None:
            buffer.home.append(buffer.block)
        else:
            self._give_back(buffer.size, *buffer.block)

    def wait_for(self, users: set[Stream]) -> None:
        """Let what comes next in the pool's stream wait for what is in other streams now."""
        for stream in users:
            self.stream.wait_stream(stream)

    def _new(self, size: int) -> tuple[int, Any]:
        if not size:
            return 0, None
        try:
            return self._from_source(size)
        except Exception as fault:
            if not is_out_of_memory(fault):
                raise
        self.stats.add(RETRIES, 1)
        gc.collect()
        empty_cache()
        try:
            return self._from_source(size)
        except Exception as fault:
            if not is_out_of_memory(fault):
                raise
            raise no_memory(size, self.at, self.stats) from None

    def _from_source(self, size: int) -> tuple[int, Any]:
        self.at.make_current()
        if self.source is not None:
            block = _cupy_block(self.source, self.stream, size)
            ptr = int(block.ptr)
        else:
            ptr, block = self.at.driver.get("cuMemAlloc_v2", ctypes.c_uint64, size), None
        self.stats.add(RESERVED, size)
        return ptr, block

    def _give_back(self, size: int, ptr: int, block: Any) -> None:
        """The block to where it came from; the driver waits for what still uses it."""
        if ptr:
            self.stats.add(RESERVED, -size)
            if block is None:
                self.at.give_back("cuMemFree_v2", ptr)

    def empty(self) -> None:
        """Give all blocks that nobody uses back."""
        for size, kept in list(self.free.items()):
            with contextlib.suppress(IndexError):  # other threads take and return blocks meanwhile
                while True:
                    self._give_back(size, *kept.pop())


def _cupy_block(cupy: Any, stream: Stream, size: int) -> Any:
    """A block of cupy's pool, which counts as used on this stream."""
    with cupy.cuda.Device(stream.at.index), stream_of_cupy(cupy, stream):
        return cupy.cuda.alloc(size)


def is_out_of_memory(fault: Exception) -> bool:
    """Whether an exception of the driver or of cupy says that there is no memory."""
    return isinstance(fault, (OutOfMemoryError, MemoryError)) or type(fault).__name__ == "OutOfMemoryError"


def no_memory(size: int, at: Device, stats: Stats) -> OutOfMemoryError:
    """The exception that says what was asked for, what is free, and what holds the rest."""
    free, total = memory_info(at)
    return OutOfMemoryError(
        f"{at.name} has no memory for {shown_size(size)}: {shown_size(free)} of {shown_size(total)} are free; tensors "
        f"of this process use {shown_size(stats.allocated)}, in {stats.blocks} blocks. Drop tensors that are not "
        "needed, or take smaller ones"
    )


def memory_info(at: Device) -> tuple[int, int]:
    """(free, total) bytes of a device."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    at.make_current()
    at.driver.cuMemGetInfo_v2(ctypes.addressof(free), ctypes.addressof(total))
    return free.value, total.value


# -- the pools of this process -----------------------------------------------------------------------------------------
_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_left: list[Pool] = []  # of streams that are gone
_stats: dict[int, Stats] = {}


def stats_at(index: int) -> Stats:
    """The counts of a device."""
    return _stats.get(index) or _stats.setdefault(index, Stats())


def pool_of(stream: Stream) -> Pool:
    """The pool of a stream."""
    with lock:
        found: Pool | None = stream.pool
        if found is None:
            _give_back_left()
            found = Pool(stream, stats_at(stream.at.index))
            stream.put_pool(found, found.free if found.caching else None)
            _pools.add(found)
        return found


def _give_back_left() -> None:
    """Give back what pools of streams that are gone have kept."""
    while _left:
        pool = _left.pop()
        if pool.source is not None:  # which does not know that the stream is gone
            with contextlib.suppress(Exception):
                pool.stream.record_event().synchronize()
        pool.empty()


def allocate(nbytes: int, index: int) -> Buffer:
    """A buffer on a device, for work in its current stream.

    Args:
        nbytes: at least so many bytes; 0 takes no memory.
        index: the device's number.

    Raises:
        OutOfMemoryError: there is no memory.
    """
    stream = stream_at(index)
    return (stream.pool or pool_of(stream)).get(nbytes)


def empty_cache() -> None:
    """Give all device memory that no tensor uses back to the driver; tensors keep theirs."""
    sources = set()
    _give_back_left()
    for pool in list(_pools):
        pool.empty()
        if pool.source is not None:
            sources.add(pool.source)
    for cupy in sources:
        cupy.get_default_memory_pool().free_all_blocks()


def memory_stats(device: str | None = None) -> dict[str, int]:
    """How much memory of a device this process uses.

    Args:
        device: the device; None: the current one.

    Returns:
        By name: ``allocated`` (bytes in use), ``peak``, ``reserved`` (bytes taken from the driver, used or not),
        ``requests`` (blocks asked for), ``returned``, ``blocks`` (in use), ``misses`` (requests that needed the driver)
        and ``retries`` (how often memory had run out and the cache was emptied).
    """
    stats = stats_at(device_of(device).index)
    return {name: getattr(stats, name) for name in SHOWN}


def memory_allocated(device: str | None = None) -> int:
    """Bytes of a device that tensors use now."""
    return stats_at(device_of(device).index).allocated


def max_memory_allocated(device: str | None = None) -> int:
    """The most bytes of a device that tensors have used at once."""
    return stats_at(device_of(device).index).peak


def reset_peak_memory_stats(device: str | None = None) -> None:
    """Let :func:`max_memory_allocated` begin anew, from what is in use now."""
    stats = stats_at(device_of(device).index)
    stats.peak = stats.allocated


def memory_reserved(device: str | None = None) -> int:
    """Bytes of a device that this process has taken from the driver for tensors."""
    return stats_at(device_of(device).index).reserved


def mem_get_info(device: str | None = None) -> tuple[int, int]:
    """(free, total) bytes of a device, as the driver says."""
    return memory_info(device_at(device_of(device).index))


def _forget() -> None:
    for pool in list(_pools):
        pool.stream.put_pool(None, None)
    _pools.clear()
    _stats.clear()


tools.changed.append(_forget)
