"""The eager loop of a fold over two axes that do not merge into one: each row is a sequence of lines.

A contiguous line is folded in place. If lines are adjacent in memory, as those of a transposed matrix, several are
transposed at a time, in squares of vectors. Elements of any other line are copied.
"""

from __future__ import annotations

from .....registry.dtypes import DType
from ...target import vector_target
from ..elementwise import lanes_below, pack_helper
from ..small_product import transpose_vectors
from ..text import REGISTER, Function, Module
from .order import block_length, lane_count, load_state, state_bytes, store_state
from .reducers import RowFold, State

TRANSPOSED_BYTES = 1 << 17  # bytes of lines that are transposed at a time
COPIED_BYTES = 1 << 14  # bytes of lines that are copied before they are folded
DENSE, COPIED = 0, -1  # special values of the number of lines that are transposed at a time


def write_nested_row(module: Module, name: str, row: RowFold) -> None:
    """Add ``name(x, outer, inner, across, step)``: the fold of ``outer`` lines of ``inner`` elements.

    ``across`` and ``step`` are the bytes between lines, and between elements of a line.
    """
    _Lines(module, name, row).write()


class _Lines:
    """The functions of the loop."""

    def __init__(self, module: Module, name: str, row: RowFold):
        self.module, self.name, self.source, self.dtype = module, name, row.source, row.dtype
        self.runs = _Runs(module, f"{name}_run", row)
        self.size = row.source.itemsize
        tall = min(vector_target().vector_bytes // self.size, 16)
        self.heights = sorted({tall, max(tall // 2, 2)})

    def write(self) -> None:
        self.runs.write()
        f = self.f = Function(self.module, 1)
        self.memory, self.scratch = f.allocate(self.runs.bytes), f.allocate(TRANSPOSED_BYTES)
        f.do(f"call void @{self.name}_run_begin(ptr {self.memory})")
        height = self._height()
        for kind in (DENSE, COPIED, *self.heights):
            with f.when(f.op(f"icmp eq i64 {height}, {kind}")):
                if kind > 0:
                    self._transposed(kind)
                elif kind == COPIED:
                    self._copied("0")
                else:
                    with f.loop("0", "%outer", "1") as at:
                        self._run(f.address("%x", f.op(f"mul i64 {at.index}, %across")), "%inner")
        element = REGISTER[self.dtype]
        f.do(f"%result = call {element} @{self.name}_run_end(ptr {self.memory})")
        f.do(f"ret {element} %result")
        arguments = "ptr %x, i64 %outer, i64 %inner, i64 %across, i64 %step"
        self.module.helper(self.name, f.text(f"internal {element} @{self.name}({arguments}) #1"))

    def _height(self) -> str:
        """Return how lines are read: if they are adjacent, as many as possible are transposed at a time."""
        f, height = self.f, str(COPIED)
        adjacent = f.op(f"icmp eq i64 %across, {self.size}")
        for most in self.heights:
            fits = f.op(f"icmp sle i64 %inner, {TRANSPOSED_BYTES // (most * self.size)}")
            enough = f.op(f"icmp sge i64 %outer, {most}")
            usable = f.op(f"and i1 {adjacent}, {f.op(f'and i1 {fits}, {enough}')}")
            height = f.op(f"select i1 {usable}, i64 {most}, i64 {height}")
        dense = f.op(f"icmp eq i64 %step, {self.size}")
        return f.op(f"select i1 {dense}, i64 {DENSE}, i64 {height}")

    def _run(self, x: str, count: str) -> None:
        self.f.do(f"call void @{self.name}_run(ptr {x}, i64 {count}, ptr {self.memory})")

    def _copied(self, first: str) -> None:
        """Copy and fold the lines from ``first`` on: several at a time if they are short, else a part of one."""
        f, most = self.f, TRANSPOSED_BYTES // self.size
        helper = pack_helper(self.module, self.size, unpack=False)
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        f.module.declare("llvm.smax.i64", "i64", "i64", "i64")
        fit = f.op(f"sdiv i64 {COPIED_BYTES // self.size}, %inner")
        several = f.op(f"call i64 @llvm.smax.i64(i64 {fit}, i64 1)")
        with f.loop(first, "%outer", several) as at, f.loop("0", "%inner", str(most)) as part:
            lines = f.op(f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 %outer, {at.index}')}, i64 {several})")
            count = f.op(f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 %inner, {part.index}')}, i64 {most})")
            with f.loop("0", lines, "1") as line:
                x = f.address("%x", f.op(f"mul i64 {f.op(f'add i64 {at.index}, {line.index}')}, %across"))
                x = f.address(x, f.op(f"mul i64 {part.index}, %step"))
                to = f.address(
                    self.scratch, f.op(f"mul i64 {f.op(f'mul i64 {line.index}, {count}')}, {self.size}")
                )
                f.do(f"call void @{helper}(ptr {to}, ptr {x}, i64 %step, i64 {count})")
            self._run(self.scratch, f.op(f"mul i64 {lines}, {count}"))

    def _transposed(self, height: int) -> None:
        f, name = self.f, f"transpose_{height}_{self.source.name}"
        write_transpose(self.module, name, self.source, height)
        whole = f.op(f"and i64 %outer, {-height}")
        count = f.op(f"mul i64 %inner, {height}")
        with f.loop("0", whole, str(height)) as at:
            lines = f.address("%x", f.op(f"mul i64 {at.index}, {self.size}"))
            f.do(f"call void @{name}(ptr {lines}, ptr {self.scratch}, i64 %inner, i64 %step)")
            self._run(self.scratch, count)
        self._copied(whole)


def write_transpose(module: Module, name: str, dtype: DType, height: int) -> None:
    """Add ``name(x, to, count, step)``: copy ``height`` adjacent lines of ``count`` elements one after the other."""
    if name in module.parts:
        return
    lanes = min(height, vector_target().vector_bytes // dtype.itemsize, 16)
    f, size, element = Function(module, lanes), dtype.itemsize, REGISTER[dtype]
    pitch = f.op(f"mul i64 %count, {size}")
    whole = f.op(f"and i64 %count, {-lanes}")
    lines = [f.address("%to", f.op(f"mul i64 {pitch}, {line}")) for line in range(height)]
    with f.loop("0", whole, str(lanes)) as at:
        columns = [f.op(f"mul i64 {f.op(f'add i64 {at.index}, {k}')}, %step") for k in range(lanes)]
        moved = f.op(f"mul i64 {at.index}, {size}")
        for first in range(0, height, lanes):
            x = f.address("%x", str(first * size))
            vectors = [f.load_vector(dtype, f.address(x, column)) for column in columns]
            for line, vector in zip(lines[first:], transpose_vectors(f, element, vectors)):
                f.store_vector(dtype, vector, f.address(line, moved))
    with f.loop(whole, "%count", "1") as at:
        x = f.address("%x", f.op(f"mul i64 {at.index}, %step"))
        moved = f.op(f"mul i64 {at.index}, {size}")
        for k, line in enumerate(lines):
            value = f.load(element, f.address(x, str(k * size)))
            f.do(f"store {element} {value}, ptr {f.address(line, moved)}, align 1")
    f.do("ret void")
    module.helper(name, f.text(f"internal void @{name}(ptr %x, ptr %to, i64 %count, i64 %step) #1"))


class _Runs:
    """A row that is folded in runs of contiguous elements, each of which may begin and end within a block.

    ``memory`` holds the lanes before the current block, the lanes of the block, and the number of its elements.
    """

    def __init__(self, module: Module, name: str, row: RowFold):
        self.module, self.name, self.row, self.source, self.dtype = module, name, row, row.source, row.dtype
        self.item, self.lanes, self.length = (
            row.make_reducer(),
            lane_count(row.dtype),
            block_length(row.dtype),
        )
        self.state = state_bytes(row)
        self.filled = self.state + self.lanes * row.dtype.itemsize
        self.bytes = self.filled + 8

    def write(self) -> None:
        self._write_begin()
        self._write_piece()
        self._write_run()
        self._write_end()

    def _begin(self) -> Function:
        f = Function(self.module, self.lanes)
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        self.block, self.count_address = (
            f.address("%memory", str(self.state)),
            f.address("%memory", str(self.filled)),
        )
        return f

    def _begin_block(self, f: Function, state: State) -> None:
        store_state(f, self.item, state, "%memory")
        f.store_vector(self.dtype, self.item.begin_block(f, state)[0], self.block)
        f.do(f"store i64 0, ptr {self.count_address}")

    def _after_block(self, f: Function) -> State:
        """Return the state after the block; its errors are zero, and products have none."""
        block = [f.load_vector(self.dtype, self.block), f.splat(0.0, self.dtype)]
        return self.item.end_block(f, load_state(f, self.item, "%memory"), block[: len(self.item.state)])

    def _write_begin(self) -> None:
        f = self._begin()
        self._begin_block(f, self.item.initial(f))
        f.do("ret void")
        self.module.helper(f"{self.name}_begin", f.text(f"internal void @{self.name}_begin(ptr %memory) #1"))

    def _write_end(self) -> None:
        f, element = self._begin(), REGISTER[self.dtype]
        f.do(f"ret {element} {self.item.collapse(f, self._after_block(f))}")
        self.module.helper(f"{self.name}_end", f.text(f"internal {element} @{self.name}_end(ptr %memory) #1"))

    def _write_run(self) -> None:
        """Write ``name(x, count, memory)``: fold a run, in pieces that end at block boundaries."""
        f, size = self._begin(), self.source.itemsize
        left = f.op(f"sub i64 {self.length}, {f.load('i64', self.count_address)}")
        head = f.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 %count)")
        f.do(f"call void @{self.name}_piece(ptr %x, i64 {head}, ptr %memory)")
        with f.loop(head, "%count", str(self.length)) as at:
            left = f.op(f"sub i64 %count, {at.index}")
            count = f.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {self.length})")
            x = f.address("%x", f.op(f"mul i64 {at.index}, {size}"))
            f.do(f"call void @{self.name}_piece(ptr {x}, i64 {count}, ptr %memory)")
        f.do("ret void")
        header = f"internal void @{self.name}(ptr %x, i64 %count, ptr %memory) #1"
        self.module.helper(self.name, f.text(header))

    def _write_piece(self) -> None:
        """Write ``name_piece(x, count, memory)``: fold at most as many elements as the block has room for."""
        f, size = self._begin(), self.source.itemsize
        filled = f.load("i64", self.count_address)
        after = f.op(f"add i64 {filled}, %count")
        lane = f.op(f"and i64 {filled}, {self.lanes - 1}")
        # The first vector begins at lane 0; elements before the run are not read.
        x = f.address("%x", f.op(f"mul i64 {lane}, {-size}"))
        stop = f.op(f"add i64 {lane}, %count")
        first = f.load_vector(self.dtype, self.block)
        before, begin, begun = f.block, f.fresh("begin"), f.fresh("begun")
        f.branch(f.op(f"icmp sgt i64 {lane}, 0"), begin, begun)
        f.label(begin)
        below = f.op(f"xor {f.vec('i1')} {lanes_below(f, lane)}, splat (i1 true)")
        second = self._masked(f, x, f.op(f"and {f.vec('i1')} {below}, {lanes_below(f, stop)}"), first)
        f.jump(begun)
        f.label(begun)
        vec = f.vec(REGISTER[self.dtype])
        value = f.op(f"phi {vec} [ {first}, %{before} ], [ {second}, %{begin} ]")
        start = f.op(f"select i1 {f.op(f'icmp sgt i64 {lane}, 0')}, i64 {self.lanes}, i64 0")
        whole = f.op(f"and i64 {stop}, {-self.lanes}")
        with f.loop(start, whole, str(self.lanes), [(vec, value)]) as at:
            x_at = f.address(x, f.op(f"mul i64 {at.index}, {size}"))
            value = self.row.load(f, x_at)
            at.next = self.item.step(f, [at.carried[0], ""], value, "")[:1]
        f.store_vector(self.dtype, at.carried[0], self.block)
        with f.when(
            f.op(f"icmp sgt i64 {stop}, {f.op(f'call i64 @llvm.smax.i64(i64 {whole}, i64 {start})')}")
        ):
            mask = lanes_below(f, f.op(f"sub i64 {stop}, {whole}"))
            value = self._masked(f, f.address(x, f.op(f"mul i64 {whole}, {size}")), mask, at.carried[0])
            f.store_vector(self.dtype, value, self.block)
        f.do(f"store i64 {after}, ptr {self.count_address}")
        with f.when(f.op(f"icmp eq i64 {after}, {self.length}")):
            self._begin_block(f, self._after_block(f))
        f.do("ret void")
        f.module.declare("llvm.smax.i64", "i64", "i64", "i64")
        header = f"internal void @{self.name}_piece(ptr %x, i64 %count, ptr %memory) #1"
        self.module.helper(f"{self.name}_piece", f.text(header))

    def _masked(self, f: Function, x: str, mask: str, state: str) -> str:
        value = self.row.load(f, x, mask)
        return self.item.step(f, [state, ""], self.item.mask(f, mask, value), "")[0]
