"""Native entries of calls with one CUDA tensor and arguments that are not tensors: views, `x[key]`, reductions.

The arguments are encoded as a key of integers, by which the cached call is found (:mod:`.call_cache`). The integers in
the subscript of `x[key]` are not part of the key, so that one cached call serves all of them.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, store, template, unlikely
from ...cpu.fastpath.compiler.structs import at
from ...cpu.fastpath.runtime import capi, rt_entry
from ...cpu.fastpath.runtime import rt_base as base
from ...cpu.fastpath.runtime.rt_entry import Outcome
from . import eager_entries, launch_entries, result_entries

SUBSCRIPT: i64 = template(0)  # compile-time constant: whether this instance of the entry serves `x[key]`


# A cached call: the launchers of its kernels (the first is NULL for a view), and the scratch memory between them; for a
# view its layout, the offset of its first byte from the source's, and for each integer of the subscript the size and
# the stride in bytes of its axis
class CachedKernels(eager_entries.CacheEntry):
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


@rt_entry.entry(records=False)
def call_cached(entry: eager_entries.CudaEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Answer a call from the cache, or call Python."""
    if unlikely(count < 1 or eager_entries.notes_tensors(entry)):
        return Outcome.FALL_BACK
    backend, source = entry.backend, load(ptr, args, 0)
    array = eager_entries.plain_array(backend, source, flags)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    key, integers = dsl.stack(eager_entries.MAX_KEY * 8), dsl.stack(MAX_INTEGERS * 8 + 8)
    store(ptr, key, 0, load(ptr, array, result_entries.A_LAYOUT))
    store(i64, integers, 0, 0)
    used = encode_arguments(backend, args, count, kwnames, key, integers)
    if unlikely(used == INVALID):
        return Outcome.FALL_BACK
    cached: CachedKernels = eager_entries.find_call(entry.variants, key, used)
    if unlikely(cached == NULL):
        return Outcome.MISS
    result: ptr = Outcome.FALL_BACK
    if cached.first == NULL:
        result = make_view(entry.globals_, backend, source, array, cached, integers)
    else:
        result = launch_cached(cached, array)
    return eager_entries.count_call(entry, result)


