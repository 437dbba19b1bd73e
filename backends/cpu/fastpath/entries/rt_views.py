"""Native runtime: the entries of views: `reshape(x, shape)`, `permute(x, axes)`, `broadcast_to(x, shape)`.

A view shares the storage of its source, which is created here if there is none yet.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i32, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..glue.layout import WRITEABLE, Ndarray, PyList, PyTuple
from .rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    OperatorEntry,
    Py_None,
    PyArray_NewFromDescr,
    PyArray_SetBaseObject,
    PyArray_Type,
    PyErr_Clear,
    PyErr_Occurred,
    PyList_Type,
    PyLong_AsLongLongAndOverflow,
    PyLong_Type,
    PyTuple_Type,
    TensorObject,
    allowed_flags,
    decref,
    entry_data,
    fall_back,
    has_history,
    incref,
    make_tensor,
    thread_flags,
    type_of,
)
from .rt_copies import copy_contiguous
from .rt_elementwise import MAX_RANK
from .rt_operands import plain_array
from .rt_record import record_call
from .rt_reshape import MOVED, REFUSED, VIEWED, reshape_strides
from .rt_storage import shared_storage

VIEW: i64 = 0  # which view this instance of the entry is
RESHAPE, PERMUTE, BROADCAST = 0, 1, 2


@native
def view(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of views."""
    desc: OperatorEntry = entry_data(self)
    g = desc.globals_
    flags = thread_flags(g)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 2 or flags == ELSEWHERE):
        return fall_back(desc, args, nargsf, kwnames)
    flags = allowed_flags(desc, flags)
    source = load(ptr, args, 0)
    array: Ndarray = plain_array(g, source, flags)
    wanted, dims, strides = stack(MAX_RANK * 8), stack(MAX_RANK * 8), stack(MAX_RANK * 8)
    rank = read_integers(load(ptr, args, 8), wanted)
    if unlikely(array == NULL or rank == REFUSED or array.ndim > MAX_RANK):
        return fall_back(desc, args, nargsf, kwnames)
    result = compute_view(array, wanted, rank, dims, strides)
    if unlikely(result == REFUSED):
        return fall_back(desc, args, nargsf, kwnames)
    desc.calls += 1
    made: ptr = NULL
    if unlikely(result == MOVED):
        made = copy_with_shape(g, array, rank, dims)
    else:
        made = make_view(g, source, array, rank, dims, strides)
    if unlikely(has_history(g, source, flags)):
        values = stack(24)
        store(ptr, values, 0, source)
        store(ptr, values, 8, load(ptr, args, 8))
        return record_call(desc, values, 2, made)
    return made


@noinline
def copy_with_shape(g: ptr, array: ptr, rank: i64, dims: ptr) -> ptr:
    """Return a tensor of the given sizes with a copy of the elements; NULL with an exception set."""
    made = copy_contiguous(g, array, rank, dims)
    return make_tensor(g, made) if likely(made != NULL) else made


@native
def read_integers(x: PyList, to: ptr) -> i64:
    """Read the ints of an exact tuple or list, or one int; return their number, or REFUSED."""
    alone, count = stack(8), i64(1)
    store(ptr, alone, 0, x)
    items = alone
    if likely(type_of(x) == PyTuple_Type):
        items = x + PyTuple.items
    elif type_of(x) == PyList_Type:
        items = x.items
    if type_of(x) != PyLong_Type:
        count = x.size
    if items == alone and type_of(x) != PyLong_Type:
        return REFUSED
    if count > MAX_RANK:
        return REFUSED
    overflow = stack(4)
    for k in range(count):
        item = load(ptr, items, k * 8)
        if type_of(item) != PyLong_Type:
            return REFUSED
        value = PyLong_AsLongLongAndOverflow(item, overflow)
        if unlikely(value == -1) and PyErr_Occurred() != NULL:
            PyErr_Clear()
            return REFUSED
        if load(i32, overflow, 0) != 0:
            return REFUSED
        store(i64, to, k * 8, value)
    return count


@native
def compute_view(array: ptr, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> i64:
    """Write sizes and strides of the result and return VIEWED; only sizes: MOVED; REFUSED: Python must run the call."""
    if VIEW == RESHAPE:
        return reshape_strides(array, wanted, rank, dims, strides)
    value = (
        permute_strides(array, wanted, rank, dims, strides)
        if VIEW == PERMUTE
        else broadcast_strides(array, wanted, rank, dims, strides)
    )
    return VIEWED if value else REFUSED


@native
def permute_strides(array: Ndarray, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> bool:
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
def broadcast_strides(array: Ndarray, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> bool:
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
def make_view(g: ptr, source: ptr, array: Ndarray, rank: i64, dims: ptr, strides: ptr) -> ptr:
    """Return a tensor over the same memory from its first byte on; NULL with an exception set."""
    return make_view_at(g, source, array, rank, dims, strides, array.data)


@native
def make_view_at(g: ptr, source: ptr, array: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr) -> ptr:
    """Return a tensor over the same memory; NULL with an exception set.

    Python twin: eager/tensor/tensor.py:wrap_view
    """
    incref(array)
    storage = shared_storage(g, source, array)
    if unlikely(storage == NULL):
        decref(array)
        return NULL
    made = view_array(array, rank, dims, strides, data)
    decref(array)
    tensor: TensorObject = NULL
    if likely(made != NULL):
        tensor = make_tensor(g, made)
    if unlikely(tensor == NULL):
        decref(storage)
        return NULL
    tensor.storage = storage
    decref(Py_None)
    return tensor


@native
def view_array(array: Ndarray, rank: i64, dims: ptr, strides: ptr, data: ptr) -> ptr:
    """Return an array over the same memory that keeps its source alive."""
    descr, may_write = array.descr, array.flags & WRITEABLE
    if VIEW == BROADCAST:
        may_write = 0
    incref(descr)
    made = PyArray_NewFromDescr(PyArray_Type, descr, i32(rank), dims, strides, data, may_write, NULL)
    if unlikely(made == NULL):
        return NULL
    incref(array)
    if unlikely(PyArray_SetBaseObject(made, array) < 0):
        decref(made)
        return NULL
    return made
