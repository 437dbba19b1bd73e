"""Native entries of NumPy's protocols: NumPy's functions and ufuncs of tensors call tandem's functions at once.

`ProtocolEntry.functions` maps those of NumPy that Python has already found to tandem's.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..runtime import capi, rt_arguments, rt_entry, rt_layouts, rt_operands, rt_outputs
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome


class ProtocolEntry(base.OperatorEntry):
    """The entry of `Tensor.__array_ufunc__` or `Tensor.__array_function__`."""

    functions: ptr  # dict: a function of NumPy -> tandem's
    passed: ptr  # the keywords that are passed on, a tuple
    call: ptr  # "__call__"


@rt_entry.entry(records=False)
def array_ufunc(entry: ProtocolEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64) -> ptr:
    """The entry of `x.__array_ufunc__(ufunc, "__call__", *inputs, out=...)`.

    Python twin: eager/tensor/interop/numpy_protocols.py:apply_ufunc
    """
    g: base.Globals = entry.globals_
    named = kwnames.size if kwnames != NULL else i64(0)
    if unlikely(count < 4 or count + named > rt_operands.MOST_ARGUMENTS or named > 1):
        return Outcome.FALL_BACK
    if unlikely(not rt_arguments.string_matches(load(ptr, args, 16), entry.call)):
        return Outcome.FALL_BACK
    function = find_function(entry, load(ptr, args, 8))
    if unlikely(function == NULL or not are_operands(g, args + 24, count - 3)):
        return Outcome.FALL_BACK
    entry.calls += 1
    if likely(named == 0):
        return call_referenced(function, args + 24, count - 3, NULL)
    return call_with_out(entry, function, args, count, kwnames, flags)


@rt_entry.entry(records=False, count=5)
def array_function(entry: ProtocolEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `x.__array_function__(function, types, args, kwargs)`; Python runs the calls that tandem refuses.

    Python twin: eager/tensor/interop/numpy_protocols.py:apply_function
    """
    g: base.Globals = entry.globals_
    given, options = load(ptr, args, 24), load(ptr, args, 32)
    function = find_function(entry, load(ptr, args, 8))
    if unlikely(
        function == NULL
        or not are_plain_types(g, load(ptr, args, 16))
        or capi.type_of(given) != capi.PyTuple_Type
        or capi.type_of(options) != capi.PyDict_Type
        or not are_passed(entry, options)
    ):
        return Outcome.FALL_BACK
    capi.incref(function)
    converted = convert_arrays(g, given)
    result = capi.PyObject_Call(function, given if converted == NULL else converted, options)
    capi.release(converted)
    capi.decref(function)
    if unlikely(result == NULL):
        return refuse()
    entry.calls += 1
    return result


# Arguments of functions -----------------------------------------------------------------------------------------------
@native
def are_plain_types(g: base.Globals, types: capi.PyVarObject) -> bool:
    """Return whether the arguments with NumPy's protocol are tensors and arrays."""
    if unlikely(capi.type_of(types) != capi.PyTuple_Type):
        return False
    for k in range(types.size):
        if unlikely(capi.item(types, k) not in (g.tensor, capi.PyArray_Type)):
            return False
    return True


@native
def convert_arrays(g: base.Globals, given: capi.PyVarObject) -> ptr:
    """Return the arguments with tensors in place of arrays, a new tuple; NULL if no argument is an array."""
    for k in range(given.size):
        x = capi.item(given, k)
        if unlikely(capi.type_of(x) == capi.PyArray_Type or has_array(x)):
            return convert_all(g, given)
    return NULL


@native
def has_array(x: capi.PyVarObject) -> bool:
    """Return whether an argument is a list or a tuple with an array."""
    items = capi.sequence_items(x)
    for k in range(x.size if items != NULL else 0):
        if unlikely(capi.type_of(load(ptr, items, k * 8)) == capi.PyArray_Type):
            return True
    return False


@noinline
def convert_all(g: base.Globals, given: capi.PyVarObject) -> ptr:
    """Return a new tuple with tensors in place of arrays, also of those in lists and tuples; NULL: Python does it."""
    result = capi.PyTuple_New(given.size)
    for k in range(given.size if likely(result != NULL) else 0):
        x = capi.item(given, k)
        value = convert_items(g, x) if has_array(x) else tensor_or_same(g, x)
        if unlikely(value == NULL):
            capi.decref(result)
            result = NULL
            break
        capi.set_item(result, k, value)
    if unlikely(result == NULL):
        capi.PyErr_Clear()
    return result


@native
def tensor_or_same(g: base.Globals, x: ptr) -> ptr:
    """Return the tensor of an array, or the value itself, a new reference; NULL if Python must make the tensor."""
    return rt_operands.tensor_of_array(g, x) if capi.type_of(x) == capi.PyArray_Type else capi.new_ref(x)


