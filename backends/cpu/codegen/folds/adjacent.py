"""The eager loop of a fold over rows that are adjacent in memory, such as those of a transposed matrix.

A vector holds one element of each of several rows, so loads are contiguous. Each row has the partial results that
:mod:`.order` describes and joins them in the same order, so its bits are those of a contiguous row.
"""

from __future__ import annotations

from .....registry.dtypes import DType
from ...target import vector_target
from ..elementwise import lanes_below
from ..text import REGISTER, Function, Module
from .order import block_length, lane_count
from .reducers import FloatSum, RowFold

PANEL = 2  # vectors of rows whose partial results stay in registers
STATE_BYTES = 1 << 17  # bytes of partial results: enough for many rows, so that reads are long runs
MAX_ROWS = 1024  # maximum number of rows at a time


def write_adjacent_rows(module: Module, name: str, row: RowFold, out: DType) -> None:
    """Add ``name(source, out, sizes, strides)``: a fold loop for rows one element apart."""
    loop = _AdjacentRows(module, name, row, out)
    loop.write_add()
    loop.write_line()
    if loop.blocks:
        loop.write_end_block()
    loop.write_result()
    loop.write()


class _AdjacentRows:
    """The functions of the loop.

    They share ``memory``: the number of folded elements of a row, the pitch (elements between lanes), the lanes of the
    current block, the sums of blocks, and the errors of these sums.
    """

    def __init__(self, module: Module, name: str, row: RowFold, out: DType):
        self.module, self.name, self.row, self.out = module, name, row, out
        self.source, self.dtype = row.source, row.dtype
        self.item, self.lanes, self.size = row.make_reducer(), lane_count(row.dtype), row.dtype.itemsize
        self.blocks = isinstance(self.item, FloatSum)
        self.width = vector_target().vector_bytes // self.size

    def _begin(self) -> Function:
        f = self.f = Function(self.module, self.width)
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        self.count, self.pitch = f.load("i64", "%memory"), f.load("i64", f.address("%memory", "8"))
        return f

    def _address(self, part: int, index: str) -> str:
        """Return the address of an element: part 0 is the block, part 1 the sums of blocks, part 2 their errors."""
        start = 64 + part * (STATE_BYTES // 192 * 64)
        return self.f.address(
            "%memory", self.f.op(f"add i64 {self.f.op(f'mul i64 {index}, {self.size}')}, {start}")
        )

    def _load(self, part: int, index: str) -> str:
        return self.f.load_vector(self.dtype, self._address(part, index))

    def _store(self, part: int, index: str, value: str) -> None:
        self.f.store_vector(self.dtype, value, self._address(part, index))

    def _fold_lane(self, first: str, columns: list[str], mask: str = "") -> None:
        """Fold every ``lanes``-th element, starting at ``first``, into vectors of some columns."""
        f, size = self.f, self.source.itemsize
        lane = f.op(f"mul i64 {f.op(f'add i64 {self.lane}, {first}')}, {self.pitch}")
        indices = [f.op(f"add i64 {lane}, {column}") for column in columns]
        carried = [(f.vec(REGISTER[self.dtype]), self._load(0, index)) for index in indices]
        with f.loop(first, "%count", str(self.lanes), carried) as element:
            x = f.address("%x", f.op(f"mul i64 {element.index}, %step"))
            for k, column in enumerate(columns):
                address = f.address(x, f.op(f"mul i64 {column}, {size}"))
                value = self.row.load(f, address, mask)
                element.next[k] = self.item.step(f, [element.carried[k], ""], value, "")[0]
        for index, value in zip(indices, element.carried, strict=True):
            self._store(0, index, value)

    def write_add(self) -> None:
        """Write ``name_add``: fold ``count`` elements of each row that are ``step`` bytes apart.

        They begin at lane 0 and end at the end of the block, or end at the last lane.
        """
        f = self._begin()
        self.lane = f.op(f"and i64 {self.count}, {self.lanes - 1}")
        used = self._minimum("%count", str(self.lanes))
        panel = PANEL * f.lanes
        panels, whole = (f.op(f"and i64 %width, {-n}") for n in (panel, f.lanes))
        mask = lanes_below(f, f.op(f"sub i64 %width, {whole}"))
        parts = (("0", panels, PANEL, ""), (panels, whole, 1, ""), (whole, "%width", 1, mask))
        for start, stop, vectors, some in parts:
            with f.loop("0", used, "1") as first, f.loop(start, stop, str(vectors * f.lanes)) as at:
                columns = [f.op(f"add i64 {at.index}, {k * f.lanes}") for k in range(vectors)]
                self._fold_lane(first.index, columns, some)
        after = f.op(f"add i64 {self.count}, %count")
        f.do(f"store i64 {after}, ptr %memory")
        if self.blocks:
            ended = f.op(f"icmp eq i64 {f.op(f'and i64 {after}, {block_length(self.dtype) - 1}')}, 0")
            with f.when(ended):
                f.do(f"call void @{self.name}_end(ptr %memory)")
        f.do("ret void")
        arguments = "ptr %x, i64 %count, i64 %step, i64 %width, ptr %memory"
        self.module.helper(f"{self.name}_add", f.text(f"internal void @{self.name}_add({arguments}) #1"))

    def write_end_block(self) -> None:
        """Write ``name_end``: add the sums of a block to those before it, and begin the next block."""
        f, item = self._begin(), self.item
        with f.loop("0", f.op(f"mul i64 {self.pitch}, {self.lanes}"), str(f.lanes)) as at:
            zero = f.splat(0.0, self.dtype)
            after = item.end_block(
                f, [self._load(1, at.index), self._load(2, at.index)], [self._load(0, at.index), zero]
            )
            for part, value in enumerate([zero, *after]):
                self._store(part, at.index, value)
        f.do("ret void")
        self.module.helper(f"{self.name}_end", f.text(f"internal void @{self.name}_end(ptr %memory) #1"))

    def write_result(self) -> None:
        """Write ``name_result``: join the first ``lanes`` lanes in halves, and write the results ``to`` bytes apart."""
        f = self._begin()
        if self.blocks:
            with f.when(f.op(f"icmp sge i64 {self.count}, {block_length(self.dtype)}")):
                f.do(f"call void @{self.name}_end(ptr %memory)")
                with f.loop("0", f.op(f"mul i64 {self.pitch}, {self.lanes}"), str(f.lanes)) as at:
                    self._store(
                        0, at.index, self.item.final(f, [self._load(1, at.index), self._load(2, at.index)])
                    )
        half = self.lanes // 2
        while half:
            with f.when(f.op(f"icmp sgt i64 %lanes, {half}")):
                distance = f.op(f"mul i64 {self.pitch}, {half}")
                with f.loop("0", distance, str(f.lanes)) as at:
                    other = self._load(0, f.op(f"add i64 {at.index}, {distance}"))
                    self._store(0, at.index, self.item.combine(f, self._load(0, at.index), other))
            half //= 2
        dense = f.op(f"icmp eq i64 %to, {self.out.itemsize}")
        vectors = f.op(f"select i1 {dense}, i64 {f.op(f'and i64 %width, {-f.lanes}')}, i64 0")
        for start, stop, lanes in (("0", vectors, f.lanes), (vectors, "%width", 1)):
            with f.width(lanes), f.loop(start, stop, str(lanes)) as at:
                address = f.address("%out", f.op(f"mul i64 {at.index}, %to"))
                f.store_vector(self.out, self.row.result(f, self._load(0, at.index)), address)
        f.do("ret void")
        name = f"{self.name}_result"
        self.module.helper(
            name, f.text(f"internal void @{name}(ptr %out, i64 %to, i64 %width, i64 %lanes, ptr %memory) #1")
        )

    def _used_lanes(self, count: str) -> str:
        """Return the number of lanes, a power of two, that a row of ``count`` elements needs."""
        f = self.f
        f.module.declare("llvm.ctlz.i64", "i64", "i64", "i1")
        zeros = f.op(f"call i64 @llvm.ctlz.i64(i64 {f.op(f'sub i64 {count}, 1')}, i1 false)")
        needed = f.op(f"shl i64 1, {f.op(f'sub i64 64, {zeros}')}")
        many = f.op(f"icmp sge i64 {count}, {self.lanes}")
        needed = f.op(f"select i1 {many}, i64 {self.lanes}, i64 {needed}")
        return f.op(f"select i1 {f.op(f'icmp sle i64 {count}, 1')}, i64 1, i64 {needed}")

    def write(self) -> None:
        f = self.f = Function(self.module, self.width)
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        kept, folded, outer = (f.load("i64", f.address("%sizes", str(at))) for at in (0, 8, 24))
        to, step, across = (f.load("i64", f.address("%strides", str(at))) for at in (8, 16, 24))
        memory = f.allocate(64 + STATE_BYTES)
        f.do(f"%memory = getelementptr i8, ptr {memory}, i64 0")
        total = f.op(f"mul i64 {outer}, {folded}")
        lanes = self._used_lanes(total)
        rows = self._rows_at_a_time(total, lanes)
        with f.loop("0", kept, rows) as tile:
            width = self._minimum(f.op(f"sub i64 {kept}, {tile.index}"), rows)
            self._begin_rows(width, total, lanes)
            start = f.address("%source", f.op(f"mul i64 {tile.index}, {self.source.itemsize}"))
            with f.loop("0", outer, "1") as line:
                x = f.address(start, f.op(f"mul i64 {line.index}, {across}"))
                given = f"ptr {x}, i64 {folded}, i64 {step}, i64 {width}, ptr {memory}"
                f.do(f"call void @{self.name}_line({given})")
            address = f.address("%out", f.op(f"mul i64 {tile.index}, {to}"))
            given = f"ptr {address}, i64 {to}, i64 {width}, i64 {lanes}, ptr {memory}"
            f.do(f"call void @{self.name}_result({given})")
        f.do("ret void")
        header = f"internal void @{self.name}(ptr %source, ptr %out, ptr %sizes, ptr %strides) #1"
        self.module.helper(self.name, f.text(header))

    def _rows_at_a_time(self, total: str, lanes: str) -> str:
        """Return the number of rows whose state fits: a row of several blocks also has sums and their errors."""
        f, items = self.f, STATE_BYTES // self.size
        if self.blocks:
            several = f.op(f"icmp sge i64 {total}, {block_length(self.dtype)}")
            room = f.op(f"select i1 {several}, i64 {STATE_BYTES // 192 * 64 // self.size}, i64 {items}")
        else:
            room = str(items)
        fit = f.op(f"udiv i64 {room}, {lanes}")
        return self._minimum(f.op(f"and i64 {fit}, {-f.lanes * PANEL}"), str(MAX_ROWS))

    def _minimum(self, one: str, two: str) -> str:
        return self.f.op(f"call i64 @llvm.smin.i64(i64 {one}, i64 {two})")

    def _begin_rows(self, width: str, total: str, lanes: str) -> None:
        f = self.f
        pitch = f.op(f"and i64 {f.op(f'add i64 {width}, {f.lanes - 1}')}, {-f.lanes}")
        f.do("store i64 0, ptr %memory")
        f.do(f"store i64 {pitch}, ptr {f.address('%memory', '8')}")
        with f.loop("0", f.op(f"mul i64 {pitch}, {lanes}"), str(f.lanes)) as at:
            self._store(0, at.index, f.splat(self.item.identity, self.dtype))
        if self.blocks:
            several = f.op(f"icmp sge i64 {total}, {block_length(self.dtype)}")
            with f.when(several), f.loop("0", f.op(f"mul i64 {pitch}, {lanes}"), str(f.lanes)) as at:
                for part in (1, 2):
                    self._store(part, at.index, f.splat(0.0, self.dtype))

    def write_line(self) -> None:
        """Write ``name_line``: fold a line: fill the lanes, then the block, then go block by block."""
        f, length = self._begin(), block_length(self.dtype)
        done = "0"
        for most in (self.lanes, length):
            filled = f.op(f"and i64 {f.load('i64', '%memory')}, {most - 1}")
            left = f.op(f"and i64 {f.op(f'sub i64 {most}, {filled}')}, {most - 1}")
            count = self._minimum(left, f.op(f"sub i64 %count, {done}"))
            with f.when(f.op(f"icmp sgt i64 {count}, 0")):
                self._add(done, count)
            done = f.op(f"add i64 {done}, {count}")
        with f.loop(done, "%count", str(length)) as at:
            self._add(at.index, self._minimum(f.op(f"sub i64 %count, {at.index}"), str(length)))
        f.do("ret void")
        arguments = "ptr %x, i64 %count, i64 %step, i64 %width, ptr %memory"
        self.module.helper(f"{self.name}_line", f.text(f"internal void @{self.name}_line({arguments}) #1"))

    def _add(self, first: str, count: str) -> None:
        f = self.f
        x = f.address("%x", f.op(f"mul i64 {first}, %step"))
        f.do(f"call void @{self.name}_add(ptr {x}, i64 {count}, i64 %step, i64 %width, ptr %memory)")
