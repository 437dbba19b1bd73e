"""The native entries of attributes and conversions of plain tensors: `x.shape`, `len(x)`, `float(x)`, `x.item()`.

They read the array of a tensor, with history or without; no operator is called.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    cstr,
    f64,
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
from ..runtime import capi, rt_arguments, rt_entry, rt_layouts, rt_numbers, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

C_ORDER = 0  # NPY_CORDER


@native
def array_of(entry: base.OperatorEntry, args: ptr) -> ptr:
    """Return the array of a plain tensor, borrowed; NULL for anything else."""
    array: capi.Ndarray = rt_operands.plain_array(entry.globals_, load(ptr, args, 0), base.RECORD)
    return array if likely(array != NULL) and array.ndim <= base.MAX_RANK else ptr(0)


# Sizes ----------------------------------------------------------------------------------------------------------------
@rt_entry.entry(records=False, count=1)
def read_shape(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.shape`."""
    array: capi.Ndarray = array_of(entry, args)
    return (
        capi.tuple_of_integers(array.dims, i64(array.ndim))
        if likely(array != NULL)
        else ptr(Outcome.FALL_BACK)
    )


@rt_entry.entry(records=False, count=1)
def read_strides(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.strides`."""
    array: capi.Ndarray = array_of(entry, args)
    return (
        capi.tuple_of_integers(array.strides, i64(array.ndim))
        if likely(array != NULL)
        else ptr(Outcome.FALL_BACK)
    )


@rt_entry.entry(records=False, count=1)
def read_rank(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.ndim`."""
    array: capi.Ndarray = array_of(entry, args)
    return capi.PyLong_FromLongLong(i64(array.ndim)) if likely(array != NULL) else ptr(Outcome.FALL_BACK)


@rt_entry.entry(records=False, count=1)
def read_length(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`len(x)`."""
    array: capi.Ndarray = array_of(entry, args)
    if unlikely(array == NULL) or array.ndim == 0:
        return Outcome.FALL_BACK
    return capi.PyLong_FromLongLong(load(i64, array.dims, 0))


@rt_entry.entry(records=False, count=1)
def read_size(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.size`, an object that Python has made for this shape."""
    array: capi.Ndarray = array_of(entry, args)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    rank = i64(array.ndim)
    if likely(
        rank == entry.last_rank
        and entry.last != NULL
        and rt_layouts.equal_integers(entry.last_dims, array.dims, rank)
    ):
        return capi.new_ref(entry.last)
    return find_size(entry, array.dims, rank)


@noinline
def find_size(entry: base.FunctionEntry, dims: ptr, rank: i64) -> ptr:
    """Return the object for some sizes, and remember it; FALL_BACK if Python has not made it."""
    key = capi.tuple_of_integers(dims, rank)
    if unlikely(key == NULL):
        return Outcome.RETRY
    result = capi.PyDict_GetItemWithError(entry.known, key)
    if likely(result != NULL):
        capi.incref(result)
        if rank <= base.KNOWN_RANK:
            before = entry.last
            entry.last, entry.last_rank = capi.new_ref(result), rank
            capi.memcpy(entry.last_dims, dims, rank * 8)
            capi.release(before)
    capi.decref(key)
    return result if likely(result != NULL) else ptr(Outcome.FALL_BACK)


@rt_entry.entry(records=False, count=1)
def read_count(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.numel()`."""
    array: capi.Ndarray = array_of(entry, args)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    return capi.PyLong_FromLongLong(rt_layouts.count_elements(array.dims, i64(array.ndim)))


@rt_entry.entry(records=False, count=1)
def read_item_size(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.itemsize`."""
    array: capi.Ndarray = array_of(entry, args)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    return capi.PyLong_FromLongLong(rt_layouts.item_size(array))


@rt_entry.entry(records=False, count=1)
def read_byte_size(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.nbytes`."""
    array: capi.Ndarray = array_of(entry, args)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    elements = rt_layouts.count_elements(array.dims, i64(array.ndim))
    return capi.PyLong_FromLongLong(elements * rt_layouts.item_size(array))


@rt_entry.entry(records=False, count=1)
def read_dtype(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.dtype`."""
    g, array = entry.globals_, array_of(entry, args)
    code = rt_operands.array_code(g, array) if likely(array != NULL) else i64(base.FOREIGN)
    return capi.new_ref(load(ptr, g.types, code * 8)) if likely(code >= 0) else ptr(Outcome.FALL_BACK)


@rt_entry.entry(records=False)
def read_common_dtype(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`td.result_type` of tensors that have one dtype."""
    if unlikely(kwnames != NULL or count < 1):
        return Outcome.FALL_BACK
    common: i64 = base.FOREIGN
    for k in range(count):
        array = array_of(entry, args + k * 8)
        code = rt_operands.array_code(entry.globals_, array) if likely(array != NULL) else i64(base.FOREIGN)
        if unlikely(code < 0 or (k != 0 and code != common)):
            return Outcome.FALL_BACK
        common = code
    return capi.new_ref(load(ptr, base.Globals(entry.globals_).types, common * 8))


@rt_entry.entry(records=False, count=1)
def read_flags(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.flags`: NumPy's object."""
    array: capi.Ndarray = array_of(entry, args)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    return capi.PyObject_GetAttr(array, base.Globals(entry.globals_).flags_name)


@native
def to_python_bool(value: bool) -> ptr:
    return capi.new_ref(capi.Py_True if value else capi.Py_False)


@native
def is_complex(entry: base.OperatorEntry, args: ptr) -> i64:
    """Return 1 for a tensor of complex numbers, 0 for another tensor, FOREIGN for anything else."""
    array = array_of(entry, args)
    code = rt_operands.array_code(entry.globals_, array) if likely(array != NULL) else i64(base.FOREIGN)
    return i64(code >= base.COMPLEX64) if likely(code >= 0) else i64(base.FOREIGN)


@rt_entry.entry(records=False, count=1)
def has_complex(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`td.iscomplexobj(x)`."""
    answer = is_complex(entry, args)
    return to_python_bool(answer == 1) if likely(answer >= 0) else ptr(Outcome.FALL_BACK)


@rt_entry.entry(records=False, count=1)
def has_real(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`td.isrealobj(x)`."""
    answer = is_complex(entry, args)
    return to_python_bool(answer == 0) if likely(answer >= 0) else ptr(Outcome.FALL_BACK)


@rt_entry.entry(records=False, count=1)
def has_axes(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`td.iterable(x)`."""
    array: capi.Ndarray = array_of(entry, args)
    return to_python_bool(array.ndim != 0) if likely(array != NULL) else ptr(Outcome.FALL_BACK)


# Numbers --------------------------------------------------------------------------------------------------------------
@native
def argument_element(entry: base.OperatorEntry, args: ptr, where: ptr) -> i64:
    """Return the code of the dtype of a tensor of one element, and its address in `where`; FOREIGN otherwise."""
    return rt_numbers.only_element(entry.globals_, array_of(entry, args), where)


@rt_entry.entry(records=False, count=1)
def to_float(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`float(x)`."""
    where = stack(8)
    code = argument_element(entry, args, where)
    if unlikely(code < 0 or code >= base.COMPLEX64):
        return Outcome.FALL_BACK
    return capi.PyFloat_FromDouble(rt_numbers.read_real(load(ptr, where, 0), code))


@rt_entry.entry(records=False, count=1)
def to_complex(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`complex(x)`."""
    where = stack(8)
    code = argument_element(entry, args, where)
    if unlikely(code < 0):
        return Outcome.FALL_BACK
    if code >= base.COMPLEX64:
        return rt_numbers.read_element(load(ptr, where, 0), code)
    return capi.PyComplex_FromDoubles(rt_numbers.read_real(load(ptr, where, 0), code), f64(0.0))


@rt_entry.entry(records=False, count=1)
def to_int(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`int(x)`."""
    where = stack(8)
    code = argument_element(entry, args, where)
    if unlikely(code < 0 or code >= base.COMPLEX64):
        return Outcome.FALL_BACK
    return rt_numbers.read_int(load(ptr, where, 0), code)


@rt_entry.entry(records=False, count=1)
def to_index(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`operator.index(x)`."""
    where = stack(8)
    code = argument_element(entry, args, where)
    if unlikely(code <= base.BOOL or code >= base.FLOAT16):
        return refuse_index(entry, args)
    return rt_numbers.read_element(load(ptr, where, 0), code)


@noinline
def refuse_index(entry: base.FunctionEntry, args: ptr) -> ptr:
    """Raise for a tensor of several elements: NumPy tries whether each index is a number; FALL_BACK for others."""
    array: capi.Ndarray = array_of(entry, args)
    if array == NULL or rt_layouts.count_elements(array.dims, i64(array.ndim)) == 1:
        return Outcome.FALL_BACK
    shape = capi.tuple_of_integers(array.dims, i64(array.ndim))
    text = capi.PyObject_Repr(shape) if likely(shape != NULL) else ptr(0)
    start = capi.PyUnicode_FromString(cstr("an index takes a tensor of one element; this one has shape "))
    if likely(text != NULL and start != NULL):
        message = capi.PyUnicode_Concat(start, text)
        if likely(message != NULL):
            capi.PyErr_SetObject(entry.error, message)
            capi.decref(message)
    capi.release(shape)
    capi.release(text)
    capi.release(start)
    return Outcome.FAILED


@rt_entry.entry(records=False, count=1)
def to_bool(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`bool(x)`."""
    where = stack(8)
    code = argument_element(entry, args, where)
    if unlikely(code < 0 or code >= base.COMPLEX64):
        return Outcome.FALL_BACK
    is_true = rt_numbers.read_real(load(ptr, where, 0), code) != 0.0
    return capi.new_ref(capi.Py_True if is_true else capi.Py_False)


@rt_entry.entry(records=False)
def read_item(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.item()`, `x.item(3)`, `x.item(1, 2)`."""
    where = stack(8)
    if unlikely(count < 1 or kwnames != NULL):
        return Outcome.FALL_BACK
    code = argument_element(entry, args, where) if count == 1 else element_at(entry, args, count - 1, where)
    if unlikely(code < 0):
        return Outcome.FALL_BACK
    return rt_numbers.read_element(load(ptr, where, 0), code)


@native
def element_at(entry: base.OperatorEntry, args: ptr, rank: i64, where: ptr) -> i64:
    """Return as `argument_element` the code and the address of the element at an index for each axis."""
    array: capi.Ndarray = array_of(entry, args)
    if unlikely(array == NULL) or i64(array.ndim) != rank or (array.flags & capi.ALIGNED) == 0:
        return base.FOREIGN
    address, overflow = array.data, stack(4)
    for axis in range(rank):
        key, extent = load(ptr, args, axis * 8 + 8), load(i64, array.dims, axis * 8)
        if unlikely(capi.type_of(key) != capi.PyLong_Type):
            return base.FOREIGN
        k = capi.PyLong_AsLongLongAndOverflow(key, overflow)
        if k < 0:
            k += extent
        if unlikely(load(i32, overflow, 0) != 0 or k < 0 or k >= extent):
            return base.FOREIGN
        address += k * load(i64, array.strides, axis * 8)
    store(ptr, where, 0, address)
    return rt_operands.array_code(entry.globals_, array)


@rt_entry.entry(records=False, count=1)
def to_list(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.tolist()`."""
    array = array_of(entry, args)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    capi.incref(array)
    result = capi.PyArray_ToList(array)
    capi.decref(array)
    return result


@rt_entry.entry(records=False, count=1)
def to_bytes(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.tobytes()` of a tensor without history."""
    array = rt_operands.plain_array(entry.globals_, load(ptr, args, 0), base.PLAIN)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    capi.incref(array)
    result = capi.PyArray_ToString(array, i32(C_ORDER))
    capi.decref(array)
    return result


@rt_entry.entry(records=False, count=1)
def to_array(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.numpy()` of a tensor without history."""
    array = rt_operands.plain_array(entry.globals_, load(ptr, args, 0), base.PLAIN)
    return capi.new_ref(array) if likely(array != NULL) else ptr(Outcome.FALL_BACK)


# Views ----------------------------------------------------------------------------------------------------------------
@rt_entry.entry(records=False)
def reshape_or_bitcast(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.view(2, 8)` of elements without gaps calls the first target, and `x.view(dtype)` the second one."""
    g: base.Globals = entry.globals_
    array: capi.Ndarray = array_of(entry, args)
    if unlikely(array == NULL or kwnames != NULL or count < 2) or (array.flags & capi.C_CONTIGUOUS) == 0:
        return Outcome.FALL_BACK
    given = load(ptr, args, 8)
    if likely(capi.type_of(given) == capi.PyLong_Type or capi.sequence_items(given) != NULL):
        return capi.PyObject_Vectorcall(capi.item(entry.targets, 0), args, count, NULL)
    code = rt_arguments.dtype_code(g, given)
    if unlikely(code < 0 or count != 2):
        return Outcome.FALL_BACK
    values = stack_of(load(ptr, args, 0), load(ptr, g.types, code * 8))
    return capi.PyObject_Vectorcall(capi.item(entry.targets, 1), values, 2, NULL)


# Several tensors ------------------------------------------------------------------------------------------------------
@rt_entry.entry(records=False)
def map_tensors(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """A function of any number of tensors: the target's result for one, a tuple of its results for several."""
    if unlikely(kwnames != NULL or count < 1 or not are_plain(entry, args, count)):
        return Outcome.FALL_BACK
    if likely(count == 1):
        return capi.PyObject_Vectorcall(capi.item(entry.targets, 0), args, 1, NULL)
    return map_target(entry, args, count, NULL)


@rt_entry.entry(records=False)
def broadcast_all(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`td.broadcast_arrays(x, y, ...)`: the target broadcasts each to the common shape."""
    if unlikely(kwnames != NULL or count < 1 or not are_plain(entry, args, count)):
        return Outcome.FALL_BACK
    rank: i64 = 0
    for k in range(count):
        array: capi.Ndarray = array_of(entry, args + k * 8)
        rank = i64(array.ndim) if i64(array.ndim) > rank else rank
    dims = stack(base.MAX_RANK * 8)
    rt_layouts.fill_integers(dims, rank, 1)
    for k in range(count):
        array = array_of(entry, args + k * 8)
        if not rt_layouts.merge_sizes(array, i64(capi.Ndarray(array).ndim), dims, rank):
            return Outcome.FALL_BACK
    shape = capi.tuple_of_integers(dims, rank)
    if unlikely(shape == NULL):
        return Outcome.RETRY
    result = map_target(entry, args, count, shape)
    capi.decref(shape)
    return result


@native
def are_plain(entry: base.OperatorEntry, args: ptr, count: i64) -> bool:
    """Return whether all arguments are plain tensors."""
    for k in range(count):
        if unlikely(array_of(entry, args + k * 8) == NULL):
            return False
    return True


@native
def map_target(entry: base.FunctionEntry, args: ptr, count: i64, option: ptr) -> ptr:
    """Return a tuple of the target's results for each argument, with an option if it is not NULL."""
    result = capi.PyTuple_New(count)
    for k in range(count if likely(result != NULL) else 0):
        values, number = stack_of(load(ptr, args, k * 8), option), 1 if option == NULL else 2
        item = capi.PyObject_Vectorcall(capi.item(entry.targets, 0), values, number, NULL)
        if unlikely(item == NULL):
            capi.decref(result)
            return Outcome.FAILED
        capi.set_item(result, k, item)
    return result
