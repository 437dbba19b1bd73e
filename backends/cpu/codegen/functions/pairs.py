"""Double-double arithmetic: sums of two float64 registers, about 100 bits; one register where that suffices.

A float32 function computes in plain float64, which has 29 bits more than its result: its pairs have no low part, and
the same formulas then cost as much as plain ones.

Sources: Dekker, A floating-point technique for extending the available precision (1971); Knuth, TAOCP vol. 2, 4.2.2.
"""

from __future__ import annotations

from .....named_tuple import NamedTuple
from .values import Operand, Value, fma, square_root, where


class Pair(NamedTuple):
    """The unevaluated sum ``hi + lo``; ``hi`` alone if ``lo`` is None."""

    hi: Value
    lo: Value | None = None

    @property
    def low(self) -> Value:
        """The low part.

        Raises:
            TypeError: there is none.
        """
        if self.lo is None:
            raise TypeError("this pair has no low part: its arithmetic is not exact")
        return self.lo

    @property
    def value(self) -> Value:
        """The sum, rounded."""
        return self.hi if self.lo is None else self.hi + self.lo

    def __neg__(self) -> Pair:
        return Pair(-self.hi, None if self.lo is None else -self.lo)

    def plus(self, small: Value | None) -> Pair:
        """Add a small value, if any, to the low part, or to the high part of a pair without a low part."""
        if small is None:
            return self
        return Pair(self.hi + small) if self.lo is None else Pair(self.hi, self.lo + small)

    def times(self, power: Operand) -> Pair:
        """Multiply by a power of two."""
        return Pair(self.hi * power, None if self.lo is None else self.lo * power)


def choose(condition: Value, yes: Pair, no: Pair) -> Pair:
    """Select one pair in the lanes where the condition holds, the other elsewhere."""
    low = None if yes.lo is None or no.lo is None else where(condition, yes.lo, no.lo)
    return Pair(where(condition, yes.hi, no.hi), low)


class Arithmetic:
    """Operations on pairs.

    Attributes:
        exact: whether pairs have low parts.
    """

    def __init__(self, exact: bool):
        self.exact = exact

    def constant(self, like: Value, hi: float, lo: float) -> Pair:
        """Return a constant given as high and low part."""
        return Pair(like.constant(hi), like.constant(lo) if self.exact else None)

    def exactly(self, x: Value) -> Pair:
        """Return a value as a pair with low part 0."""
        return Pair(x, x.constant(0.0) if self.exact else None)

    def sum(self, a: Value, b: Value) -> Pair:
        """Return a + b with the rounding error."""
        total = a + b
        if not self.exact:
            return Pair(total)
        shadow = total - a
        return Pair(total, (a - (total - shadow)) + (b - shadow))

    def ordered_sum(self, a: Value, b: Value) -> Pair:
        """Return a + b with the rounding error, for |a| >= |b| or a = 0."""
        total = a + b
        return Pair(total, b - (total - a)) if self.exact else Pair(total)

    def total(self, a: Pair, b: Pair) -> Pair:
        """Return a + b of pairs."""
        return self.normal(self.sum(a.hi, b.hi).plus(a.lo).plus(b.lo))

    def ordered_total(self, a: Pair, b: Pair) -> Pair:
        """Return a + b of pairs for |a| >= |b| or a = 0; the high part need not be the rounded sum."""
        return self.ordered_sum(a.hi, b.hi).plus(a.lo).plus(b.lo)

    def normal(self, a: Pair) -> Pair:
        """Return the same sum with its rounded value as the high part."""
        return a if a.lo is None else self.ordered_sum(a.hi, a.lo)

    def product(self, a: Value, b: Value | float) -> Pair:
        """Return a * b with the rounding error."""
        high = a * b
        return Pair(high, fma(a, b, -high)) if self.exact else Pair(high)

    def times(self, a: Pair, b: Pair) -> Pair:
        """Return a * b of pairs."""
        result = self.product(a.hi, b.hi)
        if a.lo is None or b.lo is None:
            return result
        return self.normal(result.plus(fma(a.hi, b.lo, a.lo * b.hi)))

    def _divide(self, a: Pair, b: Pair) -> tuple[Value, Value, Value]:
        """Return a / b approximately, and what is left of a and the inverse of b: the product is the correction."""
        inverse = 1.0 / b.hi
        q = a.hi * inverse
        rest = fma(-q, b.hi, a.hi)
        if a.lo is not None:
            rest = rest + a.lo
        if b.lo is not None:
            rest = fma(-q, b.lo, rest)
        return q, rest, inverse

    def quotient(self, a: Pair, b: Pair) -> Pair:
        """Return a / b of pairs."""
        if not self.exact:
            return Pair(a.hi / b.hi)
        q, rest, inverse = self._divide(a, b)
        return self.ordered_sum(q, rest * inverse)

    def divide(self, a: Pair, b: Pair) -> Value:
        """Return a / b of pairs, rounded."""
        if not self.exact:
            return a.hi / b.hi
        q, rest, inverse = self._divide(a, b)
        return fma(rest, inverse, q)

    def root(self, a: Pair) -> Pair:
        """Return the square root; 0 for 0."""
        s = square_root(a.hi)
        if a.lo is None:
            return Pair(s)
        rest = fma(-s, s, a.hi) + a.lo
        return Pair(s, rest * (_guess_inverse_root(a.hi) * 0.5))


def _guess_inverse_root(a: Value) -> Value:
    """Return 1 / sqrt(a) to 4%, from half the exponent: enough for a correction, and cheaper than a division."""
    return (0x5FE6EB50C7B537A9 - (a.bits() >> 1)).from_bits()
