"""The eager loop of a reduction: one dimension reduced, one kept, any strides."""

from __future__ import annotations

from ....registry.dtypes import DType
from .casts import check_emittable, emit_cast
from .elementwise import Operand, block_limit, block_size, lanes_below
from .host import host
from .reducers import FloatSum, Reducer, State, compute_dtype, reducer
from .stages import SUM_BLOCK
from .text import REGISTER, Function, Module
from .vectors import Access, VectorLoop, vector_loop

COLUMNS = 2048
"""Columns whose partial results are kept at a time, where the kept dimension is the contiguous one."""


def write_reduce_loop(module: Module, name: str, op: str, in_dtype: DType, out_dtype: DType) -> None:
    """Add the function ``void name(char **ptrs, int64_t *dims, int64_t *strides)`` to a module, which may hold many.

    ``ptrs`` holds the input and the output; ``dims`` the sizes of the kept (outer) and the reduced (inner) dimension;
    ``strides`` an outer and an inner stride in bytes for each of ``ptrs``; the output's inner stride is not read. Over
    no elements: 0, 1, the type's extremes, or position 0; refusing is the caller's.

    Args:
        module: the module.
        name: the function's name.
        op: one of ``reducers.REDUCTIONS``.
        in_dtype: the input's type. The reduction computes in it (float16 and bfloat16 in float32), but a sum or
            product of integers or bools in ``out_dtype``.
        out_dtype: the result's type.

    Raises:
        UnsupportedError: a complex dtype, or float16 where the processor lacks it.
    """
    check_emittable(in_dtype, out_dtype, f16c=host().f16c)
    widen = op in ("sum", "prod") and in_dtype.kind in "biu"
    computed = out_dtype if widen else compute_dtype(op, in_dtype)
    item = reducer(op, computed)
    lanes = host().vector_bytes // max(d.itemsize for d in (in_dtype, *item.state))
    f = Function(module, lanes if item.picks else 4 * lanes)
    rows, count = f.load("i64", "%dims"), f.load("i64", f.address("%dims", "8"))
    x, out = Operand(f, 0, in_dtype), Operand(f, 1, out_dtype)
    adjacent = f.op(f"icmp eq i64 {x.outer}, {x.size}")
    columns = f.op(f"and i1 {adjacent}, {f.op(f'icmp sge i64 {rows}, 8')}")
    columns = f.op(f"and i1 {columns}, {f.op(f'xor i1 {x.dense}, true')}")
    f.branch(columns, "columns", "rows")
    f.label("columns")
    plain = Reducer("add", 0.0, computed) if isinstance(item, FloatSum) else item
    _Columns(f, plain, x, out, rows, count).write()
    f.do("ret void")
    f.label("rows")
    _Rows(f, item, x, out, rows, count).write()
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}(ptr %ptrs, ptr %dims, ptr %strides) #0"))


