"""The state of reductions on the GPU: C type, initial value and result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....lowering.fusion.loop_ir import Reduce
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .types import CTYPE, literal

LONG = 64
"""The maximum number of elements that a thread sums plainly; longer sums are compensated."""


class Reducer(NamedTuple):
    """The device struct of a reduction.

    Attributes:
        op: the reduction of the loop IR.
        dtype: the computation dtype.
        result: the dtype of the result.
        ctype: the C type of the state.
        start: the initialiser of the state.
        nbytes: the size of a state.
        helpers: the helpers that it needs.
    """

    op: str
    dtype: DType
    result: DType
    ctype: str
    start: str
    nbytes: int
    helpers: tuple[str, ...]

    @property
    def is_position(self) -> bool:
        """Whether the state includes the position of an element."""
        return self.op in ("argmax", "argmin")

    @property
    def is_long(self) -> bool:
        """Whether it is a compensated sum."""
        return self.ctype.startswith("LongSum")


def reducer(reduce: Reduce, chain: int) -> Reducer:
    """The reducer of a reduction in which each thread adds up to ``chain`` elements."""
    dtype = reduction_dtype(reduce.op, reduce.value.dtype)
    return make_reducer(reduce.op, dtype, chain)


def reduction_dtype(op: str, dtype: DType) -> DType:
    """The computation dtype of a reduction: float32 for 16-bit floats, bool for any and all."""
    if op in ("any", "all"):
        return dt.bool_
    return dt.float32 if dtype in dt.HALVES else dtype


def make_reducer(op: str, dtype: DType, chain: int) -> Reducer:
    """The reducer ``op`` computing in ``dtype``."""
    result = dt.int64 if op in ("argmax", "argmin") else dtype
    name, start, states, helper = _TABLE[op](dtype, chain)
    nbytes = 16 if helper == "arg_reducers" else states * dtype.itemsize
    helpers = (helper, "join", *(["complex_lanes"] if dtype.kind == "c" else []))
    return Reducer(op, dtype, result, f"{name}<{CTYPE[dtype]}>", f"{{{start}}}", nbytes, helpers)


_Row = tuple[str, str, int, str]  # struct, initialiser, numbers in it, helper


def _sum(dtype: DType, chain: int) -> _Row:
    if not dtype.is_inexact:
        return "IntegerSum", literal(0, dtype), 1, "integer_sums"
    zero = literal(0.0, dtype)
    return ("Sum", zero, 1, "sums") if chain <= LONG else ("LongSum", f"{zero}, {zero}", 2, "sums")


def _prod(dtype: DType, chain: int) -> _Row:
    name, helper = ("Prod", "sums") if dtype.is_inexact else ("IntegerProd", "integer_sums")
    return name, literal(1, dtype), 1, helper


def _extremum(name: str) -> Any:
    def row(dtype: DType, chain: int) -> _Row:
        return name, _bound(dtype, name == "Max"), 1, "extremum_reducers"

    return row


def _position(name: str) -> Any:
    def row(dtype: DType, chain: int) -> _Row:
        return name, f"{literal(0, dtype)}, -1", 1, "arg_reducers"

    return row


def _bound(dtype: DType, lowest: bool) -> str:
    """The identity of the maximum (``lowest``) or of the minimum."""
    if dtype.kind == "f":
        return literal(-np.inf if lowest else np.inf, dtype)
    if dtype is dt.bool_:
        return literal(not lowest, dtype)
    info = np.iinfo(dtype.np)
    return literal(int(info.min if lowest else info.max), dtype)


_TABLE: dict[str, Any] = {
    "sum": _sum,
    "prod": _prod,
    "max": _extremum("Max"),
    "min": _extremum("Min"),
    "any": _extremum("Max"),
    "all": _extremum("Min"),
    "argmax": _position("ArgMax"),
    "argmin": _position("ArgMin"),
}
