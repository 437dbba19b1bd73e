"""Bessel functions of both kinds and modified ones, of orders 0 and 1; ``i0e`` and ``i1e`` are scaled by exp(-|x|)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.elementwise.arithmetic import sign
from ..operators.elementwise.comparison import eq
from ..operators.elementwise.selection import where
from .rules import scipy_op

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Tensor

WIDE = (-3.0, 3.0)


def _divide_with_limit(of_x: Tensor, x: Tensor, at_zero: float) -> Tensor:
    """``of_x / x``, with the limit ``at_zero`` at 0."""
    is_zero = eq(x, 0)
    return where(is_zero, at_zero, of_x / where(is_zero, 1.0, x))


i0 = scipy_op(
    "i0",
    "The modified Bessel function of order 0.",
    "td.special.i0(td.asarray([0.0])) -> [1.0]",
    WIDE,
    derivative={"self": lambda self: i1(self)},
)
i1: OperatorFunction[Tensor] = scipy_op(
    "i1",
    "The modified Bessel function of order 1.",
    "td.special.i1(td.asarray([0.0])) -> [0.0]",
    WIDE,
    derivative={"self": lambda self, out: i0(self) - _divide_with_limit(out, self, 0.5)},
)
i0e = scipy_op(
    "i0e",
    "exp(-|self|) times the modified Bessel function of order 0.",
    "td.special.i0e(td.asarray([0.0])) -> [1.0]",
    WIDE,
    derivative={"self": lambda self, out: i1e(self) - sign(self) * out},
)
i1e: OperatorFunction[Tensor] = scipy_op(
    "i1e",
    "exp(-|self|) times the modified Bessel function of order 1.",
    "td.special.i1e(td.asarray([0.0])) -> [0.0]",
    WIDE,
    derivative={"self": lambda self, out: i0e(self) - sign(self) * out - _divide_with_limit(out, self, 0.5)},
)
j0 = scipy_op(
    "j0",
    "The Bessel function of the first kind of order 0.",
    "td.special.j0(td.asarray([0.0])) -> [1.0]",
    WIDE,
    derivative={"self": lambda self: -j1(self)},
)
j1: OperatorFunction[Tensor] = scipy_op(
    "j1",
    "The Bessel function of the first kind of order 1.",
    "td.special.j1(td.asarray([0.0])) -> [0.0]",
    WIDE,
    derivative={"self": lambda self, out: j0(self) - _divide_with_limit(out, self, 0.5)},
)
y0 = scipy_op(
    "y0",
    "The Bessel function of the second kind of order 0; -inf at 0, NaN below.",
    "td.special.y0(td.asarray([0.0])) -> [-inf]",
    (0.5, 5.0),
    derivative={"self": lambda self: -y1(self)},
)
y1: OperatorFunction[Tensor] = scipy_op(
    "y1",
    "The Bessel function of the second kind of order 1; -inf at 0, NaN below.",
    "td.special.y1(td.asarray([0.0])) -> [-inf]",
    (0.5, 5.0),
    derivative={"self": lambda self, out: y0(self) - out / self},
)
