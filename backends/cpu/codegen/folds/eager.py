"""The eager loop of a fold; for a sum or product of floats, in the order defined in :mod:`.order`."""

from __future__ import annotations

from collections.abc import Sequence

from .....operators.scalar_ir.fold import Fold
from .....registry.dtypes import DType
from ...target import vector_target
from ..elementwise import lanes_below
from ..small_product import write_pack
from ..text import PARTS, REGISTER, Function, Module
from .adjacent import write_adjacent_rows
from .complex_sums import write_complex_sum
from .fold_loop import ARGUMENTS, FoldLoop
from .nested import write_nested_row
from .order import (
    BLOCK_DEPTH,
    SHORT_BLOCKS,
    RowState,
    block_length,
    is_ordered,
    lane_count,
    state_bytes,
)
from .reducers import RowFold
from .unordered import write_unordered_loop

COLUMNS = 2048  # columns whose sums are in memory at a time
TILE = 64  # rows, and columns, that are copied at a time if columns are not contiguous
COPIED_ROWS = 16  # rows that are copied together if their elements are not contiguous


def write_fold_loop(module: Module, name: str, fold: Fold, source: DType, out: DType) -> None:
    """Add ``void name(ptr source, ptr out, ptr sizes, ptr strides)``.

    ``sizes``: the kept count, the folded count, whether the order is that of columns, and for rows the count of a
    second folded axis outside the first. ``strides``, in bytes: of the source along the kept axis, of the result along
    it, and of the source along the folded axes.
    """
    row = RowFold(fold, source, out)
    if row.dtype in PARTS:
        if fold.node(out) == "add":
            part = PARTS[out]
            write_fold_loop(module, f"{name}_of_parts", fold, part, part)
            write_complex_sum(module, name, RowFold(fold, part, part), f"{name}_of_parts")
        else:
            _write_sequential_loop(module, name, row, out)
        return
    if not is_ordered(fold, row.dtype):
        write_unordered_loop(module, name, row, out)
        return
    loop = _OrderedLoop(module, row, out)
    loop.write_rows(f"{name}_rows")
    loop.write_column_order(f"{name}_columns", dense=True)
    loop.write_column_order(f"{name}_apart", dense=False)
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


def _write_sequential_loop(module: Module, name: str, row: RowFold, out: DType) -> None:
    """Add the loop for other folds of complex numbers, element by element, as NumPy computes them."""
    loop = FoldLoop(module, row, out)
    f, item = loop.begin(1), loop.item
    with f.loop("0", loop.kept, "1") as kept:
        start = f.address("%source", f.op(f"mul i64 {kept.index}, {loop.over}"))
        with f.loop("0", loop.outer, "1", item.carried(f, item.initial(f))) as line:
            x = f.address(start, f.op(f"mul i64 {line.index}, {loop.across}"))
            with f.loop("0", loop.folded, "1", item.carried(f, line.carried)) as at:
                value = row.load(f, f.address(x, f.op(f"mul i64 {at.index}, {loop.step}")))
                at.next = item.step(f, at.carried, value, "")
            line.next = at.carried
        f.store_vector(
            out, item.final(f, line.carried), f.address("%out", f.op(f"mul i64 {kept.index}, {loop.to}"))
        )
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}({ARGUMENTS}) #0"))


