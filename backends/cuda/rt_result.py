"""Native code that makes the result of a call: a block of the pool, a buffer, an array and a tensor; and takes it back.

The records, plain memory that :mod:`.native_result` and :mod:`.streams` fill:

* the backend's (``H_*``): the classes of the objects that are made;
* a device's (``X_*``): how a thread's context and current stream are known;
* a stream's (``S_*``): its handle, and its pool once it has one;
* a device's counts (``W_*``), which Python's :class:`.memory.Stats` shows;
* a result's (``Y_*``): its layout and the size of its block.
"""

from __future__ import annotations

from ..cpu.native.dsl import (
    NULL,
    apart,
    call_i32,
    call_void,
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
from ..cpu.native.jit_layout import STREAM_HANDLE, STREAM_POOL
from ..cpu.native.layout import LIST_ITEMS, OB_SIZE, TUPLE_ITEMS
from ..cpu.native.rt_base import (
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

PyLong_AsUnsignedLongLongMask = extern("PyLong_AsUnsignedLongLongMask", "i64(ptr)")
PyList_Append = extern("PyList_Append", "i32(ptr, ptr)")
PyObject_VectorcallMethod = extern("PyObject_VectorcallMethod", "ptr(ptr, ptr, i64, ptr)")
pthread_setspecific = extern("pthread_setspecific", "i32(i32, ptr)")

# Compile-time values that `native_result` supplies: where the slots of the classes lie.
A_PTR: i64 = 0
A_LAYOUT: i64 = 0
A_BUFFER: i64 = 0
B_PTR: i64 = 0
B_NBYTES: i64 = 0
B_SIZE: i64 = 0
B_POOL: i64 = 0
B_BLOCK: i64 = 0
B_HOME: i64 = 0
B_USERS: i64 = 0
P_COUNTS: i64 = 0

# The backend's record: the process record; the classes of tensors, arrays and buffers; the key set of a plain tensor;
# the name "get"; the class of exceptions that say that a device has no memory; the classes of dtypes and storages;
# the key set of a tensor with history
H_GLOBALS, H_TENSOR, H_ARRAY, H_BUFFER, H_KEYS, H_GET, H_SHORTAGE = 0, 8, 16, 24, 32, 40, 48
H_DTYPE, H_STORAGE, H_GRAD_KEYS = 56, 64, 72
H_SIZE = 80

# A device's record: the driver's context and cuCtxSetCurrent; the pthread keys of the context that a thread has set
# (-1: it is set at each call) and of its current stream; the default stream
X_HOME, X_CONTEXT, X_SET, X_CONTEXT_KEY, X_STREAM_KEY, X_DEFAULT = 0, 8, 16, 24, 32, 40
X_SIZE = 48

# A stream's record: its handle; its pool or NULL; the pool's blocks by size, NULL where it keeps none
S_HANDLE, S_POOL, S_FREE = STREAM_HANDLE, STREAM_POOL, 16
S_SIZE = 24

# The counts of a device's pools, and what Python does when a buffer goes
W_ALLOCATED, W_PEAK, W_RESERVED, W_REQUESTS, W_MISSES, W_RETURNED, W_RETRIES = 0, 8, 16, 24, 32, 40, 48
W_FINALIZE = 56
W_SIZE = 64

# A result's record: its layout; the bytes that it asks for, and those of its block, as Python's ints; these as a number
Y_LAYOUT, Y_NBYTES, Y_KEY, Y_BYTES = 0, 8, 16, 24
Y_SIZE = 32


@native
def ready(device: ptr) -> ptr:
    """The record of this thread's current stream, the device's context being current; NULL: Python has to look."""
    stream = pthread_getspecific(i32(load_i64(device, X_STREAM_KEY)))
    if likely(stream == NULL):
        stream = load_ptr(device, X_DEFAULT)
    if unlikely(load_ptr(stream, S_POOL) == NULL):
        return NULL
    context, key = load_ptr(device, X_CONTEXT), i32(load_i64(device, X_CONTEXT_KEY))
    if unlikely(key < 0 or pthread_getspecific(key) != context):
        if call_i32(load_ptr(device, X_SET), context) != 0:
            return NULL
        if key >= 0:
            pthread_setspecific(key, context)
    return stream


@native
def result(device: ptr, stream: ptr, what: ptr, where: ptr) -> ptr:
    """A new tensor, whose address is put where it is wanted; NULL with an exception set.

    Args:
        device: the device's record.
        stream: what :func:`ready` has given.
        what: the result's record.
        where: 8 bytes for the address.
    """
    home = load_ptr(device, X_HOME)
    buffer = block(device, stream, what, where)
    if unlikely(buffer == NULL):
        return NULL
    array = PyType_GenericAlloc(load_ptr(home, H_ARRAY), 0)
    if unlikely(array == NULL):
        decref(buffer)
        return NULL
    address, layout = load_ptr(buffer, B_PTR), load_ptr(what, Y_LAYOUT)
    incref(address)
    incref(layout)
    store_ptr(array, A_PTR, address)
    store_ptr(array, A_LAYOUT, layout)
    store_ptr(array, A_BUFFER, buffer)
    return tensor_of(home, array)


@native
def tensor_of(home: ptr, array: ptr) -> ptr:
    """A plain tensor that owns the reference to the array; NULL with the exception set, the array released."""
    tensor = PyType_GenericAlloc(load_ptr(home, H_TENSOR), 0)
    if unlikely(tensor == NULL):
        decref(array)
        return NULL
    none: ptr = Py_None
    keys = load_ptr(home, H_KEYS)
    incref(none)
    incref(none)
    incref(keys)
    store_slots(tensor, array, keys, none)
    return tensor


@native
def block(device: ptr, stream: ptr, what: ptr, where: ptr) -> ptr:
    """A new buffer of a result's size, and its address; NULL with an exception set."""
    made = spare(device, stream, what)
    if unlikely(made == NULL):
        made = asked_for(device, stream, what)
        if unlikely(made == NULL):
            return NULL
    store_i64(where, 0, PyLong_AsUnsignedLongLongMask(load_ptr(made, B_PTR)))
    return made


@native
def spare(device: ptr, stream: ptr, what: ptr) -> ptr:
    """A buffer around a block that the pool has kept; NULL if it has none, or something goes wrong: Python tries."""
    blocks = load_ptr(stream, S_FREE)
    if unlikely(blocks == NULL):
        return NULL
    kept = PyDict_GetItemWithError(blocks, load_ptr(what, Y_KEY))
    if unlikely(kept == NULL):
        return NULL
    if unlikely(load_i64(kept, OB_SIZE) == 0):
        return NULL
    pool = load_ptr(stream, S_POOL)
    incref(kept)
    incref(pool)
    buffer = PyType_GenericAlloc(load_ptr(load_ptr(device, X_HOME), H_BUFFER), 0)
    count = load_i64(kept, OB_SIZE)  # again: objects may have been collected meanwhile
    if unlikely(buffer == NULL or count == 0):
        decref(kept)
        decref(pool)
        if buffer != NULL:
            decref(buffer)
        PyErr_Clear()
        return NULL
    found = load_ptr(load_ptr(kept, LIST_ITEMS), count * 8 - 8)
    store_i64(kept, OB_SIZE, count - 1)
    fill(buffer, found, kept, pool, what)
    given(pool, load_i64(what, Y_BYTES))
    return buffer


@native
def fill(buffer: ptr, found: ptr, kept: ptr, pool: ptr, what: ptr) -> None:
    """Fill the slots of a new buffer, which takes over the references to its block, the list that it goes back to, and
    the pool."""
    address, nbytes, size = load_ptr(found, TUPLE_ITEMS), load_ptr(what, Y_NBYTES), load_ptr(what, Y_KEY)
    none: ptr = Py_None
    incref(address)
    incref(nbytes)
    incref(size)
    incref(none)
    store_ptr(buffer, B_PTR, address)
    store_ptr(buffer, B_NBYTES, nbytes)
    store_ptr(buffer, B_SIZE, size)
    store_ptr(buffer, B_POOL, pool)
    store_ptr(buffer, B_BLOCK, found)
    store_ptr(buffer, B_HOME, kept)
    store_ptr(buffer, B_USERS, none)


@native
def counts_of(pool: ptr) -> ptr:
    return ptr(PyLong_AsLongLong(load_ptr(pool, P_COUNTS)))


@native
def given(pool: ptr, size: i64) -> None:
    """Count a block that has been given."""
    counts = counts_of(pool)
    store_i64(counts, W_REQUESTS, load_i64(counts, W_REQUESTS) + 1)
    allocated = load_i64(counts, W_ALLOCATED) + size
    store_i64(counts, W_ALLOCATED, allocated)
    if allocated > load_i64(counts, W_PEAK):
        store_i64(counts, W_PEAK, allocated)


@apart
def asked_for(device: ptr, stream: ptr, what: ptr) -> ptr:
    """``pool.get(nbytes)``: the pool has no such block, or keeps none."""
    arguments = stack(16)
    pool = load_ptr(stream, S_POOL)
    incref(pool)
    store_ptr(arguments, 0, pool)
    store_ptr(arguments, 8, load_ptr(what, Y_NBYTES))
    made = PyObject_VectorcallMethod(load_ptr(load_ptr(device, X_HOME), H_GET), arguments, 2, NULL)
    decref(pool)
    return made


@native
def finalize(buffer: ptr) -> None:
    """What :meth:`.memory.Buffer.__del__` does: the block goes back to the pool."""
    pool = load_ptr(buffer, B_POOL)
    none: ptr = Py_None
    if unlikely(pool in (NULL, none)):
        return
    counts, home = counts_of(pool), load_ptr(buffer, B_HOME)
    if likely(load_ptr(buffer, B_USERS) == none and home != NULL and home != none):
        if likely(PyList_Append(home, load_ptr(buffer, B_BLOCK)) == 0):
            size = PyLong_AsLongLong(load_ptr(buffer, B_SIZE))
            store_i64(counts, W_ALLOCATED, load_i64(counts, W_ALLOCATED) - size)
            store_i64(counts, W_RETURNED, load_i64(counts, W_RETURNED) + 1)
            return
        PyErr_Clear()
    call_void(load_ptr(counts, W_FINALIZE), buffer)
