"""One launch of a reduction kernel: its threads, the loops of its stages, and the combination of their states."""

from __future__ import annotations

from collections.abc import Sequence

from ....lowering.fusion.loop_ir import Buffer, FusedKernel, Reduce, Stage
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.expr import Expr, arg, cast, order
from .elementwise import at
from .kernel import STATIC_SHARED, CudaKernel
from .parameters import Parameters, decompose, linear, scalar_text, shift_pointer
from .reducers import Reducer
from .row_loop import StageLoop
from .row_reads import find_row_reads
from .schedule import COLUMNS, Schedule, is_among
from .space import INT_MAX, Space, extent, reductions, stores, written_buffers
from .text import Scope, Text, unify, write_expr
from .types import CTYPE, bare


class Pending(NamedTuple):
    """A reduction whose partial results an earlier launch left in the workspace.

    Attributes:
        reduce: the reduction.
        offset: of the partial results, in bytes.
        stores: whether its result has to be written to its buffer.
    """

    reduce: Reduce
    offset: int
    stores: bool


class RowPart:
    """The state of writing one launch."""

    def __init__(
        self,
        name: str,
        kernel: FusedKernel,
        space: Space,
        schedule: Schedule,
        full: list[Stage],
        reducers: dict[str, Reducer],
    ):
        self.name, self.kernel, self.space, self.schedule, self.full = name, kernel, space, schedule, full
        self.reducers = reducers
        self.text = Text()
        self.produced: dict[
            str, str
        ] = {}  # row values and results of reductions that are available in this launch
        self.loaded: dict[str, str] = {}
        self.pointers: dict[str, str] = {}
        self.outputs = written_buffers(kernel)
        self.declared: set[str] = set()
        self.shared_used = 0  # bytes of shared memory in use, if it is reused
        self.divisors: dict[Expr, str] = {}
        self.row_reads: dict[Expr, str] = {}  # gathers of rows: the pointer to the row of this kept point
        self.filled: set[str] = set()  # cached buffers that hold their elements by now
        sizes = (*kernel.outer, *kernel.inner)
        far = max((extent(b, sizes) for b in kernel.buffers), default=0)
        slack = schedule.per_block * schedule.threads * 2
        self.row_type = "int" if max(far, space.rows) + slack <= INT_MAX else "long long"
        reach = max((extent_of(space, b) for b in kernel.buffers), default=0)
        step = schedule.group * schedule.lanes * max(schedule.splits, 1)
        self.type = "int" if max(reach, space.length) + step * 8 <= INT_MAX else "long long"
        self.same = unify([s.value for stage in kernel.stages for s in stage.body])
        self.row_scope = Scope(self.text, self._row_leaf)

    # -- the launch ------------------------------------------------------------------------------------------------
    def write(
        self, stages: list[Stage], merged: list[Pending], leaves_partials: bool, comments: Sequence[str]
    ) -> CudaKernel:
        """The kernel.

        Args:
            stages: its stages.
            merged: reductions of earlier launches that it finishes first.
            leaves_partials: whether a later launch finishes its reductions.
            comments: lines that describe it.
        """
        schedule, text, space = self.schedule, self.text, self.space
        self.splits = schedule.splits if any(is_among(stage, self.full) for stage in stages) else 1
        names = [n for stage in stages for n in stage.buffers()]
        names += [p.reduce.into for p in merged if p.stores]
        parameters = Parameters(self.kernel, names, [e for stage in stages for e in stage.exprs()])
        self._open_threads()
        if merged or leaves_partials:
            parameters.add_workspace()
        self._merge(merged)
        offsets = self._partial_offsets() if leaves_partials else {}
        for stage in stages:
            if is_among(stage, self.full):
                self._full_stage(stage, offsets)
            else:
                self._row_stage(stage)
        block = (COLUMNS, schedule.group, 1) if schedule.columns else (schedule.threads, 1, 1)
        source = text.function(self.name, parameters.text(), schedule.threads, comments, schedule.min_blocks)
        return CudaKernel(
            self.name,
            source,
            tuple(text.helpers),
            (-(-space.rows // schedule.per_block), self.splits, 1),
            block,
            params=tuple(parameters.indices),
            scalars=parameters.scalars,
            checks=tuple(text.checks),
        )

    def _partial_offsets(self) -> dict[str, int]:
        """The offsets of the partial results of each reduction, as in ``rows._parts``."""
        result, offset = {}, 0
        for stage in self.full:
            for r in reductions(stage):
                result[r.into] = offset
                offset += (
                    -(-self.schedule.splits * self.space.rows * self.reducers[r.into].nbytes // 256) * 256
                )
        return result

    def _open_threads(self) -> None:
        """Declare the kept point, the thread's number in its group, and whether the point exists."""
        schedule, text, rows = self.schedule, self.text, self.space.rows
        ctype = self.row_type
        cast = "(long long)" if ctype == "long long" else ""
        if schedule.columns:
            first, lane = f"{cast}blockIdx.x * {COLUMNS} + threadIdx.x", "threadIdx.y"
        elif schedule.per_block > 1:
            first = f"{cast}blockIdx.x * {schedule.per_block} + threadIdx.x / {schedule.group}"
            lane = f"threadIdx.x % {schedule.group}"
        else:
            first, lane = "blockIdx.x", "threadIdx.x"
        self.guarded = rows % schedule.per_block != 0
        if schedule.group > 1 or schedule.columns:
            text.line(f"const int lane = {lane};")
        if self.guarded:
            text.line(f"const {ctype} own_row = {first};")
            text.line(f"const bool active = own_row < {rows};")
            text.line(f"const {ctype} row = active ? own_row : {rows - 1};")
        elif rows > 1:
            text.line(f"const {ctype} row = {first};")
        self.row_indices = decompose(text, ctype, "row" if rows > 1 else "0", self.space.kept, "row")

    def _leader(self) -> str:
        """The condition under which a thread writes the values of its group."""
        value = ["lane == 0"] if self.schedule.group > 1 else []
        value += ["active"] if self.guarded else []
        return " && ".join(value)

    def _alone(self) -> str:
        """The condition under which a thread writes values that several blocks share."""
        value = [self._leader()] if self._leader() else []
        return " && ".join([*value, *(["blockIdx.y == 0"] if self.splits > 1 else [])])

    # -- values of a kept point ------------------------------------------------------------------------------------
    def _base(self, name: str) -> str:
        """The pointer to the first element of a buffer at this kept point."""
        b = self.buffer(name)
        pointer = shift_pointer(f"p{b.param}", b.offset)
        return shift_pointer(pointer, linear(self.row_indices, self.space.strides[name].kept))

    def pointer(self, name: str) -> str:
        """The name of the pointer to the first element of a buffer at this kept point."""
        if name not in self.pointers:
            b, base = self.buffer(name), self._base(name)
            if b.param is None or "+" not in base:
                return base
            self.pointers[name] = f"{name}_first"
            const = "" if name in self.outputs else "const "
            self.text.line(f"{const}{CTYPE[b.dtype]}* const {name}_first = {base};")
        return self.pointers[name]

    def buffer(self, name: str) -> Buffer:
        """The buffer called ``name``."""
        return next(b for b in self.kernel.buffers if b.name == name)

    def _row_leaf(self, e: Expr) -> str:
        if e.op == "scalar":
            return scalar_text(e)
        if e.op == "index":
            return f"(long long){self.row_indices[self.space.indices[e.payload][1]]}"
        if e.op == "gather":
            return self._base(e.payload.buffer)
        name = e.payload
        if name in self.produced:
            return self.produced[name]
        if name not in self.loaded:
            self.loaded[name] = f"{name}_row"
            self.text.line(f"const {CTYPE[e.dtype]} {name}_row = {at(self._base(name), '0')};")
        return self.loaded[name]

    def _row_stage(self, stage: Stage) -> None:
        """Store values of the kept point."""
        result = stores(stage)
        values = self.row_scope.write([self.same[s.value] for s in result], names=True)
        condition = self._alone()
        with self.text.block(f"if ({condition})" if condition else ""):
            for s, value in zip(result, values, strict=True):
                self.text.line(f"{at(self._base(s.buffer), '0')} = {value};")

    # -- reductions ------------------------------------------------------------------------------------------------
    def _merge(self, merged: list[Pending]) -> None:
        """Combine the partial results of an earlier launch, in each block."""
        schedule, text = self.schedule, self.text
        for pending in merged:
            r, x = pending.reduce, self.reducers[pending.reduce.into]
            self._declare(r, x)
            work = f"reinterpret_cast<const {x.ctype}*>({shift_pointer('workspace', pending.offset)})"
            index = f"i * {self.space.rows} + row" if self.space.rows > 1 else "i"
            text.line(f"const {x.ctype}* const {r.into}_parts = {work};")
            with text.block(f"for (int i = lane; i < {schedule.splits}; i += {schedule.group})"):
                text.line(f"{r.into}_state.join({r.into}_parts[{index}]);")
        self._join([p.reduce for p in merged])
        for pending in merged:
            self._finish(pending.reduce, pending.stores)

    def _declare(self, r: Reduce, x: Reducer) -> None:
        self.text.need(*x.helpers)
        self.text.line(f"[[maybe_unused]] {x.ctype} {r.into}_state = {x.start};")  # by rows without elements

    def _join(self, items: list[Reduce]) -> None:
        """Combine the states of a group, in every thread of it."""
        schedule, text = self.schedule, self.text
        if schedule.group == 1 or not items:
            return
        if schedule.group <= 32 and not schedule.columns:
            for r in items:
                text.line(f"{r.into}_state = join_lanes<{schedule.group}>({r.into}_state);")
            return
        for some in self._rounds(items):
            self._exchange(some)

    def _rounds(self, items: list[Reduce]) -> list[list[Reduce]]:
        """Group reductions whose states fit in shared memory at once."""
        result: list[list[Reduce]] = []
        used = STATIC_SHARED
        for r in items:
            used += self._shared_bytes(r)
            if used > STATIC_SHARED:
                result.append([])
                used = self._shared_bytes(r)
            result[-1].append(r)
        return result

    def _shared_bytes(self, r: Reduce) -> int:
        """The bytes of a block's states in shared memory."""
        return -(-self._states() * self.reducers[r.into].nbytes // 16) * 16

    def _states(self) -> int:
        """The number of states of one reduction in shared memory."""
        return self.schedule.threads if self.schedule.columns else self.schedule.group // 32

    def _share_out(self, items: list[Reduce]) -> None:
        """Declare the states in shared memory, which is reused if the kernel needs more than there is."""
        text, needed = self.text, sum(map(self._shared_bytes, items))
        if sum(self._shared_bytes(r) for stage in self.full for r in reductions(stage)) <= STATIC_SHARED:
            for r in items:
                text.line(f"__shared__ {self.reducers[r.into].ctype} {r.into}_shared[{self._states()}];")
            return
        if self.shared_used == 0:
            text.line(f"alignas(16) __shared__ char shared_bytes[{STATIC_SHARED}];")
        elif self.shared_used + needed > STATIC_SHARED:
            text.line("__syncthreads();")
            self.shared_used = 0
        for r in items:
            ctype, offset = self.reducers[r.into].ctype, shift_pointer("shared_bytes", self.shared_used)
            text.line(f"{ctype}* const {r.into}_shared = reinterpret_cast<{ctype}*>({offset});")
            self.shared_used += self._shared_bytes(r)

    def _exchange(self, items: list[Reduce]) -> None:
        """Combine states through shared memory."""
        schedule, text = self.schedule, self.text
        self._share_out(items)
        for r in items:
            if schedule.columns:
                text.line(f"{r.into}_shared[threadIdx.y * {COLUMNS} + threadIdx.x] = {r.into}_state;")
            else:
                text.line(f"share({r.into}_state, {r.into}_shared);")
        text.line("__syncthreads();")
        how = (
            f"collect_column<{schedule.group}, {COLUMNS}>"
            if schedule.columns
            else f"collect<{schedule.group // 32}>"
        )
        for r in items:
            text.line(f"{r.into}_state = {how}({r.into}_shared);")

    def _finish(self, r: Reduce, stored: bool) -> None:
        """Declare the result, in the type in which later stages read it, and write it to its buffer."""
        x, into = self.reducers[r.into], self.kernel.buffer(r.into)
        result = r.fold.finished(arg(0, x.result))
        target = result.dtype if into is None else into.dtype
        value = write_expr(self.text, cast(result, target), f"{r.into}_state.result()")
        self.text.line(f"const {CTYPE[target]} {r.into} = {value};")
        self.produced[r.into] = r.into
        if into is not None and into.param is not None and stored:
            condition = self._alone()
            prefix = f"if ({condition}) " if condition else ""
            self.text.line(f"{prefix}{at(self._base(r.into), '0')} = {r.into};")

    # -- stages over reduced dimensions ----------------------------------------------------------------------------
    def _full_stage(self, stage: Stage, offsets: dict[str, int]) -> None:
        """Write the loop of a stage, then combine its reductions, or store partial results for a later launch."""
        text, value = self.text, reductions(stage)
        text.gap()
        known = self._hoist(stage)
        self._declare_cached(stage)
        for r in value:
            self._declare(r, self.reducers[r.into])
        StageLoop(self, stage, known).write()
        self._join(value)
        for r in value:
            if offsets:
                x = self.reducers[r.into]
                condition = self._leader()
                index = f"blockIdx.y * {self.space.rows} + row" if self.space.rows > 1 else "blockIdx.y"
                work = f"reinterpret_cast<{x.ctype}*>({shift_pointer('workspace', offsets[r.into])})"
                text.line(f"{f'if ({condition}) ' if condition else ''}{work}[{index}] = {r.into}_state;")
            else:
                self._finish(r, True)

    def varies(self, name: str) -> bool:
        """Whether a buffer has an element for each reduced point, not only one for each kept point."""
        if name in self.produced:
            return False
        b = self.buffer(name)
        return any(self.space.strides[name].reduced) or (b.param is None and name not in self.reducers)

    def _hoist(self, stage: Stage) -> dict[Expr, str]:
        """Loop-invariant code motion: compute invariant expressions before the loop."""
        every = order(*[self.same[s.value] for s in stage.body])
        fixed: set[Expr] = set()
        for e in every:
            if self._is_fixed(e, fixed):
                fixed.add(e)
        used = [a for e in every if e not in fixed for a in e.args if a in fixed]
        used += [self.same[s.value] for s in stage.body if self.same[s.value] in fixed]
        wanted = list(dict.fromkeys(e for e in used if e.op != "const"))
        self.row_scope.write(wanted, names=True)
        for e in find_row_reads(every, self._varies):
            if e not in self.row_reads:
                self._locate_row(e)
        known = {e: self.row_scope.known[e] for e in wanted}
        quotients = [e for e in every if e.op == "truediv" and e.dtype.kind == "f" and e not in fixed]
        for e in dict.fromkeys(e.args[1] for e in quotients if e.args[1] in known):
            self._prepare_divisor(e)
        return known

    def _varies(self, e: Expr) -> bool:
        """Whether a leaf, or the buffer of a gather, varies along the reduced dimensions."""
        if e.op == "index":
            return self.space.indices[e.payload][0] != "kept"
        return self.varies(e.payload) if e.op == "load" else any(self.space.strides[e.payload.buffer].reduced)

    def _locate_row(self, e: Expr) -> None:
        """Check the positions of a read, and declare the pointer to the row that all points of a kept one read."""
        self.row_scope.write(e.args)
        inside, pointer, _ = self.row_scope.locate(e.payload, e.args, self.row_scope.leaf(e))
        name = self.text.fresh("gathered")
        self.text.line(f"const bool {name}_inside = {inside};")
        self.text.line(f"const {CTYPE[e.dtype]}* const {name} = {pointer};")
        self.row_reads[e] = name

    def _is_fixed(self, e: Expr, fixed: set[Expr]) -> bool:
        """Whether an expression is the same for all points of a kept one, if those in ``fixed`` are."""
        return not (e.op in ("load", "index", "gather") and self._varies(e)) and all(
            a in fixed for a in e.args
        )

    def _prepare_divisor(self, e: Expr) -> None:
        """Prepare a divisor before the loop: a division costs as much as eight products."""
        if e not in self.divisors:
            self.divisors[e] = self.text.fresh("divisor")
            self.text.need("divisor")
            value = bare(self.row_scope.known[e])
            self.text.line(f"const Divisor<{CTYPE[e.dtype]}> {self.divisors[e]} = divisor({value});")

    def _declare_cached(self, stage: Stage) -> None:
        """Declare the registers of cached buffers."""
        lanes, steps = self.schedule.lanes, self.schedule.steps
        for name in dict.fromkeys(stage.buffers()):
            if name in self.schedule.cached and name not in self.declared:
                ctype = CTYPE[self.buffer(name).dtype]
                self.declared.add(name)
                kind = ctype if lanes == 1 else f"Vec<{ctype}, {lanes}>"
                self.text.line(f"{kind} {name}_kept[{max(steps, 1)}];")


def extent_of(space: Space, b: Buffer) -> int:
    """The extent of a buffer along the reduced dimensions, in elements."""
    return sum(
        (n - 1) * abs(s) for n, s in zip(space.reduced, space.strides[b.name].reduced, strict=True) if n
    )
