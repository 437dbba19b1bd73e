"""Native runtime: convolutions by products of shifted planes, without a matrix of windows.

The planes of an item are copied once, with their padding; with strides, as one plane for each phase: the rows and
columns whose positions have the same remainder. A row of the result is given the width of such a plane, so that the
elements that one tap multiplies follow each other; the columns too many are dropped at the end. The products are those
of `codegen.shifted_tiles`, for up to TALLEST channels of the result at a time.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import extern, i64, load, native, noinline, ptr, stack_of, store, template
from ..fastpath.runtime import capi
from .rt_geometry import Geometry, at, stride_of
from .rt_integers import smaller
from .rt_planes import SIZE, Plane, T, copy_plane

TALLEST: i64 = template(8)  # channels of the highest tile
VECTOR_BYTES: i64 = 64  # a multiple of the bytes of all vectors

shifted_tiles = extern("shifted_tiles", "None(ptr, ptr, ptr, i64, ptr, i64, i64)")


@native
def reach_of(g: Geometry, axis: i64) -> i64:
    """Return the distance between the first and the last tap along an axis."""
    return (at(g.kernel, axis) - 1) * at(g.dilation, axis)


@native
def phases_of(g: Geometry, axis: i64) -> i64:
    """Return the number of phases along an axis that a tap reads."""
    return smaller(at(g.stride, axis), reach_of(g, axis) + 1)


@native
def plane_length(g: Geometry, axis: i64) -> i64:
    """Return the rows or columns of the plane of a phase."""
    return at(g.out, axis) + reach_of(g, axis) // at(g.stride, axis)


@native
def plane_size(g: Geometry) -> i64:
    return plane_length(g, 1) * plane_length(g, 2)


@native
def row_pitch(g: Geometry) -> i64:
    """Return the number of positions of a channel of the result, in whole vectors."""
    positions, vector = (at(g.out, 1) - 1) * plane_length(g, 2) + at(g.out, 2), VECTOR_BYTES // SIZE
    return (positions + vector - 1) // vector * vector


@native
def planes_size(g: Geometry) -> i64:
    """Return the elements of a group's planes, and those that the last vector reads behind them."""
    return g.within * phases_of(g, 1) * phases_of(g, 2) * plane_size(g) + VECTOR_BYTES // SIZE


@native
def scratch_of_shifted(g: Geometry) -> i64:
    """Return the number of elements of scratch memory next to the weights: offsets, planes and results."""
    return g.taps * 8 // SIZE + planes_size(g) + TALLEST * row_pitch(g)


@native
def tile_height(channels: i64) -> i64:
    """Return the height of the highest tile for so many channels of the result."""
    if channels >= TALLEST:
        return i64(TALLEST)
    if channels >= 6:
        return i64(6)
    if channels >= 4:
        return i64(4)
    return i64(2) if channels >= 2 else i64(1)


@noinline
def write_offsets(g: Geometry, to: ptr) -> None:
    """Write the bytes from the first plane to the first element that each tap multiplies."""
    plane, width = plane_size(g), plane_length(g, 2)
    for c in range(g.within):
        for b in range(at(g.kernel, 1)):
            row = b * at(g.dilation, 1)
            for e in range(at(g.kernel, 2)):
                column = e * at(g.dilation, 2)
                phase = (c * phases_of(g, 1) + row % at(g.stride, 1)) * phases_of(g, 2) + column % at(
                    g.stride, 2
                )
                inside = row // at(g.stride, 1) * width + column // at(g.stride, 2)
                store(i64, to, 0, (phase * plane + inside) * SIZE)
                to += 8


@noinline
def copy_shifted_weights(w: ptr, steps: ptr, g: Geometry, to: ptr) -> None:
    """Copy the weights of each tile as (taps, height)."""
    over, inner = load(i64, steps, 0), load(i64, steps, 8)
    rows, columns = stride_of(steps + 8, g.rank, 1), stride_of(steps + 8, g.rank, 2)
    for group in range(g.groups):
        first = i64(0)
        while first < g.of_group:
            height = tile_height(g.of_group - first)
            for c in range(g.within):
                for b in range(at(g.kernel, 1)):
                    for e in range(at(g.kernel, 2)):
                        source = w + (group * g.of_group + first) * over + c * inner + b * rows + e * columns
                        for o in range(height):
                            store(T, to, o * SIZE, load(T, source, o * over))
                        to += height * SIZE
            first += height


@native
def copy_phases(source: ptr, g: Geometry, p: Plane, to: ptr) -> None:
    """Copy a channel as the planes of its phases."""
    for row in range(phases_of(g, 1)):
        for column in range(phases_of(g, 2)):
            copy_plane(source, row - at(g.before, 1), column - at(g.before, 2), p, to)
            to += p.rows * p.columns * SIZE


@native
def copy_result(results: ptr, pitch: i64, g: Geometry, to: ptr, channels: i64) -> None:
    """Copy the rows of some channels of the result, without the columns too many."""
    width, line = plane_length(g, 2) * SIZE, at(g.out, 2) * SIZE
    for o in range(channels):
        source = results + o * pitch * SIZE
        for _i in range(at(g.out, 1)):
            capi.memcpy(to, source, line)
            source += width
            to += line


@noinline
def convolve_shifted(x: ptr, w: ptr, out: ptr, count: i64, steps: ptr, room: ptr, g: Geometry) -> None:
    """Compute a convolution of at most two axes without zeros in its input; ``room`` is scratch memory."""
    own, offsets, pitch = steps + 24, room, row_pitch(g)
    weights = offsets + g.taps * 8
    planes = weights + g.groups * g.of_group * g.taps * SIZE
    results = planes + planes_size(g) * SIZE
    write_offsets(g, offsets)
    copy_shifted_weights(w, steps + 32 + g.rank * 8, g, weights)
    p: Plane = stack_of(
        plane_length(g, 1),
        plane_length(g, 2),
        at(g.stride, 1),
        at(g.stride, 2),
        at(g.sizes, 1),
        at(g.sizes, 2),
        stride_of(own, g.rank, 1),
        stride_of(own, g.rank, 2),
    )
    channel = phases_of(g, 1) * phases_of(g, 2) * plane_size(g) * SIZE
    for item in range(count):
        for group in range(g.groups):
            source = x + item * load(i64, steps, 0) + group * g.within * load(i64, own, 0)
            for c in range(g.within):
                copy_phases(source + c * load(i64, own, 0), g, p, planes + c * channel)
            first = i64(0)
            while first < g.of_group:
                height, number = tile_height(g.of_group - first), group * g.of_group + first
                kernels = weights + number * g.taps * SIZE
                shifted_tiles(kernels, planes, offsets, g.taps, results, pitch * SIZE, height)
                target = out + item * load(i64, steps, 16) + number * g.indices * SIZE
                copy_result(results, pitch, g, target, height)
                first += height
