"""Native runtime: the entry of `cast(x, dtype)` and `astype(x, dtype, copy=True)`, with one operand: NIN is 1."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, unlikely
from ..glue.layout import Ndarray, PyTuple, PyVarObject
from .rt_arguments import dtype_code
from .rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    OperatorEntry,
    Py_False,
    Py_True,
    allowed_flags,
    call_miss,
    entry_data,
    fall_back,
    has_history,
    incref,
    make_tensor,
    retry_in_python,
    thread_flags,
)
from .rt_elementwise import Variant, compute, find_variant
from .rt_operands import CODE_BITS, operand_code
from .rt_record import record_call
from .rt_reduce import BAD, COPY_NAME

HAS_COPY: i64 = 0  # 1: `astype`, which takes `copy`


@native
def read_copy_flag(desc: OperatorEntry, args: ptr, kwnames: PyVarObject) -> i64:
    """Return 1 if `copy=False` is given, 0 if not, BAD for other keywords."""
    if likely(kwnames == NULL):
        return 0
    name = load(ptr, desc.names, PyTuple.items + COPY_NAME * 8)
    if HAS_COPY and kwnames.size == 1 and load(ptr, kwnames, PyTuple.items) == name:
        given = load(ptr, args, 16)
        return 1 if given == Py_False else 0 if given == Py_True else BAD
    return BAD


@native
def cast(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of `cast` and `astype`.

    Python twin: operators/elementwise/casting.py:_cast_kernel
    """
    desc: OperatorEntry = entry_data(self)
    g = desc.globals_
    flags = thread_flags(g)
    keep = read_copy_flag(desc, args, kwnames)
    if unlikely(keep == BAD or (nargsf & ARGS_MASK) != 2 or flags == ELSEWHERE):
        return fall_back(desc, args, nargsf, kwnames)
    flags = allowed_flags(desc, flags)
    arrays, pointers = stack(8), stack(16)
    source, dtype = load(ptr, args, 0), load(ptr, args, 8)
    code, to = operand_code(g, source, flags, arrays), dtype_code(g, dtype)
    array: Ndarray = load(ptr, arrays, 0)
    if unlikely(code < 0 or to < 0 or array == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    if keep == 1 and code == to:
        desc.calls += 1
        incref(source)
        return source
    variant: Variant = find_variant(desc, code | to << CODE_BITS)
    if unlikely(variant == NULL):
        return call_miss(desc, args, nargsf, kwnames)
    if unlikely(variant.loop == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    store(ptr, pointers, 0, array.data)
    result = compute(variant, arrays, pointers, g)
    if unlikely(result == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return retry_in_python(desc, args, nargsf, kwnames)
    desc.calls += 1
    tensor = make_tensor(g, result)
    if unlikely(has_history(g, source, flags)):
        values = stack(24)
        store(ptr, values, 0, source)
        store(ptr, values, 8, dtype)
        return record_call(desc, values, 2, tensor)
    return tensor
