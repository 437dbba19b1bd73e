"""Native runtime: weak scalars, the results of operators on Python numbers alone."""

from __future__ import annotations

from ..compiler.dsl import NULL, f64, i32, i64, likely, load, native, noinline, ptr, stack_of, u8, unlikely
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
    return capi.new_ref(capi.Py_True if load(u8, value, 0) != 0 else capi.Py_False)


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
