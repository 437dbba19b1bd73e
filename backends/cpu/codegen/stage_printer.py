"""Print one stage of a fused kernel: a nest of loops around a loop over vectors along the last dimension.

:mod:`.vector_stage` writes the loop over vectors, :mod:`.columns` stages that keep dimensions, :mod:`.tiles` those that
transpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .... import lazy
from ....errors import LoweringError
from ....lowering.fusion.loop_ir import FusedKernel, Reduce, Stage, Store, Update, collapse, roots_of
from ....operators.scalar_ir.cost import cost_without_reads
from ....operators.scalar_ir.expr import Expr, order
from ....registry.dtypes import DType
from .blocks import Loop
from .casts import emit_cast
from .complex_nodes import splits_pay
from .elementwise import lanes_for
from .folds.order import BufferedRow, block_length, choose_reducer, is_ordered, lane_count, row_lanes
from .folds.reducers import FloatSum, Reducer, State, is_count, lane_positions
from .index_maps import BoundsChecks
from .interleaving import MOST_COLUMNS
from .nodes import COSTLY, find_shared_functions
from .text import REGISTER, Function, part_size
from .vector_stage import VectorStage, computed_roots, find_consecutive
from .vectors import Access, Pairs, Use, VectorLoop, move_long_axis_last, split_state

if TYPE_CHECKING:
    from .tiles import Transposer

_tiles = lazy.Module(".backends.cpu.codegen.tiles")
_window_rows = lazy.Module(".backends.cpu.codegen.window_rows")
_checked_blocks = lazy.Module(".backends.cpu.codegen.checked_blocks")
MAX_SINGLE_COST = 3  # of an element that is computed by itself where it is loaded and stored by itself
MOST_REPEATED = 40  # expressions of a body that is written a second time for the last vector
TILE = 64  # elements of an axis that is long enough for tiles
SHORT_SIDE = 4  # elements of the other axis of a tile
CACHED_BYTES = 48 * 1024  # of an array whose lines stay in the first cache between the elements that are read
_COSTLY = COSTLY | {"call"}


def find_stored(stage: Stage) -> set[str]:
    """Return the names of what a stage writes."""
    return {
        s.buffer if isinstance(s, Store) else s.into if isinstance(s, Reduce) else s.map.buffer
        for s in stage.body
    }


def find_lines(f: Function, uses: dict[str, Use], across: int, extent: int, width: int) -> Transposer | None:
    """Return what transposes lines of uses that are only read; None if none is transposed, or none fits."""
    if not any(use.is_transposed(across) for use in uses.values()):
        return None
    lines: Transposer = _tiles.Transposer(f, uses, across, extent, width)
    return lines if lines.count else None


class StagePrinter:
    """Prints one stage: its nest of loops around a loop over vectors along the last dimension."""

    def __init__(
        self,
        f: Function,
        kernel: FusedKernel,
        stage: Stage,
        bases: dict[str, str],
        row_values: dict[str, tuple[str, DType]],
        checks: BoundsChecks,
    ):
        self.checks = checks
        self.f, self.kernel, self.stage, self.row_values = f, kernel, stage, row_values
        self.exprs = stage.exprs()
        f.shared = find_shared_functions(self.exprs)
        f.is_split = splits_pay(self.exprs, [s.value for s in stage.body if not isinstance(s, Reduce)])
        self.indexed = any(e.op == "index" for e in self.exprs)
        f.sizes = dict(enumerate(kernel.inner))
        names = [n for n in dict.fromkeys(stage.buffers()) if self.kernel.buffer(n)]
        buffers = [b for b in self.kernel.buffers if b.name in names]
        skip = len(self.kernel.outer)
        shape = tuple(self.kernel.inner[d] for d in stage.dims)
        strides = [tuple(b.strides[skip + d] for d in stage.dims) for b in buffers]
        if not self.indexed:
            shape, strides = collapse(shape, strides)
        if not self.indexed and all(isinstance(s, Store) for s in stage.body):
            shape, strides = move_long_axis_last(shape, strides)
        self.dims = stage.dims if self.indexed else tuple(range(len(shape)))
        if not shape:  # a single point: a vector of one element
            shape, strides, self.dims = (1,), [(0,) for _ in strides], (-1,)
        self.shape = shape
        self.uses = {b.name: Use(b, bases[b.name], s) for b, s in zip(buffers, strides, strict=True)}
        self.indices: dict[int, str] = {}
        self.reduces = [s for s in stage.body if isinstance(s, Reduce)]
        self.updates = [s for s in stage.body if isinstance(s, Update)]
        self.bases, self.count = bases, math.prod(shape)
        self.has_index_maps, self.checks_each_position = stage.has_index_maps(), False
        self.is_costly = not _COSTLY.isdisjoint(e.op for e in self.exprs)
        self.direct_dtype = self._direct_dtype()
        self.f.lanes = row_lanes(self.direct_dtype, self.shape[-1]) if self.direct_dtype else self._lanes()

    def with_body(self, stage: Stage) -> StagePrinter:
        """Return a printer of another stage at the same row."""
        return StagePrinter(self.f, self.kernel, stage, self.bases, self.row_values, self.checks)

    @property
    def is_short(self) -> bool:
        """Whether the body of the stage may be written twice."""
        return len(self.exprs) <= MOST_REPEATED and not self.is_costly

    def _direct_dtype(self) -> DType | None:
        """Return the dtype of ordered folds that can use the vectors of the stage's loop; None to buffer their rows."""
        dtypes = {dtype for r in self.reduces if is_ordered(r.fold, dtype := r.value.dtype)}
        if len(dtypes) != 1 or self.kept():
            return None
        (dtype,) = dtypes
        if self.is_costly:  # no more vectors are computed together than otherwise
            return dtype if len(self.shape) == 1 and self.count <= lane_count(dtype) else None
        return dtype if len(self.shape) == 1 or self.shape[-1] % block_length(dtype) == 0 else None

    def make_reducer(self, r: Reduce, counts: bool = False) -> Reducer:
        """Return the reducer of one reduction; its steps may take bools where ``counts`` and the value is integers."""
        row, size, buffers = self.shape[-1], self._widest(), self.direct_dtype is None
        return choose_reducer(self.f, r.fold, r.value, row, self.count, size, buffers, counts)

    def is_updated_by_element(self, update: Update) -> bool:
        """Return whether the points along the last dimension may update the same element."""
        if self.shape[-1] == 1 or find_consecutive(self, update) is not None:
            return False
        return not self.uses[update.map.buffer].strides[-1] or any(map(self.varies, update.indices))

    def varies(self, root: Expr) -> bool:
        """Return whether an expression may vary along the last dimension."""
        return any(
            (e.op == "index" and e.payload == self.dims[-1])
            or (e.op == "load" and self.uses[e.payload].strides[-1] != 0)
            or (e.op == "gather" and self.uses[e.payload.buffer].strides[-1] != 0)
            for e in order(root)
        )

    def _widest(self) -> int:
        """Return the bytes of the widest part of an element in memory."""
        return max((part_size(u.buffer.dtype) for u in self.uses.values()), default=1)

    def _lanes(self) -> int:
        if any(map(self.is_updated_by_element, self.updates)) or self._moves_single_elements():
            return 1
        widest = self._widest()
        if self.has_index_maps:
            lanes = lanes_for(computed_roots(self), widest)
        else:
            roots = [root for s in self.stage.body for root in roots_of(s)]
            counted = {r.value for r in self.reduces if is_count(r.fold, r.value)}
            lanes = lanes_for([root.args[0] if root in counted else root for root in roots], widest)
        last = self.shape[-1]
        if self.reduces and not self.is_costly and last >= 8 * lanes:
            lanes *= 4  # several accumulators hide the latency of adding
        while lanes > 1 and lanes >= 2 * last:
            lanes //= 2
        return lanes

    def _moves_single_elements(self) -> bool:
        """Return whether each element is loaded and stored by itself, which takes longer than to compute it."""
        strides = {abs(use.strides[-1]) for use in self.uses.values()} - {0}
        if self.reduces or min(strides, default=0) <= MOST_COLUMNS:
            return False  # a vector holds several of them
        return sum(cost_without_reads(r) for s in self.stage.body for r in roots_of(s)) <= MAX_SINGLE_COST

    def write(self) -> None:
        """Write a stage that keeps no dimensions."""
        window = _window_rows.find_window(self) if self.reduces else None
        if window is not None:
            items, values = window.items, window.write()
        else:
            items = [self.make_reducer(r, counts=True) for r in self.reduces]
            values = self.write_values(items)
        for r, x, value in zip(self.reduces, items, values, strict=True):
            if r.fold.finish is not None:
                with self.f.width(1):
                    vector = x.finish(self.f, self.f.broadcast(value, REGISTER[x.dtype]))
                    value = self.f.op(f"extractelement <1 x {REGISTER[x.result]}> {vector}, i64 0")
            if r.into in self.uses:
                self._store_one(self.uses[r.into], value, x.result)
            else:
                self.row_values[r.into] = (value, x.result)

    def write_values(self, items: list[Reducer]) -> list[str]:
        """Write the loops of the stage; return the combined value of each reduction, a scalar."""
        states = [x.initial(self.f) for x in items]
        if 0 not in self.shape:  # in an empty space not even invariants may be read
            states = self.write_nest(range(len(self.shape) - 1), self.uses, items, states, "0")
        return [x.collapse(self.f, state) for x, state in zip(items, states, strict=True)]

    def _store_one(self, use: Use, value: str, dtype: DType) -> None:
        """Store a result whose kept dimensions all have size 1."""
        with self.f.width(1):
            vector = self.f.broadcast(value, REGISTER[dtype])
            self.f.store_vector(
                use.buffer.dtype, emit_cast(self.f, vector, dtype, use.buffer.dtype), use.base
            )

    def kept(self) -> int:
        """Return how many trailing dimensions every reduction of the stage keeps."""
        kept = set()
        for r in self.reduces:
            use = self.uses.get(r.into)
            varies = [d for d, s in enumerate(use.strides) if s] if use else []
            kept.add(len(self.shape) - varies[0] if varies else 0)
        if len(kept) > 1:
            raise self._error(
                "reductions to row values and reductions that keep dimensions, or keep different ones"
            )
        return kept.pop() if kept else 0

    def _error(self, what: str) -> LoweringError:
        return LoweringError(f"kernel {self.kernel.name}, stage over dimensions {self.stage.dims}: {what}")

    def write_nest(
        self,
        dims: Sequence[int],
        uses: dict[str, Use],
        items: list[Reducer],
        states: list[State],
        position: str,
    ) -> list[State]:
        """Write loops over ``dims`` that carry ``states``; ``position`` counts the points before, for argmax."""
        if not dims:
            return self.write_blocks(uses, items, states, position)
        f, dim = self.f, dims[0]
        carried = [pair for x, s in zip(items, states, strict=True) for pair in x.carried(f, s)]
        lines = self.find_lines(dim, self.shape[-1]) if len(dims) == 1 and items else None
        with self.loop_along(dim, uses, carried, lines, str(self.shape[-1])) as (loop, inside, index):
            here = f.op(f"add i64 {f.op(f'mul i64 {position}, {self.shape[dim]}')}, {index}")
            after = self.write_nest(dims[1:], inside, items, split_state(items, loop.carried), here)
            loop.next = [v for s in after for v in s]
        return split_state(items, loop.carried)

    @contextmanager
    def loop_along(
        self, dim: int, uses: dict[str, Use], carried: Pairs, lines: Transposer | None, width: str
    ) -> Iterator[tuple[Loop, dict[str, Use], str]]:
        """Write a loop over a dimension; yields it, the uses at a position, and the position."""
        f = self.f
        if lines is not None:
            with lines.loop(uses, width, carried) as (loop, inside, index):
                self.indices[self.dims[dim]] = index
                yield loop, inside, index
            return
        with f.loop("0", str(self.shape[dim]), "1", carried) as loop:
            self.indices[self.dims[dim]] = loop.index
            yield loop, {n: u.offset_along(f, dim, loop.index) for n, u in uses.items()}, loop.index

    def find_lines(self, dim: int, width: int) -> Transposer | None:
        """Return what transposes lines that are adjacent along a dimension; None if there are none."""
        return find_lines(self.f, self.readable_uses(), dim, self.shape[dim], width)

    def may_transpose(self) -> bool:
        """Return whether the stage may be a copy of a transposed array."""
        return not self.has_index_maps and len(self.exprs) == 1 and len(self.shape) > 1

    def find_tiled_dimension(self) -> int | None:
        """Return a dimension along which a transposed array is contiguous; None if tiles would not help."""
        if self.reduces or self.has_index_maps or self.shape[-1] < TILE:
            return None
        strided = [u for u in self.uses.values() if u.strides[-1] not in (0, 1)]
        size = max((u.buffer.dtype.itemsize for u in strided), default=0)
        least = SHORT_SIDE if self.count * size > CACHED_BYTES else TILE
        contiguous = (d for d in range(len(self.shape) - 1) for u in strided if u.strides[d] == 1)
        return next((d for d in contiguous if self.shape[d] >= least), None)

    def readable_uses(self) -> dict[str, Use]:
        """Return the uses that the stage only reads, at the point that it computes."""
        stored = find_stored(self.stage)
        return {} if self.has_index_maps else {n: u for n, u in self.uses.items() if n not in stored}

    def write_blocks(
        self, uses: dict[str, Use], items: list[Reducer], states: list[State], position: str
    ) -> list[State]:
        """Write the last dimension, in blocks if it is long and a float sum runs along it."""
        f, size = self.f, self.shape[-1]
        if self.updates and _checked_blocks.has_checked_blocks(self):
            _checked_blocks.write_checked_blocks(self, uses)
            return states
        ordered = [block_length(x.dtype) for x in items if isinstance(x, (FloatSum, BufferedRow))]
        counted = [x.steps_per_block * f.lanes for x in items if x.steps_per_block]
        block = min(ordered + counted, default=size)
        start = f.op(f"mul i64 {position}, {size}")
        if size <= block:
            return self.write_vectors(uses, items, states, "0", str(size), start)
        whole = size - size % block if self.is_short else size
        states = self._write_whole_blocks(uses, items, states, start, whole, block)
        if whole == size:
            return states
        inside = {n: u.offset_along(f, len(self.shape) - 1, str(whole)) for n, u in uses.items()}
        begin = f.op(f"add i64 {start}, {whole}")
        return self.write_vectors(inside, items, states, str(whole), str(size - whole), begin)

    def _write_whole_blocks(
        self,
        uses: dict[str, Use],
        items: list[Reducer],
        states: list[State],
        start: str,
        size: int,
        block: int,
    ) -> list[State]:
        """Write a loop over blocks; the last one is shorter if ``size`` is not a multiple of ``block``."""
        f = self.f
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        carried = [pair for x, s in zip(items, states, strict=True) for pair in x.carried(f, s)]
        with f.loop("0", str(size), str(block), carried) as loop:
            inside = {n: u.offset_along(f, len(self.shape) - 1, loop.index) for n, u in uses.items()}
            count = str(block)
            if size % block:
                left = f.op(f"sub i64 {size}, {loop.index}")
                count = f.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {block})")
            begin = f.op(f"add i64 {start}, {loop.index}")
            after = self.write_vectors(
                inside, items, split_state(items, loop.carried), loop.index, count, begin
            )
            loop.next = [v for s in after for v in s]
        return split_state(items, loop.carried)

    def write_vectors(
        self,
        uses: dict[str, Use],
        items: list[Reducer],
        states: list[State],
        offset: str,
        count: str,
        start: str,
    ) -> list[State]:
        """Write one block: ``offset`` is its position in the last dimension, ``start`` in the whole reduction."""
        f = self.f
        begun = [x.begin_block(f, s) for x, s in zip(items, states, strict=True)]
        carried = [pair for x, s in zip(items, begun, strict=True) for pair in x.carried(f, s)]

        def reduce(loop: VectorLoop, values: list[str], known: dict[Expr, str]) -> list[str]:
            positions = lane_positions(f, f.op(f"add i64 {start}, {loop.index}"), items)
            after: list[str] = []
            states = split_state(items, values)
            for r, x, state, position in zip(self.reduces, items, states, positions, strict=True):
                value = known[x.operand(r.value)]
                if isinstance(x, BufferedRow):
                    x.store(f, loop.index, value)
                    continue
                value = x.mask(f, loop.mask, value) if loop.mask else value
                after += x.step(f, state, value, position)
            return after

        done = split_state(items, self.write_vector_loop(uses, offset, count, carried, reduce))
        for x in items:
            if isinstance(x, BufferedRow):
                x.advance(f, count)
        return [x.end_block(f, s, b) for x, s, b in zip(items, states, done, strict=True)]

    def write_vector_loop(
        self,
        uses: dict[str, Use],
        offset: str,
        count: str,
        carried: Pairs,
        reduce: Callable[[VectorLoop, list[str], dict[Expr, str]], list[str]],
    ) -> list[str]:
        """Write the loop over vectors: loads, expressions, stores; loop invariants come before it."""
        return VectorStage(self, uses, offset, count, carried, reduce).write()

    def make_access(self, use: Use, writes: bool = False) -> Access:
        stride = use.strides[-1]
        if self.shape[-1] == 1:
            stride = 1
        if writes and not stride:
            raise self._error(f"{use.buffer.name} is stored to but does not vary along the last dimension")
        return Access(self.f, use.buffer.dtype, use.base, stride, writes=writes)
