"""Folds, such as a float sum over the last axis, in an order that follows from the shape, eager and fused.

*Rows*, if the last axis is folded: the folded elements, in C order, are dealt to ``lane_count`` partial results. A
sum runs in blocks of ``BLOCK_DEPTH`` elements for each lane; the blocks' sums are added with compensation (rounding
errors are accumulated), which is at least as accurate as NumPy's pairwise summation. Finally the lanes are joined in
halves. *Columns*, if the last axis is kept: blocks of ``BLOCK_DEPTH`` rows (fewer if there are few rows) are added in
order, and their sums with compensation. So at most ``BLOCK_DEPTH`` plain additions follow each other, and bits depend
neither on strides nor on the vector width. Only compensated sums have blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..... import lazy
from .....operators.scalar_ir.expr import Expr
from .....operators.scalar_ir.fold import Fold
from .....registry.dtypes import DType, bool_, int32, int64
from ..elementwise import lanes_below
from ..nodes import EMIT
from ..text import MOSTLY_FIRST, REGISTER, Function, Module
from .reducers import FloatSum, IndexReducer, Reducer, RowFold, State, is_count, make_reducer

_masks = lazy.Module(".backends.cpu.codegen.folds.masks")
_EXTREMA = {"maximum": "ogt", "minimum": "olt"}  # and the comparison that holds for the better one
STATE_BYTES = 256  # of a row's partial results
MAX_LANES = 64
BLOCK_DEPTH = 16  # elements of a block per lane, and rows of a block of columns
# (maximum number of rows, rows of a block): with few blocks errors average out less, so blocks are shorter.
SHORT_BLOCKS = ((64, 4), (256, 8))
MOST_PREDICTED = 10  # floats; of more, wrong predictions cost more than right ones save
BUFFERED_BLOCKS = 3  # blocks that are buffered before they are folded


def is_ordered(fold: Fold, dtype: DType) -> bool:
    """Return whether a fold's bits depend on the order; ``dtype`` is the dtype that it computes in."""
    return fold.rounds(dtype) and dtype.kind == "f"


