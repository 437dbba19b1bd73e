"""Native code that allocates the result of a call (block, buffer, array and tensor), and finalizes buffers.

The structs, which :mod:`.result` and :mod:`tandem.backends.cuda.runtime.streams` fill:

* the backend's (``H_*``): the classes of the objects that are created;
* a device's (``X_*``): the pthread keys of a thread's context and current stream;
* a stream's (``S_*``): its handle, and its pool, once it has one;
* a device's counters (``W_*``), which :class:`.memory.Stats` reads;
* a result's spec (``Y_*``): its layout and the size of its block.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import (
    NULL,
    call_i32,
    call_void,
    extern,
    i32,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack,
    store,
    unlikely,
)
from ...cpu.fastpath.entries.rt_base import (
    Py_None,
    PyDict_GetItemWithError,
    PyErr_Clear,
    PyLong_AsLongLong,
    PyType_GenericAlloc,
    decref,
    incref,
    pthread_getspecific,
    store_slots,
)
from ...cpu.fastpath.glue.jit_layout import STREAM_HANDLE, STREAM_POOL
from ...cpu.fastpath.glue.layout import PyList, PyTuple

PyLong_AsUnsignedLongLongMask = extern("PyLong_AsUnsignedLongLongMask", "i64(ptr)")
PyList_Append = extern("PyList_Append", "i32(ptr, ptr)")
PyObject_VectorcallMethod = extern("PyObject_VectorcallMethod", "ptr(ptr, ptr, i64, ptr)")
pthread_setspecific = extern("pthread_setspecific", "i32(i32, ptr)")

# Compile-time constants from `result.constants`: the slot offsets of the classes.
A_PTR: i64 = 0
A_LAYOUT: i64 = 0
A_BUFFER: i64 = 0
B_PTR: i64 = 0
B_NBYTES: i64 = 0
B_SIZE: i64 = 0
B_POOL: i64 = 0
B_BLOCK: i64 = 0
B_FREE_LIST: i64 = 0
B_USERS: i64 = 0
P_COUNTS: i64 = 0

# The backend's struct: the process struct; the classes of tensors, arrays and buffers; the key set of a plain tensor;
# the name "get"; the class OutOfMemoryError; the classes of dtypes and storages; the key set of a tensor that requires
# a gradient
H_GLOBALS, H_TENSOR, H_ARRAY, H_BUFFER, H_KEYS, H_GET, H_OUT_OF_MEMORY = 0, 8, 16, 24, 32, 40, 48
H_DTYPE, H_STORAGE, H_GRAD_KEYS = 56, 64, 72
H_SIZE = 80

# A device's struct: the driver's context and cuCtxSetCurrent; the pthread keys of the context that a thread has set
# (-1: it is set at each call) and of its current stream; the default stream
X_BACKEND, X_CONTEXT, X_SET, X_CONTEXT_KEY, X_STREAM_KEY, X_DEFAULT = 0, 8, 16, 24, 32, 40
X_SIZE = 48

# A stream's struct: its handle; its pool or NULL; the pool's free blocks by size, NULL if it caches none
S_HANDLE, S_POOL, S_FREE = STREAM_HANDLE, STREAM_POOL, 16
S_SIZE = 24

# A device's counters, CPython's finalizer of buffers, and the most bytes that are cached
W_ALLOCATED, W_PEAK, W_RESERVED, W_REQUESTS, W_MISSES, W_RETURNED, W_RETRIES = 0, 8, 16, 24, 32, 40, 48
W_FINALIZE, W_BOUND = 56, 64
W_SIZE = 72

# A result's spec: its layout; its requested size and the size of its block, as Python ints; the latter as a number
Y_LAYOUT, Y_NBYTES, Y_KEY, Y_BYTES = 0, 8, 16, 24
Y_SIZE = 32


@native
def current_stream(device: ptr) -> ptr:
    """The struct of this thread's current stream, after making the device's context current; NULL: call Python."""
    stream = pthread_getspecific(i32(load(i64, device, X_STREAM_KEY)))
    if likely(stream == NULL):
        stream = load(ptr, device, X_DEFAULT)
    if unlikely(load(ptr, stream, S_POOL) == NULL):
        return NULL
    context, key = load(ptr, device, X_CONTEXT), i32(load(i64, device, X_CONTEXT_KEY))
    if unlikely(key < 0 or pthread_getspecific(key) != context):
        if call_i32(load(ptr, device, X_SET), context) != 0:
            return NULL
        if key >= 0:
            pthread_setspecific(key, context)
    return stream


@native
def make_result(device: ptr, stream: ptr, spec: ptr, address: ptr) -> ptr:
    """A new uninitialized tensor; NULL with an exception set.

    Args:
        device: the device's struct.
        stream: the result of :func:`current_stream`.
        spec: the result's spec.
        address: 8 bytes that receive the address of its data.
    """
    backend = load(ptr, device, X_BACKEND)
    buffer = allocate(device, stream, spec, address)
    if unlikely(buffer == NULL):
        return NULL
    array = PyType_GenericAlloc(load(ptr, backend, H_ARRAY), 0)
    if unlikely(array == NULL):
        decref(buffer)
        return NULL
    address, layout = load(ptr, buffer, B_PTR), load(ptr, spec, Y_LAYOUT)
    incref(address)
    incref(layout)
    store(ptr, array, A_PTR, address)
    store(ptr, array, A_LAYOUT, layout)
    store(ptr, array, A_BUFFER, buffer)
    return make_tensor(backend, array)


@native
def make_tensor(backend: ptr, array: ptr) -> ptr:
    """A plain tensor that owns the reference to the array; NULL with an exception set and the array released."""
    tensor = PyType_GenericAlloc(load(ptr, backend, H_TENSOR), 0)
    if unlikely(tensor == NULL):
        decref(array)
        return NULL
    none: ptr = Py_None
    keys = load(ptr, backend, H_KEYS)
    incref(none)
    incref(none)
    incref(keys)
    store_slots(tensor, array, keys, none)
    return tensor


@native
def allocate(device: ptr, stream: ptr, spec: ptr, address: ptr) -> ptr:
    """A new buffer of a result's size, and its address; NULL with an exception set.

    Python twin: backends/cuda/runtime/memory.py:allocate
    """
    made = take_free_block(device, stream, spec)
    if unlikely(made == NULL):
        made = call_pool_get(device, stream, spec)
        if unlikely(made == NULL):
            return NULL
    store(i64, address, 0, PyLong_AsUnsignedLongLongMask(load(ptr, made, B_PTR)))
    return made


@native
def take_free_block(device: ptr, stream: ptr, spec: ptr) -> ptr:
    """A buffer of a block from the pool's free list; NULL if the list is empty or an allocation fails: call Python.

    Python twin: backends/cuda/runtime/memory.py:Pool.get
    """
    blocks: PyList = load(ptr, stream, S_FREE)
    if unlikely(blocks == NULL):
        return NULL
    blocks = PyDict_GetItemWithError(blocks, load(ptr, spec, Y_KEY))
    if unlikely(blocks == NULL):
        return NULL
    if unlikely(blocks.size == 0):
        return NULL
    pool = load(ptr, stream, S_POOL)
    incref(blocks)
    incref(pool)
    buffer = PyType_GenericAlloc(load(ptr, load(ptr, device, X_BACKEND), H_BUFFER), 0)
    count = blocks.size  # read again: finalizers may have run meanwhile
    if unlikely(buffer == NULL or count == 0):
        decref(blocks)
        decref(pool)
        if buffer != NULL:
            decref(buffer)
        PyErr_Clear()
        return NULL
    result = load(ptr, blocks.items, count * 8 - 8)
    blocks.size = count - 1
    fill_buffer(buffer, result, blocks, pool, spec)
    count_request(pool, load(i64, spec, Y_BYTES))
    return buffer


@native
def fill_buffer(buffer: ptr, found: ptr, blocks: ptr, pool: ptr, spec: ptr) -> None:
    """Fill the slots of a new buffer, which takes over the references to its block, its free list and the pool."""
    address, nbytes, size = load(ptr, found, PyTuple.items), load(ptr, spec, Y_NBYTES), load(ptr, spec, Y_KEY)
    none: ptr = Py_None
    incref(address)
    incref(nbytes)
    incref(size)
    incref(none)
    store(ptr, buffer, B_PTR, address)
    store(ptr, buffer, B_NBYTES, nbytes)
    store(ptr, buffer, B_SIZE, size)
    store(ptr, buffer, B_POOL, pool)
    store(ptr, buffer, B_BLOCK, found)
    store(ptr, buffer, B_FREE_LIST, blocks)
    store(ptr, buffer, B_USERS, none)


@native
def counts_of(pool: ptr) -> ptr:
    return ptr(PyLong_AsLongLong(load(ptr, pool, P_COUNTS)))


@native
def count_request(pool: ptr, size: i64) -> None:
    """Count a request."""
    counts = counts_of(pool)
    store(i64, counts, W_REQUESTS, load(i64, counts, W_REQUESTS) + 1)
    allocated = load(i64, counts, W_ALLOCATED) + size
    store(i64, counts, W_ALLOCATED, allocated)
    if allocated > load(i64, counts, W_PEAK):
        store(i64, counts, W_PEAK, allocated)


@noinline
def call_pool_get(device: ptr, stream: ptr, spec: ptr) -> ptr:
    """Call ``pool.get(nbytes)``; used when the pool caches nothing or has no free block of this size."""
    arguments = stack(16)
    pool = load(ptr, stream, S_POOL)
    incref(pool)
    store(ptr, arguments, 0, pool)
    store(ptr, arguments, 8, load(ptr, spec, Y_NBYTES))
    made = PyObject_VectorcallMethod(load(ptr, load(ptr, device, X_BACKEND), H_GET), arguments, 2, NULL)
    decref(pool)
    return made


@native
def finalize(buffer: ptr) -> None:
    """Return the block to the pool; call Python if too much is cached.

    Python twin: backends/cuda/runtime/memory.py:Buffer.__del__
    """
    pool = load(ptr, buffer, B_POOL)
    none: ptr = Py_None
    if unlikely(pool in (NULL, none)):
        return
    counts, blocks = counts_of(pool), load(ptr, buffer, B_FREE_LIST)
    allocated = load(i64, counts, W_ALLOCATED) - PyLong_AsLongLong(load(ptr, buffer, B_SIZE))
    fits = load(i64, counts, W_RESERVED) - allocated <= load(i64, counts, W_BOUND)
    if likely(fits and load(ptr, buffer, B_USERS) == none and blocks != NULL and blocks != none):
        if likely(PyList_Append(blocks, load(ptr, buffer, B_BLOCK)) == 0):
            store(i64, counts, W_ALLOCATED, allocated)
            store(i64, counts, W_RETURNED, load(i64, counts, W_RETURNED) + 1)
            return
        PyErr_Clear()
    call_void(load(ptr, counts, W_FINALIZE), buffer)
