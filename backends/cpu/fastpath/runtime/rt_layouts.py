"""Native runtime: sizes and strides of arrays, and loop nests over `NARGS` operands."""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import i64, load, native, ptr, stack, stack_of, store, unlikely
from . import capi, rt_gil
from . import rt_base as base

SHORT_ROW: i64 = 4  # elements of a last axis that is exchanged for a longer one
TIMES_LONGER: i64 = 8  # how much longer that one is at least


@native
def item_size(array: capi.Ndarray) -> i64:
    return capi.Descr(array.descr).itemsize


@native
def count_elements(dims: ptr, rank: i64) -> i64:
    total: i64 = 1
    for d in range(rank):
        total *= load(i64, dims, d * 8)
    return total


@native
def offset_of(dims: ptr, strides: ptr, rank: i64, index: i64) -> i64:
    """Return the offset in bytes of an element of some axes, which is numbered in row-major order."""
    result, rest = i64(0), index
    for k in range(rank):
        d = rank - 1 - k
        extent = load(i64, dims, d * 8)
        result += rest % extent * load(i64, strides, d * 8)
        rest = rest // extent
    return result


@native
def write_row_major_strides(to: ptr, gap: i64, shape: ptr, rank: i64, size: i64) -> i64:
    """Write the strides of contiguous memory, `gap` bytes apart; return its size in bytes."""
    step = size
    for k in range(rank):
        d = rank - 1 - k
        store(i64, to, d * gap, step)
        step *= load(i64, shape, d * 8)
    return step


@native
def can_broadcast(array: capi.Ndarray, dims: ptr, rank: i64) -> bool:
    """Return whether an array broadcasts to the given sizes."""
    own = i64(array.ndim)
    if own > rank:
        return False
    for d in range(own):
        size = load(i64, array.dims, d * 8)
        if size != 1 and size != load(i64, dims, (rank - own + d) * 8):
            return False
    return True


@native
def merge_sizes(array: capi.Ndarray, own: i64, shape: ptr, rank: i64) -> bool:
    """Broadcast a shape with the first `own` sizes of an array; return false if they do not fit."""
    for d in range(own):
        size, at = load(i64, array.dims, d * 8), (rank - own + d) * 8
        if size != 1 and load(i64, shape, at) != size:
            if load(i64, shape, at) != 1:
                return False
            store(i64, shape, at, size)
    return True


@native
def has_layout(array: capi.Ndarray, data: ptr, dims: ptr, strides: ptr, rank: i64) -> bool:
    """Return whether an array has each element at the address that a layout gives."""
    return bool(
        array.data == data
        and i64(array.ndim) == rank
        and equal_integers(array.dims, dims, rank)
        and equal_integers(array.strides, strides, rank)
    )


@native
def has_same_shape(array: capi.Ndarray, other: capi.Ndarray, rank: i64) -> bool:
    if array == other:
        return True
    return i64(array.ndim) == rank and equal_integers(array.dims, other.dims, rank)


@native
def equal_integers(one: ptr, two: ptr, count: i64) -> bool:
    for i in range(count):
        if load(i64, one, i * 8) != load(i64, two, i * 8):
            return False
    return True


@native
def fill_integers(to: ptr, count: i64, value: i64) -> None:
    for k in range(count):
        store(i64, to, k * 8, value)


@native
def write_bounds(array: capi.Ndarray, bounds: ptr) -> bool:
    """Write the addresses of an array's first byte in memory and of the end; return whether there are any elements."""
    return write_bounds_at(array.data, array.dims, array.strides, i64(array.ndim), item_size(array), bounds)


@native
def write_bounds_at(data: ptr, dims: ptr, strides: ptr, rank: i64, size: i64, bounds: ptr) -> bool:
    """Write the bounds of the elements of `size` bytes at an address; return whether there are any."""
    low, high = i64(data), i64(data)
    for d in range(rank):
        length = load(i64, dims, d * 8)
        if length == 0:
            return False
        step = (length - 1) * load(i64, strides, d * 8)
        low += step if step < 0 else 0
        high += step if step > 0 else 0
    store(i64, bounds, 0, low)
    store(i64, bounds, 8, high + size)
    return True


@native
def run_flat(variant: base.Variant, arrays: ptr, pointers: ptr, count: i64, strides: ptr) -> None:
    """Run the loop over one row, without the GIL if it is long."""
    is_long = count >= variant.release
    if unlikely(is_long):
        capi.hold_all(arrays, base.NIN)
    saved = rt_gil.release_gil(is_long)
    dsl.call_void(variant.loop, pointers, stack_of(1, count), strides, variant)
    rt_gil.acquire_gil(saved)
    if unlikely(is_long):
        capi.release_all(arrays, base.NIN)


