"""The native entry of `bincount`: the number of bins follows from the data, so that calls are never compiled.

Calls with ``length`` are, and others that it does not take run the eager kernel (`rt_kernels.array_kernel_call`).
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    alwaysinline,
    f32,
    f64,
    i64,
    likely,
    load,
    native,
    ptr,
    stack,
    store,
    u64,
    unlikely,
)
from ..runtime import capi, rt_entry, rt_gil, rt_layouts, rt_memory, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_gathers, rt_kernels

SELF: i64 = 0  # the arguments of `bincount`
WEIGHTS: i64 = 8
LEAST: i64 = 16
LENGTH: i64 = 24
NEGATIVE: i64 = -1
MOST_BINS: i64 = 1 << 40
MANY: i64 = 16384  # values that are counted without the GIL


@rt_entry.entry(records=False, converts=0)
def bincount(entry: rt_kernels.KernelEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `bincount`.

    Python twin: operators/reductions/histograms.py:_bincount_of_array
    """
    given = stack(rt_kernels.MOST_ARGUMENTS * 8)
    if likely(rt_kernels.complete_arguments(entry, args, count, kwnames, given)):
        is_plain = rt_kernels.is_plain_call(entry, given, entry.count, flags)
        result = count_call(entry.globals_, given) if is_plain else ptr(Outcome.FALL_BACK)
        if likely(i64(result) > 0):
            entry.calls += 1
            return base.make_tensor(entry.globals_, result)
    return rt_kernels.call_array_kernel(entry, args, count, kwnames, flags)


@native
def count_call(g: base.Globals, given: ptr) -> ptr:
    """Return the array of the counts or of the sums of weights of complete arguments, or an `Outcome`."""
    array, least = capi.Ndarray(base.TensorObject(load(ptr, given, SELF)).array), stack(8)
    code = rt_operands.array_code(g, array)
    known = rt_operands.write_scalar(load(ptr, given, LEAST), base.WEAK_INT, base.INT64, least)
    if unlikely(not known or load(ptr, given, LENGTH) != capi.Py_None or load(i64, least, 0) < 0):
        return Outcome.FALL_BACK
    if unlikely(
        array.ndim != 1 or code < base.INT8 or code > base.UINT64 or (array.flags & capi.ALIGNED) == 0
    ):
        return Outcome.FALL_BACK
    weights, kind, dtype = capi.Ndarray(ptr(0)), base.INT64, base.INT64
    if load(ptr, given, WEIGHTS) != capi.Py_None:
        if capi.type_of(load(ptr, given, WEIGHTS)) != g.tensor:
            return Outcome.FALL_BACK
        weights = capi.Ndarray(base.TensorObject(load(ptr, given, WEIGHTS)).array)
        kind = rt_operands.array_code(g, weights)
        dtype = kind if kind in (base.FLOAT32, base.FLOAT64) else g.default_float
        if kind < 0 or not has_sums(kind, dtype) or not rt_layouts.has_same_shape(array, weights, 1):
            return Outcome.FALL_BACK
        if weights.ndim != 1 or (weights.flags & capi.ALIGNED) == 0:
            return Outcome.FALL_BACK
    capi.incref(array)
    if weights != NULL:
        capi.incref(weights)
    result = count_in_bins(g, array, code, weights, kind, dtype, load(i64, least, 0))
    capi.release(weights)
    capi.decref(array)
    return result


@native
def has_sums(kind: i64, dtype: i64) -> bool:
    """Return whether weights of a dtype are summed here, as another one."""
    is_whole = kind <= base.UINT64
    return dtype in (base.FLOAT32, base.FLOAT64) and (is_whole or kind == dtype)


