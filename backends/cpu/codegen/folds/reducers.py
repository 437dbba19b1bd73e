"""Reductions as vectors of partial results: initial state, step, and join of lanes.

Sums of floats run in blocks: a block is summed plainly in each lane, and the blocks' sums are added with Neumaier's
compensation, so the error stays near that of one block, as with pairwise summation.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....named_tuple import NamedTuple
from .....operators.scalar_ir.expr import Expr, arg, cast
from .....operators.scalar_ir.fold import Fold
from .....registry import dtypes as dt
from .....registry.dtypes import DType
from ..nodes import EMIT, emit_expr
from ..text import REGISTER, Function

State = list[str]
_KEEP_FIRST = frozenset(("maximum", "minimum", "mul", "or", "and"))
"""The nodes that return the other operand of their identity, with all of its bits."""
ON_MASKS = {"or": "or", "maximum": "or", "and": "and", "minimum": "and"}
"""The nodes for which processors join the lanes of bools by an instruction."""


class Reducer:
    """A fold whose state is one vector.

    Attributes:
        fold: the fold.
        dtype: the dtype that it computes in.
        result: the dtype of its result.
        state: the dtypes of its state's vectors.
    """

    picks = 0  # the part of the state that is the result
    steps_per_block = 0  # the most steps between the beginning and the end of a block; 0: any number

    def __init__(self, fold: Fold, dtype: DType):
        self.fold, self.dtype = fold, dtype
        self.identity = fold.identity(dtype)
        self.result = fold.result_dtype(dtype)
        self.state = [dtype]

    def combine(self, f: Function, one: str, two: str) -> str:
        """Return two values combined."""
        return emit_expr(f, self.fold.combined(self.dtype), one, two)

    def operand(self, value: Expr) -> Expr:
        """Return what each step takes of the value to reduce."""
        return value

    def initial(self, f: Function) -> State:
        """Return the state before the first element."""
        return [f.splat(self.identity, self.dtype)]

    def first(self, f: Function, x: str, index: str) -> State:
        """Return the state after the first element of each lane."""
        if self.fold.node(self.dtype) in _KEEP_FIRST:
            return [x]
        return self.step(f, self.initial(f), x, index)

    def step(self, f: Function, state: State, x: str, index: str) -> State:
        """Return the state after one more element per lane; ``index`` is its position in the lanes, i64."""
        return [self.combine(f, state[0], x)]

    def join(self, f: Function, one: State, two: State) -> State:
        """Return the state of two consecutive runs."""
        return self.step(f, one, two[0], "")

    def mask(self, f: Function, mask: str, x: str) -> str:
        """Return ``x`` with the identity in the lanes outside ``mask``."""
        vec = f.vec(REGISTER[self.dtype])
        return f.op(f"select {f.vec('i1')} {mask}, {vec} {x}, {vec} {f.splat(self.identity, self.dtype)}")

    def begin_block(self, f: Function, state: State) -> State:
        """Return the state at the start of a block."""
        return state

    def end_block(self, f: Function, state: State, block: State) -> State:
        """Return the state after a block that began in ``state`` and ended in ``block``."""
        return block

    def carried(self, f: Function, state: State) -> list[tuple[str, str]]:
        """Return ``state`` as a loop carries it: (type, value) pairs."""
        return [(f.register_type(d), v) for d, v in zip(self.state, state, strict=True)]

    def final(self, f: Function, state: State) -> str:
        """Return the combined value, or the index, per lane."""
        return state[self.picks]

    def finish(self, f: Function, value: str) -> str:
        """Return the result for a combined value per lane."""
        return emit_expr(f, self.fold.finished(arg(0, self.dtype)), value)

    def collapse(self, f: Function, state: State) -> str:
        """Join all lanes: return the combined value or the index as a scalar register."""
        on_masks = ON_MASKS.get(self.fold.node(self.dtype)) if self.state == [dt.bool_] else None
        if on_masks:
            return join_mask(f, on_masks, state[0])
        state = self.narrow(f, state, 1)
        with f.width(1):
            value = self.final(f, state)
        return f.op(f"extractelement <1 x {REGISTER[self.collapsed]}> {value}, i64 0")

    @property
    def collapsed(self) -> DType:
        """The dtype of what :meth:`collapse` returns."""
        return self.dtype

    def narrow(self, f: Function, state: State, lanes: int) -> State:
        """Join the halves of the lanes until ``lanes`` are left."""
        if f.lanes == lanes:
            return state
        half = f.lanes // 2
        parts = [
            [f.extract_lanes(v, REGISTER[d], at, half) for v, d in zip(state, self.state, strict=True)]
            for at in (0, half)
        ]
        with f.width(half):
            return self.narrow(f, self.join(f, parts[0], parts[1]), lanes)


class FloatSum(Reducer):
    """A sum of floats: (sum, error of the sums of blocks); within a block only a plain sum."""

    def __init__(self, fold: Fold, dtype: DType):
        super().__init__(fold, dtype)
        self.state = [dtype, dtype]

    def initial(self, f: Function) -> State:
        return [f.splat(0.0, self.dtype)] * 2

    def begin_block(self, f: Function, state: State) -> State:
        return [f.splat(0.0, self.dtype)] * 2

    def step(self, f: Function, state: State, x: str, index: str) -> State:
        return [EMIT["add"](f, self.dtype, state[0], x), state[1]]

    def end_block(self, f: Function, state: State, block: State) -> State:
        return self.join(f, state, block)

    def join(self, f: Function, one: State, two: State) -> State:
        """Two-sum: the rounding error of adding the sums goes to the errors."""
        a, b, add, sub = one[0], two[0], EMIT["add"], EMIT["sub"]
        total = add(f, self.dtype, a, b)
        shadow = sub(f, self.dtype, total, a)
        lost = sub(f, self.dtype, a, sub(f, self.dtype, total, shadow))
        lost = add(f, self.dtype, lost, sub(f, self.dtype, b, shadow))
        return [total, add(f, self.dtype, add(f, self.dtype, one[1], two[1]), lost)]

    def final(self, f: Function, state: State) -> str:
        """Return the sum with its error added; the error of an infinite sum is NaN and is not added."""
        vec = f.vec(REGISTER[self.dtype])
        whole = EMIT["add"](f, self.dtype, state[0], state[1])
        nan = f.op(f"fcmp uno {vec} {state[1]}, {state[1]}")
        return f.op(f"select {f.vec('i1')} {nan}, {vec} {state[0]}, {vec} {whole}")

    def collapse(self, f: Function, state: State) -> str:
        """Add the lanes, each with its error, in pairs."""
        return Reducer(self.fold, self.dtype).collapse(f, [self.final(f, state)])


class IndexReducer(Reducer):
    """argmax and argmin: (best value, its index); the first of equal values; a NaN beats every number.

    Args:
        fold: the fold.
        dtype: the dtype that it computes in.
        count: the number of elements, if it is known. Few enough have positions in int32: a vector of them is no longer
            than one of most values.

    Attributes:
        starts: the first of consecutive positions, by the registers of vectors that have such positions.
    """

    picks = 1

    def __init__(self, fold: Fold, dtype: DType, count: int | None = None):
        super().__init__(fold, dtype)
        is_narrow = count is not None and count < 2**31 and dtype.itemsize <= dt.int32.itemsize
        self.state = [dtype, dt.int32 if is_narrow else dt.int64]
        self.starts: dict[str, str] = {}

    @property
    def index_type(self) -> str:
        """The LLVM type of a position."""
        return REGISTER[self.state[1]]

    def initial(self, f: Function) -> State:
        return [f.splat(self.identity, self.dtype), f.lane_numbers(self.index_type)]

    def positions(self, f: Function, first: str) -> str:
        """Return the consecutive positions of a vector's elements, from that of the first, i64."""
        vec = f.vec(self.index_type)
        result = f.op(f"add {vec} {self.broadcast_position(f, first)}, {f.lane_numbers(self.index_type)}")
        self.starts[result] = first
        return result

    def broadcast_position(self, f: Function, position: str) -> str:
        """Return a position, i64, in every lane."""
        if self.index_type != "i64":
            position = f.op(f"trunc i64 {position} to {self.index_type}")
        return f.broadcast(position, self.index_type)

    def first(self, f: Function, x: str, index: str) -> State:
        return [x, index]

    def is_better(self, f: Function, best: str, x: str) -> str:
        """Return whether ``x`` beats ``best``, per lane."""
        compare = "gt" if self.fold.node(self.dtype) == "maximum" else "lt"
        if self.dtype.kind != "f":
            return EMIT[compare](f, self.dtype, x, best)
        vec = f.vec(REGISTER[self.dtype])
        better = f.op(f"fcmp u{compare} {vec} {x}, {best}")  # also if one of them is a NaN
        return f.op(f"and {f.vec('i1')} {better}, {f.op(f'fcmp ord {vec} {best}, {best}')}")

    def find(self, f: Function, best: str, x: str, mask: str) -> str:
        """Return the first lane within ``mask`` whose ``x`` equals ``best``, i64; the number of lanes if none does."""
        i1, bits = f.vec("i1"), f"i{f.lanes}"
        same = f.op(f"xor {i1} {self.is_better(f, x, best)}, splat (i1 true)")
        return _count_zeros(f, f.op(f"bitcast {i1} {f.op(f'and {i1} {same}, {mask}')} to {bits}"))

    def _take(self, f: Function, take: str, one: State, two: State) -> State:
        pairs = zip(one, two, self.state, strict=True)
        i1 = f.vec("i1")
        return [
            f.op(f"select {i1} {take}, {f.vec(REGISTER[d])} {b}, {f.vec(REGISTER[d])} {a}")
            for a, b, d in pairs
        ]

    def step(self, f: Function, state: State, x: str, index: str) -> State:
        if state == self.initial(f):
            return self.first(f, x, index)
        return self._take(f, self.is_better(f, state[0], x), state, [x, index])

    def collapse(self, f: Function, state: State) -> str:
        """Return the lowest of the indices of the lanes that have the best value."""
        value, index = state
        if f.lanes == 1 or (self.dtype.itemsize == dt.int64.itemsize and index not in self.starts):
            return super().collapse(f, state)  # processors have no extremum of such positions
        lanes = self._find_best_lanes(f, value)
        if index in self.starts:
            first = _count_zeros(f, f.op(f"bitcast {f.vec('i1')} {lanes} to i{f.lanes}"))
            return f.op(f"add i64 {self.starts[index]}, {first}")
        type_, positions = self.index_type, self.state[1]
        vec, name = f.vec(type_), f"llvm.vector.reduce.smin.v{f.lanes}{type_}"
        f.module.declare(name, type_, vec)
        most = f.splat(2 ** (8 * positions.itemsize - 1) - 1, positions)
        indices = f.op(f"select {f.vec('i1')} {lanes}, {vec} {index}, {vec} {most}")
        lowest = f.op(f"call {type_} @{name}({vec} {indices})")
        return lowest if type_ == "i64" else f.op(f"zext {type_} {lowest} to i64")

    @property
    def collapsed(self) -> DType:
        return dt.int64

    def final(self, f: Function, state: State) -> str:
        index = state[self.picks]
        return index if self.index_type == "i64" else f.op(f"zext {f.vec('i32')} {index} to {f.vec('i64')}")

    def _find_best_lanes(self, f: Function, x: str) -> str:
        """Return the mask of the lanes that have the best value: of NaNs if there is one."""
        vec, i1 = f.vec(REGISTER[self.dtype]), f.vec("i1")
        is_maximum = self.fold.node(self.dtype) == "maximum"
        if self.dtype is dt.bool_:
            wanted = x if is_maximum else f.op(f"xor {i1} {x}, splat (i1 true)")
            return f.op(f"select i1 {join_mask(f, 'or', wanted)}, {i1} {wanted}, {i1} splat (i1 true)")
        best = _find_best(f, self.dtype, x, "gt" if is_maximum else "lt")
        best = f.broadcast(best, REGISTER[self.dtype])
        if self.dtype.kind != "f":
            return f.op(f"icmp eq {vec} {x}, {best}")
        same, nan = f.op(f"fcmp oeq {vec} {x}, {best}"), f.op(f"fcmp uno {vec} {x}, {x}")
        return f.op(f"select i1 {join_mask(f, 'or', nan)}, {i1} {nan}, {i1} {same}")

    def join(self, f: Function, one: State, two: State) -> State:
        """Join interleaved lanes: of equal values (two NaNs are equal) the lower index wins."""
        i1, v = f.vec("i1"), f.vec(self.index_type)
        worse = self.is_better(f, two[0], one[0])
        lower = f.op(f"icmp slt {v} {two[1]}, {one[1]}")
        better = self.is_better(f, one[0], two[0])
        tie = f.op(f"and {i1} {lower}, {f.op(f'xor {i1} {worse}, splat (i1 true)')}")
        return self._take(f, f.op(f"or {i1} {better}, {tie}"), one, two)


