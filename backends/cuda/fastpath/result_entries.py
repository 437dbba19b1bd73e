"""Native code that allocates the result of a call (block, buffer, array and tensor), and finalizes buffers.

The structs, which :mod:`.result` and :mod:`tandem.backends.cuda.runtime.streams` fill:

* the backend's (:class:`Backend`): the classes of the objects that are created;
* a device's (:class:`Device`): the pthread keys of a thread's context and current stream;
* a stream's (:class:`Stream`): its handle, and its pool, once it has one;
* a device's counters (:class:`Counters`), which :class:`..runtime.memory.Stats` reads;
* a result's spec (:class:`ResultSpec`): its layout and the size of its block.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, store, unlikely
from ...cpu.fastpath.compiler.structs import Struct
from ...cpu.fastpath.runtime import capi
from ...cpu.fastpath.runtime import rt_base as base


class BufferObject(capi.PyObject):
    """The slots of a Buffer."""

    slot_prefix = "B_"

    nbytes: ptr
    size: ptr
    pool: PoolObject
    block: ptr
    free_list: ptr
    users: ptr
    ptr: ptr


class ArrayObject(capi.PyObject):
    """The slots of a DeviceArray."""

    slot_prefix = "A_"

    layout: ptr
    buffer: BufferObject
    ptr: ptr


class PoolObject(capi.PyObject):
    """The slots of a Pool that native code reads."""

    slot_prefix = "P_"

    counts: ptr


class Backend(base.TensorClasses):
    """The backend's struct: the classes and key sets to compare with."""

    globals_: base.Globals
    buffer: ptr
    get: ptr  # the name "get"
    out_of_memory: ptr  # class OutOfMemoryError
    dtype: ptr


class Device(Struct):
    """A device, its context and its streams."""

    backend: ptr
    context: ptr
    set_context: ptr  # cuCtxSetCurrent
    context_key: i64  # pthread key of the context that a thread has set (-1: it is set at each call)
    stream_key: i64  # pthread key of the current stream
    default_stream: ptr


class Stream(Struct):
    """A stream and the free blocks of its pool; entries of compiled graphs read the first two by `jit_layout`."""

    handle: ptr
    pool: ptr  # NULL: there is none yet
    free: ptr  # the pool's free blocks by size; NULL if it caches none


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


class ResultSpec(Struct):
    """The layout and the sizes of a result."""

    layout: ptr
    nbytes: ptr  # requested size, a Python int
    key: ptr  # size of its block, a Python int
    size: i64  # the same as a number


@native
def current_stream(device: Device) -> ptr:
    """Make the device's context current; return the struct of this thread's stream, or NULL: call Python."""
    stream: Stream = capi.pthread_getspecific(dsl.i32(device.stream_key))
    if likely(stream == NULL):
        stream = device.default_stream
    if unlikely(stream.pool == NULL):
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
    buffer: BufferObject = allocate(device, stream, spec, address)
    if unlikely(buffer == NULL):
        return NULL
    return make_tensor(device.backend, capi.new_ref(buffer.ptr), spec.layout, buffer)


@native
def make_tensor(backend: Backend, address: ptr, layout: ptr, buffer: ptr) -> ptr:
    """Return a new tensor, which takes over the references to its address and its buffer, or NULL, an exception set."""
    array: ArrayObject = NULL
    if likely(address != NULL):
        array = capi.PyType_GenericAlloc(backend.array, 0)
    if unlikely(array == NULL):
        capi.release(address)
        capi.decref(buffer)
        return NULL
    array.ptr = address
    array.layout = capi.new_ref(layout)
    array.buffer = buffer
    return base.make_plain_tensor(backend, array)


@native
def allocate(device: ptr, stream: ptr, spec: ptr, address: ptr) -> ptr:
    """Return a new buffer of a result's size and store its address; NULL with an exception set.

    Python twin: backends/cuda/runtime/memory.py:allocate
    """
    made: BufferObject = take_free_block(device, stream, spec)
    if unlikely(made == NULL):
        made = call_pool_get(device, stream, spec)
        if unlikely(made == NULL):
            return NULL
    store(i64, address, 0, capi.PyLong_AsUnsignedLongLongMask(made.ptr))
    return made


@native
def take_free_block(device: Device, stream: Stream, spec: ResultSpec) -> ptr:
    """Return a buffer of a free block of the pool; NULL (call Python) if there is none or an allocation fails.

    Python twin: backends/cuda/runtime/memory.py:Pool.get
    """
    blocks: capi.PyList = stream.free
    if unlikely(blocks == NULL):
        return NULL
    blocks = capi.PyDict_GetItemWithError(blocks, spec.key)
    if unlikely(blocks == NULL or blocks.size == 0):
        return NULL
    pool = stream.pool
    capi.incref(blocks)
    capi.incref(pool)
    buffer: BufferObject = capi.PyType_GenericAlloc(Backend(device.backend).buffer, 0)
    count = blocks.size  # read again: finalizers may have run meanwhile
    if unlikely(buffer == NULL or count == 0):
        capi.decref(blocks)
        capi.decref(pool)
        capi.release(buffer)
        capi.PyErr_Clear()
        return NULL
    result = load(ptr, blocks.items, count * 8 - 8)
    blocks.size = count - 1
    buffer.ptr = capi.new_ref(load(ptr, result, capi.PyTuple.items))
    buffer.nbytes, buffer.size = capi.new_ref(spec.nbytes), capi.new_ref(spec.key)
    buffer.block, buffer.free_list, buffer.pool = result, blocks, pool  # which take over the references
    buffer.users = capi.new_ref(capi.Py_None)
    count_request(pool, spec.size)
    return buffer


@native
def counts_of(pool: PoolObject) -> ptr:
    return ptr(capi.PyLong_AsLongLong(pool.counts))


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
def call_pool_get(device: Device, stream: Stream, spec: ResultSpec) -> ptr:
    """Call ``pool.get(nbytes)``; used when the pool caches nothing or has no free block of this size."""
    arguments = dsl.stack(16)
    pool = stream.pool
    store(ptr, arguments, 0, capi.new_ref(pool))
    store(ptr, arguments, 8, spec.nbytes)
    made = capi.PyObject_VectorcallMethod(Backend(device.backend).get, arguments, 2, NULL)
    capi.decref(pool)
    return made


@native
def finalize(buffer: BufferObject) -> None:
    """Return the block to the pool; call Python if too much is cached.

    Python twin: backends/cuda/runtime/memory.py:Buffer.__del__
    """
    pool, none, blocks = buffer.pool, ptr(capi.Py_None), buffer.free_list
    if unlikely(pool in (NULL, none)):
        return
    counts: Counters = counts_of(pool)
    allocated = counts.allocated - capi.PyLong_AsLongLong(buffer.size)
    fits = counts.reserved - allocated <= counts.bound
    if likely(fits and buffer.users == none and blocks != NULL and blocks != none):
        if likely(capi.PyList_Append(blocks, buffer.block) == 0):
            counts.allocated = allocated
            counts.returned += 1
            return
        capi.PyErr_Clear()
    dsl.call_void(counts.finalize, buffer)
