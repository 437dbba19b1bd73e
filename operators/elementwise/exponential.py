"""Exponentials, logarithms, square roots, the error function."""

from __future__ import annotations

import math

import numpy as np

from ...registry.dtypes import ALL, REAL, bool_
from ..declare.derivatives import Partials
from ..declare.kinds import unary
from ..scalar_ir import nodes as s

_REAL = (bool_, *REAL)
_TINY = ((1e-6,), (-1e-6,))  # where exp(x) - 1 and log(1 + x) lose their digits

exp = unary(
    "exp",
    s.exp,
    doc="e to the power of each element.",
    example="td.exp(td.asarray([0.0, float('-inf')])) -> [1.0, 0.0]",
    reference="numpy.exp",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda out: out}),
    autocast="float32",
)


def _exp2(x: s.Expr) -> s.Expr:
    if x.dtype.kind != "c":
        return s.exp2(x)
    return s.exp(s.complex_(s.real(x) * math.log(2), s.imag(x) * math.log(2)))


exp2 = unary(
    "exp2",
    _exp2,
    doc="2 to the power of each element.",
    example="td.exp2(td.asarray([0.0, 3.0])) -> [1.0, 8.0]",
    reference="numpy.exp2",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": lambda out: out * math.log(2)}),
    autocast="float32",
)
expm1 = unary(
    "expm1",
    s.expm1,
    doc="exp(self) - 1, accurate for small elements too.",
    example="td.expm1(td.asarray([0.0])) -> [0.0]",
    reference="references.arrays.expm1",
    dtypes=ALL,
    result="float",
    special=_TINY,
    derivative=Partials({"self": lambda out: out + 1}),
    autocast="float32",
)
log = unary(
    "log",
    s.log,
    doc="The natural logarithm of each element; -inf for 0, NaN below.",
    example="td.log(td.asarray([1.0, 0.0])) -> [0.0, -inf]",
    reference="numpy.log",
    dtypes=ALL,
    result="float",
    domain=(0.1, 5.0),
    derivative=Partials({"self": lambda self: 1 / self}),
    autocast="float32",
)
log2 = unary(
    "log2",
    s.log2,
    doc="The logarithm of each element to base 2.",
    example="td.log2(td.asarray([1.0, 8.0])) -> [0.0, 3.0]",
    reference="numpy.log2",
    dtypes=ALL,
    result="float",
    domain=(0.1, 5.0),
    derivative=Partials({"self": lambda self: 1 / (self * math.log(2))}),
    autocast="float32",
)
log10 = unary(
    "log10",
    s.log10,
    doc="The logarithm of each element to base 10.",
    example="td.log10(td.asarray([1.0, 0.0])) -> [0.0, -inf]",
    reference="numpy.log10",
    dtypes=ALL,
    result="float",
    domain=(0.1, 5.0),
    derivative=Partials({"self": lambda self: 1 / (self * math.log(10))}),
    autocast="float32",
)
log1p = unary(
    "log1p",
    s.log1p,
    doc="log(1 + self), accurate for small elements too.",
    example="td.log1p(td.asarray([0.0])) -> [0.0]",
    reference="references.arrays.log1p",
    dtypes=ALL,
    result="float",
    domain=(-0.8, 3.0),
    special=_TINY,
    derivative=Partials({"self": lambda self: 1 / (self + 1)}),
    autocast="float32",
)
sqrt = unary(
    "sqrt",
    s.sqrt,
    doc="The square root of each element; NaN for negative real elements.",
    example="td.sqrt(td.asarray([4.0, 9.0])) -> [2.0, 3.0]",
    reference="numpy.sqrt",
    dtypes=ALL,
    result="float",
    domain=(0.1, 5.0),
    derivative=Partials({"self": lambda out: 0.5 / out}),
)
rsqrt = unary(
    "rsqrt",
    lambda x: 1 / s.sqrt(x),
    doc="One over the square root of each element.",
    example="td.rsqrt(td.asarray([4.0, 16.0])) -> [0.5, 0.25]",
    reference=lambda x: np.reciprocal(np.sqrt(x)),
    dtypes=ALL,
    result="float",
    domain=(0.1, 5.0),
    derivative=Partials({"self": lambda self, out: -0.5 * out / self}),
    autocast="float32",
)
erf = unary(
    "erf",
    s.erf,
    doc="The error function of each element.",
    example="td.erf(td.asarray([0.0, float('inf')])) -> [0.0, 1.0]",
    reference="scipy.special.erf",
    dtypes=_REAL,
    result="float",
    derivative=Partials({"self": lambda self: exp(-(self * self)) * (2 / math.sqrt(math.pi))}),
    autocast="float32",
)
erfc = unary(
    "erfc",
    s.erfc,
    doc="1 - erf(self), accurate where erf is close to 1 too.",
    example="td.erfc(td.asarray([0.0, float('inf')])) -> [1.0, 0.0]",
    reference="scipy.special.erfc",
    dtypes=_REAL,
    result="float",
    special=((5.0,), (8.0,)),
    derivative=Partials({"self": lambda self: exp(-(self * self)) * (-2 / math.sqrt(math.pi))}),
    autocast="float32",
)
