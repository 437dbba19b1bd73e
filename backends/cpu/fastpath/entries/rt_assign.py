"""Native entries: `x[key] = value` and `basic_put(x, value, plan)`: write into a view, in place or into a copy.

The value is a number or a tensor of x's dtype. The operands of the loops are the value and the view: NIN is 1 and NARGS
is 2.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    i8,
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
from ..compiler.structs import sizeof
from ..runtime import capi, rt_entry, rt_layouts, rt_lists, rt_operands, rt_outputs
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies, rt_index_keys, rt_subscript


@rt_entry.entry(records=False, count=3)
def assign(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `x[key] = value`.

    Python twin: eager/tensor/methods.py:setitem
    """
    result = write_elements(entry, args, flags)
    if likely(i64(result) != Outcome.FALL_BACK):
        return result
    x, key, value = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16)
    converted_key = rt_index_keys.convert_key(entry.globals_, key)
    converted = convert_value(entry.globals_, value)
    if converted_key != NULL or converted != NULL:
        converted_key = converted_key if converted_key != NULL else capi.new_ref(key)
        converted = converted if converted != NULL else capi.new_ref(value)
        result = write_elements(entry, stack_of(x, converted_key, converted), flags)
        capi.decref(converted_key)
        capi.decref(converted)
    return result


@noinline
def convert_value(g: base.Globals, value: ptr) -> ptr:
    """Return a tensor for an array or a scalar of NumPy or for nested lists of numbers; NULL for others."""
    result = rt_operands.to_tensor(g, value)
    if result == NULL and capi.type_of(value) == capi.PyList_Type:
        result = rt_lists.tensor_of_list(g, value, True, g.default_float, base.FOREIGN)
    capi.PyErr_Clear()  # of a failed allocation
    return result


@noinline
def write_elements(entry: base.OperatorEntry, args: ptr, flags: i64) -> ptr:
    """Write at a key without objects of NumPy and lists; return None or an `Outcome`."""
    g, x, value = entry.globals_, load(ptr, args, 0), load(ptr, args, 16)
    if unlikely(plain_index(g, load(ptr, args, 8), flags) != NULL):
        return assign_at_tensor(entry, args, flags)
    arrays, scalar = stack(16), stack(16)
    state: rt_subscript.KeyState = stack(sizeof(rt_subscript.KeyState))
    key = rt_operands.pair_key(g, x, value, flags, arrays)
    array: capi.Ndarray = load(ptr, arrays, 0)
    if unlikely(
        key == base.FOREIGN
        or (array.flags & capi.WRITEABLE) == 0
        or not rt_subscript.read_key(state, g, flags, array, args + 8)
        or not prepare_value(value, arrays, key, scalar, state)
    ):
        return Outcome.FALL_BACK
    capi.hold_all(arrays, 2)  # allocating a storage may run Python code
    where, descr = arrays + 8, array.descr
    written = rt_outputs.separate(where, descr, state.data, state.dims, state.strides, state.rank)
    written = written and rt_outputs.bump_version(g, x, array)
    if likely(written):
        write(state, load(ptr, arrays, 8), scalar)
        entry.calls += 1
    capi.release_all(arrays, 2)
    return capi.new_ref(capi.Py_None) if likely(written) else ptr(0)


@native
def plain_index(g: base.Globals, x: ptr, flags: i64) -> ptr:
    """Return the array of a plain tensor of bools or integers with axes, borrowed; NULL for anything else."""
    if likely(capi.type_of(x) != g.tensor):
        return NULL
    array: capi.Ndarray = rt_operands.plain_array(g, x, flags)
    if array == NULL or array.ndim == 0:
        return NULL
    code = rt_operands.array_code(g, array)
    return array if code >= base.BOOL and code <= base.UINT64 else ptr(0)


@native
def has_one_order(g: ptr, index: capi.Ndarray, array: capi.Ndarray, value: capi.Ndarray) -> bool:
    """Return whether NumPy writes in the order of the index, so that the last of repeated positions stays."""
    if rt_operands.array_code(g, index) == base.BOOL:
        return True
    is_row_major = (index.flags & array.flags & capi.C_CONTIGUOUS) != 0
    return is_row_major and (value == NULL or (value.flags & capi.C_CONTIGUOUS) != 0)


