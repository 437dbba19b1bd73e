"""Products of windows with a packed matrix: the micro-kernel of the derivatives of convolutions by their kernels.

``to[row, column] += sum over y, x of plane[row offset + y, x] * packed[y, x, column]``: the kernel is as large as the
plane, and the results are few, so the columns are the channels of the result. A tile has some rows by some vectors of
columns, in registers; each element is a chain of fused multiply-adds over y and x, added to what is there.
"""

from __future__ import annotations

from ....registry.dtypes import DType
from ..target import vector_target
from .small_product import multiply_add, tile_heights, write_pack
from .text import REGISTER, Function, Module

PARAMETERS = (
    "ptr %offsets, i64 %rows, ptr %planes, i64 %over, i64 %along, "
    "ptr %packed, i64 %depth, i64 %wide, ptr %to, i64 %pitch"
)


def write_window_tiles(dtype: DType, vectors: int) -> str:
    """Return LLVM IR of ``window_tiles(offsets, rows, planes, over, along, packed, depth, wide, to, pitch, start)``.

    It computes all rows by some vectors of columns, from byte ``start`` of a row on: high tiles, then lower ones.

    ``offsets`` has the bytes from ``planes`` to the first element of each row; its elements are ``over`` and ``along``
    bytes apart. ``packed`` is (depth, wide, pitch) and ``to`` (rows, pitch); ``pitch`` is in bytes, of whole vectors.
    """
    module = Module()
    f = Function(module, vector_target().vector_bytes // dtype.itemsize)
    row = "0"
    for height in tile_heights()[vectors]:
        rest = f.op(f"srem i64 {f.op(f'sub i64 %rows, {row}')}, {height}")
        stop = f.op(f"sub i64 %rows, {rest}")
        with f.loop(row, stop, str(height)) as at:
            _write_tile(f, dtype, at.index, height, vectors)
        row = stop
    f.do("ret void")
    module.helper("window_tiles", f.text(f"void @window_tiles({PARAMETERS}, i64 %start) #0"))
    return str(module)


def write_transpose(dtype: DType) -> str:
    """Return LLVM IR of ``loop(source, to, rows, columns, along, over, pitch)``, which transposes (columns, rows).

    The strides of ``source`` are ``over`` and ``along`` bytes; the rows of ``to`` are ``pitch`` bytes apart.
    """
    module, lanes = Module(), vector_target().vector_bytes // dtype.itemsize
    write_pack(module, "pack", dtype, lanes)
    f = Function(module, lanes)
    given = "ptr %source, ptr %to, i64 %rows, i64 %columns, i64 %along, i64 %over, i64 %pitch"
    f.do(f"call void @pack({given})")
    f.do("ret void")
    parameters = "ptr %source, ptr %to, i64 %rows, i64 %columns, i64 %along, i64 %over, i64 %pitch"
    module.helper("loop", f.text(f"void @loop({parameters}) #0"))
    return str(module)


def _write_tile(f: Function, dtype: DType, row: str, height: int, vectors: int) -> None:
    """Write the loops over the elements of a window for a tile of rows."""
    size, element, vec = dtype.itemsize, REGISTER[dtype], f.vec(REGISTER[dtype])
    width, numbers = f.lanes * size, [f.op(f"add i64 {row}, {r}") for r in range(height)]
    offsets = [f.load("i64", f.address("%offsets", f.op(f"mul i64 {number}, 8"))) for number in numbers]
    windows = [f.address("%planes", offset) for offset in offsets]
    packed = f.address("%packed", "%start")
    zeros = [(vec, "zeroinitializer")] * (height * vectors)
    with f.loop("0", "%depth", "1", zeros) as y:
        over = f.op(f"mul i64 {y.index}, %over")
        before = f.op(f"mul i64 {y.index}, %wide")
        sums = [(vec, value) for value in y.carried]
        lines = [f.address(window, over) for window in windows]
        with f.loop("0", "%wide", "1", sums) as x:
            along = f.op(f"mul i64 {x.index}, %along")
            step = f.op(f"mul i64 {f.op(f'add i64 {before}, {x.index}')}, %pitch")
            source = f.address(packed, step)
            loaded = [f.load_vector(dtype, f.address(source, str(v * width))) for v in range(vectors)]
            for r, line in enumerate(lines):
                factor = f.load_splat(dtype, f.address(line, along))
                for v, vector in enumerate(loaded):
                    own = r * vectors + v
                    x.next[own] = multiply_add(f, element, factor, vector, x.carried[own])
        y.next[:] = x.carried
    for r, number in enumerate(numbers):
        target = f.address(f.address("%to", f.op(f"mul i64 {number}, %pitch")), "%start")
        for v in range(vectors):
            target_vector = f.address(target, str(v * width))
            total = f.op(f"fadd {vec} {f.load_vector(dtype, target_vector)}, {y.carried[r * vectors + v]}")
            f.store_vector(dtype, total, target_vector)
