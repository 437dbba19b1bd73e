"""Native runtime: arguments that are not tensors."""

from __future__ import annotations

from ..compiler.dsl import NULL, extern, extern_object, i64, likely, load, native, ptr
from ..glue.layout import PyTuple, PyVarObject
from .rt_base import Globals, OperatorEntry, type_of
from .rt_operands import COMPLEX128, FOREIGN
from .rt_reduce import AXIS

PyUnicode_Compare = extern("PyUnicode_Compare", "i32(ptr, ptr)")
PyUnicode_Type = extern_object("PyUnicode_Type")


@native
def axis_argument(
    desc: OperatorEntry, args: ptr, count: i64, kwnames: PyVarObject, place: i64, default: ptr
) -> ptr:
    """Return the argument `axis`, given by position or by name, or its default; NULL if there are other arguments."""
    if likely(kwnames == NULL):
        if count == place:
            return default
        return load(ptr, args, place * 8) if count == place + 1 else ptr(0)
    name = load(ptr, desc.names, PyTuple.items + AXIS * 8)
    if count == place and kwnames.size == 1 and load(ptr, kwnames, PyTuple.items) == name:
        return load(ptr, args, place * 8)
    return NULL


@native
def dtype_code(g: Globals, x: ptr) -> i64:
    """Return the code of a DType object, or FOREIGN."""
    table = g.types
    for code in range(COMPLEX128 + 1):
        if load(ptr, table, code * 8) == x:
            return code
    return FOREIGN


@native
def string_matches(x: ptr, wanted: ptr) -> bool:
    """Return whether an object is an exact str equal to `wanted`."""
    return bool(x == wanted or (type_of(x) == PyUnicode_Type and PyUnicode_Compare(x, wanted) == 0))