def lane_count(dtype: DType) -> int:
    """Return the number of partial results of a row."""
    return min(STATE_BYTES // dtype.itemsize, MAX_LANES)


def block_length(dtype: DType) -> int:
    """Return the elements of a block of a row."""
    return lane_count(dtype) * BLOCK_DEPTH


def block_rows(count: int) -> int:
    """Return the rows of a block of columns with ``count`` rows."""
    return next((rows for most, rows in SHORT_BLOCKS if count < most), BLOCK_DEPTH)


def row_lanes(dtype: DType, count: int) -> int:
    """Return the lanes that a row of ``count`` elements needs; all others would hold the identity."""
    lanes = lane_count(dtype)
    while lanes > 1 and lanes >= 2 * count:
        lanes //= 2
    return lanes


def block_reducer(fold: Fold, dtype: DType, count: int | None = None) -> Reducer:
    """Return the reducer of a single block, which needs no compensation, of ``count`` elements if that is known."""
    result = make_reducer(fold, dtype, count)
    return Reducer(fold, dtype) if isinstance(result, FloatSum) else result


def fold_row(f: Function, item: Reducer, values: Sequence[str], is_stable: bool = False) -> str:
    """Fold the elements of a row, each of which is a vector with one element of each of several rows.

    The order is that of one block of a row. Partial results are joined as soon as they are there: few are in registers.

    Args:
        f: the function.
        item: a reducer of a single block.
        values: the elements.
        is_stable: whether the element that is picked is likely to be that of the last call.
    """
    lanes, node = row_lanes(item.dtype, len(values)), item.fold.node(item.dtype)
    if isinstance(item, IndexReducer) and f.lanes == 1:
        if item.dtype is bool_ and len(values) < int64.bits:
            return _find_bit(f, values, node == "maximum")
        if item.dtype.kind == "f" and is_stable and len(values) <= MOST_PREDICTED:
            return _predict_position(f, item, values)
    if node in _EXTREMA and item.picks:
        return _find_position(f, item.dtype, values, "gt" if node == "maximum" else "lt")
    if node in _EXTREMA and item.dtype.kind == "f":
        return _find_extremum(f, item.dtype, values, _EXTREMA[node])
    is_float_sum = item.dtype.kind == "f" and node == "add"

    def fold_lanes(first: int, step: int) -> State:
        if step < lanes:
            return item.join(f, fold_lanes(first, 2 * step), fold_lanes(first + step, 2 * step))
        if first >= len(values):
            return item.initial(f)
        if is_float_sum and first:  # a single zero makes a sum of -0.0 that of 0.0
            state = [values[first]]
        else:
            state = item.first(f, values[first], "")
        for number in range(first + lanes, len(values), lanes):
            state = item.step(f, state, values[number], "")
        return state

    return item.final(f, fold_lanes(0, 1))


def _find_extremum(f: Function, dtype: DType, values: Sequence[str], compare: str) -> str:
    """Return the largest or smallest of some floats; a NaN if one is.

    A comparison finds whether one of two numbers is a NaN; then their extremum is one instruction, which ignores NaNs.
    """
    vec, mask = f.vec(REGISTER[dtype]), f.vec("i1")
    some = [
        f.op(f"fcmp uno {vec} {one}, {two}") for one, two in zip(values[::2], (*values[1::2], values[-1]))
    ]
    best, nan = list(values), some[0]
    for other in some[1:]:
        nan = f.op(f"or {mask} {nan}, {other}")
    while len(best) > 1:
        pairs = list(zip(best[::2], best[1::2]))
        rest = best[2 * len(pairs) :]
        best = [
            f.op(f"select {mask} {f.op(f'fcmp {compare} {vec} {a}, {b}')}, {vec} {a}, {vec} {b}")
            for a, b in pairs
        ]
        best += rest
    return f.op(f"select {mask} {nan}, {vec} {f.splat(math.nan, dtype)}, {vec} {best[0]}")


def _find_position(f: Function, dtype: DType, values: Sequence[str], compare: str) -> str:
    """Return the position, i64, of the first largest or smallest of some values; of the first NaN if one is.

    Positions are i32 until the end: vectors of them are as short as those of most values. Values are compared in pairs:
    the time that LLVM takes for a chain of selections grows much faster than its length.
    """
    vec, mask, positions = f.vec(REGISTER[dtype]), f.vec("i1"), f.vec("i32")

    def choose(condition: str, type_: str, one: str, two: str) -> str:
        return f.op(f"select {mask} {condition}, {type_} {one}, {type_} {two}")

    best = [(value, f.splat(number, int32)) for number, value in enumerate(values)]
    nans = [(f.op(f"fcmp uno {vec} {x}, {x}"), at) for x, at in best] if dtype.kind == "f" else []
    while len(best) > 1:
        pairs = []
        for (one, at_one), (two, at_two) in zip(best[::2], best[1::2]):
            later = EMIT[compare](f, dtype, two, one)
            pairs.append((choose(later, vec, two, one), choose(later, positions, at_two, at_one)))
        best = pairs + best[2 * len(pairs) :]
    while len(nans) > 1:
        pairs = [
            (f.op(f"or {mask} {one}, {two}"), choose(one, positions, at_one, at_two))
            for (one, at_one), (two, at_two) in zip(nans[::2], nans[1::2])
        ]
        nans = pairs + nans[2 * len(pairs) :]
    at = best[0][1]
    for is_nan, at_nan in nans:
        at = choose(is_nan, positions, at_nan, at)
    return f.op(f"sext {positions} {at} to {f.vec('i64')}")


def _find_bit(f: Function, values: Sequence[str], is_set: bool) -> str:
    """Return the position, i64, of the first true of some bools, or of the first false; 0 if there is none."""
    bits = "0"
    for number, x in enumerate(values):
        is_true = f.op(f"extractelement <1 x i1> {x}, i64 0")
        bit = f.op(
            f"select i1 {is_true}, i64 {1 << number if is_set else 0}, i64 {0 if is_set else 1 << number}"
        )
        bits = f.op(f"or i64 {bits}, {bit}")
    f.module.declare("llvm.cttz.i64", "i64", "i64", "i1")
    is_found = f.op(f"icmp ne i64 {bits}, 0")
    first = f.op(f"call i64 @llvm.cttz.i64(i64 {f.op(f'select i1 {is_found}, i64 {bits}, i64 1')}, i1 true)")
    return f.broadcast(first, "i64")


def _predict_position(f: Function, item: IndexReducer, values: Sequence[str]) -> str:
    """Return the position, i64, of the best of some floats by branches, so that what follows begins earlier."""
    vec, i1, i64 = f.vec(REGISTER[item.dtype]), f.vec("i1"), f.vec("i64")
    stays = "ole" if item.fold.node(item.dtype) == "maximum" else "oge"
    best, result = values[0], f.splat(0, int64)
    for number, x in enumerate(values[1:], 1):
        before, better, end = f.block, f.fresh("better"), f.fresh("end")
        condition = f.op(f"extractelement {i1} {f.op(f'fcmp {stays} {vec} {x}, {best}')}, i64 0")
        f.do(f"br i1 {condition}, label %{end}, label %{better}, {MOSTLY_FIRST}")
        f.label(better)
        is_better = item.is_better(f, best, x)  # unless the best one is a NaN
        value = f.op(f"select {i1} {is_better}, {vec} {x}, {vec} {best}")
        position = f.op(f"select {i1} {is_better}, {i64} {f.splat(number, int64)}, {i64} {result}")
        f.jump(end)
        f.label(end)
        best = f.op(f"phi {vec} [ {best}, %{before} ], [ {value}, %{better} ]")
        result = f.op(f"phi {i64} [ {result}, %{before} ], [ {position}, %{better} ]")
    return result


class RowState:
    """The partial results of a row, in memory of the function that folds it.

    Args:
        f: the function.
        row: the fold and its elements.
        memory: register of the partial results; by default they are allocated.
    """

    def __init__(self, f: Function, row: RowFold, memory: str = ""):
        self.f, self.dtype, self.name = f, row.dtype, row.name
        self.bytes = state_bytes(row)
        self.memory = memory or f.allocate(self.bytes)
        write_block(f.module, row)

    def begin(self) -> None:
        """Begin a row."""
        self.f.do(f"call void @{self.name}_begin(ptr {self.memory})")

    def add(self, block: str, count: str) -> None:
        """Fold a block; all but the last have ``block_length`` elements."""
        self.f.do(f"call void @{self.name}_block(ptr {block}, i64 {count}, ptr {self.memory})")

    def end(self) -> str:
        """Return the row's combined value."""
        f, value = self.f, "%" + self.f.fresh()
        f.do(f"{value} = call {REGISTER[self.dtype]} @{self.name}_end(ptr {self.memory})")
        return value


def state_bytes(row: RowFold) -> int:
    """Return the bytes of a row's partial results."""
    return lane_count(row.dtype) * row.dtype.itemsize * len(row.make_reducer().state)


def write_block(module: Module, row: RowFold) -> None:
    """Add the functions that fold a row, such as a float sum over the last axis, once.

    They are ``name_begin(state)``, ``name_block(elements, count, state)`` and ``name_end(state)``.
    """
    name, dtype, source = row.name, row.dtype, row.source
    if f"{name}_begin" in module.parts:
        return
    item, lanes = row.make_reducer(), lane_count(dtype)
    f = Function(module, lanes)
    store_state(f, item, item.initial(f))
    f.do("ret void")
    module.helper(f"{name}_begin", f.text(f"internal void @{name}_begin(ptr %state) #0"))
    f = Function(module, lanes)
    state = load_state(f, item)
    whole = f.op(f"and i64 %count, {-lanes}")
    with f.loop("0", whole, str(lanes), item.carried(f, item.begin_block(f, state))) as loop:
        value = row.load(f, f.address("%x", f.op(f"mul i64 {loop.index}, {source.itemsize}")))
        loop.next = item.step(f, loop.carried, value, "")
    left, done, tail, end = f.op(f"sub i64 %count, {whole}"), f.block, f.fresh("tail"), f.fresh("end")
    f.branch(f.op(f"icmp sgt i64 {left}, 0"), tail, end)
    f.label(tail)
    mask = lanes_below(f, left)
    value = row.load(f, f.address("%x", f.op(f"mul i64 {whole}, {source.itemsize}")), mask)
    after = item.step(f, loop.carried, item.mask(f, mask, value), "")
    f.jump(end)
    last = f.block
    f.label(end)
    block = [
        f.op(f"phi {type_} [ {one}, %{done} ], [ {two}, %{last} ]")
        for (type_, one), two in zip(item.carried(f, loop.carried), after, strict=True)
    ]
    store_state(f, item, item.end_block(f, state, block))
    f.do("ret void")
    module.helper(f"{name}_block", f.text(f"internal void @{name}_block(ptr %x, i64 %count, ptr %state) #1"))
    f = Function(module, lanes)
    element = REGISTER[dtype]
    f.do(f"ret {element} {item.collapse(f, load_state(f, item))}")
    module.helper(f"{name}_end", f.text(f"internal {element} @{name}_end(ptr %state) #1"))


def _state_addresses(f: Function, item: Reducer, memory: str) -> list[str]:
    return [f.address(memory, str(at * f.lanes * d.itemsize)) for at, d in enumerate(item.state)]


def load_state(f: Function, item: Reducer, memory: str = "%state") -> State:
    """Load the partial results of a row, which are consecutive vectors."""
    addresses = _state_addresses(f, item, memory)
    return [f.load_vector(d, address) for d, address in zip(item.state, addresses, strict=True)]


def store_state(f: Function, item: Reducer, state: State, memory: str = "%state") -> None:
    """Store the partial results of a row."""
    for d, value, address in zip(item.state, state, _state_addresses(f, item, memory), strict=True):
        f.store_vector(d, value, address)


class BufferedRow(Reducer):
    """A row whose elements are buffered in memory and folded a block at a time.

    For stages whose vectors differ from those of the fold, or with several folded dimensions.
    """

    def __init__(self, f: Function, fold: Fold, dtype: DType, most: int):
        super().__init__(fold, dtype)
        self.state: list[DType] = []  # no vectors are carried around the loop
        self.row = RowState(f, RowFold(fold, dtype))
        self.length, self.size = block_length(dtype), dtype.itemsize
        self.limit = BUFFERED_BLOCKS * self.length
        self.memory = f.allocate((self.limit + most + f.lanes) * self.size)
        self.filled = f.allocate(8)
        self.start = ""

    def initial(self, f: Function) -> State:
        self.row.begin()
        f.do(f"store i64 0, ptr {self.filled}")
        return []

    def begin_block(self, f: Function, state: State) -> State:
        self.start = f.address(self.memory, f.op(f"mul i64 {f.load('i64', self.filled)}, {self.size}"))
        return []

    def store(self, f: Function, index: str, value: str) -> None:
        """Write a vector; lanes past the last element are overwritten by the next vector."""
        f.store_vector(self.dtype, value, f.address(self.start, f.op(f"mul i64 {index}, {self.size}")))

    def advance(self, f: Function, count: str) -> None:
        """Count ``count`` new elements; if there are enough, fold all whole blocks and move the rest to the front."""
        filled = f.op(f"add i64 {f.load('i64', self.filled)}, {count}")
        f.do(f"store i64 {filled}, ptr {self.filled}")
        f.module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1")
        with f.when(f.op(f"icmp sge i64 {filled}, {self.limit}")):
            left = f.op(f"and i64 {filled}, {self.length - 1}")
            whole = f.op(f"sub i64 {filled}, {left}")
            self._fold(f, whole)
            rest = f.address(self.memory, f.op(f"mul i64 {whole}, {self.size}"))
            moved = f.op(f"mul i64 {left}, {self.size}")
            f.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {self.memory}, ptr {rest}, i64 {moved}, i1 false)")
            f.do(f"store i64 {left}, ptr {self.filled}")

    def _fold(self, f: Function, count: str) -> None:
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        with f.loop("0", count, str(self.length)) as at:
            left = f.op(f"sub i64 {count}, {at.index}")
            block = f.address(self.memory, f.op(f"mul i64 {at.index}, {self.size}"))
            self.row.add(block, f.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {self.length})"))

    def end_block(self, f: Function, state: State, block: State) -> State:
        return []

    def collapse(self, f: Function, state: State) -> str:
        self._fold(f, f.load("i64", self.filled))
        return self.row.end()


def choose_reducer(
    f: Function, fold: Fold, value: Expr, row: int, count: int, size: int, buffers: bool, counts: bool
) -> Reducer:
    """Return the reducer of a stage's values.

    Args:
        f: the function.
        fold: the fold.
        value: the value.
        row: the number of values along the last dimension.
        count: their number along all dimensions.
        size: the bytes of the widest element in memory, for bools.
        buffers: whether values whose order counts are buffered.
        counts: whether steps may take bools where the value is these as integers.
    """
    dtype = value.dtype
    if counts and is_count(fold, value):
        counter: Reducer = _masks.CountReducer(fold, dtype, size)
        return counter
    if is_ordered(fold, dtype) and buffers:
        return BufferedRow(f, fold, dtype, min(row, block_length(dtype)))
    if dtype is bool_ and not fold.returns_index:
        reducer: Reducer = _masks.make_value_reducer(fold, dtype, size)
        return reducer
    is_short = is_ordered(fold, dtype) and count <= block_length(dtype)
    return block_reducer(fold, dtype, count) if is_short else make_reducer(fold, dtype, count)
