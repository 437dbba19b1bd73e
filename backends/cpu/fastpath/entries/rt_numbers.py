"""Native runtime: weak scalars, the results of operators on Python numbers alone."""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    extern,
    i32,
    i64,
    load_f64,
    load_i32,
    load_i64,
    load_ptr,
    load_u8,
    native,
    noinline,
    ptr,
    store_i32,
    store_ptr,
    unlikely,
)
from ..glue.layout import ND_DATA, ND_FLAGS, WRITEABLE
from .rt_base import (
    G_NUMBER,
    G_WEAK_KEYS,
    G_ZERO,
    T_KEYS,
    T_STORAGE,
    Py_False,
    Py_True,
    PyLong_FromLongLong,
    PyType_GenericAlloc,
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
    N_VALUE,
    WEAK_COMPLEX,
    WEAK_FLOAT,
    WEAK_INT,
    write_scalar,
)
from .rt_storage import S_HOLD_COUNT, S_OWNER, S_VERSION

PyFloat_FromDouble = extern("PyFloat_FromDouble", "ptr(f64)")
PyComplex_FromDoubles = extern("PyComplex_FromDoubles", "ptr(f64, f64)")


@native
def make_number(value: ptr, code: i64) -> ptr:
    """Return the Python number of a code, read from memory in full precision; NULL with the exception set."""
    if code == WEAK_FLOAT:
        return PyFloat_FromDouble(load_f64(value, 0))
    if code == WEAK_INT:
        return PyLong_FromLongLong(load_i64(value, 0))
    if code == WEAK_COMPLEX:
        return PyComplex_FromDoubles(load_f64(value, 0), load_f64(value, 8))
    truth: ptr = Py_False
    if load_u8(value, 0) != 0:
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
    array = new_array(g, descr, 0, NULL, 16)
    if unlikely(array == NULL):
        return NULL
    write_scalar(number, code, shown_code(code), load_ptr(array, ND_DATA))
    store_i32(array, ND_FLAGS, load_i32(array, ND_FLAGS) & i32(-1 - WRITEABLE))
    return array


@native
def number_storage(g: ptr, number: ptr, array: ptr) -> ptr:
    """Return a new `Number` that holds its own references; NULL with the exception set."""
    storage = PyType_GenericAlloc(load_ptr(g, G_NUMBER), 0)
    if unlikely(storage == NULL):
        return NULL
    zero = load_ptr(g, G_ZERO)
    incref(array)
    incref(zero)
    incref(zero)
    incref(number)
    store_ptr(storage, S_OWNER, array)
    store_ptr(storage, S_VERSION, zero)
    store_ptr(storage, S_HOLD_COUNT, zero)
    store_ptr(storage, N_VALUE, number)
    return storage


@noinline
def make_weak(g: ptr, value: ptr, code: i64, descr: ptr) -> ptr:
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
    tensor = make_tensor(g, array)
    if unlikely(tensor == NULL):
        decref(storage)
        return NULL
    keys, former = load_ptr(g, G_WEAK_KEYS), load_ptr(tensor, T_KEYS)
    none = load_ptr(tensor, T_STORAGE)
    incref(keys)
    store_ptr(tensor, T_KEYS, keys)
    store_ptr(tensor, T_STORAGE, storage)
    decref(former)
    decref(none)
    return tensor
