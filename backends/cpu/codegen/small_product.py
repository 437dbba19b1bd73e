"""Small matrix products with sizes and strides known at run time: ``c += a @ b``, a chain of FMAs per element.

A micro-kernel computes a register tile of ``c``: some rows by some vectors of columns. Rows of ``b`` that are not
contiguous are packed first. Each element of the result is the sum over blocks of ``DEPTH`` steps of the chains
``fma(a[i, k], b[k, j], ...)``: its bits do not depend on strides, tiles or vector width. A block of ``b`` fits in
the first cache, and the error of a long sum grows with the number of blocks.
"""

from __future__ import annotations

from ....named_tuple import NamedTuple
from ....registry.dtypes import DType
from ..target import vector_target
from .elementwise import lanes_below
from .text import REGISTER, Function, Module

DEPTH = 128  # rows of ``b`` that are multiplied at a time, and packed if they are not contiguous
# Rows of a register tile, by the number of vectors; 0: one vector of half the width, for a few columns.
Heights = dict[int, tuple[int, ...]]
HEIGHTS: Heights = {0: (12, 4, 2, 1), 1: (12, 4, 2, 1), 2: (8, 4, 2, 1), 3: (8, 4, 2, 1), 4: (6, 4, 2, 1)}
NARROW_HEIGHTS: Heights = {1: (8, 4, 2, 1), 2: (6, 4, 2, 1)}
SIZES = "i64 %m, i64 %k, i64 %n, i64 %a_row, i64 %a_column, i64 %b_row, i64 %c_row"


def tile_heights() -> Heights:
    """Return the register tiles of this machine: for each number of vectors, the numbers of rows."""
    return HEIGHTS if vector_target().masks else NARROW_HEIGHTS


class Coverage(NamedTuple):
    """The products of small matrices that code computes.

    Attributes:
        tiles: the register tiles that have code: the number of vectors of columns and that of rows, of `tile_heights`.
        packs: whether the columns of ``b`` may be apart.
    """

    tiles: frozenset[tuple[int, int]]
    packs: bool = True

    def includes(self, other: Coverage) -> bool:
        """Return whether code for this coverage computes the products of another."""
        return self.tiles >= other.tiles and self.packs >= other.packs

    @property
    def widths(self) -> list[int]:
        """The numbers of vectors of columns that have code."""
        return sorted({vectors for vectors, _ in self.tiles})


def full_coverage() -> Coverage:
    """Return the coverage of code for products of all sizes and strides."""
    return Coverage(
        frozenset((vectors, height) for vectors, heights in tile_heights().items() for height in heights)
    )


