"""Native entry: write the slices or the elements at positions along an axis of a tensor, or add to them, in place.

The tensor is `lead` blocks of `size` rows of `width` elements. Positions are one for each row that is written, or for
each element of these rows.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, f32, f64, i32, i64, likely, load, native, noinline, ptr, store, unlikely
from ..runtime import capi, rt_arguments, rt_entry, rt_layouts, rt_operands, rt_outputs
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_gathers

READ = capi.C_CONTIGUOUS | capi.ALIGNED  # flags that arrays need
WRITTEN = READ | capi.WRITEABLE


@rt_entry.entry(records=False, count=5)
def write_rows(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `write_rows(x, axis, index, source, adds)`.

    Python twin: eager/tensor/inplace.py:write_rows
    """
    g, x = entry.globals_, load(ptr, args, 0)
    array: capi.Ndarray = rt_operands.plain_array(g, x, flags)
    index: capi.Ndarray = rt_operands.plain_array(g, load(ptr, args, 16), flags)
    source: capi.Ndarray = rt_operands.plain_array(g, load(ptr, args, 24), flags)
    if unlikely(array == NULL or index == NULL or source == NULL):
        return Outcome.FALL_BACK
    adds = load(ptr, args, 32) == capi.Py_True
    code, axis = rt_operands.array_code(g, array), rt_arguments.position(load(ptr, args, 8), i64(array.ndim))
    if unlikely(
        (array.flags & WRITTEN) != WRITTEN
        or (source.flags & READ) != READ
        or array.descr != source.descr
        or axis == rt_arguments.BAD
        or (adds and not can_add(code))
        or not fits(array, index, source, axis)
        or not rt_outputs.have_no_overlap(index, array)
        or not rt_outputs.have_no_overlap(source, array)
    ):
        return Outcome.FALL_BACK
    return write_positions(g, x, array, index, source, axis, code if adds else i64(base.FOREIGN))


@native
def can_add(code: i64) -> bool:
    return code in (base.FLOAT32, base.FLOAT64, base.INT32, base.INT64)


@native
def fits(array: capi.Ndarray, index: capi.Ndarray, source: capi.Ndarray, axis: i64) -> bool:
    """Return whether a source has the shape of the target but for the axis, and an index has it, or is a vector."""
    rank = i64(array.ndim)
    if i64(source.ndim) != rank:
        return False
    for d in range(rank):
        if d != axis and load(i64, source.dims, d * 8) != load(i64, array.dims, d * 8):
            return False
    if i64(index.ndim) == 1:
        return load(i64, index.dims, 0) == load(i64, source.dims, axis * 8)
    return i64(index.ndim) == rank and rt_layouts.equal_integers(index.dims, source.dims, rank)


@noinline
def write_positions(
    g: ptr, x: ptr, array: capi.Ndarray, index: capi.Ndarray, source: capi.Ndarray, axis: i64, code: i64
) -> ptr:
    """Check all positions, then write; return the tensor, or an `Outcome`."""
    kind = rt_operands.array_code(g, index)
    if kind < base.INT8 or kind > base.UINT64:
        return Outcome.FALL_BACK
    rank, total = i64(array.ndim), rt_layouts.count_elements(index.dims, i64(index.ndim))
    size, count = load(i64, array.dims, axis * 8), load(i64, source.dims, axis * 8)
    positions = capi.PyMem_RawMalloc(total * 8 + 8)
    if unlikely(positions == NULL):
        return Outcome.FALL_BACK  # Python raises the error
    result: ptr = Outcome.FALL_BACK
    if likely(rt_gathers.read_positions(index, kind, 0, total, size, positions)):
        result = ptr(0)
        if likely(rt_outputs.bump_version(g, x, array)):
            lead = rt_layouts.count_elements(array.dims, axis)
            width = rt_layouts.count_elements(array.dims + axis * 8 + 8, rank - axis - 1)
            item = rt_layouts.item_size(array)
            for block in range(lead):
                to, given = (
                    array.data + block * size * width * item,
                    source.data + block * count * width * item,
                )
                if i64(index.ndim) == 1:
                    write_block(to, given, positions, count, width, item, code)
                else:
                    write_elements(to, given, positions + block * count * width * 8, count, width, item, code)
            result = capi.new_ref(x)
    capi.PyMem_RawFree(positions)
    return result


@native
def write_block(to: ptr, given: ptr, positions: ptr, count: i64, width: i64, item: i64, code: i64) -> None:
    """Write rows, each at its position."""
    for k in range(count):
        write_run(
            to + load(i64, positions, k * 8) * width * item, given + k * width * item, width, item, code
        )


@native
def write_elements(to: ptr, given: ptr, positions: ptr, count: i64, width: i64, item: i64, code: i64) -> None:
    """Write rows whose elements each have a position."""
    for k in range(count):
        for column in range(width):
            at = k * width + column
            target = to + (load(i64, positions, at * 8) * width + column) * item
            write_run(target, given + at * item, 1, item, code)


@native
def write_run(to: ptr, given: ptr, width: i64, item: i64, code: i64) -> None:
    """Copy elements, or add them in place where a code of their dtype is given."""
    if code == base.FLOAT32:
        for i in range(width):
            store(f32, to, i * 4, load(f32, to, i * 4) + load(f32, given, i * 4))
    elif code == base.FLOAT64:
        for i in range(width):
            store(f64, to, i * 8, load(f64, to, i * 8) + load(f64, given, i * 8))
    elif code == base.INT64:
        for i in range(width):
            store(i64, to, i * 8, load(i64, to, i * 8) + load(i64, given, i * 8))
    elif code == base.INT32:
        for i in range(width):
            store(i32, to, i * 4, load(i32, to, i * 4) + load(i32, given, i * 4))
    elif width * item == 8:
        store(i64, to, 0, load(i64, given, 0))
    else:
        capi.memcpy(to, given, width * item)
