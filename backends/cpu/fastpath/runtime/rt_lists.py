"""Native runtime: tensors of nested lists of Python's numbers."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, noinline, ptr, stack, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from . import capi, rt_memory, rt_operands
from . import rt_base as base

MOST_AXES = 8


class ListState(Struct):
    """The state of reading nested lists of numbers."""

    rank: i64
    kind: i64  # the code of the widest number
    at: ptr  # where the next element goes
    code: i64  # the dtype of the elements
    size: i64  # bytes of an element
    dims: ptr = array(MOST_AXES)


@native
def is_list(x: ptr) -> bool:
    return bool(capi.type_of(x) == capi.PyList_Type or capi.type_of(x) == capi.PyTuple_Type)


@native
def measure_list(state: ListState, x: capi.PyVarObject) -> bool:
    """Find the shape of nested lists by their first items; return whether they have one that is not empty."""
    state.rank = 0
    item: capi.PyVarObject = x
    while is_list(item):
        if state.rank == MOST_AXES or item.size == 0:
            return False
        store(i64, state.dims, state.rank * 8, item.size)
        state.rank += 1
        item = load(ptr, capi.sequence_items(item), 0)
    state.kind = base.WEAK_BOOL
    return True


@native
def check_list(state: ListState, x: capi.PyVarObject, depth: i64) -> bool:
    """Return whether nested lists have the measured shape and hold numbers; find the widest kind of number."""
    if x.size != load(i64, state.dims, depth * 8):
        return False
    items = capi.sequence_items(x)
    for i in range(x.size):
        item = load(ptr, items, i * 8)
        if depth + 1 < state.rank:
            if not is_list(item) or not check_list(state, item, depth + 1):
                return False
        else:
            code = rt_operands.scalar_code(item)
            if code < 0:
                return False
            if code > state.kind:
                state.kind = code
    return True


@native
def write_list(state: ListState, x: capi.PyVarObject, depth: i64) -> bool:
    """Write the numbers of nested lists one after the other; return false if one does not fit."""
    items = capi.sequence_items(x)
    for i in range(x.size):
        item = load(ptr, items, i * 8)
        if depth + 1 < state.rank:
            if not write_list(state, item, depth + 1):
                return False
        else:
            if not rt_operands.write_scalar(item, rt_operands.scalar_code(item), state.code, state.at):
                return False
            state.at += state.size
    return True


@native
def default_code(kind: i64, real: i64) -> i64:
    """Return the code of the dtype of Python's numbers of a kind; ``real`` is that of floats."""
    if kind == base.WEAK_BOOL:
        return base.BOOL
    if kind == base.WEAK_INT:
        return base.INT64
    if kind == base.WEAK_FLOAT:
        return real
    return base.COMPLEX128 if real == base.FLOAT64 else i64(base.COMPLEX64)


@noinline
def tensor_of_list(g: base.Globals, x: ptr, widest: i64, real: i64, to: i64) -> ptr:
    """Return a tensor of nested lists of numbers; NULL, perhaps with an exception set, if Python must make it.

    No Python code runs, so the lists do not change.

    Args:
        g: the process struct.
        x: the list or tuple.
        widest: the widest kind of numbers that it may hold.
        real: the code of the dtype of floats, if they tell the dtype.
        to: the code of the dtype; FOREIGN: that of the numbers.
    """
    state: ListState = stack(sizeof(ListState))
    if not measure_list(state, x) or not check_list(state, x, 0) or state.kind > widest:
        return NULL
    state.code = default_code(state.kind, real) if to == base.FOREIGN else to
    if state.kind > base.WEAK_INT and state.code < base.FLOAT16:
        return NULL
    descr: capi.Descr = load(ptr, g.descrs, state.code * 8)
    state.size = descr.itemsize
    total = state.size
    for d in range(state.rank):
        total *= load(i64, state.dims, d * 8)
    made: capi.Ndarray = rt_memory.new_array(g, descr, state.rank, state.dims, total)
    if unlikely(made == NULL):
        return NULL
    state.at = made.data
    # the allocation may have run Python code, so the lists are checked again
    if unlikely(not check_list(state, x, 0) or state.kind > widest or not write_list(state, x, 0)):
        capi.decref(made)
        return NULL
    return base.make_tensor(g, made)
