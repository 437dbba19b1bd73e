"""exp, exp2, expm1 and the hyperbolic functions, from exp(x) - 1 = 2**n * (1 + p) - 1."""

from __future__ import annotations

from .pairs import Arithmetic, Pair
from .values import Value, clamp, fma, magnitude, nearest, polynomial, power_of_two, scale, where, with_sign

LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_LN2_SHORT = (0.693147180559663, 2.8235290563031577e-13)  # the first has 41 bits: its multiples are exact
_LOG2E = 1.4426950408889634
# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2
_PRECISE = (
    2.09147553258932e-09, 2.5105312729622103e-08, 2.755727347871858e-07, 2.755725517000089e-06,
    2.480158732567746e-05, 0.0001984126987500228, 0.0013888888888883711, 0.008333333333326084,
    0.04166666666666667, 0.1666666666666667, 0.5,
)  # fmt: skip
_SHORT = (
    0.00019891080463998843, 0.0013933730715792083, 0.008333310844647862, 0.04166646419740569,
    0.16666666681704215, 0.500000001353873,
)  # fmt: skip


def _reduce_argument(m: Arithmetic, x: Pair) -> tuple[Pair, Value]:
    """Return (r, n) with x = n * log(2) + r."""
    n, whole = nearest(x.hi * _LOG2E)
    high = fma(n, -_LN2_SHORT[0], x.hi)
    low = n * -_LN2_SHORT[1]
    return m.sum(high, low if x.lo is None else low + x.lo), whole


def _minus_one(m: Arithmetic, r: Pair) -> Pair:
    """Return exp(r) - 1 for a reduced argument."""
    if r.lo is None:
        return Pair(fma(polynomial(r.hi, _SHORT), r.hi * r.hi, r.hi))
    square = m.product(r.hi, r.hi).times(0.5)
    tail = polynomial(r.hi, _PRECISE[:-1]) * (r.hi * square.hi)
    result = m.ordered_sum(r.hi, square.hi)
    return result.plus(fma(r.lo, r.hi, r.lo) + (square.low + (tail + tail)))


def _one_plus(m: Arithmetic, r: Pair) -> Pair:
    """Return exp(r) for a reduced argument."""
    one = r.hi.constant(1.0)
    if r.lo is None:
        return Pair(_minus_one(m, r).hi + one)
    q = polynomial(r.hi, _PRECISE) * (r.hi * r.hi) + fma(r.lo, r.hi, r.lo)
    return m.ordered_sum(one, r.hi).plus(q)


def exp_pair(m: Arithmetic, x: Pair) -> tuple[Pair, Value]:
    """Return (y, n) with e**x = y * 2**n."""
    r, n = _reduce_argument(m, x)
    return _one_plus(m, r), n


def exp(m: Arithmetic, x: Value) -> Value:
    """Return e**x."""
    y, n = exp_pair(m, Pair(clamp(x, -746.0, 710.0)))
    return scale(y.value, n)


def exp2(m: Arithmetic, x: Value) -> Value:
    """Return 2**x."""
    x = clamp(x, -1076.0, 1025.0)
    n, whole = nearest(x)
    rest = x - n
    r = m.product(rest, LN2[0])
    if m.exact:
        r = m.normal(r.plus(rest * LN2[1]))
    return scale(_one_plus(m, r).value, whole)


def _quarter_expm1(m: Arithmetic, x: Value) -> Pair:
    """Return (e**x - 1) / 4 for x from -50 to 710.8, with a small relative error also near 0."""
    r, n = _reduce_argument(m, Pair(x))
    factor = power_of_two(n - 2)
    offset, p = m.sum(factor, factor.constant(-0.25)), _minus_one(m, r)
    return m.normal(
        m.sum(offset.hi, p.hi * factor).plus(offset.lo).plus(None if p.lo is None else p.lo * factor)
    )


def _unless_tiny(x: Value, value: Value) -> Value:
    """Return ``value``, or x itself where the function equals x to the last bit; -0.0 stays."""
    return where(magnitude(x) < 2.0**-54, x, value)


def expm1(m: Arithmetic, x: Value) -> Value:
    """Return e**x - 1."""
    return _unless_tiny(x, _quarter_expm1(m, clamp(x, -50.0, 710.0)).value * 4.0)


def sinh(m: Arithmetic, x: Value) -> Value:
    """Return (E + E / (E + 1)) / 2 for E = exp(|x|) - 1."""
    quarter = _quarter_expm1(m, clamp(magnitude(x), 0.0, 710.8))
    ratio = m.quotient(quarter, m.total(quarter, m.constant(x, 0.25, 0.0)))
    value = m.total(quarter, ratio.times(0.25)).value * 2.0
    return _unless_tiny(x, with_sign(value, x))


def cosh(m: Arithmetic, x: Value) -> Value:
    """Return 2 * (e + 1 / (16 * e)) for e = exp(|x|) / 4."""
    y, n = exp_pair(m, Pair(clamp(magnitude(x), 0.0, 710.8)))
    quarter = m.normal(y.times(power_of_two(n - 2)))
    inverse = m.quotient(m.constant(x, 0.0625, 0.0), quarter)
    return m.total(quarter, inverse).value * 2.0


def tanh(m: Arithmetic, x: Value) -> Value:
    """Return E / (E + 2) for E = exp(2 * |x|) - 1."""
    size = clamp(magnitude(x), 0.0, 22.0)
    quarter = _quarter_expm1(m, size + size)
    ratio = m.quotient(quarter, m.total(quarter, m.constant(x, 0.5, 0.0)))
    return _unless_tiny(x, with_sign(ratio.value, x))
