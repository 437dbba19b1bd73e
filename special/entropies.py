"""xlogy, xlog1py, entr and logit."""

from __future__ import annotations

from ..operators.declare.derivatives import Partials
from ..operators.declare.kinds import binary, unary
from ..operators.elementwise.exponential import log, log1p
from ..operators.scalar_ir import nodes as s
from ..registry.dtypes import FLOATS


def _xlogy(x: s.Expr, y: s.Expr) -> s.Expr:
    return s.select(s.logical_and(s.eq(x, 0), s.logical_not(s.isnan(y))), s.const(0, x.dtype), x * s.log(y))


def _xlog1py(x: s.Expr, y: s.Expr) -> s.Expr:
    return s.select(s.logical_and(s.eq(x, 0), s.logical_not(s.isnan(y))), s.const(0, x.dtype), x * s.log1p(y))


xlogy = binary(
    "special_xlogy",
    _xlogy,
    doc="self * log(other), and 0 where `self` is 0.",
    example="td.special.xlogy(td.asarray([0.0, 2.0]), td.asarray([0.0, 1.0])) -> [0.0, 0.0]",
    reference="scipy.special.xlogy",
    dtypes=FLOATS,
    domain=(1.5, 3.0),
    derivative=Partials({"self": lambda other: log(other), "other": lambda self, other: self / other}),
    method=False,
)
xlog1py = binary(
    "special_xlog1py",
    _xlog1py,
    doc="self * log(1 + other), and 0 where `self` is 0.",
    example="td.special.xlog1py(td.asarray([0.0, 2.0]), td.asarray([-1.0, 0.0])) -> [0.0, 0.0]",
    reference="scipy.special.xlog1py",
    dtypes=FLOATS,
    domain=(0.25, 3.0),
    derivative=Partials(
        {"self": lambda other: log1p(other), "other": lambda self, other: self / (1 + other)}
    ),
    method=False,
)


def _entr(x: s.Expr) -> s.Expr:
    below = s.select(s.lt(x, 0), s.const(float("-inf"), x.dtype), -(x * s.log(x)))
    return s.select(s.eq(x, 0), s.const(0, x.dtype), below)


entr = unary(
    "special_entr",
    _entr,
    doc="-self * log(self): 0 at 0, -inf below.",
    example="td.special.entr(td.asarray([0.0, 1.0])) -> [0.0, -0.0]",
    reference="scipy.special.entr",
    dtypes=FLOATS,
    domain=(1.5, 3.0),
    derivative=Partials({"self": lambda self: -log(self) - 1}),
    method=False,
)


def _logit(x: s.Expr) -> s.Expr:
    """log(x / (1 - x)), as a logarithm of 1 + |2 * x - 1| / min(x, 1 - x), which is accurate near 1/2 too."""
    excess = 2 * x - 1
    smaller = s.minimum(x, 1 - x) + 0  # 0 for -0.0
    return s.copysign(s.log1p(abs(excess) / smaller), excess)


logit = unary(
    "special_logit",
    _logit,
    doc="The log odds, log(self / (1 - self)): the inverse of `sigmoid`.",
    example="td.special.logit(td.asarray([0.5, 1.0])) -> [0.0, inf]",
    reference="scipy.special.logit",
    dtypes=FLOATS,
    domain=(0.05, 0.95),
    derivative=Partials({"self": lambda self: 1 / (self * (1 - self))}),
    method=False,
)
