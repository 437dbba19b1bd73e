"""Reductions of bools: whether any or all hold, and how many do."""

from __future__ import annotations

from .....operators.scalar_ir.expr import Expr
from .....operators.scalar_ir.fold import Fold
from .....registry import dtypes as dt
from .....registry.dtypes import DType
from ...target import vector_target
from ..casts import emit_cast
from ..nodes import EMIT
from ..text import Function
from .reducers import ON_MASKS, Reducer, State, join_mask


class MaskReducer(Reducer):
    """A fold of bools by ``or`` or ``and``, for processors whose masks are vectors as wide as what was compared.

    The state is integers of that width. As bools, the masks of each step would be narrowed to bytes.

    Args:
        fold: the fold.
        size: the bytes of the elements that are compared.
    """

    def __init__(self, fold: Fold, size: int):
        super().__init__(fold, dt.bool_)
        self.state, self.node = [dt.SIGNED[size.bit_length() - 1]], ON_MASKS[fold.node(dt.bool_)]

    def initial(self, f: Function) -> State:
        return [f.splat(-1 if self.identity else 0, self.state[0])]

    def first(self, f: Function, x: str, index: str) -> State:
        return [f.op(f"sext {f.vec('i1')} {x} to {f.register_type(self.state[0])}")]

    def step(self, f: Function, state: State, x: str, index: str) -> State:
        return self.join(f, state, self.first(f, x, index))

    def join(self, f: Function, one: State, two: State) -> State:
        return [f.op(f"{self.node} {f.register_type(self.state[0])} {one[0]}, {two[0]}")]

    def final(self, f: Function, state: State) -> str:
        return f.op(f"icmp ne {f.register_type(self.state[0])} {state[0]}, zeroinitializer")

    def collapse(self, f: Function, state: State) -> str:
        return join_mask(f, self.node, self.final(f, state))


class CountReducer(Reducer):
    """A sum of bools as integers: (counts, sum); within a block only counts, as wide as what was compared.

    Args:
        fold: the fold.
        dtype: the dtype of the sum.
        size: the bytes of the elements that are compared.
    """

    def __init__(self, fold: Fold, dtype: DType, size: int):
        super().__init__(fold, dtype)
        self.state = [dt.UNSIGNED[size.bit_length() - 1], dtype]
        self.steps_per_block = min(2 ** (8 * size - 1), 2**30)

    def operand(self, value: Expr) -> Expr:
        return value.args[0]

    def initial(self, f: Function) -> State:
        return [f.splat(0, d) for d in self.state]

    def begin_block(self, f: Function, state: State) -> State:
        return [f.splat(0, self.state[0]), state[1]]

    def mask(self, f: Function, mask: str, x: str) -> str:
        return f.op(f"and {f.vec('i1')} {mask}, {x}")

    def step(self, f: Function, state: State, x: str, index: str) -> State:
        counts = f.register_type(self.state[0])
        ones = f.op(f"sext {f.vec('i1')} {x} to {counts}")
        return [f.op(f"sub {counts} {state[0]}, {ones}"), state[1]]

    def end_block(self, f: Function, state: State, block: State) -> State:
        return [f.splat(0, self.state[0]), self.final(f, block)]

    def final(self, f: Function, state: State) -> str:
        counts = emit_cast(f, state[0], self.state[0], self.dtype)
        return EMIT["add"](f, self.dtype, state[1], counts)

    def collapse(self, f: Function, state: State) -> str:
        return Reducer(self.fold, self.dtype).collapse(f, [self.final(f, state)])


def make_value_reducer(fold: Fold, dtype: DType, size: int) -> Reducer:
    """Return the reducer of values of one block; bools are the results of comparisons of elements of ``size`` bytes."""
    is_mask = dtype is dt.bool_ and fold.node(dtype) in ON_MASKS and not vector_target().masks
    return MaskReducer(fold, size) if is_mask else Reducer(fold, dtype)
