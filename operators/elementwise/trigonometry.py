"""Trigonometric and hyperbolic functions; angles are in radians."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry.dtypes import ALL, REAL
from ..declare.derivatives import Partials
from ..declare.kinds import binary, unary
from ..scalar_ir import nodes as s
from .exponential import rsqrt

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

sin = unary(
    "sin",
    s.sin,
    doc="The sine of each element.",
    example="td.sin(td.asarray([0.0])) -> [0.0]",
    reference="numpy.sin",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda self: cos(self)}),
)
cos: OperatorFunction[Tensor] = unary(
    "cos",
    s.cos,
    doc="The cosine of each element.",
    example="td.cos(td.asarray([0.0])) -> [1.0]",
    reference="numpy.cos",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda self: -sin(self)}),
)
tan = unary(
    "tan",
    s.tan,
    doc="The tangent of each element.",
    example="td.tan(td.asarray([0.0])) -> [0.0]",
    reference="numpy.tan",
    dtypes=ALL,
    result="float",
    domain=(-1.3, 1.3),
    derivative=Partials({"self": lambda out: 1 + out * out}),
    autocast="float32",
)
asin = unary(
    "asin",
    s.asin,
    doc="The angle whose sine is each element, in [-pi/2, pi/2]; NaN outside of [-1, 1].",
    example="td.asin(td.asarray([0.0])) -> [0.0]",
    reference="numpy.arcsin",
    dtypes=ALL,
    result="float",
    domain=(-0.9, 0.9),
    derivative=Partials({"self": lambda self: rsqrt(1 - self * self)}),
    autocast="float32",
    aliases=("arcsin",),
)
acos = unary(
    "acos",
    s.acos,
    doc="The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1].",
    example="td.acos(td.asarray([1.0])) -> [0.0]",
    reference="numpy.arccos",
    dtypes=ALL,
    result="float",
    domain=(-0.9, 0.9),
    derivative=Partials({"self": lambda self: -rsqrt(1 - self * self)}),
    autocast="float32",
    aliases=("arccos",),
)
atan = unary(
    "atan",
    s.atan,
    doc="The angle whose tangent is each element, in [-pi/2, pi/2].",
    example="td.atan(td.asarray([0.0])) -> [0.0]",
    reference="numpy.arctan",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda self: 1 / (1 + self * self)}),
    aliases=("arctan",),
)
atan2 = binary(
    "atan2",
    s.atan2,
    doc="The angle of the point (other, self), in [-pi, pi].",
    example="td.atan2(td.asarray([0.0]), 1.0) -> [0.0]",
    reference="numpy.arctan2",
    dtypes=REAL,
    result="float",
    domain=(0.2, 3.0),
    derivative=Partials(
        {
            "self": lambda self, other: other / (self * self + other * other),
            "other": lambda self, other: -self / (self * self + other * other),
        }
    ),
    autocast="promote",
    aliases=("arctan2",),
)
sinh = unary(
    "sinh",
    s.sinh,
    doc="The hyperbolic sine of each element.",
    example="td.sinh(td.asarray([0.0])) -> [0.0]",
    reference="numpy.sinh",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda self: cosh(self)}),
    autocast="float32",
)
cosh: OperatorFunction[Tensor] = unary(
    "cosh",
    s.cosh,
    doc="The hyperbolic cosine of each element.",
    example="td.cosh(td.asarray([0.0])) -> [1.0]",
    reference="numpy.cosh",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda self: sinh(self)}),
    autocast="float32",
)
tanh = unary(
    "tanh",
    s.tanh,
    doc="The hyperbolic tangent of each element.",
    example="td.tanh(td.asarray([0.0, float('inf')])) -> [0.0, 1.0]",
    reference="numpy.tanh",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda out: 1 - out * out}),
)
asinh = unary(
    "asinh",
    s.asinh,
    doc="The number whose hyperbolic sine is each element.",
    example="td.asinh(td.asarray([0.0])) -> [0.0]",
    reference="numpy.arcsinh",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda self: rsqrt(self * self + 1)}),
    aliases=("arcsinh",),
)
acosh = unary(
    "acosh",
    s.acosh,
    doc="The number at least 0 whose hyperbolic cosine is each element; NaN below 1.",
    example="td.acosh(td.asarray([1.0])) -> [0.0]",
    reference="numpy.arccosh",
    dtypes=ALL,
    result="float",
    domain=(1.2, 4.0),
    derivative=Partials({"self": lambda self: rsqrt(self * self - 1)}),
    aliases=("arccosh",),
)
atanh = unary(
    "atanh",
    s.atanh,
    doc="The number whose hyperbolic tangent is each element; NaN outside of [-1, 1].",
    example="td.atanh(td.asarray([0.0])) -> [0.0]",
    reference="numpy.arctanh",
    dtypes=ALL,
    result="float",
    domain=(-0.9, 0.9),
    derivative=Partials({"self": lambda self: 1 / (1 - self * self)}),
    aliases=("arctanh",),
)
