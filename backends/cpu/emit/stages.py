"""One stage of a fused kernel: a nest of loops around a loop over vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....errors import LoweringError
from ....lowering.loops import Buffer, FusedKernel, Reduce, Stage, Store, collapse
from ....operators.expr import Expr
from ....registry.dtypes import DType
from .casts import emit_cast
from .elementwise import lanes_for
from .nodes import emit_exprs
from .reducers import FloatSum, Reducer, State, compute_dtype, reducer
from .text import REGISTER, Function
from .vectors import Access, VectorLoop, vector_loop

SUM_BLOCK = 64
"""Vectors of a float sum that are added plainly, before rounding errors are kept."""
_COSTLY = frozenset("call exp expm1 log log1p sin cos tan erf erfc tanh sinh cosh pow atan atan2".split())


@dataclass
class Use:
    """A buffer in a stage: where the current row begins, and its strides over the stage's dimensions."""

    buffer: Buffer
    base: str
    strides: tuple[int, ...]

    def moved(self, f: Function, dim: int, index: str) -> Use:
        """The same with ``index`` along ``dim`` fixed."""
        step = self.strides[dim] * self.buffer.dtype.itemsize
        return Use(
            self.buffer,
            f.address(self.base, f.op(f"mul i64 {index}, {step}")) if step else self.base,
            self.strides,
        )


def split(items: Sequence[Reducer], values: Sequence[str]) -> list[State]:
    """Carried values as one state for each reduction."""
    found, at = [], 0
    for x in items:
        found.append(list(values[at : at + len(x.state)]))
        at += len(x.state)
    return found


