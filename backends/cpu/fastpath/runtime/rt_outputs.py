"""Native runtime: write into tensors: checks of memory, versions, and the result of a call into its `out`."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, stack_of, store, unlikely
from . import capi, rt_layouts, rt_operands
from . import rt_base as base

NO_OUT: i64 = -1  # the index of `out` among the keywords of a call that does not name it


@native
def bump_version(g: ptr, x: ptr, array: ptr) -> bool:
    """Increment the version of the tensor's storage; false with an exception set, before anything is written.

    Python twin: eager/autograd/ad_inplace_or_view.py:_count_write
    """
    storage: base.StorageObject = base.shared_storage(g, x, array)
    if unlikely(storage == NULL):
        return False
    after = base.next_version(storage)
    if likely(after != NULL):
        base.set_version(storage, after)
    capi.decref(storage)
    return bool(after != NULL)


@native
def separate_operands(arrays: ptr, first: i64, target: capi.Ndarray) -> bool:
    """Replace held operands that share memory with the target in another order by copies; false with an exception."""
    rank = i64(target.ndim)
    for i in range(first, base.NIN):
        if not separate(arrays + i * 8, target.descr, target.data, target.dims, target.strides, rank):
            return False
    return True


@native
def has_same_dtype(array: capi.Ndarray, descr: capi.Descr) -> bool:
    return capi.Descr(array.descr).type_num == descr.type_num


@native
def separate(where: ptr, descr: capi.Descr, data: ptr, dims: ptr, strides: ptr, rank: i64) -> bool:
    """Replace a held array or NULL, if it shares memory with a view in another order; false with an exception set."""
    array: capi.Ndarray = load(ptr, where, 0)
    one, two = stack(16), stack(16)
    if (
        array == NULL
        or not rt_layouts.write_bounds(array, one)
        or not rt_layouts.write_bounds_at(data, dims, strides, rank, descr.itemsize, two)
        or likely(are_disjoint(one, two))
        or (has_same_dtype(array, descr) and rt_layouts.has_layout(array, data, dims, strides, rank))
    ):
        return True
    copied = capi.PyArray_NewCopy(array, 0)
    if likely(copied != NULL):
        store(ptr, where, 0, copied)
        capi.decref(array)
    return bool(copied != NULL)


@native
def have_no_overlap(array: capi.Ndarray, target: capi.Ndarray) -> bool:
    """Return whether two arrays share no byte, judged by their bounds."""
    one, two = stack(16), stack(16)
    if not rt_layouts.write_bounds(array, one) or not rt_layouts.write_bounds(target, two):
        return True
    return are_disjoint(one, two)


@native
def are_disjoint(one: ptr, two: ptr) -> bool:
    return load(i64, one, 8) <= load(i64, two, 0) or load(i64, two, 8) <= load(i64, one, 0)


# The keyword `out` ---------------------------------------------------------------------------------------------------
@native
def find_out(g: base.Globals, kwnames: capi.PyVarObject) -> i64:
    """Return the index of `out` among the keywords, or NO_OUT."""
    for k in range(kwnames.size):
        if capi.item(kwnames, k) == g.out_name:
            return k
    return NO_OUT


@native
def is_valid_out(g: base.Globals, named: ptr, kwnames: capi.PyVarObject) -> bool:
    """Return whether the values of the keywords have a tensor or None as `out`, or no `out`."""
    index = find_out(g, kwnames)
    if index == NO_OUT:
        return True
    out = load(ptr, named, index * 8)
    return bool(out == capi.Py_None or capi.type_of(out) == g.tensor)


@native
def names_without(kwnames: capi.PyVarObject, index: i64) -> ptr:
    """Return a new tuple of names without one of them; NULL with an exception set."""
    made = capi.PyTuple_New(kwnames.size - 1)
    for k in range(kwnames.size if likely(made != NULL) else 0):
        if k != index:
            capi.set_item(made, k if k < index else k - 1, capi.new_ref(capi.item(kwnames, k)))
    return made


@native
def can_hold_elements(g: base.Globals, source: capi.Ndarray, target: capi.Ndarray) -> bool:
    """Return whether a target has the dtype of a result, or a wider one of its kind, or the result is boolean."""
    if likely(has_same_dtype(source, target.descr)):
        return True
    one, two = rt_operands.array_code(g, source), rt_operands.array_code(g, target)
    if one < 0 or two < 0 or one == base.BFLOAT16 or two == base.BFLOAT16:
        return False
    if one == base.BOOL:
        return True
    if one > two or (one == base.FLOAT64 and two == base.COMPLEX64):
        return False
    return two <= base.INT64 or (one >= base.UINT8 and two <= base.UINT64) or one >= base.FLOAT16


@noinline
def write_result(entry: base.OperatorEntry, result: ptr, out: base.TensorObject, flags: i64) -> ptr:
    """Write a result, which is released, into `out`; return `out`, a new reference, or NULL with an exception set.

    Python twin: registry/respelled_calls.py:write_result
    """
    g = entry.globals_
    source: capi.Ndarray = rt_operands.plain_array(g, result, flags)
    target: capi.Ndarray = rt_operands.plain_array(g, out, flags)
    if unlikely(
        source == NULL
        or target == NULL
        or (target.flags & capi.WRITEABLE) == 0
        or not can_hold_elements(g, source, target)
        or not rt_layouts.has_same_shape(source, target, i64(target.ndim))
    ):
        written = capi.PyObject_Vectorcall(entry.write_out, stack_of(result, out), 2, NULL)
        capi.decref(result)
        return written
    arrays = stack_of(source, target)
    capi.hold_all(arrays, 2)  # allocating a storage may run Python code
    done = bump_version(g, out, target)
    if likely(done):
        is_dense = (source.flags & target.flags & capi.C_CONTIGUOUS) != 0
        if likely(is_dense and has_same_dtype(source, target.descr)):
            size = rt_layouts.count_elements(target.dims, i64(target.ndim)) * rt_layouts.item_size(target)
            capi.memmove(target.data, source.data, size)
        else:
            done = capi.PyArray_CopyInto(target, source) == 0
    capi.release_all(arrays, 2)
    capi.decref(result)
    return capi.new_ref(out) if likely(done) else ptr(0)
