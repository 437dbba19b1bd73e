"""Native runtime: Python numbers of elements, and weak scalars, the results of operators on Python numbers alone."""

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
    stack_of,
    store,
    u8,
    u16,
    u32,
    u64,
    unlikely,
)
from . import capi, rt_halves, rt_layouts, rt_memory, rt_operands
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
    return capi.new_ref(capi.Py_True if load(u8, value, 0) != 0 else capi.Py_False)


@native
def read_whole(x: ptr, code: i64) -> i64:
    """Return the integer or truth value of an element; a uint64 wraps around."""
    if code == base.INT64 or code == base.UINT64:
        return load(i64, x, 0)
    if code == base.INT32:
        return i64(load(i32, x, 0))
    if code == base.UINT32:
        return i64(load(u32, x, 0))
    if code == base.INT16:
        return i64(load(i16, x, 0))
    if code == base.UINT16:
        return i64(load(u16, x, 0))
    if code == base.BOOL:
        return i64(load(u8, x, 0) != 0)
    return i64(load(i8, x, 0)) if code == base.INT8 else i64(load(u8, x, 0))


@native
def read_real(x: ptr, code: i64) -> f64:
    """Return the value of an element of a real dtype."""
    if code == base.FLOAT32:
        return f64(load(f32, x, 0))
    if code == base.FLOAT64:
        return load(f64, x, 0)
    if code == base.FLOAT16:
        return f64(f32(load(f16, x, 0)))
    if code == base.BFLOAT16:
        return f64(rt_halves.widen_bfloat16(i32(load(u16, x, 0))))
    return f64(load(u64, x, 0)) if code == base.UINT64 else f64(read_whole(x, code))


@native
def only_element(g: ptr, array: capi.Ndarray, where: ptr) -> i64:
    """Return the code of the dtype of an array of one element, and its address in `where`; FOREIGN otherwise."""
    if unlikely(array == NULL) or (array.flags & capi.ALIGNED) == 0:
        return base.FOREIGN
    if unlikely(rt_layouts.count_elements(array.dims, i64(array.ndim)) != 1):
        return base.FOREIGN
    store(ptr, where, 0, array.data)
    return rt_operands.array_code(g, array)


@native
def read_int(x: ptr, code: i64) -> ptr:
    """Return an element of a real dtype as an int; NULL with an exception set."""
    if code >= base.FLOAT16:
        return capi.PyLong_FromDouble(read_real(x, code))
    if code == base.BOOL:
        return capi.PyLong_FromLongLong(read_whole(x, code))
    return read_element(x, code)


@native
def read_element(x: ptr, code: i64) -> ptr:
    """Return an element as a Python number; NULL with an exception set."""
    if code == base.COMPLEX64:
        return capi.PyComplex_FromDoubles(f64(load(f32, x, 0)), f64(load(f32, x, 4)))
    if code == base.COMPLEX128:
        return capi.PyComplex_FromDoubles(load(f64, x, 0), load(f64, x, 8))
    if code >= base.FLOAT16:
        return capi.PyFloat_FromDouble(read_real(x, code))
    if code == base.UINT64:
        return capi.PyLong_FromUnsignedLongLong(load(i64, x, 0))
    if code != base.BOOL:
        return capi.PyLong_FromLongLong(read_whole(x, code))
    return capi.new_ref(capi.Py_True if load(u8, x, 0) != 0 else capi.Py_False)


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
    array: capi.Ndarray = rt_memory.new_array(g, descr, 0, NULL, 16)
    storage: rt_operands.NumberObject = NULL
    if likely(array != NULL):
        storage = capi.PyType_GenericAlloc(g.number, 0)
    if unlikely(storage == NULL):
        capi.release_all(stack_of(number, array), 2)
        return NULL
    rt_operands.write_scalar(number, code, rt_operands.shown_code(code), array.data)
    array.flags = array.flags & i32(~capi.WRITEABLE)
    storage.value = number
    storage.owner = capi.new_ref(array)
    storage.version = capi.new_ref(g.zero)
    storage.hold_count = capi.new_ref(g.zero)
    tensor: base.TensorObject = base.make_tensor(g, array)
    if unlikely(tensor == NULL):
        capi.decref(storage)
        return NULL
    former = stack_of(tensor.keys, tensor.storage)
    tensor.keys = capi.new_ref(g.weak_keys)
    tensor.storage = storage
    capi.release_all(former, 2)
    return tensor
