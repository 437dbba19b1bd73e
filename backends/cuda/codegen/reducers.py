"""The state of reductions on the GPU: C type, initial value and result."""

from __future__ import annotations

from ....lowering.fusion.loop_ir import Reduce
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.fold import Fold
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .helper_memory import reducer_struct
from .helpers import define_helper
from .text import Text, write_expr
from .types import CTYPE, literal

LONG = 64
"""The maximum number of elements that a thread sums plainly; longer sums are compensated."""


class Reducer(NamedTuple):
    """The device struct of a reduction.

    Attributes:
        fold: the fold.
        dtype: the computation dtype.
        result: the dtype of ``result()``: that of the combined value, or int64 for an index.
        ctype: the C type of the state.
        start: the initialiser of the state.
        nbytes: the size of a state.
        helpers: the helpers that it needs.
    """

    fold: Fold
    dtype: DType
    result: DType
    ctype: str
    start: str
    nbytes: int
    helpers: tuple[str, ...]

    @property
    def is_long(self) -> bool:
        """Whether it is a compensated sum."""
        return self.ctype.startswith("LongSum")


def reducer(reduce: Reduce, chain: int) -> Reducer:
    """The reducer of a reduction in which each thread adds up to ``chain`` elements."""
    return make_reducer(reduce.fold, reduce.value.dtype, chain)


def make_reducer(fold: Fold, dtype: DType, chain: int) -> Reducer:
    """The reducer of a fold that computes in ``dtype``."""
    lanes = "complex_lanes" if dtype.kind == "c" else "shuffle"
    shared = (lanes, "join")
    if fold.returns_index:
        name = {"maximum": "ArgMax", "minimum": "ArgMin"}[fold.node(dtype)]
        start = f"{{{literal(0, dtype)}, -1}}"
        return Reducer(fold, dtype, dt.int64, f"{name}<{CTYPE[dtype]}>", start, 16, ("arg_reducers", *shared))
    if fold.compensated and dtype.is_inexact and chain > LONG:
        zero, ctype = literal(0.0, dtype), f"LongSum<{CTYPE[dtype]}>"
        return Reducer(
            fold, dtype, dtype, ctype, f"{{{zero}, {zero}}}", 2 * dtype.itemsize, ("sums", *shared)
        )
    name = f"{fold.name}_{dtype.name}"
    text = Text()
    value = write_expr(text, fold.combined(dtype), "value", "x")
    define_helper(name, (lanes, *text.helpers), reducer_struct(name, CTYPE[dtype], text.lines, value))
    start = f"{{{literal(fold.identity(dtype), dtype)}}}"
    return Reducer(fold, dtype, dtype, name, start, dtype.itemsize, (name, *shared))
