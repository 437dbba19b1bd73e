"""Native runtime: keys of cached calls: integers that encode all arguments that are not tensors.

The code of None, a bool, the ellipsis, a DType or an argument's name is its address; other values begin with a tag.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, store, unlikely
from . import capi, rt_arguments

MAX_KEY = 48
INVALID: i64 = -1  # in place of a length: the call has no key
INTEGER, DYNAMIC, TUPLE, LIST, SLICE = 1, 2, 3, 4, 5  # tags; DYNAMIC: an integer that is not part of the key


@native
def encode_arguments(
    args: ptr, count: i64, kwnames: capi.PyVarObject, names: ptr, dtype: ptr, key: ptr, used: i64
) -> i64:
    """Encode the arguments of a call after the first from an index of the key on.

    Args:
        args: all arguments.
        count: the number of positional ones.
        kwnames: the names of the others, or NULL.
        names: the tuple of the names that are known, or NULL for any.
        dtype: the class of dtypes, or NULL where they have no code.
        key: memory for MAX_KEY integers.
        used: the index.

    Returns:
        The length of the key, or INVALID.
    """
    used = encode_values(args + 8, count - 1, dtype, key, used)
    for k in range(kwnames.size if unlikely(kwnames != NULL) else 0):
        name = capi.item(kwnames, k)
        if used == INVALID or used >= MAX_KEY or (names != NULL and not has_item(names, name)):
            return INVALID
        store(ptr, key, used * 8, name)
        used = encode_value(load(ptr, args, (count + k) * 8), dtype, key, used + 1)
    return used


@native
def has_item(names: capi.PyVarObject, name: ptr) -> bool:
    """Return whether an object is an item of a tuple."""
    index: i64 = 0
    while index < names.size and capi.item(names, index) != name:
        index += 1
    return index < names.size


@native
def encode_values(values: ptr, count: i64, dtype: ptr, key: ptr, used: i64) -> i64:
    """Encode values in memory: the next free index, or INVALID."""
    for k in range(count):
        used = encode_value(load(ptr, values, k * 8), dtype, key, used)
        if unlikely(used == INVALID):
            return INVALID
    return used


@noinline
def encode_value(x: ptr, dtype: ptr, key: ptr, at: i64) -> i64:
    """Encode a value at an index of the key: the next free index, or INVALID for a value that has no encoding."""
    if unlikely(at == INVALID or at >= MAX_KEY):
        return INVALID
    kind = capi.type_of(x)
    if likely(kind == capi.PyLong_Type):
        return encode_number(x, key, at)
    if kind in (capi.PyTuple_Type, capi.PyList_Type):
        size = capi.PyVarObject(x).size
        store(i64, key, at * 8, (TUPLE if kind == capi.PyTuple_Type else LIST) | size << 8)
        return encode_values(capi.sequence_items(x), size, dtype, key, at + 1)
    if kind == capi.PySlice_Type:
        bounds: capi.PySlice = x
        store(i64, key, at * 8, SLICE)
        used = encode_number(bounds.stop, key, encode_number(bounds.start, key, at + 1))
        return encode_number(bounds.step, key, used)
    if x in (capi.Py_None, capi.Py_True, capi.Py_False, capi.Py_Ellipsis) or kind == dtype:
        store(ptr, key, at * 8, x)
        return at + 1
    return INVALID


@native
def encode_number(x: ptr, key: ptr, at: i64) -> i64:
    """Encode an integer or None."""
    if unlikely(at == INVALID or at + 1 >= MAX_KEY):
        return INVALID
    if x == capi.Py_None:
        store(ptr, key, at * 8, x)
        return at + 1
    value = rt_arguments.whole_number(x)
    store(i64, key, at * 8, INTEGER)
    store(i64, key, at * 8 + 8, value)
    return at + 2 if likely(value != rt_arguments.NO_NUMBER) else INVALID
