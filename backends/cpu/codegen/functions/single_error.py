"""erfc and erfinv of float32 in float32 arithmetic. Worst errors in units in the last place: 2.7 and 1.7.

Source of the polynomials' variables: Giles, Approximating the erfinv function (2010).
"""

from __future__ import annotations

import math

from .pairs import Arithmetic
from .single import log_pair, scale, split_exp
from .values import Value, fma, magnitude, polynomial, split_polynomial, square_root, where, with_sign

_SLOPE = 0.2  # of erfinv(x) / x as a function of w, approximately
_SUMS = Arithmetic(exact=True)
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
# (x + 1) * exp(x**2) * erfc(x) as a polynomial of (x - 1) / (x + 1), for 0 <= x <= 10.2
_SCALED = (
    9.785704605747014e-05, 0.0004304081667214632, 0.000563134322874248, -0.00037334358785301447,
    -0.0023373605217784643, -0.0037458634469658136, -0.0012294771149754524, 0.0095641715452075,
    0.025396673008799553, 0.01390700601041317, -0.09555645287036896, -0.2376808524131775, 0.8551671504974365,
)  # fmt: skip
_SMALL = 0.25  # below which erfc is 1 less the series of erf
_SERIES = tuple(2 / math.sqrt(math.pi) * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(5))
_SCALED_SLOPE = (0.34, 0.44)  # of this polynomial, times -2, approximately


def erfc(x: Value) -> Value:
    """Return the complement of erf to 1, which is 2 less that of -x for x < 0."""
    size = magnitude(x)
    size = where(size > 10.2, 10.2, size)
    square = size * size
    r, beyond, n = split_exp(-square, -fma(size, size, -square))
    total = size + 1.0
    inverse = 1.0 / total
    rest = fma(total - 1.0 - size, inverse, fma(-total, inverse, 1.0)) * inverse
    t = fma(inverse, -2.0, 1.0)
    *upper, third, second, first = _SCALED
    scaled = polynomial(t, (split_polynomial(t, t * t, upper), third, second, first))
    ratio = _SUMS.product(scaled, inverse)
    rest = rest * fma(inverse, fma(t, *_SCALED_SLOPE), scaled)  # of the ratio: t has an error, too
    low = fma(ratio.hi, beyond, rest + ratio.low)
    value = scale(ratio.hi + fma(ratio.hi, r, low), n)
    small = fma(-x, polynomial(square, _SERIES[::-1]), 1.0)
    return where(size < _SMALL, small, where(x < 0.0, 2.0 - value, value))


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
