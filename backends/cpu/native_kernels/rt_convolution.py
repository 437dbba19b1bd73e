"""Native runtime: convolutions as matrix products, by gathering windows or by scattering products.

Source: Chellapilla, Puri and Simard, High performance convolutional neural networks for document processing, 2006.

Axes to convolve over are counted as three; sizes of missing ones are 1. ``Geometry`` is made by `convolutions.py`,
which also chooses the mode, for which the functions are compiled. The products are those of `rt_products.multiply`.
``SIZE`` is the size of an element, ``T`` its type. Where no scratch memory can be allocated, the sums are computed
without it.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import (
    NULL,
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
from ..fastpath.runtime import capi
from .rt_geometry import Geometry, at, stride_of
from .rt_integers import smaller
from .rt_planes import SIZE, Plane, T, clear, end_inside, first_inside, plane_copy
from .rt_scratch import give_back, take_scratch
from .rt_shifted import convolve_shifted, is_dense_input, scratch_of_shifted
from .rt_windows import convolve_windows, scratch_of_windows

COLUMNS, ROWS, SCATTER, SHIFTED, WINDOWS = 0, 1, 2, 3, 4  # modes
MODE: i64 = template(SHIFTED)
SPARE: i64 = 16  # elements between rows, so that those of a column are not a power of 2 apart

multiply = extern("multiply_matrices", "None(ptr, ptr, ptr, ptr)")


@noinline
def gather_columns(x: ptr, steps: ptr, g: Geometry, to: ptr) -> None:
    """Write the windows of a group of channels as the columns of a matrix (taps, indices)."""
    channel, depth = load(i64, steps, 0), stride_of(steps, g.rank, 0)
    out_plane = at(g.out, 1) * at(g.out, 2)
    p: Plane = stack_of(
        at(g.out, 1),
        at(g.out, 2),
        at(g.stride, 1),
        at(g.stride, 2),
        at(g.sizes, 1),
        at(g.sizes, 2),
        stride_of(steps, g.rank, 1),
        stride_of(steps, g.rank, 2),
    )
    for c in range(g.within):
        for a in range(at(g.kernel, 0)):
            for b in range(at(g.kernel, 1)):
                row = b * at(g.dilation, 1) - at(g.before, 1)
                for e in range(at(g.kernel, 2)):
                    column = e * at(g.dilation, 2) - at(g.before, 2)
                    for d in range(at(g.out, 0)):
                        z = d * at(g.stride, 0) + a * at(g.dilation, 0) - at(g.before, 0)
                        if z >= 0 and z < at(g.sizes, 0):
                            plane_copy(x + c * channel + z * depth, row, column, p, to)
                        else:
                            clear(to, out_plane)
                        to += out_plane * SIZE


@noinline
def gather_rows(x: ptr, steps: ptr, g: Geometry, to: ptr) -> None:
    """Write the windows of a group of channels as the rows of a matrix (indices, taps), SPARE elements apart."""
    channel, depth = load(i64, steps, 0), stride_of(steps, g.rank, 0)
    plane = at(g.kernel, 1) * at(g.kernel, 2)
    p: Plane = stack_of(
        at(g.kernel, 1),
        at(g.kernel, 2),
        at(g.dilation, 1),
        at(g.dilation, 2),
        at(g.sizes, 1),
        at(g.sizes, 2),
        stride_of(steps, g.rank, 1),
        stride_of(steps, g.rank, 2),
    )
    for d in range(at(g.out, 0)):
        for i in range(at(g.out, 1)):
            row = i * at(g.stride, 1) - at(g.before, 1)
            for j in range(at(g.out, 2)):
                column = j * at(g.stride, 2) - at(g.before, 2)
                for c in range(g.within):
                    for a in range(at(g.kernel, 0)):
                        z = d * at(g.stride, 0) + a * at(g.dilation, 0) - at(g.before, 0)
                        if z >= 0 and z < at(g.sizes, 0):
                            plane_copy(x + c * channel + z * depth, row, column, p, to)
                        else:
                            clear(to, plane)
                        to += plane * SIZE
                to += SPARE * SIZE


@native
def is_dense_window(steps: ptr, g: Geometry) -> bool:
    """Return whether the elements of a kernel of one channel are consecutive; ``steps``: those along its axes."""
    dense, step = True, i64(SIZE)
    for d in range(3):
        axis = 2 - d
        dense = dense and (stride_of(steps, g.rank, axis) == step or at(g.kernel, axis) == 1)
        step *= at(g.kernel, axis)
    return bool(dense)


@noinline
def copy_window(source: ptr, steps: ptr, g: Geometry, to: ptr, step: i64) -> None:
    """Copy the elements of a kernel of one channel to addresses that are ``step`` bytes apart."""
    planes, rows = stride_of(steps, g.rank, 0), stride_of(steps, g.rank, 1)
    columns = stride_of(steps, g.rank, 2)
    for a in range(at(g.kernel, 0)):
        for b in range(at(g.kernel, 1)):
            line = source + a * planes + b * rows
            for e in range(at(g.kernel, 2)):
                store(T, to, 0, load(T, line, e * columns))
                to += step


@noinline
def copy_weights(w: ptr, steps: ptr, g: Geometry, to: ptr) -> None:
    """Copy the weights as (channels of the result, taps), or for SCATTER as (groups, kernel, of_group, within)."""
    over, inner, axes = load(i64, steps, 0), load(i64, steps, 8), steps + 8
    window = at(g.kernel, 0) * at(g.kernel, 1) * at(g.kernel, 2)
    dense = is_dense_window(axes, g)
    for o in range(g.groups * g.of_group):
        group, own = o // g.of_group, o % g.of_group
        for c in range(g.within):
            source, target = w + o * over + c * inner, to + (o * g.within + c) * window * SIZE
            if MODE == SCATTER:
                target = to + ((group * window * g.of_group + own) * g.within + c) * SIZE
                copy_window(source, axes, g, target, g.of_group * g.within * SIZE)
            elif dense:
                capi.memcpy(target, source, window * SIZE)
            else:
                copy_window(source, axes, g, target, SIZE)


@native
def product(a: ptr, b: ptr, c: ptr, m: i64, k: i64, n: i64, row: i64, column: i64) -> None:
    """Multiply a dense (m, k) by (k, n) with strides in elements."""
    call = stack_of(m, k, n, k * SIZE, SIZE, row * SIZE, column * SIZE, n * SIZE, 0, 0)
    multiply(a, b, c, call)


@noinline
def convolve_by_columns(
    x: ptr, weights: ptr, out: ptr, count: i64, steps: ptr, room: ptr, g: Geometry
) -> None:
    own = steps + 24
    dense = is_dense_input(own, g)
    for item in range(count):
        for group in range(g.groups):
            source = x + item * load(i64, steps, 0) + group * g.within * load(i64, own, 0)
            if not dense:
                gather_columns(source, own, g, room)
            columns = source if dense else room
            to = out + item * load(i64, steps, 16) + group * g.of_group * g.indices * SIZE
            kernels = weights + group * g.of_group * g.taps * SIZE
            product(kernels, columns, to, g.of_group, g.taps, g.indices, g.indices, 1)


@noinline
def convolve_by_rows(x: ptr, weights: ptr, out: ptr, count: i64, steps: ptr, room: ptr, g: Geometry) -> None:
    own, item = steps + 24, i64(0)
    pitch = g.taps + SPARE
    results = room + smaller(g.block, count) * g.indices * pitch * SIZE
    while item < count:
        block = smaller(g.block, count - item)
        width = block * g.indices
        for group in range(g.groups):
            for n in range(block):
                source = x + (item + n) * load(i64, steps, 0) + group * g.within * load(i64, own, 0)
                gather_rows(source, own, g, room + n * g.indices * pitch * SIZE)
            kernels = weights + group * g.of_group * g.taps * SIZE
            product(kernels, room, results, g.of_group, g.taps, width, 1, pitch)
            for n in range(block):
                for o in range(g.of_group):
                    to = out + (item + n) * load(i64, steps, 16) + (group * g.of_group + o) * g.indices * SIZE
                    capi.memcpy(to, results + (o * width + n * g.indices) * SIZE, g.indices * SIZE)
        item += block


@native
def add_row(source: ptr, start: i64, step: i64, count: i64, width: i64, to: ptr) -> None:
    """Add elements to those of a row at ``start + i * step``, where these are inside."""
    low = first_inside(start, step)
    high = end_inside(start, step, width, count)
    for j in range(low, high):
        offset = (start + j * step) * SIZE
        store(T, to, offset, load(T, to, offset) + load(T, source, j * SIZE))


@noinline
def scatter(parts: ptr, g: Geometry, out: ptr) -> None:
    """Add the contributions (taps of one channel, of_group, sizes) of a group to its part of the result."""
    depth, height, width = at(g.sizes, 0), at(g.sizes, 1), at(g.sizes, 2)
    plane = at(g.out, 1) * at(g.out, 2)
    for a in range(at(g.kernel, 0)):
        for b in range(at(g.kernel, 1)):
            for e in range(at(g.kernel, 2)):
                column = at(g.before, 2) - e * at(g.dilation, 2)
                for o in range(g.of_group):
                    for d in range(depth):
                        z = at(g.before, 0) - a * at(g.dilation, 0) + d * at(g.input_dilation, 0)
                        for h in range(height):
                            y = at(g.before, 1) - b * at(g.dilation, 1) + h * at(g.input_dilation, 1)
                            if z >= 0 and z < at(g.out, 0) and y >= 0 and y < at(g.out, 1):
                                to = out + (o * g.indices + z * plane + y * at(g.out, 2)) * SIZE
                                add_row(parts, column, at(g.input_dilation, 2), width, at(g.out, 2), to)
                            parts += width * SIZE


@noinline
def convolve_by_scatter(
    x: ptr, weights: ptr, out: ptr, count: i64, steps: ptr, room: ptr, g: Geometry
) -> None:
    own = steps + 24
    points = at(g.sizes, 0) * at(g.sizes, 1) * at(g.sizes, 2)
    window = at(g.kernel, 0) * at(g.kernel, 1) * at(g.kernel, 2)
    p: Plane = stack_of(
        at(g.sizes, 1),
        at(g.sizes, 2),
        1,
        1,
        at(g.sizes, 1),
        at(g.sizes, 2),
        stride_of(own, g.rank, 1),
        stride_of(own, g.rank, 2),
    )
    parts = room + g.within * points * SIZE
    for item in range(count):
        for group in range(g.groups):
            source, to = x + item * load(i64, steps, 0) + group * g.within * load(i64, own, 0), room
            for c in range(g.within):
                for d in range(at(g.sizes, 0)):
                    plane_copy(source + c * load(i64, own, 0) + d * stride_of(own, g.rank, 0), 0, 0, p, to)
                    to += at(g.sizes, 1) * at(g.sizes, 2) * SIZE
            matrices = weights + group * window * g.of_group * g.within * SIZE
            product(matrices, room, parts, window * g.of_group, g.within, points, points, 1)
            result = out + item * load(i64, steps, 16) + group * g.of_group * g.indices * SIZE
            clear(result, g.of_group * g.indices)
            scatter(parts, g, result)


@noinline
def convolve_directly(x: ptr, w: ptr, out: ptr, count: i64, steps: ptr, g: Geometry) -> None:
    """Compute each element of the result by itself, without scratch memory."""
    own, of_weight = steps + 24, steps + 32 + g.rank * 8
    window = at(g.kernel, 0) * at(g.kernel, 1) * at(g.kernel, 2)
    channels = g.groups * g.of_group
    for index in range(count * channels * g.indices):
        position, o, item = index % g.indices, index // g.indices % channels, index // (g.indices * channels)
        total = T(0)
        for tap in range(g.within * window):
            c, t = tap // window, tap % window
            source = x + item * load(i64, steps, 0) + (o // g.of_group * g.within + c) * load(i64, own, 0)
            kernel = w + o * load(i64, of_weight, 0) + c * load(i64, of_weight, 8)
            rest, more, inside = position, t, True
            for axis in range(3):
                d = 2 - axis
                k, i = more % at(g.kernel, d), rest % at(g.out, d)
                more, rest = more // at(g.kernel, d), rest // at(g.out, d)
                spot = i * at(g.stride, d) + k * at(g.dilation, d) - at(g.before, d)
                spaced = at(g.input_dilation, d)
                inside = inside and spot >= 0 and spot % spaced == 0 and spot // spaced < at(g.sizes, d)
                source += spot // spaced * stride_of(own, g.rank, d)
                kernel += k * stride_of(of_weight + 8, g.rank, d)
            if inside:
                total += load(T, source, 0) * load(T, kernel, 0)
        at_result = item * load(i64, steps, 16) + (o * g.indices + position) * SIZE
        store(T, out, at_result, total)


@native
def scratch_elements(g: Geometry, items: i64) -> i64:
    """Return the number of elements of scratch memory next to the weights, for so many items at a time."""
    if MODE == SHIFTED:
        return scratch_of_shifted(g, items)
    if MODE == WINDOWS:
        return scratch_of_windows(g, items)
    if MODE == COLUMNS:
        return g.taps * g.indices
    if MODE == ROWS:
        return items * g.indices * (g.taps + SPARE + g.of_group)
    points = at(g.sizes, 0) * at(g.sizes, 1) * at(g.sizes, 2)
    return points * (g.within + at(g.kernel, 0) * at(g.kernel, 1) * at(g.kernel, 2) * g.of_group)


@native
def convolve(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of a convolution; ``data`` is its geometry."""
    g: Geometry = data
    x, w, out, count = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16), load(i64, dims, 0)
    weights = g.groups * g.of_group * g.taps
    room = take_scratch((weights + scratch_elements(g, smaller(g.block, count)) + 16) * SIZE)
    if room == NULL:
        convolve_directly(x, w, out, count, steps, g)
        return
    if MODE == SHIFTED:
        convolve_shifted(x, w, out, count, steps, room, g)
    elif MODE == WINDOWS:
        convolve_windows(x, w, out, count, steps, room, g)
    else:
        copy_weights(w, steps + 32 + g.rank * 8, g, room)
        if MODE == COLUMNS:
            convolve_by_columns(x, room, out, count, steps, room + weights * SIZE, g)
        elif MODE == ROWS:
            convolve_by_rows(x, room, out, count, steps, room + weights * SIZE, g)
        else:
            convolve_by_scatter(x, room, out, count, steps, room + weights * SIZE, g)
    give_back(room)
