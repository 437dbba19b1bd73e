"""Native runtime: convolutions by products of shifted planes, without a matrix of windows.

The planes of an item are copied once, with their padding; with strides, as one plane for each phase: the rows and
columns whose positions have the same remainder. A row of the result is given the width of such a plane, so that the
elements that one tap multiplies follow each other; the columns too many are dropped at the end. Where these would be
many, the planes are dense: each column of the kernel has its own, which have the width of the result.

The products are those of `codegen.shifted_tiles`, for up to TALLEST channels of the result at a time. Small planes are
multiplied a block of taps at a time, for all channels of the result of some items, so that planes are read from the
first cache and weights from the second; the chains of sums go on from block to block.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import (
    call_void,
    i64,
    load,
    native,
    noinline,
    ptr,
    stack_of,
    store,
    template,
)
from .rt_geometry import Geometry, at, plane_size, stride_of
from .rt_integers import smaller
from .rt_planes import SIZE, Lines, Plane, lines_copy, plane_copy
from .rt_tiles import PACKS, SHIFTED, VECTOR_BYTES, find_tile

TALLEST: i64 = template(8)  # channels of the highest tile
CHANNELS: i64 = 16  # whose weights are copied together


@native
def row_pitch(g: Geometry) -> i64:
    """Return the number of positions of a channel of the result, in whole vectors."""
    vector = VECTOR_BYTES // SIZE
    return (g.positions + vector - 1) // vector * vector


@native
def is_compact(g: Geometry) -> bool:
    """Return whether a channel of the result has whole vectors of positions, and no columns too many."""
    return bool(at(g.lengths, 2) == at(g.out, 2) and row_pitch(g) == g.indices)


@native
def is_dense_input(steps: ptr, g: Geometry) -> bool:
    """Return whether each index has one element of the input: a kernel of one element, and no padding.

    The elements of a channel are consecutive, and so are channels.
    """
    dense = load(i64, steps, 0) == g.indices * SIZE and g.taps == g.within
    step = i64(SIZE)
    for d in range(3):
        axis = 2 - d
        dense = dense and at(g.sizes, axis) == at(g.out, axis) and at(g.before, axis) == 0
        is_next = stride_of(steps, g.rank, axis) == step and at(g.stride, axis) == 1
        dense = dense and (is_next or at(g.sizes, axis) == 1)
        step *= at(g.sizes, axis)
    return bool(dense)


@native
def planes_size(g: Geometry) -> i64:
    """Return the elements of a group's planes of an item, and those that the last vector reads behind them."""
    return g.within * at(g.phases, 1) * at(g.phases, 2) * plane_size(g) + VECTOR_BYTES // SIZE


@native
def has_blocks(g: Geometry) -> bool:
    """Return whether taps are multiplied a block at a time."""
    return bool(g.depth < g.taps)


@native
def results_size(g: Geometry, items: i64) -> i64:
    """Return the elements of sums of some items that are kept before the columns too many are dropped."""
    return row_pitch(g) * (items * g.of_group if has_blocks(g) and not is_compact(g) else TALLEST)


@native
def scratch_of_shifted(g: Geometry, items: i64) -> i64:
    """Return the elements of scratch memory for some items next to the weights: offsets, planes and results."""
    return g.taps * 8 // SIZE + items * planes_size(g) + results_size(g, items)


@native
def tile_height(channels: i64, tallest: i64) -> i64:
    """Return the height of the highest tile for so many channels of the result; none is higher than ``tallest``."""
    if channels >= tallest:
        return tallest
    if channels >= 6:
        return i64(6)
    if channels >= 4:
        return i64(4)
    return i64(2) if channels >= 2 else i64(1)


