"""Native runtime: convolutions of few channels by products of shifted planes, without a matrix of windows.

The planes of an item are copied once, with their padding. A row of the result is given the width of such a plane, so
that the elements of a plane that one tap multiplies follow each other; the columns too many are dropped at the end.
FEW channels of the result and VECTORS vectors of positions at a time are sums in registers.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import (
    alwaysinline,
    extern,
    i64,
    load,
    native,
    noinline,
    ptr,
    stack,
    stack_of,
    store,
    vector_range,
)
from ..fastpath.runtime import capi
from .rt_geometry import Geometry, at, stride_of
from .rt_integers import smaller
from .rt_planes import SIZE, Plane, T, copy_plane

FEW: i64 = 4  # channels of the result that are computed together
VECTORS: i64 = 4  # vectors of positions that are computed together
VECTOR_BYTES: i64 = 64

fma_f32 = extern("llvm.fma.f32", "f32(f32, f32, f32)")
fma_f64 = extern("llvm.fma.f64", "f64(f64, f64, f64)")


@native
def plane_height(g: Geometry) -> i64:
    return at(g.out, 1) + (at(g.kernel, 1) - 1) * at(g.dilation, 1)


@native
def plane_width(g: Geometry) -> i64:
    return at(g.out, 2) + (at(g.kernel, 2) - 1) * at(g.dilation, 2)


@native
def row_pitch(g: Geometry) -> i64:
    """Return the number of positions of a channel of the result, in whole vectors."""
    positions, vector = (at(g.out, 1) - 1) * plane_width(g) + at(g.out, 2), VECTOR_BYTES // SIZE
    return (positions + vector - 1) // vector * vector


@native
def blocks_of(g: Geometry) -> i64:
    """Return the number of blocks of FEW channels of a group of the result."""
    return (g.of_group + FEW - 1) // FEW


@native
def planes_size(g: Geometry) -> i64:
    """Return the elements of a group's planes, and those that the last vector reads behind them."""
    return g.within * plane_height(g) * plane_width(g) + VECTOR_BYTES // SIZE


@native
def scratch_of_shifted(g: Geometry) -> i64:
    """Return the number of elements of scratch memory, that of the weights included."""
    return g.groups * blocks_of(g) * g.taps * FEW + planes_size(g) + FEW * row_pitch(g)


@noinline
def copy_shifted_weights(w: ptr, steps: ptr, g: Geometry, to: ptr) -> None:
    """Copy the weights as (groups, blocks, taps, FEW), with zeros for the channels too many."""
    over, inner = load(i64, steps, 0), load(i64, steps, 8)
    rows, columns = stride_of(steps + 8, g.rank, 1), stride_of(steps + 8, g.rank, 2)
    for block in range(g.groups * blocks_of(g)):
        group, first = block // blocks_of(g), block % blocks_of(g) * FEW
        for c in range(g.within):
            for b in range(at(g.kernel, 1)):
                for e in range(at(g.kernel, 2)):
                    source = w + c * inner + b * rows + e * columns
                    for o in range(FEW):
                        channel = first + o
                        own = group * g.of_group + channel
                        store(T, to, o * SIZE, load(T, source, own * over) if channel < g.of_group else T(0))
                    to += FEW * SIZE


