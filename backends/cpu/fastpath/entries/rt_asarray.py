"""The native entries of `asarray`, of numbers, nested lists, and NumPy's arrays and scalars, and of `x.to(dtype)`."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, ptr, stack_of, template, unlikely
from ..runtime import capi, rt_arguments, rt_entry, rt_lists, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

DOUBLE: i64 = template(0)  # 1: floats are float64, as in NumPy


@rt_entry.entry(records=False)
def asarray(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64) -> ptr:
    """The entry of `asarray(x)`, `asarray(x, dtype)` and `asarray(x, dtype=dtype)`.

    Python twin: eager/tensor/construct.py:asarray
    Python twin, with float64: spellings/numpy/creation.py:asarray
    """
    g, to, has_dtype = entry.globals_, i64(base.FOREIGN), count == 2
    if kwnames != NULL:
        has_dtype = True
        if (
            count != 1
            or kwnames.size != 1
            or not rt_arguments.string_matches(capi.item(kwnames, 0), capi.item(entry.names, 0))
        ):
            return Outcome.FALL_BACK
    elif unlikely(count != 1 and count != 2):
        return Outcome.FALL_BACK
    if has_dtype and load(ptr, args, 8) != capi.Py_None:
        dtype = load(ptr, args, 8)
        to = rt_arguments.dtype_code(g, dtype)
        if DOUBLE and (dtype == capi.PyFloat_Type or dtype == capi.PyComplex_Type):
            to = i64(base.FLOAT64) if dtype == capi.PyFloat_Type else i64(base.COMPLEX128)
        if to < 0:
            return Outcome.FALL_BACK
    result = convert_object(g, load(ptr, args, 0), to)
    if unlikely(result == NULL):
        capi.PyErr_Clear()  # Python makes the tensor, or raises the exception
        return Outcome.FALL_BACK
    entry.calls += 1
    return result


@native
def convert_object(g: base.Globals, x: ptr, to: i64) -> ptr:
    """Return the tensor of an object in the dtype of a code, or in its own; a new reference.

    NULL, perhaps with an exception set, if Python must make it.
    """
    real = base.FLOAT64 if DOUBLE else g.default_float
    if rt_lists.is_list(x):
        return rt_lists.tensor_of_list(g, x, True, real, to)
    weak = rt_operands.scalar_code(x)
    if weak >= 0:
        code = rt_lists.default_code(weak, real) if to == base.FOREIGN else to
        if weak > base.WEAK_INT and code < base.FLOAT16:
            return NULL
        return rt_operands.tensor_of_scalar(g, x, weak, code)
    if to == base.FOREIGN:
        return capi.new_ref(x) if capi.type_of(x) == g.tensor else rt_operands.to_tensor(g, x)
    result: base.TensorObject = (
        capi.new_ref(x) if capi.type_of(x) == g.tensor else rt_operands.to_tensor(g, x)
    )
    if result == NULL:
        return NULL
    array = rt_operands.plain_array(g, result, base.RECORD)
    if array != NULL and rt_operands.array_code(g, array) == to:
        return result
    capi.decref(result)
    return NULL


@rt_entry.entry(records=False)
def convert(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64) -> ptr:
    """The entry of `x.to(dtype)` and `x.to(dtype=dtype)`, which returns the tensor itself if it has that dtype.

    Python twin: eager/tensor/methods.py:to
    """
    g, x = entry.globals_, load(ptr, args, 0)
    if kwnames != NULL and (
        count != 1
        or kwnames.size != 1
        or not rt_arguments.string_matches(capi.item(kwnames, 0), capi.item(entry.names, 0))
    ):
        return Outcome.FALL_BACK
    if unlikely(kwnames == NULL and count != 2):
        return Outcome.FALL_BACK
    dtype, array = load(ptr, args, 8), rt_operands.plain_array(g, x, base.RECORD)
    to = rt_arguments.dtype_code(g, dtype) if array != NULL else i64(base.FOREIGN)
    if unlikely(to < 0):
        return Outcome.FALL_BACK
    entry.calls += 1
    if rt_operands.array_code(g, array) == to:
        return capi.new_ref(x)
    return capi.PyObject_Vectorcall(
        capi.item(entry.targets, 0), stack_of(x, load(ptr, g.types, to * 8)), 2, NULL
    )
