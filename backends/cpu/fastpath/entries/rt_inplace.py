"""The native entry of in-place elementwise operators, `add_(x, y)` and `x += y`.

It computes like the entry of the functional operator, but into the memory of the first operand, which must have the
result's shape and dtype; another operand that overlaps that memory in another order is copied first.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, unlikely
from ..runtime import capi, rt_entry, rt_layouts, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_elementwise


@rt_entry.entry(records=False, converts=1)
def inplace(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of in-place elementwise operators.

    Python twin: eager/tensor/inplace.py:_make_kernel
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != base.NIN):
        return Outcome.FALL_BACK
    arrays, pointers, scalars = stack(base.NIN * 8), stack(base.NARGS * 8), stack(base.NIN * 16)
    key = rt_operands.operand_key(g, args, flags, arrays)
    variant: base.Variant = rt_entry.select_variant(entry, key)
    if unlikely(i64(variant) <= 0):
        return variant
    target: capi.Ndarray = load(ptr, arrays, 0)
    if unlikely(target == NULL or not can_write(variant, target, arrays)):
        return Outcome.FALL_BACK
    capi.hold_all(arrays, base.NIN)  # allocating a storage or a copy may run Python code
    if unlikely(
        not separate_operands(arrays, target)
        or not rt_elementwise.load_operands(g, variant, args, arrays, key, pointers, scalars)
    ):
        capi.PyErr_Clear()  # Python runs the call, or raises the exception
        capi.release_all(arrays, base.NIN)
        return Outcome.FALL_BACK
    written = bump_version(g, load(ptr, args, 0), target)
    if likely(written):
        store(ptr, pointers, base.NIN * 8, target.data)
        compute_into(variant, arrays, target, pointers)
        entry.calls += 1
    capi.release_all(arrays, base.NIN)
    return capi.new_ref(load(ptr, args, 0)) if likely(written) else ptr(0)


@native
def can_write(variant: base.Variant, target: capi.Ndarray, arrays: ptr) -> bool:
    """Return whether the target is writable and has the result's dtype and shape."""
    rank = i64(target.ndim)
    if (
        (target.flags & capi.WRITEABLE) == 0
        or rank > base.MAX_RANK
        or not has_same_dtype(target, variant.descr)
    ):
        return False
    for i in range(1, base.NIN):
        array = load(ptr, arrays, i * 8)
        if array != NULL and array != target and not rt_layouts.can_broadcast(array, target.dims, rank):
            return False
    return True


@native
def separate_operands(arrays: ptr, target: capi.Ndarray) -> bool:
    """Replace held operands that share memory with the target in another order by copies; false with an exception."""
    rank = i64(target.ndim)
    for i in range(1, base.NIN):
        if not separate(arrays + i * 8, target.descr, target.data, target.dims, target.strides, rank):
            return False
    return True


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
def has_same_dtype(array: capi.Ndarray, descr: capi.Descr) -> bool:
    return capi.Descr(array.descr).type_num == descr.type_num


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
def compute_into(variant: base.Variant, arrays: ptr, target: capi.Ndarray, pointers: ptr) -> None:
    rank, flats = i64(target.ndim), stack(base.NARGS * 16)
    total = rt_layouts.count_elements(target.dims, rank)
    if likely(rt_elementwise.is_flat(variant, arrays, target, rank, flats)):
        rt_layouts.run_flat(variant, arrays, pointers, total, flats)
        return
    shape, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * base.NARGS * 8)
    rt_elementwise.broadcast(arrays, rank, shape, strides)
    rt_layouts.operand_strides(target, rank, rank, strides + base.NIN * 8)
    if total != 0:
        total *= variant.itemsize
        rt_layouts.run_strided(variant, arrays, pointers, shape, strides, rank, total)
