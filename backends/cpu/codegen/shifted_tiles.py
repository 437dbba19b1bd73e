"""Sums of products of shifted planes: the micro-kernel of convolutions whose planes are multiplied in place.

A tile has some channels of the result (its height) by some vectors of positions, all in registers. Each element is the
chain ``fma(weight, plane[offset + position], ...)`` over the taps in order, so its bits do not depend on tiles.
"""

from __future__ import annotations

from ....registry.dtypes import DType
from ..target import vector_target
from .small_product import multiply_add
from .text import REGISTER, Function, Module

# Vectors of positions of a tile, by its height: as many sums as the registers hold, and enough to hide their latency.
VECTORS = {8: 3, 6: 4, 4: 5, 2: 8, 1: 8}
NARROW_VECTORS = {6: 2, 4: 2, 2: 4, 1: 8}
PARAMETERS = "ptr %kernels, ptr %planes, ptr %offsets, i64 %taps, ptr %to, i64 %pitch"


def tile_vectors() -> dict[int, int]:
    """Return the tiles of this machine: the vectors of positions for each height, the highest first."""
    return VECTORS if vector_target().masks else NARROW_VECTORS


def write_shifted_tiles(dtype: DType) -> str:
    """Return LLVM IR of ``shifted_tiles(kernels, planes, offsets, taps, to, pitch, height)``.

    ``kernels`` is (taps, height), ``offsets`` has the bytes from ``planes`` to the first element of each tap, and
    ``to`` is (height, pitch); ``pitch`` is in bytes, and a multiple of the width of all vectors.
    """
    module, name = Module(), "shifted_tiles"
    lanes = vector_target().vector_bytes // dtype.itemsize
    f = Function(module, lanes)
    for height, vectors in tile_vectors().items():
        _write_height(module, f"{name}_{height}", dtype, height, vectors)
        with f.when(f.op(f"icmp eq i64 %height, {height}")):
            f.do(f"call void @{name}_{height}({PARAMETERS})")
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}({PARAMETERS}, i64 %height) #0"))
    return str(module)


def _write_height(module: Module, name: str, dtype: DType, height: int, vectors: int) -> None:
    """Write all positions of ``height`` channels: whole tiles, then one tile of the vectors that are left."""
    f = Function(module, vector_target().vector_bytes // dtype.itemsize)
    width = f.lanes * dtype.itemsize
    whole = f.op(f"sub i64 %pitch, {f.op(f'srem i64 %pitch, {vectors * width}')}")
    with f.loop("0", whole, str(vectors * width)) as at:
        _write_tile(f, dtype, at.index, height, vectors)
    left = f.op(f"sub i64 %pitch, {whole}")
    for count in range(1, vectors):
        with f.when(f.op(f"icmp eq i64 {left}, {count * width}")):
            _write_tile(f, dtype, whole, height, count)
    f.do("ret void")
    module.helper(name, f.text(f"internal void @{name}({PARAMETERS}) #1"))


def _write_tile(f: Function, dtype: DType, start: str, height: int, vectors: int) -> None:
    """Write the loop over the taps of a tile whose positions begin at a byte."""
    size, element = dtype.itemsize, REGISTER[dtype]
    width, vec = f.lanes * size, f.vec(element)
    planes, to = f.address("%planes", start), f.address("%to", start)
    with f.loop("0", "%taps", "1", [(vec, "zeroinitializer")] * (height * vectors)) as tap:
        offset = f.load("i64", f.address("%offsets", f.op(f"mul i64 {tap.index}, 8")))
        plane = f.address(planes, offset)
        weights = f.address("%kernels", f.op(f"mul i64 {tap.index}, {height * size}"))
        loaded = [f.load_vector(dtype, f.address(plane, str(v * width))) for v in range(vectors)]
        for r in range(height):
            weight = f.load_splat(dtype, f.address(weights, str(r * size)))
            for v, vector in enumerate(loaded):
                own = r * vectors + v
                tap.next[own] = multiply_add(f, element, weight, vector, tap.carried[own])
    for r in range(height):
        row = f.address(to, f.op(f"mul i64 %pitch, {r}"))
        for v in range(vectors):
            f.store_vector(dtype, tap.carried[r * vectors + v], f.address(row, str(v * width)))
