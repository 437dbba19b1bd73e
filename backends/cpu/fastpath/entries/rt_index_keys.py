"""Native entries: keys of `x[key]` with NumPy's arrays and scalars, with lists, or with several index tensors."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, native, noinline, ptr, stack, store, unlikely
from ..runtime import capi, rt_entry, rt_lists, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_gathers

MOST_ITEMS = 8


@native
def convert_item(g: base.Globals, x: ptr) -> ptr:
    """Return a tensor for an array or a list of integers or bools, an int for a NumPy integer; NULL for others."""
    kind = capi.type_of(x)
    if kind == capi.PyArray_Type:
        code = rt_operands.array_code(g, x)
        return rt_operands.tensor_of_array(g, x) if code >= base.BOOL and code <= base.UINT64 else ptr(0)
    if kind == capi.PyList_Type:
        return rt_lists.tensor_of_list(g, x, False, g.default_float, base.FOREIGN)
    if kind in (g.tensor, capi.PyLong_Type, capi.PySlice_Type) or x in (capi.Py_None, capi.Py_Ellipsis):
        return NULL
    code = rt_operands.scalar_type_code(g, x)
    if code < base.INT8 or code > base.UINT64:
        return NULL
    value = rt_gathers.integer_at(x + rt_operands.SCALAR_VALUE, code)
    return ptr(0) if code == base.UINT64 and value < 0 else capi.PyLong_FromLongLong(value)


@noinline
def convert_key(g: base.Globals, key: capi.PyVarObject) -> ptr:
    """Return a key of tensors, ints and slices for one that `convert_item` knows; NULL without an exception if none."""
    if capi.type_of(key) != capi.PyTuple_Type:
        result = convert_item(g, key)
        capi.PyErr_Clear()
        return result
    if key.size > MOST_ITEMS:
        return NULL
    values, is_any = stack(MOST_ITEMS * 8), False
    for k in range(key.size):
        made = convert_item(g, capi.item(key, k))
        is_any = is_any or made != NULL
        store(ptr, values, k * 8, capi.new_ref(capi.item(key, k)) if made == NULL else made)
    if not is_any:
        capi.release_all(values, key.size)
        return NULL
    result = capi.make_tuple(capi.PyTuple_Type, values, key.size)
    capi.PyErr_Clear()
    return result


@native
def has_index_tensors(g: base.Globals, key: capi.PyVarObject, flags: i64) -> bool:
    """Return whether a tuple has tensors of integers or bools side by side, and else slices, None and ellipses.

    Around ints and separate tensors, and for several after a slice, the result has another order in memory.
    """
    first, count = i64(-1), i64(0)
    for k in range(key.size):
        item = capi.item(key, k)
        if capi.type_of(item) == g.tensor:
            array: capi.Ndarray = rt_operands.plain_array(g, item, flags)
            if array == NULL or array.ndim == 0 or rt_operands.array_code(g, array) > base.UINT64:
                return False
            first = k if first < 0 else first
            count += 1
            if first + count != k + 1:
                return False
        elif capi.type_of(item) != capi.PySlice_Type and item not in (capi.Py_None, capi.Py_Ellipsis):
            return False
    return count == 1 or (count > 0 and first == 0)


@noinline
def select_by_numpy(entry: base.OperatorEntry, source: ptr, key: capi.PyVarObject, flags: i64) -> ptr:
    """Return a contiguous copy of the elements at a key with several items, some of them tensors; or an `Outcome`."""
    g: base.Globals = entry.globals_
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    if (
        array == NULL
        or capi.type_of(key) != capi.PyTuple_Type
        or key.size > MOST_ITEMS
        or not has_index_tensors(g, key, flags)
    ):
        return Outcome.FALL_BACK
    given = capi.PyTuple_New(key.size)
    if unlikely(given == NULL):
        capi.PyErr_Clear()
        return Outcome.FALL_BACK
    for k in range(key.size):
        item = capi.item(key, k)
        chosen = base.TensorObject(item).array if capi.type_of(item) == g.tensor else item
        capi.set_item(given, k, capi.new_ref(chosen))
    capi.incref(array)
    made: capi.Ndarray = capi.PyObject_GetItem(array, given)
    capi.decref(array)
    capi.decref(given)
    if made != NULL and capi.type_of(made) == capi.PyArray_Type and (made.flags & capi.C_CONTIGUOUS) == 0:
        dense = capi.PyArray_NewCopy(made, 0)
        capi.decref(made)
        made = dense
    if unlikely(made == NULL):
        capi.PyErr_Clear()  # Python raises tandem's exception
        return Outcome.FALL_BACK
    return rt_entry.finish(entry, made)