class _Rows:
    """Each result by itself: along the reduced dimension, in vectors."""

    def __init__(self, f: Function, item: Reducer, x: Operand, out: Operand, rows: str, count: str):
        self.f, self.item, self.x, self.out, self.rows, self.count = f, item, x, out, rows, count
        self.limit = block_limit(f, [x.strided], SUM_BLOCK * f.lanes)

    def write(self) -> None:
        f, item, out = self.f, self.item, self.out
        none = f.op(f"icmp eq i64 {self.count}, 0")
        with f.loop("0", self.rows, "1") as row:
            # an empty row has no element to spread
            self.x.begin_row(row.index, unless=none)
            value = item.collapse(f, self._blocks(item.initial(f)))
            with f.width(1):
                vector = emit_cast(f, f.broadcast(value, REGISTER[item.result]), item.result, out.dtype)
                f.store_vector(
                    out.dtype, vector, f.address(out.start, f.op(f"mul i64 {row.index}, {out.outer}"))
                )

    def _blocks(self, state: State) -> State:
        f, item = self.f, self.item
        whole_blocks = [("i64", "0"), *item.carried(f, state)]
        # at most count turns: each takes the block that begins where the last one ended
        head, run, end, before = f.fresh("head"), f.fresh("run"), f.fresh("end"), f.block
        names = ["%" + f.fresh("c") for _ in whole_blocks]
        f.jump(head)
        f.label(head)
        place = len(f.lines)
        f.branch(f.op(f"icmp slt i64 {names[0]}, {self.count}"), run, end)
        f.label(run)
        after = self._block(names[0], names[1:])
        f.lines[place:place] = [
            f"  {name} = phi {type_} [ {first}, %{before} ], [ {following}, %{f.block} ]"
            for name, (type_, first), following in zip(names, whole_blocks, after, strict=True)
        ]
        f.jump(head)
        f.label(end)
        return names[1:]

    def _block(self, position: str, state: State) -> list[str]:
        f, item, x = self.f, self.item, self.x
        size, whole = block_size(f, position, self.count, self.limit)
        x.begin_block(position, whole, size, read=True)
        mask = lanes_below(f, size)
        begun = item.begin_block(f, state)
        with f.loop("0", size, str(f.lanes), [("ptr", x.pointer), *item.carried(f, begun)]) as loop:
            value = emit_cast(f, x.load(loop.carried[0], mask), x.dtype, item.dtype)
            where = ""
            if item.picks:
                start = f.broadcast(f.op(f"add i64 {position}, {loop.index}"), "i64")
                where = f.op(f"add {f.vec('i64')} {start}, {f.lane_numbers()}")
            after = item.step(f, loop.carried[1:], item.mask(f, mask, value), where)
            loop.next = [f.address(loop.carried[0], x.step), *after]
        ended = item.end_block(f, state, loop.carried[1:])
        return [f.op(f"add i64 {position}, {size}"), *ended]


class _Columns:
    """Many results at once: rows of the input stream past their partial results."""

    def __init__(self, f: Function, item: Reducer, x: Operand, out: Operand, rows: str, count: str):
        self.f, self.item, self.x, self.out, self.rows, self.count = f, item, x, out, rows, count
        self.memory = [f.buffer(COLUMNS * d.itemsize) for d in item.state]
        self.results = f.buffer(COLUMNS * out.size)

    def write(self) -> None:
        f, x = self.f, self.x
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        with f.loop("0", self.rows, str(COLUMNS)) as block:
            width = f.op(
                f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 {self.rows}, {block.index}')}, i64 {COLUMNS})"
            )
            self._fill(width)
            base = f.address(x.start, f.op(f"mul i64 {block.index}, {x.size}"))
            with f.loop("0", self.count, "1") as row:
                self._row(f.address(base, f.op(f"mul i64 {row.index}, {x.inner}")), row.index, width)
            self._finish(block.index, width)

    def _places(self, index: str) -> list[tuple[DType, str]]:
        f = self.f
        pairs = zip(self.item.state, self.memory, strict=True)
        return [(d, f.address(m, f.op(f"mul i64 {index}, {d.itemsize}"))) for d, m in pairs]

    def _fill(self, width: str) -> None:
        f = self.f
        first = self.item.initial(f)
        if self.item.picks:
            first[self.item.picks] = "zeroinitializer"
        with f.loop("0", width, str(f.lanes)) as loop:
            for (d, place), value in zip(self._places(loop.index), first, strict=True):
                f.store_vector(d, value, place)

    def _row(self, base: str, index: str, width: str) -> None:
        f, item = self.f, self.item
        where = f.broadcast(index, "i64") if item.picks else ""
        access = Access(f, self.x.dtype, base, 1)

        def body(loop: VectorLoop, carried: list[str]) -> list[str]:
            places = self._places(loop.index)
            state = [f.load_vector(d, p) for d, p in places]
            value = emit_cast(f, access.load(), access.dtype, item.dtype)
            for (d, place), v in zip(places, item.step(f, state, value, where), strict=True):
                f.store_vector(d, v, place)
            return []

        vector_loop(f, width, None, [access], [], body)

    def _finish(self, first: str, width: str) -> None:
        f, item, out = self.f, self.item, self.out
        with f.loop("0", width, str(f.lanes)) as loop:
            state = [f.load_vector(d, p) for d, p in self._places(loop.index)]
            value = emit_cast(f, item.final(f, state), item.result, out.dtype)
            f.store_vector(
                out.dtype, value, f.address(self.results, f.op(f"mul i64 {loop.index}, {out.size}"))
            )
        target = f.address(out.start, f.op(f"mul i64 {first}, {out.outer}"))
        out.unpack(self.results, target, out.outer, width)
