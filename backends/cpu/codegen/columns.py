"""Printer of stages that reduce leading dimensions and keep trailing ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....operators.scalar_ir.expr import Expr
from ....registry.dtypes import DType
from .casts import emit_cast
from .folds.order import block_reducer, block_rows
from .folds.reducers import FloatSum, IndexReducer, Reducer, make_reducer
from .vectors import VectorLoop, vector_loop

if TYPE_CHECKING:
    from .stage_printer import StagePrinter
    from .vectors import Use

COLUMNS = 1024
"""Columns that a reduction over leading dimensions keeps in cache at a time."""
TRANSPOSED = 256
"""The same if an array is transposed, so that many of its lines fit the cache."""


class ColumnPrinter:
    """Prints a stage that reduces leading dimensions and keeps trailing ones.

    Partial results of a block of columns stay in memory that fits a cache, while rows stream past them.
    """

    def __init__(self, stage: StagePrinter, kept: int):
        self.stage, self.f = stage, stage.f
        dims = len(stage.shape)
        self.reduced, self.kept = range(dims - kept), range(dims - kept, dims - 1)
        self.count = math.prod(stage.shape[d] for d in self.reduced)
        self.deep = block_rows(self.count)
        self.lines = stage.find_lines(self.reduced[-1], TRANSPOSED) if self.reduced else None
        self.columns = COLUMNS if self.lines is None else TRANSPOSED
        make = make_reducer if self.count > self.deep else block_reducer
        self.items = [make(r.fold, r.value.dtype, self.count) for r in stage.reduces]
        self.memory = [
            [self.f.allocate_scratch(self.columns * d.itemsize) for d in x.state] for x in self.items
        ]
        # sums of the current block of rows
        self.block_sums: dict[Reducer, str] = {
            x: self.f.allocate_scratch(self.columns * x.dtype.itemsize)
            for x in self.items
            if isinstance(x, FloatSum)
        }

    def write(self) -> None:
        self._write_columns(self.kept, self.stage.uses)

    def _write_columns(self, dims: Sequence[int], uses: dict[str, Use]) -> None:
        f, shape = self.f, self.stage.shape
        if dims:
            with f.loop("0", str(shape[dims[0]]), "1") as loop:
                self.stage.indices[self.stage.dims[dims[0]]] = loop.index
                self._write_columns(
                    dims[1:], {n: u.offset_along(f, dims[0], loop.index) for n, u in uses.items()}
                )
            return
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        with f.loop("0", str(shape[-1]), str(self.columns)) as loop:
            inside = {n: u.offset_along(f, len(shape) - 1, loop.index) for n, u in uses.items()}
            count = f.op(
                f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 {shape[-1]}, {loop.index}')}, i64 {self.columns})"
            )
            self._write_initial(count)
            self._write_row_loops(self.reduced, inside, loop.index, count, "0")
            if self.count % self.deep:
                self._end_block(count)
            self._write_results(inside, count)

    def _state_addresses(self, memory: Sequence[str], index: str, x: Reducer) -> list[tuple[DType, str]]:
        f = self.f
        return [
            (d, f.address(m, f.op(f"mul i64 {index}, {d.itemsize}")))
            for d, m in zip(x.state, memory, strict=True)
        ]

    def _write_initial(self, count: str) -> None:
        f = self.f
        with f.loop("0", count, str(f.lanes)) as loop:
            for x, memory in zip(self.items, self.memory, strict=True):
                first = x.initial(f)
                if x.picks:
                    first[x.picks] = "zeroinitializer"
                for (d, address), value in zip(
                    self._state_addresses(memory, loop.index, x), first, strict=True
                ):
                    f.store_vector(d, value, address)
            for x in self.block_sums:
                f.store_vector(x.dtype, f.splat(0.0, x.dtype), self._block_sum_address(x, loop.index))

    def _block_sum_address(self, x: Reducer, index: str) -> str:
        return self.f.address(self.block_sums[x], self.f.op(f"mul i64 {index}, {x.dtype.itemsize}"))

    def _end_block(self, count: str) -> None:
        """Add the sums of a block of rows to the partial results, and begin the next block."""
        f = self.f
        with f.loop("0", count, str(f.lanes)) as loop:
            for x, memory in zip(self.items, self.memory, strict=True):
                if x not in self.block_sums:
                    continue
                address = self._block_sum_address(x, loop.index)
                block = [f.load_vector(x.dtype, address), f.splat(0.0, x.dtype)]
                addresses = self._state_addresses(memory, loop.index, x)
                after = x.end_block(f, [f.load_vector(d, p) for d, p in addresses], block)
                for (d, p), value in zip(addresses, after, strict=True):
                    f.store_vector(d, value, p)
                f.store_vector(x.dtype, f.splat(0.0, x.dtype), address)

    def _write_row_loops(
        self, dims: Sequence[int], uses: dict[str, Use], offset: str, count: str, position: str
    ) -> None:
        f, stage = self.f, self.stage
        if dims:
            loop = stage.loop_along(dims[0], uses, [], self.lines if len(dims) == 1 else None, count)
            with loop as (_, inside, index):
                here = f.op(f"add i64 {f.op(f'mul i64 {position}, {stage.shape[dims[0]]}')}, {index}")
                self._write_row_loops(dims[1:], inside, offset, count, here)
            return
        rows = [x.broadcast_position(f, position) if isinstance(x, IndexReducer) else "" for x in self.items]

        def reduce(loop: VectorLoop, values: list[str], known: dict[Expr, str]) -> list[str]:
            for r, x, memory, row in zip(stage.reduces, self.items, self.memory, rows, strict=True):
                addresses = self._state_addresses(memory, loop.index, x)
                value = known[r.value]
                if x in self.block_sums:
                    address = self._block_sum_address(x, loop.index)
                    f.store_vector(
                        x.dtype, x.step(f, [f.load_vector(x.dtype, address), ""], value, "")[0], address
                    )
                    continue
                state = [f.load_vector(d, p) for d, p in addresses]
                for (d, address), v in zip(addresses, x.step(f, state, value, row), strict=True):
                    f.store_vector(d, v, address)
            return []

        stage.write_vector_loop(uses, offset, count, [], reduce)
        if self.block_sums:
            last = f.op(f"icmp eq i64 {f.op(f'and i64 {position}, {self.deep - 1}')}, {self.deep - 1}")
            with f.when(last):
                self._end_block(count)

    def _write_results(self, uses: dict[str, Use], count: str) -> None:
        f, stage = self.f, self.stage
        targets = [stage.make_access(uses[r.into], writes=True) for r in stage.reduces]

        def body(loop: VectorLoop, values: list[str]) -> list[str]:
            for x, memory, target in zip(self.items, self.memory, targets, strict=True):
                state = [f.load_vector(d, p) for d, p in self._state_addresses(memory, loop.index, x)]
                target.store(emit_cast(f, x.finish(f, x.final(f, state)), x.result, target.dtype))
            return []

        vector_loop(f, count, stage.shape[-1] % f.lanes, targets, [], body)
