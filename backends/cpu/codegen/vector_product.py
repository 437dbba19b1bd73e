"""Matrix-vector and dot products (``gemv`` and ``dot`` of BLAS), with sizes and strides known at run time.

They compute ``c += x @ v``. Element ``k`` of a sum is added to partial sum ``k % LANES``, and the partial sums are
added in a fixed tree. So the bits of a result do not depend on the matrix's layout: a row of memory is read either as
elements of one sum, a vector of partial sums at a time, or as elements of several sums, with as many vectors as there
are partial sums.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....registry.dtypes import DType
from ..target import vector_target
from .elementwise import lanes_below
from .small_product import multiply_add
from .text import REGISTER, Function, Module

ROW_TILES = (4, 1)  # rows whose partial sums are in registers
DOT_FACTOR = 4  # factor of partial sums in a product of two vectors
TILE = 512  # columns whose partial sums are in memory
SHORT_LANES = 4  # maximum partial sums of a sum of so few elements: the others would be 0
ROWS_PER_STEP = 4  # rows that are added to a partial sum in one step
SIGNATURE = "ptr %x, ptr %v, ptr %c, i64 %m, i64 %k, i64 %row, i64 %column, i64 %step"


def lane_count(dtype: DType) -> int:
    """Return the number of partial sums of each element."""
    return 64 // dtype.itemsize


def write_vector_products(module: Module, dtype: DType) -> None:
    """Add three functions, each ``void name(x, v, c, m, k, row, column, step)`` with strides in bytes.

    ``rows_by_vector``: the matrix has contiguous rows, and so is the vector; ``columns_by_vector``: it has contiguous
    columns; ``dot_product``: one row, and both are contiguous.
    """
    lanes = lane_count(dtype)
    _write_rows(module, "rows_by_vector", dtype, lanes, ROW_TILES)
    _write_rows(module, "dot_product", dtype, DOT_FACTOR * lanes, (1,))
    _write_columns(module, "long_columns", dtype, lanes)
    _write_columns(module, "short_columns", dtype, SHORT_LANES)
    f = Function(module, 1)
    f.branch(f.op(f"icmp sle i64 %k, {SHORT_LANES}"), "short", "long")
    for label in ("short", "long"):
        f.label(label)
        f.do(f"call void @{label}_columns({SIGNATURE})")
        f.do("ret void")
    module.helper("columns_by_vector", f.text(f"void @columns_by_vector({SIGNATURE}) #1"))


def _write_rows(module: Module, name: str, dtype: DType, lanes: int, heights: tuple[int, ...]) -> None:
    f = Function(module, lanes)
    whole = f.op(f"and i64 %k, {-lanes}")
    mask = lanes_below(f, f.op(f"sub i64 %k, {whole}"))
    row = "0"
    for height in heights:
        stop = f.op(f"sub i64 %m, {f.op(f'srem i64 %m, {height}')}")
        with f.loop(row, stop, str(height)) as at:
            _emit_rows(f, dtype, at.index, height, whole, mask)
        row = stop
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}({SIGNATURE}) #1"))


def _emit_rows(f: Function, dtype: DType, row: str, height: int, whole: str, mask: str) -> None:
    """Write the dot products of some rows from ``row`` on with the vector; partial sums stay in registers."""
    size, element = dtype.itemsize, REGISTER[dtype]
    vec = f.vec(element)
    row_addresses = [
        f.address("%x", f.op(f"mul i64 {f.op(f'add i64 {row}, {r}')}, %row")) for r in range(height)
    ]
    with f.loop("0", whole, str(f.lanes), [(vec, "zeroinitializer")] * height) as step:
        offset = f.op(f"mul i64 {step.index}, {size}")
        factor = f.load_vector(dtype, f.address("%v", offset))
        for r, row_address in enumerate(row_addresses):
            x = f.load_vector(dtype, f.address(row_address, offset))
            step.next[r] = multiply_add(f, element, x, factor, step.carried[r])
    offset = f.op(f"mul i64 {whole}, {size}")
    factor = f.load_masked(dtype, f.address("%v", offset), mask)
    for r, row_address in enumerate(row_addresses):
        x = f.load_masked(dtype, f.address(row_address, offset), mask)
        updated = multiply_add(f, element, x, factor, step.carried[r])
        masked = f.op(f"select {f.vec('i1')} {mask}, {vec} {updated}, {vec} {step.carried[r]}")
        address = f.address("%c", f.op(f"mul i64 {f.op(f'add i64 {row}, {r}')}, {size}"))
        total = f.op(f"fadd {element} {f.load(element, address)}, {_sum_lanes(f, element, masked, f.lanes)}")
        f.do(f"store {element} {total}, ptr {address}, align 1")


def _sum_lanes(f: Function, element: str, vector: str, lanes: int) -> str:
    """Return the sum of a vector's lanes: add its halves until one lane is left."""
    while lanes > 1:
        with f.width(lanes):
            halves = [f.extract_lanes(vector, element, at, lanes // 2) for at in (0, lanes // 2)]
        lanes //= 2
        vector = f.op(f"fadd <{lanes} x {element}> {halves[0]}, {halves[1]}")
    return f.op(f"extractelement <1 x {element}> {vector}, i64 0")


def _write_columns(module: Module, name: str, dtype: DType, lanes: int) -> None:
    """Write the product by columns: partial sums of a tile of columns stay in the first-level cache."""
    width, size = vector_target().vector_bytes // dtype.itemsize, dtype.itemsize
    f = Function(module, width)
    module.declare("llvm.smin.i64", "i64", "i64", "i64")
    buffer = f.allocate(lanes * TILE * size)
    whole = f.op(f"and i64 %k, {-lanes * ROWS_PER_STEP}")
    with f.loop("0", "%m", str(TILE)) as tile:
        count = f.op(f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 %m, {tile.index}')}, i64 {TILE})")
        x = f.address("%x", f.op(f"mul i64 {tile.index}, {size}"))
        c = f.address("%c", f.op(f"mul i64 {tile.index}, {size}"))
        with f.loop("0", str(lanes), "1") as lane:
            sums = f.address(buffer, f.op(f"mul i64 {lane.index}, {TILE * size}"))
            with f.loop("0", count, str(width)) as at:
                f.store_vector(dtype, "zeroinitializer", f.address(sums, f.op(f"mul i64 {at.index}, {size}")))
        with f.loop("0", whole, str(lanes * ROWS_PER_STEP)) as block, f.loop("0", str(lanes), "1") as lane:
            first = f.op(f"add i64 {block.index}, {lane.index}")
            rows = [f.op(f"add i64 {first}, {lanes * d}") for d in range(ROWS_PER_STEP)]
            _add_rows(
                f, dtype, x, rows, f.address(buffer, f.op(f"mul i64 {lane.index}, {TILE * size}")), count
            )
        with f.loop(whole, "%k", "1") as row:
            lane_at = f.op(f"mul i64 {f.op(f'and i64 {row.index}, {lanes - 1}')}, {TILE * size}")
            _add_rows(f, dtype, x, [row.index], f.address(buffer, lane_at), count)
        for offset, mask in _loop_over_vectors(f, dtype, count):
            addresses = [f.address(f.address(buffer, str(at * TILE * size)), offset) for at in range(lanes)]
            partial_sums = [f.load_vector(dtype, address) for address in addresses]
            while len(partial_sums) > 1:
                half = len(partial_sums) // 2
                pairs = zip(partial_sums[:half], partial_sums[half:], strict=True)
                partial_sums = [f.op(f"fadd {f.vec(REGISTER[dtype])} {one}, {two}") for one, two in pairs]
            address = f.address(c, offset)
            before = _load_with_mask(f, dtype, address, mask)
            total = f.op(f"fadd {f.vec(REGISTER[dtype])} {before}, {partial_sums[0]}")
            if mask:
                f.store_masked(dtype, total, address, mask)
            else:
                f.store_vector(dtype, total, address)
    f.do("ret void")
    module.helper(name, f.text(f"internal void @{name}({SIGNATURE}) #1"))


def _loop_over_vectors(f: Function, dtype: DType, count: str) -> Iterator[tuple[str, str]]:
    """Loop over the vectors of a tile: yield the offset in bytes, and the mask of the last, partial vector."""
    whole = f.op(f"and i64 {count}, {-f.lanes}")
    with f.loop("0", whole, str(f.lanes)) as at:
        yield f.op(f"mul i64 {at.index}, {dtype.itemsize}"), ""
    left = f.op(f"sub i64 {count}, {whole}")
    with f.when(f.op(f"icmp sgt i64 {left}, 0")):
        yield f.op(f"mul i64 {whole}, {dtype.itemsize}"), lanes_below(f, left)


def _load_with_mask(f: Function, dtype: DType, address: str, mask: str) -> str:
    return f.load_masked(dtype, address, mask) if mask else f.load_vector(dtype, address)


def _add_rows(f: Function, dtype: DType, x: str, rows: list[str], sums: str, count: str) -> None:
    """Add products with some rows, in order, to partial sums, which are padded to whole vectors."""
    addresses = [f.address(x, f.op(f"mul i64 {row}, %column")) for row in rows]
    factors = [f.load_splat(dtype, f.address("%v", f.op(f"mul i64 {row}, %step"))) for row in rows]
    for offset, mask in _loop_over_vectors(f, dtype, count):
        total = f.load_vector(dtype, f.address(sums, offset))
        for address, factor in zip(addresses, factors, strict=True):
            part = _load_with_mask(f, dtype, f.address(address, offset), mask)
            total = multiply_add(f, REGISTER[dtype], part, factor, total)
        f.store_vector(dtype, total, f.address(sums, offset))
