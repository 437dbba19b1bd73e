"""Rounding: floor, ceil, trunc and round; the derivative of a step function is 0."""

from __future__ import annotations

from ...registry.dtypes import NUMERIC, REAL
from ..declare.derivatives import Partials
from ..declare.kinds import unary
from ..scalar_ir import nodes as s

_HALVES = ((2.5,), (-0.5,), (1.5,), (-2.5,), (0.49999997,))

floor = unary(
    "floor",
    s.floor,
    doc="Each element rounded down; integers are unchanged.",
    example="td.floor(td.asarray([1.5, -1.5])) -> [1.0, -2.0]",
    reference="numpy.floor",
    dtypes=REAL,
    special=_HALVES,
    derivative=Partials({"self": 0}),
)
ceil = unary(
    "ceil",
    s.ceil,
    doc="Each element rounded up; integers are unchanged.",
    example="td.ceil(td.asarray([1.5, -1.5])) -> [2.0, -1.0]",
    reference="numpy.ceil",
    dtypes=REAL,
    special=_HALVES,
    derivative=Partials({"self": 0}),
)
trunc = unary(
    "trunc",
    s.trunc,
    doc="Each element rounded towards zero; integers are unchanged.",
    example="td.trunc(td.asarray([1.5, -1.5])) -> [1.0, -1.0]",
    reference="numpy.trunc",
    dtypes=REAL,
    special=_HALVES,
    derivative=Partials({"self": 0}),
    aliases=("fix",),
)
round = unary(
    "round",
    s.rint,
    doc="Each element rounded to the nearest integer, halves to the even one; integers are unchanged.",
    example="td.round(td.asarray([0.5, 1.5, 2.6])) -> [0.0, 2.0, 3.0]",
    variadic="decimals",
    reference="numpy.round",
    dtypes=NUMERIC,
    special=_HALVES,
    derivative=Partials({"self": 0}),
)
