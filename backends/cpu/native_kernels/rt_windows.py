"""Native runtime: convolutions whose kernels are as large as their input, such as the derivative by a kernel.

The windows are not copied: `codegen.window_tiles` reads them in the planes of a channel, which are copied with their
padding. The weights of that channel are packed with the channels of the result as the columns.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import (
    call_void,
    extern,
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
from .rt_planes import SIZE, Plane, clear, plane_copy
from .rt_tiles import VECTOR_BYTES, WINDOWS, find_tile

transpose = extern("transpose", "None(ptr, ptr, i64, i64, i64, i64, i64)")
WIDEST: i64 = template(4)  # vectors of the widest tile
VECTOR: i64 = template(64)  # bytes of its vectors


@native
def column_pitch(g: Geometry) -> i64:
    """Return the channels of a group of the result, in whole vectors."""
    vector = VECTOR_BYTES // SIZE
    return (g.of_group + vector - 1) // vector * vector


@native
def scratch_of_windows(g: Geometry, items: i64) -> i64:
    """Return the number of elements of scratch memory for some items: offsets, planes, packed weights and results."""
    rows, window = items * g.indices, at(g.kernel, 1) * at(g.kernel, 2)
    return rows * 8 // SIZE + items * plane_size(g) + (window + rows) * column_pitch(g)


@noinline
def write_window_offsets(g: Geometry, items: i64, to: ptr) -> None:
    """Write the bytes from the first plane to each window, for some items."""
    width = at(g.lengths, 2)
    for item in range(items):
        for i in range(at(g.out, 1)):
            for j in range(at(g.out, 2)):
                inside = i * at(g.stride, 1) * width + j * at(g.stride, 2)
                store(i64, to, 0, (item * plane_size(g) + inside) * SIZE)
                to += 8


@noinline
def pack_channel(w: ptr, steps: ptr, g: Geometry, to: ptr) -> None:
    """Copy the weights of a group for one channel as (kernel, channels of the result), with zeros up to the pitch."""
    over, pitch = load(i64, steps, 0), column_pitch(g)
    rows, columns = stride_of(steps + 8, g.rank, 1), stride_of(steps + 8, g.rank, 2)
    window, count = columns == SIZE and rows == at(g.kernel, 2) * SIZE, at(g.kernel, 1) * at(g.kernel, 2)
    clear(to, count * pitch)
    if window:
        transpose(w, to, count, g.of_group, SIZE, over, pitch * SIZE)
    else:
        for y in range(at(g.kernel, 1)):
            line = to + y * at(g.kernel, 2) * pitch * SIZE
            transpose(w + y * rows, line, at(g.kernel, 2), g.of_group, columns, over, pitch * SIZE)


@native
def multiply_windows(
    offsets: ptr, rows: i64, planes: ptr, steps: ptr, packed: ptr, to: ptr, g: Geometry
) -> None:
    """Add the products of a channel to the results, with the widest tiles that fit; ``steps``: those of planes."""
    start, pitch = i64(0), column_pitch(g) * SIZE
    while start < pitch:
        vectors = smaller(WIDEST, (pitch - start + VECTOR - 1) // VECTOR)
        over, along = load(i64, steps, 0), load(i64, steps, 8)
        tile = find_tile(WINDOWS, vectors)
        call_void(
            tile,
            offsets,
            rows,
            planes,
            over,
            along,
            packed,
            at(g.kernel, 1),
            at(g.kernel, 2),
            to,
            pitch,
            start,
        )
        start += vectors * VECTOR


@noinline
def convolve_windows(x: ptr, w: ptr, out: ptr, count: i64, steps: ptr, room: ptr, g: Geometry) -> None:
    """Compute a convolution of at most two axes without zeros in its input; ``room`` is scratch memory."""
    own, of_weight, item = steps + 24, steps + 32 + g.rank * 8, i64(0)
    pitch, plane, width = column_pitch(g) * SIZE, plane_size(g) * SIZE, at(g.lengths, 2)
    most = smaller(g.block, count)
    planes = room + most * g.indices * 8
    packed = planes + most * plane
    results = packed + at(g.kernel, 1) * at(g.kernel, 2) * pitch
    apart = stack_of(at(g.dilation, 1) * width * SIZE, at(g.dilation, 2) * SIZE)
    p: Plane = stack_of(
        at(g.lengths, 1),
        width,
        1,
        1,
        at(g.sizes, 1),
        at(g.sizes, 2),
        stride_of(own, g.rank, 1),
        stride_of(own, g.rank, 2),
    )
    write_window_offsets(g, most, room)
    while item < count:
        block = smaller(most, count - item)
        rows = block * g.indices
        for group in range(g.groups):
            clear(results, rows * column_pitch(g))
            for c in range(g.within):
                channel = x + item * load(i64, steps, 0) + (group * g.within + c) * load(i64, own, 0)
                for n in range(block):
                    source = channel + n * load(i64, steps, 0)
                    plane_copy(source, 0 - at(g.before, 1), 0 - at(g.before, 2), p, planes + n * plane)
                first = w + group * g.of_group * load(i64, of_weight, 0) + c * load(i64, of_weight, 8)
                pack_channel(first, of_weight, g, packed)
                multiply_windows(room, rows, planes, apart, packed, results, g)
            for n in range(block):
                to = out + (item + n) * load(i64, steps, 16) + group * g.of_group * g.indices * SIZE
                from_ = results + n * g.indices * pitch
                transpose(from_, to, g.of_group, g.indices, SIZE, pitch, g.indices * SIZE)
        item += block
