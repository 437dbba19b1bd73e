"""The eager loop of a fold whose bits do not depend on the order, such as a maximum, and of the index of an extremum.

Columns that are closer in memory than rows are folded a row at a time, as the columns of :mod:`.eager`. Elements
that are not contiguous are copied before they are folded. For the index of an extremum, the extremum of each block of a
row is computed first; the index is searched for in the first block that has the extremum of the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....registry.dtypes import DType
from ...target import vector_target
from ..elementwise import lanes_below, pack_helper
from ..text import REGISTER, Function, Module
from .fold_loop import ARGUMENTS, FoldLoop
from .order import STATE_BYTES, lane_count
from .reducers import IndexReducer, RowFold, State

COLUMNS = 1024  # columns whose partial results are in memory at a time
DEPTH = 16  # rows of a block of columns
BLOCK_BYTES = 8192  # of a row, which are copied at a time, and searched for an index
LINE_BYTES = 32768  # of a contiguous row, which are searched for an index
LONG_BYTES = (
    4096  # of a row from which on its vectors are aligned: loads across cache lines take twice the time
)
SHORT = 16  # elements of a short row: if they are not contiguous, rows are folded as columns
FEW = 8  # columns that are folded as such


def write_unordered_loop(module: Module, name: str, row: RowFold, out: DType) -> None:
    """Add the loop ``name``, as :func:`.eager.write_fold_loop` describes; it ignores the order of columns."""
    loop = _UnorderedLoop(module, row, out)
    loop.write_column_order(f"{name}_columns")
    loop.write_row_order(f"{name}_rows")
    loop.write(name)


class _UnorderedLoop(FoldLoop):
    """The functions of the loop."""

    def __init__(self, module: Module, row: RowFold, out: DType):
        super().__init__(module, row, out)
        self.block, self.line = BLOCK_BYTES // row.source.itemsize, LINE_BYTES // row.source.itemsize
        self.lanes = vector_target().vector_bytes // max(row.source.itemsize, row.dtype.itemsize)

    def write(self, name: str) -> None:
        """Write the choice of the order: that of columns if they are next to each other, or if rows are short."""
        f = self.begin(1)
        f.module.declare("llvm.abs.i64", "i64", "i64", "i1")
        over, step = (f.op(f"call i64 @llvm.abs.i64(i64 {x}, i1 false)") for x in (self.over, self.step))
        short = f.op(f"icmp sle i64 {f.op(f'mul i64 {self.outer}, {self.folded}')}, {SHORT}")
        short = f.op(f"and i1 {short}, {self._is_strided(self.step)}")
        closer = f.op(f"or i1 {short}, {f.op(f'icmp slt i64 {over}, {step}')}")
        several = f.op(f"icmp sge i64 {self.kept}, {FEW}")
        with f.when_returning(f.op(f"and i1 {several}, {closer}")):
            f.do(f"call void @{name}_columns({ARGUMENTS})")
        f.do(f"call void @{name}_rows({ARGUMENTS})")
        f.do("ret void")
        self.module.helper(name, f.text(f"void @{name}({ARGUMENTS}) #0"))

    def _copy(self, to: str, x: str, step: str, count: str) -> None:
        """Copy ``count`` elements that are ``step`` bytes apart."""
        helper = pack_helper(self.module, self.source.itemsize)
        self.f.do(f"call void @{helper}(ptr {to}, ptr {x}, i64 {step}, i64 {count})")

    def _is_strided(self, step: str) -> str:
        return self.f.op(f"icmp ne i64 {step}, {self.source.itemsize}")

    def write_column_order(self, name: str) -> None:
        """Write the loop over blocks of rows, each a vector of columns at a time."""
        f, pitch = self.begin(lane_count(self.dtype)), COLUMNS * self.source.itemsize
        scratch, strided = (
            f.allocate(DEPTH * pitch + f.lanes * self.source.itemsize),
            self._is_strided(self.over),
        )
        step = f.op(f"select i1 {strided}, i64 {pitch}, i64 {self.step}")

        def fold_tile(states: Sequence[str], start: str, width: str) -> None:
            with f.loop("0", self.outer, "1") as line, f.loop("0", self.folded, str(DEPTH)) as block:
                count = self.minimum(f.op(f"sub i64 {self.folded}, {block.index}"), DEPTH)
                x = f.address(start, f.op(f"mul i64 {line.index}, {self.across}"))
                x = f.address(x, f.op(f"mul i64 {block.index}, {self.step}"))
                with f.loop("0", f.op(f"select i1 {strided}, i64 {count}, i64 0"), "1") as row:
                    to = f.address(scratch, f.op(f"mul i64 {row.index}, {pitch}"))
                    self._copy(to, f.address(x, f.op(f"mul i64 {row.index}, {self.step}")), self.over, width)
                rows = f.op(f"select i1 {strided}, ptr {scratch}, ptr {x}")
                self.fold_rows(states, rows, count, width, step, block.index)

        self.write_columns(COLUMNS, fold_tile)
        self.end(name)

    def write_row_order(self, name: str) -> None:
        """Write the loop over rows: short ones in few lanes, others as contiguous lines, or copied by blocks."""
        self.part = f"{name}_part"
        self._write_part()
        f = self.begin(1)
        self.scratch, self.strided = f.allocate(BLOCK_BYTES), self._is_strided(self.step)
        short = f.op(f"icmp sle i64 {f.op(f'mul i64 {self.outer}, {self.folded}')}, {SHORT}")
        short = f.op(f"and i1 {short}, {f.op(f'icmp eq i64 {self.outer}, 1')}")
        with f.when_returning(short), f.width(SHORT):
            self.write_short_rows()
        if not isinstance(self.item, IndexReducer):
            is_long = f.op(f"icmp sge i64 {self.folded}, {LONG_BYTES // self.source.itemsize}")
            is_long = f.op(f"and i1 {is_long}, {f.op(f'icmp eq i64 {self.outer}, 1')}")
            with f.when_returning(f.op(f"and i1 {is_long}, {f.op(f'xor i1 {self.strided}, true')}")):
                self._write_rows(is_long=True)
        self._write_rows()
        self.end(name)

    def _write_rows(self, is_long: bool = False) -> None:
        """Write the loop over rows; the vectors of long ones are aligned."""
        f = self.f
        with f.loop("0", self.kept, "1") as row:
            start = f.address("%source", f.op(f"mul i64 {row.index}, {self.over}"))
            if isinstance(self.item, IndexReducer):
                value = self._find_extremum(self.item, start)
            elif is_long:
                value = self._fold_long_row(start)
            else:
                value = self._fold_row(start)
            self.store_result(value, row.index)

    def contiguous(self, x: str, count: str, when: str = "") -> str:
        """Return the address of contiguous elements: ``x``, or that of a copy, which is made if ``when`` holds."""
        f = self.f
        with f.when(when or self.strided):
            self._copy(self.scratch, x, self.step, count)
        return f.op(f"select i1 {self.strided}, ptr {self.scratch}, ptr {x}")

    def _fold_row(self, start: str) -> str:
        """Return the combined value of a row, which is one part if its lines are contiguous."""
        f, reducer = self.f, self.values
        limit = f.op(f"select i1 {self.strided}, i64 {self.block}, i64 {2**62}")
        lines = f.op(f"select i1 {self.strided}, i64 1, i64 {self.outer}")
        with f.loop("0", self.outer, lines, reducer.carried(f, reducer.initial(f))) as line:
            x = f.address(start, f.op(f"mul i64 {line.index}, {self.across}"))
            with f.loop("0", self.folded, limit, reducer.carried(f, line.carried)) as block:
                value = self._fold_part(x, block.index, limit, lines)
                block.next = reducer.step(f, block.carried, value, "")
            line.next = block.carried
        return reducer.collapse(f, line.carried)

    def _fold_long_row(self, start: str) -> str:
        """Return the combined value of a long contiguous row, whose elements up to an aligned vector are one part."""
        f, lead = self.f, self._unaligned_elements(start)
        first = self._fold_part(start, "0", lead, "1")
        rest = self._fold_part(start, lead, self.folded, "1")
        return self.values.collapse(f, self.values.step(f, self.values.first(f, first, ""), rest, ""))

    def _unaligned_elements(self, start: str) -> str:
        """Return the elements of a row before the first one at the address of an aligned vector."""
        f = self.f
        before = f.op(f"sub i64 0, {f.op(f'ptrtoint ptr {start} to i64')}")
        size = f.op(f"and i64 {before}, {vector_target().vector_bytes - 1}")
        return f.op(f"udiv i64 {size}, {self.source.itemsize}")

    def _fold_part(self, x: str, first: str, limit: str, lines: str) -> str:
        """Return the combined value of a block of a line, or of whole lines, as a vector of one lane."""
        f, count = self.f, self.minimum(self.f.op(f"sub i64 {self.folded}, {first}"), limit)
        x = self.contiguous(f.address(x, f.op(f"mul i64 {first}, {self.step}")), count)
        value, element = "%" + f.fresh(), REGISTER[self.dtype]
        f.do(f"{value} = call {element} @{self.part}(ptr {x}, i64 {count}, i64 {lines}, i64 {self.across})")
        return f.broadcast(value, element)

    def _write_part(self) -> None:
        """Write the function ``(x, count, lines, across)`` that folds lines of contiguous elements."""
        f, reducer = Function(self.module, self.lanes), self.values
        self.f = f
        most = STATE_BYTES // max(self.source.itemsize, self.dtype.itemsize)
        many, whole = (f.op(f"and i64 %count, {-lanes}") for lanes in (most, f.lanes))
        last_mask = lanes_below(f, f.op(f"sub i64 %count, {whole}"))
        with f.width(most):
            state = self._fold_lines(reducer.initial(f), [("0", many, "")])
            state = reducer.narrow(f, state, self.lanes)
        state = self._fold_lines(state, [(many, whole, ""), (whole, "%count", last_mask)])
        element = REGISTER[self.dtype]
        f.do(f"ret {element} {reducer.collapse(f, state)}")
        arguments = "ptr %x, i64 %count, i64 %lines, i64 %across"
        self.module.helper(self.part, f.text(f"internal {element} @{self.part}({arguments}) #1"))

    def _fold_lines(self, state: State, stretches: Sequence[tuple[str, str, str]]) -> State:
        """Fold stretches of each line into a state: their begin, end and mask."""
        f, reducer = self.f, self.values
        with f.loop("0", "%lines", "1", reducer.carried(f, state)) as line:
            x, line.next = f.address("%x", f.op(f"mul i64 {line.index}, %across")), line.carried
            for start, stop, mask in stretches:
                with f.loop(start, stop, str(f.lanes), reducer.carried(f, line.next)) as at:
                    address = f.address(x, f.op(f"mul i64 {at.index}, {self.source.itemsize}"))
                    value = self.row.load(f, address, mask)
                    value = reducer.mask(f, mask, value) if mask else value
                    at.next = reducer.step(f, at.carried, value, "")
                line.next = at.carried
        return line.carried

    def _find_extremum(self, item: IndexReducer, start: str) -> str:
        """Return the index of the extremum of a row: find the block with it, then its first index there.

        The first block of a long contiguous row is shorter, so that the others are aligned.
        """
        f = self.f
        f.module.declare("llvm.smax.i64", "i64", "i64", "i64")
        is_short = f.op(f"icmp slt i64 {self.folded}, {LONG_BYTES // self.source.itemsize}")
        keeps_blocks = f.op(f"or i1 {is_short}, {self.strided}")
        size = f.op(f"select i1 {self.strided}, i64 {self.block}, i64 {self.line}")
        missing = f.op(f"sub i64 {self._unaligned_elements(start)}, {size}")
        before = f.op(f"select i1 {keeps_blocks}, i64 0, i64 {missing}")
        with f.loop(before, self.folded, size, item.carried(f, item.initial(f))) as block:
            first = f.op(f"call i64 @llvm.smax.i64(i64 {block.index}, i64 0)")
            limit = f.op(f"sub i64 {f.op(f'add i64 {block.index}, {size}')}, {first}")
            extremum = self._fold_part(start, first, limit, "1")
            block.next = item.step(f, block.carried, extremum, f.broadcast(first, "i64"))
        best, first = (
            f.op(f"extractelement <1 x {REGISTER[d]}> {value}, i64 0")
            for d, value in zip(item.state, block.carried, strict=True)
        )
        return self._search(item, start, best, first)

    def _search(self, item: IndexReducer, start: str, best: str, first: str) -> str:
        """Return the index of the first ``best`` in a row from the block on that begins at ``first``."""
        f, most = self.f, self.f.op(f"select i1 {self.strided}, i64 {self.block}, i64 {self.line}")
        count = self.minimum(f.op(f"sub i64 {self.folded}, {first}"), most)
        # the copy of the only block of a row is there already
        again = f.op(f"and i1 {self.strided}, {f.op(f'icmp sgt i64 {self.folded}, {self.block}')}")
        x = self.contiguous(f.address(start, f.op(f"mul i64 {first}, {self.step}")), count, again)
        before, head, tail, end = f.block, *(f.fresh(name) for name in ("head", "tail", "end"))
        index, following = "%" + f.fresh("i"), "%" + f.fresh("next")
        more, whole = f.fresh("more"), f.op(f"sub i64 {count}, {SHORT}")
        f.jump(head)
        f.label(head)
        f.do(f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{more} ]")
        f.branch(f.op(f"icmp sle i64 {index}, {whole}"), more, tail)
        f.label(more)
        lane = self._find_lane(item, x, index, best, "")
        f.do(f"{following} = add i64 {index}, {SHORT}")
        f.branch(f.op(f"icmp eq i64 {lane}, {SHORT}"), head, end)
        f.label(tail)
        with f.width(SHORT):
            mask = lanes_below(f, f.op(f"sub i64 {count}, {index}"))
        last_lane, tail_block = self._find_lane(item, x, index, best, mask), f.block
        f.jump(end)
        f.label(end)
        lane = f.op(f"phi i64 [ {lane}, %{more} ], [ {last_lane}, %{tail_block} ]")
        return f.op(f"add i64 {first}, {f.op(f'add i64 {index}, {lane}')}")

    def _find_lane(self, item: IndexReducer, x: str, index: str, best: str, mask: str) -> str:
        """Return the lane of the first ``best`` in a vector of a row; the number of lanes if none has it."""
        f = self.f
        with f.width(SHORT):
            address = f.address(x, f.op(f"mul i64 {index}, {self.source.itemsize}"))
            values = self.row.load(f, address, mask)
            return item.find(f, f.broadcast(best, REGISTER[self.dtype]), values, mask or "splat (i1 true)")
