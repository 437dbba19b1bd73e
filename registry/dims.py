"""Dim: a size, a stride or an offset, which is an int or a linear form over products of symbolic sizes.

Code over ``Dim`` uses ``+``, ``-``, ``*``, exact ``//``, ``%`` and comparisons, which ints have too: there is no
wrapper around an int, and a result without symbols is an int. An operation on a symbolic size is exact, or raises and
names the guard on the sizes that would decide it. All that runs is specialised to ints: only code that makes symbols
imports this module.

Source: the symbolic sizes of PyTorch's ``SymInt`` and of JAX's shape polynomials, without hints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from ..errors import UndecidedError
from ..named_tuple import NamedTuple

T = TypeVar("T")


class Symbol(NamedTuple):
    """A named size.

    Attributes:
        name: its name in texts.
        minimum, maximum: the least and the largest number that it may be; None: it has no upper bound.
        remainder: a form and a divisor if the size is the remainder of their division.
    """

    name: str
    minimum: int = 2
    maximum: int | None = None
    remainder: tuple[Any, int] | None = None


Product: TypeAlias = tuple[Symbol, ...]
"""Symbols in the order of their names, repeated for powers; the empty product is 1."""
Terms: TypeAlias = dict[Product, int]
"""The factor, not 0, of each product."""


def symbol(name: str, minimum: int = 2, maximum: int | None = None) -> SymbolicDim:
    """Make a symbolic size.

    Args:
        name: its name in texts; sizes of one name are one size.
        minimum: the least number that it may be. The default is 2: arrays of 0 and of 1 element along an axis have
            layouts of their own.
        maximum: the largest number that it may be; None: any.

    Returns:
        The size.

    >>> n = symbol("n")
    >>> 4 * (n + 1) - n, (6 * n) // 3, n == 1
    (3*n + 4, 2*n, False)
    """
    return SymbolicDim({(Symbol(name, minimum, maximum),): 1})


class SymbolicDim:
    """A linear form over products of symbols, such as ``4*m*n + 2*n - 1``.

    Args:
        terms: the factor of each product of symbols, none of them 0.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Terms):
        self.terms = terms

    def __add__(self, other: object) -> Any:
        return _combine(self, other, 1)

    def __sub__(self, other: object) -> Any:
        return _combine(self, other, -1)

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __rsub__(self, other: object) -> Any:
        return -self + other

    def __mul__(self, other: object) -> Any:
        right = terms_of(other)
        if right is None:
            return NotImplemented
        terms: Terms = {}
        for a, one in self.terms.items():
            for b, two in right.items():
                product = tuple(sorted((*a, *b)))
                terms[product] = terms.get(product, 0) + one * two
        return from_terms(terms)

    __radd__, __rmul__ = __add__, __mul__

    def __divmod__(self, other: object) -> Any:
        return _divide(self, other)

    def __rdivmod__(self, other: object) -> Any:
        return _divide(other, self)

    def __floordiv__(self, other: object) -> Any:
        return _item(_divide(self, other), 0)

    def __rfloordiv__(self, other: object) -> Any:
        return _item(_divide(other, self), 0)

    def __mod__(self, other: object) -> Any:
        return _item(_divide(self, other), 1)

    def __rmod__(self, other: object) -> Any:
        return _item(_divide(other, self), 1)

    # -- comparisons -----------------------------------------------------------------------------------------------
    def __eq__(self, other: object) -> Any:
        difference = self - other if terms_of(other) is not None else NotImplemented
        if type(difference) is not SymbolicDim:
            return difference if difference is NotImplemented else difference == 0
        low, high = difference.bounds()
        factors = math.gcd(*(factor for product, factor in difference.terms.items() if product))
        if low > 0 or high < 0 or difference.terms.get((), 0) % factors:
            return False
        raise UndecidedError(f"{self} == {other}")

    def __lt__(self, other: object) -> Any:
        return _is_positive(self, other, "<", lambda a, b: b - a)

    def __gt__(self, other: object) -> Any:
        return _is_positive(self, other, ">", lambda a, b: a - b)

    def __le__(self, other: object) -> Any:
        return _is_positive(self, other, "<=", lambda a, b: b - a + 1)

    def __ge__(self, other: object) -> Any:
        return _is_positive(self, other, ">=", lambda a, b: a - b + 1)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def bounds(self) -> tuple[float, float]:
        """Numbers that are not larger and not smaller than any value of the form, possibly infinite."""
        symbols = {one for product in self.terms for one in product}
        shifted = {
            one: from_terms({(one,): 1}) + one.minimum for one in symbols
        }  # each symbol now counts from its minimum
        rest = terms_of(substitute(self, shifted)) or {}
        low: float = rest.get((), 0)
        high = low
        for product, factor in rest.items():
            largest = math.prod(math.inf if s.maximum is None else s.maximum - s.minimum for s in product)
            if product and factor > 0 and largest:
                high += factor * largest
            elif product and largest:
                low += factor * largest
        return low, high

    def round_up(self, multiple: int) -> Any:
        """The next multiple of a number: the form plus a remainder, which is a symbol of its own.

        >>> (4 * symbol("n") + 32).round_up(16)
        (-4*n) % 16 + 4*n + 32
        """
        return self + _remainder(-self, multiple)

    # -- numbers ---------------------------------------------------------------------------------------------------
    def __index__(self) -> NoReturn:
        raise UndecidedError(f"{self} == a number")

    def __repr__(self) -> str:
        text = ""
        for product, factor in sorted(self.terms.items(), key=lambda item: (-len(item[0]), item[0])):
            parts = [str(abs(factor))] if abs(factor) != 1 or not product else []
            sign = (" - " if text else "-") if factor < 0 else " + " if text else ""
            text += sign + "*".join([*parts, *(one.name for one in product)])
        return text


