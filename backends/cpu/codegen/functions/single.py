"""The common functions of float32 in float32 arithmetic, which takes half as long as float64's.

Worst errors in units in the last place: exp, exp2, log2, erf, tanh, sinh and cosh 1.05, log, log10 and log1p 0.95,
expm1 1.3. Few operations wait for each other, as each step of a scalar loop waits for the one before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from .pairs import Arithmetic, Pair
from .values import (
    Value,
    clamp,
    end_logarithm,
    fma,
    magnitude,
    pairwise_polynomial,
    polynomial,
    where,
    with_sign,
)

_SUMS = Arithmetic(exact=True)
_MAGIC = 12582912.0  # 1.5 * 2**23: adding it leaves a small number's nearest integer in the low bits
_MAGIC_BITS = 0x4B400000
_LOG2E = 1.44269504088896341
_LN2, _LN2_REST = 0.6931471824645996, -1.904654299957768e-09
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)


def _nearest(x: Value) -> tuple[Value, Value]:
    """Return the integer nearest to x * log2(e), as float32 and as int32."""
    shifted = fma(x, _LOG2E, _MAGIC)
    return shifted - _MAGIC, shifted.bits() - _MAGIC_BITS


def _minus_one(r: Value) -> Value:
    """Return e**r - 1 for a reduced argument."""
    square = r * r
    return fma(pairwise_polynomial(r, square, _EXP), square, r)


def _reduce_argument(x: Value) -> tuple[Value, Value]:
    """Return (r, n) with x = n * log(2) + r."""
    n, whole = _nearest(x)
    return fma(n, -_LN2_HIGH, x) - n * _LN2_LOW, whole


def _reduce_exp(x: Value) -> tuple[Value, Value]:
    """Return (e**r, n) with x = n * log(2) + r; the first is NaN for NaN."""
    r, whole = _reduce_argument(x)
    return _minus_one(r) + 1.0, whole


def _power_of_two(n: Value) -> Value:
    return ((n + 127) << 23).from_bits()


def scale(y: Value, n: Value) -> Value:
    """Return y * 2**n, in two factors, so that overflow and subnormal results are right."""
    half = n >> 1
    return (y * _power_of_two(half)) * _power_of_two(n - half)


def _scale_normal(below: Value, n: Value) -> Value:
    """Return (1 + below) * 2**n if it is a normal number: rounded once, so with the bits of ``scale``."""
    power = _power_of_two(n)
    return fma(below, power, power)


def split_exp(x: Value, low: Value) -> tuple[Value, Value, Value]:
    """Return (r, rest, n) with e**(x + low) = (1 + r + rest) * 2**n, for a small second term."""
    n, whole = _nearest(x)
    first, second = fma(n, -_LN2_HIGH, x), fma(n, -_LN2_LOW, low)
    r = first + second
    square = r * r
    return r, fma(pairwise_polynomial(r, square, _EXP), square, (first - r) + second), whole


def exp(x: Value) -> Value:
    """Return e**x for |x| < 87."""
    r, n = _reduce_argument(x)
    return _scale_normal(_minus_one(r), n)


def exp_anywhere(x: Value) -> Value:
    """Return e**x for any x, with the bits of ``exp`` in its range."""
    return scale(*_reduce_exp(clamp(x, -104.0, 89.0)))


def is_beyond_exp(x: Value) -> Value:
    """Return the lanes that ``exp`` cannot compute."""
    return (magnitude(x) < 87.0) ^ True


def _reduce_exp2(x: Value) -> tuple[Value, Value]:
    """Return (2**r - 1, n) with x = n + r."""
    shifted = x + _MAGIC
    r = (x - (shifted - _MAGIC)) * _LN2
    return _minus_one(r), shifted.bits() - _MAGIC_BITS


def exp2(x: Value) -> Value:
    """Return 2**x for |x| < 125."""
    return _scale_normal(*_reduce_exp2(x))


def exp2_anywhere(x: Value) -> Value:
    """Return 2**x for any x, with the bits of ``exp2`` in its range."""
    below, n = _reduce_exp2(clamp(x, -151.0, 129.0))
    return scale(below + 1.0, n)


def is_beyond_exp2(x: Value) -> Value:
    """Return the lanes that ``exp2`` cannot compute."""
    return (magnitude(x) < 125.0) ^ True


def expm1(x: Value) -> Value:
    """Return e**x - 1, as twice half of it: 2**n / 2 may be a number where 2**n is not."""
    limited = clamp(x, -18.0, 89.0)
    n, whole = _nearest(limited)
    first = fma(n, -_LN2_HIGH, limited)
    r = fma(n, -_LN2_LOW, first)
    beyond = fma(polynomial(r, _EXP), r * r, fma(n, -_LN2_LOW, first - r))
    half = _power_of_two(whole - 1)
    value = fma(half, beyond, fma(half, r, half - 0.5)) * 2.0
    return where(magnitude(x) < 2.0**-25, x, value)


def _half_exp(x: Value) -> tuple[Value, Value]:
    """Return exp(|x|) / 2 and its rounding error; |x| beyond 89.5 is 89.5."""
    size = magnitude(x)
    size = where(size > 89.5, 89.5, size)
    r, n = _reduce_argument(size)
    y = _SUMS.ordered_sum(x.constant(1.0), _minus_one(r))
    scale = _power_of_two(n - 2)  # 2**n / 2 is a number for every n then
    return (y.hi + y.hi) * scale, (y.low + y.low) * scale


def cosh(x: Value) -> Value:
    """Return e / 2 + 1 / (2 * e) for e = exp(|x|)."""
    half, low = _half_exp(x)
    return half + (low + 0.25 / half)


# (sinh(x) / x - 1) / x**2 as a polynomial of x**2, for |x| <= 5 / 4
_SINH = (2.8518174985947553e-06, 0.00019828745280392468, 0.008333397097885609, 0.1666666567325592)


def sinh(x: Value) -> Value:
    """Return the hyperbolic sine: x + x**3 * P(x**2) near 0, e / 2 - 1 / (2 * e) for e = exp(|x|) farther out."""
    half, low = _half_exp(x)
    square = x * x
    near = fma(polynomial(square, _SINH) * square, x, x)
    return where(magnitude(x) < 1.25, near, with_sign(half + (low - 0.25 / half), x))


def _normal_exp(x: Value) -> Value:
    """Return e**x for a later sum with 1: x up to 88, and 0 below 2**-126."""
    y, n = _reduce_exp(where(x < -87.0, -87.0, x))
    return y * _power_of_two(n)


# -- logarithms --------------------------------------------------------------------------------------------------------
# (log(1 + f) - f + f**2 / 2) / f**3 for 1 + f from sqrt(1/2) to sqrt(2)
_LOG = (
    0.06971611471451178, -0.11479733846637635, 0.1168541992348674, -0.12425687331451106, 0.1424905764569748,
    -0.16667802319501254, 0.200007157488921, -0.24999996957950882, 0.33333331180030046,
)  # fmt: skip
_SQRT_HALF_BITS = 0x3F3504F3
_TINY = 1.1754943508222875e-38
_UNITS = {
    "log": ((1.0, 0.0), (0.693145751953125, 1.4286068203094173e-06)),
    "log2": ((1.4426950216293335, 1.9259629911266175e-08), (1.0, 0.0)),
    "log10": ((0.4342944920063019, -1.0103050052231683e-08), (0.301025390625, 4.605038981195214e-06)),
}
"""The logarithms of e and of 2, each as two numbers; few bits of the first part of the latter."""


def _split(x: Value) -> tuple[Value, Value]:
    """Return (f, k) with x = (1 + f) * 2**k and 1 + f from sqrt(1/2) to sqrt(2)."""
    bits = x.bits()
    k = (bits - _SQRT_HALF_BITS) >> 23
    return (bits - (k << 23)).from_bits() - 1.0, k


def _to_float(n: Value) -> Value:
    """Return a small int32 as float32."""
    return (n + _MAGIC_BITS).from_bits() - _MAGIC


def _sum_parts(name: str, f: Value, power: Value, rest: Value | None = None) -> Pair:
    """Return a logarithm of (1 + f + rest) * 2**power, for a rest that is the rounding error of f, as a sum."""
    unit, step = _UNITS[name]
    square = f * f
    curve, cube = pairwise_polynomial(f, square, _LOG), f * square
    if unit[0] == 1.0:
        total = _SUMS.ordered_sum(power * step[0], f).plus(rest)
        return Pair(total.hi, fma(curve, cube, fma(square, -0.5, fma(power, step[1], total.low))))
    scaled, tail = _SUMS.product(f, unit[0]), fma(curve, cube, square * -0.5)
    total = _SUMS.ordered_sum(power * step[0], scaled.hi).plus(rest)
    tail = fma(tail, unit[0], fma(f, unit[1], scaled.low))
    return Pair(total.hi, total.low + fma(power, step[1], tail))


def _logarithm(name: str, x: Value, shift: Value | None = None) -> Value:
    """Return a logarithm of a normal number, or that of 2**shift * x."""
    f, k = _split(x)
    return _sum_parts(name, f, _to_float(k) if shift is None else _to_float(k) + shift).value


def log_pair(x: Value) -> Pair:
    """Return the natural logarithm of a normal number with its rounding error."""
    f, k = _split(x)
    return _SUMS.normal(_sum_parts("log", f, _to_float(k)))


def log1p(x: Value) -> Value:
    """Return log(1 + x): the logarithm of the rounded sum, whose rounding error is added to its fraction."""
    u = _SUMS.sum(x.constant(1.0), x)
    f, k = _split(u.hi)
    error = where(u.hi < 2.0**60, u.low * _power_of_two(-1 * k), 0.0)
    fraction = _SUMS.ordered_sum(f, error)
    value = _sum_parts("log", fraction.hi, _to_float(k), fraction.low).value
    return where(magnitude(x) < 2.0**-25, x, end_logarithm(x, value, -1.0))


def logarithm_anywhere(name: str, x: Value) -> Value:
    """Return a logarithm of any x, with the bits of that of normal numbers."""
    small = x < _TINY
    shift = where(small, x.constant(-23.0), 0.0)
    return end_logarithm(x, _logarithm(name, where(small, x * 2.0**23, x), shift))


def is_not_normal(x: Value) -> Value:
    """Return the lanes of subnormal and negative numbers, 0, infinity and NaN."""
    return ((x >= _TINY) & (x < math.inf)) ^ True


# -- erf and tanh ------------------------------------------------------------------------------------------------------
_ERF_SMALL = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
_ERF_LARGE = ((-1.72853470e-5, 3.83197126e-4), (-3.88396438e-3, 2.42546219e-2))
_ERF_TAIL = (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1)


def erf(x: Value) -> Value:
    """Return the error function: x + x * P(x**2) near 0, 1 - exp(Q(|x|)) farther out."""
    size, square = magnitude(x), x * x
    near = fma(polynomial(square, _ERF_SMALL), x, x)
    high, low = (polynomial(size, pair) for pair in _ERF_LARGE)
    q = fma(high, square, low)
    for c in _ERF_TAIL:
        q = fma(q, size, c)
    far = 1.0 - _normal_exp(fma(q, size, -size))
    return where(size > 0.927734375, with_sign(far, x), near)


# (tanh(x) / x - 1) / x**2 as a polynomial of x**2, for |x| <= 1.1, used up to 0.9
_TANH = (
    0.00011044531139966424, -0.000807068214329919, 0.003042431030013335, -0.008583045854868111,
    0.021788517593336998, -0.05395645994071844, 0.13333266679390368, -0.33333332705650065,
)  # fmt: skip


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent: x + x**3 * P(x**2) near 0, 1 - 2 / (exp(2 * |x|) + 1) farther out."""
    size, square = magnitude(x), x * x
    near = fma(polynomial(square, _TANH) * square, x, x)
    capped = where(size > 10.0, 10.0, size)
    far = 1.0 - 2.0 / (_normal_exp(capped + capped) + 1.0)
    return with_sign(where(size > 0.9, far, near), x)


TABLE: dict[str, Callable[[Value], Value]] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "sinh": sinh,
    "cosh": cosh,
    "log1p": log1p,
    **{name: partial(_logarithm, name) for name in _UNITS},
    "erf": erf,
    "tanh": tanh,
}
"""The functions that are computed in float32."""