def _long_last(
    shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The dimensions in an order whose last is not too short for vectors, if there is one."""
    if len(shape) < 2 or shape[-1] >= 8 or max(shape) < 64:
        return shape, strides
    longest = shape.index(max(shape))
    order = [d for d in range(len(shape)) if d != longest] + [longest]
    return tuple(shape[d] for d in order), [tuple(s[d] for d in order) for s in strides]


class StagePrinter:
    """One stage: its nest of loops, around a loop over vectors along the last dimension."""

    def __init__(
        self,
        f: Function,
        kernel: FusedKernel,
        stage: Stage,
        bases: dict[str, str],
        row_values: dict[str, tuple[str, DType]],
    ):
        self.f, self.kernel, self.stage, self.row_values = f, kernel, stage, row_values
        self.exprs = stage.exprs()
        self.indexed = any(e.op == "index" for e in self.exprs)
        names = [n for n in dict.fromkeys(stage.buffers()) if self.kernel.buffer(n)]
        buffers = [b for b in self.kernel.buffers if b.name in names]
        skip = len(self.kernel.outer)
        shape = tuple(self.kernel.inner[d] for d in stage.dims)
        strides = [tuple(b.strides[skip + d] for d in stage.dims) for b in buffers]
        if not self.indexed:
            shape, strides = collapse(shape, strides)
        if not self.indexed and not any(isinstance(s, Reduce) for s in stage.body):
            shape, strides = _long_last(shape, strides)
        self.dims = stage.dims if self.indexed else tuple(range(len(shape)))
        if not shape:  # one point: a vector of one element
            shape, strides, self.dims = (1,), [(0,) for _ in strides], (-1,)
        self.shape = shape
        self.uses = {b.name: Use(b, bases[b.name], s) for b, s in zip(buffers, strides, strict=True)}
        self.indices: dict[int, str] = {}
        self.reduces = [s for s in stage.body if isinstance(s, Reduce)]
        self.f.lanes = self._lanes()

    def _lanes(self) -> int:
        widest = max((u.buffer.dtype.itemsize for u in self.uses.values()), default=1)
        lanes = lanes_for([s.value for s in self.stage.body], widest)
        last = self.shape[-1]
        if self.reduces and not _COSTLY.intersection(e.op for e in self.exprs) and last >= 8 * lanes:
            lanes *= 4  # several accumulators hide the latency of adding
        while lanes > 1 and lanes >= 2 * last:
            lanes //= 2
        return lanes

    def write(self) -> None:
        """The stage, if it keeps no dimensions."""
        items = [(r, reducer(r.op, compute_dtype(r.op, r.value.dtype))) for r in self.reduces]
        states = [x.initial(self.f) for _, x in items]
        if 0 not in self.shape:  # of an empty space not even what is constant may be read
            states = self.nest(range(len(self.shape) - 1), self.uses, [x for _, x in items], states, "0")
        for (r, x), state in zip(items, states, strict=True):
            value = x.collapse(self.f, state)
            if r.into in self.uses:
                self._store_one(self.uses[r.into], value, x.result)
            else:
                self.row_values[r.into] = (value, x.result)

    def _store_one(self, use: Use, value: str, dtype: DType) -> None:
        """A result whose kept dimensions all have size 1."""
        with self.f.width(1):
            vector = self.f.broadcast(value, REGISTER[dtype])
            self.f.store_vector(
                use.buffer.dtype, emit_cast(self.f, vector, dtype, use.buffer.dtype), use.base
            )

    def kept(self) -> int:
        """How many trailing dimensions every reduction of the stage keeps."""
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

    def nest(
        self,
        dims: Sequence[int],
        uses: dict[str, Use],
        items: list[Reducer],
        states: list[State],
        position: str,
    ) -> list[State]:
        """Loops over ``dims`` that carry ``states``; ``position`` counts the points before, for argmax."""
        if not dims:
            return self.blocks(uses, items, states, position)
        f, dim = self.f, dims[0]
        carried = [pair for x, s in zip(items, states, strict=True) for pair in x.carried(f, s)]
        with f.loop("0", str(self.shape[dim]), "1", carried) as loop:
            self.indices[self.dims[dim]] = loop.index
            inside = {n: u.moved(f, dim, loop.index) for n, u in uses.items()}
            here = f.op(f"add i64 {f.op(f'mul i64 {position}, {self.shape[dim]}')}, {loop.index}")
            after = self.nest(dims[1:], inside, items, split(items, loop.carried), here)
            loop.next = [v for s in after for v in s]
        return split(items, loop.carried)

    def blocks(
        self, uses: dict[str, Use], items: list[Reducer], states: list[State], position: str
    ) -> list[State]:
        """The last dimension, whole, or in blocks if it is long and a float sum runs along it."""
        f, size = self.f, self.shape[-1]
        block = SUM_BLOCK * f.lanes
        start = f.op(f"mul i64 {position}, {size}")
        if size <= block or not any(isinstance(x, FloatSum) for x in items):
            return self.vectors(uses, items, states, "0", str(size), start)
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        carried = [pair for x, s in zip(items, states, strict=True) for pair in x.carried(f, s)]
        with f.loop("0", str(size), str(block), carried) as loop:
            inside = {n: u.moved(f, len(self.shape) - 1, loop.index) for n, u in uses.items()}
            count = f.op(f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 {size}, {loop.index}')}, i64 {block})")
            begin = f.op(f"add i64 {start}, {loop.index}")
            after = self.vectors(inside, items, split(items, loop.carried), loop.index, count, begin)
            loop.next = [v for s in after for v in s]
        return split(items, loop.carried)

    def vectors(
        self,
        uses: dict[str, Use],
        items: list[Reducer],
        states: list[State],
        offset: str,
        count: str,
        start: str,
    ) -> list[State]:
        """One block: ``offset`` is its place in the last dimension, ``start`` in the whole reduction."""
        f = self.f
        begun = [x.begin_block(f, s) for x, s in zip(items, states, strict=True)]
        carried = [pair for x, s in zip(items, begun, strict=True) for pair in x.carried(f, s)]

        def reduce(loop: VectorLoop, values: list[str], known: dict[Expr, str]) -> list[str]:
            position = self.lane_positions(f.op(f"add i64 {start}, {loop.index}"), items)
            after: list[str] = []
            for r, x, state in zip(self.reduces, items, split(items, values), strict=True):
                value = emit_cast(f, known[r.value], r.value.dtype, x.dtype)
                value = x.mask(f, loop.mask, value) if loop.mask else value
                after += x.step(f, state, value, position)
            return after

        done = split(items, self.run(uses, offset, count, carried, reduce))
        return [x.end_block(f, s, b) for x, s, b in zip(items, states, done, strict=True)]

    def lane_positions(self, first: str, items: Sequence[Reducer]) -> str:
        """The positions of a vector's elements, if a reduction wants them."""
        if not any(x.picks for x in items):
            return ""
        vec = self.f.vec("i64")
        return self.f.op(f"add {vec} {self.f.broadcast(first, 'i64')}, {self.f.lane_numbers()}")

    def run(
        self,
        uses: dict[str, Use],
        offset: str,
        count: str,
        carried: list[tuple[str, str]],
        reduce: Callable[[VectorLoop, list[str], dict[Expr, str]], list[str]],
    ) -> list[str]:
        """The loop over vectors: loads, expressions, stores; what is constant along it comes before it."""
        f = self.f
        fixed, loaded = self.invariants(uses)
        accesses = {e: self.access(uses[e.payload]) for e in loaded}
        stores = [
            (s, self.access(uses[s.buffer], writes=True)) for s in self.stage.body if isinstance(s, Store)
        ]

        def body(loop: VectorLoop, values: list[str]) -> list[str]:
            registers = {name: access.load() for name, access in by_name.items()}
            known = fixed | {e: registers[e.payload] for e in loaded}
            if self.indexed:
                last = f.op(f"add i64 {offset}, {loop.index}")
                known |= self.index_leaves(last)
            emit_exprs(f, [s.value for s in self.stage.body], known)
            after = reduce(loop, values, known)
            for s, access in stores:
                access.store(emit_cast(f, known[s.value], s.value.dtype, access.dtype))
            return after

        by_name = {e.payload: accesses[e] for e in loaded}
        used = [*by_name.values(), *[a for _, a in stores]]
        return vector_loop(f, count, self.shape[-1] % f.lanes, used, carried, body)

    def access(self, use: Use, writes: bool = False) -> Access:
        stride = use.strides[-1]
        if self.shape[-1] == 1:
            stride = 1
        if writes and not stride:
            raise self._error(f"{use.buffer.name} is stored to but does not vary along the last dimension")
        return Access(self.f, use.buffer.dtype, use.base, stride, writes=writes)

    def index_leaves(self, last: str) -> dict[Expr, str]:
        """Registers of the ``index`` leaves; ``last`` is the position of the vector along the last dimension."""
        f, found = self.f, {}
        for e in self.exprs:
            if e.op == "index" and e.payload == self.dims[-1]:
                vec = f.vec("i64")
                found[e] = f.op(f"add {vec} {f.broadcast(last, 'i64')}, {f.lane_numbers()}")
            elif e.op == "index":
                found[e] = f.broadcast(self.indices[e.payload], "i64")
        return found

    def invariants(self, uses: dict[str, Use]) -> tuple[dict[Expr, str], list[Expr]]:
        """(registers of what is constant along the last dimension, the loads that are not)."""
        fixed: dict[Expr, str] = {}
        loaded = []
        for e in self.exprs:
            if e.op == "load":
                use = uses[e.payload]
                if use.strides[-1]:
                    loaded.append(e)
                else:
                    fixed[e] = self.f.load_splat(e.dtype, use.base)
            elif e.op in ("row", "scalar"):
                fixed[e] = self.leaf(e)
            elif e.op != "index" and all(a in fixed for a in e.args):
                emit_exprs(self.f, [e], fixed)
        return fixed, loaded

    def leaf(self, e: Expr) -> str:
        """A row value or run-time scalar in every lane."""
        f = self.f
        if e.op == "row":
            value, dtype = self.row_values[e.payload]
            return f.broadcast(value, REGISTER[dtype])
        return f.load_splat(e.dtype, f.address("%scalars", str(8 * e.payload)))
