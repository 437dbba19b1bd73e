"""Sign, magnitude and rounding of one tensor.

The derivative of a step function is 0, and that of `abs` at 0 is 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...registry.dtypes import ALL, NUMERIC, REAL
from ..declare.derivatives import Partials
from ..declare.kinds import unary
from ..scalar_ir import nodes as s
from .comparison import eq
from .selection import where

if TYPE_CHECKING:
    from ...registry.types import Tensor

_HALVES = ((2.5,), (-0.5,), (1.5,), (-2.5,), (0.49999997,))

positive = unary(
    "positive",
    lambda x: x,
    doc="A copy of the tensor.",
    example="td.positive(td.asarray([1, -2])) -> [1, -2]",
    reference="numpy.positive",
    dtypes=NUMERIC,
    derivative=Partials({"self": 1}),
)
neg = unary(
    "neg",
    s.neg,
    doc="The negative of each element; unsigned integers and the most negative integer wrap around.",
    example="td.neg(td.asarray([1, -2])) -> [-1, 2]",
    reference="numpy.negative",
    dtypes=NUMERIC,
    derivative=Partials({"self": -1}),
    inplace=True,
)


def _sign(x: s.Expr) -> s.Expr:
    """-1, 0 or 1; for complex numbers x / abs(x), and 0 for 0."""
    if x.dtype.kind != "c":
        return s.sign(x)
    parts, size = (s.real(x), s.imag(x)), s.abs(x)
    infinite = [s.isinf(part) for part in parts]
    size = s.select(
        infinite[0] & infinite[1], math.nan, s.select(s.isinf(size), s.const(1.0, size.dtype), size)
    )
    # an infinite part outweighs a finite one
    shares = [
        s.select(own, s.copysign(s.const(1.0, size.dtype), part), s.select(other, 0.0, part))
        for part, own, other in zip(parts, infinite, reversed(infinite))
    ]
    return s.select(s.eq(x, 0), x, s.complex_(shares[0] / size, shares[1] / size))


sign = unary(
    "sign",
    _sign,
    doc="-1, 0 or 1 by the sign of each element, NaN for NaN; for complex numbers self / abs(self).",
    example="td.sign(td.asarray([3.0, 0.0, -2.0])) -> [1.0, 0.0, -1.0]",
    reference="numpy.sign",
    dtypes=NUMERIC,
    derivative=Partials({"self": 0}),
    inplace=True,
)


def _abs_derivative(self: Tensor) -> Tensor:
    """The sign; for complex numbers its conjugate, written with operators that have derivatives."""
    if self.dtype.kind != "c":
        return sign(self)
    size = abs(self)
    return self.conj() / where(eq(size, 0), 1.0, size)


abs = unary(
    "abs",
    s.abs,
    doc="The magnitude of each element; the most negative integer is unchanged.",
    example="td.abs(td.asarray([1, -2])) -> [1, 2]",
    reference="numpy.absolute",
    dtypes=NUMERIC,
    result="real",
    derivative=Partials({"self": _abs_derivative}),
)
square = unary(
    "square",
    s.square,
    doc="The square of each element.",
    example="td.square(td.asarray([1.0, -2.0])) -> [1.0, 4.0]",
    reference="numpy.square",
    dtypes=NUMERIC,
    derivative=Partials({"self": lambda self: 2 * self}),
    inplace=True,
)
reciprocal = unary(
    "reciprocal",
    s.reciprocal,
    doc="One over each element.",
    example="td.reciprocal(td.asarray([2.0, -4.0])) -> [0.5, -0.25]",
    reference="numpy.reciprocal",
    dtypes=ALL,
    result="float",
    domain=(0.3, 3.0),
    derivative=Partials({"self": lambda out: -(out * out)}),
    inplace=True,
    autocast="float32",
)
floor = unary(
    "floor",
    s.floor,
    doc="Each element rounded down; integers are unchanged.",
    example="td.floor(td.asarray([1.5, -1.5])) -> [1.0, -2.0]",
    reference="numpy.floor",
    dtypes=REAL,
    special=_HALVES,
    derivative=Partials({"self": 0}),
    inplace=True,
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
    inplace=True,
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
    inplace=True,
)
round = unary(
    "round",
    s.rint,
    doc="Each element rounded to the nearest integer, halves to the even one; integers are unchanged.",
    example="td.round(td.asarray([0.5, 1.5, 2.6])) -> [0.0, 2.0, 3.0]",
    reference="numpy.round",
    dtypes=NUMERIC,
    special=_HALVES,
    derivative=Partials({"self": 0}),
    inplace=True,
)