@native
def operand_strides(array: capi.Ndarray, own: i64, rank: i64, to: ptr) -> None:
    """Write the first `own` strides of an array over a shape of rank `rank`, NARGS * 8 bytes apart.

    They are 0 along broadcast axes. The array of a number is NULL, and `own` is 0.
    """
    for d in range(rank):
        store(i64, to, d * base.NARGS * 8, 0)
    for d in range(own):
        if load(i64, array.dims, d * 8) != 1:
            store(i64, to, (rank - own + d) * base.NARGS * 8, load(i64, array.strides, d * 8))


@native
def coalesce(shape: ptr, strides: ptr, rank: i64) -> i64:
    """Merge adjacent axes that every operand traverses as one; drop axes of size 1; return the rank (at least 1)."""
    used: i64 = 0
    for d in range(rank):
        size = load(i64, shape, d * 8)
        if size != 1:
            if used > 0 and can_merge_axes(strides, used - 1, d, size):
                store(i64, shape, used * 8 - 8, load(i64, shape, used * 8 - 8) * size)
                used -= 1
            else:
                store(i64, shape, used * 8, size)
            for i in range(base.NARGS):
                store(i64, strides, (used * base.NARGS + i) * 8, load(i64, strides, (d * base.NARGS + i) * 8))
            used += 1
    return used


@native
def can_merge_axes(strides: ptr, outer: i64, inner: i64, size: i64) -> bool:
    for i in range(base.NARGS):
        step = load(i64, strides, (inner * base.NARGS + i) * 8)
        if load(i64, strides, (outer * base.NARGS + i) * 8) != size * step:
            return False
    return True


@native
def swap(values: ptr, one: i64, other: i64) -> None:
    kept = load(i64, values, one * 8)
    store(i64, values, one * 8, load(i64, values, other * 8))
    store(i64, values, other * 8, kept)


@native
def swap_axes(shape: ptr, strides: ptr, one: i64, other: i64) -> None:
    """Exchange two axes of all operands."""
    swap(shape, one, other)
    for i in range(base.NARGS):
        swap(strides, one * base.NARGS + i, other * base.NARGS + i)


@native
def move_long_axis_last(shape: ptr, strides: ptr, rank: i64) -> None:
    """Exchange a short last axis for the longest one: a row costs as much as some elements."""
    last, longest = rank - 1, rank - 1
    if rank < 2 or load(i64, shape, last * 8) > SHORT_ROW:
        return
    for axis in range(last):
        if load(i64, shape, axis * 8) > load(i64, shape, longest * 8):
            longest = axis
    if load(i64, shape, longest * 8) > TIMES_LONGER * load(i64, shape, last * 8):
        swap_axes(shape, strides, longest, last)


@native
def run_strided(
    variant: base.Variant, arrays: ptr, pointers: ptr, shape: ptr, strides: ptr, rank: i64, total: i64
) -> None:
    """Run the loop over all axes, `total` bytes of the result, without the GIL if it is long."""
    rank = coalesce(shape, strides, rank)
    move_long_axis_last(shape, strides, rank)
    capi.hold_all(arrays, base.NIN)
    saved = rt_gil.release_gil(total >= variant.release * variant.itemsize)
    run_nest(variant.loop, pointers, shape, strides, rank, variant)
    rt_gil.acquire_gil(saved)
    capi.release_all(arrays, base.NIN)


@native
def run_nest(loop: ptr, pointers: ptr, shape: ptr, strides: ptr, rank: i64, context: ptr) -> None:
    """Iterate over the outer axes and call the loop for the two inner ones."""
    rows = load(i64, shape, rank * 8 - 16) if rank > 1 else 1
    sizes = stack_of(rows, load(i64, shape, rank * 8 - 8) if rank > 0 else 1)
    outer, index, inner = rank - 2, stack(base.MAX_RANK * 8), stack(base.NARGS * 16)
    for i in range(base.NARGS):
        near = strides + ((rank - 1) * base.NARGS + i) * 8
        store(i64, inner, i * 16, load(i64, near, -8 * base.NARGS) if rank > 1 else 0)
        store(i64, inner, i * 16 + 8, load(i64, near) if rank > 0 else 0)
    fill_integers(index, outer, 0)
    more = True
    while more:
        dsl.call_void(loop, pointers, sizes, inner, context)
        more = advance(pointers, shape, strides, index, outer)


@native
def advance(pointers: ptr, shape: ptr, strides: ptr, index: ptr, outer: i64) -> bool:
    """Step the outer axes like an odometer; return false after the last step."""
    d = outer - 1
    while d >= 0:
        at = load(i64, index, d * 8) + 1
        back = at == load(i64, shape, d * 8)
        for i in range(base.NARGS):
            step = load(i64, strides, (d * base.NARGS + i) * 8)
            moved = load(ptr, pointers, i * 8) + (step * (1 - at) if back else step)
            store(ptr, pointers, i * 8, moved)
        store(i64, index, d * 8, 0 if back else at)
        if not back:
            return True
        d -= 1
    return False
