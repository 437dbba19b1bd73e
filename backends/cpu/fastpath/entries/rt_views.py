"""The native entries of views: `reshape(x, shape)`, `permute(x, axes)`, `broadcast_to(x, shape)`.

A view shares the storage of its source, which is created here if there is none yet.
"""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i32, i64, likely, load, native, ptr, stack, store, template, unlikely
from ..runtime import capi, rt_entry, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies, rt_reshape

VIEW: i64 = template(0)  # which view this instance of the entry is
RESHAPE, PERMUTE, BROADCAST = 0, 1, 2


@rt_entry.entry
def view(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of views."""
    g = entry.globals_
    if unlikely(kwnames != NULL or count != 2):
        return Outcome.FALL_BACK
    source = load(ptr, args, 0)
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    wanted, dims, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    rank = read_integers(load(ptr, args, 8), wanted)
    if unlikely(array == NULL or rank == rt_reshape.REFUSED or array.ndim > base.MAX_RANK):
        return Outcome.FALL_BACK
    result = compute_view(array, wanted, rank, dims, strides)
    if unlikely(result == rt_reshape.REFUSED):
        return Outcome.FALL_BACK
    entry.calls += 1
    made: ptr = NULL
    if unlikely(result == rt_reshape.MOVED):
        made = copy_with_shape(g, array, rank, dims)
    else:
        made = make_view(g, source, array, rank, dims, strides)
    if unlikely(base.has_history(g, source, flags)):
        values = stack(24)
        store(ptr, values, 0, source)
        store(ptr, values, 8, load(ptr, args, 8))
        return rt_record.record_call(entry, values, 2, made)
    return made


@dsl.noinline
def copy_with_shape(g: ptr, array: ptr, rank: i64, dims: ptr) -> ptr:
    """Return a tensor of the given sizes with a copy of the elements; NULL with an exception set."""
    made = rt_copies.copy_contiguous(g, array, rank, dims)
    return base.make_tensor(g, made) if likely(made != NULL) else made


@native
def read_integers(x: capi.PyList, to: ptr) -> i64:
    """Read the ints of an exact tuple or list, or one int; return their number, or REFUSED."""
    alone, count = stack(8), i64(1)
    store(ptr, alone, 0, x)
    items = alone
    if likely(capi.type_of(x) == capi.PyTuple_Type):
        items = x + capi.PyTuple.items
    elif capi.type_of(x) == capi.PyList_Type:
        items = x.items
    if capi.type_of(x) != capi.PyLong_Type:
        count = x.size
    if items == alone and capi.type_of(x) != capi.PyLong_Type:
        return rt_reshape.REFUSED
    if count > base.MAX_RANK:
        return rt_reshape.REFUSED
    overflow = stack(4)
    for k in range(count):
        item = load(ptr, items, k * 8)
        if capi.type_of(item) != capi.PyLong_Type:
            return rt_reshape.REFUSED
        value = capi.PyLong_AsLongLongAndOverflow(item, overflow)
        if unlikely(value == -1) and capi.PyErr_Occurred() != NULL:
            capi.PyErr_Clear()
            return rt_reshape.REFUSED
        if load(i32, overflow, 0) != 0:
            return rt_reshape.REFUSED
        store(i64, to, k * 8, value)
    return count


@native
def compute_view(array: ptr, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> i64:
    """Write sizes and strides of the result and return VIEWED; only sizes: MOVED; REFUSED: Python must run the call."""
    if VIEW == RESHAPE:
        return rt_reshape.reshape_strides(array, wanted, rank, dims, strides)
    value = (
        permute_strides(array, wanted, rank, dims, strides)
        if VIEW == PERMUTE
        else broadcast_strides(array, wanted, rank, dims, strides)
    )
    return rt_reshape.VIEWED if value else rt_reshape.REFUSED


@native
def permute_strides(array: capi.Ndarray, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> bool:
    if rank != i64(array.ndim):
        return False
    seen: i64 = 0
    for d in range(rank):
        axis: i64 = load(i64, wanted, d * 8)
        if axis < 0:
            axis += rank
        if axis < 0 or axis >= rank or (seen >> axis) & 1 != 0:
            return False
        seen |= 1 << axis
        store(i64, dims, d * 8, load(i64, array.dims, axis * 8))
        store(i64, strides, d * 8, load(i64, array.strides, axis * 8))
    return True


@native
def broadcast_strides(array: capi.Ndarray, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> bool:
    own = i64(array.ndim)
    if own > rank:
        return False
    total: i64 = 1
    for d in range(rank):
        size = load(i64, wanted, d * 8)
        if size <= 0 or size > LARGEST:
            return False
        total *= size
        if total > LARGEST:
            return False
        at = d - (rank - own)
        had: i64 = 1
        step: i64 = 0
        if at >= 0:
            had = load(i64, array.dims, at * 8)
            step = load(i64, array.strides, at * 8)
        if had != size and had != 1:
            return False
        store(i64, dims, d * 8, size)
        store(i64, strides, d * 8, step if had == size else 0)
    return True


LARGEST: i64 = 2147483648  # larger results are left to Python, which checks that they can be addressed


@native
def make_view(g: ptr, source: ptr, array: capi.Ndarray, rank: i64, dims: ptr, strides: ptr) -> ptr:
    """Return a tensor over the same memory from its first byte on; NULL with an exception set."""
    return make_view_at(g, source, array, rank, dims, strides, array.data)


@native
def make_view_at(g: ptr, source: ptr, array: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr) -> ptr:
    """Return a tensor over the same memory; NULL with an exception set.

    Python twin: eager/tensor/tensor.py:wrap_view
    """
    capi.incref(array)
    storage = base.shared_storage(g, source, array)
    if unlikely(storage == NULL):
        capi.decref(array)
        return NULL
    made = view_array(array, rank, dims, strides, data)
    capi.decref(array)
    tensor: base.TensorObject = NULL
    if likely(made != NULL):
        tensor = base.make_tensor(g, made)
    if unlikely(tensor == NULL):
        capi.decref(storage)
        return NULL
    tensor.storage = storage
    capi.decref(capi.Py_None)
    return tensor


@native
def view_array(array: capi.Ndarray, rank: i64, dims: ptr, strides: ptr, data: ptr) -> ptr:
    """Return an array over the same memory that keeps its source alive."""
    descr, may_write = array.descr, array.flags & capi.WRITEABLE
    if VIEW == BROADCAST:
        may_write = 0
    capi.incref(descr)
    made = capi.PyArray_NewFromDescr(
        capi.PyArray_Type, descr, i32(rank), dims, strides, data, may_write, NULL
    )
    if unlikely(made == NULL):
        return NULL
    capi.incref(array)
    if unlikely(capi.PyArray_SetBaseObject(made, array) < 0):
        capi.decref(made)
        return NULL
    return made
