"""Native runtime: the entries of `clone(x)`, `contiguous(x)` and `stop_gradient(x)`, which return the same elements."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, ptr, stack, store, unlikely
from ..glue.layout import ALIGNED, C_CONTIGUOUS, Ndarray
from .rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    OperatorEntry,
    allowed_flags,
    entry_data,
    fall_back,
    has_history,
    make_tensor,
    thread_flags,
)
from .rt_copies import copy_contiguous
from .rt_elementwise import MAX_RANK
from .rt_operands import plain_array
from .rt_record import record_call
from .rt_views import make_view

# Result of an instance: a copy; a view if the operand is contiguous, else a copy; a view.
COPY, DENSE, ALIAS = 0, 1, 2
GIVES: i64 = 0


@native
def is_view(array: Ndarray) -> bool:
    if GIVES == DENSE:
        return (array.flags & C_CONTIGUOUS) != 0
    return GIVES == ALIAS


@native
def copy_or_view(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of `clone`, `contiguous` and `stop_gradient`."""
    desc: OperatorEntry = entry_data(self)
    g = desc.globals_
    flags = thread_flags(g)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 1 or flags == ELSEWHERE):
        return fall_back(desc, args, nargsf, kwnames)
    flags = allowed_flags(desc, flags)
    source = load(ptr, args, 0)
    array: Ndarray = plain_array(g, source, flags)
    if unlikely(array == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    rank, dims = i64(array.ndim), array.dims
    if unlikely(rank > MAX_RANK or (array.flags & ALIGNED) == 0):
        return fall_back(desc, args, nargsf, kwnames)
    desc.calls += 1
    tensor: ptr = NULL
    if is_view(array):
        tensor = make_view(g, source, array, rank, dims, array.strides)
    else:
        made = copy_contiguous(g, array, rank, dims)
        if unlikely(made == NULL):
            return NULL
        tensor = make_tensor(g, made)
    if unlikely(has_history(g, source, flags)):
        values = stack(16)
        store(ptr, values, 0, source)
        return record_call(desc, values, 1, tensor)
    return tensor
