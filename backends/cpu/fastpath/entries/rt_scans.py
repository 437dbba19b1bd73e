"""Native runtime: the entry of scans, `op(x, axis=None)`.

A scan is a nest of rows along the axis. Its loop (`codegen.eager_scans`) has the signature of elementwise loops, with
the axis innermost.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, call_void, i64, likely, load, native, ptr, stack, store, unlikely
from ..glue.layout import C_CONTIGUOUS, Ndarray
from .rt_arguments import axis_argument
from .rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    OperatorEntry,
    Py_None,
    allowed_flags,
    call_miss,
    decref,
    entry_data,
    fall_back,
    has_history,
    incref,
    make_tensor,
    retry_in_python,
    thread_flags,
)
from .rt_copies import copy_contiguous, item_size
from .rt_elementwise import MAX_RANK, Variant, find_variant, run_nest
from .rt_gil import acquire_gil, release_gil
from .rt_memory import new_array
from .rt_operands import operand_code
from .rt_record import record_call
from .rt_reduce import BAD, axis_number


@native
def scan(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of scans.

    Python twin: backends/cpu/kernels/folds.py:scan_kernel
    """
    desc: OperatorEntry = entry_data(self)
    g = desc.globals_
    flags = thread_flags(g)
    count = nargsf & ARGS_MASK
    axis = axis_argument(desc, args, count, kwnames, 1, Py_None)
    if unlikely(count < 1 or flags == ELSEWHERE or axis == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    flags = allowed_flags(desc, flags)
    where = stack(8)
    code = operand_code(g, load(ptr, args, 0), flags, where)
    array = load(ptr, where, 0)
    if unlikely(code < 0 or array == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    variant = find_variant(desc, code)
    if unlikely(variant == NULL):
        return call_miss(desc, args, nargsf, kwnames)
    incref(array)  # copies and loops may run without the GIL
    result = compute_scan(variant, array, axis, g)
    decref(array)
    if unlikely(result == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return retry_in_python(desc, args, nargsf, kwnames)
    desc.calls += 1
    tensor = make_tensor(g, result)
    if unlikely(has_history(g, load(ptr, args, 0), flags)):
        values = stack(24)
        store(ptr, values, 0, load(ptr, args, 0))
        store(ptr, values, 8, axis)
        return record_call(desc, values, 2, tensor)
    return tensor


@native
def compute_scan(variant: Variant, array: Ndarray, axis: ptr, g: ptr) -> ptr:
    """Return the result's array. NULL: Python must run the call; -1: an exception is set."""
    rank = i64(array.ndim)
    if variant.loop == NULL or rank > MAX_RANK:
        return NULL
    if axis == Py_None:
        return scan_flattened(variant, array, rank, g)
    along = axis_number(axis, rank)
    return scan_axis(variant, array, rank, along, g) if along != BAD else ptr(0)


@native
def scan_flattened(variant: Variant, array: Ndarray, rank: i64, g: ptr) -> ptr:
    """Scan all elements in row-major order; elements that are not contiguous are copied first."""
    dims, sizes, strides, pointers = stack(8), stack(16), stack(32), stack(16)
    total, source = i64(1), array
    for d in range(rank):
        total *= load(i64, array.dims, d * 8)
    store(i64, dims, 0, total)
    if rank > 1 and (array.flags & C_CONTIGUOUS) == 0:
        source = copy_contiguous(g, array, 1, dims)
        if unlikely(source == NULL):
            return ptr(-1)
    size = variant.itemsize
    made: Ndarray = new_array(g, variant.descr, 1, dims, total * size)
    if likely(made != NULL):
        store(ptr, pointers, 0, Ndarray(source).data)
        store(ptr, pointers, 8, made.data)
        store(i64, sizes, 0, 1)
        store(i64, sizes, 8, total)
        store(i64, strides, 8, load(i64, array.strides, 0) if rank == 1 else item_size(array))
        store(i64, strides, 24, size)
        saved = release_gil(total >= variant.release)
        call_void(variant.loop, pointers, sizes, strides, variant)
        acquire_gil(saved)
    if source != array:
        decref(source)
    return made if made != NULL else ptr(-1)


@native
def scan_axis(variant: Variant, array: Ndarray, rank: i64, along: i64, g: ptr) -> ptr:
    """Scan along one axis."""
    dims, steps = array.dims, array.strides
    shape, strides, pointers = stack(MAX_RANK * 8), stack(MAX_RANK * 16), stack(16)
    step = variant.itemsize
    for k in range(rank):
        d = rank - 1 - k
        at = rank - 1 if d == along else d if d < along else d - 1
        store(i64, shape, at * 8, load(i64, dims, d * 8))
        store(i64, strides, at * 16, load(i64, steps, d * 8))
        store(i64, strides, at * 16 + 8, step)
        step *= load(i64, dims, d * 8)
    made: Ndarray = new_array(g, variant.descr, rank, dims, step)
    if unlikely(made == NULL):
        return ptr(-1)
    store(ptr, pointers, 0, array.data)
    store(ptr, pointers, 8, made.data)
    if likely(step != 0):
        saved = release_gil(step >= variant.release * variant.itemsize)
        run_nest(variant.loop, pointers, shape, strides, rank, variant)
        acquire_gil(saved)
    return made
