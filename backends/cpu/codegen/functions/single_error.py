"""erfinv of float32 in float32 arithmetic. Worst error in units in the last place: 1.7.

Source of the polynomials' variables: Giles, Approximating the erfinv function (2010).
"""

from __future__ import annotations

import math

from .single import log_pair
from .values import Value, fma, magnitude, split_polynomial, square_root, where, with_sign

_SLOPE = 0.2  # of erfinv(x) / x as a function of w, approximately
_HALF_ROOT_OF_PI = (0.886226936340332, -1.1037106379575562e-08)
# (erfinv(x) / x - sqrt(pi) / 2) / w as a polynomial of w = -log(1 - x**2), for w <= 5, used up to 4
_NEAR = (
    -8.966147824196469e-09, 2.2501916419059853e-07, -2.0144057089055423e-06, 4.178548351774225e-06,
    4.397650991450064e-05, -0.00012643182708416134, -0.0023353600408881903, 0.011549205519258976, 0.23201370239257812,
)  # fmt: skip
# erfinv(x) / x as a polynomial of sqrt(w) - 3, for 4 <= w <= 16.7
_FAR = (
    0.00012080766464350745, -0.0003215025062672794, -5.4111940698930994e-05, 0.0014966600574553013,
    -0.003604280296713114, 0.00568414805456996, -0.007634852547198534, 0.00944532360881567, 1.001674771308899,
    2.832976818084717,
)  # fmt: skip


def erfinv(x: Value) -> Value:
    """Return the inverse of the error function."""
    size = magnitude(x)
    log = log_pair(fma(-x, x, 1.0))
    w = -log.hi
    lost = log.low * -_SLOPE
    near = fma(split_polynomial(w, w * w, _NEAR), w, lost + _HALF_ROOT_OF_PI[1])
    root = square_root(w)
    t = root - 3.0
    *upper, first = _FAR
    far = fma(split_polynomial(t, t * t, upper), t, fma(fma(-root, root, w), _SLOPE, lost))
    is_far = w > 4.0
    rest = where(is_far, far, near)
    value = fma(size, where(is_far, x.constant(first), _HALF_ROOT_OF_PI[0]), size * rest)
    end = where(size.equals(1.0), x.constant(math.inf), math.nan)
    return with_sign(where(size < 1.0, value, end), x)
