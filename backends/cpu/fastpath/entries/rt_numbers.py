"""Native runtime: weak scalars, the results of operators on Python numbers alone."""

from __future__ import annotations

from ..compiler.dsl import NULL, extern, f64, i32, i64, load, native, noinline, ptr, u8, unlikely
from ..glue.layout import WRITEABLE, Ndarray
from .rt_base import (
    Globals,
    Py_False,
    Py_True,
    PyLong_FromLongLong,
    PyType_GenericAlloc,
    TensorObject,
    decref,
    incref,
    make_tensor,
)
from .rt_memory import new_array
from .rt_operands import (
    BOOL,
    COMPLEX64,
    FLOAT32,
    INT64,
    WEAK_COMPLEX,
    WEAK_FLOAT,
    WEAK_INT,
    NumberObject,
    write_scalar,
)
from .rt_storage import StorageObject

PyFloat_FromDouble = extern("PyFloat_FromDouble", "ptr(f64)")
PyComplex_FromDoubles = extern("PyComplex_FromDoubles", "ptr(f64, f64)")


@native
def make_number(value: ptr, code: i64) -> ptr:
    """Return the Python number of a code, read from memory in full precision; NULL with the exception set."""
    if code == WEAK_FLOAT:
        return PyFloat_FromDouble(load(f64, value, 0))
    if code == WEAK_INT:
        return PyLong_FromLongLong(load(i64, value, 0))
    if code == WEAK_COMPLEX:
        return PyComplex_FromDoubles(load(f64, value, 0), load(f64, value, 8))
    truth: ptr = Py_False
    if load(u8, value, 0) != 0:
        truth = Py_True
    incref(truth)
    return truth


@native
def shown_code(code: i64) -> i64:
    """Return the code of the dtype that a weak scalar shows."""
    if code == WEAK_FLOAT:
        return FLOAT32
    if code == WEAK_INT:
        return INT64
    return COMPLEX64 if code == WEAK_COMPLEX else BOOL


@native
def read_only_array(g: ptr, number: ptr, code: i64, descr: ptr) -> ptr:
    """Return a new read-only 0-d array of a number; NULL with the exception set."""
    array: Ndarray = new_array(g, descr, 0, NULL, 16)
    if unlikely(array == NULL):
        return NULL
    write_scalar(number, code, shown_code(code), array.data)
    array.flags = array.flags & i32(-1 - WRITEABLE)
    return array


@native
def number_storage(g: Globals, number: ptr, array: ptr) -> ptr:
    """Return a new `Number` that holds its own references; NULL with the exception set."""
    storage = PyType_GenericAlloc(g.number, 0)
    if unlikely(storage == NULL):
        return NULL
    zero = g.zero
    incref(array)
    incref(zero)
    incref(zero)
    incref(number)
    StorageObject(storage).owner = array
    StorageObject(storage).version = zero
    StorageObject(storage).hold_count = zero
    NumberObject(storage).value = number
    return storage


@noinline
def make_weak(g: Globals, value: ptr, code: i64, descr: ptr) -> ptr:
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
    decref(number)
    if unlikely(storage == NULL):
        if array != NULL:
            decref(array)
        return NULL
    tensor: TensorObject = make_tensor(g, array)
    if unlikely(tensor == NULL):
        decref(storage)
        return NULL
    keys, former = g.weak_keys, tensor.keys
    none = tensor.storage
    incref(keys)
    tensor.keys = keys
    tensor.storage = storage
    decref(former)
    decref(none)
    return tensor
