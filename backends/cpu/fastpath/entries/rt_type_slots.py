"""Slots of the type Tensor: its deallocator, the buffer of its memory, its length, its value as a number, its iterator.

CPython's deallocator of classes looks for what a class may have, such as a dictionary; this one knows the slots of
Tensor. Most tensors of a loop live for one step: their memory goes from one to the next.

Source: the free lists of CPython's tuples and floats.
"""

from __future__ import annotations

from .....registry import native_type
from ..compiler.dsl import (
    NULL,
    call_i32,
    call_ptr,
    extern_object,
    i32,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack,
    stack_of,
    store,
    unlikely,
)
from ..runtime import capi, rt_entry, rt_numbers, rt_operands, rt_spare_arrays, rt_spare_numbers
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

PROCESS = extern_object("tandem_process")  # the process struct: a slot is called with objects only
SQ_ITEM = 24  # offset of the slot `sq_item` in the table of sequences
FINALIZE = 392  # offset of the slot `tp_finalize` in a type


# Memory of tensors ----------------------------------------------------------------------------------------------------
@native
def deallocate(x: base.TensorObject) -> None:
    """The slot `tp_dealloc`. Instances of subclasses arrive here from their own deallocator."""
    g: base.Globals = PROCESS
    kind = capi.type_of(x)
    is_plain = kind == g.tensor
    has_finalizer = is_plain and load(ptr, kind, FINALIZE) != NULL
    if unlikely(has_finalizer) and capi.PyObject_CallFinalizerFromDealloc(x) < 0:
        return  # something refers to the tensor again
    capi.PyObject_GC_UnTrack(x)
    if unlikely(load(ptr, x, g.weak_references) != NULL):
        capi.PyObject_ClearWeakRefs(x)
    array: capi.Ndarray = x.array
    held = stack_of(x.storage, x.meta, x.keys)
    x.array, x.storage, x.meta, x.keys = NULL, NULL, NULL, NULL
    capi.release_all(held, 3)
    if is_plain and array != NULL and array.ndim == 0 and rt_spare_numbers.keep_number(g, x, array):
        return
    if likely(array != NULL) and not rt_spare_arrays.keep_array(g, array):
        capi.decref(array)
    free: base.FreeList = g.free_list
    if likely(is_plain and free.count < free.limit):
        store(i64, x, -capi.GC_HEAD, 0)
        store(i64, x, 8 - capi.GC_HEAD, 0)
        x.array = free.first
        free.first = x
        free.count += 1
    else:
        delete(x, kind)


@noinline
def delete(x: ptr, kind: ptr) -> None:
    """Free the memory of an object, which refers to its class."""
    capi.PyObject_GC_Del(x)
    capi.decref(kind)


# Buffer and length ----------------------------------------------------------------------------------------------------
@native
def array_of_operand(g: base.Globals, x: ptr, flags: i64) -> ptr:
    """Return the array of a plain tensor, borrowed; NULL for other tensors, and where this thread calls Python."""
    if unlikely(base.thread_flags(g) == base.ELSEWHERE):
        return NULL
    return rt_operands.plain_array(g, x, flags)


@native
def get_buffer(x: ptr, view: ptr, flags: i32) -> i32:
    """The buffer slot of Tensor, which `memoryview(x)` and `np.asarray(x)` call: the buffer of the array."""
    g: base.Globals = PROCESS
    array = array_of_operand(g, x, base.PLAIN)
    if likely(array != NULL):
        capi.incref(array)
        failed = capi.PyObject_GetBuffer(array, view, flags)
        capi.decref(array)
        if likely(failed == 0):
            return i32(0)
        capi.PyErr_Clear()
    return call_i32(g.get_buffer, x, view, flags)


@native
def get_length(x: ptr) -> i64:
    """The slot of Tensor that `len(x)` calls."""
    g: base.Globals = PROCESS
    array: capi.Ndarray = array_of_operand(g, x, base.RECORD)
    if likely(array != NULL) and array.ndim > 0:
        return load(i64, array.dims, 0)
    return i64(call_ptr(g.get_length, x))


@native
def get_iterator(x: ptr) -> ptr:
    """The slot of Tensor that `iter(x)` calls: an iterator that selects a row at each step."""
    g: base.Globals = PROCESS
    array: capi.Ndarray = array_of_operand(g, x, base.RECORD)
    if likely(array != NULL) and array.ndim > 0 and selects_rows(g):
        return capi.PySeqIter_New(x)
    return call_ptr(g.get_iterator, x)


@native
def selects_rows(g: base.Globals) -> bool:
    """Return whether the steps of an iterator call this module's slot, and no method in the place of Tensor's own."""
    slots = load(ptr, g.tensor, native_type.AS_SEQUENCE)
    return bool(g.own_item != NULL and load(ptr, slots, SQ_ITEM) == g.own_item)


@rt_entry.entry(records=False, count=1)
def iterate(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.__iter__()`.

    Python twin: eager/tensor/dunders.py:iterate
    """
    array: capi.Ndarray = rt_operands.plain_array(entry.globals_, load(ptr, args, 0), base.RECORD)
    if unlikely(array == NULL or not selects_rows(entry.globals_)) or array.ndim == 0:
        return Outcome.FALL_BACK
    return capi.PySeqIter_New(load(ptr, args, 0))


# Numbers --------------------------------------------------------------------------------------------------------------
@native
def code_of_number(g: ptr, x: ptr, where: ptr) -> i64:
    """Return the code of the dtype of a tensor of one real number, and its address in `where`; FOREIGN otherwise."""
    code = rt_numbers.only_element(g, array_of_operand(g, x, base.RECORD), where)
    return code if likely(code < base.COMPLEX64) else base.FOREIGN


@native
def get_truth(x: ptr) -> i32:
    """The slot of Tensor that `bool(x)` and `if x` call."""
    g: base.Globals = PROCESS
    where = stack(8)
    code = code_of_number(g, x, where)
    if unlikely(code < 0):
        return call_i32(g.get_truth, x)
    return i32(rt_numbers.read_real(load(ptr, where, 0), code) != 0.0)


@native
def get_int(x: ptr) -> ptr:
    """The slot of Tensor that `int(x)` calls."""
    g: base.Globals = PROCESS
    where = stack(8)
    code = code_of_number(g, x, where)
    return rt_numbers.read_int(load(ptr, where, 0), code) if likely(code >= 0) else call_ptr(g.get_int, x)


@native
def get_float(x: ptr) -> ptr:
    """The slot of Tensor that `float(x)` calls."""
    g: base.Globals = PROCESS
    where = stack(8)
    code = code_of_number(g, x, where)
    if unlikely(code < 0):
        return call_ptr(g.get_float, x)
    return capi.PyFloat_FromDouble(rt_numbers.read_real(load(ptr, where, 0), code))
