"""Elementwise functions of one or two real tensors: angles in degrees, cbrt, heaviside, logaddexp2, rint, ..."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...registry.dtypes import ALL, NUMERIC, REAL
from ..declare.derivatives import Partials
from ..declare.kinds import binary, unary
from ..scalar_ir import nodes as s
from .arithmetic import sign
from .comparison import eq
from .exponential import exp2
from .selection import where

if TYPE_CHECKING:
    from ...registry.types import Tensor

_DEGREE = math.pi / 180

deg2rad = unary(
    "deg2rad",
    lambda x: x * _DEGREE,
    doc="Each angle converted from degrees to radians.",
    example="td.deg2rad(td.asarray([0.0, 180.0])).astype(td.float16) -> [0.0, 3.140625]",
    reference="numpy.deg2rad",
    dtypes=REAL,
    result="float",
    derivative=Partials({"self": _DEGREE}),
    aliases=("radians",),
)
rad2deg = unary(
    "rad2deg",
    lambda x: x * (1 / _DEGREE),
    doc="Each angle converted from radians to degrees.",
    example="td.rad2deg(td.asarray([0.0, td.pi])).astype(td.float16) -> [0.0, 180.0]",
    reference="numpy.rad2deg",
    dtypes=REAL,
    result="float",
    derivative=Partials({"self": 1 / _DEGREE}),
    aliases=("degrees",),
)


def _cbrt(x: s.Expr) -> s.Expr:
    """The power of 1/3 of the magnitude, and a step of Newton's method for its last bits."""
    size = s.abs(x)
    is_edge = s.logical_or(s.eq(size, 0), s.logical_or(s.isinf(size), s.isnan(size)))
    safe = s.select(is_edge, s.const(1.0, x.dtype), size)
    root = s.exp2(s.log2(safe) * (1 / 3))
    root = root - (root - safe / (root * root)) * (1 / 3)
    return s.select(is_edge, x, s.copysign(root, x))


cbrt = unary(
    "cbrt",
    _cbrt,
    doc="The cube root of each element.",
    example="td.cbrt(td.asarray([27.0, -8.0])).astype(td.float16) -> [3.0, -2.0]",
    reference="numpy.cbrt",
    method=False,
    dtypes=REAL,
    result="float",
    special=((1e-30,), (-1e30,)),
    derivative=Partials({"self": lambda out: 1 / (3 * out * out)}),
    autocast="float32",
)
fabs = unary(
    "fabs",
    s.abs,
    doc="The magnitude of each element, as a float.",
    example="td.fabs(td.asarray([1, -2])) -> [1.0, 2.0]",
    reference="numpy.fabs",
    dtypes=REAL,
    result="float",
    derivative=Partials({"self": lambda self: sign(self)}),
    method=False,
)
rint = unary(
    "rint",
    s.rint,
    doc="Each element rounded to the nearest integer, halves to the even one, as a float.",
    example="td.rint(td.asarray([0.5, 1.5, 2.6])) -> [0.0, 2.0, 3.0]",
    reference="numpy.rint",
    dtypes=NUMERIC,
    result="float",
    special=((2.5,), (-0.5,), (1.5,)),
    derivative=Partials({"self": 0}),
    method=False,
)


def _logaddexp2(a: s.Expr, b: s.Expr) -> s.Expr:
    high, difference = s.maximum(a, b), a - b
    gap = s.select(s.gt(difference, 0), s.neg(difference), difference)
    return s.select(s.eq(a, b), a + 1, high + s.log1p(s.exp2(gap)) * (1 / math.log(2)))


logaddexp2 = binary(
    "logaddexp2",
    _logaddexp2,
    doc="log2(2**self + 2**other), without intermediate overflow.",
    example="td.logaddexp2(td.asarray([0.0]), 0.0) -> [1.0]",
    reference="numpy.logaddexp2",
    dtypes=REAL,
    result="float",
    domain=(0.1, 3.0),  # sums near 0 lose digits
    derivative=Partials(
        {"self": lambda self, out: exp2(self - out), "other": lambda other, out: exp2(other - out)}
    ),
)


def _heaviside(x: s.Expr, at_zero: s.Expr) -> s.Expr:
    side = s.select(s.gt(x, 0), s.const(1.0, x.dtype), s.const(0.0, x.dtype))
    return s.select(s.isnan(x), x, s.select(s.eq(x, 0), at_zero, side))


def _heaviside_cotangent(g: Tensor, self: Any) -> Tensor:  # noqa: ANN401
    return where(eq(self, 0), g, 0)


heaviside = binary(
    "heaviside",
    _heaviside,
    doc="0 for negative elements of `self`, 1 for positive ones, and `other` for 0; NaN for NaN.",
    example="td.heaviside(td.asarray([-2.0, 0.0, 3.0]), 0.5) -> [0.0, 0.5, 1.0]",
    reference="numpy.heaviside",
    dtypes=REAL,
    result="float",
    derivative=Partials({"self": 0, "other": _heaviside_cotangent}),
)

# -- classification ----------------------------------------------------------------------------------------------------
isposinf = unary(
    "isposinf",
    lambda x: s.logical_and(s.isinf(x), s.logical_not(s.signbit(x))),
    doc="Whether an element is positive infinity.",
    example="td.isposinf(td.asarray([1.0, float('inf'), float('-inf')])) -> [False, True, False]",
    reference="numpy.isposinf",
    dtypes=REAL,
    result="bool",
)
isneginf = unary(
    "isneginf",
    lambda x: s.logical_and(s.isinf(x), s.signbit(x)),
    doc="Whether an element is negative infinity.",
    example="td.isneginf(td.asarray([1.0, float('inf'), float('-inf')])) -> [False, False, True]",
    reference="numpy.isneginf",
    dtypes=REAL,
    result="bool",
)
isreal = unary(
    "isreal",
    lambda x: s.eq(s.imag(x), 0) if x.dtype.kind == "c" else s.logical_or(s.eq(x, x), s.ne(x, x)),
    doc="Whether the imaginary part of an element is 0.",
    example="td.isreal(td.asarray([1 + 0j, 2j])) -> [True, False]",
    reference="numpy.isreal",
    dtypes=ALL,
    result="bool",
)
iscomplex = unary(
    "iscomplex",
    lambda x: s.ne(s.imag(x), 0) if x.dtype.kind == "c" else s.logical_and(s.eq(x, x), s.ne(x, x)),
    doc="Whether the imaginary part of an element is not 0.",
    example="td.iscomplex(td.asarray([1 + 0j, 2j])) -> [False, True]",
    reference="numpy.iscomplex",
    dtypes=ALL,
    result="bool",
    method=False,
)
