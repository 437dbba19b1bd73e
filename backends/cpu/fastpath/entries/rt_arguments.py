"""Native entries: arguments that are not tensors."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr
from ..runtime import capi
from ..runtime import rt_base as base
from . import rt_reduce


@native
def axis_argument(
    entry: base.OperatorEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, index: i64, default: ptr
) -> ptr:
    """Return the argument `axis`, given by position or by name, or its default; NULL if there are other arguments."""
    if likely(kwnames == NULL):
        if count == index:
            return default
        return load(ptr, args, index * 8) if count == index + 1 else ptr(0)
    name = load(ptr, entry.names, capi.PyTuple.items + rt_reduce.AXIS * 8)
    if count == index and kwnames.size == 1 and load(ptr, kwnames, capi.PyTuple.items) == name:
        return load(ptr, args, index * 8)
    return NULL


@native
def dtype_code(g: base.Globals, x: ptr) -> i64:
    """Return the code of a DType object, or FOREIGN."""
    table = g.types
    for code in range(base.COMPLEX128 + 1):
        if load(ptr, table, code * 8) == x:
            return code
    return base.FOREIGN


@native
def string_matches(x: ptr, wanted: ptr) -> bool:
    """Return whether an object is an exact str equal to `wanted`."""
    return bool(
        x == wanted or (capi.type_of(x) == capi.PyUnicode_Type and capi.PyUnicode_Compare(x, wanted) == 0)
    )
