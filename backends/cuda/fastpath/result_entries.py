"""Native code that allocates the result of a call (block, buffer, array and tensor), and finalizes buffers.

The structs, which :mod:`.result` and :mod:`tandem.backends.cuda.runtime.streams` fill:

* the backend's (:class:`Backend`): the classes of the objects that are created;
* a device's (:class:`Device`): the pthread keys of a thread's context and current stream;
* a stream's (``S_*``): its handle, and its pool, once it has one;
* a device's counters (:class:`Counters`), which :class:`..runtime.memory.Stats` reads;
* a result's spec (:class:`ResultSpec`): its layout and the size of its block.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, store, template, unlikely
from ...cpu.fastpath.compiler.structs import Struct
from ...cpu.fastpath.glue import jit_layout
from ...cpu.fastpath.runtime import capi
from ...cpu.fastpath.runtime import rt_base as base

# Compile-time constants from `result.constants`: the slot offsets of the classes.
A_PTR: i64 = template(0)
A_LAYOUT: i64 = template(0)
A_BUFFER: i64 = template(0)
B_PTR: i64 = template(0)
B_NBYTES: i64 = template(0)
B_SIZE: i64 = template(0)
B_POOL: i64 = template(0)
B_BLOCK: i64 = template(0)
B_FREE_LIST: i64 = template(0)
B_USERS: i64 = template(0)
P_COUNTS: i64 = template(0)


# The backend's struct: the process struct; the classes of tensors, arrays and buffers; the key set of a plain tensor;
# the name "get"; the class OutOfMemoryError; the classes of dtypes and storages; the key set of a tensor that requires
# a gradient
class Backend(Struct):
    """The backend's struct: the classes and key sets to compare with."""

    globals_: base.Globals
    tensor: ptr
    array: ptr
    buffer: ptr
    keys: ptr
    get: ptr  # the name "get"
    out_of_memory: ptr  # class OutOfMemoryError
    dtype: ptr
    storage: ptr
    grad_keys: ptr


# A device's struct: the driver's context and cuCtxSetCurrent; the pthread keys of the context that a thread has set
# (-1: it is set at each call) and of its current stream; the default stream
class Device(Struct):
    """A device, its context and its streams."""

    backend: ptr
    context: ptr
    set_context: ptr  # cuCtxSetCurrent
    context_key: i64  # pthread key of the context that a thread has set (-1: it is set at each call)
    stream_key: i64  # pthread key of the current stream
    default_stream: ptr


# A stream's struct: its handle; its pool or NULL; the pool's free blocks by size, NULL if it caches none
S_HANDLE, S_POOL, S_FREE = jit_layout.STREAM_HANDLE, jit_layout.STREAM_POOL, 16
S_SIZE = 24


# A device's counters, CPython's finalizer of buffers, and the most bytes that are cached
class Counters(Struct):
    """A device's counters of memory, and its allocator's settings."""

    allocated: i64
    peak: i64
    reserved: i64
    requests: i64
    misses: i64
    returned: i64
    retries: i64
    finalize: ptr  # CPython's finalizer of buffers
    bound: i64  # most bytes that are cached


# A result's spec: its layout; its requested size and the size of its block, as Python ints; the latter as a number
class ResultSpec(Struct):
    """The layout and the sizes of a result."""

    layout: ptr
    nbytes: ptr  # requested size, a Python int
    key: ptr  # size of its block, a Python int
    size: i64  # the same as a number


@native
def current_stream(device: Device) -> ptr:
    """Make the device's context current; return the struct of this thread's stream, or NULL: call Python."""
    stream = capi.pthread_getspecific(dsl.i32(device.stream_key))
    if likely(stream == NULL):
        stream = device.default_stream
    if unlikely(load(ptr, stream, S_POOL) == NULL):
        return NULL
    context, key = device.context, dsl.i32(device.context_key)
    if unlikely(key < 0 or capi.pthread_getspecific(key) != context):
        if dsl.call_i32(device.set_context, context) != 0:
            return NULL
        if key >= 0:
            capi.pthread_setspecific(key, context)
    return stream


@native
def make_result(device: Device, stream: ptr, spec: ResultSpec, address: ptr) -> ptr:
    """Return a new uninitialized tensor; NULL with an exception set.

    Args:
        device: the device's struct.
        stream: the result of :func:`current_stream`.
        spec: the result's spec.
        address: 8 bytes that receive the address of its data.
    """
    backend: Backend = device.backend
    buffer = allocate(device, stream, spec, address)
    if unlikely(buffer == NULL):
        return NULL
    array = capi.PyType_GenericAlloc(backend.array, 0)
    if unlikely(array == NULL):
        capi.decref(buffer)
        return NULL
    store(ptr, array, A_PTR, capi.new_ref(load(ptr, buffer, B_PTR)))
    store(ptr, array, A_LAYOUT, capi.new_ref(spec.layout))
    store(ptr, array, A_BUFFER, buffer)
    return base.make_plain_tensor(backend.tensor, backend.keys, array)


