"""Small matrix products: blocks of the result are held in registers while the rows of ``b`` go by.

A library packs its operands and finds out how to go about it at each call, which for matrices of some ten rows takes
longer than the arithmetic. Here all sizes and strides are known when the code is written. A block is some rows by some
vectors of columns; for each step of the depth one row of ``b`` is loaded, and each element of a column of ``a`` is
multiplied with it. ``a`` may lie in any way; ``b`` is turned into a buffer first if its rows are not contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .host import host
from .text import REGISTER, Function, Module

DEPTH = 128  # up to this the depth is done at once
PART = 32  # of a longer one so much at a time: that, and what is fetched for the next time, fit in the first cache
BUFFER = 1 << 16  # bytes on the stack, at most
SIDE = 256  # the most rows, and columns
SIZE = 128 * 256  # the most elements of the result: for larger ones BLAS may use several threads
FEW = 8  # the least rows: for fewer it may not pay to turn b


@dataclass(frozen=True)
class Product:
    """``c = a @ b`` of matrices, with ``c`` contiguous.

    Attributes:
        rows, columns, depth: sizes.
        a, b: the strides of the operands, in elements.
        steps: how many products are summed up: ``c = sum(a[t] @ b[t])``.
        a_step, b_step: from one of those to the next, in elements.
    """

    dtype: DType
    rows: int
    columns: int
    depth: int
    a: tuple[int, int]
    b: tuple[int, int]
    steps: int = 1
    a_step: int = 0
    b_step: int = 0

    @property
    def name(self) -> str:
        """Of its function."""
        sizes = (self.rows, self.columns, self.depth, *self.a, *self.b, self.steps, self.a_step, self.b_step)
        return f"product_{self.dtype.name}_{'_'.join(map(str, sizes)).replace('-', 'm')}"

    @property
    def lanes(self) -> int:
        """Elements in a vector: as many as a register holds, fewer where the columns are no multiple of that."""
        lanes = host().vector_bytes // self.dtype.itemsize
        while lanes > 4 and self.columns % lanes:
            lanes //= 2
        return lanes

    @property
    def is_turned(self) -> bool:
        """Whether the rows of ``b`` are not contiguous."""
        return self.b[1] != 1 and self.columns > 1

    @property
    def part(self) -> int:
        """How much of the depth is done at a time."""
        if self.is_turned:
            return min(self.depth, DEPTH, BUFFER // (self.columns * self.dtype.itemsize))
        return self.depth if self.depth <= DEPTH else PART

    @property
    def accumulates(self) -> bool:
        """Whether the result is added up in memory."""
        return self.steps > 1 or self.part < self.depth


def is_small(dtype: DType, rows: int, columns: int) -> bool:
    """Whether a product is one for this module on this machine."""
    if not host().fma or dtype not in (dt.float32, dt.float64):
        return False
    lanes = Product(dtype, rows, columns, 1, (0, 0), (0, 0)).lanes
    return columns % lanes == 0 and FEW <= rows <= SIDE and columns <= SIDE and rows * columns <= SIZE


def write_product(module: Module, product: Product) -> str:
    """Write ``void name(ptr a, ptr b, ptr c)``, once for equal products; gives the name."""
    name, block = product.name, f"{product.name}_block"
    if name in module.parts:
        return name
    f = Function(module, product.lanes)
    size = product.dtype.itemsize
    if product.accumulates:
        module.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1")
        f.do(
            f"call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 {product.rows * product.columns * size}, i1 false)"
        )
    buffer = f.buffer(product.part * product.columns * size) if product.is_turned else ""
    with f.loop("0", str(product.steps), "1") as step:
        a, b = (
            f.address(x, f.op(f"mul i64 {step.index}, {stride * size}"))
            for x, stride in (("%a", product.a_step), ("%b", product.b_step))
        )
        with f.loop("0", str(product.depth), str(product.part)) as done:
            left = f.op(f"sub i64 {product.depth}, {done.index}")
            module.declare("llvm.smin.i64", "i64", "i64", "i64")
            depth = f.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {product.part})")
            some_a = f.address(a, f.op(f"mul i64 {done.index}, {product.a[1] * size}"))
            some_b = f.address(b, f.op(f"mul i64 {done.index}, {product.b[0] * size}"))
            if product.is_turned:
                f.do(f"call void @{name}_turn(ptr {some_b}, ptr {buffer}, i64 {depth})")
            f.do(f"call void @{block}(ptr {some_a}, ptr {buffer or some_b}, ptr %c, i64 {depth})")
    f.do("ret void")
    turn = _turn(module, f"{name}_turn", product) if product.is_turned else ""
    text = f.text(f"internal void @{name}(ptr %a, ptr %b, ptr %c) #0")
    module.helper(name, turn + _block(module, block, product) + text)
    return name


# -- blocks ------------------------------------------------------------------------------------------------------------
def _panels(product: Product) -> Iterator[tuple[int, int]]:
    """The columns, some vectors at a time: the first, and how many vectors."""
    wide = 4 if host().masks else 2
    vectors = product.columns // product.lanes
    for first in range(0, vectors, wide):
        yield first * product.lanes, min(wide, vectors - first)


def _block(module: Module, name: str, product: Product) -> str:
    """``void name(ptr a, ptr b, ptr c, i64 depth)``: the product of some of the depth, set or added."""
    f = Function(module, product.lanes)
    registers = 24 if host().masks else 12
    for first, vectors in _panels(product):
        height = min(registers // vectors, product.rows)
        whole = product.rows // height * height
        with f.loop("0", str(whole), str(height)) as row:
            _tile(f, product, row.index, height, first, vectors)
        if whole < product.rows:
            _tile(f, product, str(whole), product.rows - whole, first, vectors)
    f.do("ret void")
    return f.text(f"internal void @{name}(ptr %a, ptr %b, ptr %c, i64 %depth) #1")


def _tile(f: Function, product: Product, row: str, height: int, first: int, vectors: int) -> None:
    """Some rows from ``row`` on by some vectors of columns from ``first`` on."""
    size, (a_row, a_column) = product.dtype.itemsize, product.a
    b_row = product.columns if product.is_turned else product.b[0]
    vec, columns = f.vec(REGISTER[product.dtype]), [first + v * f.lanes for v in range(vectors)]
    a = f.address("%a", f.op(f"mul i64 {row}, {a_row * size}"))
    c = f.address("%c", f.op(f"mul i64 {row}, {product.columns * size}"))
    places = [
        f.address(c, str((r * product.columns + column) * size)) for r in range(height) for column in columns
    ]
    start = ["zeroinitializer"] * len(places)
    if product.accumulates:
        start = [f.load_vector(product.dtype, place) for place in places]
    with f.loop("0", "%depth", "1", [(vec, value) for value in start]) as step:
        of_b = f.address("%b", f.op(f"mul i64 {step.index}, {b_row * size}"))
        loaded = [f.load_vector(product.dtype, f.address(of_b, str(column * size))) for column in columns]
        of_a = f.address(a, f.op(f"mul i64 {step.index}, {a_column * size}"))
        if product.part < product.depth and not product.is_turned:
            _fetch(f, of_a, str(product.part * a_column * size))
            _fetch(f, f.address(of_b, f.op(f"mul i64 {row}, {size}")), str(product.part * b_row * size))
        for r in range(height):
            factor = f.load_splat(product.dtype, f.address(of_a, str(r * a_row * size)))
            for v, vector in enumerate(loaded):
                at = r * vectors + v
                step.next[at] = f.intrinsic("fma", REGISTER[product.dtype], factor, vector, step.carried[at])
    for place, value in zip(places, step.carried, strict=True):
        f.store_vector(product.dtype, value, place)


def _fetch(f: Function, place: str, offset: str) -> None:
    """Ask for what will be read in the next round; each block of rows asks for another part of it."""
    f.module.declare("llvm.prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    f.do(f"call void @llvm.prefetch.p0(ptr {f.address(place, offset)}, i32 0, i32 3, i32 1)")


# -- turning -----------------------------------------------------------------------------------------------------------
def _turn(module: Module, name: str, product: Product) -> str:
    """``void name(ptr b, ptr into, i64 depth)``: rows of ``b`` as contiguous rows."""
    f = Function(module, product.lanes)
    lanes, size, (b_row, b_column) = f.lanes, product.dtype.itemsize, product.b
    element, row = REGISTER[product.dtype], product.columns * size
    squares = product.columns // lanes * lanes if b_row == 1 else 0
    whole = f.op(f"and i64 %depth, {-lanes}") if squares else "0"
    for first in range(0, squares, lanes):
        with f.loop("0", whole, str(lanes)) as at:
            source = f.address("%b", f.op(f"mul i64 {at.index}, {size}"))
            target = f.address("%into", f.op(f"mul i64 {at.index}, {row}"))
            vectors = [
                f.load_vector(product.dtype, f.address(source, str((first + i) * b_column * size)))
                for i in range(lanes)
            ]
            for i, vector in enumerate(_transposed(f, element, vectors)):
                f.store_vector(product.dtype, vector, f.address(target, str(i * row + first * size)))
    for start, first, last in ((whole, 0, squares), ("0", squares, product.columns)):
        if first == last:
            continue
        with f.loop(start, "%depth", "1") as at, f.loop(str(first), str(last), "1") as column:
            places = []
            for base, along, across in (("%b", b_row, b_column), ("%into", product.columns, 1)):
                moved = f.op(f"mul i64 {at.index}, {along * size}")
                places.append(
                    f.address(f.address(base, moved), f.op(f"mul i64 {column.index}, {across * size}"))
                )
            f.do(f"store {element} {f.load(element, places[0])}, ptr {places[1]}")
    f.do("ret void")
    return f.text(f"internal void @{name}(ptr %b, ptr %into, i64 %depth) #1")


def _transposed(f: Function, element: str, vectors: list[str]) -> list[str]:
    """A square of vectors, turned: each round interleaves the first half of the vectors with the second."""
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
