"""The native entry of scans, `op(x, axis=None, *, dtype=None)`.

A scan is a nest of rows along the axis. Its loop (`codegen.folds.scans`) has the signature of elementwise loops, with
the axis innermost.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, stack_of, store, unlikely
from ..runtime import (
    capi,
    rt_arguments,
    rt_batches,
    rt_entry,
    rt_gil,
    rt_layouts,
    rt_memory,
    rt_operands,
    rt_record,
)
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies, rt_reduce


@rt_entry.entry(converts=0, at_level=rt_batches.run_at_level)
def scan(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of scans.

    Python twin: backends/cpu/kernels/folds.py:scan_kernel
    """
    g, given = entry.globals_, stack_of(capi.Py_None, NULL, NULL, capi.Py_None)  # axis, dtype
    if unlikely(count < 1 or not rt_arguments.read_named(entry, args, count, kwnames, given)):
        return Outcome.FALL_BACK
    where, x, axis, dtype = stack(8), load(ptr, args, 0), load(ptr, given, 0), load(ptr, given, 24)
    if unlikely(dtype != capi.Py_None and base.has_history(g, x, flags)):
        return Outcome.FALL_BACK
    key = rt_reduce.fold_key(entry, rt_operands.tensor_code(g, x, flags, where), dtype)
    variant: base.Variant = rt_entry.select_variant(entry, key)
    if unlikely(i64(variant) <= 0):
        return variant
    array: capi.Ndarray = load(ptr, where, 0)
    rank = i64(array.ndim)
    along = rt_arguments.position(axis, rank)
    if unlikely(rank > base.MAX_RANK or (along == rt_arguments.BAD and axis != capi.Py_None)):
        return Outcome.FALL_BACK
    capi.incref(array)  # copies and loops may run without the GIL
    if axis == capi.Py_None:
        result = scan_flattened(variant, array, rank, g)
    else:
        result = scan_axis(variant, array, rank, along, g)
    capi.decref(array)
    tensor = rt_entry.finish(entry, result)
    return rt_record.finish_call(entry, flags, stack_of(x, axis, tensor), 2)


@native
def scan_flattened(variant: base.Variant, array: capi.Ndarray, rank: i64, g: ptr) -> ptr:
    """Scan all elements in row-major order; elements that are not contiguous are copied first."""
    total, source = rt_layouts.count_elements(array.dims, rank), array
    dims, size = stack_of(total), variant.itemsize
    if rank > 1 and (array.flags & capi.C_CONTIGUOUS) == 0:
        source = rt_copies.copy_contiguous(g, array, 1, dims)
        if unlikely(source == NULL):
            return Outcome.RETRY
    made: capi.Ndarray = rt_memory.new_array(g, variant.descr, 1, dims, total * size)
    if likely(made != NULL):
        step = load(i64, array.strides, 0) if rank == 1 else rt_layouts.item_size(array)
        pointers = stack_of(capi.Ndarray(source).data, made.data)
        rt_layouts.run_flat(variant, stack_of(source), pointers, total, stack_of(0, step, 0, size))
    if source != array:
        capi.decref(source)
    return made if made != NULL else ptr(Outcome.RETRY)


@native
def scan_axis(variant: base.Variant, array: capi.Ndarray, rank: i64, along: i64, g: ptr) -> ptr:
    """Scan along one axis."""
    dims, steps = array.dims, array.strides
    shape, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 16)
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
    if likely(step != 0):
        saved = rt_gil.release_gil(step >= variant.release * variant.itemsize)
        pointers = stack_of(array.data, made.data)
        rt_layouts.run_nest(variant.loop, pointers, shape, strides, rank, variant)
        rt_gil.acquire_gil(saved)
    return made
