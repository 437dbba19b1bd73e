"""The native entry of all reductions, `op(x, axis=None, *, keepdims=False)`.

It splits the axes into kept and folded ones, merges adjacent ones, and passes the innermost of each to the fold loop
(see `rt_folds`); an odometer steps through the others.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, call_void, i32, i64, likely, load, native, ptr, stack, store, unlikely
from ..compiler.structs import at
from ..runtime import capi, rt_entry, rt_gil, rt_memory, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

# The names of the keywords, by their index in `OperatorEntry.names`
AXIS, KEEPDIMS, COPY_NAME, DTYPE_NAME = 0, 1, 2, 3


class FoldVariant(base.Variant):
    """The variant of a reduction or a scan; its properties replace the fields of scalars."""

    ordered: i64 = at(32)  # 1: float sums and products, whose loop may take two folded axes
    empty: i64 = at(56)  # 1: an empty fold has a value
    single: i64 = at(64)  # 1: the folded axes must merge into one
    index: i64 = at(72)  # 1: argmax and argmin, which take one axis and no tuple


BAD: i64 = -1


@rt_entry.entry
def reduction(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of reductions.

    Python twin: backends/cpu/kernels/folds.py:reduction_kernel
    """
    g = entry.globals_
    given = stack(16)
    if unlikely(count < 1 or count > 2 or not read_arguments(entry, args, count, kwnames, given)):
        return Outcome.FALL_BACK
    where = stack(8)
    code = rt_operands.operand_code(g, load(ptr, args, 0), flags, where)
    array: capi.Ndarray = load(ptr, where, 0)
    if unlikely(code < 0 or array == NULL):
        return Outcome.FALL_BACK
    rank = i64(array.ndim)
    folded = folded_axes(load(ptr, given, AXIS * 8), rank)
    variant: FoldVariant = base.find_variant(entry, code)
    if unlikely(variant == NULL):
        return Outcome.MISS
    keep = load(ptr, given, KEEPDIMS * 8)
    if unlikely(variant.index != 0 and capi.type_of(load(ptr, given, AXIS * 8)) == capi.PyTuple_Type):
        return Outcome.FALL_BACK
    if unlikely(folded == BAD or (keep != capi.Py_False and keep != capi.Py_True) or variant.loop == NULL):
        return Outcome.FALL_BACK
    tensor = rt_entry.finish(entry, reduce(variant, array, rank, folded, keep == capi.Py_True, g))
    if unlikely(base.has_history(g, load(ptr, args, 0), flags)):
        values = stack(32)
        store(ptr, values, 0, load(ptr, args, 0))
        store(ptr, values, 8, load(ptr, given, AXIS * 8))
        store(ptr, values, 16, keep)
        return rt_record.record_call(entry, values, 3, tensor)
    return tensor


@native
def read_arguments(
    entry: base.OperatorEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, given: ptr
) -> bool:
    """Read axis and keepdims, by position, by name, or their defaults; return false for any other argument."""
    store(ptr, given, AXIS * 8, load(ptr, args, 8) if count == 2 else capi.Py_None)
    store(ptr, given, KEEPDIMS * 8, capi.Py_False)
    if likely(kwnames == NULL):
        return True
    names = entry.names
    for k in range(kwnames.size):
        name = load(ptr, kwnames, capi.PyTuple.items + k * 8)
        value = load(ptr, args, (count + k) * 8)
        if name == load(ptr, names, capi.PyTuple.items + KEEPDIMS * 8):
            store(ptr, given, KEEPDIMS * 8, value)
        elif name == load(ptr, names, capi.PyTuple.items + AXIS * 8) and count == 1:
            store(ptr, given, AXIS * 8, value)
        else:
            return False
    return True


