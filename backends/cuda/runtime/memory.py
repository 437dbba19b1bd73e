"""Caching allocator of device memory: a pool of free blocks for each stream.

A freed block serves the next request of its size class on its stream without a driver call, because the work of one
stream is ordered. If other streams have used the block, the pool's stream waits for them first. Blocks come from
cupy's pool and are returned there when more than half of the device's memory is cached, or when memory runs out.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import sys
import weakref
from array import array
from collections.abc import Callable, Iterable
from typing import Any

from .... import config
from ....errors import CudaError, OutOfMemoryError
from ....registry.operator import lock
from ....units import format_size
from ...cpu.fastpath.compiler.structs import sizeof
from ..fastpath.result_entries import Counters
from . import toolkit as tools
from .api import translate_cupy_errors
from .devices import device_at, device_of
from .streams import Stream, stream_at, use_in_cupy

SMALLEST = 512
LARGE = 1 << 20  # bytes; the sizes of larger blocks are multiples of this
MAX_USERS = 16  # streams that a block remembers


class Buffer:
    """A block of device memory, which returns to its pool when the object is collected.

    Attributes:
        ptr: the address.
        nbytes: the requested size.
        size: the size of the block, which may be larger.
        pool: the pool that the block returns to.
        block: the owner of the memory: the pool's (address, block of cupy or None), another library's array, or None.
        free_list: the pool's free list that the block returns to; None: it is freed at once.
        users: streams other than the pool's own that have used the memory.
    """

    __slots__ = ("__weakref__", "block", "free_list", "nbytes", "pool", "ptr", "size", "users")

    def __init__(
        self,
        ptr: int,
        nbytes: int,
        size: int = 0,
        pool: Pool | None = None,
        block: Any = None,
        free_list: list[Any] | None = None,
    ):
        self.ptr, self.nbytes, self.size = ptr, nbytes, size
        self.pool, self.block, self.free_list = pool, block, free_list
        self.users: set[Stream] | None = None

    def used_by(self, stream: Stream) -> None:
        """Note that a stream uses the memory, so that it is not reused before that work is done."""
        pool = self.pool
        if pool is None or pool.stream is not stream:
            users = self.users or set()
            if pool is not None and len(users) >= MAX_USERS and stream not in users:
                pool.wait_for(users)  # then forget these streams: a long-lived buffer would keep all of them
                users = set()
            self.users = {*users, stream}

    def __del__(self) -> None:
        """Return the memory to its pool.

        Native twin: backends/cuda/fastpath/result_entries.py:finalize
        """
        if self.pool is not None:
            self.pool.recycle(self)


class ExternalBuffer(Buffer):
    """Memory of another library; the owner is released when the work of tandem's streams on the memory is done.

    Args:
        ptr: the address.
        nbytes: the size.
        owner: the object that keeps the memory.
        stream: the owner's stream, which then waits for that work; None: it is not known, and the host waits. No wait
            is needed for work in the default stream: other libraries' streams normally wait for it.
    """

    __slots__ = ("stream",)

    def __init__(self, ptr: int, nbytes: int, owner: Any, stream: Stream | None = None):
        super().__init__(ptr, nbytes, block=owner)
        self.stream = stream

    def __del__(self) -> None:
        for stream in self.users or ():
            stream.at.finalize(functools.partial(self._wait_for, stream))

    def _wait_for(self, stream: Stream) -> None:
        if self.stream is not None:
            self.stream.wait_stream(stream)
        elif stream.handle is not None:
            stream.record_event().synchronize()


def finalizer_of(cls: type) -> ctypes.c_void_p:
    """The slot ``tp_finalize`` of a class, the function that CPython calls for ``__del__``."""
    return ctypes.c_void_p.from_address(id(cls) + _FINALIZE)


_FINALIZE = 392  # offset of tp_finalize in a type object
_PYTHON_FINALIZER = finalizer_of(Buffer).value  # before native code replaces it
ALLOCATED, PEAK, RESERVED, RETURNED, BOUND = (
    offset // 8
    for offset in (Counters.allocated, Counters.peak, Counters.reserved, Counters.returned, Counters.bound)
)
REQUESTS, MISSES, RETRIES = (offset // 8 for offset in (Counters.requests, Counters.misses, Counters.retries))


class Stats(Counters):
    """The memory statistics of one device: the struct that native code updates too.

    Attributes:
        counts: the array of all counters, which is the struct's memory.
    """

    def __init__(self, bound: int) -> None:
        self.counts = array("q", bytes(sizeof(Counters)))
        super().__init__(self.counts.buffer_info()[0])
        self.finalize, self.bound = _PYTHON_FINALIZER or 0, bound

    def add(self, counter: int, amount: int) -> None:
        """Add to a counter, given by its index, atomically with respect to threads and finalizers."""
        counts = self.counts
        counts[counter] += amount  # atomic: no Python call between the read and the write
        if counter == ALLOCATED and counts[ALLOCATED] > counts[PEAK]:
            counts[PEAK] = counts[ALLOCATED]

    @property
    def blocks(self) -> int:
        """The number of blocks in use."""
        return self.requests - self.returned

    @property
    def cached(self) -> int:
        """Bytes that no tensor uses and that have not been freed."""
        return int(self.counts[RESERVED] - self.counts[ALLOCATED])


STAT_NAMES = ("allocated", "blocks", "misses", "peak", "requests", "reserved", "retries", "returned")


def size_class(nbytes: int) -> int:
    """The size of the block for a request: a power of two, or three quarters of a power of two above 4 KiB."""
    if nbytes <= SMALLEST:
        return SMALLEST if nbytes else 0
    whole = 1 << (nbytes - 1).bit_length()
    part = whole // 4 * 3
    if nbytes <= LARGE:
        return part if whole > 4096 and nbytes <= part else whole
    return -(-nbytes // LARGE) * LARGE


class Pool:
    """The free blocks of one stream, by size.

    Attributes:
        free: the blocks that the stream's next requests may use.
        unordered: (size, block) of blocks with users that the stream could not wait for; they are not reused.
    """

    __slots__ = ("__weakref__", "at", "counts", "free", "source", "stats", "stream", "unordered")

    def __init__(self, stream: Stream, stats: Stats):
        self.at, self.stream, self.stats = stream.at, stream, stats
        self.counts = stats.address
        self.free: dict[int, list[tuple[int, Any]]] = {}
        self.unordered: list[tuple[int, tuple[int, Any]]] = []
        # cupy, whose pool keeps memory too; None if no blocks are cached
        self.source: Any = tools.toolkit().cupy() if config.flags.cuda_caching else None

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "source") and not ending():
            _orphans.append(self)  # buffers collected with the pool may still be returned

    def get(self, nbytes: int) -> Buffer:
        """A buffer of at least ``nbytes`` bytes.

        Raises:
            OutOfMemoryError: there is no memory, also after all cached blocks were freed.

        Native twin: backends/cuda/fastpath/result_entries.py:take_free_block
        """
        if self.source is None:
            return self.get_from_driver(nbytes)
        size = size_class(nbytes)
        free_list = self.free.get(size) or self.free.setdefault(size, [])
        try:
            block = free_list.pop()
        except IndexError:
            block = self._allocate(size, self._allocate_from_cupy)
        return self._make_buffer(nbytes, size, block, free_list)

    def get_from_driver(self, nbytes: int) -> Buffer:
        """A buffer that the driver frees with the object, when the work of all streams on it is done."""
        block = self._allocate(nbytes, lambda size: (self.at.runtime.malloc(size), None))
        return self._make_buffer(nbytes, nbytes, block, None)

    def _make_buffer(
        self, nbytes: int, size: int, block: tuple[int, Any], free_list: list[Any] | None
    ) -> Buffer:
        self.stats.add(REQUESTS, 1)
        self.stats.add(ALLOCATED, size)
        return Buffer(block[0], nbytes, size, self, block, free_list)

    def recycle(self, buffer: Buffer) -> None:
        """Return the block of a collected buffer to the free list."""
        stats = self.stats
        stats.add(ALLOCATED, -buffer.size)
        stats.add(RETURNED, 1)
        if buffer.users and not self._try_wait_for(buffer.users):
            self.unordered.append((buffer.size, buffer.block))
        elif buffer.free_list is None:
            self._free(buffer.size, *buffer.block)
        else:
            buffer.free_list.append(buffer.block)
            if stats.cached > stats.counts[BOUND]:
                self._trim(stats.bound // 2)

    def _try_wait_for(self, users: set[Stream]) -> bool:
        """Make the pool's stream wait for others; False if that fails: it is captured, or the device has failed."""
        try:
            with self.at.as_current():
                self.wait_for(users)
        except CudaError:
            return False
        return True

    def wait_for(self, users: set[Stream]) -> None:
        """Make later work of the pool's stream wait for the work that is in other streams now."""
        for stream in users:
            self.stream.wait_stream(stream)

    def _allocate(self, size: int, take: Callable[[int], tuple[int, Any]]) -> tuple[int, Any]:
        """A new (address, block of cupy or None), by a function of the size."""
        if not size:
            return 0, None
        try:
            block: tuple[int, Any] = retry_out_of_memory(lambda: take(size), self.at.index)
        except OutOfMemoryError:
            free, total = self.at.runtime.memGetInfo()
            raise OutOfMemoryError(
                f"{self.at.name} has no memory for {format_size(size)}: {format_size(free)} of {format_size(total)} "
                f"are free; tensors of this process use {format_size(self.stats.allocated)}, in {self.stats.blocks} "
                "blocks. Drop tensors that are not needed, or use smaller ones"
            ) from None
        self.stats.add(RESERVED, size)
        self.stats.add(MISSES, 1)
        return block

    def _allocate_from_cupy(self, size: int) -> tuple[int, Any]:
        with translate_cupy_errors("cupy's memory pool"), use_in_cupy(self.source, self.stream):
            block = self.source.cuda.alloc(size)
        return int(block.ptr), block

    def _free(self, size: int, ptr: int, block: Any) -> None:
        """Return a block to cupy's pool or to the driver, which waits for work that still uses it."""
        if ptr:
            self.stats.add(RESERVED, -size)
            if block is None:
                self.at.finalize(lambda: self.at.runtime.free(ptr))

    def _trim(self, bound: int) -> None:
        """Free blocks until the pools of the device cache at most ``bound`` bytes; other streams' blocks go first.

        The caller passes half of the limit, so that trimming is rare.
        """
        for pool in sorted(all_pools(), key=lambda one: one is self):
            if pool.stats is self.stats:
                pool.empty(bound)

    def empty(self, bound: int = -1) -> None:
        """Free unused blocks, in the order in which their sizes were first requested.

        Args:
            bound: stop when the device's pools cache at most this many bytes; -1: free all.
        """
        if bound < 0 and self.unordered:
            self.at.runtime.deviceSynchronize()
            while self.unordered:
                size, block = self.unordered.pop()
                self._free(size, *block)
        for size, blocks in list(self.free.items()):
            with contextlib.suppress(IndexError):  # other threads take and return blocks meanwhile
                while self.stats.cached > bound:
                    self._free(size, *blocks.pop())


