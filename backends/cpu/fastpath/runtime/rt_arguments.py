"""Native runtime: arguments that are not tensors: integers, axes, dtypes, strings, and arguments given by name."""

from __future__ import annotations

from ..compiler.dsl import NULL, cstr, i32, i64, likely, load, native, ptr, stack, stack_of, store, unlikely
from . import capi
from . import rt_base as base

# The names of the keywords, by their index in `OperatorEntry.names`
AXIS, KEEPDIMS, COPY, DTYPE, DEVICE = 0, 1, 2, 3, 4
BAD: i64 = -1
NO_NUMBER: i64 = -(1 << 63)


@native
def keyword_argument(
    entry: base.OperatorEntry, values: ptr, kwnames: capi.PyVarObject, name: i64, default: ptr
) -> ptr:
    """Return the only argument that may be given by name, or its default; NULL if there are other names."""
    if likely(kwnames == NULL):
        return default
    is_given = kwnames.size == 1 and capi.item(kwnames, 0) == capi.item(entry.names, name)
    return load(ptr, values, 0) if is_given else ptr(0)


@native
def read_dtype(entry: base.OperatorEntry, values: ptr, kwnames: capi.PyVarObject) -> ptr:
    """Return the dtype that a creation function is given by name, or None; NULL for other names than the CPU's."""
    dtype = capi.Py_None
    for k in range(kwnames.size if unlikely(kwnames != NULL) else 0):
        name, value = capi.item(kwnames, k), load(ptr, values, k * 8)
        if name == capi.item(entry.names, DTYPE):
            dtype = value
        elif name != capi.item(entry.names, DEVICE) or not names_cpu(value):
            return NULL
    return dtype


@native
def names_cpu(x: ptr) -> bool:
    """Return whether an object is None, or the string "cpu"."""
    if x == capi.Py_None:
        return True
    size = stack(8)
    text = capi.PyUnicode_AsUTF8AndSize(x, size)  # of subclasses too: `x.device` is one
    if unlikely(text == NULL):
        capi.PyErr_Clear()
        return False
    return bool(load(i64, size, 0) == 3 and capi.memcmp(text, cstr("cpu"), 3) == 0)


@native
def axis_argument(entry: ptr, args: ptr, count: i64, kwnames: ptr, index: i64, default: ptr) -> ptr:
    """Return the argument `axis`, given by position or by name, or its default; NULL if there are other arguments."""
    if kwnames == NULL and count == index + 1:
        return load(ptr, args, index * 8)
    if unlikely(count != index):
        return NULL
    return keyword_argument(entry, args + count * 8, kwnames, AXIS, default)


@native
def read_named(
    entry: base.OperatorEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, given: ptr
) -> bool:
    """Read axis, by position or by name, keepdims and dtype to `given`, each at its index; false for others.

    Keepdims is not read where `given` has NULL for it.
    """
    if count == 2:
        store(ptr, given, AXIS * 8, load(ptr, args, 8))
    for k in range(kwnames.size if unlikely(kwnames != NULL) else 0):
        name, index = capi.item(kwnames, k), i64(AXIS)
        if name == capi.item(entry.names, KEEPDIMS) and load(ptr, given, KEEPDIMS * 8) != NULL:
            index = KEEPDIMS
        elif name == capi.item(entry.names, DTYPE):
            index = DTYPE
        elif name != capi.item(entry.names, AXIS) or count == 2:
            return False
        store(ptr, given, index * 8, load(ptr, args, (count + k) * 8))
    return count <= 2


@native
def names_default(x: ptr) -> bool:
    """Return whether an object is the type float or complex: they name the default dtypes, or wide ones in NumPy."""
    return x in (capi.PyFloat_Type, capi.PyComplex_Type)


@native
def given_dtype(entry: base.OperatorEntry, x: ptr) -> i64:
    """Return as `dtype_code` the code of an argument of an entry, which may leave Python's types to Python."""
    if unlikely(entry.own_floats != 0) and names_default(x):
        return base.FOREIGN
    return dtype_code(entry.globals_, x)


@native
def named_code(entry: base.OperatorEntry, x: ptr) -> i64:
    """Return as `dtype_code` the code of an argument; of Python's types the default dtypes, or NumPy's if asked."""
    if unlikely(entry.own_floats != 0 and names_default(x)):
        return base.FLOAT64 if x == capi.PyFloat_Type else base.COMPLEX128
    return dtype_code(entry.globals_, x)


@native
def dtype_code(g: base.Globals, x: ptr) -> i64:
    """Return the code of a DType, or of an object that names one; FOREIGN for objects that Python must convert.

    Python twin: registry/dtypes.py:as_dtype
    """
    index = (i64(x) >> base.DTYPE_OBJECT_SHIFT) & base.DTYPE_OBJECT_MASK
    known = load(ptr, g.dtype_objects, index * 16)
    while known != x and known != NULL:
        index = (index + 1) & base.DTYPE_OBJECT_MASK
        known = load(ptr, g.dtype_objects, index * 16)
    return load(i64, g.dtype_objects, index * 16 + 8) if known != NULL else base.FOREIGN


@native
def string_matches(x: ptr, wanted: ptr) -> bool:
    """Return whether an object is an exact str equal to `wanted`."""
    return bool(
        x == wanted or (capi.type_of(x) == capi.PyUnicode_Type and capi.PyUnicode_Compare(x, wanted) == 0)
    )


# Integers -----------------------------------------------------------------------------------------------------------
@native
def whole_number(x: ptr) -> i64:
    """Return an exact int that fits 64 bits, or NO_NUMBER."""
    if capi.type_of(x) != capi.PyLong_Type:
        return NO_NUMBER
    overflow = stack(4)
    value = capi.PyLong_AsLongLongAndOverflow(x, overflow)
    return value if load(i32, overflow, 0) == 0 else NO_NUMBER


@native
def position(x: ptr, size: i64) -> i64:
    """Return an int as one of `size` axes or positions, not negative, or BAD."""
    value = whole_number(x)
    if value < 0:
        value += size
    return value if value >= 0 and value < size else BAD


@native
def folded_axes(axis: capi.PyVarObject, rank: i64) -> i64:
    """Return the folded axes as bits, or BAD."""
    if rank > base.MAX_RANK:
        return BAD
    if axis == capi.Py_None:
        return (1 << rank) - 1
    if capi.type_of(axis) != capi.PyTuple_Type:
        one = position(axis, rank)
        return 1 << one if one != BAD else BAD
    bits: i64 = 0
    for k in range(axis.size):
        number = position(capi.item(axis, k), rank)
        if number == BAD or (bits >> number) & 1 != 0:
            return BAD
        bits |= 1 << number
    return bits


@native
def read_integers(x: capi.PyVarObject, to: ptr) -> i64:
    """Read at most MAX_RANK ints of an exact tuple or list, or one int; return their number, or BAD."""
    items, count = capi.sequence_items(x), i64(1)
    if likely(items != NULL):
        count = x.size
    else:
        items = stack_of(x)
    if count > base.MAX_RANK:
        return BAD
    for k in range(count):
        value = whole_number(load(ptr, items, k * 8))
        if unlikely(value == NO_NUMBER):
            return BAD
        store(i64, to, k * 8, value)
    return count
