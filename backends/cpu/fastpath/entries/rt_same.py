"""The native entries of `clone(x)`, `contiguous(x)` and `stop_gradient(x)`, which return the same elements."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, ptr, stack, store, template, unlikely
from ..runtime import capi, rt_entry, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies, rt_views

# Result of an instance: a copy; a view if the operand is contiguous, else a copy; a view.
COPY, DENSE, ALIAS = 0, 1, 2
GIVES: i64 = template(0)


@native
def is_view(array: capi.Ndarray) -> bool:
    if GIVES == DENSE:
        return (array.flags & capi.C_CONTIGUOUS) != 0
    return GIVES == ALIAS


@rt_entry.entry
def copy_or_view(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `clone`, `contiguous` and `stop_gradient`."""
    g = entry.globals_
    if unlikely(kwnames != NULL or count != 1):
        return Outcome.FALL_BACK
    source = load(ptr, args, 0)
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    rank, dims = i64(array.ndim), array.dims
    if unlikely(rank > base.MAX_RANK or (array.flags & capi.ALIGNED) == 0):
        return Outcome.FALL_BACK
    entry.calls += 1
    tensor: ptr = NULL
    if is_view(array):
        tensor = rt_views.make_view(g, source, array, rank, dims, array.strides)
    else:
        made = rt_copies.copy_contiguous(g, array, rank, dims)
        if unlikely(made == NULL):
            return NULL
        tensor = base.make_tensor(g, made)
    if unlikely(base.has_history(g, source, flags)):
        values = stack(16)
        store(ptr, values, 0, source)
        return rt_record.record_call(entry, values, 1, tensor)
    return tensor
