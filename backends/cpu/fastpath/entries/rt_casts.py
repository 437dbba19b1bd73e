"""The native entry of `cast(x, dtype)` and `astype(x, dtype, copy=True)`, with one operand: NIN is 1."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, template, unlikely
from ..runtime import capi, rt_entry, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_arguments, rt_elementwise, rt_reduce

HAS_COPY: i64 = template(0)  # 1: `astype`, which takes `copy`


@native
def read_copy_flag(entry: base.OperatorEntry, args: ptr, kwnames: capi.PyVarObject) -> i64:
    """Return 1 if `copy=False` is given, 0 if not, BAD for other keywords."""
    if likely(kwnames == NULL):
        return 0
    name = load(ptr, entry.names, capi.PyTuple.items + rt_reduce.COPY_NAME * 8)
    if HAS_COPY and kwnames.size == 1 and load(ptr, kwnames, capi.PyTuple.items) == name:
        given = load(ptr, args, 16)
        return 1 if given == capi.Py_False else 0 if given == capi.Py_True else rt_reduce.BAD
    return rt_reduce.BAD


@rt_entry.entry
def cast(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `cast` and `astype`.

    Python twin: operators/elementwise/casting.py:_cast_kernel
    """
    g = entry.globals_
    keep = read_copy_flag(entry, args, kwnames)
    if unlikely(keep == rt_reduce.BAD or count != 2):
        return Outcome.FALL_BACK
    arrays, pointers = stack(8), stack(16)
    source, dtype = load(ptr, args, 0), load(ptr, args, 8)
    code, to = rt_operands.operand_code(g, source, flags, arrays), rt_arguments.dtype_code(g, dtype)
    array: capi.Ndarray = load(ptr, arrays, 0)
    if unlikely(code < 0 or to < 0 or array == NULL):
        return Outcome.FALL_BACK
    if keep == 1 and code == to:
        entry.calls += 1
        capi.incref(source)
        return source
    variant: base.Variant = base.find_variant(entry, code | to << base.CODE_BITS)
    if unlikely(variant == NULL):
        return Outcome.MISS
    if unlikely(variant.loop == NULL):
        return Outcome.FALL_BACK
    store(ptr, pointers, 0, array.data)
    tensor = rt_entry.finish(entry, rt_elementwise.compute(variant, arrays, pointers, g))
    if unlikely(base.has_history(g, source, flags)):
        values = stack(24)
        store(ptr, values, 0, source)
        store(ptr, values, 8, dtype)
        return rt_record.record_call(entry, values, 2, tensor)
    return tensor
