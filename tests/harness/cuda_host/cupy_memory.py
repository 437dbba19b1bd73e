"""Test double of cupy's memory pool: blocks of multiples of 512 bytes from chunks, by device and stream."""

import bisect
import ctypes
import gc
import sys
import threading

UNIT = 512


class OutOfMemoryError(MemoryError):
    """cupy's: no memory, also after the pool has given its free chunks back."""


class _Chunk:
    """A part of one of the driver's blocks; ``before`` and ``after`` are its neighbours there."""

    def __init__(self, ptr, size, arena):
        self.ptr, self.size, self.arena = ptr, size, arena
        self.before = self.after = None

    def split(self, size):
        """Keep ``size`` bytes; the rest, or None."""
        if self.size == size:
            return None
        rest = _Chunk(self.ptr + size, self.size - size, self.arena)
        rest.before, rest.after = self, self.after
        if self.after is not None:
            self.after.before = rest
        self.size, self.after = size, rest
        return rest

    def join(self, other):
        """Take the chunk behind it in."""
        self.size += other.size
        self.after = other.after
        if other.after is not None:
            other.after.before = self


class MemoryPointer:
    """Memory in use; it goes back to the pool with the object."""

    def __init__(self, pool, chunk):
        self._pool, self._chunk, self.ptr = pool, chunk, chunk.ptr if chunk else 0

    def __del__(self):
        if self._chunk is not None and not sys.is_finalizing():
            self._pool._take_back(self._chunk)


class MemoryPool:
    """One free list, ordered by size, for each device and stream: what a stream has freed serves that stream only."""

    def __init__(self, calls):
        self.calls, self.arenas, self.lock = calls, {}, threading.RLock()
        self.used = self.reserved = 0

    def malloc(self, size):
        size = -(-size // UNIT) * UNIT
        if not size:
            return MemoryPointer(self, None)
        with self.lock:
            arena = self.calls.device(), self.calls.stream
            free = self.arenas.setdefault(arena, [])
            at = bisect.bisect_left(free, size, key=lambda chunk: chunk.size)
            chunk = free.pop(at) if at < len(free) else self._new(size, arena)
            rest = chunk.split(size)
            if rest is not None:
                self._keep(rest)
            self.used += size
            return MemoryPointer(self, chunk)

    def _new(self, size, arena):
        for last_resort in (self.free_all_blocks, gc.collect, None):
            try:
                ptr = self.calls.get("cuMemAlloc_v2", ctypes.c_uint64, size)
            except RuntimeError as fault:
                if fault.status != 2:
                    raise
                if last_resort is None:
                    text = f"Out of memory allocating {size:,} bytes (allocated so far: {self.reserved:,} bytes)."
                    raise OutOfMemoryError(text) from None
                last_resort()
            else:
                self.reserved += size
                return _Chunk(ptr, size, arena)
        raise AssertionError

    def _keep(self, chunk):
        bisect.insort(self.arenas[chunk.arena], chunk, key=lambda one: one.size)

    def _is_free(self, chunk):
        return chunk is not None and any(chunk is one for one in self.arenas[chunk.arena])

    def _take_back(self, chunk):
        with self.lock:
            self.used -= chunk.size
            if self._is_free(chunk.after):
                self.arenas[chunk.arena].remove(chunk.after)
                chunk.join(chunk.after)
            if self._is_free(chunk.before):
                before = chunk.before
                self.arenas[chunk.arena].remove(before)
                before.join(chunk)
                chunk = before
            self._keep(chunk)

    def free_all_blocks(self, stream=None):
        """Give back what is whole: chunks of which a part is in use stay."""
        with self.lock:
            for (device, _), free in self.arenas.items():
                for chunk in [one for one in free if one.before is None and one.after is None]:
                    free.remove(chunk)
                    self.reserved -= chunk.size
                    before = self.calls.device()
                    self.calls.use(device)
                    self.calls.cuMemFree_v2(chunk.ptr)
                    self.calls.use(before)

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.reserved

    def free_bytes(self):
        return self.reserved - self.used