@alwaysinline
def add_products(sums: ptr, kernels: ptr, source: ptr, vectors: i64) -> None:
    """Add the products of one tap to the sums of a tile."""
    for o in range(FEW):
        weight = load(T, kernels, o * SIZE)
        for v in range(vectors):
            own, read = (o * VECTORS + v) * VECTOR_BYTES, source + v * VECTOR_BYTES
            for j in vector_range(VECTOR_BYTES // SIZE):
                total, element = load(T, sums, own + j * SIZE), load(T, read, j * SIZE)
                if SIZE == 4:
                    store(T, sums, own + j * SIZE, fma_f32(weight, element, total))
                else:
                    store(T, sums, own + j * SIZE, fma_f64(weight, element, total))


@alwaysinline
def compute_sums(kernels: ptr, planes: ptr, g: Geometry, to: ptr, pitch: i64, vectors: i64) -> None:
    """Compute FEW channels of the result at the positions of some vectors, whose number is a constant."""
    sums, width = stack(FEW * VECTORS * VECTOR_BYTES), plane_width(g)
    plane = plane_height(g) * width * SIZE
    down, right = at(g.dilation, 1) * width * SIZE, at(g.dilation, 2) * SIZE
    for i in range(FEW * VECTORS):
        for j in vector_range(VECTOR_BYTES // SIZE):
            store(T, sums, i * VECTOR_BYTES + j * SIZE, T(0))
    for _c in range(g.within):
        row = planes
        for _b in range(at(g.kernel, 1)):
            source = row
            for _e in range(at(g.kernel, 2)):
                add_products(sums, kernels, source, vectors)
                kernels += FEW * SIZE
                source += right
            row += down
        planes += plane
    for o in range(FEW):
        for v in range(vectors):
            for j in vector_range(VECTOR_BYTES // SIZE):
                own = v * VECTOR_BYTES + j * SIZE
                store(T, to, o * pitch * SIZE + own, load(T, sums, o * VECTORS * VECTOR_BYTES + own))


@noinline
def compute_tile(kernels: ptr, planes: ptr, g: Geometry, to: ptr, pitch: i64) -> None:
    compute_sums(kernels, planes, g, to, pitch, VECTORS)


@noinline
def compute_vector(kernels: ptr, planes: ptr, g: Geometry, to: ptr, pitch: i64) -> None:
    compute_sums(kernels, planes, g, to, pitch, 1)


@native
def compute_channels(kernels: ptr, planes: ptr, g: Geometry, to: ptr, pitch: i64) -> None:
    """Compute FEW channels of the result at all positions."""
    start, vector = i64(0), VECTOR_BYTES // SIZE
    while start + VECTORS * vector <= pitch:
        compute_tile(kernels, planes + start * SIZE, g, to + start * SIZE, pitch)
        start += VECTORS * vector
    while start < pitch:
        compute_vector(kernels, planes + start * SIZE, g, to + start * SIZE, pitch)
        start += vector


@noinline
def convolve_shifted(x: ptr, w: ptr, out: ptr, count: i64, steps: ptr, room: ptr, g: Geometry) -> None:
    """Compute a convolution with stride 1; ``room`` is scratch memory."""
    own, height, width = steps + 24, plane_height(g), plane_width(g)
    copy_shifted_weights(w, steps + 32 + g.rank * 8, g, room)
    planes = room + g.groups * blocks_of(g) * g.taps * FEW * SIZE
    results, pitch = planes + planes_size(g) * SIZE, row_pitch(g)
    rows, columns = stride_of(own, g.rank, 1), stride_of(own, g.rank, 2)
    p: Plane = stack_of(height, width, 1, 1, at(g.sizes, 1), at(g.sizes, 2), rows, columns)
    for item in range(count):
        for group in range(g.groups):
            source = x + item * load(i64, steps, 0) + group * g.within * load(i64, own, 0)
            for c in range(g.within):
                to = planes + c * height * width * SIZE
                copy_plane(source + c * load(i64, own, 0), 0 - at(g.before, 1), 0 - at(g.before, 2), p, to)
            for block in range(blocks_of(g)):
                kernels = room + (group * blocks_of(g) + block) * g.taps * FEW * SIZE
                compute_channels(kernels, planes, g, results, pitch)
                for o in range(smaller(FEW, g.of_group - block * FEW)):
                    channel = group * g.of_group + block * FEW + o
                    target = out + item * load(i64, steps, 16) + channel * g.indices * SIZE
                    for i in range(at(g.out, 1)):
                        line = results + (o * pitch + i * width) * SIZE
                        capi.memcpy(target + i * at(g.out, 2) * SIZE, line, at(g.out, 2) * SIZE)
