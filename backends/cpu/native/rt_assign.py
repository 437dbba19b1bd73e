"""Native runtime: `x[key] = value` for keys that select a view, and a value that is a number or a tensor of x's dtype.

The operands of its nests are the value and the view: NIN is 1 and NARGS is 2.
"""

from __future__ import annotations

from .dsl import (
    NULL,
    i64,
    likely,
    load_i32,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
from .layout import ND_DATA, ND_DIMS, ND_FLAGS, ND_NDIM, WRITEABLE
from .rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_GLOBALS,
    ELSEWHERE,
    Py_None,
    decref,
    entry_data,
    incref,
    slow,
    thread_flags,
)
from .rt_copies import COPY, item_size
from .rt_elementwise import MAX_RANK, coalesce, operand_strides, run_nest
from .rt_inplace import apart_from, raise_version
from .rt_operands import BOOL, WEAK_BOOL, operand_code, write_scalar
from .rt_subscript import K_MOVED, K_RANK, K_SIZE, selected


@native
def assign(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 3 or flags == ELSEWHERE):
        return slow(desc, args, nargsf, kwnames)
    where, scalar, at = stack(16), stack(16), stack(K_SIZE)
    to = operand_code(g, load_ptr(args, 0), flags, where)
    code = operand_code(g, load_ptr(args, 16), flags, where + 8)
    array, value = load_ptr(where, 0), load_ptr(where, 8)
    if unlikely(to < 0 or code < 0 or array == NULL):
        return slow(desc, args, nargsf, kwnames)
    dims, steps = stack(MAX_RANK * 8), stack(MAX_RANK * 8)
    writable = (load_i32(array, ND_FLAGS) & WRITEABLE) != 0
    if unlikely(not writable or not selected(array, args + 8, dims, steps, at)):
        return slow(desc, args, nargsf, kwnames)
    if value == NULL:
        if unlikely(
            (to == BOOL and code != WEAK_BOOL) or not write_scalar(load_ptr(args, 16), code, to, scalar)
        ):
            return slow(desc, args, nargsf, kwnames)
    elif unlikely(code != to or not takes(value, array, dims, load_i64(at, K_RANK))):
        return slow(desc, args, nargsf, kwnames)
    incref(array)  # making a storage may run Python
    if value != NULL:
        incref(value)
    written = raise_version(g, load_ptr(args, 0), array)
    if likely(written):
        source = scalar
        if value != NULL:
            source = load_ptr(value, ND_DATA)
        write(array, value, source, dims, steps, at)
        store_i64(desc, D_CALLS, load_i64(desc, D_CALLS) + 1)
    if value != NULL:
        decref(value)
    decref(array)
    if unlikely(not written):
        return NULL
    none: ptr = Py_None
    incref(none)
    return none


@native
def takes(value: ptr, array: ptr, dims: ptr, rank: i64) -> bool:
    """Whether a value broadcasts to the view, and lies elsewhere in memory than what is written."""
    own = i64(load_i32(value, ND_NDIM))
    if own > rank:
        return False
    for d in range(own):
        size = load_i64(load_ptr(value, ND_DIMS), d * 8)
        if size != 1 and size != load_i64(dims, (rank - own + d) * 8):
            return False
    return apart_from(value, array)


@native
def write(array: ptr, value: ptr, source: ptr, dims: ptr, steps: ptr, at: ptr) -> None:
    rank, strides, pointers = load_i64(at, K_RANK), stack(MAX_RANK * 16), stack(16)
    total: i64 = 1
    operand_strides(value, rank, strides)
    for d in range(rank):
        total *= load_i64(dims, d * 8)
        store_i64(strides, d * 16 + 8, load_i64(steps, d * 8))
    store_ptr(pointers, 0, source)
    store_ptr(pointers, 8, load_ptr(array, ND_DATA) + load_i64(at, K_MOVED))
    if total != 0:
        run_nest(COPY, pointers, dims, strides, coalesce(dims, strides, rank), ptr(item_size(array)))
