"""Native runtime: destroyed tensors without axes, which new ones are made of, each with its array.

A program that works with elements makes and destroys such tensors at each step, often several at a time. There is a
list for each dtype of tensors whose arrays have memory of their own, and one of views, whose sources are released. The
tensors of a list refer to the next one by their slot for the storage.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i32, i64, likely, load, native, ptr, stack_of, store, u8, unlikely
from ..compiler.structs import sizeof
from . import capi, rt_spare_arrays
from . import rt_base as base

MOST: i64 = 32  # tensors of a list
OWNERS, VIEWS = 0, 1
NONE_KEPT: i64 = -1  # a result in place of a tensor


@native
def find_list(g: base.Globals, descr: capi.Descr, kind: i64) -> ptr:
    """Return the list of tensors for a NumPy descriptor; NULL if there is none."""
    number = descr.type_num
    if unlikely(number < 0 or number > 255):
        return NULL
    code = i64(load(u8, g.dtypes, i64(number)))
    if unlikely(code >= base.WEAK_BOOL) or load(ptr, g.descrs, code * 8) != descr:
        return NULL
    return g.spare_numbers + (kind * base.WEAK_BOOL + code) * sizeof(base.NumberList)


# Keep ----------------------------------------------------------------------------------------------------------------
@native
def keep_number(g: base.Globals, x: base.TensorObject, array: capi.Ndarray) -> bool:
    """Take over a destroyed tensor, whose slots are empty, with its array; return false if the caller frees them."""
    if not rt_spare_arrays.is_unused(g.spare_arrays, array):
        return False
    owner, kind = array.base, i64(OWNERS)
    if (array.flags & capi.OWNDATA) == 0:
        kind = VIEWS
    if (kind == OWNERS) != (owner == NULL) or (kind == OWNERS and (array.flags & capi.WRITEABLE) == 0):
        return False
    numbers: base.NumberList = find_list(g, array.descr, kind)
    if unlikely(numbers == NULL or numbers.count >= MOST):
        return False
    store(i64, x, -capi.GC_HEAD, 0)
    store(i64, x, 8 - capi.GC_HEAD, 0)
    array.base = NULL
    x.array = array
    x.storage = numbers.first
    numbers.first = x
    numbers.count += 1
    capi.release(owner)
    return True


# Take ----------------------------------------------------------------------------------------------------------------
@native
def take_number(g: base.Globals, numbers: base.NumberList, storage: ptr) -> ptr:
    """Return a plain tensor of a list that is not empty, and give it a reference to a storage or None."""
    tensor: base.TensorObject = numbers.first
    numbers.first = tensor.storage
    numbers.count -= 1
    tensor.refcnt = 1
    tensor.keys = capi.new_ref(g.keys)
    tensor.meta = capi.new_ref(capi.Py_None)
    tensor.storage = storage
    capi.PyObject_GC_Track(tensor)
    return tensor


@native
def report(g: base.Globals, tensor: ptr) -> ptr:
    """Report a new tensor to the open level of a transform, as `make_tensor`; NULL with an exception set."""
    if unlikely(g.note != NULL):
        return base.report_tensor(g.note, stack_of(tensor), 1, tensor)
    return tensor


@native
def has_spare(g: base.Globals, numbers: base.NumberList) -> bool:
    """Return whether a list, or NULL, has a tensor that may be taken."""
    return bool(
        likely(numbers != NULL) and numbers.first != NULL and base.SpareArrays(g.spare_arrays).limit != 0
    )


@native
def take_owner_of(g: base.Globals, descr: ptr) -> ptr:
    """Return a tensor whose element is not initialized, or NULL; the caller writes that and calls `report`."""
    numbers = find_list(g, descr, OWNERS)
    if unlikely(not has_spare(g, numbers)):
        return NULL
    return take_number(g, numbers, capi.new_ref(capi.Py_None))


@native
def take_view_at(g: base.Globals, source: ptr, array: capi.Ndarray, descr: capi.Descr, data: ptr) -> ptr:
    """Return a view of one element of a tensor with an array, or NONE_KEPT; NULL with an exception set."""
    numbers = find_list(g, descr, VIEWS)
    if unlikely(
        not has_spare(g, numbers)
        or array.flags < 0  # NumPy warns of writes
        or not rt_spare_arrays.is_aligned_for(i64(data), descr.itemsize)
    ):
        return NONE_KEPT
    capi.incref(array)  # the allocation of a storage may run Python code
    storage = base.shared_storage(g, source, array)
    if unlikely(storage == NULL or not has_spare(g, numbers)):
        capi.release(storage)
        capi.decref(array)
        return ptr(0) if storage == NULL else ptr(NONE_KEPT)
    tensor: base.TensorObject = take_number(g, numbers, storage)
    view: capi.Ndarray = tensor.array
    view.data = data
    view.flags = view.flags & i32(~capi.WRITEABLE) | array.flags & i32(capi.WRITEABLE)
    view.base = find_owner(array)
    return report(g, tensor)


@native
def find_owner(array: capi.Ndarray) -> ptr:
    """Return the array that owns the memory of an array, with the reference to the latter.

    Source: ``PyArray_SetBaseObject`` of NumPy.
    """
    owner = array
    while (
        (owner.flags & capi.OWNDATA) == 0
        and owner.base != NULL
        and capi.type_of(owner.base) == capi.PyArray_Type
    ):
        owner = owner.base
    if owner != array:
        capi.incref(owner)
        capi.decref(array)
    return owner
