"""The normal distribution function, its logarithm and inverse, and the inverse of the error function."""

from __future__ import annotations

import math

from ..operators.declare.derivatives import Partials
from ..operators.declare.kinds import unary
from ..operators.elementwise.exponential import exp
from ..operators.scalar_ir import nodes as s
from .rules import DTYPES, scipy_op

_ROOT = math.sqrt(2 * math.pi)
WIDE = (-3.0, 3.0)

ndtr = scipy_op(
    "ndtr",
    "The distribution function of the standard normal distribution.",
    "td.special.ndtr(td.asarray([0.0])) -> [0.5]",
    WIDE,
    derivative={"self": lambda self: exp(self * self * -0.5) / _ROOT},
)
log_ndtr = scipy_op(
    "log_ndtr",
    "The logarithm of `ndtr`, exact far below 0 too.",
    "td.special.log_ndtr(td.asarray([-20.0])).astype(td.int32) -> [-203]",
    (-30.0, 3.0),
    derivative={"self": lambda self, out: exp(self * self * -0.5 - out) / _ROOT},
)
ndtri = scipy_op(
    "ndtri",
    "The inverse of `ndtr`: quantiles of the standard normal distribution.",
    "td.special.ndtri(td.asarray([0.5, 1.0])) -> [0.0, inf]",
    (0.05, 0.95),
    derivative={"self": lambda out: exp(out * out * 0.5) * _ROOT},
)
erfinv = unary(
    "special_erfinv",
    s.erfinv,
    doc="The inverse of the error function.",
    example="td.special.erfinv(td.asarray([0.0, 1.0])) -> [0.0, inf]",
    reference="scipy.special.erfinv",
    dtypes=DTYPES,
    result="float",
    domain=(-0.95, 0.95),
    special=((1.0,), (-1.0,), (1.5,)),
    derivative=Partials({"self": lambda out: exp(out * out) * (math.sqrt(math.pi) / 2)}),
    method=False,
)
