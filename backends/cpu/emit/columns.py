"""A stage that reduces leading dimensions and keeps trailing ones."""

from __future__ import annotations

from collections.abc import Sequence

from ....operators.expr import Expr
from ....registry.dtypes import DType
from .casts import emit_cast
from .reducers import FloatSum, Reducer, compute_dtype, reducer
from .stages import StagePrinter, Use
from .vectors import VectorLoop, vector_loop

COLUMNS = 4096
"""Columns that a reduction over leading dimensions keeps in cache at a time."""


class ColumnPrinter:
    """A stage that reduces leading dimensions and keeps trailing ones: partial results of a block of columns stay in
    memory that fits a cache, and rows stream past them."""

    def __init__(self, stage: StagePrinter, kept: int):
        self.stage, self.f = stage, stage.f
        dims = len(stage.shape)
        self.reduced, self.kept = range(dims - kept), range(dims - kept, dims - 1)
        self.items = [
            Reducer("add", 0.0, x.dtype) if isinstance(x, FloatSum) else x
            for x in (reducer(r.op, compute_dtype(r.op, r.value.dtype)) for r in stage.reduces)
        ]
        self.memory = [[self.f.buffer(COLUMNS * d.itemsize) for d in x.state] for x in self.items]

    def write(self) -> None:
        self._columns(self.kept, self.stage.uses)

    def _columns(self, dims: Sequence[int], uses: dict[str, Use]) -> None:
        f, shape = self.f, self.stage.shape
        if dims:
            with f.loop("0", str(shape[dims[0]]), "1") as loop:
                self.stage.indices[self.stage.dims[dims[0]]] = loop.index
                self._columns(dims[1:], {n: u.moved(f, dims[0], loop.index) for n, u in uses.items()})
            return
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        with f.loop("0", str(shape[-1]), str(COLUMNS)) as loop:
            inside = {n: u.moved(f, len(shape) - 1, loop.index) for n, u in uses.items()}
            count = f.op(
                f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 {shape[-1]}, {loop.index}')}, i64 {COLUMNS})"
            )
            self._fill(count)
            self._rows(self.reduced, inside, loop.index, count, "0")
            self._finish(inside, count)

    def _state(self, memory: Sequence[str], index: str, x: Reducer) -> list[tuple[DType, str]]:
        f = self.f
        return [
            (d, f.address(m, f.op(f"mul i64 {index}, {d.itemsize}")))
            for d, m in zip(x.state, memory, strict=True)
        ]

    def _fill(self, count: str) -> None:
        f = self.f
        with f.loop("0", count, str(f.lanes)) as loop:
            for x, memory in zip(self.items, self.memory, strict=True):
                first = x.initial(f)
                if x.picks:
                    first[x.picks] = "zeroinitializer"
                for (d, place), value in zip(self._state(memory, loop.index, x), first, strict=True):
                    f.store_vector(d, value, place)

    def _rows(
        self, dims: Sequence[int], uses: dict[str, Use], offset: str, count: str, position: str
    ) -> None:
        f, stage = self.f, self.stage
        if dims:
            with f.loop("0", str(stage.shape[dims[0]]), "1") as loop:
                stage.indices[stage.dims[dims[0]]] = loop.index
                inside = {n: u.moved(f, dims[0], loop.index) for n, u in uses.items()}
                here = f.op(f"add i64 {f.op(f'mul i64 {position}, {stage.shape[dims[0]]}')}, {loop.index}")
                self._rows(dims[1:], inside, offset, count, here)
            return
        where = f.broadcast(position, "i64") if any(x.picks for x in self.items) else ""

        def reduce(loop: VectorLoop, values: list[str], known: dict[Expr, str]) -> list[str]:
            for r, x, memory in zip(stage.reduces, self.items, self.memory, strict=True):
                places = self._state(memory, loop.index, x)
                state = [f.load_vector(d, p) for d, p in places]
                value = emit_cast(f, known[r.value], r.value.dtype, x.dtype)
                for (d, place), v in zip(places, x.step(f, state, value, where), strict=True):
                    f.store_vector(d, v, place)
            return []

        stage.run(uses, offset, count, [], reduce)

    def _finish(self, uses: dict[str, Use], count: str) -> None:
        f, stage = self.f, self.stage
        targets = [stage.access(uses[r.into], writes=True) for r in stage.reduces]

        def body(loop: VectorLoop, values: list[str]) -> list[str]:
            for x, memory, target in zip(self.items, self.memory, targets, strict=True):
                state = [f.load_vector(d, p) for d, p in self._state(memory, loop.index, x)]
                target.store(emit_cast(f, x.final(f, state), x.result, target.dtype))
            return []

        vector_loop(f, count, stage.shape[-1] % f.lanes, targets, [], body)