@noinline
def write_offsets(g: Geometry, to: ptr) -> None:
    """Write the bytes from the first plane to the first element that each tap multiplies."""
    plane, width, end, first = plane_size(g) * SIZE, at(g.lengths, 2) * SIZE, to + g.taps * 8, to
    for b in range(at(g.kernel, 1)):
        row, over, phase = b * at(g.dilation, 1), at(g.stride, 1), i64(0)
        if over > 1:
            phase, row = row % over, row // over
        line = phase * at(g.phases, 2) * plane + row * width
        for e in range(at(g.kernel, 2)):
            column, along = e * at(g.dilation, 2), at(g.stride, 2)
            phase = i64(0)
            if g.dense:
                phase, column = e, i64(0)
            elif along > 1:
                phase, column = column % along, column // along
            store(i64, to, 0, line + phase * plane + column * SIZE)
            to += 8
    channel = at(g.phases, 1) * at(g.phases, 2) * plane
    while to < end:
        store(i64, to, 0, load(i64, first, 0) + channel)
        to += 8
        first += 8


@native
def is_dense_kernel(steps: ptr, g: Geometry) -> bool:
    """Return whether the elements of a kernel, all channels included, are consecutive."""
    dense, step = True, i64(SIZE)
    for d in range(3):
        axis = 2 - d
        dense = dense and (stride_of(steps + 8, g.rank, axis) == step or at(g.kernel, axis) == 1)
        step *= at(g.kernel, axis)
    return bool(dense and (load(i64, steps, 8) == step or g.within == 1))


@native
def copy_kernels(source: ptr, steps: ptr, g: Geometry, to: ptr, channels: i64, height: i64) -> None:
    """Copy the weights of a tile for some channels as (taps, height)."""
    over, inner = load(i64, steps, 0), load(i64, steps, 8)
    rows, columns = stride_of(steps + 8, g.rank, 1), stride_of(steps + 8, g.rank, 2)
    for c in range(channels):
        for b in range(at(g.kernel, 1)):
            line = source + c * inner + b * rows
            call_void(find_tile(PACKS, height), line, over, columns, at(g.kernel, 2), to)
            to += at(g.kernel, 2) * height * SIZE


@native
def copy_group(w: ptr, steps: ptr, g: Geometry, to: ptr) -> None:
    """Copy the weights of each tile of a group as (taps, height).

    Where channels are far apart, a few are read next to each other, so that the processor can fetch them ahead.
    """
    over, inner, done = load(i64, steps, 0), load(i64, steps, 8), i64(0)
    window, dense = at(g.kernel, 1) * at(g.kernel, 2), is_dense_kernel(steps, g)
    while done < g.within:
        channels, first = smaller(CHANNELS, g.within - done), i64(0)
        if dense:
            channels = g.within
        while first < g.of_group:
            height, source = tile_height(g.of_group - first, TALLEST), w + first * over + done * inner
            target = to + (first * g.taps + done * window * height) * SIZE
            if dense:
                call_void(find_tile(PACKS, height), source, over, SIZE, g.taps, target)
            else:
                copy_kernels(source, steps, g, target, channels, height)
            first += height
        done += channels


@noinline
def copy_shifted_weights(w: ptr, steps: ptr, g: Geometry, to: ptr) -> None:
    for group in range(g.groups):
        first = group * g.of_group
        copy_group(w + first * load(i64, steps, 0), steps, g, to + first * g.taps * SIZE)


@native
def copy_phases(source: ptr, g: Geometry, p: Plane, to: ptr) -> None:
    """Copy a channel as the planes of its phases."""
    step = at(g.dilation, 2) if g.dense else 1
    for row in range(at(g.phases, 1)):
        for phase in range(at(g.phases, 2)):
            plane_copy(source, row - at(g.before, 1), phase * step - at(g.before, 2), p, to)
            to += p.rows * p.columns * SIZE