def find_coverage(rows: int, columns: int, step: int, dtype: DType) -> Coverage:
    """Return what a product needs: ``a`` has some rows, ``b`` has some columns, which are ``step`` bytes apart."""
    lanes, most = vector_target().vector_bytes // dtype.itemsize, max(tile_heights())
    whole, rest = divmod(columns, lanes * most)
    widths = {most} if whole else set()
    if rest:
        widths.add(0 if 0 in tile_heights() and rest <= lanes // 2 else -(-rest // lanes))
    tiles = frozenset((width, height) for width in widths for height in _find_heights(rows, width))
    return Coverage(tiles, step != dtype.itemsize)


def _find_heights(rows: int, width: int) -> set[int]:
    """Return the heights of the register tiles that compute some rows."""
    result = set()
    for height in tile_heights()[width]:
        count, rows = divmod(rows, height)
        result |= {height} if count else set()
    return result


def write_small_product(module: Module, name: str, dtype: DType, coverage: Coverage | None = None) -> None:
    """Add ``void name(ptr a, ptr b, ptr c, ptr sizes, ptr strides)`` (see ``rt_gemm``), which adds to ``c``.

    With a coverage it computes these products only, with the same bits.
    """
    coverage = coverage or full_coverage()
    lanes, size = vector_target().vector_bytes // dtype.itemsize, dtype.itemsize
    panel = lanes * max(tile_heights())
    for vectors in coverage.widths:
        heights = sorted((height for width, height in coverage.tiles if width == vectors), reverse=True)
        lanes_used = lanes if vectors else lanes // 2
        _write_rows(module, f"{name}_{vectors}", dtype, lanes_used, max(vectors, 1), heights)
    _write_panel(module, name, lanes, coverage)
    if coverage.packs:
        write_pack(module, f"{name}_pack", dtype, lanes, panel)
    f = Function(module, lanes)
    m, k, n = (f.load("i64", f.address("%sizes", str(8 * at))) for at in range(3))
    a_row, a_column, b_row, b_column, c_row = (
        f.load("i64", f.address("%strides", str(8 * at))) for at in range(5)
    )
    module.declare("llvm.smin.i64", "i64", "i64", "i64")
    buffer = f.allocate(DEPTH * panel * size)
    is_dense = f.op(f"icmp eq i64 {b_column}, {size}")
    step = f.op(f"select i1 {is_dense}, i64 {b_row}, i64 {panel * size}")
    with f.loop("0", k, str(DEPTH)) as done, f.loop("0", n, str(panel)) as at:
        width = f.op(f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 {n}, {at.index}')}, i64 {panel})")
        depth = f.op(f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 {k}, {done.index}')}, i64 {DEPTH})")
        a = f.address("%a", f.op(f"mul i64 {done.index}, {a_column}"))
        b = f.address("%b", f.op(f"mul i64 {done.index}, {b_row}"))
        b = f.address(b, f.op(f"mul i64 {at.index}, {b_column}"))
        c = f.address("%c", f.op(f"mul i64 {at.index}, {size}"))
        rows = b
        if coverage.packs:
            with f.when(f.op(f"xor i1 {is_dense}, true")):
                arguments = f"ptr {b}, ptr {buffer}, i64 {depth}, i64 {width}, i64 {b_row}, i64 {b_column}"
                f.do(f"call void @{name}_pack({arguments})")
            rows = f.op(f"select i1 {is_dense}, ptr {b}, ptr {buffer}")
        strides = f"i64 {a_row}, i64 {a_column}, i64 {step}, i64 {c_row}"
        given = f"ptr {a}, ptr {rows}, ptr {c}, i64 {m}, i64 {depth}, i64 {width}, {strides}"
        f.do(f"call void @{name}_panel({given})")
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}(ptr %a, ptr %b, ptr %c, ptr %sizes, ptr %strides) #0"))


def _write_panel(module: Module, name: str, lanes: int, coverage: Coverage) -> None:
    """Write ``name_panel``: at most as many columns as a tile has; calls the function for that many vectors."""
    f = Function(module, lanes)
    vectors = f.op(f"sdiv i64 {f.op(f'add i64 %n, {lanes - 1}')}, {lanes}")
    if 0 in tile_heights():
        few = f.op(f"icmp sle i64 %n, {lanes // 2}")
        vectors = f.op(f"select i1 {few}, i64 0, i64 {vectors}")
    given = ", ".join(("ptr %a", "ptr %b", "ptr %c", SIZES))
    for count in coverage.widths:
        with f.when(f.op(f"icmp eq i64 {vectors}, {count}")):
            f.do(f"call void @{name}_{count}({given})")
    f.do("ret void")
    module.helper(f"{name}_panel", f.text(f"internal void @{name}_panel(ptr %a, ptr %b, ptr %c, {SIZES}) #0"))


def _write_rows(
    module: Module, name: str, dtype: DType, lanes: int, vectors: int, heights: list[int]
) -> None:
    """Write all rows by some vectors of columns, of which the last may be partial: high tiles, then lower ones."""
    f = Function(module, lanes)
    mask = lanes_below(f, f.op(f"sub i64 %n, {(vectors - 1) * lanes}"))
    row, left = "0", "%m"
    for height in heights:
        after = f.op(f"srem i64 {left}, {height}")
        stop = f.op(f"sub i64 %m, {after}")
        with f.loop(row, stop, str(height)) as at:
            _write_micro_kernel(f, dtype, at.index, height, vectors, mask)
        row, left = stop, after
    f.do("ret void")
    module.helper(name, f.text(f"internal void @{name}(ptr %a, ptr %b, ptr %c, {SIZES}) #1"))


def _write_micro_kernel(f: Function, dtype: DType, row: str, height: int, vectors: int, mask: str) -> None:
    """Write the loop over ``k`` of a register tile: ``height`` rows from ``row`` on, ``vectors`` vectors of columns."""
    size, element = dtype.itemsize, REGISTER[dtype]
    vec, short = f.vec(element), vectors - 1
    a_rows = _row_addresses(f, "%a", row, "%a_row", height)
    c_rows = _row_addresses(f, "%c", row, "%c_row", height)
    addresses = [(f.address(c, str(v * f.lanes * size)), v) for c in c_rows for v in range(vectors)]
    with f.loop("0", "%k", "1", [(vec, "zeroinitializer")] * len(addresses)) as step:
        b = f.address("%b", f.op(f"mul i64 {step.index}, %b_row"))
        addresses_b = [f.address(b, str(v * f.lanes * size)) for v in range(vectors)]
        loaded = [
            f.load_masked(dtype, p, mask) if v == short else f.load_vector(dtype, p)
            for v, p in enumerate(addresses_b)
        ]
        along = f.op(f"mul i64 {step.index}, %a_column")
        for r, a in enumerate(a_rows):
            factor = f.load_splat(dtype, f.address(a, along))
            for v, vector in enumerate(loaded):
                at = r * vectors + v
                step.next[at] = multiply_add(f, element, factor, vector, step.carried[at])
    for (address, v), chain in zip(addresses, step.carried, strict=True):
        if v == short:
            before = f.load_masked(dtype, address, mask)
            f.store_masked(dtype, f.op(f"fadd {vec} {before}, {chain}"), address, mask)
        else:
            before = f.load_vector(dtype, address)
            f.store_vector(dtype, f.op(f"fadd {vec} {before}, {chain}"), address)


def _row_addresses(f: Function, start: str, row: str, step: str, height: int) -> list[str]:
    """Return the addresses of some rows from a row on: each is a step after the one before."""
    result = [f.address(start, f.op(f"mul i64 {row}, {step}"))]
    while len(result) < height:
        result.append(f.address(result[-1], step))
    return result


def multiply_add(f: Function, element: str, a: str, b: str, c: str) -> str:
    """Return ``a * b + c``, rounded once if the processor has FMA."""
    if vector_target().fma:
        return f.intrinsic("fma", element, a, b, c)
    vec = f.vec(element)
    return f.op(f"fadd {vec} {f.op(f'fmul {vec} {a}, {b}')}, {c}")


def write_pack(module: Module, name: str, dtype: DType, lanes: int, panel: int = 0) -> None:
    """Add ``name``: pack ``depth`` by ``width`` elements of ``b`` into rows that are ``panel`` elements apart.

    Where ``panel`` is 0, the function has one more parameter: the bytes between rows. Squares of columns that are
    contiguous are transposed in registers; with masks also those that have fewer columns, whose last one is read again.
    """
    f, masks = Function(module, lanes), vector_target().masks
    size, element = dtype.itemsize, REGISTER[dtype]
    pitch = str(panel * size) if panel else "%pitch"
    is_transposed = f.op(f"icmp eq i64 %b_row, {size}")
    deep = f.op(f"select i1 {is_transposed}, i64 {f.op(f'and i64 %depth, {-lanes}')}, i64 0")
    wide = "%width" if masks else f.op(f"and i64 %width, {-lanes}")
    with f.when(f.op(f"icmp sgt i64 {deep}, 0")), f.loop("0", wide, str(lanes)) as column:
        left = f.op(f"sub i64 %width, {column.index}")
        mask = lanes_below(f, left) if masks else ""
        columns = [f.op(f"add i64 {column.index}, {i}") for i in _limit(f, left, masks)]
        starts = [f.op(f"mul i64 {number}, %b_column") for number in columns]
        into = f.address("%into", f.op(f"mul i64 {column.index}, {size}"))
        with f.loop("0", deep, str(lanes)) as at:
            source = f.address("%b", f.op(f"mul i64 {at.index}, {size}"))
            vectors = [f.load_vector(dtype, f.address(source, start)) for start in starts]
            target = f.address(into, f.op(f"mul i64 {at.index}, {pitch}"))
            for i, vector in enumerate(transpose_vectors(f, element, vectors)):
                to = f.address(target, f.op(f"mul i64 {pitch}, {i}"))
                f.store_masked(dtype, vector, to, mask) if masks else f.store_vector(dtype, vector, to)
    below, beside = (deep, "%depth", "0", "%width"), ("0", deep, wide, "%width")
    for start, stop, first, last in (below,) if masks else (below, beside):
        with f.loop(start, stop, "1") as at, f.loop(first, last, "1") as column:
            source = f.address("%b", f.op(f"mul i64 {at.index}, %b_row"))
            source = f.address(source, f.op(f"mul i64 {column.index}, %b_column"))
            target = f.address("%into", f.op(f"mul i64 {at.index}, {pitch}"))
            target = f.address(target, f.op(f"mul i64 {column.index}, {size}"))
            f.do(f"store {element} {f.load(element, source)}, ptr {target}")
    f.do("ret void")
    parameters = "ptr %b, ptr %into, i64 %depth, i64 %width, i64 %b_row, i64 %b_column"
    parameters += "" if panel else ", i64 %pitch"
    module.helper(name, f.text(f"internal void @{name}({parameters}) #1"))


def _limit(f: Function, count: str, limits: bool) -> list[str]:
    """Return the numbers of a vector's lanes; if they are limited, at most ``count - 1``."""
    if not limits:
        return [str(i) for i in range(f.lanes)]
    f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
    last = f.op(f"sub i64 {count}, 1")
    return [f.op(f"call i64 @llvm.smin.i64(i64 {last}, i64 {i})") for i in range(f.lanes)]


def transpose_vectors(f: Function, element: str, vectors: list[str]) -> list[str]:
    """Transpose a square of vectors: each round interleaves the first half of the vectors with the second."""
    lanes, vec = f.lanes, f.vec(element)
    low = ", ".join(f"i32 {i // 2 + (i % 2) * lanes}" for i in range(lanes))
    high = ", ".join(f"i32 {lanes // 2 + i // 2 + (i % 2) * lanes}" for i in range(lanes))
    for _ in range(lanes.bit_length() - 1):
        pairs = zip(vectors[: lanes // 2], vectors[lanes // 2 :], strict=True)
        vectors = [
            f.op(f"shufflevector {vec} {one}, {vec} {two}, <{lanes} x i32> <{order}>")
            for one, two in pairs
            for order in (low, high)
        ]
    return vectors
