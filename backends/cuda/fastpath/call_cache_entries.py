"""Native entries of calls with one CUDA tensor and arguments that are not tensors: views, `x[key]`, reductions.

The arguments are encoded as integers: the key of the call in the call cache (:mod:`.call_cache`). The integers in
the subscript of `x[key]` are not part of the key, so that one cached call serves all of them.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i64, load, native, ptr, store, template, unlikely
from ...cpu.fastpath.runtime import capi, rt_arguments, rt_entry, rt_keys, rt_operands
from ...cpu.fastpath.runtime import rt_base as base
from ...cpu.fastpath.runtime.rt_entry import Outcome
from . import eager_entries, result_entries

SUBSCRIPT: i64 = template(0)  # compile-time constant: whether this instance of the entry serves `x[key]`


@rt_entry.entry(records=False)
def call_cached(entry: eager_entries.CudaEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Answer a call from the call cache; return an `Outcome` on a miss."""
    if unlikely(count < 1 or eager_entries.tracks_new_tensors(entry)):
        return Outcome.FALL_BACK
    source, arrays = load(ptr, args, 0), dsl.stack(8)
    array: result_entries.ArrayObject = rt_operands.plain_array(entry.backend, source, flags)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    key, integers = dsl.stack(rt_keys.MAX_KEY * 8), dsl.stack(eager_entries.MAX_INTEGERS * 8 + 8)
    store(ptr, key, 0, array.layout)
    store(i64, integers, 0, 0)
    length = encode_arguments(entry.backend, args, count, kwnames, key, integers)
    if unlikely(length == rt_keys.INVALID):
        return Outcome.FALL_BACK
    cached: eager_entries.CacheEntry = eager_entries.find_call(entry.variants, key, length)
    if unlikely(cached == NULL):
        return Outcome.MISS
    if cached.layout != NULL:
        return make_view(entry, source, array, cached, integers)
    store(ptr, arrays, 0, array)
    return eager_entries.compute(entry, cached, args, arrays)


# -- the key -----------------------------------------------------------------------------------------------------------
@native
def encode_arguments(
    backend: result_entries.Backend, args: ptr, count: i64, kwnames: ptr, key: ptr, integers: ptr
) -> i64:
    """Encode the arguments after the first in ``key``; return the length of the key, or INVALID."""
    if SUBSCRIPT:
        return encode_subscript(backend.dtype, args, count, kwnames, key, integers)
    store(i64, key, 8, count)
    return rt_keys.encode_arguments(args, count, kwnames, NULL, backend.dtype, key, 2)


@native
def encode_subscript(dtype: ptr, args: ptr, count: i64, kwnames: ptr, key: ptr, integers: ptr) -> i64:
    """Encode the subscript of `x[key]` in ``key``; return the length of the key, or INVALID.

    The integers of the subscript are stored in ``integers``, after their number.
    """
    if unlikely(count != 2 or kwnames != NULL):
        return rt_keys.INVALID
    x: capi.PyVarObject = load(ptr, args, 8)
    if capi.type_of(x) != capi.PyTuple_Type:
        return encode_item(x, dtype, key, 1, integers)
    store(i64, key, 8, rt_keys.TUPLE | (x.size << 8))
    length: i64 = 2
    for i in range(x.size):
        length = encode_item(capi.item(x, i), dtype, key, length, integers)
    return length


@native
def encode_item(x: ptr, dtype: ptr, key: ptr, at: i64, integers: ptr) -> i64:
    """Encode an item of a subscript from ``key[at]`` on, or store it in ``integers``; return the length of the key."""
    kind, count = capi.type_of(x), load(i64, integers, 0)
    if unlikely(
        at == rt_keys.INVALID or at >= rt_keys.MAX_KEY or kind in (capi.PyTuple_Type, capi.PyList_Type)
    ):
        return rt_keys.INVALID
    if kind != capi.PyLong_Type:
        return rt_keys.encode_value(x, dtype, key, at)
    value = rt_arguments.whole_number(x)
    if unlikely(value == rt_arguments.NO_NUMBER or count == eager_entries.MAX_INTEGERS):
        return rt_keys.INVALID
    store(i64, integers, count * 8 + 8, value)
    store(i64, integers, 0, count + 1)
    store(i64, key, at * 8, rt_keys.DYNAMIC)
    return at + 1


@native
def make_view(
    entry: eager_entries.CudaEntry,
    source: ptr,
    array: result_entries.ArrayObject,
    cached: eager_entries.CacheEntry,
    integers: ptr,
) -> ptr:
    """Return a view of the argument, and count the call; return an `Outcome` if that fails."""
    offset = cached.offset
    for i in range(cached.integers):
        index, axis = load(i64, integers, i * 8 + 8), cached.axes + i * 16
        size = load(i64, axis, 0)
        if index < 0:
            index += size
        if unlikely(index < 0 or index >= size):
            return Outcome.FALL_BACK
        offset += index * load(i64, axis, 8)
    layout, address, buffer = capi.new_ref(cached.layout), capi.new_ref(array.ptr), capi.new_ref(array.buffer)
    if offset != 0:
        base_address = capi.PyLong_AsUnsignedLongLongMask(address)
        capi.decref(address)
        address = capi.PyLong_FromUnsignedLongLong(base_address + offset)
    tensor: base.TensorObject = result_entries.make_tensor(entry.backend, address, layout, buffer)
    capi.decref(layout)
    if unlikely(tensor == NULL):
        return Outcome.RETRY
    storage = base.shared_storage(entry.backend, source, result_entries.ArrayObject(tensor.array).buffer)
    if unlikely(storage == NULL):
        capi.PyErr_Clear()
        capi.decref(tensor)
        return Outcome.FALL_BACK
    tensor.storage = storage
    capi.decref(capi.Py_None)
    entry.calls += 1
    return tensor
