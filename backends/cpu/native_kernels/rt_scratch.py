"""Native runtime: scratch memory that is kept for the next call.

The C library returns freed memory to the system where it was the last of the heap, or much; each page of it then costs
a fault in the next call. One block of the process is kept: a call takes it out of its slot by an atomic exchange, and
puts it, or the block that it had to allocate, back.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import (
    NULL,
    exchange,
    extern,
    extern_object,
    i64,
    load,
    native,
    noinline,
    ptr,
    store,
)
from ..fastpath.runtime import capi

aligned_alloc = extern("aligned_alloc", "ptr(i64, i64)")
slot = extern_object("scratch_slot")  # 8 bytes: the address of the block that is kept, or NULL
HEADER: i64 = 64  # bytes before the memory of a block, of which the first 8 have its size
MOST_KEPT: i64 = 1 << 24  # bytes of a block that is kept


@noinline
def take_scratch(nbytes: i64) -> ptr:
    """Return memory of at least some bytes, at a multiple of 64; NULL if there is none."""
    block = exchange(slot, NULL)
    if block != NULL and load(i64, block, 0) >= nbytes:
        return block + HEADER
    capi.free(block)
    size = (nbytes + 63) // 64 * 64
    block = aligned_alloc(64, size + HEADER)
    if block == NULL:
        return NULL
    store(i64, block, 0, size)
    return block + HEADER


@native
def give_back(memory: ptr) -> None:
    """Keep memory of `take_scratch` for the next call, or free it."""
    block = memory - HEADER
    if load(i64, block, 0) <= MOST_KEPT:
        block = exchange(slot, block)
    capi.free(block)
