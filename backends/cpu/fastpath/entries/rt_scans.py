"""The native entry of scans, `op(x, axis=None)`.

A scan is a nest of rows along the axis. Its loop (`codegen.eager_scans`) has the signature of elementwise loops, with
the axis innermost.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, call_void, i64, likely, load, native, ptr, stack, store, unlikely
from ..runtime import capi, rt_entry, rt_gil, rt_memory, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_arguments, rt_copies, rt_elementwise, rt_reduce


@rt_entry.entry
def scan(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of scans.

    Python twin: backends/cpu/kernels/folds.py:scan_kernel
    """
    g = entry.globals_
    axis = rt_arguments.axis_argument(entry, args, count, kwnames, 1, capi.Py_None)
    if unlikely(count < 1 or axis == NULL):
        return Outcome.FALL_BACK
    where = stack(8)
    code = rt_operands.operand_code(g, load(ptr, args, 0), flags, where)
    array = load(ptr, where, 0)
    if unlikely(code < 0 or array == NULL):
        return Outcome.FALL_BACK
    variant = base.find_variant(entry, code)
    if unlikely(variant == NULL):
        return Outcome.MISS
    capi.incref(array)  # copies and loops may run without the GIL
    result = compute_scan(variant, array, axis, g)
    capi.decref(array)
    tensor = rt_entry.finish(entry, result)
    if unlikely(base.has_history(g, load(ptr, args, 0), flags)):
        values = stack(24)
        store(ptr, values, 0, load(ptr, args, 0))
        store(ptr, values, 8, axis)
        return rt_record.record_call(entry, values, 2, tensor)
    return tensor


@native
def compute_scan(variant: base.Variant, array: capi.Ndarray, axis: ptr, g: ptr) -> ptr:
    """Return the result's array, or an `Outcome`."""
    rank = i64(array.ndim)
    if variant.loop == NULL or rank > base.MAX_RANK:
        return Outcome.FALL_BACK
    if axis == capi.Py_None:
        return scan_flattened(variant, array, rank, g)
    along = rt_reduce.axis_number(axis, rank)
    if along == rt_reduce.BAD:
        return Outcome.FALL_BACK
    return scan_axis(variant, array, rank, along, g)


@native
def scan_flattened(variant: base.Variant, array: capi.Ndarray, rank: i64, g: ptr) -> ptr:
    """Scan all elements in row-major order; elements that are not contiguous are copied first."""
    dims, sizes, strides, pointers = stack(8), stack(16), stack(32), stack(16)
    total, source = i64(1), array
    for d in range(rank):
        total *= load(i64, array.dims, d * 8)
    store(i64, dims, 0, total)
    if rank > 1 and (array.flags & capi.C_CONTIGUOUS) == 0:
        source = rt_copies.copy_contiguous(g, array, 1, dims)
        if unlikely(source == NULL):
            return Outcome.RETRY
    size = variant.itemsize
    made: capi.Ndarray = rt_memory.new_array(g, variant.descr, 1, dims, total * size)
    if likely(made != NULL):
        store(ptr, pointers, 0, capi.Ndarray(source).data)
        store(ptr, pointers, 8, made.data)
        store(i64, sizes, 0, 1)
        store(i64, sizes, 8, total)
        store(i64, strides, 8, load(i64, array.strides, 0) if rank == 1 else rt_copies.item_size(array))
        store(i64, strides, 24, size)
        saved = rt_gil.release_gil(total >= variant.release)
        call_void(variant.loop, pointers, sizes, strides, variant)
        rt_gil.acquire_gil(saved)
    if source != array:
        capi.decref(source)
    return made if made != NULL else ptr(Outcome.RETRY)


@native
def scan_axis(variant: base.Variant, array: capi.Ndarray, rank: i64, along: i64, g: ptr) -> ptr:
    """Scan along one axis."""
    dims, steps = array.dims, array.strides
    shape, strides, pointers = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 16), stack(16)
    step = variant.itemsize
    for k in range(rank):
        d = rank - 1 - k
        at = rank - 1 if d == along else d if d < along else d - 1
        store(i64, shape, at * 8, load(i64, dims, d * 8))
        store(i64, strides, at * 16, load(i64, steps, d * 8))
        store(i64, strides, at * 16 + 8, step)
        step *= load(i64, dims, d * 8)
    made: capi.Ndarray = rt_memory.new_array(g, variant.descr, rank, dims, step)
    if unlikely(made == NULL):
        return Outcome.RETRY
    store(ptr, pointers, 0, array.data)
    store(ptr, pointers, 8, made.data)
    if likely(step != 0):
        saved = rt_gil.release_gil(step >= variant.release * variant.itemsize)
        rt_elementwise.run_nest(variant.loop, pointers, shape, strides, rank, variant)
        rt_gil.acquire_gil(saved)
    return made
