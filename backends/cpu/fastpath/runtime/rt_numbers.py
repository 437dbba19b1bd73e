"""Native runtime: weak scalars, the results of operators on Python numbers alone."""

from __future__ import annotations

from ..compiler.dsl import NULL, f64, i32, i64, load, native, noinline, ptr, u8, unlikely
from . import capi, rt_memory, rt_operands
from . import rt_base as base


@native
def make_number(value: ptr, code: i64) -> ptr:
    """Return the Python number of a code, read from memory in full precision; NULL with the exception set."""
    if code == base.WEAK_FLOAT:
        return capi.PyFloat_FromDouble(load(f64, value, 0))
    if code == base.WEAK_INT:
        return capi.PyLong_FromLongLong(load(i64, value, 0))
    if code == base.WEAK_COMPLEX:
        return capi.PyComplex_FromDoubles(load(f64, value, 0), load(f64, value, 8))
    truth: ptr = capi.Py_False
    if load(u8, value, 0) != 0:
        truth = capi.Py_True
    capi.incref(truth)
    return truth


@native
def shown_code(code: i64) -> i64:
    """Return the code of the dtype that a weak scalar shows."""
    if code == base.WEAK_FLOAT:
        return base.FLOAT32
    if code == base.WEAK_INT:
        return base.INT64
    return base.COMPLEX64 if code == base.WEAK_COMPLEX else base.BOOL


@native
def read_only_array(g: ptr, number: ptr, code: i64, descr: ptr) -> ptr:
    """Return a new read-only 0-d array of a number; NULL with the exception set."""
    array: capi.Ndarray = rt_memory.new_array(g, descr, 0, NULL, 16)
    if unlikely(array == NULL):
        return NULL
    rt_operands.write_scalar(number, code, shown_code(code), array.data)
    array.flags = array.flags & i32(-1 - capi.WRITEABLE)
    return array


@native
def number_storage(g: base.Globals, number: ptr, array: ptr) -> ptr:
    """Return a new `Number` that holds its own references; NULL with the exception set."""
    storage: base.StorageObject = capi.PyType_GenericAlloc(g.number, 0)
    if unlikely(storage == NULL):
        return NULL
    storage.owner = capi.new_ref(array)
    storage.version = capi.new_ref(g.zero)
    storage.hold_count = capi.new_ref(g.zero)
    rt_operands.NumberObject(storage).value = capi.new_ref(number)
    return storage


@noinline
def make_weak(g: base.Globals, value: ptr, code: i64, descr: ptr) -> ptr:
    """Return a weak scalar of a number in memory.

    Args:
        value: address of the number.
        code: the code of its type.
        descr: descriptor of the dtype that it shows.

    Python twin: eager/tensor/weak_scalars.py:weak_scalar
    """
    number = make_number(value, code)
    if unlikely(number == NULL):
        return NULL
    array = read_only_array(g, number, code, descr)
    storage: ptr = NULL
    if array != NULL:
        storage = number_storage(g, number, array)
    capi.decref(number)
    if unlikely(storage == NULL):
        if array != NULL:
            capi.decref(array)
        return NULL
    tensor: base.TensorObject = base.make_tensor(g, array)
    if unlikely(tensor == NULL):
        capi.decref(storage)
        return NULL
    keys, former = g.weak_keys, tensor.keys
    none = tensor.storage
    tensor.keys = capi.new_ref(keys)
    tensor.storage = storage
    capi.decref(former)
    capi.decref(none)
    return tensor
