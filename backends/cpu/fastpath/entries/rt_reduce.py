"""The native entry of all reductions, `op(x, axis=None, *, keepdims=False, dtype=None)`.

It splits the axes into kept and folded ones, merges adjacent ones, and passes the innermost kept one and two folded
ones to the loop (`codegen.folds.eager`); an odometer steps through the other kept ones.
"""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, stack_of, store, unlikely
from ..compiler.structs import Struct, array, at, sizeof
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
from . import rt_copies


class FoldVariant(base.Variant):
    """The variant of a reduction or a scan; its properties replace the fields of scalars."""

    ordered: i64 = at(32)  # 1: the bits depend on the order, as those of float sums and products
    empty: i64 = at(56)  # 1: an empty fold has a value
    index: i64 = at(72)  # 1: argmax and argmin, which take one axis and no tuple


class FoldAxes(Struct):
    """The kept or the folded axes: the innermost at index LAST, and axes of size 1 if there are less than two."""

    rank: i64
    sizes: ptr = array(base.MAX_RANK)
    strides: ptr = array(2 * base.MAX_RANK)  # per axis: of the input, of the output


LAST: i64 = base.MAX_RANK - 1


@rt_entry.entry(converts=0, at_level=rt_batches.run_at_level)
def reduction(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of reductions.

    Python twin: backends/cpu/kernels/folds.py:reduction_kernel
    """
    g, x = entry.globals_, load(ptr, args, 0)
    # x, axis, keepdims; then the result, and dtype
    values = stack_of(x, capi.Py_None, capi.Py_False, NULL, capi.Py_None)
    if unlikely(count < 1 or not rt_arguments.read_named(entry, args, count, kwnames, values + 8)):
        return Outcome.FALL_BACK
    where, axis, keep, dtype = stack(8), load(ptr, values, 8), load(ptr, values, 16), load(ptr, values, 32)
    key = fold_key(entry, rt_operands.tensor_code(g, x, flags, where), dtype)
    if unlikely(dtype != capi.Py_None and base.has_history(g, x, flags)):
        return Outcome.FALL_BACK
    variant: FoldVariant = rt_entry.select_variant(entry, key)
    if unlikely(i64(variant) <= 0):
        return variant
    array: capi.Ndarray = load(ptr, where, 0)
    folded = rt_arguments.folded_axes(axis, i64(array.ndim))
    if unlikely(
        folded == rt_arguments.BAD
        or keep not in (capi.Py_False, capi.Py_True)
        or (variant.index != 0 and capi.type_of(axis) == capi.PyTuple_Type)
    ):
        return Outcome.FALL_BACK
    tensor = rt_entry.finish(entry, reduce(variant, array, folded, keep == capi.Py_True, g))
    store(ptr, values, 24, tensor)
    return rt_record.finish_call(entry, flags, values, 3)


@native
def fold_key(entry: base.OperatorEntry, code: i64, dtype: ptr) -> i64:
    """Return the key of a fold of elements with a code to a result of the default dtype, or of `dtype`; or FOREIGN."""
    if likely(dtype == capi.Py_None) or code < 0:
        return code
    to = rt_arguments.given_dtype(entry, dtype)
    return code | (to + 1) << base.CODE_BITS if to >= 0 else base.FOREIGN


@native
def reduce(variant: FoldVariant, array: capi.Ndarray, folded: i64, keepdims: bool, g: ptr) -> ptr:
    """Return the result's array, or an `Outcome`."""
    rank, dims, shape = i64(array.ndim), array.dims, stack(base.MAX_RANK * 8)
    kept: FoldAxes = stack(sizeof(FoldAxes))
    rest: FoldAxes = stack(sizeof(FoldAxes))
    size = variant.itemsize
    out_rank, total, many = i64(0), i64(1), i64(1)
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
    collect_axes(array, folded, 0, size, kept)
    collect_axes(array, folded, 1, 0, rest)
    by_columns, inner = keeps_last(dims, rank, folded), rt_layouts.item_size(array)
    if variant.ordered == 0:
        by_columns = 0
        move_contiguous_axis_first(rest, inner)
    if by_columns != 0 or load(i64, rest.strides, LAST * 16) != inner:
        move_contiguous_axis_first(kept, inner)
    if many == 0:
        collect_axes(array, 0, 1, 0, rest)
        rest.rank = 1
        store(i64, rest.sizes, LAST * 8, 0)
    if unlikely(rest.rank > 2 - (by_columns | variant.index)):
        return reduce_copy(variant, array, folded, keepdims, g)
    result: capi.Ndarray = rt_memory.new_array(g, variant.descr, out_rank, shape, total * size)
    if unlikely(result == NULL):
        return Outcome.RETRY
    if likely(total != 0):
        capi.incref(array)
        saved = rt_gil.release_gil(total * many >= variant.release)
        run_folds(variant, array.data, result.data, kept, rest, by_columns)
        rt_gil.acquire_gil(saved)
        capi.decref(array)
    return result


@noinline
def reduce_copy(variant: FoldVariant, array: capi.Ndarray, folded: i64, keepdims: bool, g: ptr) -> ptr:
    """Reduce a contiguous copy, in which more of the folded axes merge."""
    if array.flags & capi.C_CONTIGUOUS != 0:
        return Outcome.FALL_BACK
    copy = rt_copies.copy_contiguous(g, array, i64(array.ndim), array.dims)
    if unlikely(copy == NULL):
        return Outcome.RETRY
    result = reduce(variant, copy, folded, keepdims, g)
    capi.decref(copy)
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
def collect_axes(array: capi.Ndarray, folded: i64, which: i64, size: i64, axes: FoldAxes) -> None:
    """Write the kept (0) or folded (1) axes; neighbours are merged, and axes of size 1 dropped."""
    rank, used, out_step = i64(array.ndim), i64(0), size
    for k in range(2):
        store_axis(axes, LAST - k, 1, 0, 0)
    for k in range(rank):
        d = rank - 1 - k
        extent, step = load(i64, array.dims, d * 8), load(i64, array.strides, d * 8)
        if (folded >> d) & 1 == which and extent != 1:
            at = LAST - used
            if used > 0 and load(i64, axes.sizes, at * 8 + 8) * load(i64, axes.strides, at * 16 + 16) == step:
                store(i64, axes.sizes, at * 8 + 8, load(i64, axes.sizes, at * 8 + 8) * extent)
            else:
                store_axis(axes, at, extent, step, out_step)
                used += 1
            out_step *= extent
    axes.rank = used


@native
def store_axis(axes: FoldAxes, at: i64, size: i64, step: i64, out_step: i64) -> None:
    store(i64, axes.sizes, at * 8, size)
    store(i64, axes.strides, at * 16, step)
    store(i64, axes.strides, at * 16 + 8, out_step)


@native
def move_contiguous_axis_first(axes: FoldAxes, size: i64) -> None:
    """Swap the innermost kept axis with the contiguous one, so that a loop folds memory neighbours together."""
    for k in range(1, axes.rank):
        at = LAST - k
        if load(i64, axes.strides, at * 16) == size:
            rt_layouts.swap(axes.sizes, LAST, at)
            rt_layouts.swap(axes.strides, 2 * LAST, 2 * at)
            rt_layouts.swap(axes.strides, 2 * LAST + 1, 2 * at + 1)
            return


@native
def run_folds(
    variant: FoldVariant, source: ptr, out: ptr, kept: FoldAxes, rest: FoldAxes, by_columns: i64
) -> None:
    """Call the loop for the innermost axes, and step through the others."""
    over, near = kept.sizes + LAST * 8, kept.strides + LAST * 16
    folds, far = rest.sizes + LAST * 8, rest.strides + LAST * 16
    sizes = stack_of(load(i64, over), load(i64, folds), by_columns, load(i64, folds, -8))
    strides = stack_of(load(i64, near), load(i64, near, 8), load(i64, far), load(i64, far, -16))
    pointers, index, rank = stack_of(source, out), stack(base.MAX_RANK * 8), kept.rank - 1
    rt_layouts.fill_integers(index, rank, 0)
    more = True
    while more:
        start, to = load(ptr, pointers, 0), load(ptr, pointers, 8)
        dsl.call_void(variant.loop, start, to, sizes, strides, variant)
        more = rt_layouts.advance(pointers, over - rank * 8, near - rank * 16, index, rank)
