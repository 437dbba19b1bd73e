"""erfinv: x * q(w) with w = -log(1 - x**2), for q a polynomial around one of 16 centers."""

from __future__ import annotations

import math

from .inverse_error_series import OFFSET, pieces
from .logarithm import normal_log
from .pairs import Arithmetic
from .quarters import evaluate
from .values import Value, fma, magnitude, where, with_sign


def erfinv(m: Arithmetic, x: Value) -> Value:
    """Return the inverse of the error function."""
    size = magnitude(x)
    high, rest = evaluate(pieces(), OFFSET, -normal_log(m, fma(-x, x, 1.0)))
    value = fma(size, high, size * rest)
    return with_sign(where(size < 1.0, value, where(size.equals(1.0), math.inf, math.nan)), x)