@native
def axis_number(x: ptr, rank: i64) -> i64:
    """Return a non-negative axis, or BAD."""
    if capi.type_of(x) != capi.PyLong_Type:
        return BAD
    overflow = stack(4)
    axis = capi.PyLong_AsLongLongAndOverflow(x, overflow)
    if axis < 0:
        if unlikely(axis == -1) and capi.PyErr_Occurred() != NULL:
            capi.PyErr_Clear()
            return BAD
        axis += rank
    return axis if axis >= 0 and axis < rank and load(i32, overflow, 0) == 0 else BAD


@native
def folded_axes(axis: capi.PyVarObject, rank: i64) -> i64:
    """Return the folded axes as bits, or BAD."""
    if rank > base.MAX_RANK:
        return BAD
    if axis == capi.Py_None:
        return (1 << rank) - 1
    if capi.type_of(axis) != capi.PyTuple_Type:
        one = axis_number(axis, rank)
        return 1 << one if one != BAD else BAD
    bits: i64 = 0
    for k in range(axis.size):
        number = axis_number(load(ptr, axis, capi.PyTuple.items + k * 8), rank)
        if number == BAD or (bits >> number) & 1 != 0:
            return BAD
        bits |= 1 << number
    return bits


@native
def reduce(variant: FoldVariant, array: capi.Ndarray, rank: i64, folded: i64, keepdims: bool, g: ptr) -> ptr:
    """Return the result's array, or an `Outcome`."""
    dims, steps = array.dims, array.strides
    shape = stack(base.MAX_RANK * 8)
    kept, rest = stack(base.MAX_RANK * 24), stack(base.MAX_RANK * 24)
    size = variant.itemsize
    out_rank: i64 = 0
    total: i64 = 1
    many: i64 = 1
    for d in range(rank):
        inside = (folded >> d) & 1
        extent: i64 = load(i64, dims, d * 8)
        if inside != 0:
            many *= extent
            extent = 1
        total *= extent
        if inside == 0 or keepdims:
            store(i64, shape, out_rank * 8, extent)
            out_rank += 1
    if unlikely(many == 0 and variant.empty == 0):
        return Outcome.FALL_BACK
    kept_rank = collect_axes(dims, steps, rank, folded, 0, size, kept)
    rest_rank = collect_axes(dims, steps, rank, folded, 1, 0, rest)
    by_columns = keeps_last(dims, rank, folded)
    if variant.ordered != 0 and (by_columns != 0 or load(i64, rest, 8) != size):
        move_contiguous_axis_first(kept, kept_rank, size)
    if many == 0:
        store(i64, rest, 0, 0)
        rest_rank = 1
    ordered = variant.ordered
    if unlikely(ordered != 0 and rest_rank > 2 - by_columns):
        return Outcome.FALL_BACK
    if unlikely(ordered == 0 and rest_rank > 1 and variant.single != 0):
        return Outcome.FALL_BACK
    result: capi.Ndarray = rt_memory.new_array(g, variant.descr, out_rank, shape, total * size)
    if unlikely(result == NULL):
        return Outcome.RETRY
    if likely(total != 0):
        source, out = array.data, result.data
        capi.incref(array)
        saved = rt_gil.release_gil(total * many >= variant.release)
        run_folds(variant, source, out, kept, kept_rank, rest, rest_rank, by_columns)
        rt_gil.acquire_gil(saved)
        capi.decref(array)
    return result


@native
def keeps_last(dims: ptr, rank: i64, folded: i64) -> i64:
    """Return 1 if the last axis with more than one element is kept, else 0.

    It decides the order of float sums and products.
    """
    d = rank - 1
    while d >= 0 and load(i64, dims, d * 8) == 1:
        d -= 1
    return 1 if d >= 0 and (folded >> d) & 1 == 0 else 0


