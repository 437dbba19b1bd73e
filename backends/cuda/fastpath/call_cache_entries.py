"""Native entries of calls with one CUDA tensor and arguments that are not tensors: views, `x[key]`, reductions.

The arguments are encoded as a key of integers, by which the cached call is found (:mod:`.call_cache`). The integers in
the subscript of `x[key]` are not part of the key, so that one cached call serves all of them.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, store, template, unlikely
from ...cpu.fastpath.runtime import capi, rt_entry
from ...cpu.fastpath.runtime import rt_base as base
from ...cpu.fastpath.runtime.rt_entry import Outcome
from . import eager_entries, result_entries

SUBSCRIPT: i64 = template(0)  # compile-time constant: whether this instance of the entry serves `x[key]`


# The encoding of values: a singleton is its address; other values begin with one of these tags
INTEGER, DYNAMIC, TUPLE, LIST, SLICE = 1, 2, 3, 4, 5
INVALID: i64 = -1


@rt_entry.entry(records=False)
def call_cached(entry: eager_entries.CudaEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Answer a call from the cache, or call Python."""
    if unlikely(count < 1 or eager_entries.notes_tensors(entry)):
        return Outcome.FALL_BACK
    source, arrays = load(ptr, args, 0), dsl.stack(8)
    array: result_entries.ArrayObject = eager_entries.plain_array(entry.backend, source, flags)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    key, integers = dsl.stack(eager_entries.MAX_KEY * 8), dsl.stack(eager_entries.MAX_INTEGERS * 8 + 8)
    store(ptr, key, 0, array.layout)
    store(i64, integers, 0, 0)
    used = encode_arguments(entry.backend, args, count, kwnames, key, integers)
    if unlikely(used == INVALID):
        return Outcome.FALL_BACK
    cached: eager_entries.CacheEntry = eager_entries.find_call(entry.variants, key, used)
    if unlikely(cached == NULL):
        return Outcome.MISS
    if cached.layout != NULL:
        return make_view(entry, source, array, cached, integers)
    store(ptr, arrays, 0, array)
    return eager_entries.compute(entry, cached, args, arrays)


# -- the key -----------------------------------------------------------------------------------------------------------
@native
def encode_arguments(
    backend: ptr, args: ptr, count: i64, kwnames: capi.PyVarObject, key: ptr, integers: ptr
) -> i64:
    """Encode the arguments after the first: the length of the key, or INVALID."""
    if SUBSCRIPT:
        return encode_subscript(backend, args, count, kwnames, key, integers)
    store(i64, key, 8, count)
    used: i64 = 2
    for i in range(1, count):
        used = encode_value(backend, load(ptr, args, i * 8), key, used)
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
    """Encode a value at an index of the key: the next free index, or INVALID for a value that has no encoding."""
    if unlikely(at == INVALID or at >= eager_entries.MAX_KEY):
        return INVALID
    kind = capi.type_of(x)
    if kind == capi.PyLong_Type or x == capi.Py_None:
        return encode_number(x, key, at)
    if kind in (capi.PyTuple_Type, capi.PyList_Type):
        return encode_items(x, key, at)
    if kind == capi.PySlice_Type:
        bounds: capi.PySlice = x
        store(i64, key, at * 8, SLICE)
        used = encode_number(bounds.start, key, at + 1)
        used = encode_number(bounds.stop, key, used)
        return encode_number(bounds.step, key, used)
    if x in (capi.Py_True, capi.Py_False, capi.Py_Ellipsis) or kind == backend.dtype:
        store(ptr, key, at * 8, x)
        return at + 1
    return INVALID


@native
def encode_number(x: ptr, key: ptr, at: i64) -> i64:
    """Encode an integer or None."""
    if unlikely(at == INVALID or at + 1 >= eager_entries.MAX_KEY):
        return INVALID
    if x == capi.Py_None:
        store(ptr, key, at * 8, x)
        return at + 1
    overflow = dsl.stack(4)
    if unlikely(capi.type_of(x) != capi.PyLong_Type):
        return INVALID
    store(i64, key, at * 8, INTEGER)
    store(i64, key, at * 8 + 8, capi.PyLong_AsLongLongAndOverflow(x, overflow))
    return at + 2 if load(dsl.i32, overflow, 0) == 0 else INVALID