class _OrderedLoop(FoldLoop):
    """The functions of the loop of a fold in the order of :mod:`.order`."""

    def write_rows(self, name: str) -> None:
        """Write the row order: short rows in few lanes, long ones in blocks, which are copied if not contiguous."""
        f, lanes = self.begin(lane_count(self.dtype)), lane_count(self.dtype)
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
                self.write_short_rows()
        with f.when_returning(f.op(f"icmp sle i64 {self.folded}, {block_length(self.dtype)}")):
            self._rows_of_a_block()
        self._long_rows()
        f.do("ret void")
        f.label("apart")
        self._copied_rows()
        f.do("ret void")
        self.module.helper(name, f.text(f"internal void @{name}({ARGUMENTS}) #1"))

    def _rows_of_a_block(self) -> None:
        f, item, size = self.f, self.values, self.source.itemsize
        whole = f.op(f"and i64 {self.folded}, {-f.lanes}")
        mask = lanes_below(f, f.op(f"sub i64 {self.folded}, {whole}"))
        with f.loop("0", self.kept, "1") as row:
            start = f.address("%source", f.op(f"mul i64 {row.index}, {self.over}"))
            with f.loop("0", whole, str(f.lanes), item.carried(f, item.initial(f))) as at:
                value = self.row.load(f, f.address(start, f.op(f"mul i64 {at.index}, {size}")))
                at.next = item.step(f, at.carried, value, "")
            value = self.row.load(f, f.address(start, f.op(f"mul i64 {whole}, {size}")), mask)
            value = item.mask(f, mask, value)
            self.store_result(item.collapse(f, item.step(f, at.carried, value, "")), row.index)

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
            self.store_result(value, row.index)

    def _long_rows(self) -> None:
        f, length = self.f, block_length(self.dtype)
        state = RowState(f, self.row)
        with f.loop("0", self.kept, "1") as row:
            start = f.address("%source", f.op(f"mul i64 {row.index}, {self.over}"))
            state.begin()
            with f.loop("0", self.folded, str(length)) as at:
                count = self.minimum(f.op(f"sub i64 {self.folded}, {at.index}"), length)
                state.add(f.address(start, f.op(f"mul i64 {at.index}, {self.source.itemsize}")), count)
            self.store_result(state.end(), row.index)

    def _copied_rows(self) -> None:
        """Write several rows at a time: if the kept axis is contiguous, a cache line has elements of several rows."""
        f, length, size = self.f, block_length(self.dtype), self.source.itemsize
        scratch, bytes_ = f.allocate(COPIED_ROWS * length * size), state_bytes(self.row)
        memory = f.allocate(COPIED_ROWS * bytes_)

        def state_of(index: str) -> RowState:
            address = f.address(memory, f.op(f"mul i64 {index}, {bytes_}"))
            return RowState(f, self.row, address)

        with f.loop("0", self.kept, str(COPIED_ROWS)) as tile:
            rows = self.minimum(f.op(f"sub i64 {self.kept}, {tile.index}"), COPIED_ROWS)
            start = f.address("%source", f.op(f"mul i64 {tile.index}, {self.over}"))
            with f.loop("0", rows, "1") as row:
                state_of(row.index).begin()
            with f.loop("0", self.folded, str(length)) as at:
                count = self.minimum(f.op(f"sub i64 {self.folded}, {at.index}"), length)
                block = f.address(start, f.op(f"mul i64 {at.index}, {self.step}"))
                self._transpose(block, scratch, rows, count, (self.over, self.step), length)
                with f.loop("0", rows, "1") as row:
                    copy = f.address(scratch, f.op(f"mul i64 {row.index}, {length * size}"))
                    state_of(row.index).add(copy, count)
            with f.loop("0", rows, "1") as row:
                self.store_result(state_of(row.index).end(), f.op(f"add i64 {tile.index}, {row.index}"))

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

    def write_column_order(self, name: str, dense: bool) -> None:
        """Write the column order: blocks of rows, a vector of columns at a time; copied first if not contiguous."""
        f, size = self.begin(lane_count(self.dtype)), self.source.itemsize
        deep = str(BLOCK_DEPTH)
        for limit, some in reversed(SHORT_BLOCKS):
            few = f.op(f"icmp slt i64 {self.folded}, {limit}")
            deep = f.op(f"select i1 {few}, i64 {some}, i64 {deep}")
        scratch = "" if dense else f.allocate((TILE * TILE + f.lanes) * size)

        def fold_blocks(states: Sequence[str], start: str, folded: str, width: str, step: str) -> None:
            with f.loop("0", folded, deep) as block:
                count = self.minimum(f.op(f"sub i64 {folded}, {block.index}"), deep)
                rows = f.address(start, f.op(f"mul i64 {block.index}, {step}"))
                self.fold_rows(states, rows, count, width, step)

        def fold_tile(states: Sequence[str], start: str, width: str) -> None:
            if dense:
                fold_blocks(states, start, self.folded, width, self.step)
                return
            with f.loop("0", self.folded, str(TILE)) as part:
                count = self.minimum(f.op(f"sub i64 {self.folded}, {part.index}"), TILE)
                here = f.address(start, f.op(f"mul i64 {part.index}, {self.step}"))
                self._transpose(here, scratch, count, width, (self.step, self.over), TILE)
                fold_blocks(states, scratch, count, width, str(TILE * size))

        self.write_columns(COLUMNS if dense else TILE, fold_tile)
        self.end(name)