if TYPE_CHECKING:
    Dim: TypeAlias = (
        int  # operations of SymbolicDim are those of ints, so that code over Dim is checked as code on ints
    )
else:
    Dim = int | SymbolicDim


def terms_of(value: object) -> Terms | None:
    """The terms of a Dim; None for another object."""
    if type(value) is SymbolicDim:
        return value.terms
    if isinstance(value, int):
        return {(): int(value)} if value else {}
    return None


def from_terms(terms: Terms) -> Any:
    """The Dim with these terms: an int if it has no symbols."""
    terms = {product: factor for product, factor in terms.items() if factor}
    return SymbolicDim(terms) if any(terms) else terms.get((), 0)


def is_symbolic(value: object) -> bool:
    """Whether a value is a symbolic size."""
    return type(value) is SymbolicDim


def substitute(value: T, numbers: Mapping[Any, Any]) -> T:
    """Replace symbols by numbers or other Dims.

    Args:
        value: a Dim, or tuples, named tuples included, of Dims; other objects are returned as they are.
        numbers: what replaces each symbol, by :class:`Symbol` or by name.

    Returns:
        The value with the symbols replaced; symbols without a number stay.

    >>> n = symbol("n")
    >>> substitute((n + 1, 3, ("rows", 2 * n)), {"n": 5})
    (6, 3, ('rows', 10))
    """
    if isinstance(value, tuple):
        items = [substitute(item, numbers) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if not isinstance(value, SymbolicDim):
        return value
    total: Any = 0
    for product, factor in value.terms.items():
        for one in product:
            number = numbers.get(one, numbers.get(one.name))
            if number is None and one.remainder is not None:
                dividend, divisor = one.remainder
                number = _remainder(substitute(dividend, numbers), divisor)
            factor = (from_terms({(one,): 1}) if number is None else number) * factor
        total = factor + total
    return total  # type: ignore[no-any-return]


def select(item: slice, size: Any) -> tuple[Any, Any, int]:
    """The first position, the number of positions and the step of a slice of an axis.

    Args:
        item: the slice; its step is an int.
        size: the size of the axis.

    Raises:
        UndecidedError: that depends on the symbols.

    >>> select(slice(1, -1), symbol("n", minimum=3))
    (1, n - 2, 1)
    """
    step = 1 if item.step is None else int(item.step)
    if not step:
        raise ZeroDivisionError("a slice has a step of 0")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clamp(bound: Any, default: Any) -> Any:
        if bound is None:
            return default
        bound = bound + size if bound < 0 else bound
        return low if bound < low else high if bound > high else bound

    start = clamp(item.start, low if step > 0 else high)
    stop = clamp(item.stop, high if step > 0 else low)
    count = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
    return (start, count, step) if count > 0 else (0, 0, 1)


def _remainder(dividend: Any, divisor: int) -> Any:
    """The remainder of a division by a number, as a symbol if it depends on the symbols."""
    known = {
        one: one.remainder[0]
        for product in terms_of(dividend) or {}
        for one in product
        if one.remainder is not None and one.remainder[1] % divisor == 0
    }
    terms = terms_of(substitute(dividend, known)) or {}
    factors = {product: factor % divisor for product, factor in terms.items()}
    rest = from_terms({product: n - divisor * (n * 2 > divisor) for product, n in factors.items()})
    if not isinstance(rest, SymbolicDim):
        return rest % divisor
    return from_terms({(Symbol(f"({rest}) % {divisor}", 0, divisor - 1, (rest, divisor)),): 1})


def _item(pair: Any, index: int) -> Any:
    return pair if pair is NotImplemented else pair[index]


def _combine(one: SymbolicDim, other: object, sign: int) -> Any:
    right = terms_of(other)
    if right is None:
        return NotImplemented
    terms = dict(one.terms)
    for product, factor in right.items():
        terms[product] = terms.get(product, 0) + sign * factor
    return from_terms(terms)


def _is_positive(one: Any, other: Any, sign: str, difference: Callable[[Any, Any], Any]) -> Any:
    """Whether a difference of two Dims is positive.

    Raises:
        UndecidedError: that depends on the symbols.
    """
    if terms_of(other) is None:
        return NotImplemented
    value = difference(one, other)
    low, high = value.bounds() if isinstance(value, SymbolicDim) else (value, value)
    if low > 0:
        return True
    if high <= 0:
        return False
    raise UndecidedError(f"{one} {sign} {other}")


def _divide(dividend: object, divisor: object) -> Any:
    """Quotient and remainder, rounded towards minus infinity as for ints.

    Raises:
        UndecidedError: they depend on the symbols in another way than a form does.
    """
    left, right = terms_of(dividend), terms_of(divisor)
    if left is None or right is None:
        return NotImplemented
    if not right:
        raise ZeroDivisionError(f"{dividend} // 0")
    if set(right) == {()}:
        return _divide_by_number(dividend, left, right[()])
    quotient = _divide_exactly(left, right)
    if quotient is not None:
        return from_terms(quotient), 0
    try:
        if 0 <= dividend < divisor:  # type: ignore[operator]
            return 0, dividend
        if -divisor <= dividend < 0:  # type: ignore[operator]
            return -1, divisor + dividend  # type: ignore[operator]
    except UndecidedError:
        pass
    raise UndecidedError(f"{dividend} % {divisor} == 0")


def _divide_by_number(dividend: object, left: Terms, number: int) -> tuple[Any, int]:
    if any(factor % number for product, factor in left.items() if product):
        raise UndecidedError(f"{dividend} % {number} == 0")
    quotient = {product: factor // number for product, factor in left.items()}
    return from_terms(quotient), left.get((), 0) % number


def _divide_exactly(left: Terms, right: Terms) -> Terms | None:
    """The quotient of two forms; None if there is a remainder."""
    leading = max(right, key=_rank)
    quotient: Terms = {}
    rest = dict(left)
    while rest:
        product = max(rest, key=_rank)
        over = _remove_factors(product, leading)
        if over is None or rest[product] % right[leading]:
            return None
        factor = quotient[over] = rest[product] // right[leading]
        for other, times in right.items():
            key = tuple(sorted((*over, *other)))
            rest[key] = rest.get(key, 0) - factor * times
            if not rest[key]:
                del rest[key]
    return quotient


def _rank(product: Product) -> tuple[Any, ...]:
    """A monomial order: products of more symbols come later."""
    return len(product), product


def _remove_factors(product: Product, factors: Product) -> Product | None:
    rest = list(product)
    for one in factors:
        if one not in rest:
            return None
        rest.remove(one)
    return tuple(rest)
