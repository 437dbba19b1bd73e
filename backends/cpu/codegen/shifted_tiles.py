"""Sums of products of shifted planes: the micro-kernel of convolutions whose planes are multiplied in place.

A tile has some channels of the result (its height) by some vectors of positions, all in registers. Each element is the
chain ``fma(weight, plane[offset + position], ...)`` over the taps in order, so its bits do not depend on tiles.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ....registry.dtypes import DType
from ..target import vector_target
from .small_product import multiply_add
from .text import REGISTER, Function, Module

# Vectors of positions of a tile, by its height: as many sums as the registers hold, and enough to hide their latency.
VECTORS = {8: 3, 6: 4, 4: 5, 2: 8, 1: 8}
NARROW_VECTORS = {6: 2, 4: 2, 2: 4, 1: 8}
PACK_PARAMETERS = "ptr %source, i64 %over, i64 %along, i64 %taps, ptr %to"
PARAMETERS = "ptr %kernels, ptr %planes, ptr %offsets, i64 %taps, ptr %to, i64 %pitch, i1 %adds"


def tile_vectors() -> dict[int, int]:
    """Return the tiles of this machine: the vectors of positions for each height, the highest first."""
    return VECTORS if vector_target().masks else NARROW_VECTORS


def find_counts(pitch: int, vectors: int) -> set[int]:
    """Return the vectors of positions of the tiles that compute so many vectors, of which a whole tile has some.

    Where one vector would be left, the last whole tile is divided with it: a tile of one vector has too few sums to
    hide their latency.
    """
    left = pitch % vectors
    if vectors > 2 and left == 1 and pitch > vectors:
        left = vectors + 1
    parts = {vectors - 1, 2} if left > vectors else {left}
    return ({vectors} if pitch > left else set()) | (parts - {0})


def write_shifted_tiles(dtype: DType, height: int, counts: Collection[int] = ()) -> str:
    """Return LLVM IR of ``shifted_tiles(kernels, planes, offsets, taps, to, pitch, adds)`` for tiles of a height.

    ``kernels`` is (taps, height), ``offsets`` has the bytes from ``planes`` to the first element of each tap, and
    ``to`` is (height, pitch); ``pitch`` is in bytes, and a multiple of the width of all vectors. If ``adds`` is true,
    the sums of the products continue the chains of ``to``.

    ``counts`` are the vectors of positions of the tiles that have code (:func:`find_counts`); all if there are none.

    And of ``pack_kernels(source, over, along, taps, to)``, which transposes (height, taps) to (taps, height):
    ``over`` and ``along`` are the strides of ``source`` in bytes.
    """
    module = Module()
    vectors = tile_vectors()[height]
    _write_height(module, dtype, height, vectors, sorted(counts or range(1, vectors + 1), reverse=True))
    _write_packing(module, dtype, height)
    return str(module)


def _write_packing(module: Module, dtype: DType, height: int) -> None:
    """Write the packing of ``height`` rows: a vector of each at a time if they are contiguous, then single elements."""
    f = Function(module, vector_target().vector_bytes // dtype.itemsize)
    size, element, lanes = dtype.itemsize, REGISTER[dtype], f.lanes
    rows = [f.address("%source", f.op(f"mul i64 %over, {r}")) for r in range(height)]
    is_dense, many = f.op(f"icmp eq i64 %along, {size}"), f.op(f"and i64 %taps, {-lanes}")
    whole = f.op(f"select i1 {is_dense}, i64 {many}, i64 0")
    with f.loop("0", whole, str(lanes)) as tap:
        at = f.op(f"mul i64 {tap.index}, {size}")
        block, width = f.concatenate(element, [f.load_vector(dtype, f.address(row, at)) for row in rows])
        to = f.address("%to", f.op(f"mul i64 {at}, {height}"))
        for number in range(height):
            order = range(number * lanes, (number + 1) * lanes)
            picks = ", ".join(f"i32 {k % height * lanes + k // height}" for k in order)
            vec = f"<{width} x {element}>"
            part = f.op(f"shufflevector {vec} {block}, {vec} poison, <{lanes} x i32> <{picks}>")
            f.store_vector(dtype, part, f.address(to, str(number * lanes * size)))
    with f.loop(whole, "%taps", "1") as tap:
        at = f.op(f"mul i64 {tap.index}, %along")
        to = f.address("%to", f.op(f"mul i64 {tap.index}, {height * size}"))
        for r, row in enumerate(rows):
            value = f.load(element, f.address(row, at))
            f.do(f"store {element} {value}, ptr {f.address(to, str(r * size))}, align 1")
    f.do("ret void")
    module.helper("pack_kernels", f.text(f"void @pack_kernels({PACK_PARAMETERS}) #0"))


def _write_height(module: Module, dtype: DType, height: int, vectors: int, counts: Sequence[int]) -> None:
    """Write all positions of ``height`` channels: whole tiles, then tiles of fewer vectors, as `find_counts` counts."""
    f = Function(module, vector_target().vector_bytes // dtype.itemsize)
    width = f.lanes * dtype.itemsize
    start, left = "0", "%pitch"
    for count in counts:
        left = f.op(f"srem i64 {left}, {count * width}")
        if count == vectors > 2:
            is_one = f.op(f"icmp eq i64 {left}, {width}")
            divides = f.op(f"and i1 {is_one}, {f.op(f'icmp sgt i64 %pitch, {vectors * width}')}")
            left = f.op(f"select i1 {divides}, i64 {(vectors + 1) * width}, i64 {left}")
        stop = f.op(f"sub i64 %pitch, {left}")
        with f.loop(start, stop, str(count * width)) as at:
            _write_tile(f, dtype, at.index, height, count)
        start = stop
    f.do("ret void")
    module.helper("shifted_tiles", f.text(f"void @shifted_tiles({PARAMETERS}) #0"))


def _write_tile(f: Function, dtype: DType, start: str, height: int, vectors: int) -> None:
    """Write the loop over the taps of a tile whose positions begin at a byte."""
    size, element = dtype.itemsize, REGISTER[dtype]
    width, vec = f.lanes * size, f.vec(element)
    planes, to = f.address("%planes", start), f.address("%to", start)
    rows = [f.address(to, f.op(f"mul i64 %pitch, {r}")) for r in range(height)]
    sums = [f.address(row, str(v * width)) for row in rows for v in range(vectors)]
    before = [f.load_vector(dtype, pointer) for pointer in sums]
    begin = [f.op(f"select i1 %adds, {vec} {value}, {vec} zeroinitializer") for value in before]
    with f.loop("0", "%taps", "1", [(vec, value) for value in begin]) as tap:
        offset = f.load("i64", f.address("%offsets", f.op(f"mul i64 {tap.index}, 8")))
        plane = f.address(planes, offset)
        weights = f.address("%kernels", f.op(f"mul i64 {tap.index}, {height * size}"))
        loaded = [f.load_vector(dtype, f.address(plane, str(v * width))) for v in range(vectors)]
        for r in range(height):
            weight = f.load_splat(dtype, f.address(weights, str(r * size)))
            for v, vector in enumerate(loaded):
                own = r * vectors + v
                tap.next[own] = multiply_add(f, element, weight, vector, tap.carried[own])
    for total, pointer in zip(tap.carried, sums, strict=True):
        f.store_vector(dtype, total, pointer)
