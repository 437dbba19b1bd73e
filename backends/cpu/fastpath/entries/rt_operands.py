"""Native runtime: classify operands (plain tensors, weak Python scalars), and write scalars as elements."""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack,
    store,
    u8,
    unlikely,
)
from ..glue.layout import ALIGNED, Descr, Ndarray, PyComplex, PyFloat, PyObject
from .rt_base import (
    NO_GRAD,
    RECORD,
    Globals,
    Py_None,
    Py_True,
    PyArray_Type,
    PyBool_Type,
    PyComplex_Type,
    PyErr_Clear,
    PyErr_Occurred,
    PyFloat_Type,
    PyLong_AsDouble,
    PyLong_AsLongLongAndOverflow,
    PyLong_Type,
    TensorObject,
    type_of,
)
from .rt_folds import round_bfloat16

# Codes of operand types. The order of the dtypes is that of `structs.CODES`.
BOOL, INT8, INT16, INT32, INT64 = 0, 1, 2, 3, 4
UINT8, UINT16, UINT32, UINT64 = 5, 6, 7, 8
FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = 9, 10, 11, 12, 13, 14
WEAK_BOOL, WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX = 16, 17, 18, 19
CODE_BITS = 5
FOREIGN = -1


class NumberObject(PyObject):
    """The slot of a Number."""

    slot_prefix = "N_"

    value: ptr


@native
def plain_array(g: Globals, x: TensorObject, flags: i64) -> ptr:
    """Return the array of a plain tensor (or one with history, if `flags` allow), borrowed; NULL for anything else."""
    if unlikely(type_of(x) != g.tensor):
        return NULL
    array = x.array
    if unlikely(array == NULL):
        return NULL
    if unlikely(type_of(array) != PyArray_Type):
        return NULL  # Python code may have stored any object in the slot
    if likely(x.keys == g.keys and x.meta == Py_None):
        return array
    history = x.keys == g.grad_keys
    return array if history and flags in (NO_GRAD, RECORD) else NULL


@native
def operand_code(g: Globals, x: ptr, flags: i64, where: ptr) -> i64:
    """Return the type code of an operand, its array (NULL: a scalar) in `where`; FOREIGN: Python must run the call.

    Python twin: backends/cpu/fastpath/glue/operands.py:operand_code
    """
    array: Ndarray = plain_array(g, x, flags)
    store(ptr, where, 0, array)
    if likely(array != NULL):
        if unlikely((array.flags & ALIGNED) == 0):
            return FOREIGN
        number = Descr(array.descr).type_num
        if unlikely(number < 0 or number > 255):
            return BFLOAT16 if i64(number) == g.bfloat16 else FOREIGN
        code = i64(load(u8, g.dtypes, i64(number)))
        return code if code < 16 else FOREIGN
    return scalar_code(x)


@native
def scalar_code(x: ptr) -> i64:
    kind = type_of(x)
    if kind == PyFloat_Type:
        return WEAK_FLOAT
    if kind == PyLong_Type:
        return WEAK_INT
    if kind == PyBool_Type:
        return WEAK_BOOL
    return WEAK_COMPLEX if kind == PyComplex_Type else FOREIGN


@native
def unwrap_number(g: Globals, x: TensorObject) -> ptr:
    """Return the Python number that a weak scalar holds, borrowed; anything else is returned unchanged."""
    if likely(type_of(x) != g.tensor) or x.keys != g.weak_keys:
        return x
    storage: NumberObject = x.storage
    if unlikely(storage == NULL or type_of(storage) != g.number):
        return x  # Python code may have stored any object in the slot
    value = storage.value
    return x if value == NULL else value


@native
def operand_or_number_code(g: ptr, x: ptr, flags: i64, where: ptr) -> i64:
    """Return the `operand_code` of an operand; for a weak scalar, that of its number."""
    code = operand_code(g, x, flags, where)
    return code if likely(code >= 0) else scalar_code(unwrap_number(g, x))


@noinline
def write_scalar(x: ptr, code: i64, to: i64, where: ptr) -> bool:
    """Write a Python scalar as one element of a dtype; return false if it does not fit (Python then raises)."""
    if code == WEAK_FLOAT:
        return write_real(PyFloat(x).value, to, where)
    if code == WEAK_COMPLEX:
        return write_complex(x, to, where)
    if code == WEAK_BOOL:
        truth: i64 = 1 if x == Py_True else 0
        return write_real(f64(truth), to, where) if to >= FLOAT16 else write_integer(truth, to, where)
    if to >= FLOAT16:
        value = PyLong_AsDouble(x)
        if unlikely(value == -1.0) and PyErr_Occurred() != NULL:
            PyErr_Clear()
            return False
        return write_real(value, to, where)
    overflow = stack(4)
    whole = PyLong_AsLongLongAndOverflow(x, overflow)
    return load(i32, overflow, 0) == 0 and write_integer(whole, to, where)


@native
def write_real(v: f64, to: i64, where: ptr) -> bool:
    if to == FLOAT32:
        store(f32, where, 0, f32(v))
    elif to == FLOAT64:
        store(f64, where, 0, v)
    elif to == COMPLEX64:
        store(f32, where, 0, f32(v))
        store(f32, where, 4, 0.0)
    elif to == COMPLEX128:
        store(f64, where, 0, v)
        store(f64, where, 8, 0.0)
    elif to == FLOAT16 and f64(f32(v)) == v:  # double rounding could be off by one unit in the last place
        store(f16, where, 0, f16(f32(v)))
    elif to == BFLOAT16 and f64(f32(v)) == v:
        store(i16, where, 0, i16(round_bfloat16(f32(v))))
    else:
        return False
    return True


@native
def write_complex(x: PyComplex, to: i64, where: ptr) -> bool:
    real, imaginary = x.real, x.imag
    if to == COMPLEX64:
        store(f32, where, 0, f32(real))
        store(f32, where, 4, f32(imaginary))
    else:
        store(f64, where, 0, real)
        store(f64, where, 8, imaginary)
    return to in (COMPLEX64, COMPLEX128)


@native
def write_integer(v: i64, to: i64, where: ptr) -> bool:
    if to == INT64 or (to == UINT64 and v >= 0):
        store(i64, where, 0, v)
        return True
    if to in (INT32, UINT32):
        store(i32, where, 0, i32(v))
        return v == i64(i32(v)) if to == INT32 else v == v & 0xFFFFFFFF
    if to in (INT16, UINT16):
        store(i16, where, 0, i16(v))
        return v == i64(i16(v)) if to == INT16 else v == v & 0xFFFF
    store(i8, where, 0, i8(v))
    if to == INT8:
        return v == i64(i8(v))
    return v == v & 0xFF if to == UINT8 else to == BOOL and v == v & 1