@noinline
def copy_items(x: ptr, steps: ptr, count: i64, g: Geometry, to: ptr) -> None:
    """Copy the planes of a group of channels of some items."""
    own = steps + 24
    p: Plane = stack_of(
        at(g.lengths, 1),
        at(g.lengths, 2),
        at(g.stride, 1),
        at(g.stride, 2),
        at(g.sizes, 1),
        at(g.sizes, 2),
        stride_of(own, g.rank, 1),
        stride_of(own, g.rank, 2),
    )
    channel = at(g.phases, 1) * at(g.phases, 2) * plane_size(g) * SIZE
    for item in range(count):
        source, planes = x + item * load(i64, steps, 0), to + item * planes_size(g) * SIZE
        for c in range(g.within):
            copy_phases(source + c * load(i64, own, 0), g, p, planes + c * channel)


@native
def copy_result(results: ptr, pitch: i64, g: Geometry, to: ptr, channels: i64) -> None:
    """Copy the rows of some channels of the result, without the columns too many."""
    over, line = at(g.lengths, 2) * SIZE, at(g.out, 2) * SIZE
    p: Lines = stack_of(channels, at(g.out, 1), line, over, pitch * SIZE)
    lines_copy(results, p, to)


@native
def multiply_item(
    planes: ptr, offsets: ptr, weights: ptr, out: ptr, results: ptr, done: i64, taps: i64, g: Geometry
) -> None:
    """Add the products of ``taps`` taps to a group of channels of an item, after ``done`` taps."""
    first, pitch, compact = i64(0), row_pitch(g), is_compact(g)
    while first < g.of_group:
        height, kernels = tile_height(g.of_group - first, TALLEST), weights + first * g.taps * SIZE
        target, sums = out + first * g.indices * SIZE, results
        if compact:
            sums = target
        elif has_blocks(g):
            sums = results + first * pitch * SIZE
        kernels += done * height * SIZE
        tile, first_tap = find_tile(SHIFTED, height), offsets + done * 8
        call_void(tile, kernels, planes, first_tap, taps, sums, pitch * SIZE, done > 0)
        if not compact and done + taps == g.taps:
            copy_result(sums, pitch, g, target, height)
        first += height


@native
def multiply_items(
    planes: ptr, offsets: ptr, weights: ptr, out: ptr, steps: ptr, count: i64, results: ptr, g: Geometry
) -> None:
    """Compute a group of channels of the result for some items; ``steps``: the bytes between planes, and results."""
    done, of_item = i64(0), g.of_group * row_pitch(g) * SIZE
    while done < g.taps:
        taps = smaller(g.depth, g.taps - done)
        for item in range(count):
            source, to = planes + item * load(i64, steps, 0), out + item * load(i64, steps, 8)
            sums = results
            if has_blocks(g) and not is_compact(g):
                sums = results + item * of_item
            multiply_item(source, offsets, weights, to, sums, done, taps, g)
        done += taps


@noinline
def convolve_shifted(x: ptr, w: ptr, out: ptr, count: i64, steps: ptr, room: ptr, g: Geometry) -> None:
    """Compute a convolution of at most two axes without zeros in its input; ``room`` is scratch memory."""
    weights, item, of_group = room + g.taps * 8, i64(0), g.of_group * g.taps * SIZE
    planes = weights + g.groups * of_group
    results = planes + smaller(g.block, count) * planes_size(g) * SIZE
    channels = g.within * load(i64, steps, 24)
    write_offsets(g, room)
    copy_shifted_weights(w, steps + 32 + g.rank * 8, g, weights)
    in_place = is_compact(g) and is_dense_input(steps + 24, g)
    between = planes_size(g) * SIZE
    if in_place:
        between = load(i64, steps, 0)
    apart = stack_of(between, load(i64, steps, 16))
    while item < count:
        block = smaller(g.block, count - item)
        source, target = x + item * load(i64, steps, 0), out + item * load(i64, steps, 16)
        for group in range(g.groups):
            copies = source + group * channels
            if not in_place:
                copy_items(copies, steps, block, g, planes)
                copies = planes
            to = target + group * g.of_group * g.indices * SIZE
            kernels = weights + group * of_group
            multiply_items(copies, room, kernels, to, apart, block, results, g)
        item += block