# -- the key -----------------------------------------------------------------------------------------------------------
@native
def encode_arguments(
    backend: ptr, args: ptr, count: i64, kwnames: capi.PyVarObject, key: ptr, integers: ptr
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
        if used == INVALID or used >= eager_entries.MAX_KEY:
            return INVALID
        store(ptr, key, used * 8, load(ptr, kwnames, capi.PyTuple.items + k * 8))
        used = encode_value(backend, load(ptr, args, (count + k) * 8), key, used + 1)
    return used


@native
def encode_value(backend: result_entries.Backend, x: ptr, key: ptr, at: i64) -> i64:
    """Encode a value at an index of the key: the next free index, or INVALID for a value that has no encoding.

    Python twin: backends/cuda/fastpath/call_cache.py:encode_value
    """
    if unlikely(at >= eager_entries.MAX_KEY):
        return INVALID
    kind = capi.type_of(x)
    if kind == capi.PyLong_Type:
        return encode_integer(x, key, at)
    if kind in (capi.PyTuple_Type, capi.PyList_Type):
        return encode_items(backend, x, key, at)
    if x in (capi.Py_None, capi.Py_True, capi.Py_False, capi.Py_Ellipsis) or kind == backend.dtype:
        store(ptr, key, at * 8, x)
        return at + 1
    return encode_slice(backend, x, key, at) if kind == capi.PySlice_Type else INVALID


@native
def encode_integer(x: ptr, key: ptr, at: i64) -> i64:
    overflow = dsl.stack(4)
    if unlikely(at + 1 >= eager_entries.MAX_KEY):
        return INVALID
    store(i64, key, at * 8, INTEGER)
    store(i64, key, at * 8 + 8, capi.PyLong_AsLongLongAndOverflow(x, overflow))
    return at + 2 if load(dsl.i32, overflow, 0) == 0 else INVALID


@native
def encode_items(backend: ptr, x: capi.PyList, key: ptr, at: i64) -> i64:
    """Encode the items of a tuple or a list, which have to be integers."""
    count, tag, items = x.size, i64(TUPLE), x + capi.PyTuple.items
    if capi.type_of(x) == capi.PyList_Type:
        tag, items = i64(LIST), x.items
    if unlikely(count > eager_entries.MAX_KEY):
        return INVALID
    store(i64, key, at * 8, tag | (count << 8))
    used = at + 1
    i: i64 = 0
    while i < count and used != INVALID:
        item = load(ptr, items, i * 8)
        used = encode_integer(item, key, used) if likely(capi.type_of(item) == capi.PyLong_Type) else INVALID
        i += 1
    return used


@native
def encode_slice(backend: ptr, x: capi.PySlice, key: ptr, at: i64) -> i64:
    """Encode a slice, whose bounds have to be integers or None."""
    store(i64, key, at * 8, SLICE)
    used = encode_bound(x.start, key, at + 1)
    used = encode_bound(x.stop, key, used)
    return encode_bound(x.step, key, used)


@native
def encode_bound(x: ptr, key: ptr, at: i64) -> i64:
    if unlikely(at == INVALID or at >= eager_entries.MAX_KEY):
        return INVALID
    if x == capi.Py_None:
        store(ptr, key, at * 8, x)
        return at + 1
    return encode_integer(x, key, at) if capi.type_of(x) == capi.PyLong_Type else INVALID


@native
def encode_subscript(backend: ptr, args: ptr, count: i64, kwnames: ptr, key: ptr, integers: ptr) -> i64:
    """Encode the subscript of `x[key]`; its integers are stored in ``integers``, after their number.

    Python twin: backends/cuda/fastpath/call_cache.py:SubscriptCache.encode_arguments
    """
    if unlikely(count != 2 or kwnames != NULL):
        return INVALID
    x: capi.PyVarObject = load(ptr, args, 8)
    if capi.type_of(x) != capi.PyTuple_Type:
        return encode_item(backend, x, key, 1, integers)
    items = x.size
    if unlikely(items > eager_entries.MAX_KEY):
        return INVALID
    store(i64, key, 8, TUPLE | (items << 8))
    used: i64 = 2
    i: i64 = 0
    while i < items and used != INVALID:
        used = encode_item(backend, load(ptr, x, capi.PyTuple.items + i * 8), key, used, integers)
        i += 1
    return used


@native
def encode_item(backend: ptr, x: ptr, key: ptr, at: i64, integers: ptr) -> i64:
    if unlikely(at >= eager_entries.MAX_KEY):
        return INVALID
    if capi.type_of(x) != capi.PyLong_Type:
        return (
            INVALID
            if capi.type_of(x) in (capi.PyTuple_Type, capi.PyList_Type)
            else encode_value(backend, x, key, at)
        )
    overflow, count = dsl.stack(4), load(i64, integers, 0)
    value = capi.PyLong_AsLongLongAndOverflow(x, overflow)
    if unlikely(load(dsl.i32, overflow, 0) != 0 or count == MAX_INTEGERS):
        return INVALID
    store(i64, integers, count * 8 + 8, value)
    store(i64, integers, 0, count + 1)
    store(i64, key, at * 8, DYNAMIC)
    return at + 1


# -- views -------------------------------------------------------------------------------------------------------------
@native
def make_view(g: ptr, backend: ptr, source: ptr, array: ptr, cached: CachedKernels, integers: ptr) -> ptr:
    """Return a view of the argument, or an `Outcome`."""
    offset = cached.offset
    for i in range(cached.integers):
        at, size = load(i64, integers, i * 8 + 8), load(i64, cached, CachedKernels.steps + i * 16)
        if at < 0:
            at += size
        if unlikely(at < 0 or at >= size):
            return Outcome.FALL_BACK
        offset += at * load(i64, cached, CachedKernels.steps + i * 16 + 8)
    owner, layout = cached.owner, cached.layout
    capi.incref(owner)  # it keeps the layout
    capi.incref(array)
    result = make_view_at(g, backend, source, array, layout, offset)
    capi.decref(array)
    capi.decref(owner)
    return result


@native
def make_view_at(
    g: ptr, backend: result_entries.Backend, source: ptr, array: ptr, layout: ptr, offset: i64
) -> ptr:
    buffer, address = load(ptr, array, result_entries.A_BUFFER), load(ptr, array, result_entries.A_PTR)
    storage = get_storage(g, backend, source, buffer)
    if unlikely(storage == NULL):
        return Outcome.FALL_BACK
    if offset == 0:
        capi.incref(address)
    else:
        address = capi.PyLong_FromUnsignedLongLong(capi.PyLong_AsUnsignedLongLongMask(address) + offset)
    made: ptr = NULL
    if likely(address != NULL):
        made = capi.PyType_GenericAlloc(backend.array, 0)
    if unlikely(made == NULL):
        if address != NULL:
            capi.decref(address)
        capi.decref(storage)
        return Outcome.RETRY
    store(ptr, made, result_entries.A_PTR, address)
    store(ptr, made, result_entries.A_LAYOUT, capi.new_ref(layout))
    store(ptr, made, result_entries.A_BUFFER, capi.new_ref(buffer))
    tensor: base.TensorObject = base.make_plain_tensor(backend.tensor, backend.keys, made)
    if unlikely(tensor == NULL):
        capi.decref(storage)
        return Outcome.RETRY
    tensor.storage = storage
    capi.decref(capi.Py_None)
    return tensor


@native
def get_storage(
    g: base.Globals, backend: result_entries.Backend, source: base.TensorObject, buffer: ptr
) -> ptr:
    """A new reference to the storage of a tensor, created if there is none; NULL: call Python."""
    known = source.storage
    if likely(known != capi.Py_None):
        if unlikely(known == NULL):
            return NULL
        capi.incref(known)
        return known
    made: base.StorageObject = capi.PyType_GenericAlloc(backend.storage, 0)
    if unlikely(made == NULL):
        capi.PyErr_Clear()
        return NULL
    made.owner = capi.new_ref(buffer)
    made.version = capi.new_ref(g.zero)
    if unlikely(source.storage != capi.Py_None):
        capi.decref(made)
        return NULL  # the allocation has run other code, which has created another storage
    source.storage = capi.new_ref(made)
    capi.decref(capi.Py_None)
    return made


# -- kernels -----------------------------------------------------------------------------------------------------------
@native
def launch_cached(cached: CachedKernels, array: ptr) -> ptr:
    """Return the result of one kernel, or of two, or an `Outcome`."""
    device = cached.device
    stream = result_entries.current_stream(device)
    if unlikely(stream == NULL):
        return Outcome.FALL_BACK
    if unlikely(
        load(ptr, load(ptr, array, result_entries.A_BUFFER), result_entries.B_POOL)
        != load(ptr, stream, result_entries.S_POOL)
    ):
        return Outcome.FALL_BACK
    owner, values = cached.owner, dsl.stack(16)
    address = capi.PyLong_AsUnsignedLongLongMask(load(ptr, array, result_entries.A_PTR))
    if unlikely((address & cached.mask) != 0):
        return Outcome.FALL_BACK
    store(i64, values, 0, address)
    capi.incref(owner)
    capi.incref(array)
    tensor = result_entries.make_result(device, stream, cached.result, values + 8)
    if unlikely(tensor == NULL):
        tensor = Outcome.RETRY
    else:
        status: i64 = 0
        if likely(cached.second == NULL):
            status = launch_entries.queue_kernel(
                cached.first, load(ptr, stream, result_entries.S_HANDLE), values
            )
        else:
            status = launch_both(cached, device, stream, values)
        if unlikely(status != 0):
            capi.decref(tensor)
            tensor = Outcome.RETRY
            if status != INVALID:
                tensor = Outcome.FALL_BACK
    capi.decref(array)
    capi.decref(owner)
    return tensor


@dsl.noinline
def launch_both(cached: CachedKernels, device: ptr, stream: ptr, values: ptr) -> i64:
    """Launch two kernels with scratch memory between them: the driver's status, or INVALID with an exception set."""
    middle, handle = dsl.stack(16), load(ptr, stream, result_entries.S_HANDLE)
    scratch = result_entries.allocate(device, stream, cached.scratch, middle)
    if unlikely(scratch == NULL):
        return INVALID
    store(i64, middle, 8, load(i64, values, 8))
    store(i64, values, 8, load(i64, middle, 0))
    status = launch_entries.queue_kernel(cached.first, handle, values)
    if likely(status == 0):
        status = launch_entries.queue_kernel(cached.second, handle, middle)
    capi.decref(scratch)
    return status
