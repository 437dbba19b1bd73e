"""Native runtime: memory of results. NumPy allocates small ones; large ones come from a pool of recycled buffers.

A pooled buffer starts with a header; the array's base is a capsule whose destructor returns the buffer. All of it runs
with the GIL held. Sizes are rounded up to one of four steps per power of two, and each step has a list of free buffers;
buffers that would exceed the limit are freed.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    cstr,
    extern,
    i32,
    i64,
    likely,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
from ..glue.layout import ALIGNED, C_CONTIGUOUS, WRITEABLE
from .rt_base import G_POOL, PyArray_NewFromDescr, PyArray_SetBaseObject, PyArray_Type, decref, incref

PyCapsule_New = extern("PyCapsule_New", "ptr(ptr, ptr, ptr)")
PyCapsule_GetPointer = extern("PyCapsule_GetPointer", "ptr(ptr, ptr)")
PyErr_NoMemory = extern("PyErr_NoMemory", "ptr()")
posix_memalign = extern("posix_memalign", "i32(ptr, i64, i64)")
madvise = extern("madvise", "i32(ptr, i64, i32)")
free = extern("free", "None(ptr)")

POOLED: i64 = 262144  # results from this size on come from the pool
HUGE: i64 = 4194304  # buffers from this size on ask for huge pages
PAGE, HUGE_PAGE, MADV_HUGEPAGE = 4096, 2097152, 14

# The pool: free bytes, their limit, hits; then the lists by size step
P_SPARE, P_LIMIT, P_HITS, P_LISTS = 0, 8, 16, 24
P_SIZE_OF = 24 + 8 * 256
# The header of a buffer
B_POOL, B_STEP, B_BYTES, B_NEXT, HEADER = 0, 8, 16, 24, 64


@native
def new_array(g: ptr, descr: ptr, rank: i64, dims: ptr, nbytes: i64) -> ptr:
    """Return a new uninitialized C-contiguous array; NULL with the exception set."""
    return new_laid_out(g, descr, rank, dims, NULL, nbytes)


@native
def new_laid_out(g: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, nbytes: i64) -> ptr:
    """Return a new array without gaps, with the given strides (NULL: C-contiguous)."""
    if unlikely(nbytes >= POOLED) and load_ptr(g, G_POOL) != NULL:
        return pooled_array(load_ptr(g, G_POOL), descr, rank, dims, strides, nbytes)
    incref(descr)
    return PyArray_NewFromDescr(PyArray_Type, descr, i32(rank), dims, strides, NULL, 0, NULL)


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
def take_buffer(pool: ptr, nbytes: i64) -> ptr:
    """Return a free buffer, or a new one; NULL if it cannot be allocated."""
    step = size_step(nbytes)
    head = load_ptr(pool, P_LISTS + step * 8)
    if likely(head != NULL):
        store_ptr(pool, P_LISTS + step * 8, load_ptr(head, B_NEXT))
        store_i64(pool, P_SPARE, load_i64(pool, P_SPARE) - load_i64(head, B_BYTES))
        store_i64(pool, P_HITS, load_i64(pool, P_HITS) + 1)
        return head
    size = step_bytes(step) + HEADER
    where = stack(8)
    if posix_memalign(where, HUGE_PAGE if size >= HUGE else PAGE, size) != 0:
        return NULL
    made = load_ptr(where, 0)
    if size >= HUGE:
        madvise(made, size, MADV_HUGEPAGE)
    store_ptr(made, B_POOL, pool)
    store_i64(made, B_STEP, step)
    store_i64(made, B_BYTES, size)
    return made


@native
def return_buffer(buffer: ptr) -> None:
    pool, size = load_ptr(buffer, B_POOL), load_i64(buffer, B_BYTES)
    if load_i64(pool, P_SPARE) + size > load_i64(pool, P_LIMIT):
        free(buffer)
        return
    at = P_LISTS + load_i64(buffer, B_STEP) * 8
    store_ptr(buffer, B_NEXT, load_ptr(pool, at))
    store_ptr(pool, at, buffer)
    store_i64(pool, P_SPARE, load_i64(pool, P_SPARE) + size)


@native
def destroy_capsule(capsule: ptr) -> None:
    """The destructor of the capsules: no array refers to the buffer any more."""
    return_buffer(PyCapsule_GetPointer(capsule, cstr("tandem.buffer")))


@native
def pooled_array(pool: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, nbytes: i64) -> ptr:
    buffer = take_buffer(pool, nbytes)
    if unlikely(buffer == NULL):
        PyErr_NoMemory()
        return NULL
    capsule = PyCapsule_New(buffer, cstr("tandem.buffer"), destroy_capsule)
    if unlikely(capsule == NULL):
        return_buffer(buffer)
        return NULL
    incref(descr)
    flags = i32(C_CONTIGUOUS | ALIGNED | WRITEABLE)
    array = PyArray_NewFromDescr(PyArray_Type, descr, i32(rank), dims, strides, buffer + HEADER, flags, NULL)
    if unlikely(array == NULL):
        decref(capsule)
        return NULL
    if unlikely(PyArray_SetBaseObject(array, capsule) < 0):
        decref(array)
        return NULL
    return array
