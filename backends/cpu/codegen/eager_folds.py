"""The eager loop of a sum or product of floats, in the order defined in :mod:`.folds`."""

from __future__ import annotations

from collections.abc import Sequence

from ....operators.scalar_ir.fold import Fold
from ....registry.dtypes import DType
from ..target import vector_target
from .adjacent_folds import write_adjacent_rows
from .elementwise import lanes_below
from .folds import BLOCK_DEPTH, SHORT_BLOCKS, RowState, block_length, block_reducer, lane_count, state_bytes
from .nested_folds import write_nested_row
from .reducers import RowFold
from .small_product import write_pack
from .text import REGISTER, Function, Module

COLUMNS = 2048  # columns whose sums are in memory at a time
TILE = 64  # rows, and columns, that are copied at a time if columns are not contiguous
COPIED_ROWS = 16  # rows that are copied together if their elements are not contiguous
ARGUMENTS = "ptr %source, ptr %out, ptr %sizes, ptr %strides"


def write_fold_loop(module: Module, name: str, fold: Fold, source: DType, out: DType) -> None:
    """Add ``void name(ptr source, ptr out, ptr sizes, ptr strides)``.

    ``sizes``: the kept count, the folded count, whether the order is that of columns, and for rows the count of a
    second folded axis outside the first. ``strides``, in bytes: of the source along the kept axis, of the result along
    it, and of the source along the folded axes.
    """
    loop = _FoldLoop(module, RowFold(fold, source, out), out)
    loop.write_rows(f"{name}_rows")
    loop.write_columns(f"{name}_columns", dense=True)
    loop.write_columns(f"{name}_apart", dense=False)
    f = Function(module, 1)
    by_columns = f.op(f"icmp ne i64 {f.load('i64', f.address('%sizes', '16'))}, 0")
    dense = f.op(f"icmp eq i64 {f.load('i64', '%strides')}, {source.itemsize}")
    f.branch(by_columns, "columns", "rows")
    f.label("columns")
    f.branch(dense, "dense", "apart")
    for label, called in (("rows", "rows"), ("dense", "columns"), ("apart", "apart")):
        f.label(label)
        f.do(f"call void @{name}_{called}({ARGUMENTS})")
        f.do("ret void")
    module.helper(name, f.text(f"void @{name}({ARGUMENTS}) #0"))


def write_complex_sum(module: Module, name: str, fold: Fold, part: DType) -> None:
    """Add the loop for sums of complex numbers: of their real parts, and of their imaginary parts."""
    write_fold_loop(module, f"{name}_of_parts", fold, part, part)
    f = Function(module, 1)
    for offset in ("0", str(part.itemsize)):
        source, out = f.address("%source", offset), f.address("%out", offset)
        f.do(f"call void @{name}_of_parts(ptr {source}, ptr {out}, ptr %sizes, ptr %strides)")
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}({ARGUMENTS}) #0"))