def join_mask(f: Function, node: str, mask: str) -> str:
    """Return the ``or`` or the ``and`` of a mask's lanes, as i1."""
    name = f"llvm.vector.reduce.{node}.v{f.lanes}i1"
    f.module.declare(name, "i1", f.vec("i1"))
    return f.op(f"call i1 @{name}({f.vec('i1')} {mask})")


def _count_zeros(f: Function, mask: str) -> str:
    """Return the number of lanes before the first of a mask, whose bits are an integer, as i64."""
    bits = f"i{f.lanes}"
    f.module.declare(f"llvm.cttz.{bits}", bits, bits, "i1")
    count = f.op(f"call {bits} @llvm.cttz.{bits}({bits} {mask}, i1 false)")
    return count if bits == "i64" else f.op(f"zext {bits} {count} to i64")


def _find_best(f: Function, dtype: DType, x: str, compare: str) -> str:
    """Return the largest or smallest of the lanes as a scalar register; any if one of them is a NaN."""
    half, element = f.lanes // 2, REGISTER[dtype]
    if not half:
        return f.op(f"extractelement <1 x {element}> {x}, i64 0")
    one, two = (f.extract_lanes(x, element, at, half) for at in (0, half))
    with f.width(half):
        take = EMIT[compare](f, dtype, one, two)
        best = f.op(f"select {f.vec('i1')} {take}, {f.vec(element)} {one}, {f.vec(element)} {two}")
        return _find_best(f, dtype, best, compare)


