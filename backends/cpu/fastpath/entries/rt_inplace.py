"""The native entry of in-place elementwise operators, `add_(x, y)` and `x += y`.

It computes like the entry of the functional operator, but into the memory of the first operand, which must have the
result's shape and dtype; another operand that overlaps that memory in another order is copied first.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, unlikely
from ..runtime import capi, rt_entry, rt_layouts, rt_operands, rt_outputs
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_elementwise


@rt_entry.entry(records=False, converts=1)
def inplace(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of in-place elementwise operators.

    Python twin: eager/tensor/inplace.py:_make_kernel
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != base.NIN):
        return Outcome.FALL_BACK
    arrays, pointers, scalars = stack(base.NIN * 8), stack(base.NARGS * 8), stack(base.NIN * 16)
    key = rt_operands.operand_key(g, args, flags, arrays)
    variant: base.Variant = rt_entry.select_variant(entry, key)
    if unlikely(i64(variant) <= 0):
        return variant
    target: capi.Ndarray = load(ptr, arrays, 0)
    if unlikely(target == NULL or not can_write(variant, target, arrays)):
        return Outcome.FALL_BACK
    capi.hold_all(arrays, base.NIN)  # allocating a storage or a copy may run Python code
    if unlikely(
        not rt_outputs.separate_operands(arrays, 1, target)
        or not rt_elementwise.load_operands(g, variant, args, arrays, key, pointers, scalars)
    ):
        capi.PyErr_Clear()  # Python runs the call, or raises the exception
        capi.release_all(arrays, base.NIN)
        return Outcome.FALL_BACK
    written = rt_outputs.bump_version(g, load(ptr, args, 0), target)
    if likely(written):
        store(ptr, pointers, base.NIN * 8, target.data)
        rt_elementwise.compute_into(variant, arrays, target, pointers)
        entry.calls += 1
    capi.release_all(arrays, base.NIN)
    return capi.new_ref(load(ptr, args, 0)) if likely(written) else ptr(0)


@native
def can_write(variant: base.Variant, target: capi.Ndarray, arrays: ptr) -> bool:
    """Return whether the target is writable and has the result's dtype and shape."""
    rank = i64(target.ndim)
    if (
        (target.flags & capi.WRITEABLE) == 0
        or rank > base.MAX_RANK
        or not rt_outputs.has_same_dtype(target, variant.descr)
    ):
        return False
    for i in range(1, base.NIN):
        array = load(ptr, arrays, i * 8)
        if array != NULL and array != target and not rt_layouts.can_broadcast(array, target.dims, rank):
            return False
    return True
