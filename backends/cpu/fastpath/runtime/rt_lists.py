"""Native runtime: tensors of nested lists of Python's numbers and of tensors."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, noinline, ptr, stack, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from . import capi, rt_memory, rt_operands
from . import rt_base as base

MOST_AXES = 8
ORDERED = capi.C_CONTIGUOUS | capi.ALIGNED  # flags of arrays whose elements are copied as they are


class ListState(Struct):
    """The state of reading nested lists of numbers and tensors."""

    rank: i64  # of the lists
    axes: i64  # of the result: those of the lists, then those of the tensors in them
    kind: i64  # the code of the widest number; FOREIGN: there is none
    tensor: i64  # the code of the tensors; FOREIGN: there is none
    at: ptr  # where the next element goes
    code: i64  # the dtype of the elements
    item_size: i64  # bytes of an item of the innermost lists
    dims: ptr = array(MOST_AXES)


@native
def is_list(x: ptr) -> bool:
    return bool(capi.type_of(x) == capi.PyList_Type or capi.type_of(x) == capi.PyTuple_Type)


@native
def measure_list(state: ListState, g: base.Globals, x: capi.PyVarObject) -> bool:
    """Find the shape of nested lists by their first items; return whether they have one that is not empty."""
    state.rank = 0
    item: ptr = x
    while is_list(item):
        size = capi.PyVarObject(item).size
        if state.rank == MOST_AXES or size == 0:
            return False
        store(i64, state.dims, state.rank * 8, size)
        state.rank += 1
        item = load(ptr, capi.sequence_items(item), 0)
    state.kind, state.tensor, state.axes = i64(base.FOREIGN), i64(base.FOREIGN), state.rank
    first: capi.Ndarray = rt_operands.plain_array(g, item, base.PLAIN)
    if first != NULL:
        if state.rank + i64(first.ndim) > MOST_AXES:
            return False
        state.axes += i64(first.ndim)
        for d in range(i64(first.ndim)):
            store(i64, state.dims, (state.rank + d) * 8, load(i64, first.dims, d * 8))
    return True


@native
def check_list(state: ListState, g: base.Globals, x: capi.PyVarObject, depth: i64) -> bool:
    """Return whether nested lists have the measured shape and hold numbers and tensors; find the dtypes of these."""
    if x.size != load(i64, state.dims, depth * 8):
        return False
    items = capi.sequence_items(x)
    for i in range(x.size):
        item = load(ptr, items, i * 8)
        if depth + 1 < state.rank:
            if not is_list(item) or not check_list(state, g, item, depth + 1):
                return False
        else:
            code = rt_operands.scalar_code(item)
            if code < 0:
                if not check_tensor(state, g, item):
                    return False
            elif state.axes != state.rank:
                return False
            elif code > state.kind:
                state.kind = code
    return True


@native
def check_tensor(state: ListState, g: base.Globals, x: ptr) -> bool:
    """Return whether an item is a plain tensor of the measured shape and of the dtype of the others."""
    array: capi.Ndarray = rt_operands.plain_array(g, x, base.PLAIN)
    if array == NULL or (array.flags & ORDERED) != ORDERED:
        return False
    code = rt_operands.array_code(g, array)
    if code == base.FOREIGN or i64(array.ndim) != state.axes - state.rank:
        return False
    if state.tensor != base.FOREIGN and code != state.tensor:
        return False
    state.tensor = code
    for d in range(i64(array.ndim)):
        if load(i64, array.dims, d * 8) != load(i64, state.dims, (state.rank + d) * 8):
            return False
    return True


@native
def write_list(state: ListState, x: capi.PyVarObject, depth: i64) -> bool:
    """Write the elements of nested lists one after the other; return false if a number does not fit."""
    items = capi.sequence_items(x)
    for i in range(x.size):
        item = load(ptr, items, i * 8)
        if depth + 1 < state.rank:
            if not write_list(state, item, depth + 1):
                return False
        else:
            code = rt_operands.scalar_code(item)
            if code < 0:
                capi.memcpy(state.at, capi.Ndarray(base.TensorObject(item).array).data, state.item_size)
            elif not rt_operands.write_scalar(item, code, state.code, state.at):
                return False
            state.at += state.item_size
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


@native
def choose_code(state: ListState, real: i64, to: i64) -> i64:
    """Return the code of the dtype of the result: of tensors, whose dtype numbers take, or of numbers.

    FOREIGN: Python must find it.
    """
    if state.tensor == base.FOREIGN:
        code = default_code(state.kind, real) if to == base.FOREIGN else to
        return base.FOREIGN if state.kind > base.WEAK_INT and code < base.FLOAT16 else code
    is_wider = (
        (state.kind == base.WEAK_INT and state.tensor == base.BOOL)
        or (state.kind == base.WEAK_FLOAT and state.tensor < base.FLOAT16)
        or (state.kind == base.WEAK_COMPLEX and state.tensor < base.COMPLEX64)
    )
    return base.FOREIGN if is_wider or (to != base.FOREIGN and to != state.tensor) else state.tensor


@noinline
def tensor_of_list(g: base.Globals, x: ptr, takes_all: bool, real: i64, to: i64) -> ptr:
    """Return a tensor of nested lists; NULL, perhaps with an exception set, if Python must make it.

    No Python code runs, so the lists do not change.

    Args:
        g: the process struct.
        x: the list or tuple.
        takes_all: whether it may hold tensors and all numbers; otherwise integers and bools only.
        real: the code of the dtype of floats, if they tell the dtype.
        to: the code of the dtype; FOREIGN: that of the items.
    """
    state: ListState = stack(sizeof(ListState))
    if not measure_list(state, g, x) or not check_list(state, g, x, 0):
        return NULL
    if not takes_all and (state.tensor != base.FOREIGN or state.kind > base.WEAK_INT):
        return NULL
    state.code = choose_code(state, real, to)
    if state.code == base.FOREIGN:
        return NULL
    descr: capi.Descr = load(ptr, g.descrs, state.code * 8)
    state.item_size = descr.itemsize
    for d in range(state.rank, state.axes):
        state.item_size *= load(i64, state.dims, d * 8)
    total = state.item_size
    for d in range(state.rank):
        total *= load(i64, state.dims, d * 8)
    made: capi.Ndarray = rt_memory.new_array(g, descr, state.axes, state.dims, total)
    if unlikely(made == NULL):
        return NULL
    state.at = made.data
    kind, tensor = state.kind, state.tensor
    # the allocation may have run Python code, so the lists are checked again
    is_same = check_list(state, g, x, 0) and state.kind == kind and state.tensor == tensor
    if unlikely(not is_same or not write_list(state, x, 0)):
        capi.decref(made)
        return NULL
    return base.make_tensor(g, made)