@native
def convert_items(g: base.Globals, x: capi.PyVarObject) -> ptr:
    """Return a tuple of the items of a list or tuple, with tensors in place of arrays; NULL as `tensor_or_same`."""
    size = x.size
    result = capi.PyTuple_New(size)
    for k in range(size if likely(result != NULL) else 0):
        items = capi.sequence_items(x)  # Python code that runs meanwhile may change a list
        value = tensor_or_same(g, load(ptr, items, k * 8)) if likely(x.size == size) else ptr(0)
        if unlikely(value == NULL):
            capi.decref(result)
            return NULL
        capi.set_item(result, k, value)
    return result


# Functions and operands -----------------------------------------------------------------------------------------------
@native
def find_function(entry: ProtocolEntry, function: ptr) -> ptr:
    """Return tandem's function for one of NumPy, borrowed; NULL if Python has to find it."""
    known = capi.PyDict_GetItemWithError(entry.functions, function)
    if unlikely(known == NULL):
        capi.PyErr_Clear()
    return known


@native
def call_referenced(function: ptr, args: ptr, count: i64, kwnames: ptr) -> ptr:
    """Call a function that may be forgotten meanwhile."""
    capi.incref(function)
    result = capi.PyObject_Vectorcall(function, args, count, kwnames)
    capi.decref(function)
    return result


@native
def refuse() -> ptr:
    """Return FALL_BACK in place of an exception, which Python raises again; NULL for an interrupt."""
    if capi.PyErr_ExceptionMatches(load(ptr, capi.PyExc_Exception, 0)) == 0:
        return NULL
    capi.PyErr_Clear()
    return Outcome.FALL_BACK


@native
def are_operands(g: base.Globals, values: ptr, count: i64) -> bool:
    """Return whether all values are tensors, numbers, or arrays and scalars of NumPy, whose dtypes tandem has."""
    for k in range(count):
        x = load(ptr, values, k * 8)
        kind = capi.type_of(x)
        if likely(kind == g.tensor) or rt_operands.scalar_code(x) >= 0:
            continue
        if kind == capi.PyArray_Type:
            if unlikely(rt_operands.array_code(g, x) < 0):
                return False
        elif unlikely(rt_operands.scalar_type_code(g, x) < 0):
            return False
    return True


@native
def are_passed(entry: ProtocolEntry, options: ptr) -> bool:
    """Return whether all keywords are passed on unchanged."""
    passed: capi.PyVarObject = entry.passed
    where, key, value = stack(8), stack(8), stack(8)
    store(i64, where, 0, 0)
    while capi.PyDict_Next(options, where, key, value) != 0:
        known = False
        for k in range(passed.size):
            if rt_arguments.string_matches(load(ptr, key, 0), capi.item(passed, k)):
                known = True
        if not known:
            return False
    return True


@native
def call_with_out(
    entry: ProtocolEntry, function: ptr, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64
) -> ptr:
    """Call a function for `ufunc(*inputs, out=(out,))`, where `out` is a tensor or an array of NumPy."""
    g: base.Globals = entry.globals_
    outs: capi.PyVarObject = load(ptr, args, count * 8)
    if rt_outputs.find_out(g, kwnames) != 0 or capi.type_of(outs) != capi.PyTuple_Type or outs.size != 1:
        return Outcome.FALL_BACK
    out: capi.Ndarray = capi.item(outs, 0)
    if capi.type_of(out) == g.tensor:
        values = stack(rt_operands.MOST_ARGUMENTS * 8)
        capi.memcpy(values, args + 24, (count - 3) * 8)
        store(ptr, values, (count - 3) * 8, out)
        result = call_referenced(function, values, count - 3, kwnames)
        return result if likely(result != NULL) else refuse()
    if capi.type_of(out) != capi.PyArray_Type or (out.flags & capi.WRITEABLE) == 0:
        return Outcome.FALL_BACK
    result = call_referenced(function, args + 24, count - 3, NULL)
    if unlikely(result == NULL):
        return refuse()
    array: capi.Ndarray = rt_operands.plain_array(g, result, base.PLAIN)
    failed: i64 = 1
    if likely(
        array != NULL
        and rt_outputs.has_same_dtype(array, out.descr)
        and rt_layouts.has_same_shape(array, out, i64(out.ndim))
    ):
        capi.incref(array)
        if array.descr == out.descr and (array.flags & out.flags & capi.C_CONTIGUOUS) != 0:
            size = rt_layouts.count_elements(out.dims, i64(out.ndim)) * rt_layouts.item_size(out)
            capi.memmove(out.data, array.data, size)
            failed = 0
        else:
            failed = i64(capi.PyArray_CopyInto(out, array))
            capi.PyErr_Clear()
        capi.decref(array)
    capi.decref(result)
    return capi.new_ref(out) if likely(failed == 0) else ptr(Outcome.FALL_BACK)
