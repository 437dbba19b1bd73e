"""Tiling of a stage that reads transposed arrays: each tile is transposed into scratch memory first.

Along the last dimension the stride of such an array is a whole row, and a cache line fetched for one element is evicted
before its other elements are needed. A tile reads each cache line once, completely.
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
"""Elements of a tile along the dimension where transposed arrays are contiguous, and along the last one."""


def find_tiled_dimension(stage: StagePrinter) -> int | None:
    """Return a dimension along which a transposed array is contiguous; None if tiles would not help."""
    if stage.reduces or stage.stage.has_index_maps() or stage.shape[-1] < COLUMNS:
        return None
    strided = [u.strides for u in stage.uses.values() if u.strides[-1] not in (0, 1)]
    contiguous = (d for d in range(len(stage.shape) - 1) for strides in strided if strides[d] == 1)
    return next((d for d in contiguous if stage.shape[d] >= ROWS), None)


class TilePrinter:
    """Prints a stage without reductions, in tiles of the dimension ``across`` and the last one."""

    def __init__(self, stage: StagePrinter, across: int):
        self.stage, self.f, self.across = stage, stage.f, across
        self.last = len(stage.shape) - 1

    def write(self) -> None:
        """Write the loops of the stage."""
        self._write_outer_loops([d for d in range(self.last) if d != self.across], self.stage.uses)

    def _write_outer_loops(self, dims: Sequence[int], uses: Uses) -> None:
        """Write a nest of loops over ``dims``, and the loops over tiles inside it."""
        if not dims:
            self._write_tile_loops(uses)
            return
        with self._loop_over(dims[0], str(self.stage.shape[dims[0]]), uses) as offset_uses:
            self._write_outer_loops(dims[1:], offset_uses)

    def _write_tile_loops(self, uses: Uses) -> None:
        with (
            self._loop_over_blocks(self.across, ROWS, uses) as (row_block, height, first_row),
            self._loop_over_blocks(self.last, COLUMNS, row_block) as (tile, width, first_column),
        ):
            transposed = {n: self._transpose_tile(u, height, width) for n, u in tile.items()}
            with self._loop_over(self.across, height, transposed, first_row) as row:
                self.stage.write_vector_loop(row, first_column, width, [], lambda *_: [])

    @contextmanager
    def _loop_over(self, dim: int, size: str, uses: Uses, first: str = "0") -> Iterator[Uses]:
        """Loop over ``size`` positions of ``dim`` from ``first`` on; yield the uses at each position."""
        f, stage = self.f, self.stage
        with f.loop("0", size, "1") as loop:
            stage.indices[stage.dims[dim]] = f.op(f"add i64 {first}, {loop.index}")
            yield {n: u.offset_along(f, dim, loop.index) for n, u in uses.items()}

    @contextmanager
    def _loop_over_blocks(self, dim: int, size: int, uses: Uses) -> Iterator[tuple[Uses, str, str]]:
        """Loop over blocks of ``dim``; yield (uses at the start of the block, size, first position)."""
        f, extent = self.f, self.stage.shape[dim]
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        with f.loop("0", str(extent), str(size)) as loop:
            offset_uses = {n: u.offset_along(f, dim, loop.index) for n, u in uses.items()}
            remaining = f.op(f"sub i64 {extent}, {loop.index}")
            yield offset_uses, f.op(f"call i64 @llvm.smin.i64(i64 {remaining}, i64 {size})"), loop.index

    def _transpose_tile(self, use: Use, height: str, width: str) -> Use:
        """Copy a tile of a transposed array to scratch memory, contiguous along the last dimension; keep other uses."""
        across, last, name = use.strides[self.across], use.strides[-1], use.buffer.name
        is_stored = any(isinstance(s, Store) and s.buffer == name for s in self.stage.stage.body)
        if across != 1 or last in (0, 1) or is_stored:
            return use
        f, size = self.f, use.buffer.dtype.itemsize
        copy = f.allocate_scratch(ROWS * COLUMNS * size)
        helper = transpose_helper(f.module, size)
        f.do(f"call void @{helper}(ptr {copy}, ptr {use.base}, i64 {last * size}, i64 {height}, i64 {width})")
        strides = list(use.strides)
        strides[self.across], strides[-1] = COLUMNS, 1
        return use._replace(base=copy, strides=tuple(strides))


def transpose_helper(module: Module, size: int) -> str:
    """Define a function that transposes a tile, and return its name.

    The function stores ``to[r][c] = from[c * step + r]``, with rows of ``COLUMNS`` elements in ``to``.
    """
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