@native
def collect_axes(dims: ptr, steps: ptr, rank: i64, folded: i64, which: i64, size: i64, to: ptr) -> i64:
    """Write the kept (0) or folded (1) axes, innermost first: size, input stride, output stride; neighbours merged."""
    used: i64 = 0
    out_step = size
    for k in range(rank):
        d = rank - 1 - k
        extent, step = load(i64, dims, d * 8), load(i64, steps, d * 8)
        if (folded >> d) & 1 == which and extent != 1:
            last = to + (used - 1) * 24
            if used > 0 and load(i64, last, 0) * load(i64, last, 8) == step:
                store(i64, last, 0, load(i64, last, 0) * extent)
            else:
                store(i64, to, used * 24, extent)
                store(i64, to, used * 24 + 8, step)
                store(i64, to, used * 24 + 16, out_step)
                used += 1
            out_step *= extent
    return used


@native
def move_contiguous_axis_first(axes: ptr, rank: i64, size: i64) -> None:
    """Swap the innermost kept axis with the contiguous one, so that a loop folds memory neighbours together."""
    for d in range(1, rank):
        if load(i64, axes, d * 24 + 8) == size:
            for part in range(3):
                value = load(i64, axes, part * 8)
                store(i64, axes, part * 8, load(i64, axes, d * 24 + part * 8))
                store(i64, axes, d * 24 + part * 8, value)
            return


@native
def run_folds(
    variant: FoldVariant,
    source: ptr,
    out: ptr,
    kept: ptr,
    kept_rank: i64,
    rest: ptr,
    rest_rank: i64,
    by_columns: i64,
) -> None:
    sizes, strides = stack(32), stack(32)
    store(i64, sizes, 16, by_columns)
    store(i64, sizes, 24, load(i64, rest, 24) if rest_rank > 1 else 1)
    store(i64, strides, 24, load(i64, rest, 32) if rest_rank > 1 else 0)
    if rest_rank > 1 and variant.ordered != 0:
        rest_rank = 1  # the loop folds both axes
    store(i64, sizes, 0, load(i64, kept, 0) if kept_rank > 0 else 1)
    store(i64, strides, 0, load(i64, kept, 8) if kept_rank > 0 else 0)
    store(i64, strides, 8, load(i64, kept, 16) if kept_rank > 0 else 0)
    store(i64, sizes, 8, load(i64, rest, 0) if rest_rank > 0 else 1)
    store(i64, strides, 16, load(i64, rest, 8) if rest_rank > 0 else 0)
    outer, inner = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    clear_index(outer)
    in_move, out_move = stack(8), stack(8)
    more = True
    while more:
        again: i64 = 0
        start = source
        clear_index(inner)
        going = True
        while going:
            call_void(variant.loop, start, out, sizes, strides, again, variant)
            again = 1
            going = step_axes(rest, rest_rank, inner, in_move, out_move)
            start += load(i64, in_move, 0)
        more = step_axes(kept, kept_rank, outer, in_move, out_move)
        source += load(i64, in_move, 0)
        out += load(i64, out_move, 0)


@native
def clear_index(index: ptr) -> None:
    for d in range(base.MAX_RANK):
        store(i64, index, d * 8, 0)


@native
def step_axes(axes: ptr, rank: i64, index: ptr, in_move: ptr, out_move: ptr) -> bool:
    """Step all axes but the innermost; write how far input and output move. Return false after the last step."""
    moved: i64 = 0
    out_moved: i64 = 0
    d: i64 = 1
    while d < rank:
        at = load(i64, index, d * 8) + 1
        extent, step, out_step = (
            load(i64, axes, d * 24),
            load(i64, axes, d * 24 + 8),
            load(i64, axes, d * 24 + 16),
        )
        if at < extent:
            store(i64, index, d * 8, at)
            store(i64, in_move, 0, moved + step)
            store(i64, out_move, 0, out_moved + out_step)
            return True
        store(i64, index, d * 8, 0)
        moved -= step * (extent - 1)
        out_moved -= out_step * (extent - 1)
        d += 1
    store(i64, in_move, 0, 0)
    store(i64, out_move, 0, 0)
    return False