@native
def count_in_bins(
    g: base.Globals, array: capi.Ndarray, code: i64, weights: capi.Ndarray, kind: i64, dtype: i64, least: i64
) -> ptr:
    """Return the array of the results, or an `Outcome`."""
    count, step = load(i64, array.dims, 0), load(i64, array.strides, 0)
    saved = rt_gil.release_gil(count >= MANY)
    last = find_last(array.data, code, step, count)
    rt_gil.acquire_gil(saved)
    if last == NEGATIVE or last >= MOST_BINS:
        return Outcome.FALL_BACK  # Python raises
    bins = stack(8)
    size = last + 1 if count > 0 else i64(0)
    size = least if least > size else size
    store(i64, bins, 0, size)
    descr: capi.Descr = load(ptr, g.descrs, dtype * 8)
    made: capi.Ndarray = rt_memory.new_array(g, descr, 1, bins, size * descr.itemsize)
    if unlikely(made == NULL):
        capi.PyErr_Clear()
        return Outcome.FALL_BACK
    saved = rt_gil.release_gil(count + size >= MANY)
    capi.memset(made.data, 0, size * descr.itemsize)
    if weights != NULL:
        over = load(i64, weights.strides, 0)
        if likely(code == base.INT64 and kind == base.FLOAT64 and step == 8 and over == 8):
            add_weights(
                array.data, base.INT64, 8, count, weights.data, base.FLOAT64, 8, made.data, base.FLOAT64, size
            )
        else:
            add_weights(array.data, code, step, count, weights.data, kind, over, made.data, dtype, size)
    elif likely(code == base.INT64 and step == 8):
        add_ones(array.data, base.INT64, 8, count, made.data, size)
    else:
        add_ones(array.data, code, step, count, made.data, size)
    rt_gil.acquire_gil(saved)
    return made


@native
def find_last(source: ptr, code: i64, step: i64, count: i64) -> i64:
    """Return the largest of some integers; NEGATIVE if one is below 0."""
    if likely(code == base.INT64 and step == 8):
        return scan_values(source, base.INT64, 8, count)
    return scan_values(source, code, step, count)


@alwaysinline
def scan_values(source: ptr, code: i64, step: i64, count: i64) -> i64:
    most, seen = i64(0), i64(0)
    for i in range(count):
        value = rt_gathers.integer_at(source + i * step, code)
        seen = seen | value  # its sign is that of the least
        most = value if value > most else most
    return most if seen >= 0 else i64(NEGATIVE)


@alwaysinline
def add_ones(source: ptr, code: i64, step: i64, count: i64, to: ptr, size: i64) -> None:
    for i in range(count):
        value = rt_gathers.integer_at(source + i * step, code)
        if likely(value >= 0 and value < size):  # another thread may have written it since it was checked
            store(i64, to, value * 8, load(i64, to, value * 8) + 1)


@alwaysinline
def add_weights(
    source: ptr,
    code: i64,
    step: i64,
    count: i64,
    weights: ptr,
    kind: i64,
    over: i64,
    to: ptr,
    dtype: i64,
    size: i64,
) -> None:
    for i in range(count):
        value, at = rt_gathers.integer_at(source + i * step, code), weights + i * over
        if likely(value >= 0 and value < size):
            if dtype == base.FLOAT64:
                store(f64, to, value * 8, load(f64, to, value * 8) + double_at(at, kind))
            else:
                store(f32, to, value * 4, load(f32, to, value * 4) + single_at(at, kind))


@native
def double_at(at: ptr, kind: i64) -> f64:
    """Return a weight, a float64, an integer or a bool."""
    if kind == base.FLOAT64:
        return load(f64, at, 0)
    if kind == base.UINT64:
        return f64(load(u64, at, 0))
    return f64(rt_gathers.integer_at(at, kind))


@native
def single_at(at: ptr, kind: i64) -> f32:
    """Return a weight, a float32, an integer or a bool; rounded once."""
    if kind == base.FLOAT32:
        return load(f32, at, 0)
    if kind == base.UINT64:
        return f32(load(u64, at, 0))
    return f32(rt_gathers.integer_at(at, kind))
