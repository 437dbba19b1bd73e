"""Native runtime: arguments that are not tensors."""

from __future__ import annotations

from .dsl import NULL, i64, likely, load_i64, load_ptr, native, ptr
from .layout import OB_SIZE, TUPLE_ITEMS
from .rt_base import D_NAMES, G_TYPES
from .rt_operands import COMPLEX128, FOREIGN
from .rt_reduce import AXIS


@native
def axis_argument(desc: ptr, args: ptr, count: i64, kwnames: ptr, place: i64, default: ptr) -> ptr:
    """The argument `axis`, by its place or by its name, or its default; NULL if there are other arguments."""
    if likely(kwnames == NULL):
        if count == place:
            return default
        return load_ptr(args, place * 8) if count == place + 1 else ptr(0)
    name = load_ptr(load_ptr(desc, D_NAMES), TUPLE_ITEMS + AXIS * 8)
    if count == place and load_i64(kwnames, OB_SIZE) == 1 and load_ptr(kwnames, TUPLE_ITEMS) == name:
        return load_ptr(args, place * 8)
    return NULL


@native
def dtype_code(g: ptr, x: ptr) -> i64:
    """The code of a DType object, or FOREIGN."""
    table = load_ptr(g, G_TYPES)
    for code in range(COMPLEX128 + 1):
        if load_ptr(table, code * 8) == x:
            return code
    return FOREIGN
