"""Print a stage that reads transposed arrays in tiles, each of which is transposed into scratch memory first.

Along the last dimension such an array jumps a whole row at each element, and a cache line fetched for one element is
evicted before its neighbours are needed. A tile reads each line once, completely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ....lowering.fusion.loop_ir import Store
from .text import Function, Module, memory_block

if TYPE_CHECKING:
    from .fused import StagePrinter
    from .vectors import Use

    Uses = dict[str, Use]

ROWS, COLUMNS = 64, 64
"""A tile: some cache lines' worth along the dimension where a transposed array is dense, and some vectors across."""


def find_tiled_dimension(stage: StagePrinter) -> int | None:
    """Return a dimension along which an array is dense that jumps along the last one; None if tiles would not help."""
    if stage.reduces or stage.stage.has_index_maps() or stage.shape[-1] < COLUMNS:
        return None
    jumping = [u.strides for u in stage.uses.values() if u.strides[-1] not in (0, 1)]
    dense = (d for d in range(len(stage.shape) - 1) for s in jumping if s[d] == 1)
    return next((d for d in dense if stage.shape[d] >= ROWS), None)


class TilePrinter:
    """Prints a stage without reductions, in tiles of the dimension ``across`` and the last one."""

    def __init__(self, stage: StagePrinter, across: int):
        self.stage, self.f, self.across = stage, stage.f, across
        self.last = len(stage.shape) - 1

    def write(self) -> None:
        self._outside([d for d in range(self.last) if d != self.across], self.stage.uses)

    def _outside(self, dims: Sequence[int], uses: Uses) -> None:
        if not dims:
            self._tile(uses)
            return
        with self._loop_over(dims[0], str(self.stage.shape[dims[0]]), uses) as moved:
            self._outside(dims[1:], moved)

    def _tile(self, uses: Uses) -> None:
        with (
            self._blocks(self.across, ROWS, uses) as (band, height, first),
            self._blocks(self.last, COLUMNS, band) as (corner, width, offset),
        ):
            turned = {n: self._transpose_tile(u, height, width) for n, u in corner.items()}
            with self._loop_over(self.across, height, turned, first) as row:
                self.stage.write_vector_loop(row, offset, width, [], lambda *_: [])

    @contextmanager
    def _loop_over(self, dim: int, size: str, uses: Uses, first: str = "0") -> Iterator[Uses]:
        """Loop over ``dim``, whose positions begin at ``first``."""
        f, stage = self.f, self.stage
        with f.loop("0", size, "1") as loop:
            stage.indices[stage.dims[dim]] = f.op(f"add i64 {first}, {loop.index}")
            yield {n: u.offset_along(f, dim, loop.index) for n, u in uses.items()}

    @contextmanager
    def _blocks(self, dim: int, size: int, uses: Uses) -> Iterator[tuple[Uses, str, str]]:
        """Loop over blocks of ``dim``: yields (uses at the block's start, its size, its position)."""
        f, whole = self.f, self.stage.shape[dim]
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        with f.loop("0", str(whole), str(size)) as loop:
            moved = {n: u.offset_along(f, dim, loop.index) for n, u in uses.items()}
            rest = f.op(f"sub i64 {whole}, {loop.index}")
            yield moved, f.op(f"call i64 @llvm.smin.i64(i64 {rest}, i64 {size})"), loop.index

    def _transpose_tile(self, use: Use, height: str, width: str) -> Use:
        """Return a copy of a transposed array's tile, dense along the last dimension; keep other uses."""
        across, last, name = use.strides[self.across], use.strides[-1], use.buffer.name
        stored = any(isinstance(s, Store) and s.buffer == name for s in self.stage.stage.body)
        if across != 1 or last in (0, 1) or stored:
            return use
        f, size = self.f, use.buffer.dtype.itemsize
        copy = f.allocate_scratch(ROWS * COLUMNS * size)
        helper = transpose_helper(f.module, size)
        f.do(f"call void @{helper}(ptr {copy}, ptr {use.base}, i64 {last * size}, i64 {height}, i64 {width})")
        strides = list(use.strides)
        strides[self.across], strides[-1] = COLUMNS, 1
        return use._replace(base=copy, strides=tuple(strides))


def transpose_helper(module: Module, size: int) -> str:
    """Return the name of a function that copies a tile: ``to[r][c] = from[c * step + r]`` with rows of ``COLUMNS``."""
    name, element = f"transpose{size}", memory_block(size)
    if name in module.parts:
        return name
    f = Function(module, 1)
    with f.loop("0", "%width", "1") as column:
        source = f.address("%from", f.op(f"mul i64 {column.index}, %step"))
        target = f.address("%to", f.op(f"mul i64 {column.index}, {size}"))
        with f.loop("0", "%height", "1") as row:
            value = f.load(element, f.address(source, f.op(f"mul i64 {row.index}, {size}")))
            address = f.address(target, f.op(f"mul i64 {row.index}, {COLUMNS * size}"))
            f.do(f"store {element} {value}, ptr {address}, align 1")
    f.do("ret void")
    module.helper(
        name, f.text(f"internal void @{name}(ptr %to, ptr %from, i64 %step, i64 %height, i64 %width) #1")
    )
    return name
