"""Native entries of calls with one CUDA tensor and arguments that are not tensors: views, `x[key]`, reductions.

The arguments are encoded as a key of integers, by which the cached call is found (:mod:`.call_cache`). The integers in
the subscript of `x[key]` are not part of the key, so that one cached call serves all of them.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import (
    NULL,
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
from ...cpu.fastpath.compiler.structs import at
from ...cpu.fastpath.entries.rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    Globals,
    OperatorEntry,
    Py_False,
    Py_None,
    Py_True,
    PyErr_Clear,
    PyList_Type,
    PyLong_AsLongLongAndOverflow,
    PyLong_Type,
    PyTuple_Type,
    PyType_GenericAlloc,
    TensorObject,
    call_miss,
    decref,
    entry_data,
    fall_back,
    incref,
    type_of,
)
from ...cpu.fastpath.entries.rt_storage import StorageObject
from ...cpu.fastpath.entries.rt_subscript import Py_Ellipsis, PySlice, PySlice_Type
from ...cpu.fastpath.glue.layout import PyList, PyTuple, PyVarObject
from .eager_entries import MAX_KEY, CacheEntry, CudaEntry, find_call, get_flags, plain_array, report_failure
from .launch_entries import queue_kernel
from .result_entries import (
    A_BUFFER,
    A_LAYOUT,
    A_PTR,
    B_POOL,
    S_HANDLE,
    S_POOL,
    Backend,
    PyLong_AsUnsignedLongLongMask,
    allocate,
    current_stream,
    make_result,
    make_tensor,
)

PyLong_FromUnsignedLongLong = extern("PyLong_FromUnsignedLongLong", "ptr(i64)")

SUBSCRIPT: i64 = 0  # compile-time constant: whether this instance of the entry serves `x[key]`


# A cached call: the launchers of its kernels (the first is NULL for a view), and the scratch memory between them; for a
# view its layout, the offset of its first byte from the source's, and for each integer of the subscript the size and
# the stride in bytes of its axis
class CachedKernels(CacheEntry):
    """A cached call of any operator, as the launchers of its kernels; of a view, as its layout."""

    first: ptr = at(32)  # launcher; NULL for a view
    second: ptr = at(40)
    scratch: ptr = at(48)  # memory between the kernels
    layout: ptr = at(56)
    offset: i64 = at(64)  # bytes from the source's first byte
    integers: i64 = at(72)  # number of integers of the subscript
    steps: ptr = at(80, 12)  # per integer: size and stride in bytes of its axis
    mask: i64 = at(176)  # bits of the argument's address that must be zero


MAX_INTEGERS = 6


# The encoding of values: a singleton is its address; other values begin with one of these tags
INTEGER, DYNAMIC, TUPLE, LIST, SLICE = 1, 2, 3, 4, 5
INVALID: i64 = -1


@native
def call_cached(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Answer a call from the cache, or call Python."""
    entry, count = entry_data(self), nargsf & ARGS_MASK
    flags = get_flags(entry)
    if unlikely(count < 1 or flags == ELSEWHERE):
        return fall_back(entry, args, nargsf, kwnames)
    backend, source = CudaEntry(entry).backend, load(ptr, args, 0)
    array = plain_array(backend, source, flags)
    if unlikely(array == NULL):
        return fall_back(entry, args, nargsf, kwnames)
    key, integers = stack(MAX_KEY * 8), stack(MAX_INTEGERS * 8 + 8)
    store(ptr, key, 0, load(ptr, array, A_LAYOUT))
    store(i64, integers, 0, 0)
    used = encode_arguments(backend, args, count, kwnames, key, integers)
    if unlikely(used == INVALID):
        return fall_back(entry, args, nargsf, kwnames)
    cached: CachedKernels = find_call(OperatorEntry(entry).variants, key, used)
    if unlikely(cached == NULL):
        return call_miss(entry, args, nargsf, kwnames)
    result: ptr = NULL
    if cached.first == NULL:
        result = make_view(OperatorEntry(entry).globals_, backend, source, array, cached, integers)
    else:
        result = launch_cached(cached, array)
    if unlikely(result == NULL):
        return fall_back(entry, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return report_failure(entry, backend, args, nargsf, kwnames)
    OperatorEntry(entry).calls += 1
    return result


# -- the key -----------------------------------------------------------------------------------------------------------
@native
def encode_arguments(
    backend: ptr, args: ptr, count: i64, kwnames: PyVarObject, key: ptr, integers: ptr
) -> i64:
    """Encode the arguments after the first: the length of the key, or INVALID.

    Python twin: backends/cuda/fastpath/call_cache.py:CallCache.encode_arguments
    """
    if SUBSCRIPT:
        return encode_subscript(backend, args, count, kwnames, key, integers)
    store(i64, key, 8, count)
    used: i64 = 2
    i: i64 = 1
    while i < count and used != INVALID:
        used = encode_value(backend, load(ptr, args, i * 8), key, used)
        i += 1
    if likely(kwnames == NULL) or used == INVALID:
        return used
    for k in range(kwnames.size):
        if used == INVALID or used >= MAX_KEY:
            return INVALID
        store(ptr, key, used * 8, load(ptr, kwnames, PyTuple.items + k * 8))
        used = encode_value(backend, load(ptr, args, (count + k) * 8), key, used + 1)
    return used


@native
def encode_value(backend: Backend, x: ptr, key: ptr, at: i64) -> i64:
    """Encode a value at an index of the key: the next free index, or INVALID for a value that has no encoding.

    Python twin: backends/cuda/fastpath/call_cache.py:encode_value
    """
    if unlikely(at >= MAX_KEY):
        return INVALID
    kind = type_of(x)
    if kind == PyLong_Type:
        return encode_integer(x, key, at)
    if kind in (PyTuple_Type, PyList_Type):
        return encode_items(backend, x, key, at)
    if x in (Py_None, Py_True, Py_False, Py_Ellipsis) or kind == backend.dtype:
        store(ptr, key, at * 8, x)
        return at + 1
    return encode_slice(backend, x, key, at) if kind == PySlice_Type else INVALID


@native
def encode_integer(x: ptr, key: ptr, at: i64) -> i64:
    overflow = stack(4)
    if unlikely(at + 1 >= MAX_KEY):
        return INVALID
    store(i64, key, at * 8, INTEGER)
    store(i64, key, at * 8 + 8, PyLong_AsLongLongAndOverflow(x, overflow))
    return at + 2 if load(i32, overflow, 0) == 0 else INVALID


@native
def encode_items(backend: ptr, x: PyList, key: ptr, at: i64) -> i64:
    """Encode the items of a tuple or a list, which have to be integers."""
    count, tag, items = x.size, i64(TUPLE), x + PyTuple.items
    if type_of(x) == PyList_Type:
        tag, items = i64(LIST), x.items
    if unlikely(count > MAX_KEY):
        return INVALID
    store(i64, key, at * 8, tag | (count << 8))
    used = at + 1
    i: i64 = 0
    while i < count and used != INVALID:
        item = load(ptr, items, i * 8)
        used = encode_integer(item, key, used) if likely(type_of(item) == PyLong_Type) else INVALID
        i += 1
    return used


@native
def encode_slice(backend: ptr, x: PySlice, key: ptr, at: i64) -> i64:
    """Encode a slice, whose bounds have to be integers or None."""
    store(i64, key, at * 8, SLICE)
    used = encode_bound(x.start, key, at + 1)
    used = encode_bound(x.stop, key, used)
    return encode_bound(x.step, key, used)


@native
def encode_bound(x: ptr, key: ptr, at: i64) -> i64:
    if unlikely(at == INVALID or at >= MAX_KEY):
        return INVALID
    if x == Py_None:
        store(ptr, key, at * 8, x)
        return at + 1
    return encode_integer(x, key, at) if type_of(x) == PyLong_Type else INVALID


@native
def encode_subscript(backend: ptr, args: ptr, count: i64, kwnames: ptr, key: ptr, integers: ptr) -> i64:
    """Encode the subscript of `x[key]`; its integers are stored in ``integers``, after their number.

    Python twin: backends/cuda/fastpath/call_cache.py:SubscriptCache.encode_arguments
    """
    if unlikely(count != 2 or kwnames != NULL):
        return INVALID
    x: PyVarObject = load(ptr, args, 8)
    if type_of(x) != PyTuple_Type:
        return encode_item(backend, x, key, 1, integers)
    items = x.size
    if unlikely(items > MAX_KEY):
        return INVALID
    store(i64, key, 8, TUPLE | (items << 8))
    used: i64 = 2
    i: i64 = 0
    while i < items and used != INVALID:
        used = encode_item(backend, load(ptr, x, PyTuple.items + i * 8), key, used, integers)
        i += 1
    return used


@native
def encode_item(backend: ptr, x: ptr, key: ptr, at: i64, integers: ptr) -> i64:
    if unlikely(at >= MAX_KEY):
        return INVALID
    if type_of(x) != PyLong_Type:
        return INVALID if type_of(x) in (PyTuple_Type, PyList_Type) else encode_value(backend, x, key, at)
    overflow, count = stack(4), load(i64, integers, 0)
    value = PyLong_AsLongLongAndOverflow(x, overflow)
    if unlikely(load(i32, overflow, 0) != 0 or count == MAX_INTEGERS):
        return INVALID
    store(i64, integers, count * 8 + 8, value)
    store(i64, integers, 0, count + 1)
    store(i64, key, at * 8, DYNAMIC)
    return at + 1


# -- views -------------------------------------------------------------------------------------------------------------
@native
def make_view(g: ptr, backend: ptr, source: ptr, array: ptr, cached: CachedKernels, integers: ptr) -> ptr:
    """A view of the argument; NULL: call Python; -1: an exception is set."""
    offset = cached.offset
    for i in range(cached.integers):
        at, size = load(i64, integers, i * 8 + 8), load(i64, cached, CachedKernels.steps + i * 16)
        if at < 0:
            at += size
        if unlikely(at < 0 or at >= size):
            return NULL
        offset += at * load(i64, cached, CachedKernels.steps + i * 16 + 8)
    owner, layout = cached.owner, cached.layout
    incref(owner)  # it keeps the layout
    incref(array)
    result = make_view_at(g, backend, source, array, layout, offset)
    decref(array)
    decref(owner)
    return result


@native
def make_view_at(g: ptr, backend: Backend, source: ptr, array: ptr, layout: ptr, offset: i64) -> ptr:
    buffer, address = load(ptr, array, A_BUFFER), load(ptr, array, A_PTR)
    storage = get_storage(g, backend, source, buffer)
    if unlikely(storage == NULL):
        return NULL
    if offset == 0:
        incref(address)
    else:
        address = PyLong_FromUnsignedLongLong(PyLong_AsUnsignedLongLongMask(address) + offset)
    made: ptr = NULL
    if likely(address != NULL):
        made = PyType_GenericAlloc(backend.array, 0)
    if unlikely(made == NULL):
        if address != NULL:
            decref(address)
        decref(storage)
        return ptr(-1)
    incref(layout)
    incref(buffer)
    store(ptr, made, A_PTR, address)
    store(ptr, made, A_LAYOUT, layout)
    store(ptr, made, A_BUFFER, buffer)
    tensor: TensorObject = make_tensor(backend, made)
    if unlikely(tensor == NULL):
        decref(storage)
        return ptr(-1)
    tensor.storage = storage
    decref(Py_None)
    return tensor


@native
def get_storage(g: Globals, backend: Backend, source: TensorObject, buffer: ptr) -> ptr:
    """A new reference to the storage of a tensor, created if there is none; NULL: call Python."""
    known = source.storage
    if likely(known != Py_None):
        if unlikely(known == NULL):
            return NULL
        incref(known)
        return known
    made: StorageObject = PyType_GenericAlloc(backend.storage, 0)
    if unlikely(made == NULL):
        PyErr_Clear()
        return NULL
    zero = g.zero
    incref(buffer)
    incref(zero)
    made.owner = buffer
    made.version = zero
    if unlikely(source.storage != Py_None):
        decref(made)
        return NULL  # the allocation has run other code, which has created another storage
    incref(made)
    source.storage = made
    decref(Py_None)
    return made


# -- kernels -----------------------------------------------------------------------------------------------------------
@native
def launch_cached(cached: CachedKernels, array: ptr) -> ptr:
    """The result of one kernel, or of two; NULL: call Python; -1: an exception is set."""
    device = cached.device
    stream = current_stream(device)
    if unlikely(stream == NULL):
        return NULL
    if unlikely(load(ptr, load(ptr, array, A_BUFFER), B_POOL) != load(ptr, stream, S_POOL)):
        return NULL
    owner, values = cached.owner, stack(16)
    address = PyLong_AsUnsignedLongLongMask(load(ptr, array, A_PTR))
    if unlikely((address & cached.mask) != 0):
        return NULL
    store(i64, values, 0, address)
    incref(owner)
    incref(array)
    tensor = make_result(device, stream, cached.result, values + 8)
    if unlikely(tensor == NULL):
        tensor = ptr(-1)
    else:
        status: i64 = 0
        if likely(cached.second == NULL):
            status = queue_kernel(cached.first, load(ptr, stream, S_HANDLE), values)
        else:
            status = launch_both(cached, device, stream, values)
        if unlikely(status != 0):
            decref(tensor)
            tensor = ptr(-1)
            if status != INVALID:
                tensor = NULL
    decref(array)
    decref(owner)
    return tensor


@noinline
def launch_both(cached: CachedKernels, device: ptr, stream: ptr, values: ptr) -> i64:
    """Launch two kernels with scratch memory between them: the driver's status, or INVALID with an exception set."""
    middle, handle = stack(16), load(ptr, stream, S_HANDLE)
    scratch = allocate(device, stream, cached.scratch, middle)
    if unlikely(scratch == NULL):
        return INVALID
    store(i64, middle, 8, load(i64, values, 8))
    store(i64, values, 8, load(i64, middle, 0))
    status = queue_kernel(cached.first, handle, values)
    if likely(status == 0):
        status = queue_kernel(cached.second, handle, middle)
    decref(scratch)
    return status
