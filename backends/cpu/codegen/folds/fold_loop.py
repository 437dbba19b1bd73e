"""Shared code of the eager loops of folds: short rows, and columns, a vector of which is folded row after row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....registry.dtypes import DType
from ..elementwise import lanes_below
from ..text import REGISTER, Function, Module, part_size
from .masks import MaskReducer, make_value_reducer
from .reducers import IndexReducer, RowFold

ARGUMENTS = "ptr %source, ptr %out, ptr %sizes, ptr %strides"


class FoldLoop:
    """The functions of the eager loop of a fold.

    Each takes the arguments of the whole loop (:func:`.eager.write_fold_loop`).
    """

    def __init__(self, module: Module, row: RowFold, out: DType):
        self.module, self.row, self.source, self.dtype, self.out = module, row, row.source, row.dtype, out
        # of a single block, and of the values for that of an index
        self.values = make_value_reducer(row.fold, row.dtype, part_size(row.source))
        is_mask = isinstance(self.values, MaskReducer) and not row.fold.returns_index
        self.item = self.values if is_mask else row.make_reducer()

    def begin(self, lanes: int) -> Function:
        """Begin a function, by loading the sizes and strides."""
        f = self.f = Function(self.module, lanes)
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        self.kept, self.folded, self.outer = (
            f.load("i64", f.address("%sizes", str(at))) for at in (0, 8, 24)
        )
        self.over, self.to, self.step, self.across = (
            f.load("i64", f.address("%strides", str(8 * at))) for at in range(4)
        )
        return f

    def end(self, name: str) -> None:
        """End the function, and add it to the module."""
        self.f.do("ret void")
        self.module.helper(name, self.f.text(f"internal void @{name}({ARGUMENTS}) #1"))

    def minimum(self, one: str, most: int | str) -> str:
        """Return the smaller of two i64."""
        return self.f.op(f"call i64 @llvm.smin.i64(i64 {one}, i64 {most})")

    def store_result(self, value: str, index: str) -> None:
        """Store the result for a row's combined value, or its index, in a scalar register."""
        f, dtype = self.f, self.item.collapsed
        address = f.address("%out", f.op(f"mul i64 {index}, {self.to}"))
        with f.width(1):
            vector = self.row.result(f, f.broadcast(value, REGISTER[dtype]))
            f.store_vector(self.out, vector, address)

    def write_short_rows(self) -> None:
        """Write the loop over contiguous rows of no more elements than a vector has lanes."""
        f, values = self.f, self.values
        mask = lanes_below(f, self.folded)
        with f.loop("0", self.kept, "1") as row:
            address = f.address("%source", f.op(f"mul i64 {row.index}, {self.over}"))
            x = self.row.load(f, self.contiguous(address, self.folded), mask)
            value = values.collapse(f, values.step(f, values.initial(f), values.mask(f, mask, x), ""))
            if isinstance(self.item, IndexReducer):
                value = self.item.find(f, f.broadcast(value, REGISTER[self.dtype]), x, mask)
            self.store_result(value, row.index)

    def contiguous(self, x: str, count: str) -> str:
        """Return the address of ``count`` contiguous elements with the values of a row's at ``x``."""
        return x

    def write_columns(self, most: int, fold_tile: Callable[[Sequence[str], str, str], None]) -> None:
        """Write a loop over tiles of columns: ``fold_tile(states, start, width)`` folds one of at most ``most``."""
        f, item = self.f, self.item
        states = [f.allocate((most + f.lanes) * d.itemsize) for d in item.state]
        with f.loop("0", self.kept, str(most)) as tile:
            width = self.minimum(f.op(f"sub i64 {self.kept}, {tile.index}"), most)
            start = f.address("%source", f.op(f"mul i64 {tile.index}, {self.over}"))
            with f.loop("0", width, str(f.lanes)) as at:
                first = item.initial(f)
                if item.picks:
                    first[item.picks] = "zeroinitializer"
                self._store_state(states, at.index, first)
            fold_tile(states, start, width)
            with f.loop("0", width, "1") as at, f.width(1):
                value = self.row.result(f, item.final(f, self._load_state(states, at.index)))
                index = f.op(f"add i64 {tile.index}, {at.index}")
                f.store_vector(self.out, value, f.address("%out", f.op(f"mul i64 {index}, {self.to}")))

    def fold_rows(
        self, states: Sequence[str], rows: str, count: str, width: str, step: str, first: str = "0"
    ) -> None:
        """Fold a block of ``count`` rows, ``step`` bytes apart, into the columns' states; the first has a number."""
        f, item = self.f, self.item
        whole = f.op(f"and i64 {width}, {-f.lanes}")
        last_mask = lanes_below(f, f.op(f"sub i64 {width}, {whole}"))
        for start, stop, mask in (("0", whole, ""), (whole, width, last_mask)):
            with f.loop(start, stop, str(f.lanes)) as at:
                state = self._load_state(states, at.index)
                column = f.address(rows, f.op(f"mul i64 {at.index}, {self.source.itemsize}"))
                begun = item.begin_block(f, state)
                with f.loop("0", count, "1", item.carried(f, begun)) as row:
                    address = f.address(column, f.op(f"mul i64 {row.index}, {step}"))
                    number = f.broadcast(f.op(f"add i64 {first}, {row.index}"), "i64") if item.picks else ""
                    row.next = item.step(f, row.carried, self.row.load(f, address, mask), number)
                self._store_state(states, at.index, item.end_block(f, state, row.carried))

    def _state_addresses(self, states: Sequence[str], index: str) -> list[tuple[DType, str]]:
        f, pairs = self.f, zip(self.item.state, states, strict=True)
        return [(d, f.address(memory, f.op(f"mul i64 {index}, {d.itemsize}"))) for d, memory in pairs]

    def _load_state(self, states: Sequence[str], index: str) -> list[str]:
        return [self.f.load_vector(d, address) for d, address in self._state_addresses(states, index)]

    def _store_state(self, states: Sequence[str], index: str, values: Sequence[str]) -> None:
        for (d, address), value in zip(self._state_addresses(states, index), values, strict=True):
            self.f.store_vector(d, value, address)
