"""Native runtime: the entry of `cast(x, dtype)` and `astype(x, dtype)`. Its instance has one operand (NIN is 1)."""

from __future__ import annotations

from .dsl import NULL, i64, load_i64, load_ptr, native, ptr, stack, store_i64, store_ptr, unlikely
from .layout import ND_DATA
from .rt_arguments import dtype_code
from .rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_GLOBALS,
    ELSEWHERE,
    allowed,
    call_miss,
    entry_data,
    has_history,
    make_tensor,
    record_call,
    slow,
    thread_flags,
)
from .rt_elementwise import V_LOOP, compute, find_variant
from .rt_operands import CODE_BITS, operand_code


@native
def cast(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 2 or flags == ELSEWHERE):
        return slow(desc, args, nargsf, kwnames)
    flags = allowed(desc, flags)
    arrays, pointers = stack(8), stack(16)
    source, dtype = load_ptr(args, 0), load_ptr(args, 8)
    code, to = operand_code(g, source, flags, arrays), dtype_code(g, dtype)
    array = load_ptr(arrays, 0)
    if unlikely(code < 0 or to < 0 or array == NULL):
        return slow(desc, args, nargsf, kwnames)
    variant = find_variant(desc, code | to << CODE_BITS)
    if unlikely(variant == NULL):
        return call_miss(desc, args, nargsf, kwnames)
    if unlikely(load_ptr(variant, V_LOOP) == NULL):
        return slow(desc, args, nargsf, kwnames)
    store_ptr(pointers, 0, load_ptr(array, ND_DATA))
    result = compute(variant, arrays, pointers, g)
    if unlikely(result == NULL):
        return slow(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return NULL
    store_i64(desc, D_CALLS, load_i64(desc, D_CALLS) + 1)
    tensor = make_tensor(g, result)
    if unlikely(has_history(g, source, flags)):
        values = stack(24)
        store_ptr(values, 0, source)
        store_ptr(values, 8, dtype)
        return record_call(desc, values, 2, tensor)
    return tensor
