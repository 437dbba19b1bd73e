"""Modified Bessel functions of the first kind, of orders 0 and 1; ``i0e`` and ``i1e`` are scaled by exp(-|x|)."""

from __future__ import annotations

from typing import Any

from ..operators.comparison import eq
from ..operators.rounding import sign
from ..operators.selection import where
from .rules import special

WIDE = (-3.0, 3.0)


def _over(of_x: Any, x: Any, at_zero: float) -> Any:
    """A quotient by ``x``, with its limit at 0."""
    is_zero = eq(x, 0)
    return where(is_zero, at_zero, of_x / where(is_zero, 1.0, x))


i0: Any = special(
    "i0",
    "The modified Bessel function of order 0.",
    "td.special.i0(td.asarray([0.0])) -> [1.0]",
    WIDE,
    derivative={"self": lambda self: i1(self)},
)
i1: Any = special(
    "i1",
    "The modified Bessel function of order 1.",
    "td.special.i1(td.asarray([0.0])) -> [0.0]",
    WIDE,
    derivative={"self": lambda self, out: i0(self) - _over(out, self, 0.5)},
)
i0e: Any = special(
    "i0e",
    "exp(-|self|) times the modified Bessel function of order 0.",
    "td.special.i0e(td.asarray([0.0])) -> [1.0]",
    WIDE,
    derivative={"self": lambda self, out: i1e(self) - sign(self) * out},
)
i1e: Any = special(
    "i1e",
    "exp(-|self|) times the modified Bessel function of order 1.",
    "td.special.i1e(td.asarray([0.0])) -> [0.0]",
    WIDE,
    derivative={"self": lambda self, out: i0e(self) - sign(self) * out - _over(out, self, 0.5)},
)