@noinline
def assign_at_tensor(entry: base.OperatorEntry, args: ptr, flags: i64) -> ptr:
    """Write a number or a tensor at a mask or at positions, by NumPy; return None, or an `Outcome`."""
    g, x, value = entry.globals_, load(ptr, args, 0), load(ptr, args, 16)
    arrays, scalar, mask = stack(32), stack(16), plain_index(g, load(ptr, args, 8), flags)
    key = rt_operands.pair_key(g, x, value, flags, arrays)
    store(ptr, arrays, 16, mask)
    array: capi.Ndarray = load(ptr, arrays, 0)
    given: ptr = load(ptr, arrays, 8)
    if (
        key == base.FOREIGN
        or mask == NULL
        or (array.flags & capi.WRITEABLE) == 0
        or not has_one_order(g, mask, array, given)
        or not is_storable(value, arrays, key, scalar)
        or not rt_outputs.have_no_overlap(mask, array)
        or (given != NULL and not rt_outputs.have_no_overlap(given, array))
    ):
        return Outcome.FALL_BACK
    capi.hold_all(arrays, 3)
    storage: base.StorageObject = base.shared_storage(g, x, array)
    store(ptr, arrays, 24, storage)
    version = base.next_version(storage) if likely(storage != NULL) else ptr(0)
    result: ptr = version
    if likely(version != NULL):
        if likely(capi.PyObject_SetItem(array, mask, value if given == NULL else given) == 0):
            base.set_version(storage, version)
            entry.calls += 1
            result = capi.new_ref(capi.Py_None)
        else:
            capi.PyErr_Clear()  # Python raises tandem's exception
            capi.decref(version)
            result = Outcome.FALL_BACK
    capi.release_all(arrays, 4)
    return result


@rt_entry.entry(records=False, count=3)
def put(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `basic_put`, which writes into a copy.

    Python twin: operators/indexing/slicing.py:_write_kernel
    """
    g, x, value, plan = entry.globals_, load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16)
    arrays, scalar, state = stack(16), stack(16), stack(sizeof(rt_subscript.KeyState))
    key = rt_operands.pair_key(g, x, value, flags, arrays)
    array: capi.Ndarray = load(ptr, arrays, 0)
    if unlikely(
        key == base.FOREIGN
        or array.ndim > base.MAX_RANK
        or not rt_subscript.read_plan(state, array, plan)
        or not prepare_value(value, arrays, key, scalar, state)
    ):
        return Outcome.FALL_BACK
    capi.hold_all(arrays, 2)  # allocating an array may run Python code
    made = rt_copies.copy_contiguous(g, array, i64(array.ndim), array.dims)
    tensor: ptr = NULL
    if likely(made != NULL):
        rt_subscript.read_plan(state, made, plan)  # the copy's strides may differ
        write(state, load(ptr, arrays, 8), scalar)
        tensor = rt_entry.finish(entry, made)
    capi.release_all(arrays, 2)
    return tensor


@native
def prepare_value(x: ptr, arrays: ptr, key: i64, scalar: ptr, state: rt_subscript.KeyState) -> bool:
    """Return whether an operand can be written into the view; a number is written to `scalar` as an element."""
    value: ptr = load(ptr, arrays, 8)
    broadcasts = value == NULL or rt_layouts.can_broadcast(value, state.dims, state.rank)
    return broadcasts and is_storable(x, arrays, key, scalar)


@native
def is_storable(x: ptr, arrays: ptr, key: i64, scalar: ptr) -> bool:
    """Return whether elements of the array can hold an operand; a number is written to `scalar` as an element."""
    to, code = key & 31, key >> base.CODE_BITS
    if load(ptr, arrays, 8) != NULL:
        return code == to
    if to != base.BOOL or code == base.WEAK_BOOL:
        return rt_operands.write_scalar(x, code, to, scalar)
    if code != base.WEAK_INT:
        return False
    store(i8, scalar, 0, i8(capi.PyObject_IsTrue(x)))  # of an int, which cannot fail
    return True


@native
def write(state: rt_subscript.KeyState, value: capi.Ndarray, scalar: ptr) -> None:
    """Copy a tensor's elements, or the number in `scalar` if the tensor is NULL, into the view."""
    if value != NULL and rt_layouts.has_layout(value, state.data, state.dims, state.strides, state.rank):
        return  # as after `x[key] += y`
    rank, strides, size = state.rank, stack(base.MAX_RANK * 16), rt_layouts.item_size(state.source)
    pointers = stack_of(scalar, state.data)
    if value != NULL:
        store(ptr, pointers, 0, value.data)
    rt_layouts.operand_strides(value, i64(value.ndim) if value != NULL else 0, rank, strides)
    for d in range(rank):
        store(i64, strides, d * 16 + 8, load(i64, state.strides, d * 8))
    total = rt_layouts.count_elements(state.dims, rank) * size
    rt_copies.copy_nest(pointers, state.dims, strides, rank, size, total)
