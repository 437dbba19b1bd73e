"""Native entries: sizes and strides of `reshape(x, shape)`."""

from __future__ import annotations

from ..compiler.dsl import i64, load, native, ptr, stack, store
from ..runtime import capi
from ..runtime import rt_base as base

REFUSED: i64 = -1  # Python must run the call
VIEWED: i64 = 0
MOVED: i64 = 1  # the strides do not allow a view


@native
def reshape_strides(array: capi.Ndarray, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> i64:
    """Write sizes, and strides if the result can be a view. Empty arrays are left to Python.

    Python twin: operators/shape/views.py:reshaped_strides
    """
    if array.ndim > base.MAX_RANK or not fill_sizes(array, wanted, rank, dims):
        return REFUSED
    if (array.flags & capi.C_CONTIGUOUS) == 0:
        return VIEWED if regroup_strides(array, rank, dims, strides) else MOVED
    step = capi.Descr(array.descr).itemsize
    d = rank - 1
    while d >= 0:
        store(i64, strides, d * 8, step)
        step *= load(i64, dims, d * 8)
        d -= 1
    return VIEWED


@native
def fill_sizes(array: ptr, wanted: ptr, rank: i64, dims: ptr) -> bool:
    """Write the sizes, one of which may be -1; return false if they do not fit.

    Python twin: operators/shape/views.py:reshape_shape
    """
    total = count_elements(array)
    open_at: i64 = -1
    known: i64 = 1
    for d in range(rank):
        size = load(i64, wanted, d * 8)
        if size == -1 and open_at < 0:
            open_at = d
        elif size <= 0 or size > total:
            return False
        else:
            known *= size
            if known > total:
                return False
        store(i64, dims, d * 8, size)
    if total == 0 or total % known != 0 or (open_at < 0 and known != total):
        return False
    if open_at >= 0:
        store(i64, dims, open_at * 8, total // known)
    return True


@native
def count_elements(array: capi.Ndarray) -> i64:
    total: i64 = 1
    for d in range(i64(array.ndim)):
        total *= load(i64, array.dims, d * 8)
    return total


@native
def collect_long_axes(array: capi.Ndarray, sizes: ptr, steps: ptr) -> i64:
    """Write sizes and strides of the axes whose size is not 1; return their number."""
    used: i64 = 0
    for d in range(i64(array.ndim)):
        size = load(i64, array.dims, d * 8)
        if size != 1:
            store(i64, sizes, used * 8, size)
            store(i64, steps, used * 8, load(i64, array.strides, d * 8))
            used += 1
    return used


@native
def regroup_strides(array: capi.Ndarray, rank: i64, dims: ptr, strides: ptr) -> bool:
    """Write strides over the same memory, as NumPy's reshape; return false if the elements would have to move."""
    sizes, steps = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    own = collect_long_axes(array, sizes, steps)
    old, new = i64(0), i64(0)
    step = capi.Descr(array.descr).itemsize
    while new < rank and old < own:
        old_end, new_end = old + 1, new + 1
        had, want = load(i64, sizes, old * 8), load(i64, dims, new * 8)
        while had != want:
            if want < had:
                want *= load(i64, dims, new_end * 8)
                new_end += 1
            else:
                had *= load(i64, sizes, old_end * 8)
                old_end += 1
        for d in range(old, old_end - 1):
            if load(i64, steps, d * 8) != load(i64, sizes, d * 8 + 8) * load(i64, steps, d * 8 + 8):
                return False
        step = load(i64, steps, old_end * 8 - 8)
        write_group_strides(dims, strides, new, new_end, step)
        old, new = old_end, new_end
    for d in range(new, rank):  # the remaining axes have size 1
        store(i64, strides, d * 8, step)
    return True


@native
def write_group_strides(dims: ptr, strides: ptr, begin: i64, end: i64, step: i64) -> None:
    """Write strides of new axes that share the memory of one group of old ones."""
    d = end - 1
    while d >= begin:
        store(i64, strides, d * 8, step)
        step *= load(i64, dims, d * 8)
        d -= 1
