"""erfc as random numbers have it: a polynomial near 0, exp(-x**2) * H(x) / (1 + 2 * x) further out.

Samples of a seed keep their bits, so this function does not change.
"""

from __future__ import annotations

from .exponential import exp_pair
from .pairs import Arithmetic, Pair
from .values import Value, clamp, fma, magnitude, polynomial, power_of_two, scale, where

_TWO_OVER_SQRT_PI = (1.1283791670955126, 1.533545961316588e-17)  # a double-double
# (erf(x) / x - 2 / sqrt(pi)) / x**2 as a polynomial of x**2, for |x| <= 1 / 2
_NEAR = (
    -1.4785891282949116e-07, 1.6389306149834103e-06, -1.492382429237371e-05, 0.00012055306189785573,
    -0.0008548326792100896, 0.005223977624318728, -0.026866170645103903, 0.112837916709551,
    -0.37612638903183754,
)  # fmt: skip
_SHORT_NEAR = (
    0.00010990664382062848, -0.0008518852971359888, 0.005223598179676299, -0.026866148481503743,
    0.11283791623508974, -0.3761263890301891,
)  # fmt: skip
# (1 + 2 * x) * exp(x**2) * erfc(x) as a polynomial of (x - 4) / (x + 4), for 1/2 <= x <= 28
_FAR = (
    -1.0476718674620143e-08, -1.2224048303103836e-08, 1.0568025135809099e-07, 6.702452833716376e-08,
    -8.225595632059515e-07, 2.9955790685580846e-07, 5.708642804404749e-06, -1.1224732247350184e-05,
    -2.4398983809134533e-05, 0.00015062249512264787, -0.00019925671345040716, -0.0007577734486762808,
    0.0050319699756138135, -0.01619773403826592, 0.03716751553818893, -0.06633036581360713,
    0.09373283499828751, -0.10103906603625375, 0.0680970542546948, 0.015379652102619027,
    -0.13962111684056253, 1.2329951186255526,
)  # fmt: skip
_FAR_LAST_LOW = -4.3856181974946e-17  # low part of the last coefficient, which dominates the polynomial
_FAR_DERIVATIVE = tuple(
    k * c for k, c in zip(range(8, 0, -1), _FAR[-9:-1], strict=True)
)  # coefficients of the derivative, approximately
_SHORT_FAR = (
    0.0001324581236116876, -0.000233666025500406, -0.0007467487061055278, 0.005054071792630687,
    -0.016200647695329327, 0.03716034982277849, -0.06633009896586652, 0.09373399005475982,
    -0.10103905586306522, 0.06809697340313867, 0.01537965018103996, -0.13962111520756534,
    1.2329951186483874,
)  # fmt: skip


def _erf_near_zero(m: Arithmetic, x: Value) -> Pair:
    """Return erf(x) for |x| <= 1/2."""
    z = x * x
    tail = polynomial(z, _NEAR if m.exact else _SHORT_NEAR) * (z * x)
    result = m.product(x, _TWO_OVER_SQRT_PI[0])
    return result.plus(fma(x, _TWO_OVER_SQRT_PI[1], tail) if m.exact else tail)


def _scaled_erfc(m: Arithmetic, abs_x: Value) -> tuple[Pair, Value]:
    """Return (y, n) with erfc(abs_x) = y * 2**n, for 1/2 <= abs_x <= 28."""
    square = m.product(abs_x, abs_x)
    power, n = exp_pair(m, -square)
    t = m.quotient(m.sum(abs_x, abs_x.constant(-4.0)), m.sum(abs_x, abs_x.constant(4.0)))
    *upper, last = _FAR if m.exact else _SHORT_FAR
    numerator = m.ordered_sum(abs_x.constant(last), polynomial(t.hi, upper) * t.hi)
    if t.lo is not None:
        numerator = numerator.plus(fma(polynomial(t.hi, _FAR_DERIVATIVE), t.lo, _FAR_LAST_LOW))
    ratio = m.quotient(numerator, m.sum(abs_x.constant(1.0), abs_x + abs_x))
    return m.times(m.normal(power), ratio), n


def erfc(m: Arithmetic, x: Value) -> Value:
    """Return 1 - erf(x)."""
    abs_x = magnitude(x)
    y, n = _scaled_erfc(m, clamp(abs_x, 0.5, 28.0))
    one = m.constant(x, 1.0, 0.0)
    one_minus_erf = m.total(one, -_erf_near_zero(m, x))
    two_minus_erfc = m.total(one.times(2.0), -y.times(power_of_two(where(n < -100, -100, n)))).value
    return where(x > 0.5, scale(y.value, n), where(x < -0.5, two_minus_erfc, one_minus_erf.value))