@native
def encode_items(x: capi.PyList, key: ptr, at: i64) -> i64:
    """Encode the items of a tuple or a list, which have to be integers or None."""
    count, tag, items = x.size, i64(TUPLE), x + capi.PyTuple.items
    if capi.type_of(x) == capi.PyList_Type:
        tag, items = i64(LIST), x.items
    if unlikely(count > eager_entries.MAX_KEY):
        return INVALID
    store(i64, key, at * 8, tag | (count << 8))
    used = at + 1
    for i in range(count):
        used = encode_number(load(ptr, items, i * 8), key, used)
    return used


@native
def encode_subscript(backend: ptr, args: ptr, count: i64, kwnames: ptr, key: ptr, integers: ptr) -> i64:
    """Encode the subscript of `x[key]`; its integers are stored in ``integers``, after their number."""
    if unlikely(count != 2 or kwnames != NULL):
        return INVALID
    x: capi.PyVarObject = load(ptr, args, 8)
    if capi.type_of(x) != capi.PyTuple_Type:
        return encode_item(backend, x, key, 1, integers)
    if unlikely(x.size > eager_entries.MAX_KEY):
        return INVALID
    store(i64, key, 8, TUPLE | (x.size << 8))
    used: i64 = 2
    for i in range(x.size):
        used = encode_item(backend, load(ptr, x, capi.PyTuple.items + i * 8), key, used, integers)
    return used


@native
def encode_item(backend: ptr, x: ptr, key: ptr, at: i64, integers: ptr) -> i64:
    """Encode an item of a subscript; an integer is stored in ``integers``."""
    kind, overflow, count = capi.type_of(x), dsl.stack(4), load(i64, integers, 0)
    if unlikely(
        at == INVALID or at >= eager_entries.MAX_KEY or kind in (capi.PyTuple_Type, capi.PyList_Type)
    ):
        return INVALID
    if kind != capi.PyLong_Type:
        return encode_value(backend, x, key, at)
    value = capi.PyLong_AsLongLongAndOverflow(x, overflow)
    if unlikely(load(dsl.i32, overflow, 0) != 0 or count == eager_entries.MAX_INTEGERS):
        return INVALID
    store(i64, integers, count * 8 + 8, value)
    store(i64, integers, 0, count + 1)
    store(i64, key, at * 8, DYNAMIC)
    return at + 1


@native
def make_view(
    entry: eager_entries.CudaEntry,
    source: ptr,
    array: result_entries.ArrayObject,
    cached: eager_entries.CacheEntry,
    integers: ptr,
) -> ptr:
    """Count the call and return a view of the argument, or an `Outcome`."""
    offset = cached.offset
    for i in range(cached.integers):
        at, axis = load(i64, integers, i * 8 + 8), cached.steps + i * 16
        size = load(i64, axis, 0)
        if at < 0:
            at += size
        if unlikely(at < 0 or at >= size):
            return Outcome.FALL_BACK
        offset += at * load(i64, axis, 8)
    layout, address, buffer = capi.new_ref(cached.layout), capi.new_ref(array.ptr), capi.new_ref(array.buffer)
    if offset != 0:
        first = capi.PyLong_AsUnsignedLongLongMask(address)
        capi.decref(address)
        address = capi.PyLong_FromUnsignedLongLong(first + offset)
    storage = result_entries.get_storage(entry.globals_, entry.backend, source, buffer)
    tensor: base.TensorObject = result_entries.make_tensor(entry.backend, address, layout, buffer)
    capi.decref(layout)
    if likely(tensor != NULL and storage != NULL):
        tensor.storage = storage
        capi.decref(capi.Py_None)
        entry.calls += 1
        return tensor
    result_entries.release(storage)
    result_entries.release(tensor)
    if tensor == NULL:
        return Outcome.RETRY
    return Outcome.FALL_BACK