@native
def allocate(device: ptr, stream: ptr, spec: ptr, address: ptr) -> ptr:
    """Return a new buffer of a result's size and store its address; NULL with an exception set.

    Python twin: backends/cuda/runtime/memory.py:allocate
    """
    made = take_free_block(device, stream, spec)
    if unlikely(made == NULL):
        made = call_pool_get(device, stream, spec)
        if unlikely(made == NULL):
            return NULL
    store(i64, address, 0, capi.PyLong_AsUnsignedLongLongMask(load(ptr, made, B_PTR)))
    return made


@native
def take_free_block(device: Device, stream: ptr, spec: ResultSpec) -> ptr:
    """Return a buffer of a free block of the pool; NULL (call Python) if there is none or an allocation fails.

    Python twin: backends/cuda/runtime/memory.py:Pool.get
    """
    blocks: capi.PyList = load(ptr, stream, S_FREE)
    if unlikely(blocks == NULL):
        return NULL
    blocks = capi.PyDict_GetItemWithError(blocks, spec.key)
    if unlikely(blocks == NULL):
        return NULL
    if unlikely(blocks.size == 0):
        return NULL
    pool = load(ptr, stream, S_POOL)
    capi.incref(blocks)
    capi.incref(pool)
    buffer = capi.PyType_GenericAlloc(Backend(device.backend).buffer, 0)
    count = blocks.size  # read again: finalizers may have run meanwhile
    if unlikely(buffer == NULL or count == 0):
        capi.decref(blocks)
        capi.decref(pool)
        if buffer != NULL:
            capi.decref(buffer)
        capi.PyErr_Clear()
        return NULL
    result = load(ptr, blocks.items, count * 8 - 8)
    blocks.size = count - 1
    fill_buffer(buffer, result, blocks, pool, spec)
    count_request(pool, spec.size)
    return buffer


@native
def fill_buffer(buffer: ptr, buffer_struct: ptr, blocks: ptr, pool: ptr, spec: ResultSpec) -> None:
    """Fill the slots of a new buffer, which takes over the references to its block, its free list and the pool."""
    store(ptr, buffer, B_PTR, capi.new_ref(load(ptr, buffer_struct, capi.PyTuple.items)))
    store(ptr, buffer, B_NBYTES, capi.new_ref(spec.nbytes))
    store(ptr, buffer, B_SIZE, capi.new_ref(spec.key))
    store(ptr, buffer, B_POOL, pool)
    store(ptr, buffer, B_BLOCK, buffer_struct)
    store(ptr, buffer, B_FREE_LIST, blocks)
    store(ptr, buffer, B_USERS, capi.new_ref(capi.Py_None))


@native
def counts_of(pool: ptr) -> ptr:
    return ptr(capi.PyLong_AsLongLong(load(ptr, pool, P_COUNTS)))


@native
def count_request(pool: ptr, size: i64) -> None:
    """Count a request."""
    counts: Counters = counts_of(pool)
    counts.requests += 1
    allocated = counts.allocated + size
    counts.allocated = allocated
    if allocated > counts.peak:
        counts.peak = allocated


@dsl.noinline
def call_pool_get(device: Device, stream: ptr, spec: ResultSpec) -> ptr:
    """Call ``pool.get(nbytes)``; used when the pool caches nothing or has no free block of this size."""
    arguments = dsl.stack(16)
    pool = load(ptr, stream, S_POOL)
    store(ptr, arguments, 0, capi.new_ref(pool))
    store(ptr, arguments, 8, spec.nbytes)
    made = capi.PyObject_VectorcallMethod(Backend(device.backend).get, arguments, 2, NULL)
    capi.decref(pool)
    return made


@native
def finalize(buffer: ptr) -> None:
    """Return the block to the pool; call Python if too much is cached.

    Python twin: backends/cuda/runtime/memory.py:Buffer.__del__
    """
    pool = load(ptr, buffer, B_POOL)
    none: ptr = capi.Py_None
    if unlikely(pool in (NULL, none)):
        return
    counts, blocks = counts_of(pool), load(ptr, buffer, B_FREE_LIST)
    allocated = Counters(counts).allocated - capi.PyLong_AsLongLong(load(ptr, buffer, B_SIZE))
    fits = Counters(counts).reserved - allocated <= Counters(counts).bound
    if likely(fits and load(ptr, buffer, B_USERS) == none and blocks != NULL and blocks != none):
        if likely(capi.PyList_Append(blocks, load(ptr, buffer, B_BLOCK)) == 0):
            Counters(counts).allocated = allocated
            Counters(counts).returned += 1
            return
        capi.PyErr_Clear()
    dsl.call_void(Counters(counts).finalize, buffer)