def note_uses(arrays: Iterable[Any], stream: Stream) -> None:
    """Note that a stream uses the memory of arrays; see :meth:`Buffer.used_by`."""
    for buffer in [one.buffer for one in arrays]:
        if buffer.pool is None or buffer.pool.stream is not stream:
            buffer.used_by(stream)


def retry_out_of_memory(run: Callable[[], Any], index: int) -> Any:
    """Call a function; if the device is out of memory, free all cached blocks and call it again.

    Raises:
        OutOfMemoryError: the second call has run out of memory too.
    """
    try:
        return run()
    except OutOfMemoryError:
        stats_at(index).add(RETRIES, 1)
    gc.collect()
    empty_cache()
    return run()


# -- the pools of this process -----------------------------------------------------------------------------------------
# By their ids: other threads add pools at any time, and a WeakSet cannot be copied meanwhile.
_pools: weakref.WeakValueDictionary[int, Pool] = weakref.WeakValueDictionary()
_orphans: list[Pool] = []  # pools of collected streams
_stats: dict[int, Stats] = {}


def all_pools() -> list[Pool]:
    """The pools of all streams of this process."""
    return [pool for pool in (reference() for reference in _pools.valuerefs()) if pool is not None]


def stats_at(index: int) -> Stats:
    """The statistics of a device."""
    return _stats.get(index) or _stats.setdefault(index, Stats(device_at(index).properties.total_memory // 2))


def pool_of(stream: Stream) -> Pool:
    """The pool of a stream, created at first use."""
    with lock:
        result: Pool | None = stream.pool
        if result is None:
            _release_orphans()
            result = Pool(stream, stats_at(stream.at.index))
            stream.set_pool(result, None if result.source is None else result.free)
            _pools[id(result)] = result
        return result


def _release_orphans() -> None:
    """Free the blocks of the pools of collected streams."""
    while _orphans:
        pool = _orphans.pop()
        if pool.source is not None:  # cupy's pool does not know that the stream is gone
            with contextlib.suppress(Exception):
                pool.stream.record_event().synchronize()
        pool.empty()


def allocate(nbytes: int, index: int) -> Buffer:
    """A buffer on a device, for work in its current stream.

    Args:
        nbytes: the minimum size; 0 takes no memory.
        index: the device's number.

    Raises:
        OutOfMemoryError: there is no memory.

    Native twin: backends/cuda/fastpath/result_entries.py:allocate
    """
    stream = stream_at(index)
    return (stream.pool or pool_of(stream)).get(nbytes)


def empty_cache() -> None:
    """Return all device memory that no tensor uses to the driver."""
    sources = set()
    _release_orphans()
    for pool in all_pools():
        pool.empty()
        if pool.source is not None:
            sources.add(pool.source)
    for cupy in sources:
        cupy.get_default_memory_pool().free_all_blocks()


def memory_stats(device: str | None = None) -> dict[str, int]:
    """The memory statistics of a device in this process.

    Args:
        device: the device; None means the current one.

    Returns:
        By name: ``allocated`` (bytes in use), ``peak``, ``reserved`` (bytes taken from the driver, used or not),
        ``requests`` (number of blocks requested), ``returned``, ``blocks`` (in use), ``misses`` (requests that needed
        the driver) and ``retries`` (number of times that memory ran out and the cache was emptied).
    """
    stats = stats_at(device_of(device).index)
    return {name: getattr(stats, name) for name in STAT_NAMES}


def memory_allocated(device: str | None = None) -> int:
    """Bytes of a device that tensors use now."""
    return stats_at(device_of(device).index).allocated


def max_memory_allocated(device: str | None = None) -> int:
    """The most bytes of a device that tensors have used at once."""
    return stats_at(device_of(device).index).peak


def reset_peak_memory_stats(device: str | None = None) -> None:
    """Reset :func:`max_memory_allocated` to the number of bytes in use now."""
    stats = stats_at(device_of(device).index)
    stats.peak = stats.allocated


def memory_reserved(device: str | None = None) -> int:
    """Bytes of a device that this process has taken from the driver for tensors."""
    return stats_at(device_of(device).index).reserved


def mem_get_info(device: str | None = None) -> tuple[int, int]:
    """(free, total) bytes of a device, from the driver."""
    free, total = device_of(device).runtime.memGetInfo()
    return free, total


def _forget() -> None:
    for pool in all_pools():
        pool.stream.set_pool(None, None)
    _pools.clear()
    _stats.clear()


tools.change_listeners.append(_forget)