class _FoldLoop:
    """The functions of the eager loop of a fold."""

    def __init__(self, module: Module, row: RowFold, out: DType):
        self.module, self.row, self.source, self.dtype, self.out = module, row, row.source, row.dtype, out

    def _begin(self, lanes: int) -> Function:
        f = self.f = Function(self.module, lanes)
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        self.kept, self.folded = (f.load("i64", f.address("%sizes", str(8 * at))) for at in range(2))
        self.over, self.to, self.step = (f.load("i64", f.address("%strides", str(8 * at))) for at in range(3))
        return f

    def _minimum(self, one: str, most: int | str) -> str:
        return self.f.op(f"call i64 @llvm.smin.i64(i64 {one}, i64 {most})")

    def _store(self, value: str, index: str) -> None:
        f = self.f
        address = f.address("%out", f.op(f"mul i64 {index}, {self.to}"))
        with f.width(1):
            vector = self.row.result(f, f.broadcast(value, REGISTER[self.dtype]))
            f.store_vector(self.out, vector, address)

    def write_rows(self, name: str) -> None:
        """Write the row order: short rows in few lanes, long ones in blocks, which are copied if not contiguous."""
        f, lanes = self._begin(lane_count(self.dtype)), lane_count(self.dtype)
        dense = f.op(f"icmp eq i64 {self.step}, {self.source.itemsize}")
        nested = f.op(f"icmp sgt i64 {f.load('i64', f.address('%sizes', '24'))}, 1")
        several = f.op(f"icmp sgt i64 {self.kept}, 1")
        adjacent = f.op(f"and i1 {several}, {f.op(f'icmp eq i64 {self.over}, {self.source.itemsize}')}")
        adjacent = f.op(f"and i1 {adjacent}, {f.op(f'xor i1 {dense}, true')}")
        with f.when_returning(adjacent):
            write_adjacent_rows(self.module, f"{name}_adjacent", self.row, self.out)
            f.do(f"call void @{name}_adjacent({ARGUMENTS})")
        f.branch(nested, "nested", "single")
        f.label("nested")
        self._nested_rows(f"{name}_nested")
        f.do("ret void")
        f.label("single")
        f.branch(dense, "dense", "apart")
        f.label("dense")
        for count in (lanes // 8, lanes // 4, lanes // 2, lanes):
            with f.when_returning(f.op(f"icmp sle i64 {self.folded}, {count}")), f.width(count):
                self._short_rows()
        with f.when_returning(f.op(f"icmp sle i64 {self.folded}, {block_length(self.dtype)}")):
            self._rows_of_a_block()
        self._long_rows()
        f.do("ret void")
        f.label("apart")
        self._copied_rows()
        f.do("ret void")
        self.module.helper(name, f.text(f"internal void @{name}({ARGUMENTS}) #1"))

    def _short_rows(self) -> None:
        f, item = self.f, block_reducer(self.row.fold, self.dtype)
        mask = lanes_below(f, self.folded)
        with f.loop("0", self.kept, "1") as row:
            address = f.address("%source", f.op(f"mul i64 {row.index}, {self.over}"))
            value = self.row.operand(f, f.load_masked(self.source, address, mask))
            state = item.step(f, item.initial(f), item.mask(f, mask, value), "")
            self._store(item.collapse(f, state), row.index)

    def _rows_of_a_block(self) -> None:
        f, item, size = self.f, block_reducer(self.row.fold, self.dtype), self.source.itemsize
        whole = f.op(f"and i64 {self.folded}, {-f.lanes}")
        mask = lanes_below(f, f.op(f"sub i64 {self.folded}, {whole}"))
        with f.loop("0", self.kept, "1") as row:
            start = f.address("%source", f.op(f"mul i64 {row.index}, {self.over}"))
            with f.loop("0", whole, str(f.lanes), item.carried(f, item.initial(f))) as at:
                value = f.load_vector(self.source, f.address(start, f.op(f"mul i64 {at.index}, {size}")))
                at.next = item.step(f, at.carried, self.row.operand(f, value), "")
            value = f.load_masked(self.source, f.address(start, f.op(f"mul i64 {whole}, {size}")), mask)
            value = item.mask(f, mask, self.row.operand(f, value))
            self._store(item.collapse(f, item.step(f, at.carried, value, "")), row.index)

    def _nested_rows(self, name: str) -> None:
        """Write rows over two folded axes: each row is a sequence of lines."""
        f = self.f
        write_nested_row(self.module, name, self.row)
        outer, across = (f.load("i64", f.address(table, "24")) for table in ("%sizes", "%strides"))
        with f.loop("0", self.kept, "1") as row:
            start = f.address("%source", f.op(f"mul i64 {row.index}, {self.over}"))
            lines = f"ptr {start}, i64 {outer}, i64 {self.folded}, i64 {across}, i64 {self.step}"
            value = "%" + f.fresh()
            f.do(f"{value} = call {REGISTER[self.dtype]} @{name}({lines})")
            self._store(value, row.index)

    def _long_rows(self) -> None:
        f, length = self.f, block_length(self.dtype)
        state = RowState(f, self.row)
        with f.loop("0", self.kept, "1") as row:
            start = f.address("%source", f.op(f"mul i64 {row.index}, {self.over}"))
            state.begin()
            with f.loop("0", self.folded, str(length)) as at:
                count = self._minimum(f.op(f"sub i64 {self.folded}, {at.index}"), length)
                state.add(f.address(start, f.op(f"mul i64 {at.index}, {self.source.itemsize}")), count)
            self._store(state.end(), row.index)

    def _copied_rows(self) -> None:
        """Write several rows at a time: if the kept axis is contiguous, a cache line has elements of several rows."""
        f, length, size = self.f, block_length(self.dtype), self.source.itemsize
        scratch, bytes_ = f.allocate(COPIED_ROWS * length * size), state_bytes(self.row)
        memory = f.allocate(COPIED_ROWS * bytes_)

        def state_of(index: str) -> RowState:
            address = f.address(memory, f.op(f"mul i64 {index}, {bytes_}"))
            return RowState(f, self.row, address)

        with f.loop("0", self.kept, str(COPIED_ROWS)) as tile:
            rows = self._minimum(f.op(f"sub i64 {self.kept}, {tile.index}"), COPIED_ROWS)
            start = f.address("%source", f.op(f"mul i64 {tile.index}, {self.over}"))
            with f.loop("0", rows, "1") as row:
                state_of(row.index).begin()
            with f.loop("0", self.folded, str(length)) as at:
                count = self._minimum(f.op(f"sub i64 {self.folded}, {at.index}"), length)
                block = f.address(start, f.op(f"mul i64 {at.index}, {self.step}"))
                self._transpose(block, scratch, rows, count, (self.over, self.step), length)
                with f.loop("0", rows, "1") as row:
                    copy = f.address(scratch, f.op(f"mul i64 {row.index}, {length * size}"))
                    state_of(row.index).add(copy, count)
            with f.loop("0", rows, "1") as row:
                self._store(state_of(row.index).end(), f.op(f"add i64 {tile.index}, {row.index}"))

    def _transpose(
        self, start: str, to: str, rows: str, columns: str, steps: tuple[str, str], width: int
    ) -> None:
        """Copy ``rows`` by ``columns`` elements so that rows are contiguous, ``width`` elements apart."""
        name = f"turn_{self.source.name}_{width}"
        if name not in self.f.module.parts:
            write_pack(
                self.f.module, name, self.source, vector_target().vector_bytes // self.source.itemsize, width
            )
        sizes = f"i64 {rows}, i64 {columns}, i64 {steps[0]}, i64 {steps[1]}"
        self.f.do(f"call void @{name}(ptr {start}, ptr {to}, {sizes})")

    def write_columns(self, name: str, dense: bool) -> None:
        """Write the column order: blocks of rows, a vector of columns at a time; copied first if not contiguous."""
        f, size, most = self._begin(lane_count(self.dtype)), self.dtype.itemsize, COLUMNS if dense else TILE
        deep = str(BLOCK_DEPTH)
        for limit, some in reversed(SHORT_BLOCKS):
            few = f.op(f"icmp slt i64 {self.folded}, {limit}")
            deep = f.op(f"select i1 {few}, i64 {some}, i64 {deep}")
        sums = [f.allocate((most + f.lanes) * size) for _ in self.row.make_reducer().state]
        scratch = "" if dense else f.allocate((TILE * TILE + f.lanes) * self.source.itemsize)
        with f.loop("0", self.kept, str(most)) as tile:
            width = self._minimum(f.op(f"sub i64 {self.kept}, {tile.index}"), most)
            start = f.address("%source", f.op(f"mul i64 {tile.index}, {self.over}"))
            with f.loop("0", width, str(f.lanes)) as at:
                first = self.row.make_reducer().initial(f)
                for address, value in zip(self._state_addresses(sums, at.index), first, strict=True):
                    f.store_vector(self.dtype, value, address)
            if dense:
                self._blocks_of_rows(sums, start, self.folded, deep, width, self.step)
            else:
                with f.loop("0", self.folded, str(TILE)) as part:
                    count = self._minimum(f.op(f"sub i64 {self.folded}, {part.index}"), TILE)
                    here = f.address(start, f.op(f"mul i64 {part.index}, {self.step}"))
                    self._transpose(here, scratch, count, width, (self.step, self.over), TILE)
                    self._blocks_of_rows(sums, scratch, count, deep, width, str(TILE * self.source.itemsize))
            self._finish(sums, tile.index, width)
        f.do("ret void")
        self.module.helper(name, f.text(f"internal void @{name}({ARGUMENTS}) #1"))

    def _blocks_of_rows(
        self, sums: Sequence[str], start: str, folded: str, deep: str, width: str, step: str
    ) -> None:
        f = self.f
        with f.loop("0", folded, deep) as block:
            count = self._minimum(f.op(f"sub i64 {folded}, {block.index}"), deep)
            rows = f.address(start, f.op(f"mul i64 {block.index}, {step}"))
            self._block_of_rows(sums, rows, count, width, step)

    def _state_addresses(self, sums: Sequence[str], index: str) -> list[str]:
        f = self.f
        return [f.address(memory, f.op(f"mul i64 {index}, {self.dtype.itemsize}")) for memory in sums]

    def _block_of_rows(self, sums: Sequence[str], rows: str, count: str, width: str, step: str) -> None:
        f, item, size = self.f, self.row.make_reducer(), self.source.itemsize
        whole = f.op(f"and i64 {width}, {-f.lanes}")
        last_mask = lanes_below(f, f.op(f"sub i64 {width}, {whole}"))
        for first, last, mask in (("0", whole, ""), (whole, width, last_mask)):
            with f.loop(first, last, str(f.lanes)) as at:
                addresses = self._state_addresses(sums, at.index)
                state = [f.load_vector(self.dtype, address) for address in addresses]
                column = f.address(rows, f.op(f"mul i64 {at.index}, {size}"))
                begun = item.begin_block(f, state)
                with f.loop("0", count, "1", item.carried(f, begun)) as row:
                    address = f.address(column, f.op(f"mul i64 {row.index}, {step}"))
                    value = (
                        f.load_masked(self.source, address, mask)
                        if mask
                        else f.load_vector(self.source, address)
                    )
                    row.next = item.step(f, row.carried, self.row.operand(f, value), "")
                for value, address in zip(item.end_block(f, state, row.carried), addresses, strict=True):
                    f.store_vector(self.dtype, value, address)

    def _finish(self, sums: Sequence[str], first: str, width: str) -> None:
        f, item = self.f, self.row.make_reducer()
        with f.loop("0", width, "1") as at, f.width(1):
            state = [f.load_vector(self.dtype, address) for address in self._state_addresses(sums, at.index)]
            value = self.row.result(f, item.final(f, state))
            index = f.op(f"add i64 {first}, {at.index}")
            f.store_vector(self.out, value, f.address("%out", f.op(f"mul i64 {index}, {self.to}")))
