"""The loop of one stage over a thread's elements of a kept point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ....lowering.fusion.loop_ir import Buffer, Reduce, Stage, Store
from ....operators.scalar_ir.expr import Expr
from .elementwise import at, times
from .parameters import decompose, linear, scalar_text, shift_pointer
from .reducers import make_reducer
from .schedule import BATCH, Schedule
from .space import reductions, stores
from .text import Scope
from .types import CTYPE, literal


class StageLoop:
    """The state of writing the loop of one stage.

    Args:
        part: the launch that it belongs to (a ``RowPart``).
        stage: the stage.
        known: the text of loop-invariant expressions.
    """

    def __init__(self, part: Any, stage: Stage, known: dict[Expr, str]):
        self.part, self.stage, self.known = part, stage, known
        self.text, self.schedule, self.space = part.text, part.schedule, part.space
        names = [n for n in dict.fromkeys(stage.buffers()) if part.kernel.buffer(n) and part.varies(n)]
        reduced = {r.into for r in reductions(stage)}
        self.buffers: dict[str, Buffer] = {n: part.buffer(n) for n in names if n not in reduced}
        self.stored = [s.buffer for s in stores(stage)]
        self.gathered = [e.payload.buffer for e in stage.exprs() if e.op == "gather"]
        self.loads = [
            n for n in self.buffers if any(e.op == "load" and e.payload == n for e in stage.exprs())
        ]
        self.offsets: dict[tuple[int, ...], str] = {}
        self.batch = self._batch()
        self.parts: list[str] = []  # long sums whose next few elements are summed plainly first

    def _batch(self) -> int:
        """The elements, or vectors, of one iteration of a loop that is not fully unrolled."""
        schedule = self.schedule
        turns: int = self.space.length // (schedule.group * max(self.part.splits, 1))
        return BATCH if schedule.lanes == 1 and not schedule.steps and turns >= 2 * BATCH else 1

    def _unit(self) -> int:
        """The elements of one iteration of a group; a remainder is processed one by one."""
        schedule: Schedule = self.schedule
        return schedule.group * BATCH if self.batch > 1 else schedule.lanes

    def write(self) -> None:
        """Write the loop, and a second loop for the remainder of whole vectors."""
        if self.space.length == 0:
            return
        for name in (*self.buffers, *self.gathered):
            self.part.pointer(name)
        rest = self.space.length % self._unit()
        if self.space.length > rest:
            with self._positions():
                self._step()
        if rest:
            whole = self.space.length - rest
            self.schedule, self.batch = self.schedule._replace(lanes=1, vectors=frozenset()), 1
            alone = self.text.block("if (blockIdx.y == 0)" if self.part.splits > 1 else "")
            first = f"{self.part.type} j = {whole} + lane"
            with (
                alone,
                self.text.block(f"for ({first}; j < {self.space.length}; j += {self.schedule.group})"),
            ):
                self._step()
        self.part.filled.update(n for n in self.buffers if n in self.schedule.cached)

    def _step(self) -> None:
        """Write the work of a thread on the elements from ``j`` on."""
        self.offsets = {}
        self.indices = decompose(self.text, self.part.type, "j", self.space.reduced, "j")
        for name in (*self.buffers, *self.gathered):
            self._offset(name)
        for name in self.loads:
            self._load(name)
        self._load_rows()
        lanes = self.schedule.lanes
        for name in self.stored:
            if self._in_vector(name) and name not in self.schedule.cached:
                self.text.line(f"Vec<{CTYPE[self.buffers[name].dtype]}, {lanes}> {name}_out;")
        with self._plain_sums() if lanes > 1 else nullcontext():
            if lanes > 1:
                self.text.unroll()
            with self.text.block(f"for (int v = 0; v < {lanes}; ++v)" if lanes > 1 else ""):
                self._values()
        for name in self.stored:
            self._store(name)

    # -- positions -------------------------------------------------------------------------------------------------
    @contextmanager
    def _positions(self) -> Iterator[None]:
        """Write the loop that declares ``j``, the first element of each step."""
        schedule, text, ctype, length = self.schedule, self.text, self.part.type, self.space.length
        step = schedule.group * schedule.lanes
        lane = "lane" if schedule.group > 1 or schedule.columns else "0"
        if self.batch > 1:
            begin, end = self._range(step * self.batch, lane)
            turn = f"for ({ctype} first = {begin}; first < {end}; first += {step * self.batch})"
            with text.block(turn), self._plain_sums():
                text.unroll()
                with text.block(f"for (int u = 0; u < {self.batch}; ++u)"):
                    text.line(f"const {ctype} j = first + {times('u', step)};")
                    yield
            return
        if not schedule.steps:
            begin, end = self._range(step, times(lane, schedule.lanes))
            text.unroll(2 if schedule.lanes > 4 else 4)
            with text.block(f"for ({ctype} j = {begin}; j < {end}; j += {step})"):
                yield
            return
        text.unroll()
        with text.block(f"for (int k = 0; k < {schedule.steps}; ++k)"):
            where = f"k * {schedule.group} + lane" if lane == "lane" else "k"
            text.line(
                f"const {ctype} j = {where if schedule.lanes == 1 else f'({where}) * {schedule.lanes}'};"
            )
            with text.block("" if schedule.steps * step == length else f"if (j < {length})"):
                yield

    def _range(self, step: int, lane: str) -> tuple[str, str]:
        """The start of this thread's elements, and the end of this block's."""
        splits, length, ctype = self.part.splits, self.space.length, self.part.type
        if splits == 1:
            return lane, str(length - length % self._unit())
        chunk = -(-length // (splits * step)) * step
        length -= length % self._unit()
        cast = "(long long)" if ctype == "long long" else ""
        self.text.line(f"const {ctype} begin = {cast}blockIdx.y * {chunk};")
        self.text.line(f"const {ctype} end = begin + {chunk} < {length} ? begin + {chunk} : {length};")
        return shift_pointer("begin", lane), "end"

    def _offset(self, name: str) -> str:
        """The offset of the step's first element of a buffer from the kept point's first."""
        steps = self.space.strides[name].reduced
        result = self.offsets.get(steps)
        if result is None:
            result = linear(self.indices, steps)
            if "+" in result:
                text, result = result, self.text.fresh("at")
                self.text.line(f"const {self.part.type} {result} = {text};")
            self.offsets[steps] = result
        return result

    # -- memory ----------------------------------------------------------------------------------------------------
    def _in_vector(self, name: str) -> bool:
        """Whether the elements of one step are read or written at once."""
        return self.schedule.lanes > 1 and (name in self.schedule.vectors or self._is_private(name))

    def _is_private(self, name: str) -> bool:
        return self.buffers[name].param is None

    def _address(self, name: str) -> str:
        """The pointer to the step's first element."""
        return shift_pointer(self.part.pointer(name), self._offset(name))

    def _load(self, name: str) -> None:
        cached, whole = name in self.schedule.cached, self._in_vector(name)
        if cached and name in self.part.filled:
            return
        address, lanes = self._address(name), self.schedule.lanes
        target = f"{name}_kept[k]" if cached else f"const auto {name}"
        if whole:
            self.text.line(f"{target} = load<{lanes}>({address});")
        elif lanes == 1:
            self.text.line(f"{target} = {at(address, '0')};")
        elif cached:
            step = self.space.strides[name].reduced[-1]
            self.text.unroll()
            self.text.line(
                f"for (int v = 0; v < {lanes}; ++v) {target}.at[v] = {at(address, times('v', step))};"
            )

    def _load_rows(self) -> None:
        """Load vectors of rows at integer positions."""
        self.row_vectors: dict[Expr, str] = {}
        lanes = self.schedule.lanes
        exprs = dict.fromkeys(self.part.same[e] for e in self.stage.exprs()) if lanes > 1 else ()
        for e in exprs:
            if e not in self.part.row_reads or e.payload.buffer not in self.schedule.vectors:
                continue
            row, name = self.part.row_reads[e], self.text.fresh("row")
            address = shift_pointer(row, self._offset(e.payload.buffer))
            self.text.line(f"Vec<{CTYPE[e.dtype]}, {lanes}> {name} = {{}};")
            self.text.line(f"if ({row}_inside) {name} = load<{lanes}>({address});")
            self.row_vectors[e] = f"{name}.at[v]"

    def _row_elements(self) -> dict[Expr, str]:
        """The text of an element of each row at integer positions."""
        result = {}
        for e in dict.fromkeys(self.part.same[e] for e in self.stage.exprs()):
            if e in self.part.row_reads:
                row, name = self.part.row_reads[e], e.payload.buffer
                step = self.space.strides[name].reduced[-1] if self.schedule.lanes > 1 else 0
                element = at(shift_pointer(row, self._offset(name)), times("v", step))
                result[e] = f"({row}_inside ? {element} : {literal(0, e.dtype)})"
        return result | self.row_vectors

    def _store(self, name: str) -> None:
        """Write what was computed for one step to memory."""
        cached, whole = name in self.schedule.cached, self._in_vector(name)
        if cached and self._is_private(name):
            return
        guard = "if (active) " if self.part.guarded else ""
        if whole:
            value = f"{name}_kept[k]" if cached else f"{name}_out"
            self.text.line(f"{guard}store({self._address(name)}, {value});")
        elif cached and self.schedule.lanes > 1:
            to = at(self._address(name), times("v", self.space.strides[name].reduced[-1]))
            self.text.unroll()
            self.text.line(
                f"for (int v = 0; v < {self.schedule.lanes}; ++v) {guard}{to} = {name}_kept[k].at[v];"
            )
        elif cached:
            self.text.line(f"{guard}{at(self._address(name), '0')} = {name}_kept[k];")

    # -- values ----------------------------------------------------------------------------------------------------
    def _values(self) -> None:
        """Write the expressions of the stage at one point, its stores and its reductions."""
        scope = Scope(self.text, self._leaf, self.part.divisors)
        scope.known.update(self.known)
        scope.known.update(self._row_elements())
        body = self.stage.body
        values = scope.write([self.part.same[s.value] for s in body], names=len(body) > 1)
        for statement, value in zip(body, values, strict=True):
            if isinstance(statement, Store):
                self._assign(statement.buffer, value)
            elif isinstance(statement, Reduce):
                self._take(statement, value)

    def _leaf(self, e: Expr) -> str:
        if e.op == "scalar":
            return scalar_text(e)
        if e.op == "index":
            which, along = self.space.indices[e.payload]
            last = which == "reduced" and along == len(self.space.reduced) - 1 and self.schedule.lanes > 1
            names = self.indices if which == "reduced" else self.part.row_indices
            return f"(long long)({names[along]} + v)" if last else f"(long long){names[along]}"
        if e.op == "gather":
            return self._element(e.payload.buffer)
        name, lanes = e.payload, self.schedule.lanes
        if name in self.schedule.cached:
            return f"{name}_kept[k]" if lanes == 1 else f"{name}_kept[k].at[v]"
        if lanes == 1:
            return str(name)
        if self._in_vector(name):
            return f"{name}.at[v]"
        return at(self._address(name), times("v", self.space.strides[name].reduced[-1]))

    def _element(self, name: str) -> str:
        """The pointer to the current element of a buffer, at position 0 of its indexed axes."""
        step = self.space.strides[name].reduced[-1] if self.schedule.lanes > 1 else 0
        return shift_pointer(self._address(name), times("v", step))

    def _assign(self, name: str, value: str) -> None:
        lanes = self.schedule.lanes
        if name in self.schedule.cached:
            self.text.line(f"{name}_kept[k]{'' if lanes == 1 else '.at[v]'} = {value};")
        elif self._in_vector(name):
            self.text.line(f"{name}_out.at[v] = {value};")
        else:
            guard = "if (active) " if self.part.guarded else ""
            step = self.space.strides[name].reduced[-1] if lanes > 1 else 0
            self.text.line(f"{guard}{at(self._address(name), times('v', step))} = {value};")

    def _take(self, r: Reduce, value: str) -> None:
        position = (", j + v" if self.schedule.lanes > 1 else ", j") if r.fold.returns_index else ""
        target = "part" if r.into in self.parts else "state"
        self.text.line(f"{r.into}_{target}.take({value}{position});")

    @contextmanager
    def _plain_sums(self) -> Iterator[None]:
        """Add a few elements plainly before adding them to a compensated sum, which is expensive."""
        for r in reductions(self.stage):
            x = self.part.reducers[r.into]
            if x.is_long:
                plain = make_reducer(r.fold, x.dtype, 1)
                self.text.need(*plain.helpers)
                self.text.line(f"{plain.ctype} {r.into}_part = {plain.start};")
                self.parts.append(r.into)
        yield
        for name in self.parts:
            self.text.line(f"{name}_state.take({name}_part.result());")
        self.parts = []
