"""erfinv: x * q(w) with w = -log(1 - x**2), for q a polynomial around one of 16 centers."""

from __future__ import annotations

import math

from .inverse_error_series import OFFSET, SHIFT, pieces
from .logarithm import normal_log
from .lookup import look_up
from .pairs import Arithmetic
from .values import Value, fma, magnitude, split_polynomial, where, with_sign


def erfinv(m: Arithmetic, x: Value) -> Value:
    """Return the inverse of the error function."""
    size = magnitude(x)
    w = -normal_log(m, fma(-x, x, 1.0))
    shifted = (w.value + OFFSET).bits()
    number = shifted >> SHIFT
    center = ((shifted & -(1 << SHIFT)) | 1 << (SHIFT - 1)).from_bits() - OFFSET
    h = w.hi - center
    if w.lo is not None:
        h = h + w.lo
    low, high, slope, *others = (look_up(table, number) for table in pieces())
    square = h * h
    rest = fma(split_polynomial(h, square, others[::-1]), square, low)
    value = fma(size, high, size * fma(slope, h, rest))
    return with_sign(where(size < 1.0, value, where(size.equals(1.0), math.inf, math.nan)), x)