def is_count(fold: Fold, value: Expr) -> bool:
    """Return whether a reduction adds bools as integers."""
    return (
        value.op == "cast"
        and value.args[0].dtype is dt.bool_
        and value.dtype.is_integer
        and fold.node(value.dtype) == "add"
    )


def make_reducer(fold: Fold, dtype: DType, count: int | None = None) -> Reducer:
    """Return the reducer of a fold computing in ``dtype``, of ``count`` elements if that is known."""
    if fold.returns_index:
        return IndexReducer(fold, dtype, count)
    return FloatSum(fold, dtype) if fold.compensated and dtype.kind == "f" else Reducer(fold, dtype)


def lane_positions(f: Function, first: str, items: Sequence[Reducer]) -> list[str]:
    """Return the positions of a vector's elements for each reduction; empty if it needs none."""
    return [item.positions(f, first) if isinstance(item, IndexReducer) else "" for item in items]


class RowFold(NamedTuple):
    """A fold of rows of elements in memory.

    Attributes:
        fold: the fold.
        source: the dtype of the elements.
        out: the dtype of the result; None: the elements are prepared operands, and the result is the combined value.
    """

    fold: Fold
    source: DType
    out: DType | None = None

    @property
    def dtype(self) -> DType:
        """The dtype that the fold computes in."""
        return self.source if self.out is None else self.fold.accumulation_dtype(self.source, self.out)

    @property
    def name(self) -> str:
        """A name for functions."""
        return f"{self.fold.name}_of_{self.source.name}" + (f"_as_{self.out.name}" if self.out else "")

    def make_reducer(self) -> Reducer:
        """Return the reducer of long rows."""
        return make_reducer(self.fold, self.dtype)

    def load(self, f: Function, address: str, mask: str = "") -> str:
        """Return the values that elements in memory contribute to the fold; only lanes of ``mask`` are read."""
        if mask:
            return self.operand(f, f.load_masked(self.source, address, mask))
        return self.operand(f, f.load_vector(self.source, address))

    def operand(self, f: Function, x: str) -> str:
        """Return the values that elements contribute to the fold."""
        return x if self.out is None else emit_expr(f, self.fold.operand(arg(0, self.source), self.out), x)

    def result(self, f: Function, x: str) -> str:
        """Return the results for combined values."""
        if self.out is None or self.fold.returns_index:
            return x
        return emit_expr(f, cast(self.fold.finished(arg(0, self.dtype)), self.out), x)
