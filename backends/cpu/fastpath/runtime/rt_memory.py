"""Native runtime: memory of results. NumPy allocates small ones; large ones come from a pool of recycled buffers.

Small ones take arrays of destroyed tensors first. A pooled buffer starts with a header; the array's base is a capsule
whose destructor returns the buffer. All of it runs with the GIL held. Sizes are rounded up to one of four steps per
power of two, and each step has a list of free buffers; buffers that would exceed the limit are freed.
"""

from __future__ import annotations

from ..... import lazy
from ..compiler.dsl import NULL, cstr, i32, i64, likely, load, native, ptr, stack, store, unlikely
from ..compiler.structs import Struct
from . import capi
from . import rt_base as base

# imported to compile an entry
rt_spare_arrays = lazy.Module(".backends.cpu.fastpath.runtime.rt_spare_arrays")
POOLED: i64 = 262144  # results from this size on come from the pool
HUGE: i64 = 4194304  # buffers from this size on ask for huge pages
PAGE, HUGE_PAGE, MADV_HUGEPAGE = 4096, 2097152, 14


class BufferHeader(Struct):
    """The header of a buffer."""

    pool: ptr
    step: i64
    bytes: i64
    next: ptr


HEADER = 64


@native
def new_array(g: ptr, descr: ptr, rank: i64, dims: ptr, nbytes: i64) -> ptr:
    """Return a new uninitialized C-contiguous array; NULL with the exception set."""
    return new_laid_out(g, descr, rank, dims, NULL, nbytes)


@native
def new_laid_out(g: base.Globals, descr: ptr, rank: i64, dims: ptr, strides: ptr, nbytes: i64) -> ptr:
    """Return a new array without gaps, with the given strides (NULL: C-contiguous)."""
    if unlikely(nbytes >= POOLED) and g.pool != NULL:
        return pooled_array(g.pool, descr, rank, dims, strides, nbytes)
    if likely(strides == NULL and g.spare_arrays != NULL):
        spare = rt_spare_arrays.take_owner(g.spare_arrays, descr, rank, dims)
        if likely(spare != NULL):
            return spare
    capi.incref(descr)
    return capi.PyArray_NewFromDescr(capi.PyArray_Type, descr, i32(rank), dims, strides, NULL, 0, NULL)


@native
def size_step(nbytes: i64) -> i64:
    """Return the step of a size: four per power of two, counted from 0 at 4 bytes."""
    power: i64 = 2
    while (nbytes - 1) >> (power + 1) != 0:
        power += 1
    return (power - 2) * 4 + (((nbytes - 1) >> (power - 2)) & 3)


@native
def step_bytes(step: i64) -> i64:
    """Return the largest size of a step."""
    return (5 + step % 4) << (step // 4)


@native
def take_buffer(pool: base.Pool, nbytes: i64) -> ptr:
    """Return a free buffer, or a new one; NULL if it cannot be allocated."""
    step = size_step(nbytes)
    head: BufferHeader = load(ptr, pool.lists, step * 8)
    if likely(head != NULL):
        store(ptr, pool.lists, step * 8, head.next)
        pool.spare -= head.bytes
        pool.hits += 1
        return head
    size = step_bytes(step) + HEADER
    where = stack(8)
    if capi.posix_memalign(where, HUGE_PAGE if size >= HUGE else PAGE, size) != 0:
        return NULL
    made: BufferHeader = load(ptr, where, 0)
    if size >= HUGE:
        capi.madvise(made, size, MADV_HUGEPAGE)
    made.pool, made.step, made.bytes = pool, step, size
    return made


@native
def return_buffer(buffer: BufferHeader) -> None:
    pool: base.Pool = buffer.pool
    if pool.spare + buffer.bytes > pool.limit:
        capi.free(buffer)
        return
    buffer.next = load(ptr, pool.lists, buffer.step * 8)
    store(ptr, pool.lists, buffer.step * 8, buffer)
    pool.spare += buffer.bytes


@native
def destroy_capsule(capsule: ptr) -> None:
    """The destructor of the capsules: no array refers to the buffer any more."""
    return_buffer(capi.PyCapsule_GetPointer(capsule, cstr("tandem.buffer")))


@native
def pooled_array(pool: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, nbytes: i64) -> ptr:
    buffer = take_buffer(pool, nbytes)
    if unlikely(buffer == NULL):
        capi.PyErr_NoMemory()
        return NULL
    capsule = capi.PyCapsule_New(buffer, cstr("tandem.buffer"), destroy_capsule)
    if unlikely(capsule == NULL):
        return_buffer(buffer)
        return NULL
    flags = i32(capi.C_CONTIGUOUS | capi.ALIGNED | capi.WRITEABLE)
    return array_over(NULL, descr, rank, dims, strides, buffer + HEADER, flags, capsule)


@native
def array_over(
    spares: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr, flags: i32, owner: ptr
) -> ptr:
    """Return an array over memory that `owner` keeps alive, and steal that reference; NULL with an exception set.

    `spares` is the process's `SpareArrays`, or NULL for a new array.
    """
    array: ptr = NULL
    if likely(spares != NULL and strides != NULL):
        array = rt_spare_arrays.take_view(spares, descr, rank, dims, strides, data, flags)
    if array == NULL:
        kind: ptr = capi.PyArray_Type
        array = capi.PyArray_NewFromDescr(
            kind, capi.new_ref(descr), i32(rank), dims, strides, data, flags, NULL
        )
    if unlikely(array == NULL):
        capi.decref(owner)
        return NULL
    if unlikely(capi.PyArray_SetBaseObject(array, owner) < 0):
        capi.decref(array)
        return NULL
    return array
