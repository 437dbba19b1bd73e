"""The native entry of in-place elementwise operators, `add_(x, y)` and `x += y`.

It computes like the entry of the functional operator, but into the memory of the first operand, which must have the
result's shape and dtype; if another operand overlaps that memory in another order, Python runs the call.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, call_void, i64, likely, load, native, ptr, stack, store, unlikely
from ..runtime import capi, rt_entry, rt_gil, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_elementwise


@rt_entry.entry(records=False)
def inplace(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of in-place elementwise operators.

    Python twin: eager/tensor/inplace.py:_make_kernel
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != base.NIN):
        return Outcome.FALL_BACK
    arrays, pointers, scalars = stack(base.NIN * 8), stack(base.NARGS * 8), stack(base.NIN * 16)
    key: i64 = 0
    for i in range(base.NIN):
        code = rt_operands.operand_or_number_code(g, load(ptr, args, i * 8), flags, arrays + i * 8)
        if unlikely(code < 0):
            return Outcome.FALL_BACK
        key |= code << (i * base.CODE_BITS)
    variant: base.Variant = base.find_variant(entry, key)
    if unlikely(variant == NULL):
        return Outcome.MISS
    target: capi.Ndarray = load(ptr, arrays, 0)
    if unlikely(target == NULL or variant.loop == NULL or not can_write(variant, target, arrays)):
        return Outcome.FALL_BACK
    if unlikely(not rt_elementwise.load_operands(g, variant, args, arrays, key, pointers, scalars)):
        return Outcome.FALL_BACK
    rt_gil.hold_arrays(arrays, base.NIN)  # allocating a storage may run Python code
    written = bump_version(g, load(ptr, args, 0), target)
    if likely(written):
        store(ptr, pointers, base.NIN * 8, target.data)
        compute_into(variant, arrays, target, pointers)
        entry.calls += 1
    rt_gil.drop_arrays(arrays, base.NIN)
    if unlikely(not written):
        return NULL
    capi.incref(load(ptr, args, 0))
    return load(ptr, args, 0)


@native
def can_write(variant: base.Variant, target: capi.Ndarray, arrays: ptr) -> bool:
    """Return whether the target is writable, has the result's dtype and shape, and no operand overlaps it harmfully."""
    rank = i64(target.ndim)
    number = capi.Descr(target.descr).type_num
    if (target.flags & capi.WRITEABLE) == 0 or rank > base.MAX_RANK:
        return False
    if number != capi.Descr(variant.descr).type_num:
        return False
    for i in range(1, base.NIN):
        array = load(ptr, arrays, i * 8)
        if array != NULL and array != target and not can_read(array, target, rank):
            return False
    return True


@native
def can_read(array: ptr, target: ptr, rank: i64) -> bool:
    """Return whether an operand broadcasts to the target and does not overlap it, except element by element."""
    return can_broadcast_to(array, target, rank) and (
        have_no_overlap(array, target) or are_same_elements(array, target, rank)
    )


@native
def can_broadcast_to(array: capi.Ndarray, target: capi.Ndarray, rank: i64) -> bool:
    """Return whether an operand broadcasts to the target's shape."""
    own = i64(array.ndim)
    if own > rank:
        return False
    for d in range(own):
        size = load(i64, array.dims, d * 8)
        if size != 1 and size != load(i64, target.dims, (rank - own + d) * 8):
            return False
    return True


@native
def lowest_address(array: capi.Ndarray) -> i64:
    at = i64(array.data)
    for d in range(i64(array.ndim)):
        step = load(i64, array.strides, d * 8)
        at += (load(i64, array.dims, d * 8) - 1) * step if step < 0 else 0
    return at


@native
def end_address(array: capi.Ndarray) -> i64:
    at = i64(array.data) + capi.Descr(array.descr).itemsize
    for d in range(i64(array.ndim)):
        step = load(i64, array.strides, d * 8)
        at += (load(i64, array.dims, d * 8) - 1) * step if step > 0 else 0
    return at


@native
def have_no_overlap(array: ptr, target: ptr) -> bool:
    """Return whether two arrays share no byte, judged by their bounds."""
    return end_address(array) <= lowest_address(target) or end_address(target) <= lowest_address(array)


@native
def are_same_elements(array: capi.Ndarray, target: capi.Ndarray, rank: i64) -> bool:
    """Return whether two arrays have each element at the same address."""
    number = capi.Descr(array.descr).type_num
    if array.data != target.data or not rt_elementwise.has_same_shape(array, target, rank):
        return False
    for d in range(rank):
        step = load(i64, target.strides, d * 8)
        if load(i64, array.strides, d * 8) != step:
            return False
    return number == capi.Descr(target.descr).type_num


@native
def bump_version(g: ptr, x: ptr, array: ptr) -> bool:
    """Increment the version of the tensor's storage; false with an exception set, before anything is written.

    Python twin: eager/autograd/ad_inplace_or_view.py:_count_write
    """
    storage: base.StorageObject = base.shared_storage(g, x, array)
    if unlikely(storage == NULL):
        return False
    before = storage.version
    after = capi.PyLong_FromLongLong(capi.PyLong_AsLongLong(before) + 1)
    if likely(after != NULL):
        storage.version = after
        capi.decref(before)
    capi.decref(storage)
    return bool(after != NULL)


@native
def compute_into(variant: base.Variant, arrays: ptr, target: capi.Ndarray, pointers: ptr) -> None:
    rank = i64(target.ndim)
    flats, sizes, total = stack(base.NARGS * 16), stack(16), i64(1)
    for d in range(rank):
        total *= load(i64, target.dims, d * 8)
    if likely(rt_elementwise.is_flat(variant, arrays, target, rank, flats)):
        store(i64, sizes, 0, 1)
        store(i64, sizes, 8, total)
        if unlikely(total >= variant.release):
            rt_gil.run_unlocked(variant.loop, pointers, sizes, flats, variant)
        else:
            call_void(variant.loop, pointers, sizes, flats, variant)
        return
    shape, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * base.NARGS * 8)
    rt_elementwise.broadcast(arrays, rank, shape)
    for i in range(base.NIN):
        rt_elementwise.operand_strides(load(ptr, arrays, i * 8), rank, strides + i * 8)
    rt_elementwise.operand_strides(target, rank, strides + base.NIN * 8)
    if total != 0:
        rank = rt_elementwise.coalesce(shape, strides, rank)
        saved = rt_gil.release_gil(total >= variant.release)
        rt_elementwise.run_nest(variant.loop, pointers, shape, strides, rank, variant)
        rt_gil.acquire_gil(saved)
